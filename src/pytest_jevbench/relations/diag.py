"""DIAG - diagnostics: checks on response fields, in no dimension and no score, run only when named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..wire import Answers, argmax
from .base import Evidence, Outcome, Relation
from .build import Built, Site, edited

ROUTED_FROM = 0.8
"""A question is routed (acted on without a person) from this confidence on."""


def _margin(p: list[float]) -> float:
    first, second = sorted(p, reverse=True)[:2]
    return first - second


def _certainty(p: list[float]) -> float:
    return 1 + math.fsum(x * math.log(x) for x in p if x > 0) / math.log(len(p))


DEFINITIONS: dict[str, Callable[[list[float]], float]] = {
    "largest probability": max,
    "top-two margin": _margin,
    "1 - normalised entropy": _certainty,
}


def _confidence_fits(evidence: Evidence) -> list[Outcome]:
    """One definition must fit all; the one with the smallest largest error is taken, the first on a tie."""
    stated = evidence.source.confidences
    if not stated:
        return []
    errors = {
        name: {key: abs(stated[key] - define(list(evidence.p(key).values()))) for key in stated}
        for name, define in DEFINITIONS.items()
    }
    best = min(errors, key=lambda name: max(errors[name].values()))
    define = DEFINITIONS[best]
    return [
        Outcome(key, deviation, None, terms={"confidence": stated[key], best: define(list(evidence.p(key).values()))})
        for key, deviation in errors[best].items()
    ]


def _routed(answers: Answers, key: str) -> bool:
    distribution = answers.distributions[key]
    return answers.confidences.get(key, distribution[argmax(distribution)]) >= ROUTED_FROM


def _routing(evidence: Evidence) -> list[Outcome]:
    read: Mapping[str, str] = evidence.param("read")
    before = _routed(evidence.source, evidence.trial.key)
    after = {label: _routed(evidence.replies[label], key) for label, key in read.items()}
    changed = [label for label, routed in after.items() if routed != before]
    terms = {"routed, as asked": float(before)} | {f"routed, {label}": float(r) for label, r in after.items()}
    return [Outcome(evidence.trial.key, len(changed) / len(after), bool(changed), terms=terms)]


def _source_only(site: Site) -> Built | None:
    return Built({}, targets=tuple(site.batch), labelled=True) if site.is_first else None


def _routings(site: Site) -> Built:
    question, batch = site.question, site.batch
    neutral = site.new_key(f"question_{list(batch).index(site.key) + 1}")
    requests = {"neutral_key": {neutral if key == site.key else key: own for key, own in batch.items()}}
    read = {"neutral_key": neutral}
    if question["type"] != "noul":
        criteria = question["criteria"]
        back = criteria[::-1] if question["type"] == "score" else dict(reversed(criteria.items()))
        requests["reversed_options"] = dict(site.replacing(edited(question, criteria=back)))
        read["reversed_options"] = site.key
    if len(batch) > 1:
        requests["solo"] = {site.key: question}
        read["solo"] = site.key
    return Built(requests, {"read": read}, labelled=True)


RELATIONS = [
    Relation(
        name="confidence_consistency",
        group="DIAG.fields",
        form="field",
        edits=(),
        law="the confidences of a case follow one definition from the probabilities",
        check="fits_definition",
        spread="fixed",
        source="the System One format leaves the definition to the server",
        build=_source_only,
        deviate=_confidence_fits,
        tolerance=0.02,
    ),
    Relation(
        name="routing_stability",
        group="DIAG.fields",
        form="field",
        edits=(),
        law="whether a confidence of 0.8 is reached survives another key, order or batch",
        check="route_flip",
        spread="fixed",
        source="thresholds on confidence are how software acts on answers",
        build=_routings,
        deviate=_routing,
        tolerance=0.0,
    ),
]
