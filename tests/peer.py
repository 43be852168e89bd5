"""Our core beside the package `jevbench` 0.1.0, seen from outside only: the same answers in, the same numbers out.

`run_ours` and `run_theirs` run one suite through each, fed by one `SharedModel`; `compare` lists every number in
which the two differ. `tests/test_parity.py` asserts that there is none, `benchmarks/parity.py` prints the table.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jevbench

from pytest_jevbench.cache import MemoryStore
from pytest_jevbench.client import Client
from pytest_jevbench.errors import AskError, Refused
from pytest_jevbench.evidence import gather
from pytest_jevbench.judge import SLACK, Verdict, is_violation, judge, outcomes, tolerance_for
from pytest_jevbench.model import Request, embedded, from_callable
from pytest_jevbench.relations import CATALOGUE
from pytest_jevbench.scores.coherence import Coherence, View, by_domain, score
from pytest_jevbench.suite import load_suite
from pytest_jevbench.wire import Question
from pytest_jevbench.wire import outcomes as declared

DISTINCT = {"examples": 43, "jevbench-mini": 1_248, "jevbench-240": 10_320}
"""Distinct requests of each of the peer's suites, from a model that answers them all."""
NEAR = 1e-9
EXACT = 1e-12
TOLERANCE = 0.05

Answers = dict[str, Any]
Answerer = Callable[[Request], Answers]
TestKey = tuple[str, str, str]
"""Relation, case and the trial's question."""
OutcomeKey = tuple[str, str, str, int, int, str]
"""The same, then variant, draw and the judged question."""


# Models


def _embedded(name: str) -> Answerer:
    model = embedded(name)

    def answer(request: Request) -> Answers:
        answers: Answers = model.ask(request).answers
        return answers

    return answer


def _rounded(answers: Answers, digits: int) -> Answers:
    return {
        key: {"type": "noul", "noul": round(answer["noul"], digits)}
        if answer["type"] == "noul"
        else {
            "type": answer["type"],
            "probabilities": {name: round(p, digits) for name, p in answer["probabilities"].items()},
        }
        for key, answer in answers.items()
    }


def _two_decimals() -> Answerer:
    luce = _embedded("luce")
    return lambda request: _rounded(luce(request), 2)


def _positional(position: int, size: int, question: Question) -> Answers:
    """Answer from nothing but where things stand: small fractions, so that sums tie and flips hang on the order."""
    if question["type"] == "noul":
        return {"type": "noul", "noul": (position + 1) / (size + 1)}
    options = declared(question)
    weights = [1 + (i + size) % len(options) for i in range(len(options))]
    total = sum(weights)
    return {
        "type": question["type"],
        "probabilities": {option: weight / total for option, weight in zip(options, weights, strict=True)},
    }


def _order_and_batch() -> Answerer:
    return lambda request: {
        key: _positional(position, len(request.questions), question)
        for position, (key, question) in enumerate(request.questions.items())
    }


class RefusedHereError(Exception):
    """The model gives no answer to this request, to neither side."""


def _refusing(share: float) -> Answerer:
    """Refuse by a hash of the request, salted so that each suite's opening request, without which no run of the
    peer begins, is answered.
    """
    luce = _embedded("luce-biased")

    def answer(request: Request) -> Answers:
        drawn = hashlib.sha256(b"refuse" + request.digest).digest()
        if int.from_bytes(drawn[:8], "big") / 2**64 < share:
            raise RefusedHereError
        return luce(request)

    return answer


MODELS: dict[str, Callable[[], Answerer]] = {
    "uniform": lambda: _embedded("uniform"),
    "random": lambda: _embedded("random"),
    "luce": lambda: _embedded("luce"),
    "luce-biased": lambda: _embedded("luce-biased"),
    "two-decimals": _two_decimals,
    "order-and-batch": _order_and_batch,
    "refusing-1%": lambda: _refusing(0.01),
    # Every test needs two answers: the coverage of the relations then lies on both sides of the 95 % they need.
    "refusing-2.5%": lambda: _refusing(0.025),
    "refusing-6%": lambda: _refusing(0.06),
    "sparrow": lambda: _embedded("sparrow"),
}
SLOW = ("sparrow",)


