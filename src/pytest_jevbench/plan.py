"""Frozen plans: which trials a suite runs, with every request, read from `tests.jsonl.gz`.

The first line is a header, each further line one trial. A request is a list of `[key, question]` pairs, in order; a
question that is exactly one of the case's own is written `{"@": its key}`. Every row is checked when the plan is
read, but kept as text and decoded again when its turn comes: 12,000 tests load in a fraction of a second and cost
little memory.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .case import Case
from .errors import PlanError, near, show
from .lines import decode
from .relations import CATALOGUE, Relation, Trial
from .wire import Question, check_question, sent_form

FORMAT = 1
ROW_KEYS = ("case", "relation", "key", "v", "t", "targets", "requests", "params", "reduced")


@dataclass(frozen=True, slots=True)
class Row:
    """One trial of a plan, still as text; `where` is its `file:line`."""

    relation: str
    case: str
    key: str
    line: bytes
    where: str

    @property
    def place(self) -> tuple[int, int]:
        """The row's variant and draw."""
        raw = json.loads(self.line)
        return raw["v"], raw["t"]

    def trial(self, case: Case) -> Trial:
        """Decode the row against its case."""
        raw = json.loads(self.line)
        requests = {
            label: {
                key: case.questions[question["@"]] if "@" in question else sent_form(question)
                for key, question in batch
            }
            for label, batch in raw["requests"].items()
        }
        return Trial(
            raw["relation"],
            raw["case"],
            raw["key"],
            raw["v"],
            raw["t"],
            tuple(raw["targets"]),
            requests,
            raw["params"],
        )


