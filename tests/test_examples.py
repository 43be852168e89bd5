"""The bundled suite `examples`: what it promises to hold, that freezing it again changes nothing, that it is ours."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_jevbench.case import Case
from pytest_jevbench.freezing import freeze
from pytest_jevbench.planning import full_plan
from pytest_jevbench.relations import select
from pytest_jevbench.rewrites import Bank, Rewrite, read_rewrites
from pytest_jevbench.suite import PLAN_FILE, Suite, bundled_folder, load_suite, upstream_folder

FOLDER = bundled_folder() / "examples"
RUN = 8
"""So many words in a row, the same as elsewhere, are taken for a copy."""
WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’][^\W_]+)?")
"""A word, or a single Chinese character: Chinese is written without spaces."""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("examples")


@pytest.fixture(scope="module")
def case(suite: Suite) -> Case:
    (only,) = suite.plan.cases.values()
    return only


@pytest.fixture(scope="module")
def rewrites() -> list[Rewrite]:
    return read_rewrites(FOLDER / "rewrites.jsonl")


def of_type(case: Case, kind: str) -> dict[str, Any]:
    return {key: question for key, question in case.questions.items() if question["type"] == kind}


def texts(value: Any) -> Iterator[str]:
    """Walk over every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts(each)


def texts_of_files(folder: Path) -> set[str]:
    """Collect every text of the data files of a suite; a translation's source is JSON text and taken as it stands."""
    found: set[str] = set()
    for path in (*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            found.update(texts(json.loads(line)))
    return found


def runs(text: str) -> set[tuple[str, ...]]:
    words = WORD.findall(text.lower())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


@pytest.fixture(scope="module")
def upstream() -> set[str]:
    return set().union(*(texts_of_files(path.parent) for path in upstream_folder().glob("*/manifest.json")))


def shared(ours: set[str], theirs: set[str]) -> set[str]:
    wanted = set().union(*map(runs, ours))
    return {" ".join(run) for text in theirs for run in runs(text) & wanted}


def test_it_introduces_itself_as_a_demonstration(suite: Suite) -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))

    assert (suite.name, suite.version, suite.edition, suite.min_n) == ("examples", "1", "pytest-jevbench-1", 1)
    assert "demonstration" in manifest["description"]
    assert "never a result" in manifest["description"]


def test_every_scored_relation_has_one_test(suite: Suite) -> None:
    tests = Counter(test.relation.name for test in suite.plan.tests)

    assert tests == {relation.name: 1 for relation in select()}
    assert len(tests) == 50


def test_its_one_case_has_questions_of_every_type(case: Case) -> None:
    assert case.domain == "operations"
    assert len(case.questions) == 8
    assert len(of_type(case, "noul")) >= 4
    assert len(of_type(case, "choice")) >= 2
    assert len(of_type(case, "score")) >= 1
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", key) for key in case.questions)


def test_its_questions_can_be_quoted_inside_others(case: Case) -> None:
    for question in case.questions.values():
        assert re.fullmatch(r'(Is|Does|Has|Which|How) [^"?]+\?', question["instructions"])


def test_its_menus_and_scales_are_long_enough_for_every_relation(case: Case) -> None:
    for question in of_type(case, "choice").values():
        assert len(question["criteria"]) >= 4
        assert all(question["criteria"].values())
    for question in of_type(case, "score").values():
        assert len(set(question["criteria"])) == len(question["criteria"]) >= 4


def test_its_state_is_a_message_of_about_two_hundred_words_with_figures(case: Case) -> None:
    assert 150 <= len(case.state.split()) <= 250
    assert len(set(re.findall(r"\d+", case.state))) >= 10


def test_its_threshold_stands_in_the_text(case: Case) -> None:
    ((subject, value),) = case.thresholds

    assert re.search(rf"\b{value} {subject}\b", case.state)


def test_every_choice_has_a_hierarchy_of_two_blocks(case: Case) -> None:
    assert case.hierarchies.keys() == of_type(case, "choice").keys()
    for declared in case.hierarchies.values():
        assert [len(blocks) for blocks in declared] == [2]


def test_the_bank_rewrites_everything_that_can_be_rewritten(case: Case, rewrites: list[Rewrite]) -> None:
    bank = Bank(rewrites)
    languages = [Bank([r for r in rewrites if r.kind == f"translate:{language}"]) for language in ("de", "zh")]
    for question in case.questions.values():
        assert bank.first("paraphrase", question["instructions"])
        for language in languages:
            found = language.translation(question)
            assert found is not None
            assert found[1]["instructions"] != question["instructions"]
    for question in of_type(case, "noul").values():
        assert bank.first("negation", question["instructions"])
    for question in of_type(case, "choice").values():
        for description in question["criteria"].values():
            assert bank.first("description", description)


def test_the_bank_rewrites_nothing_else(case: Case, rewrites: list[Rewrite]) -> None:
    instructions = {question["instructions"] for question in case.questions.values()}
    sources = {
        "paraphrase": instructions,
        "negation": {question["instructions"] for question in of_type(case, "noul").values()},
        "description": {text for q in of_type(case, "choice").values() for text in q["criteria"].values()},
    }
    for rewrite in rewrites:
        if rewrite.kind.startswith("translate:"):
            assert json.loads(rewrite.source)["instructions"] in instructions
        else:
            assert rewrite.source in sources[rewrite.kind]
            assert rewrite.rewrite not in set().union(*sources.values())


def test_the_bank_claims_no_audit(rewrites: list[Rewrite]) -> None:
    lines = [json.loads(line) for line in (FOLDER / "rewrites.jsonl").read_text(encoding="utf-8").splitlines()]

    assert all(rewrite.accepted and rewrite.audited is None for rewrite in rewrites)
    assert {line["written_by"] for line in lines} == {"the pytest-jevbench developers"}


def test_freezing_it_again_changes_nothing(suite: Suite, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(FOLDER, copy)
    (copy / PLAN_FILE).unlink()

    again = freeze(copy)

    def manifest(folder: Path) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        # The compressed plan may differ with the zlib build; its text may not.
        del read["files"][PLAN_FILE], read["built_with"]
        return read

    assert again.plan_sha256 == suite.plan_sha256
    assert gzip.decompress((copy / PLAN_FILE).read_bytes()) == gzip.decompress((FOLDER / PLAN_FILE).read_bytes())
    assert manifest(copy) == manifest(FOLDER)


def test_its_case_and_its_bank_repeat_nothing_of_the_upstream_suites(upstream: set[str]) -> None:
    ours: set[str] = set()
    for name in ("cases.jsonl", "rewrites.jsonl"):
        for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
            ours.update(texts(json.loads(line)))

    assert len(upstream) > 10_000
    assert shared(ours, upstream) == set()


def test_no_edited_question_repeats_the_wording_of_the_upstream_suites(
    case: Case, rewrites: list[Rewrite], upstream: set[str]
) -> None:
    batches = [batch for trial in full_plan([case], select(), Bank(rewrites)) for batch in trial.requests.values()]
    ours = {text for batch in batches for text in texts(batch)}

    assert len(ours) > 200
    assert shared(ours, upstream) == set()


def test_a_model_runs_through_all_of_it(run: Callable[..., pytest.RunResult]) -> None:
    # Uniform answers break the laws that change the number of answers, whatever the questions say.
    assert run("--jev-suite=examples", "--jev-embedded=uniform").parseoutcomes() == {"passed": 41, "violated": 9}
