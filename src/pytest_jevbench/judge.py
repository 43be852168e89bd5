"""Deviation against tolerance: is a law violated, how badly, and did the decision flip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import PlanError, show
from .relations import Evidence, Outcome, Relation

TOLERANCE = 0.05
SLACK = 1e-9
"""A deviation this close beyond the tolerance holds: a law kept exactly on it must not hang on the order of a sum."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judged test: the worst of its outcomes.

    `deviation` and `graded` are those of the worst outcome, `flip` is whether any decision changed (None where the
    relation defines none), `variants` the worst deviation of each variant, by its index.
    """

    relation: str
    case: str
    target: str
    domain: str
    deviation: float
    tolerance: float
    violated: bool
    graded: float
    flip: bool | None
    variants: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, float] = field(default_factory=dict)


def is_violation(deviation: float, tolerance: float) -> bool:
    """Say whether a deviation breaks the law: beyond tolerance + 1e-9, or not finite."""
    return not (math.isfinite(deviation) and deviation <= tolerance + SLACK)


def graded(deviation: float, tolerance: float) -> float:
    """Grade a deviation in [0, 1]: 1 within the tolerance, falling linearly to 0 at a deviation of 1."""
    if not math.isfinite(deviation):
        return 0.0
    if tolerance >= 1:
        return 1.0
    return 1 - min(1.0, max(0.0, deviation - tolerance) / (1 - tolerance))


def tolerance_for(relation: Relation, tolerance: float) -> float:
    """Return the tolerance a relation is judged at: the run's, unless the law has its own."""
    return tolerance if relation.tolerance is None else relation.tolerance


def outcomes(relation: Relation, evidence: Evidence) -> list[Outcome]:
    """Apply the law to one trial. Raises PlanError when the trial's params do not fit its relation."""
    try:
        return relation.deviate(evidence)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError) as broken:
        trial = evidence.trial
        raise PlanError(
            f"the trial's params do not fit {relation.name} ({type(broken).__name__}: {broken})",
            f"{trial.relation}, case {trial.case}, question {trial.key}",
            show(dict(trial.params)),
        ) from broken


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict together with the evidence and outcome that decided it (for the explanation of a failure)."""

    verdict: Verdict
    evidence: Evidence
    outcome: Outcome


def judge(
    relation: Relation, evidences: Iterable[Evidence], domain: str = "", tolerance: float = TOLERANCE
) -> Judged | None:
    """Judge all trials of one test together; None when no outcome exists.

    Raises PlanError when a trial's params do not fit its relation.
    """
    tol = tolerance_for(relation, tolerance)
    found = [(evidence, outcome) for evidence in evidences for outcome in outcomes(relation, evidence)]
    if not found:
        return None
    evidence, worst = max(found, key=lambda pair: _severity(pair[1].deviation))
    variants: dict[str, float] = {}
    for each, outcome in found:
        v = str(each.trial.v)
        variants[v] = max(variants.get(v, 0.0), _severity(outcome.deviation))
    flips = [outcome.flip for _, outcome in found if outcome.flip is not None]
    trial = evidence.trial
    verdict = Verdict(
        relation=relation.name,
        case=trial.case,
        target=trial.key,
        domain=domain,
        deviation=worst.deviation,
        tolerance=tol,
        violated=is_violation(worst.deviation, tol),
        graded=graded(worst.deviation, tol),
        flip=any(flips) if flips else None,
        variants=variants,
        terms=dict(worst.terms),
    )
    return Judged(verdict, evidence, worst)


def _severity(deviation: float) -> float:
    return deviation if math.isfinite(deviation) else math.inf


def rejudged(verdict: Verdict, relation: Relation, tolerance: float, *, own: bool = True) -> Verdict:
    """Judge a verdict again at another tolerance; `own` lets a relation's own tolerance go before it."""
    from dataclasses import replace

    tol = tolerance_for(relation, tolerance) if own else tolerance
    return replace(
        verdict, tolerance=tol, violated=is_violation(verdict.deviation, tol), graded=graded(verdict.deviation, tol)
    )


def plain(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data, as it rides on a pytest report and stands in a card."""
    return {
        "relation": verdict.relation,
        "case": verdict.case,
        "target": verdict.target,
        "domain": verdict.domain,
        "deviation": verdict.deviation if math.isfinite(verdict.deviation) else None,
        "tolerance": verdict.tolerance,
        "violated": verdict.violated,
        "graded": verdict.graded,
        "flip": verdict.flip,
        "detail": {
            "variants": {v: d if math.isfinite(d) else None for v, d in verdict.variants.items()},
            "terms": dict(verdict.terms),
        },
    }


def from_plain(data: Mapping[str, Any]) -> Verdict:
    """Read what `plain` wrote; a null deviation is one that was not finite."""
    detail = data.get("detail") or {}
    return Verdict(
        relation=data["relation"],
        case=data["case"],
        target=data["target"],
        domain=data.get("domain", ""),
        deviation=math.inf if data["deviation"] is None else data["deviation"],
        tolerance=data["tolerance"],
        violated=data["violated"],
        graded=data["graded"],
        flip=data["flip"],
        variants={v: math.inf if d is None else d for v, d in detail.get("variants", {}).items()},
        terms=detail.get("terms", {}),
    )