@dataclass(frozen=True, slots=True)
class Test:
    """One relation on one question of one case: all its trials (variants and draws) are judged together."""

    __test__ = False  # a pytest that collects a user's `from pytest_jevbench.plan import *` must not take it

    relation: Relation
    case: Case
    key: str
    rows: tuple[Row | Trial, ...]

    def trials(self) -> list[Trial]:
        """Return the test's trials, in plan order; rows of a frozen plan are decoded now."""
        return [row if isinstance(row, Trial) else row.trial(self.case) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Plan:
    """The header and the tests of a frozen plan, in its order, with the cases they belong to."""

    header: Mapping[str, Any]
    cases: Mapping[str, Case]
    tests: tuple[Test, ...]

    def select(self, relations: Iterable[Relation], domains: Iterable[str] = ()) -> Plan:
        """Return the part of the plan that tests these relations on the cases of these domains (default: all)."""
        names = {relation.name for relation in relations}
        wanted = set(domains)
        tests = tuple(
            test for test in self.tests if test.relation.name in names and (not wanted or test.case.domain in wanted)
        )
        return Plan(self.header, self.cases, tests)


@contextmanager
def _paused_collector() -> Iterator[None]:
    # Tens of thousands of live objects make the cyclic collector run over and over while nothing is garbage.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse_plan(path: Path, data: bytes, cases: Iterable[Case]) -> Plan:
    """Read the (unzipped) bytes of a plan; `path` is for messages.

    Raises PlanError, with file and line, for a header or row that is not in the format, that names an unknown case,
    relation or question, or that asks a question which may not go over the wire.
    """
    by_id = {case.id: case for case in cases}
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    with _paused_collector():
        lines = data.split(b"\n")
        header = _header(decode(lines[0], f"{path}:1", PlanError), f"{path}:1")
        for number, line in enumerate(lines[1:], 2):
            if line.strip():
                where = f"{path}:{number}"
                row = _row(decode(line, where, PlanError), line, where, by_id)
                grouped.setdefault((row.relation, row.case, row.key), []).append(row)
        if not grouped:
            raise PlanError("the plan has no rows", str(path))
        tests = tuple(
            Test(CATALOGUE[relation], by_id[case], key, tuple(rows))
            for (relation, case, key), rows in grouped.items()
        )
    return Plan(header, by_id, tests)


def _header(header: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(header, dict) or "format" not in header:
        raise PlanError("the first line is no plan header", where, show(header), '{"format": 1, ...}')
    if header["format"] != FORMAT:
        raise PlanError(
            "this plan format is not known",
            where,
            show(header["format"]),
            str(FORMAT),
            "Update pytest-jevbench, or freeze the plan again.",
        )
    return header


def _row(raw: Any, line: bytes, where: str, cases: Mapping[str, Case]) -> Row:
    if not isinstance(raw, dict) or not raw.keys() >= set(ROW_KEYS):
        raise PlanError(
            "the row lacks fields", where, show(list(raw) if isinstance(raw, dict) else raw), ", ".join(ROW_KEYS)
        )
    relation, identity, key = raw["relation"], raw["case"], raw["key"]
    if not isinstance(relation, str) or relation not in CATALOGUE:
        raise PlanError(f"there is no relation {show(relation)}", where, hint=near(str(relation), list(CATALOGUE)))
    case = cases.get(identity) if isinstance(identity, str) else None
    if case is None:
        raise PlanError(f"there is no case {show(identity)}", where, hint="The plan belongs to other cases.")
    targets = raw["targets"]
    if not isinstance(targets, list) or not targets:
        raise PlanError("the row has no targets", where, show(targets))
    for question in (key, *targets):
        if not isinstance(question, str) or question not in case.questions:
            raise PlanError(f"the case has no question {show(question)}", where, hint=f"Case {case.id!r}.")
    _check_indices(raw, where)
    _check_requests(raw["requests"], where, case)
    if CATALOGUE[relation].scored and list(raw["requests"]) != ["variant"]:
        raise PlanError(
            "a scored relation sends exactly one request, labelled 'variant'", where, show(list(raw["requests"]))
        )
    return Row(relation, identity, key, line, where)


def _check_indices(raw: Mapping[str, Any], where: str) -> None:
    for name in ("v", "t"):
        if type(raw[name]) is not int or raw[name] < 0:
            raise PlanError(f"{name!r} is no index", where, show(raw[name]), "an integer from 0")
    if not isinstance(raw["params"], dict):
        raise PlanError("the params are no object", where, show(raw["params"]))


def _check_requests(requests: Any, where: str, case: Case) -> None:
    if not isinstance(requests, dict):
        raise PlanError("the requests are no object", where, show(requests), "{label: [[key, question], ...]}")
    for label, batch in requests.items():
        place = f"{where}: requests.{label}"
        if not isinstance(batch, list) or not batch:
            raise PlanError("the request is empty or no list", place, show(batch), "[[key, question], ...]")
        seen = set()
        for pair in batch:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
                raise PlanError("a question is no [key, question] pair", place, show(pair))
            key, question = pair
            if key in seen:
                raise PlanError(f"the key {key!r} is asked twice", place)
            seen.add(key)
            if isinstance(question, dict) and "@" in question:
                named = question["@"]
                if not isinstance(named, str) or named not in case.questions or len(question) != 1:
                    raise PlanError("the reference names no question of the case", place, show(question))
            else:
                check_question(question, f"{place}.{key}", PlanError)


@lru_cache(maxsize=8192)
def escaped(text: str) -> str:
    """Percent-escape what pytest would take for its own in a node id: `::`, brackets, `%` and control characters."""
    text = re.sub(r"[%\[\]\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", _quoted, text)
    return text.replace("::", "%3A%3A")


def _quoted(found: re.Match[str]) -> str:
    return quote(found[0], safe="", errors="surrogatepass")


def own_name(file: str) -> str:
    """Return what the test ids of a case file begin with: its name without its endings."""
    return Path(file).name.removesuffix(".gz").removesuffix(".jsonl")


def test_id(suite: str, relation: str, case: str, target: str) -> str:
    """Return a test's node id: `SUITE::RELATION::CASE[TARGET]`."""
    return f"{escaped(suite)}::{relation}::{escaped(case)}[{escaped(target)}]"


setattr(test_id, "__test__", False)  # noqa: B010 - functions declare no attributes, and pytest asks for this one


def edited_questions(trial: Trial, case: Case) -> dict[str, tuple[Question | None, Question | None]]:
    """Return, by key, what a trial changed: (the case's own question, the question sent), None where absent."""
    sent = {key: question for batch in trial.requests.values() for key, question in batch.items()}
    return {
        key: (case.questions.get(key), sent.get(key))
        for key in dict.fromkeys([*case.questions, *sent])
        if case.questions.get(key) != sent.get(key)
    }
