"""Verdicts and the coherence score, against a slow second implementation written from the definitions alone."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jevbench.errors import PlanError
from pytest_jevbench.judge import Verdict, from_plain, graded, is_violation, judge, plain, rejudged
from pytest_jevbench.relations import CATALOGUE, Evidence, Trial
from pytest_jevbench.scores.coherence import Coherence, View, by_domain, check, picks, score, wilson
from pytest_jevbench.wire import Answers

CODES = ("REP", "BAT", "MEA", "LOG", "CHO")
ONE_EACH = {
    "REP": "verbosity",
    "BAT": "batch_solo",
    "MEA": "option_clone",
    "LOG": "count_upper",
    "CHO": "pairwise_iia",
}
GROUP_OF = {name: relation.group for name, relation in CATALOGUE.items()}


def verdict(
    relation: str, case: str = "c1", deviation: float = 0.0, tolerance: float = 0.05, domain: str = "", **rest: Any
) -> Verdict:
    """Make a verdict whose verdict and grade follow from its deviation by the definitions."""
    finite = math.isfinite(deviation)
    violated = not finite or deviation > tolerance + 1e-9
    grade = 0.0 if not finite else 1 - min(1, max(0, deviation - tolerance) / (1 - tolerance))
    return Verdict(relation, case, "q", domain, deviation, tolerance, violated, grade, rest.pop("flip", None), **rest)


# The second implementation: plain loops over the definitions


def slow_mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def slow_overall(values: Mapping[str, float]) -> float | None:
    """Mean of the five dimensions, each the mean of its relations; None unless each has one."""
    dimensions = [slow_mean([v for name, v in values.items() if GROUP_OF[name].startswith(code)]) for code in CODES]
    known = [value for value in dimensions if value is not None]
    return sum(known) / 5 if len(known) == 5 else None


def slow_relation(found: Sequence[Verdict], *, strict: bool) -> float:
    if strict:
        return 1 - sum(1 for v in found if v.violated) / len(found)
    return sum(v.graded for v in found) / len(found)


class Slow:
    """Section by section what `score` computes at once."""

    def __init__(
        self, verdicts: Sequence[Verdict], planned: Mapping[str, int], min_n: int, *, coverage_rule: bool = True
    ) -> None:
        self.verdicts, self.incomplete, self.scored, self.listed = verdicts, set[str](), list[str](), list[str]()
        for name, n in planned.items():
            if n == 0:
                continue
            judged = len(self.of(name))
            if name in ("confidence_consistency", "routing_stability"):
                self.listed.append(name)
            elif coverage_rule and judged / n < 0.95:
                self.listed.append(name)
                self.incomplete.add(name)
            elif judged < min_n:
                self.listed.append(name)
            else:
                self.scored.append(name)

    def of(self, name: str, verdicts: Sequence[Verdict] | None = None) -> list[Verdict]:
        return [v for v in (self.verdicts if verdicts is None else verdicts) if v.relation == name]

    def relations(self, *, strict: bool) -> dict[str, float]:
        return {name: slow_relation(self.of(name), strict=strict) for name in self.scored}

    def part(self, prefix: str, *, strict: bool) -> float | None:
        """The score of a group or dimension, by the start of its group's name."""
        if any(GROUP_OF[name].startswith(prefix) for name in self.incomplete):
            return None
        return slow_mean(
            [v for name, v in self.relations(strict=strict).items() if GROUP_OF[name].startswith(prefix)]
        )

    def overall(self, *, strict: bool) -> float | None:
        return None if self.incomplete else slow_overall(self.relations(strict=strict))

    def interval(self, draws: int, *, strict: bool) -> tuple[float, float] | None:
        counted = [v for v in self.verdicts if v.relation in self.scored]
        cases = sorted({v.case for v in counted})
        if draws == 0 or len(cases) < 2 or self.incomplete:
            return None
        rng = random.Random(0)
        overalls = []
        for _ in range(draws):
            drawn = [rng.choice(cases) for _ in cases]
            pool = [v for case in drawn for v in counted if v.case == case]
            present = {v.relation for v in pool}
            overall = slow_overall({name: slow_relation(self.of(name, pool), strict=strict) for name in present})
            if overall is not None:
                overalls.append(overall)
        if not overalls:
            return None
        overalls.sort()
        last = len(overalls) - 1
        return overalls[int(0.025 * last)], overalls[int(0.975 * last)]


