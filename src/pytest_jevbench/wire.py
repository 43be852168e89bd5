"""The System One format: questions, answers and distributions, read strictly.

A question is the JSON object that goes over the wire; it is validated, never rewritten (except that a Noul without
criteria loses a null `criteria` field). A distribution is an ordered dict from outcome to probability:

    Noul    {"false": 1 - p, "true": p}
    Choice  {option id: p, ...}             in the order of the question's options
    Score   {"0": p, ..., "n-1": p}         lowest level first
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

from .errors import AnswerFormatError, JevbenchError, show

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Question = Mapping[str, Any]
Batch = Mapping[str, Question]
Distribution = dict[str, float]

MAX_OPTIONS = 255
MAX_LEVELS = 10
CLIP = 1e-6
"""A probability may lie this far outside [0, 1] (rounding of a server) and is then clipped."""
SUM_SLACK = 0.02
"""A Choice or Score whose probabilities miss a sum of 1 by more than this is counted as a quirk."""


class Repeated(dict[str, Any]):
    """A JSON object in which a key stood twice; `key` is the first such key."""

    key: str = ""


class RepeatedKeyError(ValueError):
    """A JSON object in which a key stands twice, where that is an error; the message is the key."""


def _repeated_key(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("no key is repeated")


def _marking(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.key = _repeated_key(pairs)
    return repeated


def _refusing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RepeatedKeyError(_repeated_key(pairs))
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_strict = json.JSONDecoder(object_pairs_hook=_refusing, parse_constant=_no_constant)
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_lenient = json.JSONDecoder(object_pairs_hook=_marking)


def load_json(text: str) -> Any:
    """Parse JSON. Raises ValueError as `json.loads` does, and RepeatedKeyError for a repeated key."""
    return _strict.decode(text)


def load_answer_json(text: str) -> Any:
    """Parse JSON of a server: an object with a repeated key comes back as `Repeated`, so that its place is known."""
    return _lenient.decode(text)


def is_text_or_tree(value: Any) -> bool:
    """Say whether `value` may be a state, an instruction or a criterion: text, an object or an array."""
    return isinstance(value, str | dict | list)


# Questions


@cache
def question_adapter() -> TypeAdapter[Any]:
    """Build the validator of one question (once: pydantic takes a moment to import)."""
    from typing import Annotated, Literal

    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

    text = str | dict[str, Any] | list[Any]

    def side(criteria: dict[str, Any]) -> dict[str, Any]:
        if not criteria or set(criteria) - {"true", "false"}:
            raise ValueError("Noul criteria describe 'true', 'false' or both")
        return criteria

    def named(criteria: dict[str, Any]) -> dict[str, Any]:
        if "" in criteria:
            raise ValueError("an option needs a non-empty id")
        return criteria

    class Strict(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    class Noul(Strict):
        type: Literal["noul"]
        instructions: text | None = None
        criteria: Annotated[dict[str, text | None], AfterValidator(side)] | None = None

        @model_validator(mode="after")
        def asks_something(self) -> Noul:
            if self.instructions is None and self.criteria is None:
                raise ValueError("a Noul needs instructions or criteria")
            return self

    class Choice(Strict):
        type: Literal["choice"]
        instructions: text | None = None
        criteria: Annotated[
            dict[str, text | None], Field(min_length=2, max_length=MAX_OPTIONS), AfterValidator(named)
        ]

    class Score(Strict):
        type: Literal["score"]
        instructions: text | None = None
        criteria: Annotated[list[text], Field(min_length=2, max_length=MAX_LEVELS)]

    return TypeAdapter(Annotated[Noul | Choice | Score, Field(discriminator="type")])


def problems(error: Any, value: Any) -> list[tuple[str, str, str]]:
    """Turn a pydantic error about `value` into (path, message, found) triples."""
    found = []
    for item in error.errors(include_url=False):
        # Tags of unions stand between the keys, and a key may be called like a tag: keep what leads somewhere.
        path, here = [], value
        for part in item["loc"]:
            if _leads(here, part):
                path.append(str(part))
                here = here[part]
        if item["type"] == "missing":
            path.append(str(item["loc"][-1]))
        found.append((".".join(path), _worded(item), show(item["input"], 80)))
    return found


def _leads(here: Any, part: Any) -> bool:
    if isinstance(here, Mapping):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and part < len(here)


def _worded(item: Mapping[str, Any]) -> str:
    """Say in our words what pydantic found."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return "the question type is not known: expected noul, choice or score"
    if kind in ("too_short", "too_long"):
        what = "options" if context.get("field_type") == "Dictionary" else "levels"
        most = MAX_OPTIONS if what == "options" else MAX_LEVELS
        return f"expected 2 to {most} {what}, there are {context.get('actual_length')}"
    name = str(item["loc"][-1]) if item["loc"] else ""
    worded = {"extra_forbidden": f"there is no field {name!r} here", "missing": f"the field {name!r} is missing"}
    return worded.get(kind, str(item["msg"]).removeprefix("Value error, "))