def canonical(state: Any, questions: Mapping[str, Mapping[str, Any]]) -> Request:
    """Make a request that does not depend on who wrote it: fields in one order, no null criteria of a Noul."""
    fields = ("type", "instructions", "criteria")
    return Request.of(
        state,
        {
            key: {
                name: question[name]
                for name in sorted(question, key=fields.index)
                if not (name == "criteria" and question["type"] == "noul" and question[name] is None)
            }
            for key, question in questions.items()
        },
    )


class SharedModel:
    """Answers each distinct request once; both sides are given copies of the very same answers."""

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._known: dict[bytes, str | None] = {}

    def find(self, request: Request) -> Answers:
        """Return the answers to a request. Raises RefusedHereError where the model refuses it."""
        if request.digest not in self._known:
            try:
                self._known[request.digest] = json.dumps(self._answer(request))
            except RefusedHereError:
                self._known[request.digest] = None
        text = self._known[request.digest]
        if text is None:
            raise RefusedHereError
        answers: Answers = json.loads(text)
        return answers


class Side:
    """One side's way to the shared model: which requests it made, which were refused, how long the model took."""

    def __init__(self, model: SharedModel, refusal: Exception) -> None:
        self.asked: set[bytes] = set()
        self.refused: set[bytes] = set()
        self.seconds = 0.0
        self._model = model
        self._refusal = refusal

    def __call__(self, state: Any, questions: dict[str, Any]) -> Answers:
        """Answer as a callable model does, or raise this side's refusal."""
        started = time.perf_counter()
        request = canonical(state, questions)
        self.asked.add(request.digest)
        try:
            return self._model.find(request)
        except RefusedHereError:
            self.refused.add(request.digest)
            raise self._refusal from None
        finally:
            self.seconds += time.perf_counter() - started


# The two runs, in one shape


@dataclass(frozen=True, slots=True)
class Judgement:
    """One outcome as one side judged it; `tied` when a distribution it compares has two best outcomes."""

    check: str
    deviation: float
    tolerance: float
    violated: bool
    flip: bool | None
    tied: bool = False


@dataclass(slots=True)
class Run:
    """What one side made of a suite.

    `numbers` are its scores by dotted name; `lost_domains` those in which a relation has no judged test, where the
    peer gives no mean that the relation would enter, and we leave it out of the mean. `seconds` leave the model out.
    """

    side: Side
    planned: dict[str, int] = field(default_factory=dict)
    sources: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    outcomes: dict[OutcomeKey, Judgement] = field(default_factory=dict)
    unjudged: set[TestKey] = field(default_factory=set)
    numbers: dict[str, float | None] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    too_few: set[str] = field(default_factory=set)
    lost_domains: set[str] = field(default_factory=set)
    seconds: float = 0.0


@dataclass(slots=True)
class Ours(Run):
    """Our run can be scored again with other verdicts; `distinct` is what our client counted."""

    verdicts: dict[TestKey, Verdict] = field(default_factory=dict)
    min_n: int = 5
    distinct: int = 0

    def score(self) -> None:
        """Score the verdicts as they are now."""
        verdicts = list(self.verdicts.values())
        whole = score(verdicts, self.planned, CATALOGUE, min_n=self.min_n)
        domains = by_domain(verdicts, self.planned, CATALOGUE, min_n=self.min_n)
        self.numbers = _our_numbers(whole)
        for domain, part in domains.items():
            self.numbers |= {f"domains.{domain}.{name}": value for name, value in _our_numbers(part).items()}
        self.incomplete = {entry.relation for entry in whole.unscored if entry.incomplete}
        self.too_few = {entry.relation for entry in whole.unscored if not entry.incomplete}


def run_ours(suite: str, model: SharedModel) -> Ours:
    """Run one of the peer's suites through our core."""
    side = Side(model, Refused("the model refuses this request"))
    started = time.perf_counter()
    loaded = load_suite(f"upstream:{suite}")
    client = Client([from_callable(side)], MemoryStore())
    run = Ours(side, min_n=loaded.min_n)
    run.planned = dict(Counter(test.relation.name for test in loaded.plan.tests))
    for test in loaded.plan.tests:
        key = (test.relation.name, test.case.id, test.key)
        try:
            evidences = gather(client, test)
        except AskError:
            run.unjudged.add(key)
            continue
        tolerance = tolerance_for(test.relation, TOLERANCE)
        for evidence in evidences:
            for found in outcomes(test.relation, evidence):
                run.outcomes[*key, evidence.trial.v, evidence.trial.t, found.target] = Judgement(
                    test.relation.check,
                    found.deviation,
                    tolerance,
                    is_violation(found.deviation, tolerance),
                    found.flip,
                    _tied(found.expected) or _tied(found.got),
                )
        judged = judge(test.relation, evidences, test.case.domain)
        if judged is None:
            run.unjudged.add(key)
        else:
            run.verdicts[key] = judged.verdict
    for case in {test.case.id: test.case for test in loaded.plan.tests}.values():
        with suppress(AskError):
            run.sources[case.id] = client.source(case).distributions
    run.score()
    run.distinct = client.statistics.distinct
    run.seconds = time.perf_counter() - started - side.seconds
    return run