# A deviation of each kind: kept, on the tolerance, just beyond, far beyond, not a number
DEVIATIONS = st.sampled_from([0.0, 0.03, 0.05, 0.05 + 5e-10, 0.051, 0.3, 0.9, 1.0, 1.4, math.inf, math.nan])
SOME = ["verbosity", "key_rename", "option_rename", "batch_solo", "batch_order", "option_clone", "option_merge"]
SOME += [
    "negation_wrapper",
    "count_upper",
    "threshold_sweep",
    "pairwise_iia",
    "remove_option_iia",
    "routing_stability",
]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Verdict], dict[str, int], int]:
    """Draw verdicts, the planned tests of each relation, and min_n."""
    # Without one relation in each dimension there is no overall score: most runs have all five, some do not.
    names = draw(st.permutations(SOME))
    chosen = [name for name in names if name in ONE_EACH.values() or draw(st.booleans())]
    if draw(st.integers(0, 9)) == 0:
        chosen = chosen[1:]
    cases = [f"case-{i}" for i in draw(st.permutations(range(draw(st.integers(1, 12)))))]
    verdicts, planned = [], {}
    for name in chosen:
        for _ in range(draw(st.integers(1, 6))):
            case = draw(st.sampled_from(cases))
            verdicts.append(verdict(name, case, draw(DEVIATIONS), domain=f"domain-{case[-1]}"))
        # One in ten relations misses some of its tests.
        planned[name] = len([v for v in verdicts if v.relation == name]) + draw(st.sampled_from([0] * 9 + [2]))
    return draw(st.permutations(verdicts)), planned, draw(st.sampled_from([1, 1, 2, 3]))


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, abs_tol=1e-12)


def agrees(view: View, slow: Slow, *, strict: bool) -> None:
    relations = slow.relations(strict=strict)
    assert view.relations.keys() == relations.keys()
    assert all(same(view.relations[name], value) for name, value in relations.items())
    for code in CODES:
        assert same(view.dimensions[code], slow.part(code, strict=strict))
    for group in set(GROUP_OF.values()):
        assert same(view.groups.get(group), slow.part(group, strict=strict))
    assert same(view.overall, slow.overall(strict=strict))


@settings(deadline=None, max_examples=150)
@given(runs())
def test_relations_groups_dimensions_and_overall_are_what_the_definitions_say(
    run: tuple[list[Verdict], dict[str, int], int],
) -> None:
    verdicts, planned, min_n = run
    found, slow = score(verdicts, planned, CATALOGUE, min_n=min_n, bootstrap=0), Slow(verdicts, planned, min_n)
    agrees(found.strict, slow, strict=True)
    agrees(found.graded, slow, strict=False)
    assert [entry.relation for entry in found.unscored] == slow.listed
    assert {entry.relation for entry in found.unscored if entry.incomplete} == slow.incomplete
    assert list(found.checks) == list(planned)
    assert found.ci == {"overall": None, "graded_overall": None}


@settings(deadline=None, max_examples=80)
@given(runs(), st.sampled_from([1, 2, 7, 40, 41]))
def test_intervals_are_the_percentiles_of_a_bootstrap_over_cases(
    run: tuple[list[Verdict], dict[str, int], int], draws: int
) -> None:
    verdicts, planned, min_n = run
    found, slow = score(verdicts, planned, CATALOGUE, min_n=min_n, bootstrap=draws), Slow(verdicts, planned, min_n)
    for name, strict in (("overall", True), ("graded_overall", False)):
        interval, expected = found.ci[name], slow.interval(draws, strict=strict)
        assert (interval is None) == (expected is None)
        if interval is not None and expected is not None:
            assert interval == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(runs())
