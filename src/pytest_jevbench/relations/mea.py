"""MEA - probability measure: probabilities of different events of one measure add up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import words
from .base import (
    Evidence,
    Outcome,
    Relation,
    added_to,
    block_sums,
    compared,
    complement,
    fixed,
    merged_into,
)
from .build import (
    Built,
    Site,
    edited,
    fits,
    inserted,
    instructions,
    is_plain_noul,
    menu,
    menu_size,
    nouls,
    numbered,
    quotable,
    texts,
    underscored,
)
from .rep import cloned, compound


def _merged(evidence: Evidence) -> list[Outcome]:
    coarse = merged_into(evidence.p(), evidence.param("parts"), evidence.param("merged"))
    return [compared(evidence.trial.key, coarse, evidence.q())]


def _split(evidence: Evidence) -> list[Outcome]:
    collapsed = merged_into(evidence.q(), evidence.param("parts"), evidence.param("option"))
    return [compared(evidence.trial.key, evidence.p(), collapsed)]


def _refined(evidence: Evidence, extra: str, original: str) -> list[Outcome]:
    return [compared(evidence.trial.key, evidence.p(), added_to(evidence.q(), extra, original))]


def _beyond_top(evidence: Evidence) -> list[Outcome]:
    added: str = evidence.param("added")
    return _refined(evidence, added, str(int(added) - 1))


def _hierarchy(evidence: Evidence) -> list[Outcome]:
    return [compared(evidence.trial.key, block_sums(evidence.p(), evidence.param("blocks")), evidence.q())]


def _granularity(evidence: Evidence) -> list[Outcome]:
    blocks = {str(i): [str(level) for level in block] for i, block in enumerate(evidence.param("blocks"))}
    return [compared(evidence.trial.key, block_sums(evidence.p(), blocks), evidence.q())]


def _closure(evidence: Evidence) -> list[Outcome]:
    replaced, nota = evidence.param("replaced"), evidence.param("nota")
    renamed = {nota if option == replaced else option: value for option, value in evidence.p().items()}
    return [compared(evidence.trial.key, renamed, evidence.q(), flips=False)]


def _widest(evidence: Evidence, gaps: Mapping[str, tuple[float, float]]) -> list[Outcome]:
    """Keep the widest gap between an event's probability (first) and what its probe says (second)."""
    deviation = max(abs(probe - event) for event, probe in gaps.values())
    terms = {}
    for name, (event, probe) in gaps.items():
        terms[f"P({name}), from the source output"] = event
        terms[f"P({name}), as its own question"] = probe
    return [Outcome(evidence.trial.key, deviation, None, terms=terms)]


def _cumulative(evidence: Evidence) -> list[Outcome]:
    levels = list(evidence.p().values())
    return _widest(
        evidence,
        {
            f"level {k} or higher": (math.fsum(levels[int(k) :]), evidence.q_yes(probe))
            for k, probe in evidence.param("probes").items()
        },
    )


def _indicator(evidence: Evidence) -> list[Outcome]:
    p = evidence.p()
    probes: Mapping[str, str] = evidence.param("probes")
    return _widest(evidence, {option: (p[option], evidence.q_yes(probe)) for option, probe in probes.items()})


def _pair_marginals(evidence: Evidence) -> list[Outcome]:
    first, second = evidence.trial.targets
    joint = evidence.q(evidence.param("pair"))
    gaps = {
        first: (evidence.p_yes(first), joint["10"] + joint["11"]),
        second: (evidence.p_yes(second), joint["01"] + joint["11"]),
    }
    return _widest(evidence, gaps)


def _inclusion_exclusion(evidence: Evidence) -> list[Outcome]:
    a, b = (evidence.p_yes(key) for key in evidence.trial.targets)
    both, either = evidence.q_yes(evidence.param("conj")), evidence.q_yes(evidence.param("disj"))
    terms = {
        "P(A)": a,
        "P(B)": b,
        "P(A and B)": both,
        "P(A or B)": either,
        "P(A) + P(B)": a + b,
        "P(A and B) + P(A or B)": both + either,
    }
    return [Outcome(evidence.trial.key, abs(both + either - a - b), None, terms=terms)]


