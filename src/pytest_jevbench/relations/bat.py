"""BAT - batch independence: what else is asked in the same request changes no answer."""

from __future__ import annotations

from . import words
from .base import Evidence, Outcome, Relation, compared, invariant, invariant_under_keys
from .build import Built, Site, noul, numbered


def _every_target(evidence: Evidence) -> list[Outcome]:
    return invariant_under_keys(evidence, {key: key for key in evidence.trial.targets})


def _duplicate(evidence: Evidence) -> list[Outcome]:
    return [compared(evidence.trial.key, evidence.q(), evidence.q(evidence.param("duplicate")))]


def _alone(site: Site) -> Built | None:
    return Built({site.key: site.question}) if len(site.batch) > 1 else None


def _backwards(site: Site) -> Built | None:
    if len(site.batch) < 2 or not site.is_first:
        return None
    return Built({key: site.batch[key] for key in reversed(list(site.batch))}, targets=tuple(site.batch))


def _twice(site: Site) -> Built:
    copy = site.new_key(f"{site.key}__again")
    return Built({**site.batch, copy: site.question}, {"duplicate": copy})


def filler(i: int) -> str:
    """Return the i-th filler (from 0); when they are used up, reworded repeats follow."""
    n = len(words.FILLERS)
    return words.FILLERS[i] if i < n else words.FILLER_AGAIN.format(q=filler(i - n))


def _strangers(site: Site) -> Built | None:
    if len(site.batch) < 2:
        return None
    batch = {}
    for key, question in site.batch.items():
        if key == site.key:
            batch[key] = question
        else:
            i = sum(other != site.key for other in batch)
            batch[numbered(f"aside_{i + 1}", {site.key, *batch})] = noul(filler(i))
    return Built(batch)


SIZES = (2, 5, 10)


def _sizes(site: Site) -> int:
    n = len(site.batch)
    return sum(size < n for size in SIZES) if site.is_first and n > 2 else 0


def _fewer(site: Site) -> Built:
    size = SIZES[site.v]
    batch = dict(list(site.batch.items())[:size])
    return Built(batch, {"size": size}, tuple(batch))


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
        build=_alone,
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
        build=_backwards,
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
        build=_twice,
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
        build=_strangers,
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
        build=_fewer,
        variants=_sizes,
        deviate=_every_target,
    ),
]
