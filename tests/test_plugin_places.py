"""Where the plugin runs: any folder, any repository with settings of its own, and values from any legal source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, answers

Run = Callable[..., pytest.RunResult]
Card = Callable[..., dict[str, Any]]
Freeze = Callable[..., None]

SUITE = "--jev-suite=upstream:examples"
UNIFORM = {"passed": 41, "violated": 9}


def new_files(folder: Path) -> set[str]:
    """Return what lies in the folder, without what pytester itself puts there."""
    return {path.name for path in folder.iterdir()} - {"runpytest-0", "runpytest-current", "stdout", "stderr"}


# Folders


def test_an_empty_folder_is_enough(run: Run, pytester: pytest.Pytester) -> None:
    result = run(SUITE, "--jev-embedded=uniform")
    assert (result.ret, result.parseoutcomes()) == (1, UNIFORM)
    assert new_files(pytester.path) == {".jevbench-cache", ".pytest_cache"}
    assert "card: .jevbench-cache/last-card.json" in result.outlines
    # The folder keeps itself out of the user's repository.
    assert (pytester.path / ".jevbench-cache" / ".gitignore").read_text(encoding="utf-8").strip() == "*"


@pytest.fixture
def repository(pytester: pytest.Pytester) -> Path:
    """Make a repository with its own idea of what a test is."""
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        testpaths = ["checks"]
        python_files = ["check_*.py"]
        addopts = ["-ra", "--strict-markers", "--strict-config", "--import-mode=importlib"]
        markers = ["slow: takes long"]
        filterwarnings = ["error"]
        """
    )
    checks = pytester.mkdir("checks")
    (checks / "check_mine.py").write_text("def test_mine(everywhere: int) -> None: assert everywhere == 7\n")
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def everywhere():
            return 7

        def pytest_runtest_setup(item):
            with open(item.config.rootpath / "seen.txt", "a") as file:
                print(item.nodeid, file=file)
        """
    )
    return pytester.path


def seen_by_the_conftest(repository: Path) -> list[str]:
    """Return the ids of the tests that the root conftest's hook saw, and forget them."""
    seen = repository / "seen.txt"
    ids = seen.read_text(encoding="utf-8").splitlines() if seen.exists() else []
    seen.unlink(missing_ok=True)
    return ids


def test_in_a_repository_a_bare_run_is_the_suite_only(run: Run, repository: Path) -> None:
    assert run().parseoutcomes() == {"passed": 1}
    assert seen_by_the_conftest(repository) == ["checks/check_mine.py::test_mine"]
    assert run(SUITE, "--jev-embedded=uniform").parseoutcomes() == UNIFORM
    assert "checks/check_mine.py::test_mine" not in seen_by_the_conftest(repository)


@pytest.mark.parametrize("paths", [["checks"], ["."], ["checks/check_mine.py::test_mine"]])
def test_in_a_repository_paths_are_run_as_well(paths: list[str], run: Run, repository: Path) -> None:
    assert run(SUITE, "--jev-embedded=uniform", *paths).parseoutcomes() == {"passed": 42, "violated": 9}
    assert "checks/check_mine.py::test_mine" in seen_by_the_conftest(repository)


