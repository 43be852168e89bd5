"""The same without pytest: for notebooks, training loops and scripts.

from pytest_jevbench import evaluate, systemone

card = evaluate(systemone("http://127.0.0.1:8000/v1/systemone"), suite="upstream:jevbench-mini")
print(card.table("relation"))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cache import MemoryStore, Store, open_store
from .card import Card, JudgingSettings
from .case import Case, read_cases
from .client import Client
from .errors import AskError, PlanError, SettingError
from .evidence import gather
from .judge import TOLERANCE
from .model import Model, as_replicas
from .own import OwnCases, own_plan, read_own
from .plan import Test
from .rewrites import Bank, read_rewrites
from .run import Run, Source, prepare, quirk_notes
from .suite import DEFAULT_MIN_N, Suite, load_suite
from .wire import Distribution

Answerable = Model | Callable[..., Any] | Sequence[Any]
Cases = str | Path | Sequence[Case]
Names = str | Iterable[str]


def load_cases(path: str | Path) -> list[Case]:
    """Read a case file. Raises CaseError, with file and line, for the first line that is no case."""
    return read_cases(Path(path))


def evaluate(
    model: Answerable,
    suite: str | Suite | None = None,
    *,
    cases: Cases | None = None,
    domains: Names = (),
    dimensions: Names = (),
    groups: Names = (),
    relations: Names = (),
    tolerance: float = TOLERANCE,
    min_n: int | None = None,
    bootstrap: int = 1000,
    cache: str | Path | None = ".jevbench-cache",
    seed: int = 0,
    draws: int = 1,
    rewrites: str | Path | None = None,
    audited_only: bool = False,
    progress: bool | None = None,
) -> Card:
    """Run a suite, or own cases, on a model and return its card; scores lie in [0, 1].

    `model` is a model, a function `fn(state, questions) -> answers`, or a list of replicas. `cache=None` keeps
    answers for this call only. `progress` shows a bar (default: in a terminal or a notebook). Requests that fail are
    recorded in the card's errors and leave their relations unscored.

    Raises SettingError for settings and selections that cannot be used, SuiteError and CaseError for files, and
    AskError when the opening request shows that the model cannot be used.
    """
    source = _source(suite, cases, seed=seed, draws=draws, rewrites=rewrites, audited_only=audited_only)
    run = _prepared(source, domains, dimensions, groups, relations, tolerance, min_n, bootstrap)
    client = _client(model, cache)
    run.client = client
    try:
        client.open(run.plan.tests[0].case)
        for test in _with_bar(run.plan.tests, progress):
            _judge(run, client, test)
    finally:
        client.close()
    failed = len(run.errors)
    return run.card([f"{failed:,} of {len(run.plan.tests):,} tests could not be judged (errors)"] if failed else [])


def _judge(run: Run, client: Client, test: Test) -> None:
    identity = run.test_id(test)
    try:
        judged = run.judge(test, gather(client, test))
    except (AskError, PlanError) as error:
        run.record_error(run.error_entry(identity, test, error))
        return
    if judged is not None:
        run.record(identity, judged.verdict)


def _with_bar(tests: Sequence[Test], progress: bool | None) -> Iterable[Test]:  # noqa: FBT001 - tqdm's own three states
    if progress is False:
        return tests
    from tqdm.auto import tqdm

    bar: Iterable[Test] = tqdm(tests, unit="test", desc="jevbench", disable=None if progress is None else False)
    return bar


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would ask: `requests` counts distinct ones, each case's source request included."""

    tests: int
    cases: int
    requests: int


def estimate(
    suite: str | Suite | None = None,
    *,
    cases: Cases | None = None,
    domains: Names = (),
    dimensions: Names = (),
    groups: Names = (),
    relations: Names = (),
    seed: int = 0,
    draws: int = 1,
    rewrites: str | Path | None = None,
    audited_only: bool = False,
) -> Estimate:
    """Count what a run would send when nothing is cached, without a model. Raises as `evaluate` does."""
    source = _source(suite, cases, seed=seed, draws=draws, rewrites=rewrites, audited_only=audited_only)
    run = _prepared(source, domains, dimensions, groups, relations, TOLERANCE, None, 0)
    return Estimate(
        tests=len(run.plan.tests),
        cases=len({test.case.id for test in run.plan.tests}),
        requests=len(set(_requests(run.plan.tests))),
    )


