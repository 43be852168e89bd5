"""The fixtures for users' own tests: one a relation over the tests of the plan, the model, the card so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from .relations import CATALOGUE
from .state import connect, current_session

if TYPE_CHECKING:
    from .card import Card
    from .case import Case
    from .client import Client
    from .judge import Judged
    from .plan import Test
    from .relations import Trial
    from .wire import Answers, Batch, Distribution

ALL = "jev_relation"
RELATIONS = {f"jev_{name}": name for name in CATALOGUE}
PARAMETRIZED = frozenset({ALL, *RELATIONS})
NO_PLAN = (
    "no tests to give: name a plan with --jev-suite=NAME or --jev-cases=FILE (or jev_suite, jev_cases in the ini)"
)


class RelationTest:
    """One test of the plan, asked and judged: what a `jev_<relation>` fixture gives.

    `deviation`, `violated` and `flip` are judged at the run's tolerance; it has entered the card once, whatever the
    test that uses it asserts.
    """

    def __init__(
        self, test: Test, judged: Judged, evidence: Sequence[Any], identity: str, rerun: str, tolerance: float | None
    ) -> None:
        self._test, self._judged, self._evidence = test, judged, evidence
        self._rerun, self._tolerance = rerun, tolerance
        self.id = identity

    def __repr__(self) -> str:
        return f"<RelationTest {self.id} deviation={self.deviation:.4g}>"

    @property
    def relation(self) -> str:
        """The relation's name."""
        return self._test.relation.name

    @property
    def case(self) -> Case:
        """The case."""
        return self._test.case

    @property
    def target(self) -> str:
        """The key of the question the law is about."""
        return self._test.key

    @property
    def trials(self) -> list[Trial]:
        """The trials, with the requests that were sent."""
        return [each.trial for each in self._evidence]

    @property
    def answers(self) -> list[Mapping[str, Answers]]:
        """The answers to each trial's requests, by label."""
        return [each.replies for each in self._evidence]

    @property
    def deviation(self) -> float:
        """How far the law was missed."""
        return self._judged.verdict.deviation

    @property
    def violated(self) -> bool:
        """Whether the deviation exceeds the run's tolerance."""
        return self._judged.verdict.violated

    @property
    def flip(self) -> bool | None:
        """Whether the decision changed, None where the relation defines none."""
        return self._judged.verdict.flip

    def explain(self) -> str:
        """Return the explanation of this test, as a failure shows it."""
        from .report.failure import explain

        return explain(self._test, self._judged, self._rerun)

    def check(self, tolerance: float | None = None) -> None:
        """Raise the violation when the deviation exceeds a tolerance.

        The tolerance is the one given here, else that of the marker `jevbench_only`, else the run's.
        """
        __tracebackhide__ = True
        from .collect import Violation
        from .judge import Judged, rejudged

        tol = self._tolerance if tolerance is None else tolerance
        judged = self._judged
        if tol is not None:
            relation = self._test.relation
            verdict = rejudged(judged.verdict, relation, tol, own=False)
            judged = Judged(verdict, judged.evidence, judged.outcome)
        if judged.verdict.violated:
            from .report.failure import explain

            raise Violation(explain(self._test, judged, self._rerun))


@dataclass(frozen=True, slots=True)
class AskedModel:
    """The model of the session, asked through the cached client."""

    client: Client

    @property
    def name(self) -> str:
        """The model's name."""
        return self.client.model.name

    def ask(self, state: Any, questions: Batch) -> dict[str, Distribution]:
        """Return a distribution over its outcomes for each question.

        Raises SettingError for a question that may not be sent, AskError when there is no usable answer.
        """
        from .errors import SettingError
        from .wire import check_question

        for key, question in questions.items():
            check_question(question, f"question {key!r}", SettingError)
        return self.client.ask(state, questions).distributions


def generate(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test over the plan's tests for each relation fixture it uses; one skipped item without a plan."""
    for name in metafunc.fixturenames:
        if name in PARAMETRIZED:
            metafunc.parametrize(name, list(_parameters(metafunc, name)), indirect=True)


def _parameters(metafunc: pytest.Metafunc, name: str) -> Iterator[Any]:
    session = current_session(metafunc.config)
    if session is None:
        yield pytest.param(None, marks=pytest.mark.skip(reason=NO_PLAN), id="no-plan")
        return
    only = _only(metafunc.definition)
    wanted = RELATIONS.get(name)
    tests = [
        test
        for test in session.run.plan.tests
        if (wanted is None or test.relation.name == wanted)
        and (not only["relations"] or test.relation.name in only["relations"])
        and (not only["domains"] or test.case.domain in only["domains"])
    ]
    for test in tests:
        name = "" if wanted else f"{test.relation.name}-"
        yield pytest.param(test, id=f"{name}{test.case.id}-{test.key}")
    if not tests:
        reason = f"the plan of {session.run.source.name} has no test of {wanted or 'the relations asked for'}"
        yield pytest.param(None, marks=pytest.mark.skip(reason=f"{reason} (after selection)"), id="no-test")


def _only(node: pytest.Item) -> dict[str, Any]:
    """Read the marker `jevbench_only`. Raises UsageError for what it does not know."""
    only: dict[str, Any] = {"relations": None, "domains": None, "tolerance": None}
    marker = node.get_closest_marker("jevbench_only")
    if marker is None:
        return only
    unknown = set(marker.kwargs) - set(only)
    if marker.args or unknown:
        raise pytest.UsageError(f"{node.nodeid}: jevbench_only takes relations=, domains= and tolerance= only")
    for field in ("relations", "domains"):
        value = marker.kwargs.get(field)
        only[field] = [value] if isinstance(value, str) else value
    for relation in only["relations"] or ():
        if relation not in CATALOGUE:
            raise pytest.UsageError(f"{node.nodeid}: jevbench_only: there is no relation {relation!r}")
    only["tolerance"] = marker.kwargs.get("tolerance")
    return only


def _relation_test(request: pytest.FixtureRequest) -> RelationTest:
    session = current_session(request.config)
    test: Test | None = request.param
    if session is None or test is None:
        pytest.skip(NO_PLAN)
    judged, evidence = session.judge_for(request.node, test)
    identity = session.run.test_id(test)
    return RelationTest(test, judged, evidence, identity, session.rerun(identity), _only(request.node)["tolerance"])


def _fixture(name: str, doc: str) -> Any:
    def give(request: pytest.FixtureRequest) -> RelationTest:
        return _relation_test(request)

    give.__doc__ = doc
    return pytest.fixture(name=name)(give)


@pytest.fixture(scope="session")
def jev_model(pytestconfig: pytest.Config) -> AskedModel:
    """The model of this session: `.ask(state, questions)` through the cached client, and `.name`."""
    try:
        return AskedModel(connect(pytestconfig))
    except pytest.UsageError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def jev_card(pytestconfig: pytest.Config) -> Card:
    """The card of what has been judged so far."""
    session = current_session(pytestconfig)
    if session is None:
        pytest.skip(NO_PLAN)
    return session.run.card(["the run has not ended"])


def holder() -> ModuleType:
    """Return an object that holds every fixture, to be registered as a plugin."""
    module = ModuleType("pytest_jevbench.fixtures.generated")
    module.__dict__.update(jev_model=jev_model, jev_card=jev_card)
    module.__dict__[ALL] = _fixture(ALL, "Each test of the plan in turn, whatever its relation, asked and judged.")
    for name, relation in RELATIONS.items():
        module.__dict__[name] = _fixture(name, f"Each {relation} test of the plan in turn, asked and judged.")
    return module
