"""CHO - choice-set coherence: a part of a menu is answered as the whole menu, conditioned on that part."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import combinations, islice

from ..wire import renorm
from . import words
from .base import Evidence, Outcome, Relation, compared
from .build import Built, Site, edited, fits, menu_size, underscored


def _with_extra(evidence: Evidence) -> list[Outcome]:
    p = evidence.p()
    return [compared(evidence.trial.key, p, renorm(evidence.q(), list(p)))]


def _restricted(evidence: Evidence, keep: Sequence[str]) -> list[Outcome]:
    return [compared(evidence.trial.key, renorm(evidence.p(), keep), evidence.q())]


def _without(evidence: Evidence) -> list[Outcome]:
    keep = list(evidence.p())
    keep.remove(evidence.param("removed"))
    return _restricted(evidence, keep)


def _content_words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{5,}", text.lower()))


def _off_topic(site: Site) -> Built | None:
    if site.question["type"] != "choice":
        return None
    criteria = site.question["criteria"]
    known = _content_words(json.dumps([site.case.state, criteria], ensure_ascii=False))
    candidates = [option for option, text in words.OFF_TOPIC.items() if not _content_words(text) & known]
    if not candidates:
        return None
    chosen = site.rng.choice(candidates)
    new = underscored(chosen, criteria)
    position = site.rng.randrange(len(criteria) + 1)
    options = list(criteria.items())
    options.insert(position, (new, words.OFF_TOPIC[chosen]))
    question = edited(site.question, criteria=dict(options))
    if not fits(question):
        return None
    return Built(site.replacing(question), {"new": new, "position": position})


def _only(site: Site, keep: Sequence[str], **params: object) -> Built:
    criteria = {option: site.question["criteria"][option] for option in keep}
    return Built(site.replacing(edited(site.question, criteria=criteria)), params)


def _removed(site: Site) -> Built:
    options = list(site.question["criteria"])
    removed = options.pop(site.v)
    return _only(site, options, removed=removed)


def _pairs(site: Site) -> int:
    n = menu_size(site.question, 4)
    return n * (n - 1) // 2


def _pair_alone(site: Site) -> Built:
    pair = list(next(islice(combinations(site.question["criteria"], 2), site.v, None)))
    return _only(site, pair, pair=pair)


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
        build=_off_topic,
        draws=True,
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
        build=_removed,
        variants=lambda site: menu_size(site.question, 3),
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
        build=_pair_alone,
        variants=_pairs,
        deviate=lambda e: _restricted(e, e.param("pair")),
    ),
]
