"""What a relation has at hand while it builds a trial: the case, the target, a seeded generator and the rewrite bank.

No answer is within reach: a plan is made before anything is asked, and a relation that looks at an answer is refused.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..case import Case
from ..errors import PlanError
from ..rewrites import Bank
from ..wire import MAX_LEVELS, MAX_OPTIONS, Batch, Question

SEPARATOR = "\x1f"


def generator(*parts: object) -> random.Random:
    """Return the generator of these parts: seeded by the first 8 bytes of the SHA-256 of their text."""
    digest = hashlib.sha256(SEPARATOR.join(map(str, parts)).encode(errors="surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


@dataclass(frozen=True, slots=True)
class Site:
    """Where a trial is built: a target question of a case, with variant `v` and draw `t`."""

    case: Case
    key: str
    bank: Bank
    v: int = 0
    rng: random.Random = field(default_factory=random.Random)

    @property
    def question(self) -> Question:
        """The target."""
        return self.case.questions[self.key]

    @property
    def batch(self) -> Batch:
        """The case's own full batch."""
        return self.case.questions

    @property
    def is_first(self) -> bool:
        """Whether the target is the first question of its case."""
        return self.key == next(iter(self.case.questions))

    @property
    def source(self) -> NoReturn:
        """No answer exists while a plan is made. Raises PlanError."""
        raise PlanError(
            "a relation looked at an answer while building a trial",
            f"case {self.case.id}",
            hint="Read answers in `deviate`; a trial is built before anything is asked.",
        )

    def replacing(self, question: Question) -> Batch:
        """Return the batch with the target replaced in place."""
        return {key: question if key == self.key else own for key, own in self.batch.items()}

    def probing(self, probes: Mapping[str, str | Question]) -> Batch:
        """Return the batch with probes appended: texts become Nouls without criteria."""
        return {**self.batch, **{key: noul(p) if isinstance(p, str) else p for key, p in probes.items()}}

    def new_key(self, wanted: str, taken: Iterable[str] = ()) -> str:
        """Return `wanted`, or with `_2`, `_3`, ... appended when the batch (or `taken`) has that key."""
        return numbered(wanted, {*self.batch, *taken})


@dataclass(frozen=True, slots=True)
class Built:
    """The parts of a trial that a relation decides; `requests` is one batch, or several by label."""

    requests: Batch | Mapping[str, Batch]
    params: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[str] = ()
    labelled: bool = False


def numbered(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted` or `wanted_2`, `wanted_3`, ...: the first that is not taken."""
    taken = set(taken)
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}_{n}"
    return name


def underscored(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted` with as many `_` appended as it takes to be free."""
    taken = set(taken)
    while wanted in taken:
        wanted += "_"
    return wanted


def noul(instructions: str) -> Question:
    """Return a Noul without criteria."""
    return {"type": "noul", "instructions": instructions}


def edited(question: Question, **changes: Any) -> Question:
    """Return a question with some fields replaced, their order kept."""
    return {**question, **changes}


def instructions(question: Question) -> str | None:
    """Return the instructions when they are text that can be quoted, else None."""
    found = question.get("instructions")
    return found if isinstance(found, str) and found.strip() else None


def is_plain_noul(question: Question) -> bool:
    """Say whether a question is a Noul that its instructions alone define."""
    return question["type"] == "noul" and not question.get("criteria") and instructions(question) is not None


def nouls(site: Site) -> list[str]:
    """Return the keys of the other plain Nouls of the batch."""
    return [key for key, question in site.batch.items() if key != site.key and is_plain_noul(question)]


def texts(question: Question) -> list[str] | None:
    """Return the texts of a Choice's options or a Score's levels, None where one is missing or no text."""
    criteria = question["criteria"]
    found = list(criteria.values() if isinstance(criteria, Mapping) else criteria)
    return found if all(isinstance(text, str) and text.strip() for text in found) else None


def quotable(question: Question, kind: str) -> list[str] | None:
    """Return the texts of a Choice or Score whose instructions and answers can all be quoted and told apart."""
    if question["type"] != kind or instructions(question) is None:
        return None
    found = texts(question)
    return found if found is not None and len(set(found)) == len(found) else None


def menu(answers: Iterable[str]) -> str:
    """List answers for a template."""
    return "; ".join(f'"{answer}"' for answer in answers)


def fits(question: Question) -> bool:
    """Say whether a Choice or Score stays within what the wire allows."""
    n = len(question["criteria"])
    return 2 <= n <= (MAX_OPTIONS if question["type"] == "choice" else MAX_LEVELS)


def menu_size(question: Question, least: int) -> int:
    """Return how many options a Choice has, 0 for fewer than `least` and for other types: variants one an option."""
    n = len(question["criteria"]) if question["type"] == "choice" else 0
    return n if n >= least else 0


def inserted(options: Mapping[str, Any], after: str, new: str, text: Any) -> dict[str, Any]:
    """Return the options with a new one right after another."""
    result = {}
    for option, own in options.items():
        result[option] = own
        if option == after:
            result[new] = text
    return result
