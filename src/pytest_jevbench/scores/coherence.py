"""The coherence score of a suite: violations per relation, averaged per dimension, averaged over dimensions."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from ..judge import Verdict, is_violation
from ..relations import Relation
from ..taxonomy import DIMENSIONS, GROUPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_COVERAGE = 0.95
"""A relation with a smaller share of its planned tests judged is not scored, nor is anything it belongs to."""
Z95 = 1.96
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Unscored:
    """A planned relation that has no score, and why; `incomplete` when too few of its tests were judged."""

    relation: str
    reason: str
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """What was measured of one relation; rates and scores in [0, 1], None where nothing was judged."""

    n: int
    planned: int
    coverage: float
    score: float | None
    graded: float | None
    wilson: Interval | None
    mean: float | None
    median: float | None
    p90: float | None
    flip_rate: float | None
    by_variant: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """One way of counting (violations, or graded): scores in [0, 1] by name, None where not scored."""

    overall: float | None
    dimensions: Mapping[str, float | None]
    groups: Mapping[str, float | None]
    relations: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Coherence:
    """Every number of scoring section 1: both views, their intervals, what was left unscored, and the checks."""

    strict: View
    graded: View
    ci: Mapping[str, Interval | None]
    unscored: tuple[Unscored, ...]
    checks: Mapping[str, Check]
    cases: int


def score(
    verdicts: Sequence[Verdict],
    planned: Mapping[str, int],
    relations: Mapping[str, Relation],
    *,
    min_n: int = 5,
    bootstrap: int = 1000,
    coverage_rule: bool = True,
) -> Coherence:
    """Score judged tests.

    `planned` counts the planned tests of each relation, in the order in which relations are listed; `relations`
    gives their metadata. `coverage_rule=False` is for the view by domain.
    """
    by_relation: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_relation[verdict.relation].append(verdict)
    checks = {name: check(by_relation[name], n) for name, n in planned.items() if n > 0}
    unscored = [
        found
        for name, each in checks.items()
        if (found := _why_unscored(relations[name], each, min_n, coverage_rule=coverage_rule)) is not None
    ]
    left_out = {entry.relation for entry in unscored}
    scored = [name for name in checks if name not in left_out]
    incomplete = [relations[entry.relation] for entry in unscored if entry.incomplete]
    strict = _view({name: checks[name].score for name in scored}, relations, incomplete)
    graded = _view({name: checks[name].graded for name in scored}, relations, incomplete)
    counted = [verdict for verdict in verdicts if verdict.relation not in left_out and verdict.relation in checks]
    cases = sorted({verdict.case for verdict in counted})
    ci: dict[str, Interval | None] = {"overall": None, "graded_overall": None}
    if bootstrap > 0 and len(cases) > 1 and not incomplete and strict.overall is not None:
        ci["overall"], ci["graded_overall"] = intervals(counted, cases, relations, bootstrap)
    return Coherence(strict, graded, ci, tuple(unscored), checks, len(cases))


def _why_unscored(relation: Relation, check: Check, min_n: int, *, coverage_rule: bool) -> Unscored | None:
    if not relation.scored:
        return Unscored(relation.name, "a diagnostic, never scored")
    if coverage_rule and check.coverage < MIN_COVERAGE:
        return Unscored(relation.name, f"{check.n} of {check.planned} planned tests judged", incomplete=True)
    if check.n < min_n:
        return Unscored(relation.name, f"{check.n} tests, min_n is {min_n}")
    return None


def _view(
    scores: Mapping[str, float | None], relations: Mapping[str, Relation], incomplete: Iterable[Relation]
) -> View:
    known = {name: value for name, value in scores.items() if value is not None}
    lost_groups = {relation.group for relation in incomplete}
    lost_dimensions = {relation.dimension for relation in incomplete}

    def mean(members: list[float], *, lost: bool) -> float | None:
        return fmean(members) if members and not lost else None

    groups = {
        group: mean([v for name, v in known.items() if relations[name].group == group], lost=group in lost_groups)
        for group in dict.fromkeys([*GROUPS, *(relations[name].group for name in known)])
        if any(relations[name].group == group for name in known) or group in lost_groups
    }
    dimensions = {
        code: mean(
            [v for name, v in known.items() if relations[name].dimension == code], lost=code in lost_dimensions
        )
        for code in DIMENSIONS
    }
    parts = [value for value in dimensions.values() if value is not None]
    overall = fmean(parts) if len(parts) == len(DIMENSIONS) else None
    return View(overall, dimensions, groups, known)


def check(verdicts: Sequence[Verdict], planned: int) -> Check:
    """Measure one relation on its judged tests."""
    n = len(verdicts)
    if n == 0:
        return Check(0, planned, 0.0, None, None, None, None, None, None, None)
    violated = sum(verdict.violated for verdict in verdicts)
    deviations = sorted(verdict.deviation for verdict in verdicts)
    flips = [verdict.flip for verdict in verdicts if verdict.flip is not None]
    return Check(
        n=n,
        planned=planned,
        coverage=n / planned,
        score=1 - violated / n,
        graded=fmean(verdict.graded for verdict in verdicts),
        wilson=wilson(violated, n),
        mean=fmean(deviations),
        median=median(deviations),
        p90=deviations[math.ceil(0.9 * n) - 1],
        flip_rate=sum(flips) / len(flips) if flips else None,
        by_variant=_by_variant(verdicts),
    )


def _by_variant(verdicts: Iterable[Verdict]) -> dict[str, dict[str, float]]:
    counts: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        for variant, deviation in verdict.variants.items():
            counts[variant].append(is_violation(deviation, verdict.tolerance))
    return {
        variant: {"n": len(found), "violation_rate": sum(found) / len(found)}
        for variant, found in sorted(counts.items(), key=lambda item: int(item[0]))
    }


def wilson(hits: int, n: int) -> Interval:
    """Wilson's 95 % interval of a rate (Wilson 1927, z = 1.96)."""
    rate = hits / n
    centre = rate + Z95**2 / (2 * n)
    margin = Z95 * math.sqrt(rate * (1 - rate) / n + Z95**2 / (4 * n**2))
    scale = 1 + Z95**2 / n
    return max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale)


