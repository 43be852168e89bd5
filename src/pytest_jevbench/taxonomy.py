"""The two axes on which relations are placed: what operation their law uses, and what part of a request they edit.

A relation declares its group, form and edits beside its code (`relations/`); the tables here only name what those
words mean, so nothing is declared twice.
"""

from __future__ import annotations

from typing import NamedTuple


class Dimension(NamedTuple):
    """A dimension: its code, title and the operation that links the two distributions a law compares."""

    code: str
    title: str
    compares: str


DIMENSIONS = {
    "REP": Dimension("REP", "Representation consistency", "two descriptions of the same events"),
    "BAT": Dimension("BAT", "Batch independence", "one question in different company"),
    "MEA": Dimension("MEA", "Probability measure", "different events of one measure"),
    "LOG": Dimension("LOG", "Logical coherence", "propositions of which one entails another"),
    "CHO": Dimension("CHO", "Choice-set coherence", "a menu and a part of it"),
}

DIAGNOSTICS = "DIAG"
"""The dimension code of checks on response fields: never scored, run only when named."""

GROUPS = {
    "REP.invariance": "Invariance",
    "REP.equivariance": "Equivariance",
    "REP.binding": "Binding",
    "REP.type": "Answer type",
    "BAT.isolation": "Isolation",
    "MEA.complement": "Complement",
    "MEA.partition": "Partition",
    "MEA.marginalisation": "Marginalisation",
    "LOG.bounds": "Bounds",
    "LOG.monotonicity": "Monotonicity",
    "CHO.conditioning": "Conditioning",
    "DIAG.fields": "Response fields",
}

FORMS = {
    "E": "two distributions are equal",
    "I": "an identity holds between probabilities",
    "L": "an inequality holds between probabilities",
    "field": "a response field agrees with the probabilities",
}

EDITS = ("key", "instructions", "criteria", "type", "batch")
"""The parts of a request a relation may edit. The state is none of them."""


def dimension_of(group: str) -> str:
    """Return the dimension code of a group (`MEA.partition` gives `MEA`)."""
    return group.split(".", 1)[0]
