"""What belongs to one pytest session with a suite: the run, the client, and the hooks that carry results.

It hangs in `config.stash` and is registered as a plugin of its own, so that a session without a suite pays nothing.
"""

from __future__ import annotations

import gc
import heapq
import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from . import options
from .card import Card, ErrorEntry, JudgingSettings
from .client import Client
from .collect import JevItem, SuiteCollector, make_anchor, point_arguments
from .errors import AskError, CardError, JevbenchError, ModelError, SettingError, near, show
from .evidence import gather
from .judge import Judged, from_plain, plain
from .model.base import without_secrets
from .own import OwnCases, read_own
from .plan import Test, escaped
from .prefetch import Prefetcher
from .progress import Progress
from .provider import SOURCES, cache_folder
from .relations import Evidence, select
from .report import terminal
from .report.failure import explain
from .run import Run, Source, cache_note, prepare
from .state import connect
from .suite import load_suite

DEAD_AFTER = 25
"""Tests in a row without an answer after which the model counts as dead."""
EXPLAINED = 5
"""How many violations the summary explains in full, the worst ones."""


CARRIED = pytest.StashKey[dict[str, Any]]()
"""What a user's test carries: the verdicts and errors of the tests it used."""


def load_source(config: pytest.Config) -> Source:
    """Load the suite or the own cases that the options name. Raises UsageError."""
    named = [(name, *options.given(config, name)) for name in options.PLANS]
    typed = [each for each in named if options.typed(config, each[0]) is not None] or [
        each for each in named if each[1]
    ]
    if len(typed) > 1:
        raise pytest.UsageError(f"more than one plan: {' and '.join(origin for _, _, origin in typed)}; keep one")
    name, value, origin = typed[0]
    if not str(value).strip():
        raise pytest.UsageError(f"{origin} is empty: give {'a suite or a folder' if name == 'suite' else 'a file'}")
    if name == "suite":
        for option in options.OWN:
            if options.typed(config, option) is not None:
                raise pytest.UsageError(
                    f"--jev-{option} has no use with a suite: it is frozen. It is for --jev-cases"
                )
    try:
        return load_suite(str(value)) if name == "suite" else _own_cases(config, str(value))
    except JevbenchError as error:
        raise pytest.UsageError(f"{origin}: {error}") from error


def _own_cases(config: pytest.Config, file: str) -> OwnCases:
    here = config.invocation_params.dir if options.typed(config, "cases") is not None else config.rootpath
    rewrites = options.text(config, "rewrites")
    return read_own(
        here / file,
        shown=file,
        seed=options.number(config, "seed", int, lambda n: n >= 0, "an integer from 0"),
        draws=options.number(config, "draws", int, lambda n: 1 <= n <= 1000, "an integer from 1 to 1000"),
        rewrites=None if rewrites is None else here / rewrites,
        audited_only=options.flag(config, "audited-only"),
    )


def _tests_of(items: Iterable[pytest.Item]) -> Iterator[Test]:
    """Yield the plan's tests that items will ask for, their own or a fixture's."""
    for item in items:
        if isinstance(item, JevItem):
            yield item.jev_test
        elif (callspec := getattr(item, "callspec", None)) is not None:
            yield from (value for value in callspec.params.values() if isinstance(value, Test))