def test_a_domain_is_scored_on_its_own_cases_without_coverage_and_interval(
    run: tuple[list[Verdict], dict[str, int], int],
) -> None:
    verdicts, planned, min_n = run
    found = by_domain(verdicts, planned, CATALOGUE, min_n=min_n)
    assert set(found) == {v.domain for v in verdicts}
    for domain, result in found.items():
        slow = Slow([v for v in verdicts if v.domain == domain], planned, min_n, coverage_rule=False)
        agrees(result.strict, slow, strict=True)
        agrees(result.graded, slow, strict=False)
        assert result.ci == {"overall": None, "graded_overall": None}


@settings(deadline=None, max_examples=30)
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_verdicts_changes_no_number(run: tuple[list[Verdict], dict[str, int], int], rng: Any) -> None:
    verdicts, planned, min_n = run
    other = list(verdicts)
    rng.shuffle(other)
    one, two = (score(v, planned, CATALOGUE, min_n=min_n, bootstrap=20) for v in (verdicts, other))
    assert (one.strict, one.unscored, one.cases) == (two.strict, two.unscored, two.cases)
    assert one.ci["overall"] == two.ci["overall"]


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 3))
def test_picks_are_those_of_random_choice_in_the_same_order(cases: int, draws: int, seed: int) -> None:
    rng, names = random.Random(seed), [f"case-{i:02}" for i in range(cases)]
    by_choice = [[rng.choice(names) for _ in names] for _ in range(draws)]
    assert [[names[i] for i in draw] for draw in picks(cases, draws, seed)] == by_choice


# Worked examples


def run_of(deviations: Mapping[str, Sequence[float]], **more: Any) -> Coherence:
    """Score relations given as lists of deviations, one case each; `planned` adds to the planned tests."""
    verdicts = [verdict(name, f"c{i}", d) for name, found in deviations.items() for i, d in enumerate(found)]
    planned = {name: len(found) for name, found in deviations.items()} | more.pop("planned", {})
    return score(verdicts, planned, CATALOGUE, **{"min_n": 1, "bootstrap": 0} | more)


KEPT = {name: [0.0] * 4 for name in ONE_EACH.values()}


def test_the_overall_score_is_the_mean_of_dimensions_that_are_means_of_relations() -> None:
    found = run_of(
        {
            "verbosity": [0, 0, 0, 1],  # 3/4
            "option_rename": [0, 1],  # 1/2
            "option_permutation": [1, 1],  # 0
            "batch_solo": [0, 0],  # 1
            "option_clone": [0, 1],  # 1/2
            "count_upper": [0, 0, 1, 1],  # 1/2
            "pairwise_iia": [1],  # 0
        }
    )
    assert found.strict.relations["verbosity"] == 0.75
    # Groups: invariance 3/4, equivariance 1/4; the dimension is the mean of three relations, not of two groups.
    assert found.strict.groups["REP.invariance"] == 0.75
    assert found.strict.groups["REP.equivariance"] == 0.25
    assert found.strict.dimensions == pytest.approx({"REP": 1.25 / 3, "BAT": 1, "MEA": 0.5, "LOG": 0.5, "CHO": 0})
    assert found.strict.overall == pytest.approx((1.25 / 3 + 1 + 0.5 + 0.5 + 0) / 5)


def test_the_graded_score_weighs_how_far_a_law_was_missed() -> None:
    # At a tolerance of .05: .05 counts 1, .24 counts 1 - .19/.95 = .8, 1 counts 0.
    found = run_of(KEPT | {"verbosity": [0.05, 0.24, 1.0]})
    assert found.graded.relations["verbosity"] == pytest.approx(1.8 / 3)
    assert found.strict.relations["verbosity"] == pytest.approx(1 / 3)
    assert found.graded.overall == pytest.approx((0.6 + 4) / 5)


