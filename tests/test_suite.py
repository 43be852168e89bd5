"""Suites and frozen plans: what loads, and that whatever was touched, lost or mistyped is named."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jevbench import suite as suites
from pytest_jevbench.errors import CaseError, JevbenchError, PlanError, SuiteError
from pytest_jevbench.relations import CATALOGUE, select
from pytest_jevbench.suite import load_suite, suite_names, upstream_folder

NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it urgent?"}
PAID: dict[str, Any] = {"type": "noul", "instructions": "Is it paid?"}
DESK: dict[str, Any] = {"type": "choice", "instructions": "Which desk?", "criteria": {"b": "billing", "a": None}}
QUESTIONS = {"urgent": NOUL, "paid": PAID, "desk": DESK}
CASES: list[dict[str, Any]] = [
    {"id": "mail-1", "state": "Invoice 17 is overdue.", "questions": QUESTIONS, "domain": "mail"},
    {"id": "call-1", "state": {"said": "Thank you."}, "questions": QUESTIONS, "domain": "calls"},
]
HEADER = {"format": 1, "seed": 0, "trials": 1, "relations": ["batch_solo"], "cases": ["mail-1"], "selection": "all"}
ROW: dict[str, Any] = {
    "case": "mail-1",
    "relation": "batch_solo",
    "key": "urgent",
    "v": 0,
    "t": 0,
    "targets": ["urgent"],
    "requests": {"variant": [["urgent", {"@": "urgent"}]]},
    "params": {},
    "reduced": None,
}
SWAPPED = DESK | {"criteria": {"a": None, "b": "billing"}}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lines(objects: Sequence[Any]) -> bytes:
    """Bytes stand for themselves; anything else is written as a line of JSON."""
    return b"\n".join(o if isinstance(o, bytes) else json.dumps(o, ensure_ascii=False).encode() for o in objects)


def zipped(data: bytes, level: int = 9) -> bytes:
    return gzip.compress(data, level, mtime=0)


def write(folder: Path, files: dict[str, bytes], /, **manifest: Any) -> Path:
    """Write a suite folder whose manifest has the right digests; `manifest` adds to it or replaces its fields."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    known = {"name": folder.name, "version": "1", "files": {name: sha256(data) for name, data in files.items()}}
    (folder / "manifest.json").write_text(json.dumps(known | manifest, indent=1), encoding="utf-8")
    return folder


def frozen(folder: Path, rows: Sequence[Any] = (ROW,), header: Any = HEADER, **manifest: Any) -> Path:
    return write(folder, {"cases.jsonl": lines(CASES), "tests.jsonl.gz": zipped(lines([header, *rows]))}, **manifest)


def sample(folder: Path, base: Path, **manifest: Any) -> Path:
    """Write a suite that holds a plan only and names `base`, which lies beside it."""
    digests = {name: sha256((base / name).read_bytes()) for name in ("cases.jsonl", "tests.jsonl.gz")}
    known = {"base": base.name, "base_files": digests}
    return write(folder, {"tests.jsonl.gz": zipped(lines([HEADER, ROW]))}, **(known | manifest))


def row(**changes: Any) -> dict[str, Any]:
    return ROW | changes


def asking(*pairs: Any, **changes: Any) -> dict[str, Any]:
    return row(requests={"variant": list(pairs)}, **changes)


def error_of(folder: Path, kind: type[JevbenchError] = SuiteError) -> JevbenchError:
    with pytest.raises(kind) as caught:
        load_suite(str(folder))
    return caught.value


# The suites of the package `jevbench`


@pytest.mark.parametrize(
    ("name", "tests", "cases", "edition", "min_n"),
    [
        ("examples", 50, 1, "jevbench-2", 1),
        ("jevbench-mini", 1200, 240, "jevbench-1", 5),
        ("jevbench-240", 12000, 240, "jevbench-1", 5),
    ],
)
def test_the_suites_of_the_package_jevbench_load(name: str, tests: int, cases: int, edition: str, min_n: int) -> None:
    suite = load_suite(f"upstream:{name}")
    assert (suite.name, suite.edition, suite.min_n) == (name, edition, min_n)
    assert (len(suite.plan.tests), len(suite.plan.cases)) == (tests, cases)
    assert {test.relation.name for test in suite.plan.tests} == {relation.name for relation in select()}
    assert len({(test.relation.name, test.case.id, test.key) for test in suite.plan.tests}) == tests


