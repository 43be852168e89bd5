"""What the tests of the plugin share: pytest run as a user runs it, what a run left behind, small suites to run."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - pytester forgets what a test imports, and numpy cannot be imported twice
import pytest

pytest_plugins = ["pytester"]
LEAN = [part for name in ("anyio", "html", "hypothesispytest", "jev", "randomly") for part in ("-p", f"no:{name}")]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the developer has set for own runs away from the runs under test."""
    for name in list(os.environ):
        if name.startswith(("JEV", "PYTEST_")) or name == "COLUMNS":
            monkeypatch.delenv(name)
    # A run without bytecode takes three times as long to start.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest in a process of its own, in the current folder: `run("--jev-suite=...", "-x")`.

    Without the plugins that take most of the start-up, and in plan order; `test_plugin_company` runs beside them all.
    """
    return lambda *arguments: pytester.runpytest_subprocess(*LEAN, *arguments, timeout=120)


@pytest.fixture
def card_of(pytester: pytest.Pytester) -> Callable[..., dict[str, Any]]:
    """Read the card that a run in the test's folder has left: `card_of()`, `card_of("last-partial.json")`."""

    def read(name: str = "last-card.json") -> dict[str, Any]:
        card: dict[str, Any] = json.loads((pytester.path / ".jevbench-cache" / name).read_text(encoding="utf-8"))
        return card

    return read


@pytest.fixture
def freeze() -> Callable[..., None]:
    """Write a suite folder: `freeze(folder, {case id: [question keys]})` has one test of batch_solo for each key."""

    def write(folder: Path, questions: Mapping[str, Sequence[str]], name: str = "") -> None:
        cases = [
            {
                "id": case,
                "state": f"State {number}.",
                "questions": {
                    key: {"type": "noul", "instructions": f"Is it {word}?"}
                    for key, word in zip([*keys, "company"], "abcdefghijklm", strict=False)
                },
            }
            for number, (case, keys) in enumerate(questions.items())
        ]
        rows = [
            {"case": case, "relation": "batch_solo", "key": key, "v": 0, "t": 0, "targets": [key]}
            | {"requests": {"variant": [[key, {"@": key}]]}, "params": {}, "reduced": None}
            for case, keys in questions.items()
            for key in keys
        ]
        header = {"format": 1, "seed": 0, "trials": 1, "relations": ["batch_solo"], "cases": list(questions)}
        files = {
            "cases.jsonl": "\n".join(map(json.dumps, cases)).encode(),
            "tests.jsonl.gz": gzip.compress(
                "\n".join(map(json.dumps, [header | {"selection": "all"}, *rows])).encode(), mtime=0
            ),
        }
        folder.mkdir(parents=True)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        digests = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
        manifest = {"name": name or folder.name, "version": "1", "min_n": 1, "files": digests}
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    return write


@pytest.fixture(scope="session")
def mini_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the whole official mini suite against `luce` once; return its folder, with `card.json` and `output.txt`."""
    folder = tmp_path_factory.mktemp("mini")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JEV", "PYTEST_"))}
    arguments = ["--jev-suite=upstream:jevbench-mini", "--jev-embedded=luce", "--jev-card=card.json"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *LEAN, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (folder / "output.txt").write_text(done.stdout, encoding="utf-8")
    return folder
