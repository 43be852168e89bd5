"""The bank of judged rewrites: natural paraphrases, negations, descriptions and translations, frozen in a file.

One line is a candidate with its verdict: `kind` (paraphrase, negation, description, translate:<language>), `source`,
`rewrite` (null when none was found), `accepted`, `audited` (true, false, or null when nobody looked) and what else
its author recorded. A `translate:` entry rewrites a whole question: its source is the JSON text of
`{"instructions": ..., "criteria": ...}` and its rewrite the same object in the other language.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SuiteError
from .lines import objects, read_bytes
from .wire import Question, check_question, load_json, problems

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One candidate of the bank. `audited` is None where nobody looked."""

    kind: str
    source: str
    rewrite: Any
    accepted: bool
    audited: bool | None

    def usable(self, *, audited_only: bool = False) -> bool:
        """Say whether runs may use it: accepted, present, not rejected by an audit (or confirmed by one)."""
        if not self.accepted or self.rewrite is None:
            return False
        return self.audited is True if audited_only else self.audited is not False


class Bank:
    """The usable rewrites, by kind and source, in the order of the file."""

    def __init__(self, rewrites: Iterable[Rewrite] = (), *, audited_only: bool = False) -> None:
        self._found: dict[tuple[str, str], list[Any]] = {}
        self._translations: dict[str, dict[str, Any]] = {}
        for each in rewrites:
            if not each.usable(audited_only=audited_only):
                continue
            if each.kind.startswith("translate:"):
                self._translations.setdefault(each.kind, {}).setdefault(_spaced(each.source), each.rewrite)
            else:
                self._found.setdefault((each.kind, each.source), []).append(each.rewrite)

    def first(self, kind: str, source: Any) -> Any:
        """Return the first usable rewrite of a text, None when there is none."""
        found = self._found.get((kind, source)) if isinstance(source, str) else None
        return found[0] if found else None

    def translation(self, question: Question) -> tuple[str, Mapping[str, Any]] | None:
        """Return (kind, translated fields) of a whole question in the first language, None when there is none.

        A translation that does not keep the option ids or the number of levels, or that may not be sent, is not used.
        """
        own = {"instructions": question.get("instructions"), "criteria": question.get("criteria")}
        source = json.dumps(own)
        for kind in sorted(self._translations):
            rewrite = self._translations[kind].get(source)
            ordered = _in_order(rewrite, own) if isinstance(rewrite, dict) else None
            if ordered is not None and _may_be_sent(question, ordered):
                return kind, ordered
        return None


def _may_be_sent(question: Question, fields: Mapping[str, Any]) -> bool:
    try:
        check_question({**question, **fields}, "", SuiteError)
    except SuiteError:
        return False
    return True


def _spaced(source: str) -> str:
    """Return the JSON text of a source in one spelling: spaces and escapes do not matter, the order of keys does."""
    try:
        return json.dumps(load_json(source))
    except ValueError:
        return source


def _in_order(rewrite: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the translated fields with the criteria in the question's own order, None where they do not fit it."""
    criteria, old = rewrite.get("criteria"), own["criteria"]
    if isinstance(old, dict):
        if not isinstance(criteria, dict) or criteria.keys() != old.keys():
            return None
        criteria = {key: criteria[key] for key in old}
    elif isinstance(old, list) and (not isinstance(criteria, list) or len(criteria) != len(old)):
        return None
    return {"instructions": rewrite.get("instructions"), "criteria": None if old is None else criteria}


@cache
def _adapter() -> TypeAdapter[Any]:
    from pydantic import BaseModel, ConfigDict, TypeAdapter

    class Line(BaseModel):
        model_config = ConfigDict(strict=True)
        kind: str
        source: str
        rewrite: str | dict[str, Any] | None
        accepted: bool
        audited: bool | None = None

    return TypeAdapter(Line)


def read_rewrites(path: Path) -> list[Rewrite]:
    """Read a bank. Raises SuiteError, with file and line, for the first line that is no rewrite."""
    return list(_parse(path, read_bytes(path, SuiteError)))


def _parse(path: Path, data: bytes) -> Iterator[Rewrite]:
    from pydantic import ValidationError

    for where, raw in objects(path, data, SuiteError):
        try:
            line = _adapter().validate_python(raw)
        except ValidationError as broken:
            field, message, found = problems(broken, raw)[0]
            raise SuiteError(message, f"{where}: {field}", found) from None
        yield Rewrite(line.kind, line.source, line.rewrite, line.accepted, line.audited)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rewrites of one kind a bank holds; `usable` leaves out what an audit rejected."""

    kind: str
    candidates: int
    accepted: int
    usable: int
    confirmed: int
    rejected: int


def count_rewrites(rewrites: Iterable[Rewrite]) -> list[Counts]:
    """Count a bank by kind, in order of first appearance: what was accepted, what may be used, what was audited."""
    by_kind: dict[str, list[Rewrite]] = {}
    for each in rewrites:
        by_kind.setdefault(each.kind, []).append(each)
    return [
        Counts(
            kind,
            len(found),
            sum(each.accepted for each in found),
            sum(each.usable() for each in found),
            sum(each.usable(audited_only=True) for each in found),
            sum(each.accepted and each.audited is False for each in found),
        )
        for kind, found in by_kind.items()
    ]
