"""The README against what happens: its links lead somewhere, its code runs, its commands do what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
CLI = (sys.executable, "-m", "pytest_jevbench")
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def block(language: str, part: str) -> str:
    """Return the one block of the README that holds a text."""
    (found,) = [str(text) for kind, text in BLOCKS if kind == language and part in text]
    return found


def command(part: str) -> list[str]:
    """Return the arguments of the one command of the README that holds a text."""
    return shlex.split(block("bash", part).strip())[1:]


@pytest.fixture
def here(pytester: pytest.Pytester) -> Path:
    """A folder with the model and the case of the README."""
    (pytester.path / "my_model.py").write_text(block("python", "def answer("))
    (pytester.path / "mine.jsonl").write_text(block("json", "ticket-1"))
    return pytester.path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_function_is_uniform_and_scores_what_the_readme_says(here: Path, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        "-p", "no:randomly", *command("--jev-callable=my_model:answer --jev-suite=up")
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines(["coherence  89.4 *"])
    assert "scores 89.4 on `upstream:jevbench-mini`" in README
    assert (here / ".jevbench-cache" / "last-card.json").exists()
    shown = pytester.run(*CLI, *command("pytest-jevbench card show"))
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["relation *", "option_clone *"])


def test_the_hook_names_the_model(here: Path, pytester: pytest.Pytester) -> None:
    (here / "conftest.py").write_text(block("python", "def pytest_jev_model"))
    result = pytester.runpytest_subprocess("-p", "no:randomly", "--jev-suite=examples")
    result.stdout.fnmatch_lines(["*model my-model*", "coherence  89.4 *"])


def test_own_cases_run_and_are_counted(here: Path, pytester: pytest.Pytester) -> None:
    assert here.exists()
    result = pytester.runpytest_subprocess("-p", "no:randomly", *command("--jev-cases=mine.jsonl"))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*cases mine.jsonl@*"])
    counted = pytester.run(*CLI, "estimate", "--cases", "mine.jsonl")
    counted.stdout.fnmatch_lines(["* tests on 1 cases: * distinct requests"])


def test_the_fixtures_run(here: Path, pytester: pytest.Pytester) -> None:
    (here / "test_mine.py").write_text(block("python", "def test_clones("))
    result = pytester.runpytest_subprocess("-p", "no:randomly", *command("--jev-items=no"))
    result.assert_outcomes(failed=1, passed=1)
    pytester.runpytest_subprocess("-p", "no:randomly", "--jev-callable=my_model:answer").assert_outcomes(
        skipped=1, passed=1
    )


def test_evaluate_runs(here: Path, pytester: pytest.Pytester) -> None:
    (here / "notebook.py").write_text(block("python", "card = evaluate("))
    result = pytester.runpython(here / "notebook.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["relation *", "option_clone *"])


def test_the_set_up_commands_are_those_of_this_repository() -> None:
    main_job, tests = (text for kind, text in BLOCKS if kind == "bash" and "venv" in text)
    assert '".[upstream,demo]"' in main_job
    assert "--jev-embedded=sparrow --jev-suite=upstream:jevbench-mini" in main_job
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert tests.rpartition("/python ")[2].strip() in run