def test_every_row_of_the_official_mini_can_be_decoded() -> None:
    trials = [trial for test in load_suite("upstream:jevbench-mini").plan.tests for trial in test.trials()]
    assert len(trials) == 1200
    assert all(list(trial.requests) == ["variant"] for trial in trials)


def test_the_official_mini_is_a_sample_that_names_its_base() -> None:
    suite = load_suite("upstream:jevbench-mini")
    base = load_suite("upstream:jevbench-240")
    assert set(suite.digests) == {"tests.jsonl.gz", *(f"jevbench-240/{file}" for file in base.digests)}
    assert {file: suite.digests[f"jevbench-240/{file}"] for file in base.digests} == base.digests
    # A sample's tests are its base's own, request for request.
    whole = {(test.relation.name, test.case.id, test.key): test for test in base.plan.tests}
    for test in suite.plan.tests[::100]:
        assert test.trials() == whole[test.relation.name, test.case.id, test.key].trials()


def test_loading_a_suite_of_the_package_does_not_import_it() -> None:
    code = (
        "import sys; from pytest_jevbench.suite import load_suite; load_suite('upstream:examples');"
        "print(sorted(m for m in sys.modules if m.partition('.')[0] == 'jevbench'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_copy_of_an_official_suite_runs_from_a_path(tmp_path: Path) -> None:
    shutil.copytree(upstream_folder() / "examples", tmp_path / "copy")
    copied, original = load_suite(str(tmp_path / "copy")), load_suite("upstream:examples")
    assert (copied.name, copied.digests, copied.plan_sha256) == ("examples", original.digests, original.plan_sha256)
    assert [test.trials() for test in copied.plan.tests] == [test.trials() for test in original.plan.tests]
    assert copied.edition != original.edition


def test_a_copy_of_a_sample_needs_its_base_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path / "bundled")
    shutil.copytree(upstream_folder() / "jevbench-mini", tmp_path / "jevbench-mini")
    assert "jevbench-240" in str(error_of(tmp_path / "jevbench-mini"))
    shutil.copytree(upstream_folder() / "jevbench-240", tmp_path / "jevbench-240")
    assert len(load_suite(str(tmp_path / "jevbench-mini")).plan.tests) == 1200


# A suite of one's own


def test_a_folder_is_a_suite(tmp_path: Path) -> None:
    suite = load_suite(str(frozen(tmp_path / "own", edition="mine-3", min_n=2, version="7")))
    assert (suite.name, suite.edition, suite.version, suite.min_n) == ("own", "mine-3", "7", 2)
    assert suite.folder == tmp_path / "own"
    assert suite.digests == {
        name: sha256((tmp_path / "own" / name).read_bytes()) for name in ("cases.jsonl", "tests.jsonl.gz")
    }
    assert list(suite.plan.cases) == ["mail-1", "call-1"]


def test_a_manifest_that_says_little_is_enough(tmp_path: Path) -> None:
    suite = load_suite(str(frozen(tmp_path / "own")))
    assert (suite.edition, suite.min_n) == ("local-1", 5)


def test_a_folder_is_found_relative_to_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    assert load_suite("./own").name == "own"


def test_the_digest_of_a_plan_does_not_depend_on_how_it_was_zipped(tmp_path: Path) -> None:
    text = lines([HEADER, ROW])
    one = write(tmp_path / "one", {"cases.jsonl": lines(CASES), "tests.jsonl.gz": zipped(text, 1)})
    other = write(
        tmp_path / "other", {"cases.jsonl": lines(CASES), "tests.jsonl.gz": gzip.compress(text, 9, mtime=5)}
    )
    first, second = load_suite(str(one)), load_suite(str(other))
    assert first.digests != second.digests
    assert first.plan_sha256 == second.plan_sha256 == sha256(text)