def check_question(question: Any, where: str, error: type[JevbenchError]) -> None:
    """Raise `error` at `where` unless `question` may go over the wire."""
    from pydantic import ValidationError

    try:
        question_adapter().validate_python(question)
    except ValidationError as broken:
        path, message, found = problems(broken, question)[0]
        raise error(message, f"{where}.{path}" if path else where, found) from None


def sent_form(question: Question) -> Question:
    """Return the question as it is sent: a Noul without criteria has no `criteria` field."""
    if question.get("type") == "noul" and "criteria" in question and question["criteria"] is None:
        return {key: value for key, value in question.items() if key != "criteria"}
    return question


def outcomes(question: Question) -> tuple[str, ...]:
    """Return the outcomes a question declares, in the order it was sent."""
    kind = question["type"]
    if kind == "noul":
        return ("false", "true")
    if kind == "choice":
        return tuple(question["criteria"])
    return tuple(map(str, range(len(question["criteria"]))))


def request_text(state: Any, questions: Batch) -> str:
    """Return the order-preserving text that identifies a request (two orders are two requests)."""
    return _compact.encode({"state": state, "questions": questions})


# Distributions


def tv(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Total variation distance of two distributions, in [0, 1]; a key that one lacks counts as 0 there."""
    keys = a.keys() | b.keys()
    return math.fsum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in keys) / 2


def argmax(distribution: Mapping[str, float]) -> str:
    """Return the first of the most probable outcomes, in the distribution's own order."""
    return max(distribution, key=distribution.__getitem__)


def renorm(distribution: Mapping[str, float], keep: Sequence[str]) -> Distribution:
    """Restrict to `keep` (in that order) and divide by the sum; uniform when that sum is 0."""
    total = math.fsum(distribution[key] for key in keep)
    if total == 0:
        return dict.fromkeys(keep, 1 / len(keep))
    return {key: distribution[key] / total for key in keep}


# Answers


@dataclass(frozen=True, slots=True)
class Quirk:
    """Something odd but usable about an answer: `kind` says what, `size` how much, `where` on which question."""

    kind: str
    size: float
    where: str


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to one request: a distribution and, where the server gave one, a confidence per question."""

    distributions: dict[str, Distribution]
    confidences: dict[str, float]
    quirks: tuple[Quirk, ...] = ()


FORMATS = {
    "noul": '{"type": "noul", "noul": p} with p the probability of yes in [0, 1]',
    "choice": '{"type": "choice", "probabilities": {...}} with a probability for every option id',
    "score": '{"type": "score", "probabilities": {...}} with a probability for every level index "0" to "n-1"',
}


def read_answers(raw: Any, questions: Batch) -> Answers:
    """Read an `answers` object against the questions that were asked.

    Raises AnswerFormatError, naming the question, for anything that is not in the format: an answer missing, a
    probability that is no number or outside [0, 1] by more than 1e-6, a sum of zero, NaN or Infinity, a key twice.
    """
    if not isinstance(raw, Mapping):
        raise AnswerFormatError("the answers are no object", "answers", show(raw), "{question id: answer}")
    if isinstance(raw, Repeated):
        where = f"question {raw.key!r}"
        raise AnswerFormatError("the question is answered twice", where, "a repeated key", "one answer per question")
    distributions: dict[str, Distribution] = {}
    confidences: dict[str, float] = {}
    quirks: list[Quirk] = []
    for key, question in questions.items():
        kind = question["type"]

        def fail(what: str, found: Any, key: str = key, kind: str = kind) -> AnswerFormatError:
            return AnswerFormatError(what, f"question {key!r}", show(found), FORMATS[kind])

        if key not in raw:
            raise fail("the answer is missing", list(raw))
        answer = raw[key]
        if not isinstance(answer, Mapping) or isinstance(answer, Repeated):
            raise fail(_no_answer(answer), answer)
        if answer.get("type") != kind:
            quirks.append(Quirk("type" if "type" in answer else "no type", 1.0, key))
        if kind == "noul":
            p = _probability(answer.get("noul"), fail, answer)
            distributions[key] = {"false": 1.0 - p, "true": p}
        else:
            distributions[key] = _read_probabilities(answer, question, key, fail, quirks)
        confidence = _confidence(answer.get("confidence"))
        if confidence is not None:
            confidences[key] = confidence
    return Answers(distributions, confidences, tuple(quirks))


def _confidence(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _no_answer(found: Any) -> str:
    if isinstance(found, Repeated):
        return f"the key {found.key!r} stands twice in the answer"
    return "the answer is no object"


Fail = Callable[[str, Any], AnswerFormatError]


def _probability(value: Any, fail: Fail, shown: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise fail("a probability is missing or no number", shown)
    try:
        p = float(value)
    except OverflowError:
        raise fail("a probability is not finite", shown) from None
    if not math.isfinite(p):
        raise fail("a probability is not finite", shown)
    if not -CLIP <= p <= 1 + CLIP:
        raise fail("a probability lies outside [0, 1]", shown)
    return min(1.0, max(0.0, p))


def _read_probabilities(
    answer: Mapping[str, Any], question: Question, key: str, fail: Fail, quirks: list[Quirk]
) -> Distribution:
    given = answer.get("probabilities")
    if not isinstance(given, Mapping):
        raise fail("the answer has no `probabilities` object", answer)
    if isinstance(given, Repeated):
        raise fail(f"the probability of {given.key!r} is given twice", given)
    declared = outcomes(question)
    names = _level_names(given, question, declared, fail) if question["type"] == "score" else declared
    missing = [name for name in names if name not in given]
    if missing:
        raise fail(f"the probability of {show(missing[0], 60)} is missing", dict(given))
    values = [
        value
        if type(value := given[name]) is float and 0.0 <= value <= 1.0
        else _probability(value, fail, {name: value})
        for name in names
    ]
    # Not fsum: exact ties after normalising then break as in the package whose verdicts we give.
    total = sum(values)
    if total <= 0:
        raise fail("the probabilities sum to zero", dict(given))
    if len(given) > len(names):
        known = set(names)
        strays = {name: value for name, value in given.items() if name not in known}
        mass = math.fsum(_probability(value, fail, {name: value}) for name, value in strays.items())
        if mass > 0:
            quirks.append(Quirk("undeclared", mass, key))
        off = abs(total + mass - 1)
    else:
        off = abs(total - 1)
    if off > SUM_SLACK:
        quirks.append(Quirk("sum", off, key))
    if total == 1.0:
        return dict(zip(declared, values, strict=True))
    return {outcome: value / total for outcome, value in zip(declared, values, strict=True)}


def _level_names(
    given: Mapping[str, Any], question: Question, declared: tuple[str, ...], fail: Fail
) -> tuple[str, ...]:
    """Say whether a Score was answered by level index or by level text; never by both."""
    texts = tuple(question["criteria"])
    if not all(isinstance(text, str) for text in texts):
        return declared
    keys = set(given)
    by_index = keys.issuperset(declared)
    by_text = keys.issuperset(texts) and len(set(texts)) == len(texts)
    others = (keys - set(declared)) & set(texts) if by_index else (keys - set(texts)) & set(declared)
    if others and (by_index or by_text):
        raise fail("levels are given by index and by text", dict(given))
    return texts if by_text and not by_index else declared