def _requests(tests: Iterable[Test]) -> Iterator[tuple[str, str]]:
    from .wire import request_text

    for test in tests:
        yield test.case.id, request_text(None, test.case.questions)
        for trial in test.trials():
            for batch in trial.requests.values():
                yield test.case.id, request_text(None, batch)


SAMPLE = Case(
    id="check",
    state="Gate 4, 06:40: the ferry to Skarvoy is delayed by 25 minutes because of fog. 112 passengers are waiting; "
    "nobody has asked for a refund so far.",
    questions={
        "delayed": {"type": "noul", "instructions": "Is the ferry delayed?"},
        "cause": {
            "type": "choice",
            "instructions": "What is the cause of the delay?",
            "criteria": {
                "weather": "Fog, wind or ice",
                "engine": "A technical fault",
                "crew": "Too few people on duty",
            },
        },
        "impact": {
            "type": "score",
            "instructions": "How hard does the delay hit the passengers?",
            "criteria": ["Not at all", "A short wait", "A long wait", "They cannot travel today"],
        },
    },
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What one request showed about a model: its answers as distributions, and what was odd about them."""

    model: str
    answered_as: str | None
    seconds: float
    answers: Mapping[str, Distribution]
    warnings: tuple[str, ...]


def check(model: Answerable, case: Case = SAMPLE) -> Checked:
    """Ask a model one small request with a question of each type, and read every answer. Nothing is cached.

    Raises AskError (AnswerFormatError, ModelError, Refused) with what to fix, SettingError for what is no model.
    """
    client = _client(model, None)
    started = time.perf_counter()
    try:
        answers = client.ask(case.state, case.questions)
    finally:
        client.close()
    names = sorted(client.statistics.answered_as)
    return Checked(
        model=client.model.name,
        answered_as=names[0] if names else None,
        seconds=time.perf_counter() - started,
        answers=answers.distributions,
        warnings=tuple(quirk_notes(client.statistics)),
    )


def _source(
    suite: str | Suite | None,
    cases: Cases | None,
    *,
    seed: int,
    draws: int,
    rewrites: str | Path | None,
    audited_only: bool,
) -> Source:
    if (suite is None) == (cases is None):
        raise SettingError("give a suite or cases, one of the two", expected='suite="upstream:jevbench-mini", say')
    if suite is not None:
        if seed != 0 or draws != 1 or rewrites is not None or audited_only:
            raise SettingError("a suite is frozen", hint="seed, draws, rewrites and audited_only are for own cases.")
        return load_suite(suite) if isinstance(suite, str) else suite
    bank = None if rewrites is None else Path(rewrites)
    if isinstance(cases, str | Path):
        return read_own(Path(cases), seed=seed, draws=draws, rewrites=bank, audited_only=audited_only)
    given = list(cases or ())
    if not given:
        raise SettingError("there are no cases", expected="a path, or a list of one Case or more")
    known = Bank(read_rewrites(bank) if bank else (), audited_only=audited_only)
    return OwnCases(
        "cases",
        "(given in Python)",
        _fingerprint(given),
        seed,
        draws,
        own_plan(given, known, seed=seed, draws=draws),
        DEFAULT_MIN_N,
    )


def _fingerprint(cases: Sequence[Case]) -> str:
    import hashlib

    from .wire import request_text

    texts = (f"{case.id}\x1f{request_text(case.state, case.questions)}" for case in cases)
    return hashlib.sha256("\x1e".join(texts).encode(errors="surrogatepass")).hexdigest()


def _prepared(
    source: Source,
    domains: Names,
    dimensions: Names,
    groups: Names,
    relations: Names,
    tolerance: float,
    min_n: int | None,
    bootstrap: int,
) -> Run:
    from pydantic import ValidationError

    from .wire import problems

    wanted: dict[str, Any] = {
        "tolerance": tolerance,
        "min_n": source.min_n if min_n is None else min_n,
        "bootstrap": bootstrap,
    }
    try:
        settings = JudgingSettings(**wanted)
    except ValidationError as broken:
        field, message, found = problems(broken, wanted)[0]
        raise SettingError(message, field, found) from None
    return prepare(
        source,
        settings,
        domains=_names(domains),
        dimensions=_names(dimensions),
        groups=_names(groups),
        relations=_names(relations),
    )


def _names(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _client(model: Answerable, cache: str | Path | None) -> Client:
    replicas = as_replicas(model, "model")
    store: Store = MemoryStore() if cache is None or not replicas[0].lasting else open_store(Path(cache), replicas[0])
    return Client(replicas, store)
