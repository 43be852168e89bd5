"""REP - representation consistency: two descriptions of the same events get the same probabilities."""

from __future__ import annotations

from .base import (
    Evidence,
    Outcome,
    Relation,
    compared,
    exchanged,
    invariant,
    invariant_under_keys,
    sides_differ,
)


def _de_morgan(evidence: Evidence) -> list[Outcome]:
    nand, or_not = evidence.q_yes(evidence.param("nand")), evidence.q_yes(evidence.param("or_not"))
    terms = {"P(not (A and B))": nand, "P(not A or not B)": or_not}
    return [Outcome(evidence.trial.key, abs(nand - or_not), sides_differ(nand, or_not), terms=terms)]


def _permuted(evidence: Evidence) -> list[Outcome]:
    got = evidence.q()
    if evidence.param("order") == "reversed":
        top = len(got) - 1
        got = {str(top - int(level)): value for level, value in got.items()}
    return [compared(evidence.trial.key, evidence.p(), got)]


def _renamed_options(evidence: Evidence) -> list[Outcome]:
    mapping = evidence.param("mapping")
    return [compared(evidence.trial.key, evidence.p(), {mapping[new]: v for new, v in evidence.q().items()})]


def _clone_symmetry(evidence: Evidence) -> list[Outcome]:
    got, option, clone = evidence.q(), evidence.param("option"), evidence.param("clone")
    terms = {f"P({option})": got[option], f"P({clone}), the same option again": got[clone]}
    return [Outcome(evidence.trial.key, abs(got[option] - got[clone]), None, terms=terms)]


def _swapped_pair(evidence: Evidence) -> list[Outcome]:
    return [compared(evidence.trial.key, evidence.p(), exchanged(evidence.q(), evidence.param("pair")))]


def _as_other_type(evidence: Evidence, yes: str) -> list[Outcome]:
    before, after = evidence.p_yes(), evidence.q()[yes]
    terms = {"P(yes), asked as a Noul": before, "P(yes), asked as the other type": after}
    return [Outcome(evidence.trial.key, abs(after - before), sides_differ(before, after), terms=terms)]


RELATIONS = [
    Relation(
        name="instruction_paraphrase",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="a faithful paraphrase of the instructions leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality: probability attaches to an event, not to its description",
        deviate=invariant,
    ),
    Relation(
        name="cross_lingual",
        group="REP.invariance",
        form="E",
        edits=("instructions", "criteria"),
        law="the question in another language leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality, across languages",
        deviate=invariant,
    ),
    Relation(
        name="typo_noise",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="lower case, two typing slips or missing punctuation leave the answer as it is",
        check="tv",
        spread="3 kinds of noise",
        source="extensionality; robustness to surface noise",
        deviate=invariant,
    ),
    Relation(
        name="verbosity",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="guidance without content around the instructions leaves the answer as it is",
        check="tv",
        spread="3 templates",
        source="extensionality; conditioning on nothing changes nothing",
        deviate=invariant,
    ),
    Relation(
        name="key_rename",
        group="REP.invariance",
        form="E",
        edits=("key",),
        law="a question's key is a name: a neutral one leaves the answer as it is",
        check="tv",
        spread="drawn",
        source="extensionality; identifiers carry no evidence",
        deviate=lambda e: invariant_under_keys(e, {e.trial.key: e.param("new_key")}),
    ),
    Relation(
        name="description_paraphrase",
        group="REP.invariance",
        form="E",
        edits=("criteria",),
        law="a faithful paraphrase of one option's description leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality",
        deviate=invariant,
    ),
    Relation(
        name="de_morgan",
        group="REP.invariance",
        form="E",
        edits=("instructions", "batch"),
        law="'not both' and 'at least one is false' are one event and get one probability",
        check="nand_vs_or_not",
        spread="drawn",
        source="De Morgan's law",
        deviate=_de_morgan,
    ),
    Relation(
        name="option_permutation",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="another order of the options, or the levels reversed, moves no probability",
        check="tv",
        spread="drawn",
        source="exchangeability of labels; position bias",
        deviate=_permuted,
    ),
    Relation(
        name="option_rename",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="neutral option ids with the same descriptions move no probability",
        check="tv",
        spread="fixed",
        source="exchangeability of labels; identifiers carry no evidence",
        deviate=_renamed_options,
    ),
    Relation(
        name="clone_symmetry",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="an option and its identical copy get the same probability",
        check="clone_symmetry",
        spread="drawn",
        source="principle of indifference between identical descriptions",
        deviate=_clone_symmetry,
        unit="option_clone",
    ),
    Relation(
        name="key_instruction_conflict",
        group="REP.binding",
        form="E",
        edits=("key",),
        law="a question is answered by its instructions, also under a negated or an exchanged key",
        check="tv",
        spread="2 kinds of key",
        source="binding: the instructions define the event",
        deviate=lambda e: invariant_under_keys(e, e.param("keys")),
    ),
    Relation(
        name="name_description_conflict",
        group="REP.binding",
        form="E",
        edits=("criteria",),
        law="two options that exchange their ids exchange their probabilities",
        check="tv",
        spread="drawn",
        source="binding: the description defines the option",
        deviate=_swapped_pair,
    ),
    Relation(
        name="description_swap",
        group="REP.binding",
        form="E",
        edits=("criteria",),
        law="two options that exchange their descriptions exchange their probabilities",
        check="tv",
        spread="drawn",
        source="binding: the description defines the option",
        deviate=_swapped_pair,
    ),
    Relation(
        name="noul_as_choice",
        group="REP.type",
        form="E",
        edits=("type", "criteria"),
        law="a yes/no question asked as a Choice of yes and no keeps its probability of yes",
        check="abs_diff",
        spread="drawn",
        source="extensionality across answer types",
        deviate=lambda e: _as_other_type(e, "yes"),
    ),
    Relation(
        name="noul_as_score",
        group="REP.type",
        form="E",
        edits=("type", "criteria"),
        law="a yes/no question asked as a Score of two levels keeps its probability of yes",
        check="abs_diff",
        spread="2 templates",
        source="extensionality across answer types",
        deviate=lambda e: _as_other_type(e, "1"),
    ),
]