class JevSession:
    """The state of a session: made in `pytest_configure`, the model found after collection."""

    def __init__(self, config: pytest.Config, *, items: bool) -> None:
        self.config = config
        self.settings = options.settings(config)
        check_selection(config)
        source = load_source(config)
        judging = JudgingSettings(
            tolerance=self.settings.tolerance,
            min_n=self.settings.min_n or source.min_n,
            bootstrap=self.settings.bootstrap,
        )
        try:
            self.run: Run = prepare(
                source,
                judging,
                domains=options.names(config, "domains"),
                dimensions=options.names(config, "dimensions"),
                groups=options.names(config, "groups"),
                relations=options.names(config, "relations"),
            )
        except JevbenchError as error:
            origin = options.given(config, "domains")[1]
            raise pytest.UsageError(f"{origin}: {error}" if origin else str(error)) from error
        self.anchor: Path | None = None
        if items:
            self.anchor = make_anchor(config, source.name)
            point_arguments(config, source.name, self.anchor)
            self._check_arguments()
        self.tests = {self.run.test_id(test): test for test in self.run.plan.tests}
        self.explains_all = config.option.verbose >= 2
        self.card: Card | None = None
        self.card_paths: list[Path] = []
        self.worst: list[tuple[float, float, str]] = []
        self.explanations: dict[str, str] = {}
        self.opened = False
        self.notes: list[str] = []
        self.upcoming: list[Test] = []
        self.prefetcher: Prefetcher | None = None
        self.progress: Progress | None = None
        self.in_a_row = 0
        self.died = ""
        self.unusable = ""

    def _check_arguments(self) -> None:
        """Raise UsageError for an id on the command line that the selected plan does not have."""
        name = escaped(self.run.source.name)
        wanted = [
            arg.removeprefix(str(self.anchor)) for arg in self.config.args if arg.startswith(f"{self.anchor}::")
        ]
        if not wanted:
            return
        ids = [self.run.test_id(test).removeprefix(name) for test in self.run.plan.tests]
        known = {*ids, *(each.partition("[")[0] for each in ids), *(f"::{each.split('::')[1]}" for each in ids)}
        for each in wanted:
            if each not in known:
                raise pytest.UsageError(
                    f"there is no test {name}{each}. {near(name + each, [name + i for i in ids])}"
                )

    @property
    def client(self) -> Client:
        """The client; the model is found when it is first needed."""
        if self.run.client is None:
            self.run.client = connect(self.config)
        return self.run.client

    def open(self, tests: Sequence[Test]) -> None:
        """Send the opening request, the first test's own batch. Raises UsageError when the model cannot be used."""
        try:
            self.client.open(tests[0].case)
        except AskError as error:
            kind = type(error).__name__
            raise pytest.UsageError(f"the model cannot be used ({kind})\n{error}") from error
        except SettingError as error:
            raise pytest.UsageError(str(error)) from error
        self.opened = True

    def ask_for(self, test: Test) -> list[Evidence]:
        """Ask for what a test reads, while the requests of the next ones go out. Raises as `gather` does."""
        if self.unusable:
            raise ModelError(self.unusable)
        if self.client.pool.threaded:
            if self.prefetcher is None or test not in self.prefetcher:
                self.prefetcher = Prefetcher(self.client, self.ahead_of(test))
            self.prefetcher.advance(test)
        return gather(self.client, test)

    def ahead_of(self, test: Test) -> Sequence[Test]:
        """Return the tests, in order, among which those after this one will be asked for next."""
        return self.upcoming if any(each is test for each in self.upcoming) else [test]

    def counts(self) -> dict[str, Any] | None:
        """Return what a report carries of the counts: alone, nothing."""
        return None

    def add_counts(self, counts: Mapping[str, Any] | None) -> None:
        """Add what a worker counted."""
        if counts is not None:
            self.run.statistics.add(counts)
            name, model_id, revision = counts["model"]
            self.run.answered_by = (name, model_id, revision)
            self.notes += counts["notes"]

    def counts_on(self, report: pytest.TestReport) -> dict[str, Any] | None:
        """Take off a report what it carries of the counts."""
        counts: dict[str, Any] | None = report.__dict__.pop("jevbench_counts", None)
        return counts

    def stop(self, reason: str) -> None:
        """End the run before its next test."""
        session: Any = self.config.pluginmanager.get_plugin("session")
        session.shouldfail = reason

    def judge_for(self, node: pytest.Item, test: Test) -> tuple[Judged, list[Evidence]]:
        """Ask for and judge a test that a user's test wants; the result rides on that test's report."""
        carried = node.stash.setdefault(CARRIED, {"verdicts": {}, "errors": []})
        identity = self.run.test_id(test)
        try:
            evidence = self.ask_for(test)
            judged = self.run.judge(test, evidence)
        except JevbenchError as error:
            carried["errors"].append(self.run.error_entry(identity, test, error).model_dump())
            pytest.fail(f"{type(error).__name__}: {error}", pytrace=False)
        if judged is None:
            pytest.skip("the answers have nothing to judge: no confidence was given")
        carried["verdicts"][identity] = plain(judged.verdict)
        return judged, evidence

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the suite at its anchor."""
        if file_path != self.anchor:
            return None
        name = escaped(self.run.source.name)
        node: pytest.Collector = SuiteCollector.from_parent(parent, name=name, nodeid=name, path=file_path, jev=self)
        return node

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Find the model and send the opening request before the first test."""
        # Thousands of items, cases and rows live until the end: the cyclic collector need not look at them again.
        gc.freeze()
        tests = self.upcoming = list(_tests_of(session.items))
        self.explains_all = self.explains_all or len(tests) == 1
        option = self.config.option
        if option.collectonly or option.setuponly or option.setupplan or session.testsfailed:
            return (yield)
        if tests:
            self.open(tests)
        self.progress = Progress(self.config, len(tests or self.run.plan.tests), lambda: self.run.statistics.sent)
        if self.run.client is not None:
            self.run.client.tick = self.progress.tick
        try:
            return (yield)
        except (session.Interrupted, session.Failed, KeyboardInterrupt):
            if self.unusable:
                raise pytest.UsageError(self.unusable) from None
            if self.died:
                raise session.Failed(self.died) from None
            raise
        finally:
            if self.run.client is not None:
                self.run.client.pool.close()
            self.progress.end()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the result ride on the report, as plain data: the same way with and without workers."""
        report = yield
        if isinstance(item, JevItem):
            carried = item.carried(call.when)
            if "verdicts" in carried and item.judged is not None:
                carried["explanations"] = self._explanation(item, item.judged)
        else:
            carried = item.stash.get(CARRIED, {}) if call.when == "setup" else {}
        if carried:
            report.__dict__["jevbench"] = carried
        if call.when == "teardown" and (counts := self.counts()) is not None:
            report.__dict__["jevbench_counts"] = counts
        return report

    def _explanation(self, item: JevItem, judged: Judged) -> dict[str, str]:
        """Explain a violation in full when it may be among the worst; most are told by one line a relation."""
        verdict = judged.verdict
        if not verdict.violated:
            return {}
        place = (1 - verdict.graded, verdict.deviation, item.nodeid)
        if len(self.worst) < EXPLAINED:
            heapq.heappush(self.worst, place)
        elif heapq.heappushpop(self.worst, place) == place and not self.explains_all:
            return {}
        return {item.nodeid: explain(item.jev_test, judged, self.rerun(item.nodeid))}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what a report carries."""
        self.add_counts(self.counts_on(report))
        carried: dict[str, Any] = getattr(report, "jevbench", {})
        for identity, verdict in carried.get("verdicts", {}).items():
            self.run.record(identity, from_plain(verdict))
            self.in_a_row = 0
        for error in carried.get("errors", ()):
            self.run.record_error(ErrorEntry.model_validate(error))
            self.in_a_row = self.in_a_row + 1 if error["kind"] == "ModelError" else 0
        self.explanations.update(carried.get("explanations", {}))
        if report.failed and not carried and report.nodeid in self.tests:
            self._record_lost(report)
        if carried and self.progress is not None:
            self.progress.count(violated=bool(carried.get("violated")), error=bool(carried.get("errors")))
        if self.in_a_row >= DEAD_AFTER and not self.died:
            self.died = f"the model died: {self.in_a_row} tests in a row got no answer"
            self.stop(self.died)

    def _record_lost(self, report: pytest.TestReport) -> None:
        """Keep why a test ended without a verdict: a timeout, a crashed worker, a failing hook of somebody else."""
        test = self.tests[report.nodeid]
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash is not None else report.longreprtext).strip().splitlines()
        why = lines[0 if crash is not None else -1] if lines else "no reason given"
        # A crashed worker's report is of no phase: xdist writes "???".
        place = "" if str(report.when) == "???" else f"phase {report.when}"
        error = JevbenchError(f"the test ended without a verdict: {show(why, 200)}", place)
        self.run.record_error(self.run.error_entry(report.nodeid, test, error))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Give violations a category of their own: pytest's failure section is quadratic in their number."""
        carried = getattr(report, "jevbench", {})
        if report.when == "call" and "violated" in carried and str(report.outcome) != "rerun":
            live = self.progress is not None and self.progress.live
            if carried["violated"]:
                word = ("VIOLATED", {"red": True} if report.failed else {"yellow": True})
                return "violated", "" if live else "v", "" if live else word
            if live:
                return "passed", "", ""
        return None

    def pytest_unconfigure(self) -> None:
        """Spare the interpreter a search for garbage among thousands of reports on its way out."""
        gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Score, let conftests look at the card, and save it."""
        if self.unusable or not (self.opened or self.run.verdicts or self.run.errors):
            return
        self.close(session)
        if self.run.client is not None:
            self.notes += self.run.client.pool.notes()
        if self.run.statistics.set_aside:
            self.notes.append(
                f"the model answers differently than before under the same name and revision: "
                f"{self.run.statistics.set_aside:,} kept answers were set aside"
            )
        stopped = bool(session.shouldstop or session.shouldfail or exitstatus == pytest.ExitCode.INTERRUPTED)
        self.card = self.run.card(self._partial(stopped=stopped))
        try:
            self.config.hook.pytest_jev_card(config=self.config, card=self.card)
        except Exception as broken:  # noqa: BLE001 - a user's hook must not cost the card
            self.notes.append(f"pytest_jev_card raised {type(broken).__name__}: {show(str(broken))}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        last = "last-partial.json" if self.card.partial else "last-card.json"
        asked = self.settings.card
        paths = [self.config.invocation_params.dir / asked] if asked else []
        for path in [*paths, cache_folder(self.config) / last]:
            try:
                self.card.save(path)
                self.card_paths.append(path)
            except CardError as error:
                self.notes.append(str(error))

    def close(self, session: pytest.Session) -> None:
        """Write what is pending of the cache; when that fails, so does the session."""
        try:
            if self.run.client is not None:
                self.run.client.close()
        except SettingError as error:
            self.notes.append(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _partial(self, *, stopped: bool) -> list[str]:
        """Say why and by how much the run was less than its selection; empty for a full run."""
        planned, judged, failed = len(self.run.plan.tests), len(self.run.verdicts), len(self.run.errors)
        skipped = planned - judged - failed
        reasons = []
        if skipped:
            option = self.config.option
            why = [f"-k {option.keyword!r}"] if option.keyword else []
            why += [f"-m {option.markexpr!r}"] if option.markexpr else []
            why += ["--deselect"] if option.deselect else []
            why += ["--lf"] if getattr(option, "lf", False) else []
            why += ["node ids"] if any(str(arg).startswith(f"{self.anchor}::") for arg in self.config.args) else []
            why += [self.died or "the run stopped early"] if stopped or self.died else []
            reasons.append(
                f"{skipped:,} of {planned:,} tests were not run ({', '.join(why) or 'deselected or skipped'})"
            )
        if failed:
            reasons.append(f"{failed:,} of {planned:,} tests could not be judged (errors)")
        return reasons

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was found out: explained violations, then the score and where it comes from."""
        card = self.card
        if card is None:
            return
        out = terminalreporter
        shown = self._shown(card)
        if shown:
            violated = sum(test.violated for test in card.tests)
            out.section(
                f"violations: {'the worst ' if len(shown) < violated else ''}{len(shown)} of {violated:,}", "="
            )
            for identity in shown:
                out.write_line(f"{self.explanations[identity]}\n")
        out.section(f"jevbench: {card.ran.label}, model {card.model.name}", "=")
        for line in terminal.scores(card):
            out.write_line(line, bold=line.startswith("coherence"))
        out.write_line("")
        for line in [*terminal.unscored(card), *terminal.violated_relations(card, len(shown))]:
            out.write_line(line)
        warnings = [*card.warnings, *self.notes]
        for line in [*terminal.errors(card), *terminal.partial(card), *terminal.warnings(warnings)]:
            out.write_line(line, yellow=True)
        for line in self._closing(card):
            out.write_line(line)

    def _closing(self, card: Card) -> Iterator[str]:
        yield f"requests: {cache_note(self.run.statistics)}"
        if self.anchor and any(test.violated for test in card.tests) and not self.settings.record:
            yield "violations fail the run; --jev-violations=record lets it pass and only records them"
        for path in self.card_paths:
            yield f"card: {_relative(path, self.config.invocation_params.dir)}"

    def _shown(self, card: Card) -> list[str]:
        """Return the ids of the violations to explain: all, or the worst, in order."""
        found = [test for test in card.tests if test.violated and test.id in self.explanations]
        if self.explains_all:
            return [test.id for test in found]
        found.sort(key=lambda test: (test.graded, -(test.deviation if test.deviation is not None else 2.0)))
        return [test.id for test in found[:EXPLAINED]]

    def rerun(self, identity: str) -> str:
        """Return the command that runs one test again, with the options that this run was given."""
        return shlex.join(["pytest", *_own_arguments(self.config), identity])


def check_selection(config: pytest.Config) -> None:
    """Raise UsageError, at the option, for a dimension, group or relation that is not known."""
    for name in ("dimensions", "groups", "relations"):
        try:
            select(**{name: options.names(config, name)})
        except SettingError as error:
            raise pytest.UsageError(str(error.at(options.given(config, name)[1]))) from error


def _own_arguments(config: pytest.Config) -> list[str]:
    """Return the options of this plugin as they were typed, without what only concerns the report."""
    found = []
    for name in (*options.PLANS, *options.OWN, *SOURCES, "model-id", "revision", "api-key-env", "tolerance", "cache"):
        value = config.getoption(f"jevbench_{name.replace('-', '_')}")
        if value is not None:
            shown = ",".join(map(without_secrets, value.split(","))) if name == "url" else value
            found.append(f"--jev-{name}={shown}")
    return found


def _relative(path: Path, here: Path) -> str:
    try:
        return str(path.relative_to(here))
    except ValueError:
        return str(path)
