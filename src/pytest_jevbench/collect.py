"""The plan as pytest sees it: a suite, its relations, and one item a test, each with an explicit node id.

pytest collects files; the plan's own file may lie in site-packages or inside the user's tree, where its parents would
be collected (and packages imported) on the way. So the suite hangs on an empty anchor file outside the tree, and
arguments that begin with the suite's name are pointed at it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .errors import JevbenchError
from .judge import Judged, plain
from .plan import Test, escaped
from .report.failure import explain, headline

if TYPE_CHECKING:
    from .card import ErrorEntry
    from .session import JevSession


def make_anchor(config: pytest.Config, suite: str) -> Path:
    """Make the file that stands for the suite on the command line; it is removed with the session."""
    folder = Path(tempfile.mkdtemp(prefix="jevbench-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    anchor = folder / escaped(suite)
    anchor.touch()
    return anchor


def point_arguments(config: pytest.Config, suite: str, anchor: Path) -> None:
    """Add the suite to what is collected, and make pasted node ids of it work.

    Without a path on the command line only the suite runs; with paths, both; with ids of the suite, just these.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(anchor)]
        return
    name = escaped(suite)
    pasted = [_pasted(argument, name, config.invocation_params.dir) for argument in config.args]
    config.args[:] = [
        f"{anchor}{rest}" if rest is not None else argument
        for argument, rest in zip(config.args, pasted, strict=True)
    ]
    if all(rest is None for rest in pasted):
        config.args.append(str(anchor))


def _pasted(argument: str, name: str, here: Path) -> str | None:
    """Return what follows the suite's name when the argument is an id of it (as printed, from any folder)."""
    path, separator, rest = argument.partition("::")
    # Nothing in a folder has an id, so `name::...` is the suite's even where a folder has its name.
    if Path(path).name != name or ((here / path).exists() and not (separator and (here / path).is_dir())):
        return None
    return separator + rest


class SuiteCollector(pytest.Collector):
    """A suite. No `pytest.File`: `--lf` skips files by path and would lose the suite's failures."""

    def __init__(self, *, jev: JevSession, **rest: Any) -> None:
        super().__init__(**rest)
        self.jev = jev
        self.add_marker("jevbench")

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the relations, in plan order."""
        # The anchor lies elsewhere, so pytest may not have looked at the root conftest for this folder yet.
        self.config.pluginmanager._loadconftestmodules(  # noqa: SLF001 - there is no public way to ask for it
            self.config.rootpath,
            importmode=self.config.getoption("importmode"),
            rootpath=self.config.rootpath,
            consider_namespace_packages=self.config.getini("consider_namespace_packages"),
        )
        by_relation: dict[str, list[Test]] = {}
        for test in self.jev.run.plan.tests:
            by_relation.setdefault(test.relation.name, []).append(test)
        for name, tests in by_relation.items():
            yield RelationCollector.from_parent(
                self, name=name, nodeid=f"{self.nodeid}::{name}", path=self.config.rootpath, tests=tests, jev=self.jev
            )


class RelationCollector(pytest.Collector):
    """A relation of a suite. Its marks (relation and dimension) hold for its tests."""

    def __init__(self, *, jev: JevSession, tests: list[Test], **rest: Any) -> None:
        super().__init__(**rest)
        self.jev = jev
        self.tests = tests
        relation = tests[0].relation
        self.add_marker(relation.name)
        self.add_marker(relation.dimension)
        self.extra_keyword_matches.add(relation.group)

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests, in plan order."""
        for test in self.tests:
            name = f"{escaped(test.case.id)}[{escaped(test.key)}]"
            yield JevItem.from_parent(
                self,
                name=name,
                nodeid=f"{self.nodeid}::{name}",
                path=self.config.rootpath,
                jev=self.jev,
                test=test,
            )


class Violation(AssertionError):  # noqa: N818 - the field's word for it
    """A violated law: the only thing that is ever recorded instead of failing. Its text is what is shown."""


class JevItem(pytest.Item):
    """One test of the plan: it asks in `setup` and judges in `runtest`."""

    def __init__(self, *, jev: JevSession, test: Test, **rest: Any) -> None:
        super().__init__(**rest)
        self.jev = jev
        self.jev_test = test
        self.error: ErrorEntry | None = None
        self.judged: Judged | None = None
        if test.case.domain:
            self.extra_keyword_matches.add(test.case.domain)

    def setup(self) -> None:
        """Ask for what the test reads; a request without a usable answer is an error, not a violation."""
        if self.config.option.setuponly or self.config.option.setupplan:
            return
        try:
            self.judged = self.jev.run.judge(self.jev_test, self.jev.ask_for(self.jev_test))
        except JevbenchError as error:
            self.error = self.jev.run.error_entry(self.nodeid, self.jev_test, error)
            raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None

    def teardown(self) -> None:
        """Forget the answers: thousands of tests would keep them all."""
        self.judged = None

    def carried(self, when: str) -> dict[str, Any]:
        """Return what the report of a phase carries: the error of the setup, or the verdict of the call."""
        if when == "setup" and self.error is not None:
            return {"errors": [self.error.model_dump()]}
        if when == "call" and self.judged is not None:
            verdict = self.judged.verdict
            return {"verdicts": {self.nodeid: plain(verdict)}, "violated": verdict.violated}
        return {}

    def runtest(self) -> None:
        """Judge. Raises Violation where violations fail."""
        if self.judged is None:
            pytest.skip("the answers have nothing to judge: no confidence was given")
        if self.judged.verdict.violated and not self.jev.settings.record:
            raise Violation(self.text(self.judged))

    def text(self, judged: Judged) -> str:
        """Return what a report shows of a violation: one line, or everything where everything is printed."""
        if self.jev.explains_all:
            return explain(self.jev_test, judged, self.jev.rerun(self.nodeid))
        return headline(self.jev_test, judged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a violation as its text, without a traceback into the plugin."""
        if isinstance(excinfo.value, Violation):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where the test is: it has no line of its own."""
        return self.config.rootpath / self.nodeid.partition("::")[0], None, self.nodeid
