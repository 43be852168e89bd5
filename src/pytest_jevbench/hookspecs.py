"""The hooks a root conftest.py may implement. Each docstring holds an example ready to paste.

Write `@pytest.hookimpl(optionalhook=True)` above an implementation, so that a run without the plugin does not break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from .card import Card


def pytest_jev_model(config: pytest.Config) -> Any:
    """Return the model to test: a model, a function `fn(state, questions) -> answers`, or a list of replicas.

    It is called once, after collection. Exactly one conftest may answer, and none when an option names the model.

        import pytest
        from pytest_jevbench.model import from_callable

        @pytest.hookimpl(optionalhook=True)
        def pytest_jev_model(config):
            from my_package import load, predict

            weights = load("checkpoint-7")

            def answer(state, questions):
                return predict(weights, state, questions)

            return from_callable(answer, name="my-model", revision="checkpoint-7")
    """


def pytest_jev_card(config: pytest.Config, card: Card) -> None:
    """Look at the card after scoring, before it is saved.

    import pytest

    @pytest.hookimpl(optionalhook=True)
    def pytest_jev_card(config, card):
        print("coherence:", card.scores.overall)
    """