@pytest.mark.parametrize("missing", list(ONE_EACH))
def test_there_is_no_overall_score_unless_every_dimension_has_a_scored_relation(missing: str) -> None:
    found = run_of({name: deviations for name, deviations in KEPT.items() if name != ONE_EACH[missing]}, bootstrap=10)
    assert found.strict.overall is None
    assert found.graded.overall is None
    assert [code for code, value in found.strict.dimensions.items() if value is None] == [missing]
    assert found.ci == {"overall": None, "graded_overall": None}


def test_a_relation_with_too_few_tests_is_listed_with_the_numbers_and_left_out() -> None:
    found = run_of(KEPT | {"key_rename": [1.0, 1.0, 1.0]}, min_n=4)
    (entry,) = found.unscored
    assert (entry.relation, entry.incomplete) == ("key_rename", False)
    assert "3" in entry.reason
    assert "4" in entry.reason
    assert found.strict.overall == 1
    assert "key_rename" not in found.strict.relations


def test_five_tests_are_enough_unless_a_suite_says_otherwise() -> None:
    verdicts = [verdict("verbosity", f"c{i}") for i in range(5)]
    assert score(verdicts, {"verbosity": 5}, CATALOGUE, bootstrap=0).strict.relations == {"verbosity": 1}
    assert score(verdicts[1:], {"verbosity": 4}, CATALOGUE, bootstrap=0).strict.relations == {}


@pytest.mark.parametrize(
    ("judged", "planned", "whole"), [(19, 20, True), (18, 19, False), (95, 100, True), (94, 100, False)]
)
def test_a_relation_needs_ninety_five_percent_of_its_planned_tests(judged: int, planned: int, *, whole: bool) -> None:
    found = run_of({"verbosity": [0.0] * judged}, planned={"verbosity": planned})
    assert ("verbosity" in found.strict.relations) == whole
    assert [entry.incomplete for entry in found.unscored] == ([] if whole else [True])


def test_an_incomplete_relation_takes_its_group_its_dimension_and_the_overall_down() -> None:
    everything = KEPT | {"key_rename": [0.0] * 4, "option_rename": [0.0] * 4}
    found = run_of(everything, planned={"key_rename": 10}, bootstrap=50)
    for view in (found.strict, found.graded):
        assert view.overall is None
        assert view.dimensions == {"REP": None, "BAT": 1, "MEA": 1, "LOG": 1, "CHO": 1}
        assert view.groups["REP.invariance"] is None
        assert view.groups["REP.equivariance"] == 1
        assert view.relations["verbosity"] == 1
    assert found.ci == {"overall": None, "graded_overall": None}
    (entry,) = found.unscored
    assert "4 of 10" in entry.reason


def test_coverage_is_looked_at_before_min_n() -> None:
    found = run_of(KEPT | {"key_rename": [0.0]}, planned={"key_rename": 2}, min_n=4)
    (entry,) = found.unscored
    assert entry.incomplete
    assert found.strict.overall is None


def test_a_relation_that_was_planned_but_never_judged_counts_as_coverage_zero() -> None:
    found = run_of(KEPT, planned={"key_rename": 1})
    (entry,) = found.unscored
    assert (entry.relation, entry.incomplete) == ("key_rename", True)
    assert found.checks["key_rename"].coverage == 0
    assert found.strict.overall is None
    assert found.strict.groups["REP.invariance"] is None


def test_a_relation_without_a_planned_test_is_not_listed() -> None:
    found = run_of(KEPT, planned={"key_rename": 0})
    assert found.unscored == ()
    assert "key_rename" not in found.checks


@pytest.mark.parametrize("judged", [0, 1, 4])
def test_a_diagnostic_is_listed_and_never_scored_and_has_no_coverage_rule(judged: int) -> None:
    found = run_of(KEPT | {"routing_stability": [1.0] * judged}, planned={"routing_stability": 4}, bootstrap=10)
    (entry,) = found.unscored
    assert (entry.relation, entry.incomplete) == ("routing_stability", False)
    assert "diagnostic" in entry.reason
    assert found.strict.overall == 1
    assert found.ci["overall"] == (1, 1)
    assert found.checks["routing_stability"].n == judged