def test_a_reference_stands_for_the_case_s_own_question(tmp_path: Path) -> None:
    rows = [
        asking(["paid", {"@": "desk"}], ["desk", SWAPPED], ["new", NOUL | {"criteria": None}], relation="verbosity")
    ]
    (test,) = load_suite(str(frozen(tmp_path / "own", rows))).plan.tests
    (trial,) = test.trials()
    assert list(trial.requests["variant"].items()) == [("paid", DESK), ("desk", SWAPPED), ("new", NOUL)]
    assert list(trial.requests["variant"]["desk"]["criteria"]) == ["a", "b"]
    assert (trial.relation, trial.case, trial.key, trial.targets) == ("verbosity", "mail-1", "urgent", ("urgent",))


def test_variants_and_draws_of_a_question_are_one_test(tmp_path: Path) -> None:
    rows = [
        row(v=0),
        row(relation="verbosity"),
        row(v=1),
        row(v=0, t=1),
        row(key="paid", targets=["paid"]),
        row(case="call-1"),
    ]
    plan = load_suite(str(frozen(tmp_path / "own", rows))).plan
    found = [(test.relation.name, test.case.id, test.key, len(test.rows)) for test in plan.tests]
    assert found == [
        ("batch_solo", "mail-1", "urgent", 3),
        ("verbosity", "mail-1", "urgent", 1),
        ("batch_solo", "mail-1", "paid", 1),
        ("batch_solo", "call-1", "urgent", 1),
    ]
    assert [(trial.v, trial.t) for trial in plan.tests[0].trials()] == [(0, 0), (1, 0), (0, 1)]


def test_a_plan_is_selected_by_relation_and_by_domain(tmp_path: Path) -> None:
    rows = [row(), row(relation="verbosity"), row(case="call-1"), row(case="call-1", relation="verbosity")]
    plan = load_suite(str(frozen(tmp_path / "own", rows))).plan
    some = plan.select([CATALOGUE["verbosity"]], ["calls"])
    assert [(test.relation.name, test.case.id) for test in some.tests] == [("verbosity", "call-1")]
    assert plan.select(CATALOGUE.values()).tests == plan.tests
    assert plan.select([CATALOGUE["batch_order"]]).tests == ()


def test_a_diagnostic_may_send_no_request_or_several(tmp_path: Path) -> None:
    rows = [
        row(relation="confidence_consistency", requests={}),
        row(
            relation="routing_stability",
            requests={"solo": [["urgent", {"@": "urgent"}]], "neutral_key": [["q", {"@": "urgent"}]]},
            params={"read": {"solo": "urgent", "neutral_key": "q"}},
        ),
    ]
    first, second = load_suite(str(frozen(tmp_path / "own", rows))).plan.tests
    assert first.trials()[0].requests == {}
    assert list(second.trials()[0].requests) == ["solo", "neutral_key"]


def test_a_sample_takes_the_cases_of_its_base(tmp_path: Path) -> None:
    base = frozen(tmp_path / "base")
    suite = load_suite(str(sample(tmp_path / "mini", base)))
    assert list(suite.plan.cases) == ["mail-1", "call-1"]
    assert set(suite.digests) == {"tests.jsonl.gz", "base/cases.jsonl", "base/tests.jsonl.gz"}


def test_a_sample_finds_a_bundled_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path / "bundled")
    base = frozen(tmp_path / "bundled" / "base")
    assert load_suite(str(sample(tmp_path / "mini", base))).name == "mini"


def test_files_that_are_no_data_may_lie_in_the_folder(tmp_path: Path) -> None:
    folder = frozen(tmp_path / "own")
    (folder / "README.md").write_text("about this suite", encoding="utf-8")
    assert load_suite(str(folder)).name == "own"


# Names


