"""MEA - probability measure: probabilities of different events of one measure add up."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .base import (
    Evidence,
    Outcome,
    Relation,
    added_to,
    block_sums,
    compared,
    complement,
    merged_into,
)


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
    deviation = max((abs(probe - event) for event, probe in gaps.values()), default=0.0)
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
        deviate=_inclusion_exclusion,
        unit="conjunction_disjunction",
    ),
]