def _tied(distribution: Mapping[str, float]) -> bool:
    best = sorted(distribution.values(), reverse=True)[:2]
    return len(best) == 2 and best[0] - best[1] <= NEAR


def run_theirs(suite: str, model: SharedModel) -> Run:
    """Run one of its suites through the peer, by its public functions."""
    side = Side(model, RuntimeError("the model refuses this request"))
    started = time.perf_counter()
    report = jevbench.evaluate(jevbench.from_callable(side, name="parity"), suite=suite, cache=":memory:")
    domains = report.by_domain()
    run = Run(side, seconds=time.perf_counter() - started - side.seconds)
    result, scores = report.result, report.scores
    run.planned = result["planned_tests"]
    run.sources = {case: base["base"] for case, base in result["bases"].items()}
    run.outcomes = _their_outcomes(result["outcomes"])
    lost_cases = {error["case"] for error in result["errors"] if error.get("stage") == "base"}
    lost_tests = {
        (error["relation"], error["case"], error["target"])
        for error in result["errors"]
        if error.get("stage") != "base"
    }
    plan = load_suite(f"upstream:{suite}").plan
    run.unjudged = lost_tests | {
        (test.relation.name, test.case.id, test.key) for test in plan.tests if test.case.id in lost_cases
    }
    run.numbers = _their_numbers(scores)
    for domain, part in domains.items():
        if part["incomplete"]:
            run.lost_domains.add(domain)
        run.numbers |= {f"domains.{domain}.{name}": value for name, value in _their_numbers(part).items()}
    run.incomplete = set(scores["incomplete"])
    run.too_few = {check.split("/")[0] for check in scores["excluded"]["low_n"]}
    return run


TRIAL = re.compile(r"(?P<key>.+):(?P<draw>\d+)(?::v(?P<variant>\d+))?")


def _their_outcomes(found: Iterable[Mapping[str, Any]]) -> dict[OutcomeKey, Judgement]:
    judgements: dict[OutcomeKey, Judgement] = {}
    for outcome in found:
        relation, case = outcome["relation"], outcome["case_id"]
        trial = TRIAL.fullmatch(outcome["trial_id"].removeprefix(f"{relation}:{case}:"))
        if trial is None or int(trial["variant"] or 0) != outcome["variant"]:
            raise ValueError(f"a trial id of a shape never seen: {outcome['trial_id']!r}")
        key = (relation, case, trial["key"], outcome["variant"], int(trial["draw"]), outcome["targets"][0])
        if key in judgements:
            raise ValueError(f"two outcomes for {key}")
        judgements[key] = Judgement(
            outcome["check"], outcome["deviation"], outcome["tolerance"], outcome["violated"], outcome["flip"]
        )
    return judgements


def _our_numbers(coherence: Coherence) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {"n_cases": coherence.cases}
    for prefix, view in (("", coherence.strict), ("graded.", coherence.graded)):
        numbers |= _our_view(prefix, view)
    for name, interval in coherence.ci.items():
        if interval is not None:
            numbers |= {f"ci.{name}.low": interval[0], f"ci.{name}.high": interval[1]}
    for relation, check in coherence.checks.items():
        for name in ("n", "planned", "coverage", "score", "graded"):
            numbers[f"checks.{relation}/{CATALOGUE[relation].check}.{name}"] = getattr(check, name)
    return numbers


def _our_view(prefix: str, view: View) -> dict[str, float | None]:
    parts: dict[str, Mapping[str, float | None]] = {
        "dimensions": view.dimensions,
        "groups": view.groups,
        "relations": dict(view.relations),
    }
    numbers = {f"{prefix}{kind}.{name}": value for kind, part in parts.items() for name, value in part.items()}
    return {f"{prefix}overall": view.overall, **numbers}