def test_there_is_no_interval_for_a_single_case() -> None:
    verdicts = [verdict(name, "only") for name in ONE_EACH.values()]
    planned = dict.fromkeys(ONE_EACH.values(), 1)
    found = score(verdicts, planned, CATALOGUE, min_n=1, bootstrap=100)
    assert found.strict.overall == 1
    assert found.cases == 1
    assert found.ci["overall"] is None


def test_a_case_whose_relations_are_not_scored_is_not_counted() -> None:
    few = [verdict("key_rename", "other"), verdict("routing_stability", "third")]
    verdicts = [verdict(name, "only") for name in ONE_EACH.values() for _ in range(2)] + few
    found = score(verdicts, Counter(v.relation for v in verdicts), CATALOGUE, min_n=2, bootstrap=100)
    assert found.cases == 1
    assert found.ci["overall"] is None


def test_draws_without_an_overall_score_are_dropped() -> None:
    # CHO is tested on case b alone: a draw that picks a twice has no overall. Of the others, (a, b) and (b, a) give
    # (1/2 + 1/2 + 1/2 + 1/2 + 1)/5 = .6 and (b, b) gives 1.
    verdicts = [verdict(name, case, float(case == "a")) for name in list(ONE_EACH.values())[:4] for case in "ab"]
    verdicts.append(verdict("pairwise_iia", "b"))
    rng = random.Random(0)
    drawn = [{rng.choice("ab"), rng.choice("ab")} for _ in range(200)]
    assert {"a"} in drawn[:20]
    for draws in (1, 2, 5, 20, 200):
        kept = sorted(0.6 if len(draw) == 2 else 1.0 for draw in drawn[:draws] if draw != {"a"})
        last = len(kept) - 1
        found = score(verdicts, Counter(v.relation for v in verdicts), CATALOGUE, min_n=1, bootstrap=draws)
        assert found.ci["overall"] == pytest.approx((kept[int(0.025 * last)], kept[int(0.975 * last)]))


def test_a_thousand_draws_over_many_cases_give_the_interval_of_plain_loops() -> None:
    rng = random.Random(7)
    verdicts = [verdict(name, f"c{i:02}", rng.random() / 5) for name in ONE_EACH.values() for i in range(20)]
    planned = dict.fromkeys(ONE_EACH.values(), 20)
    found, slow = score(verdicts, planned, CATALOGUE), Slow(verdicts, planned, 5)
    for name, strict in (("overall", True), ("graded_overall", False)):
        expected = slow.interval(1000, strict=strict)
        assert expected is not None
        assert expected[0] < expected[1]
        assert found.ci[name] == pytest.approx(expected, abs=1e-12)


def test_min_n_and_coverage_do_not_apply_inside_a_draw() -> None:
    verdicts = [verdict(name, f"c{i}", float(i == 0)) for name in ONE_EACH.values() for i in range(5)]
    found = score(verdicts, dict.fromkeys(ONE_EACH.values(), 5), CATALOGUE, min_n=5, bootstrap=400)
    interval = found.ci["overall"]
    assert interval is not None
    assert interval[0] < 0.8 < interval[1]


def test_the_interval_is_the_same_every_time_and_ignores_the_state_of_random() -> None:
    random.seed(1)
    first = run_of(KEPT | {"verbosity": [0, 1, 0, 1]}, bootstrap=100).ci
    random.seed(2)
    assert run_of(KEPT | {"verbosity": [0, 1, 0, 1]}, bootstrap=100).ci == first


def test_without_draws_there_is_no_interval() -> None:
    assert run_of(KEPT, bootstrap=0).ci == {"overall": None, "graded_overall": None}


def test_nothing_judged_is_no_score_and_no_crash() -> None:
    found = score([], {}, CATALOGUE)
    assert found.strict.overall is None
    assert found.strict.dimensions == dict.fromkeys(CODES)
    assert (found.unscored, found.checks, found.cases) == ((), {}, 0)