def _not_one_outcome(evidence: Evidence, param: str) -> list[Outcome]:
    outcome: str = evidence.param(param)
    return complement(evidence, outcome, evidence.p()[outcome], evidence.param("probe"))


def _compound_negation(evidence: Evidence) -> list[Outcome]:
    both = evidence.q_yes(evidence.param("and"))
    return complement(evidence, "A and B", both, evidence.param("nand"))


def _negated(evidence: Evidence) -> list[Outcome]:
    return complement(evidence, "yes", evidence.p_yes(), evidence.param("negated"))


def _wrapped(site: Site) -> Built | None:
    if not is_plain_noul(site.question):
        return None
    probe = site.new_key(f"{site.key}__no")
    return Built(
        site.probing({probe: words.NEGATION[site.v].format(q=site.question["instructions"])}), {"negated": probe}
    )


def _opposite(site: Site) -> Built | None:
    text = site.bank.first("negation", instructions(site.question)) if is_plain_noul(site.question) else None
    if not isinstance(text, str):
        return None
    probe = site.new_key(f"{site.key}__opposite")
    return Built(site.probing({probe: text}), {"negated": probe, "rewrite": text})


def _quoting(site: Site, template: str, answers: list[str], i: int) -> str:
    return template.format(q=site.question["instructions"], menu=menu(answers), o=answers[i])


def _other_option(site: Site) -> Built | None:
    answers = quotable(site.question, "choice")
    if answers is None:
        return None
    i = site.rng.randrange(len(answers))
    option = list(site.question["criteria"])[i]
    probe = site.new_key(f"{site.key}__other_than_{option}")
    text = _quoting(site, words.CHOICE_COMPLEMENT[site.v], answers, i)
    return Built(site.probing({probe: text}), {"option": option, "probe": probe})


def _other_level(site: Site) -> Built | None:
    answers = quotable(site.question, "score")
    if answers is None:
        return None
    i = site.rng.randrange(len(answers))
    probe = site.new_key(f"{site.key}__other_than_{i}")
    text = _quoting(site, words.SCORE_COMPLEMENT[site.v], answers, i)
    return Built(site.probing({probe: text}), {"level": str(i), "probe": probe})


def _named(site: Site, least: int = 2) -> dict[str, str] | None:
    """Return the options with texts to quote (the id where there is no description), None where one has structure."""
    if site.question["type"] != "choice" or len(site.question["criteria"]) < least:
        return None
    named = {option: option if text is None else text for option, text in site.question["criteria"].items()}
    return named if all(isinstance(text, str) and text.strip() for text in named.values()) else None


def _merging(site: Site) -> Built | None:
    named = _named(site, 3)
    if named is None:
        return None
    a, b = sorted(site.rng.sample(list(named), 2), key=list(named).index)
    merged = numbered(f"{a}_or_{b}", named)
    criteria = {}
    for option, text in site.question["criteria"].items():
        if option == a:
            criteria[merged] = words.MERGED.format(a=named[a], b=named[b])
        elif option != b:
            criteria[option] = text
    return Built(site.replacing(edited(site.question, criteria=criteria)), {"merged": merged, "parts": [a, b]})


def _splitting(site: Site) -> Built | None:
    named = _named(site)
    if named is None:
        return None
    option = site.rng.choice(list(named))
    has, lacks = site.rng.choice(words.PREDICATES)
    parts = [underscored(f"{option}_{ending}", named) for ending in ("with", "without")]
    criteria: dict[str, Any] = {}
    for own, text in site.question["criteria"].items():
        if own == option:
            criteria |= {
                part: words.SPLIT.format(o=named[option], x=x) for part, x in zip(parts, (has, lacks), strict=True)
            }
        else:
            criteria[own] = text
    question = edited(site.question, criteria=criteria)
    if not fits(question):
        return None
    return Built(site.replacing(question), {"option": option, "parts": parts, "predicate": has})