def test_a_bundled_suite_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path)
    frozen(tmp_path / "own")
    assert suite_names() == ["own"]
    assert load_suite("own").folder == tmp_path / "own"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("jevbench-mini", "Use upstream:jevbench-mini"),
        ("jevbench-240", "Use upstream:jevbench-240"),
        ("ownn", "Did you mean 'own'?"),
        ("something-else", "upstream:jevbench-240"),
    ],
)
def test_an_unknown_name_is_answered_with_what_to_write_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path)
    frozen(tmp_path / "own")
    with pytest.raises(SuiteError, match=name) as caught:
        load_suite(name)
    assert hint in caught.value.hint


def test_an_unknown_official_name_is_answered_with_the_closest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path)
    with pytest.raises(SuiteError, match="'jevbench-min'") as caught:
        load_suite("upstream:jevbench-min")
    assert "jevbench-mini" in caught.value.hint


def test_a_folder_named_without_a_separator_is_answered_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen(tmp_path / "zzz")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteError) as caught:
        load_suite("zzz")
    assert "./zzz" in caught.value.hint


@pytest.mark.parametrize("name", ["upstream:jevbench-mini", "jevbench-mini"])
def test_without_the_package_jevbench_the_hint_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(suites, "bundled_folder", lambda: tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(SuiteError) as caught:
        load_suite(name)
    assert "pytest-jevbench[upstream]" in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    error = error_of(tmp_path / "nowhere")
    assert error.where == str(tmp_path / "nowhere")


def test_a_folder_without_a_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    assert error_of(tmp_path / "own").where == str(tmp_path / "own" / "manifest.json")


# Digests: what was touched after freezing


@pytest.mark.parametrize("file", ["cases.jsonl", "tests.jsonl.gz", "rewrites.jsonl"])
def test_a_changed_byte_is_an_error_that_names_the_file_and_both_digests(tmp_path: Path, file: str) -> None:
    folder = write(
        tmp_path / "own",
        {"cases.jsonl": lines(CASES), "tests.jsonl.gz": zipped(lines([HEADER, ROW])), "rewrites.jsonl": b""},
    )
    before = (folder / file).read_bytes()
    after = before[:-1] + b" " if before else b" "
    (folder / file).write_bytes(after)
    error = error_of(folder)
    assert f"{file} was changed" in error.what
    assert sha256(after) in error.found
    assert sha256(before) in error.expected


@pytest.mark.parametrize("file", ["cases.jsonl", "tests.jsonl.gz"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = frozen(tmp_path / "own")
    (folder / file).unlink()
    assert f"{file} is missing" in error_of(folder).what


@pytest.mark.parametrize("file", ["more.jsonl", "more.jsonl.gz", "rewrites.jsonl"])
def test_an_extra_file_is_named(tmp_path: Path, file: str) -> None:
    folder = frozen(tmp_path / "own")
    (folder / file).write_bytes(b"")
    assert f"{file} is not in the manifest" in error_of(folder).what


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    folder = frozen(tmp_path / "own")
    (folder / "cases.jsonl").unlink()
    (folder / "cases.jsonl").symlink_to(tmp_path / "moved.jsonl")
    assert "cases.jsonl" in str(error_of(folder))


def test_a_missing_base_is_named_with_the_places_looked_at(tmp_path: Path) -> None:
    base = frozen(tmp_path / "base")
    folder = sample(tmp_path / "mini", base)
    shutil.rmtree(base)
    error = error_of(folder)
    assert "'base'" in error.what
    assert str(base) in error.found


@pytest.mark.parametrize("file", ["cases.jsonl", "tests.jsonl.gz"])
def test_a_changed_file_of_the_base_is_named(tmp_path: Path, file: str) -> None:
    base = frozen(tmp_path / "base")
    folder = sample(tmp_path / "mini", base)
    (base / file).write_bytes((base / file).read_bytes() + b"\n")
    error = error_of(folder)
    assert file in error.what
    assert str(base) in error.where


def test_a_base_that_was_frozen_again_is_another_one(tmp_path: Path) -> None:
    base = frozen(tmp_path / "base")
    folder = sample(tmp_path / "mini", base)
    frozen(base, [ROW, row(v=1)])
    error = error_of(folder)
    assert "tests.jsonl.gz" in error.what
    assert error.where == str(base / "manifest.json")


def test_a_file_the_base_no_longer_has_is_named(tmp_path: Path) -> None:
    base = frozen(tmp_path / "base")
    digests = {name: sha256((base / name).read_bytes()) for name in ("cases.jsonl", "tests.jsonl.gz")}
    folder = sample(tmp_path / "mini", base, base_files=digests | {"rewrites.jsonl": "0" * 64})
    assert "rewrites.jsonl" in error_of(folder).what


@pytest.mark.parametrize("known", [{}, {"tests.jsonl.gz"}], ids=["nothing", "the plan only"])
def test_a_sample_that_does_not_say_which_cases_it_was_drawn_from_is_refused(tmp_path: Path, known: set[str]) -> None:
    base = frozen(tmp_path / "base")
    digests = {name: sha256((base / name).read_bytes()) for name in known}
    folder = sample(tmp_path / "mini", base, base_files=digests)
    assert "base_files" in str(error_of(folder))


def test_a_broken_case_of_a_suite_is_named_by_file_and_line(tmp_path: Path) -> None:
    files = {"cases.jsonl": lines([*CASES, {"id": 3}]), "tests.jsonl.gz": zipped(lines([HEADER, ROW]))}
    error = error_of(write(tmp_path / "own", files), CaseError)
    assert error.where.startswith(f"{tmp_path / 'own' / 'cases.jsonl'}:3")


def test_a_suite_without_a_plan_or_without_cases_says_which(tmp_path: Path) -> None:
    assert "no frozen plan" in error_of(write(tmp_path / "a", {"cases.jsonl": lines(CASES)})).what
    assert "no cases" in error_of(write(tmp_path / "b", {"tests.jsonl.gz": zipped(lines([HEADER, ROW]))})).what


# Manifests

MANIFESTS: dict[str, tuple[str, Any, str]] = {
    "no name": ("name", None, "None"),
    "a name that is a number": ("name", 3, "3"),
    "an empty name": ("name", "", "''"),
    "a name with a slash": ("name", "a/b", "'a/b'"),
    "a name with a colon": ("name", "a::b", "'a::b'"),
    "a name with a bracket": ("name", "a[b]", "'a[b]'"),
    "a name with a percent sign": ("name", "a%b", "'a%b'"),
    "a name with a space at the end": ("name", "a ", "'a '"),
    "a name of two lines": ("name", "a\nb", "'a\\nb'"),
    "a name with a null character": ("name", "a\0b", "'a\\x00b'"),
    "a name with an escape sequence": ("name", "a\x1b7b", "'a\\x1b7b'"),
    "no files": ("files", None, "None"),
    "files that are empty": ("files", {}, "{}"),
    "files that are a list": ("files", ["cases.jsonl"], "['cases.jsonl']"),
    "min_n of zero": ("min_n", 0, "0"),
    "min_n that is true": ("min_n", True, "True"),
    "min_n that is text": ("min_n", "5", "'5'"),
    "min_n with a fraction": ("min_n", 2.5, "2.5"),
    "min_n that is null": ("min_n", None, "None"),
    "an edition that is a number": ("edition", 5, "5"),
    "an edition that is a list": ("edition", ["mine"], "['mine']"),
    "a version that is an object": ("version", {"major": 1}, "{'major': 1}"),
    "a version that is null": ("version", None, "None"),
    "a base that is a number": ("base", 5, "5"),
    "a base that is null": ("base", None, "None"),
}


@pytest.mark.parametrize(("field", "value", "shown"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_broken_manifest_names_file_field_and_value(tmp_path: Path, field: str, value: Any, shown: str) -> None:
    error = error_of(frozen(tmp_path / "own", **{field: value}))
    assert error.where.startswith(str(tmp_path / "own" / "manifest.json"))
    assert field in error.where + error.what + error.expected
    assert shown in error.found


@pytest.mark.parametrize("value", [None, [], "all"], ids=repr)
def test_a_sample_without_the_digests_of_its_base_says_so(tmp_path: Path, value: Any) -> None:
    folder = sample(tmp_path / "mini", frozen(tmp_path / "base"), base_files=value)
    assert "base_files" in str(error_of(folder))


def test_a_digest_that_is_no_text_is_shown(tmp_path: Path) -> None:
    error = error_of(frozen(tmp_path / "own", files={"cases.jsonl": 5, "tests.jsonl.gz": None}))
    assert error.expected == "5"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"[1]", ""),
        (b"\xff", ""),
        (b'{"name": "a", "name": "b"}', ""),
        (b"", ":1:1"),
        (b'{\n  "name": "own",\n  version: 3\n}', ":3:3"),
    ],
    ids=["an array", "no UTF-8", "a key twice", "an empty file", "no JSON in line 3"],
)
def test_a_manifest_that_is_no_object_is_named_with_the_place(tmp_path: Path, text: bytes, place: str) -> None:
    folder = frozen(tmp_path / "own")
    (folder / "manifest.json").write_bytes(text)
    assert error_of(folder).where == f"{folder / 'manifest.json'}{place}"


# Plans

OPTIONS_256 = {f"o{i}": None for i in range(256)}

BROKEN_ROWS: dict[str, tuple[Any, str, str]] = {
    "no JSON": (b'{"case": "mail-1", ', ":20", "no JSON"),
    "no UTF-8": (b'{"case": "caf\xe9"}', "", "UTF-8"),
    "an array": ([1, 2], "", "[1, 2]"),
    "a key twice": (b'{"case": "mail-1", "case": "call-1"}', "", "'case'"),
    "a request twice": (lines([ROW]).replace(b'"params"', b'"requests": {}, "params"'), "", "'requests'"),
    "a missing field": ({key: value for key, value in ROW.items() if key != "reduced"}, "", "reduced"),
    "an unknown relation": (row(relation="batch_sole"), "", "Did you mean 'batch_solo'?"),
    "a relation that is a list": (row(relation=["batch_solo"]), "", "['batch_solo']"),
    "an unknown case": (row(case="mail-2"), "", "'mail-2'"),
    "a case that is a number": (row(case=1), "", "1"),
    "an unknown question": (row(key="urgentt"), "", "'urgentt'"),
    "a question that is a list": (row(key=["urgent"]), "", "['urgent']"),
    "no targets": (row(targets=[]), "", "[]"),
    "targets that are text": (row(targets="urgent"), "", "'urgent'"),
    "an unknown target": (row(targets=["urgent", "desks"]), "", "'desks'"),
    "a target that is null": (row(targets=[None]), "", "None"),
    "a variant below zero": (row(v=-1), "", "-1"),
    "a variant that is true": (row(v=True), "", "True"),
    "a variant that is text": (row(v="0"), "", "'0'"),
    "a draw with a fraction": (row(t=0.5), "", "0.5"),
    "a draw that is null": (row(t=None), "", "None"),
    "params that are a list": (row(params=["option"]), "", "['option']"),
    "params that are null": (row(params=None), "", "None"),
    "requests that are a list": (row(requests=[["urgent", NOUL]]), "", "'urgent'"),
    "no request": (row(requests={}), "", "[]"),
    "another label": (row(requests={"solo": [["urgent", NOUL]]}), "", "['solo']"),
    "two labels": (
        row(requests={"variant": [["urgent", NOUL]], "solo": [["urgent", NOUL]]}),
        "",
        "['variant', 'solo']",
    ),
    "an empty request": (asking(), ": requests.variant", "[]"),
    "a request that is an object": (row(requests={"variant": {"urgent": NOUL}}), ": requests.variant", "{'urgent'"),
    "a question without a key": (asking(NOUL), ": requests.variant", "'noul'"),
    "a pair of three": (asking(["urgent", NOUL, 1]), ": requests.variant", "'urgent'"),
    "a key that is a number": (asking([1, NOUL]), ": requests.variant", "[1, "),
    "an empty key": (asking(["", NOUL]), ": requests.variant", "['', "),
    "a key asked twice": (asking(["q", NOUL], ["q", PAID]), ": requests.variant", "'q'"),
    "an unknown reference": (asking(["urgent", {"@": "nobody"}]), ": requests.variant", "{'@': 'nobody'}"),
    "a reference that is null": (asking(["urgent", {"@": None}]), ": requests.variant", "{'@': None}"),
    "a reference that is a list": (asking(["urgent", {"@": ["urgent"]}]), ": requests.variant", "{'@': ['urgent']}"),
    "a reference with more": (asking(["urgent", {"@": "urgent", "type": "noul"}]), ": requests.variant", "'type'"),
    "a question that is text": (asking(["q", "urgent?"]), ": requests.variant.q", "'urgent?'"),
    "a question of an unknown type": (asking(["q", NOUL | {"type": "bool"}]), ": requests.variant.q", "'bool'"),
    "a question with another field": (asking(["q", NOUL | {"state": "s"}]), ": requests.variant.q.state", "'s'"),
    "one option": (asking(["q", DESK | {"criteria": {"a": "x"}}]), ": requests.variant.q.criteria", "{'a': 'x'}"),
    "256 options": (asking(["q", DESK | {"criteria": OPTIONS_256}]), ": requests.variant.q.criteria", "'o0'"),
    "an illegal second question": (
        asking(["urgent", {"@": "urgent"}], ["q", DESK | {"criteria": {"a": "x", "b": 5}}]),
        ": requests.variant.q.criteria.b",
        "5",
    ),
}


@pytest.mark.parametrize(("broken", "place", "shown"), BROKEN_ROWS.values(), ids=BROKEN_ROWS)
def test_a_broken_row_is_named_by_file_line_and_value(tmp_path: Path, broken: Any, place: str, shown: str) -> None:
    folder = frozen(tmp_path / "own", [ROW, b"", broken, row(v=1)])
    error = error_of(folder, PlanError)
    file = folder / "tests.jsonl.gz"
    assert error.where == f"{file}:4{place}"
    assert shown in str(error)


HEADERS: dict[str, tuple[Any, str]] = {
    "a row in its place": (ROW, "no plan header"),
    "an array": ([1], "no plan header"),
    "no JSON": (b"plan", "no JSON"),
    "an empty line": (b"", "no JSON"),
    "a later format": (HEADER | {"format": 2}, "found 2"),
    "a format that is text": (HEADER | {"format": "1"}, "found '1'"),
}


@pytest.mark.parametrize(("header", "said"), HEADERS.values(), ids=HEADERS)
def test_a_plan_without_a_usable_header_names_its_first_line(tmp_path: Path, header: Any, said: str) -> None:
    folder = frozen(tmp_path / "own", header=header)
    error = error_of(folder, PlanError)
    assert error.where.startswith(f"{folder / 'tests.jsonl.gz'}:1")
    assert said in str(error)


def test_a_plan_without_rows_is_an_error(tmp_path: Path) -> None:
    folder = frozen(tmp_path / "own", [])
    assert "no rows" in error_of(folder, PlanError).what


BROKEN_ZIPS: dict[str, Callable[[bytes], bytes]] = {
    "plain text": lambda data: data,
    "cut off": lambda data: zipped(data)[:-20],
    "a damaged byte": lambda data: zipped(data)[:40] + b"\xff\xff\xff" + zipped(data)[43:],
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("broken", BROKEN_ZIPS.values(), ids=BROKEN_ZIPS)
def test_a_plan_that_cannot_be_unzipped_is_named(tmp_path: Path, broken: Callable[[bytes], bytes]) -> None:
    files = {"cases.jsonl": lines(CASES), "tests.jsonl.gz": broken(lines([HEADER, ROW]))}
    folder = write(tmp_path / "own", files)
    assert str(folder / "tests.jsonl.gz") in error_of(folder).where
