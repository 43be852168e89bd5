"""Bad input, end to end: each kind as a user meets it, in a process of its own.

Whatever cannot be used ends the run before the first test with exit code 4: one message that names the place, no
traceback, nothing left behind. What goes wrong later is an error of its tests, with exit code 1. The command line
says 2. The undamaged suite passes (`good_card`), so that each damage alone is what is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_jevbench import cli
from pytest_jevbench.cache import SqliteStore
from pytest_jevbench.card import Card
from pytest_jevbench.errors import CardError
from server import Behaviour, Received, Server, answers, page, reply, response, send

Damage = Callable[[Path], object]

URGENT: dict[str, Any] = {"type": "noul", "instructions": "Is it urgent?"}
DESK: dict[str, Any] = {"type": "choice", "instructions": "Which desk?", "criteria": {"billing": "money", "it": None}}
MOOD: dict[str, Any] = {"type": "score", "instructions": "How angry?", "criteria": ["calm", "cross", "furious"]}
QUESTIONS = {"urgent": URGENT, "desk": DESK, "mood": MOOD}
MAIL: dict[str, Any] = {
    "id": "mail-1",
    "state": "Invoice 17 is overdue.",
    "questions": QUESTIONS,
    "domain": "mail",
}
CALL: dict[str, Any] = {"id": "call-1", "state": "Thank you.", "questions": QUESTIONS, "domain": "calls"}
SUITE, UNIFORM = "--jev-suite=./suite", "--jev-embedded=uniform"
KEPT = {".jevbench-cache", ".jevbench-cache/.gitignore", ".jevbench-cache/answers.sqlite"}
"""What a run whose model was found may leave behind, even when it went no further: the cache, no card."""


def row(key: str = "urgent", case: str = "mail-1", **changes: Any) -> dict[str, Any]:
    known = {
        "case": case,
        "relation": "batch_solo",
        "key": key,
        "v": 0,
        "t": 0,
        "targets": [key],
        "requests": {"variant": [[key, {"@": key}]]},
        "params": {},
        "reduced": None,
    }
    return known | changes


ROWS = [row(key, case) for case in ("mail-1", "call-1") for key in QUESTIONS]


def lines(objects: Sequence[Any]) -> bytes:
    """Bytes stand for themselves; anything else is written as a line of JSON."""
    return b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in objects) + b"\n"


def plan_text(rows: Sequence[Any] = tuple(ROWS), header: Any = None) -> bytes:
    return lines([{"format": 1} if header is None else header, *rows])


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_suite(folder: Path, files: Mapping[str, bytes], /, **manifest: Any) -> None:
    """Write a suite whose manifest has the right digests; `manifest` adds to it or replaces its fields."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    digests = {name: sha256(data) for name, data in files.items()}
    known = {"name": folder.name, "version": "1", "min_n": 1, "files": digests}
    (folder / "manifest.json").write_text(json.dumps(known | manifest, indent=1), encoding="utf-8")


GOOD = {"cases.jsonl": lines([MAIL, CALL]), "tests.jsonl.gz": zipped(plan_text())}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a project folder that holds a good suite."""
    write_suite(tmp_path / "suite", GOOD)
    return tmp_path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended; `new` holds the files it left behind, `message` what stands on stderr without blank lines."""

    code: int
    stdout: str
    stderr: str
    new: set[str]

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    @property
    def message(self) -> str:
        return "\n".join(line for line in self.stderr.splitlines() if line.strip())


def present(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in found if "__pycache__" not in path.parts}


def run(folder: Path, *arguments: str, **environment: str) -> Ended:
    """Run pytest in `folder`, with no plugin but this one (they take most of the start). Temporary files count."""
    (folder / "tmp").mkdir(exist_ok=True)
    before = present(folder)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JEV", "PYTEST_"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(folder / "tmp")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_jevbench.plugin", *arguments],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, present(folder) - before)


def refused(folder: Path, *arguments: str, says: Sequence[str], **environment: str) -> Ended:
    """Check what holds for everything that cannot be used: exit code 4, one message, no traceback, no test run."""
    ended = run(folder, *arguments, **environment)
    assert "Traceback" not in ended.output, ended.output[-2000:]
    assert ended.code == 4, ended.output[-2000:]
    assert ended.message.startswith("ERROR: ")
    assert ended.message.count("ERROR: ") == 1
    first, *more = ended.message.splitlines()
    assert len(more) == ("the model cannot be used" in first), f"not one message:\n{ended.message}"
    assert first.removeprefix("ERROR: ") not in ended.stdout
    for text in says:
        assert text in ended.message
    assert not ended.stdout or "no tests ran" in ended.stdout or "workers" in ended.stdout
    return ended


def refused_at_once(folder: Path, *arguments: str, says: Sequence[str], **environment: str) -> Ended:
    """Check that it is refused before anything is written."""
    ended = refused(folder, *arguments, says=says, **environment)
    assert ended.new == set()
    return ended


