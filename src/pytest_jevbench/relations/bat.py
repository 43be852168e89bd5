"""BAT - batch independence: what else is asked in the same request changes no answer."""

from __future__ import annotations

from .base import Evidence, Outcome, Relation, compared, invariant, invariant_under_keys


def _every_target(evidence: Evidence) -> list[Outcome]:
    return invariant_under_keys(evidence, {key: key for key in evidence.trial.targets})


def _duplicate(evidence: Evidence) -> list[Outcome]:
    return [compared(evidence.trial.key, evidence.q(), evidence.q(evidence.param("duplicate")))]


RELATIONS = [
    Relation(
        name="batch_solo",
        group="BAT.isolation",
        form="E",
        edits=("batch",),
        law="a question asked alone gets the answer it gets in its batch",
        check="tv",
        spread="fixed",
        source="questions of a batch are answered independently (System One format)",
        deviate=invariant,
    ),
    Relation(
        name="batch_order",
        group="BAT.isolation",
        form="E",
        edits=("batch",),
        law="the whole batch in reverse order gets the same answers",
        check="tv",
        spread="fixed",
        source="questions of a batch are answered independently; order effects",
        deviate=_every_target,
    ),
    Relation(
        name="duplicate_question",
        group="BAT.isolation",
        form="E",
        edits=("batch",),
        law="a question and its copy in one request get the same answer",
        check="within_request_tv",
        spread="fixed",
        source="one request is one reading of the state",
        deviate=_duplicate,
    ),
    Relation(
        name="batch_content",
        group="BAT.isolation",
        form="E",
        edits=("batch",),
        law="unrelated companions in place of the others leave the answer as it is",
        check="tv",
        spread="fixed",
        source="questions of a batch are answered independently; leakage between questions",
        deviate=invariant,
    ),
    Relation(
        name="batch_size_sweep",
        group="BAT.isolation",
        form="E",
        edits=("batch",),
        law="the first 2, 5 or 10 questions asked alone get the answers they get in the whole batch",
        check="tv",
        spread="every size",
        source="questions of a batch are answered independently; dilution by batch size",
        deviate=_every_target,
    ),
]
