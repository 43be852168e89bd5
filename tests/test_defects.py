"""Every relation sees at least one planted defect, every defect is seen, and `docs/power.md` says which by which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from defects import DEFECTS, Defect, broken
from oracle import Oracle
from power import Rates, examples, failed, markdown, measure
from pytest_jevbench.relations import select

PAGE = Path(__file__).parent.parent / "docs" / "power.md"
RELATIONS = [relation.name for relation in select()]


@pytest.fixture(scope="module")
def found() -> Mapping[str, Rates]:
    return measure()


def test_without_a_defect_no_test_of_any_relation_fails(found: Mapping[str, Rates]) -> None:
    assert list(found[""]) == RELATIONS
    assert failed(found[""]) == []


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_fails_the_relations_it_was_planted_for(found: Mapping[str, Rates], defect: Defect) -> None:
    assert set(defect.planted) <= set(failed(found[defect.name]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_is_failed_by_a_defect_planted_for_it(found: Mapping[str, Rates], relation: str) -> None:
    planted = [defect.name for defect in DEFECTS if relation in defect.planted]

    assert planted
    assert all(found[name][relation][0] > 0 for name in planted)


def test_every_defect_has_a_name_of_its_own() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_still_answers_with_distributions(defect: Defect) -> None:
    plan, bank = examples()
    (case,) = plan.cases.values()
    answers: dict[str, Any] = broken(Oracle([case], bank), defect)(case.state, case.questions)

    for answer in answers.values():
        p = [answer["noul"]] if answer["type"] == "noul" else list(answer["probabilities"].values())
        assert all(0 <= each <= 1 for each in p)
        assert answer["type"] == "noul" or sum(p) == pytest.approx(1)


def test_the_page_says_what_was_measured(found: Mapping[str, Rates]) -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(found), "python tests/power.py > docs/power.md"