def test_hooks_of_the_root_conftest_see_the_suites_tests_from_wherever_it_is_run(
    run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (SUITE, "--jev-embedded=uniform", "-k", "option_clone")
    seen = []
    for arguments in ([*one, "--override-ini=testpaths="], [*one], [*one, "checks"]):
        run(*arguments)
        seen.append([identity for identity in seen_by_the_conftest(repository) if "::option_clone" in identity])
    monkeypatch.chdir(repository / "checks")
    run(*one)
    seen.append(seen_by_the_conftest(repository))
    assert seen == [["examples::option_clone::support-001[urgency]"]] * 4


def test_from_a_folder_below_answers_and_card_go_to_the_root(
    run: Run, repository: Path, card_of: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "checks")
    result = run(SUITE, "--jev-embedded=uniform", "--jev-card=mine.json")
    assert result.parseoutcomes() == UNIFORM
    assert card_of()["partial"] is None
    # What was typed means the folder it was typed in.
    assert new_files(repository / "checks") >= {"check_mine.py", "mine.json"}
    assert "card: mine.json" in result.outlines
    assert not (repository / "checks" / ".jevbench-cache").exists()


def test_a_suite_inside_the_users_tree_imports_none_of_its_packages(
    run: Run, freeze: Freeze, pytester: pytest.Pytester
) -> None:
    packages = pytester.path / "env39" / "lib" / "python3.9" / "site-packages"
    for folder in (packages / "broken", packages / "broken" / "data"):
        folder.mkdir(parents=True)
        for name in ("__init__.py", "conftest.py", "test_theirs.py"):
            (folder / name).write_text("raise RuntimeError('this package must not be imported')\n")
    freeze(packages / "broken" / "data" / "mail", {"mail-1": ["urgent", "paid"]})
    suite = ("--jev-suite=env39/lib/python3.9/site-packages/broken/data/mail", "--jev-embedded=uniform")
    assert run(*suite).parseoutcomes() == {"passed": 2}
    assert run(*suite, "mail::batch_solo::mail-1[paid]").parseoutcomes() == {"passed": 1}


def test_a_suite_beside_the_users_tests_runs_from_a_relative_and_from_a_full_path(
    run: Run, freeze: Freeze, repository: Path
) -> None:
    freeze(repository / "checks" / "suites" / "mail", {"mail-1": ["urgent"]})
    for folder in ("checks/suites/mail/", repository / "checks" / "suites" / "mail"):
        assert run(f"--jev-suite={folder}", "--jev-embedded=uniform").parseoutcomes() == {"passed": 1}
    assert run("--jev-suite=checks/suites/mail", "--jev-embedded=uniform", "checks").parseoutcomes() == {"passed": 2}


# Where values come from


def test_addopts_count_as_the_command_line(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\naddopts = {SUITE} --jev-embedded=uniform")
    pytester.makepyfile(test_mine="def test_mine() -> None: ...")
    assert run().parseoutcomes() == UNIFORM
    assert run("test_mine.py").parseoutcomes() == {"passed": 42, "violated": 9}


def test_ini_values_count_and_the_command_line_beats_them(run: Run, card_of: Card, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\njev_embedded = uniform\njev_tolerance = 0.2\njev_bootstrap = 0")
    assert run(SUITE).parseoutcomes() == {"passed": 46, "violated": 4}
    assert card_of()["settings"] == {"tolerance": 0.2, "min_n": 1, "bootstrap": 0}
    assert run(SUITE, "--jev-tolerance=0.25").parseoutcomes() == {"passed": 50}
    assert card_of()["settings"]["tolerance"] == 0.25


def test_the_command_line_beats_the_ini_file_beats_the_environment(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (SUITE, "-k", "option_clone", "--jev-cache=memory")
    with Server() as typed, Server() as ini, Server() as environment:
        monkeypatch.setenv("JEV_URL", environment.url)
        monkeypatch.setenv("JEV_MODEL_ID", "from-the-environment")
        assert run(*one).parseoutcomes() == {"violated": 1, "deselected": 49}
        assert {request.body["model"] for request in environment.requests} == {"from-the-environment"}
        pytester.makeini(f"[pytest]\njev_url = {ini.url}\njev_model_id = from-the-ini-file")
        assert run(*one).parseoutcomes() == {"violated": 1, "deselected": 49}
        assert {request.body["model"] for request in ini.requests} == {"from-the-ini-file"}
        assert run(*one, f"--jev-url={typed.url}", "--jev-model-id=typed").parseoutcomes()["violated"] == 1
        assert {request.body["model"] for request in typed.requests} == {"typed"}
        assert [len(server.requests) for server in (typed, ini, environment)] == [2, 2, 2]


def test_two_models_from_two_places_are_an_error_that_names_both(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server() as server:
        monkeypatch.setenv("JEV_URL", server.url)
        pytester.makeini("[pytest]\njev_embedded = uniform")
        result = run(SUITE)
        assert server.requests == []
    assert result.ret == 4
    error = result.stderr.str()
    assert "more than one model" in error
    assert "JEV_URL" in error
    assert "jev_embedded in tox.ini" in error


def test_an_ini_value_that_cannot_be_used_is_named_with_its_place(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\njev_tolerance = much")
    result = run(SUITE, "--jev-embedded=uniform")
    assert result.ret == 4
    assert "jev_tolerance in tox.ini='much' cannot be used: expected a number from 0 to 1" in result.stderr.str()


def test_ini_values_and_the_environment_alone_activate_nothing(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_mine="def test_mine() -> None: ...")
    with Server(answers()) as server:
        pytester.makeini(f"[pytest]\njev_url = {server.url}\njev_tolerance = 0.1\njev_relations = option_clone")
        for name in ("JEV_URL", "JEV_MODEL_ID", "JEV_REVISION", "JEV_SUITE", "JEVBENCH_API_KEY"):
            monkeypatch.setenv(name, server.url)
        result = run("--strict-config", "--jev-embedded=uniform")
        assert server.connections == 0
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 1})
    assert "coherence" not in result.stdout.str()
    assert not (pytester.path / ".jevbench-cache").exists()


# Start-up


def test_a_run_without_a_jev_option_imports_nothing_heavy(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other plugins import some of these themselves, so this one is loaded alone.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("JEV_URL", "http://127.0.0.1:9/v1/systemone")
    pytester.makeini("[pytest]\njev_tolerance = 0.1")
    pytester.makepyfile(
        test_mine="""
        import sys

        HEAVY = {"httpx", "numpy", "hypothesis", "pydantic", "xdist", "jevbench", "sparrow_decider", "sqlite3"}

        def test_nothing_heavy_is_imported(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("pytest_jevbench.plugin")
            assert pytestconfig.getini("jev_tolerance") == "0.1"
            assert {name.partition(".")[0] for name in sys.modules} & HEAVY == set()
        """
    )
    result = pytester.runpytest_subprocess("-p", "pytest_jevbench.plugin")
    assert result.parseoutcomes() == {"passed": 1}