def _twinned(site: Site) -> Built | None:
    named = _named(site, 3)
    if named is None:
        return None
    option = site.rng.choice(list(named))
    twin = underscored(f"{option}_alike", named)
    criteria = inserted(site.question["criteria"], option, twin, words.TWIN.format(o=named[option]))
    question = edited(site.question, criteria=criteria)
    if not fits(question):
        return None
    return Built(site.replacing(question), {"option": option, "twin": twin})


def _hierarchies(site: Site) -> int:
    declared = site.case.hierarchies.get(site.key, [])
    return len(declared) or (1 if _named(site, 4) is not None else 0)


def _blocked(site: Site) -> Built | None:
    named = _named(site)
    if named is None:
        return None
    declared = site.case.hierarchies.get(site.key, [])
    if declared:
        blocks = {block: list(options) for block, options in declared[site.v].items()}
    else:
        first = set(site.rng.sample(list(named), len(named) // 2))
        blocks = {
            "block_a": [option for option in named if option in first],
            "block_b": [option for option in named if option not in first],
        }
    own = site.question["criteria"]
    criteria = {
        block: own[options[0]]
        if len(options) == 1 and own[options[0]] is not None
        else words.BLOCK.format(menu=menu(named[option] for option in options))
        for block, options in blocks.items()
    }
    return Built(site.replacing(edited(site.question, criteria=criteria)), {"blocks": blocks})


def _coarser(site: Site) -> Built | None:
    levels = texts(site.question) if site.question["type"] == "score" else None
    if levels is None or len(levels) < 4:
        return None
    blocks = [[i, i + 1] for i in range(0, len(levels) - 1, 2)]
    if len(levels) % 2:
        blocks[-1].append(len(levels) - 1)
    criteria = [words.COARSER.format(levels=" or ".join(f'"{levels[i]}"' for i in block)) for block in blocks]
    return Built(site.replacing(edited(site.question, criteria=criteria)), {"blocks": blocks})


def _higher(site: Site) -> Built | None:
    levels = texts(site.question) if site.question["type"] == "score" else None
    if levels is None:
        return None
    question = edited(site.question, criteria=[*levels, words.BEYOND.format(o=levels[-1])])
    if not fits(question):
        return None
    return Built(site.replacing(question), {"added": str(len(levels))})


def _closed(site: Site) -> Built:
    criteria = site.question["criteria"]
    replaced = list(criteria)[site.v]
    nota = underscored("none_of_the_others", criteria)
    new = {
        nota if option == replaced else option: words.CATCH_ALL if option == replaced else text
        for option, text in criteria.items()
    }
    return Built(site.replacing(edited(site.question, criteria=new)), {"replaced": replaced, "nota": nota})


def _probed(site: Site, template: str, answers: list[str], keys: dict[str, str], indices: list[int]) -> Built:
    """Ask one probe for each of these answers; `keys` maps what is judged to the wanted key of its probe."""
    probes: dict[str, str] = {}
    names = {}
    for (name, wanted), i in zip(keys.items(), indices, strict=True):
        names[name] = site.new_key(wanted, probes)
        probes[names[name]] = _quoting(site, template, answers, i)
    return Built(site.probing(probes), {"probes": names})


def _tails(site: Site) -> Built | None:
    answers = quotable(site.question, "score")
    if answers is None:
        return None
    levels = list(range(1, len(answers)))
    keys = {str(i): f"{site.key}__from_{i}" for i in levels}
    return _probed(site, words.SCORE_CUMULATIVE[site.v], answers, keys, levels)


def _indicators(site: Site) -> Built | None:
    answers = quotable(site.question, "choice")
    if answers is None:
        return None
    keys = {option: f"{site.key}__is_{option}" for option in site.question["criteria"]}
    return _probed(site, words.CHOICE_INDICATOR[site.v], answers, keys, list(range(len(answers))))


def _joint(site: Site) -> Built | None:
    partners = nouls(site)
    if not partners or not is_plain_noul(site.question):
        return None
    partner = site.rng.choice(partners)
    pair = site.new_key(f"{site.key}__with__{partner}")
    question = {
        "type": "choice",
        "instructions": words.PAIR.format(a=site.question["instructions"], b=site.batch[partner]["instructions"]),
        "criteria": dict(words.PAIR_OPTIONS),
    }
    return Built(site.probing({pair: question}), {"pair": pair}, (site.key, partner))


def two_nouls(site: Site) -> Built | None:
    """Ask for A and B, and for A or B, about a drawn other Noul."""
    partners = nouls(site)
    if not partners or not is_plain_noul(site.question):
        return None
    partner = site.rng.choice(partners)
    a, b = site.question["instructions"], site.batch[partner]["instructions"]
    both, either = words.CONJUNCTION[site.v]
    conj = site.new_key(f"{site.key}__and__{partner}")
    disj = site.new_key(f"{site.key}__or__{partner}", [conj])
    probes = {conj: both.format(a=a, b=b), disj: either.format(a=a, b=b)}
    return Built(site.probing(probes), {"conj": conj, "disj": disj}, (site.key, partner))


RELATIONS = [
    Relation(
        name="negation_wrapper",
        group="MEA.complement",
        form="I",
        edits=("instructions", "batch"),
        law="'yes' and 'the answer is no' have probabilities that sum to one",
        check="complement_gap",
        spread="3 templates",
        source="Kolmogorov: complement rule",
        build=_wrapped,
        variants=fixed(len(words.NEGATION)),
        deviate=_negated,
    ),
    Relation(
        name="natural_negation",
        group="MEA.complement",
        form="I",
        edits=("instructions", "batch"),
        law="a question and its natural opposite have probabilities that sum to one",
        check="complement_gap",
        spread="one rewrite of the bank",
        source="Kolmogorov: complement rule",
        build=_opposite,
        deviate=_negated,
    ),
    Relation(
        name="choice_complement",
        group="MEA.complement",
        form="I",
        edits=("type", "instructions", "batch"),
        law="an option's probability and that of 'not this option' sum to one",
        check="complement_gap",
        spread="3 templates",
        source="Kolmogorov: complement rule, across answer types",
        build=_other_option,
        variants=fixed(len(words.CHOICE_COMPLEMENT)),
        draws=True,
        deviate=lambda e: _not_one_outcome(e, "option"),
    ),
    Relation(
        name="score_complement",
        group="MEA.complement",
        form="I",
        edits=("type", "instructions", "batch"),
        law="a level's probability and that of 'not this level' sum to one",
        check="complement_gap",
        spread="2 templates",
        source="Kolmogorov: complement rule, across answer types",
        build=_other_level,
        variants=fixed(len(words.SCORE_COMPLEMENT)),
        draws=True,
        deviate=lambda e: _not_one_outcome(e, "level"),
    ),
    Relation(
        name="compound_negation",
        group="MEA.complement",
        form="I",
        edits=("instructions", "batch"),
        law="'both' and 'not both' have probabilities that sum to one",
        check="complement_gap",
        spread="drawn",
        source="Kolmogorov: complement rule on a conjunction",
        build=compound,
        draws=True,
        deviate=_compound_negation,
        unit="de_morgan",
    ),
    Relation(
        name="option_merge",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="two options made one get the sum of their probabilities",
        check="tv_to_coarsened",
        spread="drawn",
        source="finite additivity over a coarser partition",
        build=_merging,
        draws=True,
        deviate=_merged,
    ),
    Relation(
        name="option_split",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="an option divided by a yes/no property keeps its probability in the two parts together",
        check="tv_after_collapse",
        spread="drawn",
        source="finite additivity over a finer partition; unpacking effect (support theory)",
        build=_splitting,
        draws=True,
        deviate=_split,
    ),
    Relation(
        name="option_clone",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="an option and its identical copy together keep the option's probability",
        check="tv_after_collapse",
        spread="drawn",
        source="finite additivity; Debreu's red bus and blue bus",
        build=cloned,
        draws=True,
        deviate=lambda e: _refined(e, e.param("clone"), e.param("option")),
        unit="option_clone",
    ),
    Relation(
        name="similarity_effect",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="an option and a near-duplicate together keep the option's probability",
        check="tv_after_collapse",
        spread="drawn",
        source="Tversky's similarity effect, as a refinement",
        build=_twinned,
        draws=True,
        deviate=lambda e: _refined(e, e.param("twin"), e.param("option")),
    ),
    Relation(
        name="partition_hierarchy",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="blocks of options get the sums of their options' probabilities",
        check="tv_to_coarsened",
        spread="every declared hierarchy, else drawn",
        source="finite additivity over a coarser partition",
        build=_blocked,
        variants=_hierarchies,
        draws=True,
        deviate=_hierarchy,
    ),
    Relation(
        name="score_granularity",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="adjacent levels made one get the sum of their probabilities",
        check="tv_to_coarsened",
        spread="fixed",
        source="finite additivity over a coarser scale",
        build=_coarser,
        deviate=_granularity,
    ),
    Relation(
        name="extreme_level",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="a level beyond the top takes its probability from the old top level only",
        check="tv_after_collapse",
        spread="fixed",
        source="finite additivity: the top level is refined",
        build=_higher,
        deviate=_beyond_top,
    ),
    Relation(
        name="option_closure",
        group="MEA.partition",
        form="E",
        edits=("criteria",),
        law="'none of the others' in place of an option gets that option's probability",
        check="catch_all_tv",
        spread="every option",
        source="finite additivity on an exhaustive menu",
        build=_closed,
        variants=lambda site: menu_size(site.question, 3),
        deviate=_closure,
    ),
    Relation(
        name="score_cumulative",
        group="MEA.marginalisation",
        form="I",
        edits=("type", "instructions", "batch"),
        law="'this level or higher', asked for every level, equals the upper tail of the Score",
        check="tail_gap_max",
        spread="2 templates",
        source="marginalisation: cumulative events of one ordered variable",
        build=_tails,
        variants=fixed(len(words.SCORE_CUMULATIVE)),
        deviate=_cumulative,
    ),
    Relation(
        name="choice_indicator",
        group="MEA.marginalisation",
        form="I",
        edits=("type", "instructions", "batch"),
        law="'is it this option', asked for every option, equals the option's probability",
        check="indicator_gap",
        spread="2 templates",
        source="marginalisation: indicator events of one variable",
        build=_indicators,
        variants=fixed(len(words.CHOICE_INDICATOR)),
        deviate=_indicator,
    ),
    Relation(
        name="pair_choice_marginals",
        group="MEA.marginalisation",
        form="I",
        edits=("type", "instructions", "batch"),
        law="a Choice over the four joint answers of two Nouls has these Nouls as its marginals",
        check="marginal_gap",
        spread="drawn",
        source="law of total probability",
        build=_joint,
        draws=True,
        deviate=_pair_marginals,
    ),
    Relation(
        name="inclusion_exclusion",
        group="MEA.marginalisation",
        form="I",
        edits=("instructions", "batch"),
        law="P(A and B) + P(A or B) = P(A) + P(B)",
        check="inclusion_exclusion",
        spread="3 templates",
        source="inclusion and exclusion of two events",
        build=two_nouls,
        variants=fixed(len(words.CONJUNCTION)),
        draws=True,
        deviate=_inclusion_exclusion,
        unit="conjunction_disjunction",
    ),
]