def test_a_test_that_was_not_planned_is_not_scored() -> None:
    found = score([verdict("verbosity")], {"verbosity": 0}, CATALOGUE, min_n=1)
    assert found.strict.relations == {}
    assert found.cases == 0


def test_min_n_leaves_a_domain_of_few_tests_without_scores() -> None:
    verdicts = [verdict(name, f"{d}{i}", domain=d) for name in ONE_EACH.values() for d in "xy" for i in range(2)]
    planned = Counter(v.relation for v in verdicts)
    assert score(verdicts, planned, CATALOGUE, min_n=4, bootstrap=0).strict.overall == 1
    assert [d.strict.overall for d in by_domain(verdicts, planned, CATALOGUE, min_n=4).values()] == [None, None]
    assert [d.strict.overall for d in by_domain(verdicts, planned, CATALOGUE, min_n=2).values()] == [1, 1]


# What is measured of one relation


def test_a_check_counts_and_summarises_its_tests() -> None:
    deviations = [0.9, 0.0, 0.1, 0.02, 0.3, 0.04, 0.0, 0.2, 0.05, 0.01]
    flips = [True, False, None, None, False, None, None, True, None, None]
    found = check(
        [verdict("verbosity", f"c{i}", d, flip=f) for i, (d, f) in enumerate(zip(deviations, flips, strict=True))], 16
    )
    assert (found.n, found.planned, found.coverage) == (10, 16, 0.625)
    assert found.score == 0.6
    assert found.graded == pytest.approx(mean([0.1 / 0.95, 1, 0.9 / 0.95, 1, 0.7 / 0.95, 1, 1, 0.8 / 0.95, 1, 1]))
    assert found.mean == pytest.approx(0.162)
    assert found.median == pytest.approx(0.045)
    assert found.p90 == 0.3
    assert found.flip_rate == 0.5
    assert found.wilson == wilson(4, 10)


def test_a_relation_without_flips_has_no_flip_rate() -> None:
    assert check([verdict("count_upper")], 1).flip_rate is None


def test_a_check_of_nothing_has_no_numbers() -> None:
    found = check([], 7)
    assert (found.n, found.planned, found.coverage) == (0, 7, 0)
    assert {found.score, found.graded, found.wilson, found.mean, found.median, found.p90, found.flip_rate} == {None}


def test_a_check_by_variant_counts_each_variant_of_each_test() -> None:
    verdicts = [
        verdict("verbosity", "a", 0.2, variants={"0": 0.2, "2": 0.01}),
        verdict("verbosity", "b", 0.0, variants={"0": 0.0}),
        verdict("verbosity", "c", math.inf, variants={"10": math.inf}),
    ]
    assert check(verdicts, 3).by_variant == {
        "0": {"n": 2, "violation_rate": 0.5},
        "2": {"n": 1, "violation_rate": 0.0},
        "10": {"n": 1, "violation_rate": 1.0},
    }
    assert list(check(verdicts, 3).by_variant) == ["0", "2", "10"]


def test_wilsons_interval_is_the_one_computed_by_hand() -> None:
    # 3 of 10, z = 1.96: centre .3 + 3.8416/20 = .49208, margin 1.96 sqrt(.021 + .009604) = .342883, over 1.38416.
    assert wilson(3, 10) == pytest.approx((0.107789, 0.603227), abs=1e-6)


@pytest.mark.parametrize("n", [1, 10, 240])
def test_wilsons_interval_of_none_or_all_touches_its_end(n: int) -> None:
    assert wilson(0, n) == pytest.approx((0, 3.8416 / (n + 3.8416)), abs=1e-12)
    assert wilson(n, n) == pytest.approx((n / (n + 3.8416), 1), abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 500), st.data())
