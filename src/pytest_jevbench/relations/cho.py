"""CHO - choice-set coherence: a part of a menu is answered as the whole menu, conditioned on that part."""

from __future__ import annotations

from collections.abc import Sequence

from ..wire import renorm
from .base import Evidence, Outcome, Relation, compared


def _with_extra(evidence: Evidence) -> list[Outcome]:
    p = evidence.p()
    return [compared(evidence.trial.key, p, renorm(evidence.q(), list(p)))]


def _restricted(evidence: Evidence, keep: Sequence[str]) -> list[Outcome]:
    return [compared(evidence.trial.key, renorm(evidence.p(), keep), evidence.q())]


def _without(evidence: Evidence) -> list[Outcome]:
    removed = evidence.param("removed")
    return _restricted(evidence, [option for option in evidence.p() if option != removed])


LUCE = "Luce's choice axiom (independence of irrelevant alternatives)"

RELATIONS = [
    Relation(
        name="irrelevant_option",
        group="CHO.conditioning",
        form="E",
        edits=("criteria",),
        law="an off-topic option leaves the proportions of the others as they are",
        check="iia_tv",
        spread="drawn",
        source=LUCE,
        deviate=_with_extra,
    ),
    Relation(
        name="remove_option_iia",
        group="CHO.conditioning",
        form="E",
        edits=("criteria",),
        law="with one option removed the others keep their proportions",
        check="iia_tv",
        spread="every option",
        source=LUCE,
        deviate=_without,
    ),
    Relation(
        name="pairwise_iia",
        group="CHO.conditioning",
        form="E",
        edits=("criteria",),
        law="two options asked alone keep their proportion",
        check="iia_tv",
        spread="every pair",
        source=LUCE,
        deviate=lambda e: _restricted(e, e.param("pair")),
    ),
]