def put(name: str, text: str | bytes) -> Damage:
    """Return a damage that writes a file into the project."""

    def damage(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return damage


def suite_of(*, cases: Sequence[Any] = (MAIL, CALL), plan: bytes = GOOD["tests.jsonl.gz"], **manifest: Any) -> Damage:
    """Return a damage that freezes the suite anew with other cases, plan or manifest fields; the digests fit."""
    return lambda folder: write_suite(
        folder / "suite", {"cases.jsonl": lines(cases), "tests.jsonl.gz": plan}, **manifest
    )


def second_case(line: Any) -> Damage:
    """Return a damage that replaces the second line of the cases."""
    return suite_of(cases=[MAIL, line])


def asking(questions: Any) -> Damage:
    return second_case(CALL | {"questions": questions})


def second_row(line: Any) -> Damage:
    """Return a damage that replaces the second row of the plan, which is line 3 of the file."""
    return suite_of(plan=zipped(plan_text([ROWS[0], line])))


def flipped(name: str) -> Damage:
    """Return a damage that changes one bit of a file."""

    def damage(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[20] ^= 1
        (folder / name).write_bytes(data)

    return damage


def removed(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def sample(after: Damage = lambda _: None, **manifest: Any) -> Damage:
    """Return a damage that makes `suite` a sample of `base`, which lies beside it, and then does something else."""
    known = {"base": "base", "base_files": {name: sha256(data) for name, data in GOOD.items()}}

    def damage(folder: Path) -> None:
        write_suite(folder / "base", GOOD)
        write_suite(folder / "suite", {"tests.jsonl.gz": GOOD["tests.jsonl.gz"]}, **(known | manifest))
        after(folder)

    return damage


# Suites


def file_as_suite(folder: Path) -> None:
    shutil.rmtree(folder / "suite")
    (folder / "suite").touch()


CASES, PLAN, MANIFEST = "suite/cases.jsonl", "suite/tests.jsonl.gz", "suite/manifest.json"

SUITES: dict[str, tuple[Damage, Sequence[str]]] = {
    "a folder that is missing": (lambda folder: shutil.rmtree(folder / "suite"), ["suite: there is no such folder"]),
    "a file instead of a folder": (file_as_suite, ["suite: ", "folder"]),
    "a manifest that is missing": (removed(MANIFEST), [f"{MANIFEST}: there is no such file"]),
    "a manifest that is broken": (put(MANIFEST, '{"name": "suite",\n "files": {'), [f"{MANIFEST}:2:", "no JSON"]),
    "a manifest with a key twice": (put(MANIFEST, '{"name": "x", "name": "y"}'), [MANIFEST, "'name'", "twice"]),
    "a manifest that is no object": (put(MANIFEST, "[]"), [MANIFEST, "[]"]),
    "a manifest that is not UTF-8": (put(MANIFEST, b'{"name": "\xff"}'), [MANIFEST, "UTF-8", "0xff"]),
    "a manifest without files": (suite_of(files={}), [f"{MANIFEST}: files", "{}"]),
    "a manifest with a bad name": (suite_of(name="a/b"), [f"{MANIFEST}: name", "'a/b'"]),
    "a manifest without a name": (suite_of(name=None), [f"{MANIFEST}: name", "None"]),
    "a manifest with min_n 0": (suite_of(min_n=0), [f"{MANIFEST}: min_n", "found 0", "integer from 1"]),
    "a manifest with min_n as text": (suite_of(min_n="5"), [f"{MANIFEST}: min_n", "found '5'"]),
    "an edition that is no text": (suite_of(edition=3), [f"{MANIFEST}: edition", "3"]),
    "a version that is an object": (suite_of(version={"major": 1}), [f"{MANIFEST}: version", "{'major': 1}"]),
    "cases that were changed": (flipped(CASES), [MANIFEST, "cases.jsonl was changed"]),
    "a plan that was changed": (flipped(PLAN), [MANIFEST, "tests.jsonl.gz was changed"]),
    "an extra file": (put("suite/more.jsonl", "{}"), [MANIFEST, "more.jsonl is not in the manifest"]),
    "cases that are missing": (removed(CASES), [MANIFEST, "cases.jsonl is missing"]),
    "a plan that is missing": (removed(PLAN), [MANIFEST, "tests.jsonl.gz is missing"]),
    "a base that is missing": (
        sample(lambda folder: shutil.rmtree(folder / "base")),
        [MANIFEST, "'base' is missing", "neither base"],
    ),
    "a base whose cases were changed": (
        sample(flipped("base/cases.jsonl")),
        ["base/manifest.json", "cases.jsonl was changed"],
    ),
    "another base": (
        sample(lambda folder: write_suite(folder / "base", GOOD | {"cases.jsonl": lines([MAIL])})),
        ["base/manifest.json", "cases.jsonl is another one"],
    ),
    "a base that is no name": (sample(base=7), [MANIFEST, "`base`"]),
}

CASE_LINES: dict[str, tuple[Damage, Sequence[str]]] = {
    "a broken line": (second_case(b'{"id": "call-1", "state": '), [f"{CASES}:2:", "no JSON"]),
    "a line that is no object": (second_case([1]), [f"{CASES}:2: ", "[1]"]),
    "an id twice": (second_case(MAIL), [f"{CASES}:2: ", "'mail-1'", f"{CASES}:1"]),
    "a key twice": (second_case(b'{"id": "a", "id": "b", "state": "", "questions": {}}'), [f"{CASES}:2: ", "'id'"]),
    "no state": (second_case({"id": "a", "questions": QUESTIONS}), [f"{CASES}:2: ", "'state' is missing"]),
    "an unknown type": (
        asking({"urgent": URGENT | {"type": "bool"}}),
        [f"{CASES}:2: questions.urgent", "'bool'", "noul, choice or score"],
    ),
    "a choice of one": (
        asking({"desk": DESK | {"criteria": {"billing": None}}}),
        [f"{CASES}:2: questions.desk.criteria", "2", "{'billing': None}"],
    ),
    "a field no question has": (asking({"urgent": URGENT | {"weight": 3}}), [f"{CASES}:2: questions.urgent.weight"]),
    "a question that is text": (asking({"urgent": "Is it?"}), [f"{CASES}:2: questions.urgent", "'Is it?'"]),
    "no questions": (asking({}), [f"{CASES}:2: questions", "{}"]),
    "a misspelt field": (second_case(CALL | {"domian": "x"}), [f"{CASES}:2: ", "'domian'", "'domain'"]),
    "not UTF-8": (second_case(b'{"id": "call-\xff"}'), [f"{CASES}:2: ", "UTF-8", "0xff"]),
    "no line at all": (suite_of(cases=[]), [CASES, "no case"]),
}

PLANS: dict[str, tuple[Damage, Sequence[str]]] = {
    "not zipped": (suite_of(plan=plan_text()), [f"{PLAN}: ", "gzip"]),
    "cut": (suite_of(plan=zipped(plan_text())[:-30]), [f"{PLAN}: ", "cannot be read"]),
    "a first line that is no header": (
        suite_of(plan=zipped(plan_text(header={"seed": 0}))),
        [f"{PLAN}:1: ", "header", "{'seed': 0}"],
    ),
    "another format": (suite_of(plan=zipped(plan_text(header={"format": 2}))), [f"{PLAN}:1: ", "found 2", "Update"]),
    "no rows": (suite_of(plan=zipped(plan_text([]))), [f"{PLAN}: ", "no rows"]),
    "a broken row": (second_row(b'{"case": '), [f"{PLAN}:3:", "no JSON"]),
    "a row that lacks fields": (second_row({"case": "mail-1"}), [f"{PLAN}:3: ", "['case']"]),
    "an unknown relation": (
        second_row(row(relation="batch_sole")),
        [f"{PLAN}:3: ", "'batch_sole'", "Did you mean 'batch_solo'?"],
    ),
    "an unknown case": (second_row(row(case="mail-2")), [f"{PLAN}:3: ", "'mail-2'"]),
    "an unknown question": (second_row(row("urgnt")), [f"{PLAN}:3: ", "'urgnt'", "'mail-1'"]),
    "an unknown reference": (
        second_row(row(requests={"variant": [["urgent", {"@": "urgnt"}]]})),
        [f"{PLAN}:3: requests.variant", "{'@': 'urgnt'}"],
    ),
    "a reference that is a list": (
        second_row(row(requests={"variant": [["urgent", {"@": ["urgent"]}]]})),
        [f"{PLAN}:3: requests.variant", "{'@': ['urgent']}"],
    ),
}


def kinds(table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrize by a table whose rows are `kind: (damage, what the message says)`."""
    return pytest.mark.parametrize(("damage", "says"), table.values(), ids=table)


@kinds(SUITES)
def test_a_damaged_suite_is_refused_and_the_file_named(folder: Path, damage: Damage, says: Sequence[str]) -> None:
    damage(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=says)


def test_a_sample_with_its_base_passes(folder: Path) -> None:
    sample()(folder)
    assert run(folder, SUITE, UNIFORM).code == 0


@kinds(CASE_LINES)
def test_a_bad_case_is_refused_and_the_line_named(folder: Path, damage: Damage, says: Sequence[str]) -> None:
    damage(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=says)


@kinds(PLANS)
def test_a_bad_plan_is_refused_and_the_line_named(folder: Path, damage: Damage, says: Sequence[str]) -> None:
    damage(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=says)


NAMES: Mapping[str, Sequence[str]] = {
    "exampels": ["'exampels'", "examples"],
    "upstream:exampels": ["'exampels'", "Did you mean 'examples'?"],
    "suite": ["'suite'", "./suite"],
    "./other": ["other: there is no such folder"],
    "": ["--jev-suite is empty"],
}


@pytest.mark.parametrize(("name", "says"), NAMES.items(), ids=[repr(each) for each in NAMES])
def test_an_unknown_suite_is_refused_with_a_hint(folder: Path, name: str, says: Sequence[str]) -> None:
    refused_at_once(folder, f"--jev-suite={name}", UNIFORM, says=["--jev-suite", *says])


# Options


SELECTIONS: Mapping[str, Sequence[str]] = {
    "--jev-domains=mial": ["'mial'", "Did you mean 'mail'?"],
    "--jev-domains=,": ["is empty"],
    "--jev-dimensions=LOGG": ["'LOGG'", "Did you mean 'LOG'?"],
    "--jev-groups=MEA.partitions": ["'MEA.partitions'", "Did you mean 'MEA.partition'?"],
    "--jev-relations=batch_sole": ["'batch_sole'", "Did you mean 'batch_solo'?"],
}


@pytest.mark.parametrize(("option", "says"), SELECTIONS.items(), ids=SELECTIONS)
def test_an_unknown_name_in_a_selection_is_refused_with_the_nearest_and_the_option(
    folder: Path, option: str, says: Sequence[str]
) -> None:
    refused_at_once(folder, SUITE, UNIFORM, option, says=[option.partition("=")[0], *says])


def test_an_unknown_name_in_the_ini_file_is_found_there(folder: Path) -> None:
    put("pytest.ini", "[pytest]\njev_relations = batch_sole\n")(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=["jev_relations in pytest.ini", "'batch_sole'"])


def test_a_selection_that_leaves_no_test_is_refused(folder: Path) -> None:
    refused_at_once(folder, SUITE, UNIFORM, "--jev-relations=option_clone", says=["leaves no test of suite"])


OPTIONS: Mapping[str, Sequence[str]] = {
    "--jev-tolerance=2": ["'2'", "a number from 0 to 1"],
    "--jev-tolerance=abc": ["'abc'", "a number from 0 to 1"],
    "--jev-tolerance=-1": ["'-1'", "a number from 0 to 1"],
    "--jev-tolerance=nan": ["'nan'", "a number from 0 to 1"],
    "--jev-min-n=0": ["'0'", "an integer from 1"],
    "--jev-min-n=1.5": ["'1.5'", "an integer from 1"],
    "--jev-bootstrap=-1": ["'-1'", "an integer from 0"],
    "--jev-violations=maybe": ["'maybe'", "fail or record"],
    # Read for servers only, but no less wrong where the model is another.
    "--jev-timeout=0": ["'0'", "above 0"],
    "--jev-retries=-1": ["'-1'", "from 0 to 100"],
    # Mostly a shell variable that is not set: silence would lose the card.
    "--jev-card=": ["is empty"],
    "--jev-cache=": ["is empty"],
}


@pytest.mark.parametrize(("option", "says"), OPTIONS.items(), ids=OPTIONS)
def test_an_option_that_cannot_be_used_is_refused_with_what_can(
    folder: Path, option: str, says: Sequence[str]
) -> None:
    refused_at_once(folder, SUITE, UNIFORM, option, says=[option.partition("=")[0], *says])


def test_a_value_of_the_ini_file_is_refused_where_it_stands(folder: Path) -> None:
    put("pytest.ini", "[pytest]\njev_tolerance = abc\n")(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=["jev_tolerance in pytest.ini", "'abc'"])


def test_an_option_nobody_declares_is_refused(folder: Path) -> None:
    ended = run(folder, SUITE, UNIFORM, "--jev-tolerence=0.1")
    assert ended.code == 4
    assert "unrecognized arguments: --jev-tolerence=0.1" in ended.stderr
    assert ended.new == set()


def test_an_id_the_plan_lacks_is_refused_with_the_nearest(folder: Path) -> None:
    # A folder of the suite's name lies in the current folder, as it does for whoever froze a suite here.
    refused_at_once(
        folder, SUITE, UNIFORM, "suite::batch_solo::mail-1[urgnt]", says=["suite::batch_solo::mail-1[urgent]"]
    )


# The model


def test_a_run_without_a_model_is_refused_with_the_ways_to_name_one(folder: Path) -> None:
    refused_at_once(
        folder, SUITE, says=["--jev-url", "--jev-callable", "--jev-embedded", "pytest_jev_model", "conftest.py"]
    )


def test_two_models_are_refused_and_both_named(folder: Path) -> None:
    refused_at_once(folder, SUITE, UNIFORM, "--jev-url=http://127.0.0.1:9/", says=["--jev-url and --jev-embedded"])


def test_a_model_from_the_environment_and_another_are_refused_and_both_named(folder: Path) -> None:
    refused_at_once(
        folder, SUITE, UNIFORM, says=["the variable JEV_URL and --jev-embedded"], JEV_URL="http://127.0.0.1:9/"
    )


def hook(*body: str) -> str:
    return "def pytest_jev_model(config):\n" + "".join(f"    {line}\n" for line in body)


A_FUNCTION = hook("return lambda state, questions: {}")


def test_a_model_by_option_and_one_by_hook_are_refused_and_both_named(folder: Path) -> None:
    put("conftest.py", A_FUNCTION)(folder)
    refused_at_once(folder, SUITE, UNIFORM, says=["--jev-embedded", str(folder / "conftest.py")])


def test_two_hooks_are_refused_and_both_named(folder: Path) -> None:
    put("conftest.py", A_FUNCTION)(folder)
    put("tests/conftest.py", A_FUNCTION)(folder)
    refused_at_once(folder, SUITE, says=[str(folder / "conftest.py"), str(folder / "tests" / "conftest.py")])


HOOKS: Mapping[str, Sequence[str]] = {
    "return None": ["no model to test"],
    "return 7": ["conftest.py", "found 7"],
    "return []": ["conftest.py", "empty"],
    "return [None]": ["conftest.py", "found None"],
    "raise RuntimeError('no weights')": ["conftest.py", "RuntimeError", "no weights"],
}


@pytest.mark.parametrize(("body", "says"), HOOKS.items(), ids=HOOKS)
def test_a_hook_that_gives_no_model_is_refused_and_named(folder: Path, body: str, says: Sequence[str]) -> None:
    put("conftest.py", hook(body))(folder)
    refused_at_once(folder, SUITE, says=says)


def test_replicas_that_are_different_models_are_refused(folder: Path) -> None:
    made = "[from_callable(lambda s, q: {}, name, '1') for name in ('first', 'second')]"
    put("conftest.py", hook("from pytest_jevbench.model import from_callable", f"return {made}"))(folder)
    refused_at_once(folder, SUITE, says=["conftest.py", "first", "second"])


EMBEDDED: Mapping[str, Sequence[str]] = {
    "unifrom": ["'unifrom'", "Did you mean 'uniform'?"],
    "uniform,random": ["uniform,random"],
    ",": ["is empty"],
}


@pytest.mark.parametrize(("name", "says"), EMBEDDED.items(), ids=EMBEDDED)
def test_an_embedded_model_nobody_knows_is_refused(folder: Path, name: str, says: Sequence[str]) -> None:
    refused_at_once(folder, SUITE, f"--jev-embedded={name}", says=["--jev-embedded", *says])


MODULES: dict[str, tuple[str, str, Sequence[str]]] = {
    "no colon": ("", "answer", ["MODULE:NAME", "'answer'"]),
    "a missing module": ("", "modle:answer", ["modle:answer", "'modle' cannot be found"]),
    "a missing name": ("def answer(state, questions): ...", "model:anser", ["'anser'", "Did you mean 'answer'?"]),
    "not callable": ("answer = 7", "model:answer", ["model:answer", "found 7", "fn(state, questions)"]),
    "raising at import": ("\nraise RuntimeError('no weights')", "model:answer", ["no weights", "model.py:2"]),
    "ending at import": ("raise SystemExit(3)", "model:answer", ["model:answer", "SystemExit"]),
    "importing what is missing": ("import torhc", "model:answer", ["model:answer", "'torhc' cannot be found"]),
    "no Python": ("def answer(:", "model:answer", ["model:answer", "SyntaxError", "model.py, line 1"]),
}


@pytest.mark.parametrize(("module", "spec", "says"), MODULES.values(), ids=MODULES)
def test_a_callable_that_cannot_be_found_is_refused(
    folder: Path, module: str, spec: str, says: Sequence[str]
) -> None:
    put("model.py", module)(folder)
    refused_at_once(folder, SUITE, f"--jev-callable={spec}", says=["--jev-callable", *says])


FUNCTIONS: dict[str, tuple[str, Sequence[str]]] = {
    "raising": ("def answer(state, questions):\n    raise ValueError('no luck')", ["no luck", "model.py:2"]),
    "returning None": ("def answer(state, questions): ...", ["found None", "{question id: answer}"]),
    "returning the whole response": (
        "def answer(state, questions):\n    return {'model': 'm', 'answers': {}}",
        ["question 'urgent'", "found ['model', 'answers']"],
    ),
    "of one argument": ("def answer(state): ...", ["TypeError", "fn(state, questions)"]),
    "asynchronous": ("async def answer(state, questions):\n    return {}", ["async"]),
}


@pytest.mark.parametrize(("module", "says"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_does_not_answer_is_refused(folder: Path, module: str, says: Sequence[str]) -> None:
    put("model.py", module)(folder)
    ended = refused(folder, SUITE, "--jev-callable=model:answer", says=says)
    assert "function.py" not in ended.message, "the user is sent into the plugin"
    assert ended.new == set()


# Servers


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000/v1/systemone", "http://127.0.0.1:99999/v1", "http://127.0.0.1:port/v1", "hello", "ftp://x/"],
)
def test_an_address_that_cannot_be_one_is_refused(folder: Path, url: str) -> None:
    refused_at_once(folder, SUITE, f"--jev-url={url}", says=["--jev-url", repr(url), "http://"])


def test_an_address_of_the_environment_is_refused_where_it_stands(folder: Path) -> None:
    refused_at_once(folder, SUITE, says=["the variable JEV_URL", "'hello'"], JEV_URL="hello")


def test_an_unset_variable_for_the_token_is_refused_and_named(folder: Path) -> None:
    url = "--jev-url=http://127.0.0.1:9/"
    refused_at_once(folder, SUITE, url, "--jev-api-key-env=MY_TOKEN", says=["MY_TOKEN", "--jev-api-key-env"])


@pytest.mark.parametrize(
    "token", ["zq7xw9\n", "zq7\nxw9", "zq7é xw9"], ids=["with a line end", "on two lines", "not ASCII"]
)
def test_a_token_that_fits_no_header_is_never_shown(folder: Path, token: str) -> None:
    with Server() as server:
        ended = run(folder, SUITE, f"--jev-url={server.url}", "--jev-retries=0", JEVBENCH_API_KEY=token)
    assert "zq7" not in ended.output
    assert "xw9" not in ended.output
    assert "Traceback" not in ended.output
    # Sent without its line end, or refused.
    if not server.requests:
        assert ended.code == 4
        assert "JEVBENCH_API_KEY" in ended.message


def test_a_server_that_is_down_is_refused_and_its_address_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/systemone"
    ended = refused(folder, SUITE, f"--jev-url={url}", says=[url, "cannot be reached", "Is it running"])
    assert ended.new <= KEPT


def test_a_server_that_is_down_is_refused_by_the_controller_of_workers(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/systemone"
    ended = refused(
        folder,
        SUITE,
        f"--jev-url={url}",
        "--jev-per-replica=2",
        "-p",
        "xdist.plugin",
        "-n2",
        says=[url, "cannot be reached"],
    )
    assert ended.new <= KEPT


def changed(**given: Any) -> Behaviour:
    """Answer properly but for these questions; None leaves the answer out."""

    def behave(received: Received) -> Iterator[bytes]:
        whole = reply(received)
        whole["answers"] = {key: a for key, a in (whole["answers"] | given).items() if a is not None}
        yield response(json.dumps(whole).encode())

    return behave


def rewritten(old: str, new: str) -> Behaviour:
    """Answer properly but for a piece of the text, for what no JSON library writes."""

    def behave(received: Received) -> Iterator[bytes]:
        text = json.dumps(reply(received))
        assert old in text
        yield response(text.replace(old, new).encode())

    return behave


RESPONSES: dict[str, tuple[Behaviour, Sequence[str]]] = {
    "HTML": (page(), ["{url}", "text/html", "/v1/systemone?"]),
    "another path": (send("Not Found", 404), ["{url}", "404", "Not Found", "/v1/systemone"]),
    "401": (send("who are you?", 401), ["{url}", "401", "who are you?", "JEVBENCH_API_KEY"]),
    "403": (send("not you", 403), ["{url}", "403", "not you", "JEVBENCH_API_KEY"]),
    "500 always": (send("boom", 500), ["{url}", "500", "boom"]),
    "no answers": (send('{"model": "m"}'), ["{url}", "`answers`", "{'model': 'm'}"]),
    "a list": (send("[1, 2]"), ["{url}", "[1, 2]"]),
    "answers that are a list": (send('{"answers": [1]}'), ["{url}", "found [1]", "{question id: answer}"]),
    "a redirect": (send("", 307, location="http://elsewhere.example/v1?key=k"), ["{url}", "elsewhere.example/v1"]),
    "not HTTP": (lambda _: iter([b"garbage\r\n\r\n"]), ["{url}", "garbage"]),
}

FOUND: dict[str, tuple[Behaviour, Sequence[str]]] = {
    "an answer missing": (changed(desk=None), ["question 'desk'", "missing", "['urgent', 'mood']"]),
    "a probability of 1.5": (changed(urgent={"type": "noul", "noul": 1.5}), ["question 'urgent'", "1.5", "[0, 1]"]),
    "a negative probability": (
        changed(desk={"type": "choice", "probabilities": {"billing": -0.2, "it": 1.2}}),
        ["question 'desk'", "-0.2", "[0, 1]"],
    ),
    "NaN": (changed(urgent={"type": "noul", "noul": math.nan}), ["question 'urgent'", "nan", "finite"]),
    "a string": (changed(urgent={"type": "noul", "noul": "0.5"}), ["question 'urgent'", "'0.5'", "number"]),
    "a boolean": (changed(urgent={"type": "noul", "noul": True}), ["question 'urgent'", "True", "number"]),
    "a field twice": (rewritten('"noul": 0.5', '"noul": 0.5, "noul": 0.6'), ["question 'urgent'", "'noul'", "twice"]),
    "an answer twice": (rewritten('"answers": {', '"answers": {"urgent": {}, '), ["question 'urgent'", "twice"]),
    "a sum of zero": (
        changed(desk={"type": "choice", "probabilities": {"billing": 0, "it": 0}}),
        ["question 'desk'", "zero", "{'billing': 0, 'it': 0}"],
    ),
    "an option missing": (
        changed(desk={"type": "choice", "probabilities": {"billing": 1}}),
        ["question 'desk'", "'it' is missing", "{'billing': 1}"],
    ),
    "a level missing": (
        changed(mood={"type": "score", "probabilities": {"0": 1, "1": 0}}),
        ["question 'mood'", "'2' is missing"],
    ),
}


@pytest.mark.parametrize(("behaviour", "says"), RESPONSES.values(), ids=RESPONSES)
def test_a_response_that_is_none_is_refused_and_shown(
    folder: Path, behaviour: Behaviour, says: Sequence[str]
) -> None:
    with Server(behaviour) as server:
        known = [text.replace("{url}", server.url) for text in says]
        ended = refused(folder, SUITE, f"--jev-url={server.url}", "--jev-retries=0", says=known)
    assert len(server.requests) == 1
    assert ended.new <= KEPT
    # That hint is for functions, which have no response around their answers.
    assert "A function returns" not in ended.message


@pytest.mark.parametrize(("behaviour", "says"), FOUND.values(), ids=FOUND)
def test_an_answer_out_of_format_is_refused_and_the_question_named(
    folder: Path, behaviour: Behaviour, says: Sequence[str]
) -> None:
    with Server(behaviour) as server:
        ended = refused(folder, SUITE, f"--jev-url={server.url}", says=[*says, "AnswerFormatError", "expected"])
    assert len(server.requests) == 1
    assert ended.new <= KEPT


def test_the_token_is_not_shown_when_the_server_sends_it_back(folder: Path) -> None:
    with Server(send('{"detail": "token s3cr3t is not known"}', 401)) as server:
        url = f"--jev-url={server.url}"
        ended = refused(folder, SUITE, url, says=["401", "is not known"], JEVBENCH_API_KEY="s3cr3t")
    assert server.requests[0].headers["authorization"] == "Bearer s3cr3t"
    assert "s3cr3t" not in ended.output


# Files of the run


PROPER = (
    "from pytest_jevbench.model import Request, embedded\n"
    "def answer(state, questions):\n"
    "    return embedded('uniform').ask(Request.of(state, questions)).answers\n"
)


@pytest.mark.parametrize("model", [UNIFORM, "--jev-callable=model:answer"], ids=["lasting", "for this run"])
def test_a_file_in_place_of_the_cache_folder_is_refused(folder: Path, model: str) -> None:
    put("kept", "mine")(folder)
    put("model.py", PROPER)(folder)
    refused_at_once(folder, SUITE, model, "--jev-cache=kept", says=[str(folder / "kept"), "--jev-cache"])
    assert (folder / "kept").read_text() == "mine"


def damaged_cache(folder: Path) -> None:
    """Make a sound cache and overwrite its last page, where the answers are."""
    SqliteStore(folder / ".jevbench-cache", "m", "m", "1").close()
    file = folder / ".jevbench-cache" / "answers.sqlite"
    sound = file.read_bytes()
    file.write_bytes(sound[:-4096] + b"\xff" * 4096)


@pytest.mark.parametrize(
    "damage",
    [put(".jevbench-cache/answers.sqlite", "x" * 5000), damaged_cache],
    ids=["from the start", "in the middle"],
)
def test_a_damaged_cache_is_refused_and_named(folder: Path, damage: Damage) -> None:
    damage(folder)
    file = folder / ".jevbench-cache" / "answers.sqlite"
    ended = refused(folder, SUITE, UNIFORM, says=[str(file), "--jev-cache"])
    assert ended.new <= KEPT


@pytest.mark.parametrize(
    ("card", "damage"),
    [("out", lambda folder: (folder / "out").mkdir()), ("out/card.json", put("out", "mine"))],
    ids=["a directory", "under a file"],
)
def test_a_card_that_cannot_be_written_is_refused_before_the_first_test(
    folder: Path, card: str, damage: Damage
) -> None:
    damage(folder)
    refused_at_once(folder, SUITE, UNIFORM, f"--jev-card={card}", says=["--jev-card", "out"])


def test_a_card_that_cannot_be_written_leaves_no_part_of_itself(tmp_path: Path, good_card: dict[str, Any]) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(CardError, match="out: the card cannot be written"):
        Card.model_validate(good_card).save(tmp_path / "out")
    assert present(tmp_path) == {"out"}


# During the run


def errors_of_tests(ended: Ended, count: int) -> str:
    """Check what holds for every run in which tests could not be judged; return the summary of their errors."""
    assert "Traceback" not in ended.output, ended.output[-2000:]
    assert "INTERNALERROR" not in ended.output
    assert ended.code == 1
    assert ended.stderr == ""
    assert ended.stdout.count("ERROR at setup of") == count
    assert ended.new == KEPT | {".jevbench-cache/last-partial.json"}
    assert ended.stdout.count("could not be judged:") == 1
    return ended.stdout.partition("could not be judged:")[2].partition("partial:")[0]


def test_what_a_server_does_wrong_during_the_run_is_an_error_of_its_tests(folder: Path) -> None:
    bad_score = changed(mood={"type": "score", "probabilities": {"0": 1.5, "1": 0, "2": 0}})
    script = [answers(), send("boom", 500), send("not now", 403), bad_score, changed(urgent=None)]
    with Server(script) as server:
        ended = run(folder, SUITE, f"--jev-url={server.url}", "--jev-retries=0")
    summary = errors_of_tests(ended, 6)
    told = [line.strip() for line in summary.splitlines() if " x " in line]
    # The last request was the whole batch of the second case, which its three tests share: one message for them.
    assert [line[:4] for line in told] == ["3 x ", "1 x ", "1 x ", "1 x "]
    for text in ("question 'urgent': the answer is missing", "(HTTP 500); found boom", "(HTTP 403)", "{'0': 1.5}"):
        assert summary.count(text) == 1
    # What was fetched ahead for these three went out before the answer of their case was known.
    assert len({request.raw for request in server.requests}) == len(server.requests) <= len(script) + 3


def test_a_function_that_raises_later_is_an_error_of_its_tests(folder: Path) -> None:
    fails = "    if 'desk' in questions and len(questions) == 1:\n        raise ValueError('no luck')\n"
    put("model.py", PROPER.replace("    return", f"{fails}    return"))(folder)
    ended = run(folder, SUITE, "--jev-callable=model:answer")
    assert "Traceback" not in ended.output
    assert ended.code == 1
    assert "4 passed, 2 errors" in ended.stdout
    assert ended.stdout.count("2 x model answer: the function raised ValueError: 'no luck'") == 1
    assert f"{folder / 'model.py'}:4" in ended.stdout
    assert not (folder / ".jevbench-cache" / "last-card.json").exists()


def test_a_row_that_does_not_fit_its_relation_is_an_error_that_names_its_line(folder: Path) -> None:
    second_row(row("desk", relation="option_clone"))(folder)
    ended = run(folder, SUITE, UNIFORM)
    assert "option_clone" in errors_of_tests(ended, 1)
    assert f"{PLAN}:3" in ended.stdout


def test_a_cache_that_breaks_during_the_run_costs_no_card(folder: Path) -> None:
    breaks = (
        "        if len(questions) == 1:\n"
        "            db = sqlite3.connect('.jevbench-cache/answers.sqlite')\n"
        "            db.execute('DROP TABLE IF EXISTS answers')\n"
        "            db.close()\n"
    )
    model = (
        "import sqlite3\n"
        "from pytest_jevbench.model import Request, embedded, from_callable\n"
        "def pytest_jev_model(config):\n"
        "    def answer(state, questions):\n"
        f"{breaks}"
        "        return embedded('uniform').ask(Request.of(state, questions)).answers\n"
        "    return from_callable(answer, name='m', revision='1')\n"
    )
    put("conftest.py", model)(folder)
    ended = run(folder, SUITE)
    assert "INTERNALERROR" not in ended.output
    assert "Traceback" not in ended.output
    assert ended.code == 1
    assert str(folder / ".jevbench-cache" / "answers.sqlite") in ended.stdout
    assert ended.new & {".jevbench-cache/last-partial.json", ".jevbench-cache/last-card.json"}


def test_a_card_hook_that_raises_costs_no_card(folder: Path) -> None:
    put("conftest.py", "def pytest_jev_card(config, card):\n    raise RuntimeError('no luck')\n")(folder)
    ended = run(folder, SUITE, UNIFORM)
    assert ended.code == 1
    assert "no luck" in ended.output
    assert ".jevbench-cache/last-card.json" in ended.new


# The command line


def command(folder: Path, *arguments: str) -> Ended:
    """Run `pytest-jevbench` in `folder`."""
    script = Path(sysconfig.get_path("scripts")) / "pytest-jevbench"
    before = present(folder)
    done = subprocess.run([script, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return Ended(done.returncode, done.stdout, done.stderr, present(folder) - before)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["shwo"], "'shwo'"),
        (["card"], "ACTION"),
        (["card", "show", "card.json", "--tolerance=abc"], "'abc'"),
        (["card", "show", "nope.json"], "pytest-jevbench: nope.json: there is no such file"),
    ],
)
def test_a_misused_command_line_ends_with_2(folder: Path, arguments: Sequence[str], says: str) -> None:
    ended = command(folder, *arguments)
    assert (ended.code, ended.stdout, ended.new) == (2, "", set())
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture(scope="module")
def good_card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the card of the undamaged suite, which passes."""
    folder = tmp_path_factory.mktemp("good")
    write_suite(folder / "suite", GOOD)
    ended = run(folder, SUITE, UNIFORM)
    assert (ended.code, ended.stderr) == (0, ""), ended.output
    assert ended.new == KEPT | {".jevbench-cache/last-card.json"}
    card: dict[str, Any] = json.loads((folder / ".jevbench-cache" / "last-card.json").read_bytes())
    return card


def refused_card(path: Path, capsys: pytest.CaptureFixture[str], says: Sequence[str], *options: str) -> None:
    """Check that `card show` says one line about the card, in this process: another one would add nothing."""
    assert cli.main(["card", "show", str(path), *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("pytest-jevbench: ")
    for text in says:
        assert text in shown.err


NO_CARDS: dict[str, tuple[str | bytes, Sequence[str]]] = {
    "cut": ('{"jevbench_card": 1,\n', ["card.json:2:", "no JSON"]),
    "empty": ("", ["card.json", "no JSON"]),
    "of another kind": ('{"x": 1}', ["card.json", "jevbench_card"]),
    "a list": ("[]", ["card.json", "jevbench_card"]),
    "not UTF-8": (b'{"\xff": 1}', ["card.json", "UTF-8", "0xff"]),
    "with a key twice": ('{"jevbench_card": 1, "jevbench_card": 1}', ["card.json", "'jevbench_card'", "twice"]),
}


@pytest.mark.parametrize(("text", "says"), NO_CARDS.values(), ids=NO_CARDS)
def test_a_file_that_is_no_card_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, says: Sequence[str]
) -> None:
    put("card.json", text)(tmp_path)
    refused_card(tmp_path / "card.json", capsys, says)


def test_a_folder_that_is_no_card_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused_card(tmp_path, capsys, [str(tmp_path), "directory"])


def at(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change of a card that sets the field at a path, or removes it where `value` is `...`."""

    def change(card: dict[str, Any]) -> None:
        *parents, name = path.split("/")
        part: Any = card
        for parent in parents:
            part = part[int(parent) if isinstance(part, list) else parent]
        if value is ...:
            del part[name]
        else:
            part[name] = value

    return change


CARDS: dict[str, tuple[Callable[[dict[str, Any]], None], Sequence[str]]] = {
    "another format": (at("jevbench_card", 2), ["jevbench_card", "2"]),
    "an unknown field": (at("more", 1), ["more"]),
    "a missing field": (at("scores", ...), ["scores"]),
    "a score that is text": (at("scores/overall", "x"), ["scores.overall", "'x'"]),
    "a score of 7": (at("scores/overall", 7), ["scores.overall", "7"]),
    "a score of NaN": (at("scores/overall", math.nan), ["card.json", "NaN is no number of JSON"]),
    "a missing dimension": (at("scores/dimensions/REP", ...), ["scores.dimensions", "REP"]),
    "a check of an unknown relation": (at("checks/batch_sole", {}), ["checks"]),
    "a test of an unknown relation": (
        at("tests/0/relation", "batch_sole"),
        ["tests", "'batch_sole'", "'batch_solo'"],
    ),
}


@pytest.mark.parametrize(("change", "says"), CARDS.values(), ids=CARDS)
def test_a_card_with_a_bad_field_is_refused_and_the_field_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    good_card: dict[str, Any],
    change: Callable[[dict[str, Any]], None],
    says: Sequence[str],
) -> None:
    card = json.loads(json.dumps(good_card))
    change(card)
    put("card.json", json.dumps(card))(tmp_path)
    refused_card(tmp_path / "card.json", capsys, [f"{tmp_path / 'card.json'}: ", *says], "--tolerance=0.1")


SHOW_OPTIONS: Mapping[str, Sequence[str]] = {
    "--level=dim": ["'dim'", "dimension"],
    "--tolerance=2": ["tolerance", "2"],
    "--tolerance=nan": ["tolerance", "nan"],
    "--min-n=0": ["min_n", "0"],
    "--bootstrap=-1": ["bootstrap", "-1"],
}


@pytest.mark.parametrize(("option", "says"), SHOW_OPTIONS.items(), ids=SHOW_OPTIONS)
def test_a_good_card_with_a_bad_option_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], good_card: dict[str, Any], option: str, says: Sequence[str]
) -> None:
    put("card.json", json.dumps(good_card))(tmp_path)
    assert cli.main(["card", "show", str(tmp_path / "card.json")]) == 0
    capsys.readouterr()
    refused_card(tmp_path / "card.json", capsys, says, option)