def test_wilsons_interval_holds_the_rate_and_mirrors_its_opposite(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1
    assert wilson(n - hits, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


# Judging one test


@pytest.mark.parametrize(
    ("deviation", "violated"),
    [
        (0.0, False),
        (0.05, False),
        (0.05 + 5e-10, False),
        (0.05 + 1e-9, False),
        (0.05 + 2e-9, True),
        (0.3 - 0.25, False),  # .04999999999999999
        (0.55 - 0.5, False),  # .050000000000000044
        (1.0, True),
        (math.inf, True),
        (-math.inf, True),
        (math.nan, True),
    ],
)
def test_a_law_kept_exactly_on_the_tolerance_holds(deviation: float, *, violated: bool) -> None:
    assert is_violation(deviation, 0.05) is violated


def test_no_tolerance_forgives_a_deviation_that_is_not_finite() -> None:
    for deviation in (math.inf, -math.inf, math.nan):
        assert is_violation(deviation, 5.0)
        assert graded(deviation, 5.0) == 0


@pytest.mark.parametrize(
    ("deviation", "tolerance", "grade"),
    [
        (0.0, 0.05, 1.0),
        (0.05, 0.05, 1.0),
        (0.24, 0.05, 0.8),
        (0.525, 0.05, 0.5),
        (1.0, 0.05, 0.0),
        (1.9, 0.05, 0.0),
        (0.3, 0.0, 0.7),
        (0.3, 1.0, 1.0),
        (1.5, 1.0, 1.0),
        (1.5, 2.0, 1.0),
    ],
)
def test_a_grade_falls_linearly_from_the_tolerance_to_one(deviation: float, tolerance: float, grade: float) -> None:
    assert graded(deviation, tolerance) == pytest.approx(grade)


@settings(deadline=None)
@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 0.999))
def test_a_grade_lies_between_0_and_1_and_never_rises(a: float, b: float, tolerance: float) -> None:
    better, worse = graded(min(a, b), tolerance), graded(max(a, b), tolerance)
    assert 0 <= worse <= better <= 1


def yes(p: float) -> dict[str, float]:
    return {"false": 1 - p, "true": p}


def asked(
    relation: str, before: Mapping[str, float], after: Mapping[str, float], v: int = 0, **params: Any
) -> Evidence:
    """Evidence about Nouls: `before` the source output, `after` the answers to the trial's request."""
    trial = Trial(relation, "case", "q", v, 0, tuple(before), {}, params)
    source = Answers({key: yes(p) for key, p in before.items()}, {})
    return Evidence(trial, {}, source, {"variant": Answers({key: yes(p) for key, p in after.items()}, {})})


def test_a_test_is_judged_by_the_worst_outcome_of_all_its_trials() -> None:
    evidences = [asked("verbosity", {"q": 0.5}, {"q": p}, v) for v, p in enumerate((0.45, 0.8, 0.6))]
    found = judge(CATALOGUE["verbosity"], evidences, "mail")
    assert found is not None
    assert found.evidence is evidences[1]
    judged = found.verdict
    assert (judged.relation, judged.case, judged.target, judged.domain) == ("verbosity", "case", "q", "mail")
    assert (judged.tolerance, judged.violated, judged.flip) == (0.05, True, True)
    assert judged.deviation == pytest.approx(0.3)
    assert judged.graded == pytest.approx(1 - 0.25 / 0.95)
    assert judged.variants == pytest.approx({"0": 0.05, "1": 0.3, "2": 0.1})


def test_every_question_of_a_batch_belongs_to_its_test() -> None:
    found = judge(CATALOGUE["batch_order"], [asked("batch_order", {"q": 0.2, "r": 0.4}, {"q": 0.2, "r": 0.7})])
    assert found is not None
    assert (found.verdict.target, found.outcome.target) == ("q", "r")
    assert found.verdict.deviation == pytest.approx(0.3)
    assert found.verdict.flip is True


def test_a_flip_of_any_outcome_is_a_flip_of_the_test() -> None:
    evidences = [asked("verbosity", {"q": 0.49}, {"q": p}, v) for v, p in enumerate((0.51, 0.1))]
    found = judge(CATALOGUE["verbosity"], evidences)
    assert found is not None
    assert found.outcome.flip is False
    assert found.verdict.flip is True


