"""Models that ship with the project: four reference models with known defects, and a small real one.

- `uniform`: equal probabilities, whatever is asked.
- `random`: an independent pseudo-random answer for every question of every distinct request.
- `luce`: each option is weighed by itself, from the state, the instructions and its own description (Luce 1959), so
  that menus are conditioned on exactly and every refinement of an option is violated. Blind to keys, ids, order and
  batch.
- `luce-biased`: luce with a bonus for the first option, a shift read from the key and a shift growing with the batch.
- `sparrow`: the model bundled with the package `sparrow-decider` (extra `demo`).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

from .. import __version__
from ..errors import SettingError, near
from ..wire import Batch, Question, outcomes
from .base import Reply, Request

Answerer = Callable[[Request], dict[str, Any]]

FIRST_BONUS, KEY_SHIFT, BATCH_SHIFT = 0.9, 0.8, 0.08
"""The three defects of luce-biased, in logits: for the first option, by key (up to), for each companion."""


class EmbeddedModel:
    """A model of this package, by name."""

    lasting = True

    def __init__(self, name: str, answer: Answerer, revision: str) -> None:
        self.name = self.id = name
        self.revision = revision
        self._answer = answer

    def ask(self, request: Request) -> Reply:
        """Answer a request."""
        return Reply(self._answer(request))

    def close(self) -> None:
        """Nothing to give back."""


def _typed(question: Question, probabilities: list[float]) -> dict[str, Any]:
    if question["type"] == "noul":
        return {"type": "noul", "noul": probabilities[1]}
    return {"type": question["type"], "probabilities": dict(zip(outcomes(question), probabilities, strict=True))}


def _uniform(request: Request) -> dict[str, Any]:
    return {
        key: _typed(question, [1 / len(outcomes(question))] * len(outcomes(question)))
        for key, question in request.questions.items()
    }


def _random(request: Request) -> dict[str, Any]:
    answers = {}
    for key, question in request.questions.items():
        rng = random.Random(request.digest + key.encode(errors="surrogatepass"))
        weights = [rng.random() + 1e-9 for _ in outcomes(question)]
        answers[key] = _typed(question, [weight / math.fsum(weights) for weight in weights])
    return answers


WORD = re.compile(r"\w{4,}")


def _text(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, sort_keys=True)


class _Scorer:
    """The weight of a text in the light of a state and a question: word overlap plus a hash, in logits."""

    def __init__(self, state: Any) -> None:
        self.state = _text(state)
        self.words = set(WORD.findall(self.state.lower()))
        self.seed = hashlib.sha256(self.state.encode(errors="surrogatepass"))

    def __call__(self, instructions: Any, text: Any) -> float:
        said = _text(text)
        words = set(WORD.findall(said.lower()))
        overlap = len(words & self.words) / len(words) if words else 0.0
        digest = self.seed.copy()
        digest.update(f"\x1f{_text(instructions)}\x1f{said}".encode(errors="surrogatepass"))
        noise = int.from_bytes(digest.digest()[:8], "big") / 2**64
        return 2 * overlap + 2 * noise - 1.5


def _logits(question: Question, score: _Scorer) -> list[float]:
    instructions = question.get("instructions")
    if question["type"] == "noul":
        return [0.0, score(instructions, question.get("criteria") if instructions is None else instructions)]
    criteria = question["criteria"]
    return [score(instructions, text) for text in (criteria if isinstance(criteria, list) else criteria.values())]


def _softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _luce(request: Request) -> dict[str, Any]:
    score = _Scorer(request.state)
    return {key: _typed(q, _softmax(_logits(q, score))) for key, q in request.questions.items()}


def _luce_biased(request: Request) -> dict[str, Any]:
    score = _Scorer(request.state)
    return {
        key: _typed(q, _softmax(_biased(key, q, request.questions, score))) for key, q in request.questions.items()
    }


def _biased(key: str, question: Question, batch: Batch, score: _Scorer) -> list[float]:
    logits = _logits(question, score)
    by_key = hashlib.sha256(key.encode(errors="surrogatepass")).digest()[0] / 255
    shift = KEY_SHIFT * by_key + BATCH_SHIFT * (len(batch) - 1)
    if question["type"] == "noul":
        return [logits[0], logits[1] + shift]
    return [logits[0] + FIRST_BONUS + shift, *logits[1:]]


def _sparrow() -> EmbeddedModel:
    try:
        from sparrow_decider import Decider
    except ImportError:
        raise SettingError(
            "the embedded model 'sparrow' needs the package `sparrow-decider`",
            hint='Install it with: pip install "pytest-jevbench[demo]"',
        ) from None
    from importlib.metadata import version

    decider = Decider.load()

    def answer(request: Request) -> dict[str, Any]:
        answers: dict[str, Any] = decider.ask(request.state, json.loads(request.text)["questions"])
        return answers

    return EmbeddedModel("sparrow", answer, f"{decider.name} of sparrow-decider {version('sparrow-decider')}")


ANSWERERS: dict[str, Answerer] = {
    "uniform": _uniform,
    "random": _random,
    "luce": _luce,
    "luce-biased": _luce_biased,
}
EMBEDDED = (*ANSWERERS, "sparrow")


def embedded(name: str) -> EmbeddedModel:
    """Return an embedded model by name. Raises SettingError for an unknown name or a missing package."""
    if name == "sparrow":
        return _sparrow()
    if name not in ANSWERERS:
        raise SettingError(f"there is no embedded model {name!r}", hint=near(name, list(EMBEDDED)))
    return EmbeddedModel(name, ANSWERERS[name], __version__)