def _their_numbers(scores: Mapping[str, Any]) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {"n_cases": scores["n_cases"]}
    for prefix, view in (("", scores), ("graded.", scores["graded"])):
        numbers[f"{prefix}overall"] = view["overall"]
        for kind, theirs in (("dimensions", "pillars"), ("groups", "groups"), ("relations", "relations")):
            numbers |= {f"{prefix}{kind}.{name}": value for name, value in view[theirs].items()}
    for name, interval in scores["ci"].items():
        if interval is not None:
            numbers |= {f"ci.{name}.low": interval[0], f"ci.{name}.high": interval[1]}
    for relation, check in scores["checks"].items():
        for name in ("n", "planned", "coverage", "score", "graded"):
            numbers[f"checks.{relation}.{name}"] = check.get(name)
    return numbers


# The comparison


@dataclass(slots=True)
class Comparison:
    """How far two runs of one suite agree. `problems` says in words what must not differ and does.

    Two kinds of difference are listed apart. A verdict `on_tolerance`: we let a deviation within 1e-9 of the
    tolerance hold. A flip `on_tie`: the peer normalises answers by the builtin `sum`, whose last bits depend on the
    Python version (3.12 made it compensated) and break ties between sums of probabilities; we use `math.fsum`.
    `overall` is each side's own, `scores` compares them after tests on the tolerance were given the peer's verdict.
    """

    suite: str
    model: str
    outcomes: int = 0
    judged: int = 0
    refused: int = 0
    incomplete: int = 0
    overall: tuple[float | None, float | None] = (None, None)
    deviation: float = 0.0
    verdicts: int = 0
    on_tolerance: list[str] = field(default_factory=list)
    flips: int = 0
    on_tie: list[str] = field(default_factory=list)
    scores: float = 0.0
    interval: float = 0.0
    distinct: tuple[int, int] = (0, 0)
    seconds: tuple[float, float] = (0.0, 0.0)
    problems: list[str] = field(default_factory=list)


def run_both(suite: str, name: str) -> Comparison:
    """Run a suite through both sides with the same model and compare."""
    model = SharedModel(MODELS[name]())
    return compare(suite, name, run_ours(suite, model), run_theirs(suite, model))


def compare(suite: str, model: str, ours: Ours, theirs: Run) -> Comparison:
    """Compare two runs; tests that only differ by a deviation on the tolerance get the peer's verdict first."""
    found = Comparison(suite, model, judged=len(ours.verdicts), refused=len(ours.side.refused))
    found.seconds = (ours.seconds, theirs.seconds)
    _compare_requests(found, ours, theirs)
    _compare_sources(found, ours, theirs)
    found.overall = (ours.numbers["overall"], theirs.numbers["overall"])
    settled = _compare_outcomes(found, ours, theirs)
    if settled:
        ours.verdicts |= settled
        ours.score()
    _compare_scores(found, ours, theirs)
    found.incomplete = len(ours.incomplete)
    return found


def _compare_requests(found: Comparison, ours: Ours, theirs: Run) -> None:
    found.distinct = (len(ours.side.asked), len(theirs.side.asked))
    if ours.side.asked != theirs.side.asked:
        only_ours, only_theirs = ours.side.asked - theirs.side.asked, theirs.side.asked - ours.side.asked
        found.problems.append(f"requests: {len(only_ours)} only ours, {len(only_theirs)} only theirs")
    if ours.distinct != len(ours.side.asked):
        found.problems.append(f"requests: our client counted {ours.distinct}, the model {len(ours.side.asked)}")
    if not ours.side.refused and found.distinct[0] != DISTINCT[found.suite]:
        found.problems.append(f"requests: {found.distinct[0]} distinct, expected {DISTINCT[found.suite]}")
    if ours.unjudged != theirs.unjudged:
        only_ours_, only_theirs_ = ours.unjudged - theirs.unjudged, theirs.unjudged - ours.unjudged
        found.problems += [f"{_name(key)}: not judged by us, judged by the peer" for key in sorted(only_ours_)]
        found.problems += [f"{_name(key)}: judged by us, an error of the peer" for key in sorted(only_theirs_)]