def test_a_law_without_flips_has_none() -> None:
    given_ = asked("frechet_and_upper", {"q": 0.2, "r": 0.4}, {"x": 0.3, "y": 0.5}, conj="x", disj="y")
    found = judge(CATALOGUE["frechet_and_upper"], [given_])
    assert found is not None
    assert found.verdict.flip is None
    assert found.verdict.terms == {"P(A)": 0.2, "P(B)": 0.4, "P(A and B)": 0.3}


def test_a_trial_without_an_outcome_is_not_judged() -> None:
    assert judge(CATALOGUE["confidence_consistency"], [asked("confidence_consistency", {"q": 0.2}, {})]) is None
    assert judge(CATALOGUE["verbosity"], []) is None


@pytest.mark.parametrize(
    ("relation", "tolerance"),
    [("threshold_sweep", 0.05), ("confidence_consistency", 0.02), ("routing_stability", 0.0)],
)
def test_a_tolerance_of_its_own_is_not_the_run_s(relation: str, tolerance: float) -> None:
    saved = verdict(relation, deviation=0.5)
    assert rejudged(saved, CATALOGUE[relation], 0.9).tolerance == tolerance
    assert rejudged(saved, CATALOGUE[relation], 0.9).violated


def test_the_run_s_tolerance_decides_on_all_others() -> None:
    given_ = asked("verbosity", {"q": 0.5}, {"q": 0.6})
    strict, lax = (judge(CATALOGUE["verbosity"], [given_], tolerance=t) for t in (0.05, 0.1))
    assert strict is not None
    assert lax is not None
    assert (strict.verdict.violated, lax.verdict.violated) == (True, False)
    assert rejudged(strict.verdict, CATALOGUE["verbosity"], 0.1) == lax.verdict
    assert rejudged(lax.verdict, CATALOGUE["verbosity"], 0.05) == strict.verdict


@settings(deadline=None)
@given(st.sampled_from([0.0, 0.05, 0.3, 1.0, math.inf, math.nan]), st.sampled_from([0.0, 0.05, 0.3, 1.0, 2.0]))
def test_judging_again_is_judging_at_another_tolerance(deviation: float, tolerance: float) -> None:
    found = rejudged(verdict("verbosity", deviation=deviation), CATALOGUE["verbosity"], tolerance)
    assert found.violated == is_violation(deviation, tolerance)
    assert found.graded == graded(deviation, tolerance)


def test_params_that_do_not_fit_are_an_error_and_no_verdict() -> None:
    given_ = asked("negation_wrapper", {"q": 0.5}, {"q": 0.6}, negated="nobody")
    with pytest.raises(PlanError, match=r"negation_wrapper.*nobody"):
        judge(CATALOGUE["negation_wrapper"], [given_])


FINITE = st.floats(0, 2)


@settings(deadline=None)
@given(
    st.builds(
        Verdict,
        relation=st.sampled_from(list(CATALOGUE)),
        case=st.text(),
        target=st.text(),
        domain=st.text(),
        deviation=FINITE | st.just(math.inf),
        tolerance=FINITE,
        violated=st.booleans(),
        graded=st.floats(0, 1),
        flip=st.none() | st.booleans(),
        variants=st.dictionaries(st.integers(0, 12).map(str), FINITE | st.just(math.inf)),
        terms=st.dictionaries(st.text(), FINITE),
    )
)
def test_a_verdict_survives_being_plain_data(saved: Verdict) -> None:
    text = json.dumps(plain(saved), allow_nan=False)
    assert from_plain(json.loads(text)) == saved


def test_a_deviation_that_is_no_number_comes_back_as_one_that_is_not_finite() -> None:
    saved = verdict("verbosity", deviation=math.nan, variants={"0": math.nan})
    text = json.dumps(plain(saved), allow_nan=False)
    back = from_plain(json.loads(text))
    assert not math.isfinite(back.deviation)
    assert not math.isfinite(back.variants["0"])
    assert replace(back, deviation=0.0, variants={}) == replace(saved, deviation=0.0, variants={})
