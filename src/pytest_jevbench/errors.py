"""Everything that can go wrong, as one small tree.

    JevbenchError
    ├── SettingError        a setting, a selection or an option value that cannot be used
    ├── CaseError           a case file or a case
    ├── SuiteError          a suite's folder, manifest or digests
    │   └── PlanError       a row of a frozen plan
    ├── CardError           a saved card
    └── AskError            a request that gave no usable answer
        ├── AnswerFormatError   an answer that is not in the format
        ├── ModelError          no answer at all: unreachable, raising, no `answers` object
        ├── Refused             the server is up and said no (4xx)
        └── BudgetSpent         no more requests may be sent

Each says what is wrong, where, what was found, what was expected and what to do next. Errors travel between
processes (xdist), so their arguments are plain strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class JevbenchError(Exception):
    """The root: `str(error)` is the whole message, ready to print.

    `what` is a sentence without a full stop. `where` names a file, line, question or URL; `found` and `expected`
    are short texts; `hint` says what to do.
    """

    def __init__(self, what: str, where: str = "", found: str = "", expected: str = "", hint: str = "") -> None:
        super().__init__(what, where, found, expected, hint)
        self.what, self.where, self.found, self.expected, self.hint = what, where, found, expected, hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.found:
            text += f"; found {self.found}"
        if self.expected:
            text += f"; expected {self.expected}"
        return f"{text}. {self.hint}" if self.hint else text

    def at(self, where: str) -> JevbenchError:
        """Return the same error with a place put before its own (`where: own place: ...`)."""
        return type(self)(
            self.what, f"{where}: {self.where}" if self.where else where, self.found, self.expected, self.hint
        )


class SettingError(JevbenchError):
    """A setting, a selection or an option value that cannot be used."""


class CaseError(JevbenchError):
    """A case file or a case that cannot be read."""


class SuiteError(JevbenchError):
    """A suite whose folder, manifest or digests do not hold."""


class PlanError(SuiteError):
    """A row of a plan that cannot be used."""


class CardError(JevbenchError):
    """A saved card that cannot be read."""


class AskError(JevbenchError):
    """A request that gave no usable answer. `retries` counts, by cause, the tries that went before it."""

    args: tuple[str, ...]

    retries: Mapping[str, int] = MappingProxyType({})
    unreachable = False
    """Whether the connection failed: another replica may answer."""

    def again(self) -> AskError:
        """Return the same error to be raised once more, without the traceback of its first time."""
        return type(self)(*self.args)


class AnswerFormatError(AskError):
    """An answer that is not in the System One format; it names the question."""


class ModelError(AskError):
    """A model that did not answer: unreachable, raising, or without an `answers` object."""


class Refused(AskError):  # noqa: N818 - the field's word for it, fixed in the interface
    """A server that is up and refused the request (HTTP 4xx)."""


class BudgetSpent(AskError):  # noqa: N818 - the field's word for it, fixed in the interface
    """The budget of requests (`--jev-max-requests`) is used up."""


def show(value: Any, limit: int = 120) -> str:
    """Return `value` as short text for a message: its repr, cut to `limit` characters."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ of a user's object must not hide the real error
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def near(name: str, known: list[str]) -> str:
    """Return a hint that names the closest of `known`, whatever its case, or lists them all when they are few."""
    from difflib import get_close_matches

    folded = {each.casefold(): each for each in reversed(known)}
    close = get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"Did you mean {folded[close[0]]!r}?"
    return f"Known: {', '.join(known)}." if known and len(known) <= 60 else ""