def _compare_sources(found: Comparison, ours: Run, theirs: Run) -> None:
    for case in sorted(ours.sources.keys() | theirs.sources.keys()):
        mine, other = ours.sources.get(case, {}), theirs.sources.get(case, {})
        if {key: list(p) for key, p in mine.items()} != {key: list(p) for key, p in other.items()}:
            found.problems.append(f"source output of {case}: other questions or outcomes, or another order")
            continue
        gap = max(abs(p[outcome] - other[key][outcome]) for key, p in mine.items() for outcome in p)
        if gap > EXACT:
            found.problems.append(f"source output of {case}: a probability differs by {gap:.2g}")


def _compare_outcomes(found: Comparison, ours: Ours, theirs: Run) -> dict[TestKey, Verdict]:
    """Compare outcome by outcome; return the verdicts that are the peer's for lying on the tolerance."""
    for key in sorted(ours.outcomes.keys() ^ theirs.outcomes.keys()):
        found.problems.append(f"{_name(key)}: an outcome only {'ours' if key in ours.outcomes else 'theirs'}")
    off: set[TestKey] = set()
    their_verdicts: dict[TestKey, bool] = defaultdict(bool)
    for key, other in theirs.outcomes.items():
        their_verdicts[key[:3]] |= other.violated
        mine = ours.outcomes.get(key)
        if mine is None or not _compare_outcome(found, key, mine, other):
            off.add(key[:3])
    settled = {}
    for test, verdict in ours.verdicts.items():
        if test in their_verdicts and verdict.violated != their_verdicts[test] and test not in off:
            settled[test] = replace(verdict, violated=their_verdicts[test])
    return settled


def _compare_outcome(found: Comparison, key: OutcomeKey, mine: Judgement, other: Judgement) -> bool:
    """Say whether one outcome agrees, a verdict on the tolerance aside."""
    found.outcomes += 1
    before = len(found.problems)
    gap = abs(mine.deviation - other.deviation)
    found.deviation = max(found.deviation, gap)
    if not gap <= NEAR:
        found.problems.append(f"{_name(key)}: deviation {mine.deviation!r}, theirs {other.deviation!r}")
    if (mine.check, mine.tolerance) != (other.check, other.tolerance):
        found.problems.append(f"{_name(key)}: {mine}, theirs {other}")
    if mine.flip != other.flip:
        found.flips += 1
        lines = found.on_tie if mine.tied else found.problems
        lines.append(f"{_name(key)}: flip {mine.flip}, theirs {other.flip}")
    if mine.violated != other.violated:
        found.verdicts += 1
        line = f"{_name(key)}: violated {mine.violated} at {mine.deviation!r}, theirs {other.violated}"
        line += f" at {other.deviation!r}; tolerance {mine.tolerance}"
        if max(abs(mine.deviation - mine.tolerance), abs(other.deviation - mine.tolerance)) <= SLACK:
            found.on_tolerance.append(line)
        else:
            found.problems.append(line)
    return len(found.problems) == before


def _compare_scores(found: Comparison, ours: Ours, theirs: Run) -> None:
    if ours.planned != theirs.planned:
        found.problems.append(f"planned tests: {ours.planned}, theirs {theirs.planned}")
    for what, mine, other in (
        ("incomplete", ours.incomplete, theirs.incomplete),
        ("below min_n", ours.too_few, theirs.too_few),
    ):
        if mine != other:
            found.problems.append(f"{what}: {sorted(mine)}, theirs {sorted(other)}")
    means = re.compile(rf"domains\.({'|'.join(theirs.lost_domains)})\.(graded\.)?(overall|dimensions|groups)\b.*")
    for name in sorted(ours.numbers.keys() | theirs.numbers.keys()):
        if means.fullmatch(name):
            continue
        value, expected = ours.numbers.get(name), theirs.numbers.get(name)
        if value is None and expected is None:
            continue
        gap = abs(value - expected) if value is not None and expected is not None else 1.0
        if name.startswith("ci."):
            found.interval = max(found.interval, gap)
        else:
            found.scores = max(found.scores, gap)
        if not gap <= EXACT:
            found.problems.append(f"{name}: {value!r}, theirs {expected!r}")


def _name(key: tuple[Any, ...]) -> str:
    relation, case, question, *rest = key
    name = f"{relation}::{case}[{question}]"
    return f"{name} variant {rest[0]}, draw {rest[1]}, {rest[2]}" if rest else name
