"""Asking what a test needs: the source output of its case and the answers to its trials' requests."""

from __future__ import annotations

from .client import Client
from .plan import Test
from .relations import Evidence


def gather(client: Client, test: Test) -> list[Evidence]:
    """Ask for everything one test reads. Every request carries the case's own state.

    Raises AnswerFormatError, ModelError or Refused for the first request that gives no usable answer, and PlanError
    for a row that cannot be decoded.
    """
    source = client.source(test.case)
    return [
        Evidence(
            trial,
            test.case.questions,
            source,
            {label: client.ask(test.case.state, batch) for label, batch in trial.requests.items()},
        )
        for trial in test.trials()
    ]