def picks(cases: int, draws: int, seed: int = 0) -> list[list[int]]:
    """Draw `cases` indices with replacement, `draws` times: the same picks in the same order everywhere."""
    rng = random.Random(seed)
    numbers = range(cases)
    return [[rng.choice(numbers) for _ in numbers] for _ in range(draws)]


def intervals(
    verdicts: Sequence[Verdict], cases: Sequence[str], relations: Mapping[str, Relation], draws: int
) -> tuple[Interval | None, Interval | None]:
    """Percentile bootstrap over cases (2.5 %, 97.5 %) of the overall score: strict, and graded by the same picks."""
    import numpy as np

    names = sorted({verdict.relation for verdict in verdicts})
    row = {case: i for i, case in enumerate(cases)}
    column = {name: j for j, name in enumerate(names)}
    shape = (len(cases), len(names))
    tests, violations, grades = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for verdict in verdicts:
        i, j = row[verdict.case], column[verdict.relation]
        tests[i, j] += 1
        violations[i, j] += verdict.violated
        grades[i, j] += verdict.graded
    times = np.array([np.bincount(draw, minlength=len(cases)) for draw in picks(len(cases), draws)], dtype=float)
    n = times @ tests
    with np.errstate(invalid="ignore"):
        strict = 1 - (times @ violations) / n
        graded = (times @ grades) / n
    members = [[column[name] for name in names if relations[name].dimension == code] for code in DIMENSIONS]
    return _percentiles(_overall(strict, members)), _percentiles(_overall(graded, members))


def _overall(by_relation: NDArray[np.float64], members: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Mean of dimension means per draw; a relation absent from a draw (NaN) is left out of it."""
    import numpy as np

    present = ~np.isnan(by_relation)
    filled = np.where(present, by_relation, 0.0)
    with np.errstate(invalid="ignore"):
        dimensions = [filled[:, columns].sum(axis=1) / present[:, columns].sum(axis=1) for columns in members]
    overall: NDArray[np.float64] = np.mean(dimensions, axis=0)
    return overall


def _percentiles(overall: NDArray[np.float64]) -> Interval | None:
    """Drop draws without an overall score, then take the values at int(0.025 (B-1)) and int(0.975 (B-1))."""
    kept = sorted(float(value) for value in overall if not math.isnan(value))
    if not kept:
        return None
    last = len(kept) - 1
    return kept[int(0.025 * last)], kept[int(0.975 * last)]


def by_domain(
    verdicts: Sequence[Verdict], planned: Mapping[str, int], relations: Mapping[str, Relation], *, min_n: int
) -> dict[str, Coherence]:
    """Score each domain's cases on their own: no interval, no coverage rule, but min_n holds."""
    result = {}
    for domain in dict.fromkeys(verdict.domain for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.domain == domain]
        result[domain] = score(own, planned, relations, min_n=min_n, bootstrap=0, coverage_rule=False)
    return result
