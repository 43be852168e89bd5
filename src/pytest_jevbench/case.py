"""Cases: a state nobody edits and an ordered batch of questions, read from JSON Lines.

One line is the request one would send, with an id: `{"id": ..., "state": ..., "questions": {key: question}}`, and
optionally `domain`, `thresholds` (`[{"subject": text, "value": integer}]`) and `hierarchies`
(`{key: [{block: [option ids]}]}`). Other fields are kept in `extra`, for whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CaseError, show
from .lines import objects, read_bytes
from .wire import Question, check_question, is_text_or_tree, problems, sent_form

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FIELDS = ("id", "state", "questions", "domain", "thresholds", "hierarchies")
Hierarchy = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `questions` keeps the order of the file; `domain` is "" where none is given."""

    id: str
    state: Any
    questions: dict[str, Question]
    domain: str = ""
    thresholds: tuple[tuple[str, int], ...] = ()
    hierarchies: Mapping[str, list[Hierarchy]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_cases(path: Path) -> list[Case]:
    """Read a case file. Raises CaseError, with file and line, for the first line that is no case."""
    return parse_cases(path, read_bytes(path, CaseError))


def parse_cases(path: Path, data: bytes) -> list[Case]:
    """Read the bytes of a case file; `path` is for messages. Raises CaseError as `read_cases` does."""
    cases: dict[str, Case] = {}
    lines: dict[str, str] = {}
    for where, raw in objects(path, data, CaseError):
        case = to_case(raw, where)
        if case.id in cases:
            raise CaseError(
                f"the id {case.id!r} stands twice",
                where,
                f"the first in {lines[case.id]}",
                hint="Give each case an id of its own.",
            )
        cases[case.id], lines[case.id] = case, where
    if not cases:
        raise CaseError("the file holds no case", str(path), expected="one JSON object a line")
    return list(cases.values())


def to_case(raw: Mapping[str, Any], where: str) -> Case:
    """Turn one parsed line into a Case. Raises CaseError that names the field, the question and the value."""
    for name in ("id", "state", "questions"):
        if name not in raw:
            raise CaseError(f"the field {name!r} is missing", where, f"the fields {', '.join(raw) or 'none'}")
    identity = raw["id"]
    if not isinstance(identity, str) or not identity:
        raise CaseError("the id is no text", f"{where}: id", show(identity), "a non-empty string")
    if not is_text_or_tree(raw["state"]):
        raise CaseError(
            "the state cannot be sent", f"{where}: state", show(raw["state"]), "text, an object or an array"
        )
    questions = raw["questions"]
    if not isinstance(questions, dict) or not questions:
        raise CaseError(
            "the case has no questions", f"{where}: questions", show(questions), "an object {key: question}"
        )
    for key, question in questions.items():
        if not key:
            raise CaseError("a question has an empty key", f"{where}: questions", show(question))
        check_question(question, f"{where}: questions.{key}", CaseError)
    domain, thresholds, hierarchies = _facts(raw, where)
    _check_hierarchies(hierarchies, questions, where)
    return Case(
        id=identity,
        state=raw["state"],
        questions={key: sent_form(question) for key, question in questions.items()},
        domain=domain,
        thresholds=thresholds,
        hierarchies=hierarchies,
        extra=_extra(raw, where),
    )


@cache
def _facts_adapter() -> TypeAdapter[Any]:
    from typing import Annotated

    from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

    class Threshold(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid")
        subject: Annotated[str, Field(min_length=1)]
        value: Annotated[int, Field(ge=0)]

    class Facts(BaseModel):
        model_config = ConfigDict(strict=True)
        domain: str | None = None
        thresholds: list[Threshold] | None = None
        hierarchies: dict[str, list[dict[str, list[str]]]] | None = None

    return TypeAdapter(Facts)


def _facts(raw: Mapping[str, Any], where: str) -> tuple[str, tuple[tuple[str, int], ...], dict[str, list[Hierarchy]]]:
    from pydantic import ValidationError

    given = {name: raw[name] for name in ("domain", "thresholds", "hierarchies") if name in raw}
    if not given:
        return "", (), {}
    try:
        facts = _facts_adapter().validate_python(given)
    except ValidationError as broken:
        path, message, found = problems(broken, given)[0]
        raise CaseError(message, f"{where}: {path}", found) from None
    thresholds = tuple((threshold.subject, threshold.value) for threshold in facts.thresholds or ())
    return facts.domain or "", thresholds, facts.hierarchies or {}


def _check_hierarchies(
    hierarchies: Mapping[str, list[Hierarchy]], questions: Mapping[str, Question], where: str
) -> None:
    for key, declared in hierarchies.items():
        place = f"{where}: hierarchies.{key}"
        if key not in questions or questions[key]["type"] != "choice":
            raise CaseError("the hierarchy belongs to no Choice of the case", place, expected="the key of a Choice")
        options = sorted(questions[key]["criteria"])
        for hierarchy in declared:
            members = sorted(option for block in hierarchy.values() for option in block)
            if len(hierarchy) < 2 or members != options or not all(hierarchy) or not all(hierarchy.values()):
                raise CaseError(
                    "the hierarchy is no partition of the options into two or more blocks",
                    place,
                    show(dict(hierarchy)),
                    f"each of {show(options)} in exactly one block",
                )


def _extra(raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    extra = {name: value for name, value in raw.items() if name not in FIELDS}
    for name in extra:
        meant = get_close_matches(name, FIELDS[2:], n=1, cutoff=0.8)
        if meant:
            raise CaseError(
                f"the field {name!r} looks like a slip of the pen",
                where,
                hint=f"Did you mean {meant[0]!r}? If not, choose a name that is less alike.",
            )
    return extra


def domains(cases: Iterable[Case]) -> list[str]:
    """Return the domains in order of first appearance ("" for cases without one)."""
    return list(dict.fromkeys(case.domain for case in cases))
