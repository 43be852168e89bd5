"""The laws are theorems: trials as the project builds them, answered from a joint distribution, deviate by nothing.

When answers are bent, the deviation is what the catalogue says it is: every formula is written here once more, from
the catalogue's text, on plain dicts. Laws that are inequalities are also tested on their boundary and just beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import Oracle
from pytest_jevbench.judge import outcomes
from pytest_jevbench.planning import trials
from pytest_jevbench.relations import CATALOGUE, Evidence
from pytest_jevbench.wire import Answers, Batch, read_answers
from pytest_jevbench.wire import outcomes as declared
from random_cases import coherent_cases

Dist = dict[str, float]
FEW = settings(deadline=None, max_examples=12)


@dataclass(frozen=True)
class Seen:
    """What a formula reads: the target `k`, the targets, the params, source answers `p`, the reply's answers `q`."""

    k: str
    targets: tuple[str, ...]
    params: Mapping[str, Any]
    p: Mapping[str, Dist]
    q: Mapping[str, Dist]
    source: Answers
    replies: Mapping[str, Answers]

    def a(self) -> list[float]:
        """P(yes) of each target."""
        return [self.p[key]["true"] for key in self.targets]

    def says(self, param: str) -> float:
        """P(yes) of the probe that a param names."""
        return self.q[self.params[param]]["true"]


# The formulas, as the catalogue states them


def tv(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return sum(abs(a.get(o, 0.0) - b.get(o, 0.0)) for o in {*a, *b}) / 2


def renorm(d: Mapping[str, float], keep: list[str]) -> Dist:
    total = sum(d[o] for o in keep)
    return {o: d[o] / total if total else 1 / len(keep) for o in keep}


def swap(d: Mapping[str, float], pair: list[str]) -> Dist:
    a, b = pair
    return {**d, a: d[b], b: d[a]}


def without(d: Mapping[str, float], *gone: str) -> Dist:
    return {o: p for o, p in d.items() if o not in gone}


def same(s: Seen) -> Dist:
    return {s.k: tv(s.q[s.k], s.p[s.k])}


def read_back(s: Seen) -> Dist:
    q = s.q[s.k]
    if s.params["order"] == "reversed":
        q = {str(len(q) - 1 - int(level)): p for level, p in q.items()}
    return {s.k: tv(q, s.p[s.k])}


def each_target(s: Seen) -> Dist:
    return {key: tv(s.q[key], s.p[key]) for key in s.targets}


def swapped(s: Seen) -> Dist:
    return {s.k: tv(swap(s.q[s.k], s.params["pair"]), s.p[s.k])}


def added_up(s: Seen, extra: str, to: str) -> Dist:
    q = s.q[s.k]
    return {s.k: tv({**without(q, extra), to: q[to] + q[extra]}, s.p[s.k])}


def split(s: Seen) -> Dist:
    q, (one, other) = s.q[s.k], s.params["parts"]
    return {s.k: tv({**without(q, one, other), s.params["option"]: q[one] + q[other]}, s.p[s.k])}


def merged(s: Seen) -> Dist:
    p, (one, other) = s.p[s.k], s.params["parts"]
    return {s.k: tv(s.q[s.k], {**without(p, one, other), s.params["merged"]: p[one] + p[other]})}


def in_blocks(s: Seen, blocks: Mapping[str, list[str]]) -> Dist:
    return {s.k: tv(s.q[s.k], {name: sum(s.p[s.k][o] for o in members) for name, members in blocks.items()})}


def levels_in_blocks(s: Seen) -> Dist:
    return in_blocks(s, {str(i): [str(level) for level in block] for i, block in enumerate(s.params["blocks"])})


def catch_all(s: Seen) -> Dist:
    p, replaced = s.p[s.k], s.params["replaced"]
    return {s.k: tv(s.q[s.k], {**without(p, replaced), s.params["nota"]: p[replaced]})}


def complement(s: Seen, p: float, probe: str) -> Dist:
    return {s.k: abs(p + s.says(probe) - 1)}


def tails(s: Seen) -> Dist:
    p = s.p[s.k]
    gaps = [
        abs(s.q[probe]["true"] - sum(p[level] for level in p if int(level) >= int(k)))
        for k, probe in s.params["probes"].items()
    ]
    return {s.k: max(gaps)}


def indicators(s: Seen) -> Dist:
    return {s.k: max(abs(s.q[probe]["true"] - s.p[s.k][o]) for o, probe in s.params["probes"].items())}


def marginals(s: Seen) -> Dist:
    joint, (a, b) = s.q[s.params["pair"]], s.a()
    return {s.k: max(abs(joint["10"] + joint["11"] - a), abs(joint["01"] + joint["11"] - b))}


def excess(over: Callable[[Seen], float]) -> Callable[[Seen], Dist]:
    return lambda s: {s.k: max(0.0, over(s))}


def rise(s: Seen) -> float:
    p = {int(k): s.q[probe]["true"] for k, probe in s.params["probes"].items()}
    return max((p[high] - p[low] for low in p for high in p if low < high), default=0.0)


def chain(s: Seen) -> float:
    strong, p, weak = s.says("strong"), s.p[s.k]["true"], s.says("weak")
    return max(strong - p, p - weak, strong - weak)


def quantifiers(s: Seen) -> float:
    every, two, some = s.says("all"), s.says("two"), s.says("any")
    return max(every - two, two - some, every - some)


def fits_definition(s: Seen) -> Dist:
    definitions: list[Callable[[list[float]], float]] = [
        max,
        lambda p: max(p) - sorted(p)[-2],
        lambda p: 1 - sum(-x * math.log(x) for x in p if x) / math.log(len(p)),
    ]
    errors = [
        {key: abs(stated - define(list(s.p[key].values()))) for key, stated in s.source.confidences.items()}
        for define in definitions
    ]
    return min(errors, key=lambda each: max(each.values()))


def routes(s: Seen) -> Dist:
    def routed(answers: Answers, key: str) -> bool:
        return answers.confidences.get(key, max(answers.distributions[key].values())) >= 0.8

    read = s.params["read"]
    changed = [routed(s.replies[label], key) != routed(s.source, s.k) for label, key in read.items()]
    return {s.k: sum(changed) / len(changed)}


FORMULAS: dict[str, Callable[[Seen], Dist]] = {
    "instruction_paraphrase": same,
    "cross_lingual": same,
    "typo_noise": same,
    "verbosity": same,
    "key_rename": lambda s: {s.k: tv(s.q[s.params["new_key"]], s.p[s.k])},
    "description_paraphrase": same,
    "de_morgan": lambda s: {s.k: abs(s.says("nand") - s.says("or_not"))},
    "option_permutation": read_back,
    "option_rename": lambda s: {s.k: tv({s.params["mapping"][o]: p for o, p in s.q[s.k].items()}, s.p[s.k])},
    "clone_symmetry": lambda s: {s.k: abs(s.q[s.k][s.params["option"]] - s.q[s.k][s.params["clone"]])},
    "key_instruction_conflict": lambda s: {key: tv(s.q[sent], s.p[key]) for key, sent in s.params["keys"].items()},
    "name_description_conflict": swapped,
    "description_swap": swapped,
    "noul_as_choice": lambda s: {s.k: abs(s.q[s.k]["yes"] - s.p[s.k]["true"])},
    "noul_as_score": lambda s: {s.k: abs(s.q[s.k]["1"] - s.p[s.k]["true"])},
    "batch_solo": same,
    "batch_order": each_target,
    "duplicate_question": lambda s: {s.k: tv(s.q[s.k], s.q[s.params["duplicate"]])},
    "batch_content": same,
    "batch_size_sweep": each_target,
    "negation_wrapper": lambda s: complement(s, s.p[s.k]["true"], "negated"),
    "natural_negation": lambda s: complement(s, s.p[s.k]["true"], "negated"),
    "choice_complement": lambda s: complement(s, s.p[s.k][s.params["option"]], "probe"),
    "score_complement": lambda s: complement(s, s.p[s.k][s.params["level"]], "probe"),
    "compound_negation": lambda s: {s.k: abs(s.says("nand") + s.says("and") - 1)},
    "option_merge": merged,
    "option_split": split,
    "option_clone": lambda s: added_up(s, s.params["clone"], s.params["option"]),
    "similarity_effect": lambda s: added_up(s, s.params["twin"], s.params["option"]),
    "partition_hierarchy": lambda s: in_blocks(s, s.params["blocks"]),
    "score_granularity": levels_in_blocks,
    "extreme_level": lambda s: added_up(s, s.params["added"], str(int(s.params["added"]) - 1)),
    "option_closure": catch_all,
    "score_cumulative": tails,
    "choice_indicator": indicators,
    "pair_choice_marginals": marginals,
    "inclusion_exclusion": lambda s: {s.k: abs(s.says("conj") + s.says("disj") - sum(s.a()))},
    "frechet_and_upper": excess(lambda s: s.says("conj") - min(s.a())),
    "nary_and_upper": excess(lambda s: s.says("all") - min(s.a())),
    "nary_and_lower": excess(lambda s: sum(s.a()) - 2 - s.says("all")),
    "nary_or_upper": excess(lambda s: s.says("any") - min(1, sum(s.a()))),
    "nary_or_lower": excess(lambda s: max(s.a()) - s.says("any")),
    "count_upper": excess(lambda s: s.says("two") - sum(s.a()) / 2),
    "count_lower": excess(lambda s: (sum(s.a()) - 1) / 2 - s.says("two")),
    "threshold_sweep": excess(rise),
    "entailment_strength": excess(chain),
    "quantifier_monotonicity": excess(quantifiers),
    "irrelevant_option": lambda s: {s.k: tv(renorm(s.q[s.k], list(s.p[s.k])), s.p[s.k])},
    "remove_option_iia": lambda s: {
        s.k: tv(s.q[s.k], renorm(s.p[s.k], [o for o in s.p[s.k] if o != s.params["removed"]]))
    },
    "pairwise_iia": lambda s: {s.k: tv(s.q[s.k], renorm(s.p[s.k], s.params["pair"]))},
    "confidence_consistency": fits_definition,
    "routing_stability": routes,
}


def formula(evidence: Evidence) -> Dist:
    """Compute the deviations of a trial by the formula above, by target."""
    trial = evidence.trial
    reply = evidence.replies["variant"].distributions if "variant" in evidence.replies else {}
    return FORMULAS[trial.relation](
        Seen(
            trial.key,
            trial.targets,
            trial.params,
            evidence.source.distributions,
            reply,
            evidence.source,
            evidence.replies,
        )
    )


def deviations(evidence: Evidence) -> Dist:
    """Judge a trial as the project does."""
    return {each.target: each.deviation for each in outcomes(CATALOGUE[evidence.trial.relation], evidence)}


# Trials of the project, answered by the oracle


@st.composite
def coherent_evidence(draw: st.DrawFn, name: str) -> Evidence:
    """Draw a case and one of the trials that a relation has on it, answered from a random joint distribution."""
    case, bank = draw(coherent_cases())
    trial = draw(st.sampled_from(list(trials(case, [CATALOGUE[name]], bank, draws=2))))
    oracle = Oracle([case], bank, seed=draw(st.integers(0, 99)))

    def answers(batch: Batch) -> Answers:
        return read_answers(oracle(case.state, batch), batch)

    replies = {label: answers(batch) for label, batch in trial.requests.items()}
    return Evidence(trial, case.questions, answers(case.questions), replies)


def test_every_relation_has_a_formula() -> None:
    assert FORMULAS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("name", CATALOGUE)
@FEW
@given(data=st.data())
def test_answers_from_one_joint_distribution_keep_the_law(name: str, data: st.DataObject) -> None:
    evidence = data.draw(coherent_evidence(name))

    found = deviations(evidence)

    assert found
    assert max(found.values()) <= 1e-9
    assert found == pytest.approx(formula(evidence), abs=1e-9)


def places(evidence: Evidence) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """List the answers that a law may read, as (request, question), and among them those it is about."""
    batches = {"": evidence.questions, **evidence.trial.requests}
    everywhere = [(label, key) for label, batch in batches.items() for key in batch]
    own = evidence.questions
    about = [
        (label, key)
        for label, key in everywhere
        if key in evidence.trial.targets or (label and batches[label][key] != own.get(key))
    ]
    return everywhere, about


def some_distribution(draw: st.DrawFn, names: tuple[str, ...]) -> Dist:
    """Draw any distribution; certainty and ties are as welcome as anything else."""
    weights = draw(st.lists(st.integers(0, 20), min_size=len(names), max_size=len(names)).filter(any))
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


@st.composite
def bent_evidence(draw: st.DrawFn, name: str) -> Evidence:
    """Draw coherent answers and replace some of them, in any request, by anything."""
    evidence = draw(coherent_evidence(name))
    everywhere, about = places(evidence)
    chosen = draw(st.sets(st.sampled_from(everywhere), max_size=4)) | {draw(st.sampled_from(about))}
    answers = {"": evidence.source, **evidence.replies}
    batches = {"": evidence.questions, **evidence.trial.requests}
    for label, key in sorted(chosen):
        old = answers[label]
        new = {**old.distributions, key: some_distribution(draw, declared(batches[label][key]))}
        confidences = {**old.confidences, key: draw(st.integers(0, 20)) / 20}
        answers[label] = replace(old, distributions=new, confidences=confidences)
    return replace(evidence, source=answers.pop(""), replies=answers)


@pytest.mark.parametrize("name", CATALOGUE)
def test_bent_answers_deviate_by_the_formula(name: str) -> None:
    found: list[float] = []

    @FEW
    @given(bent_evidence(name))
    def bend(evidence: Evidence) -> None:
        judged = deviations(evidence)
        found.extend(judged.values())
        assert judged == pytest.approx(formula(evidence), abs=1e-9)

    bend()

    # An inequality may well survive any dozen of changes; an equality does not.
    assert CATALOGUE[name].form == "L" or max(found) > 0.01


# Inequalities, on their boundary and just beyond it; all numbers are multiples of powers of two: nothing rounds

STEP = 2.0**-20
"""Just beyond."""


def nouls(answers: Answers, p: Mapping[str, float]) -> Answers:
    """Return the answers with other probabilities of yes."""
    changed = {key: {"false": 1 - each, "true": each} for key, each in p.items()}
    return replace(answers, distributions={**answers.distributions, **changed})


def with_answers(evidence: Evidence, source: Mapping[str, float], reply: Mapping[str, float]) -> Evidence:
    replies = {"variant": nouls(evidence.replies["variant"], reply)}
    return replace(evidence, source=nouls(evidence.source, source), replies=replies)


def deviation(evidence: Evidence) -> float:
    (found,) = deviations(evidence).values()
    return found


@dataclass(frozen=True)
class Bound:
    """`probe` is the bounded one, on one side (1: it is at most, -1: it is at least); `edge` gives the bound.

    The single questions have probabilities of `low` to `high` 64ths, for which the bound lies between 0 and 1.
    """

    probe: str
    side: int
    edge: Callable[..., float]
    low: int = 1
    high: int = 63


BOUNDS = {
    "frechet_and_upper": Bound("conj", 1, min),
    "nary_and_upper": Bound("all", 1, min),
    "nary_and_lower": Bound("all", -1, lambda a, b, c: a + b + c - 2, low=43),
    "nary_or_upper": Bound("any", 1, lambda a, b, c: a + b + c, high=21),
    "nary_or_lower": Bound("any", -1, max),
    "count_upper": Bound("two", 1, lambda a, b, c: (a + b + c) / 2, high=42),
    "count_lower": Bound("two", -1, lambda a, b, c: (a + b + c - 1) / 2, low=22),
}
CHAINS = {"entailment_strength": ("strong", "", "weak"), "quantifier_monotonicity": ("all", "two", "any")}
"""Probes from the least to the most probable; "" is the target itself."""


def test_every_inequality_is_tested_on_its_boundary() -> None:
    inequalities = {name for name, relation in CATALOGUE.items() if relation.form == "L"}

    assert {*BOUNDS, *CHAINS, "threshold_sweep"} == inequalities


@pytest.mark.parametrize("name", BOUNDS)
@FEW
@given(data=st.data())
def test_a_bound_holds_up_to_its_boundary_and_no_further(name: str, data: st.DataObject) -> None:
    evidence = data.draw(coherent_evidence(name))
    bound, targets = BOUNDS[name], evidence.trial.targets
    singles = [data.draw(st.integers(bound.low, bound.high)) / 64 for _ in targets]
    edge = bound.edge(*singles)

    def at(p: float) -> float:
        source = dict(zip(targets, singles, strict=True))
        return deviation(with_answers(evidence, source, {evidence.trial.params[bound.probe]: p}))

    assert at(edge) == 0
    assert at(edge - bound.side * STEP) == 0
    assert at(edge + bound.side * STEP) == STEP


@pytest.mark.parametrize("name", CHAINS)
@FEW
@given(data=st.data())
def test_a_chain_holds_while_no_link_is_less_probable_than_what_it_follows_from(
    name: str, data: st.DataObject
) -> None:
    evidence = data.draw(coherent_evidence(name))
    low, middle, high = sorted(n / 64 for n in data.draw(st.lists(st.integers(1, 63), min_size=3, max_size=3)))

    def at(*p: float) -> float:
        links = dict(zip(CHAINS[name], p, strict=True))
        source = {evidence.trial.key: links.pop("")} if "" in links else {}
        return deviation(
            with_answers(evidence, source, {evidence.trial.params[k]: each for k, each in links.items()})
        )

    assert at(low, middle, high) == 0
    assert at(middle, middle, middle) == 0
    assert at(middle + STEP, middle, middle + STEP) == STEP
    assert at(middle - STEP, middle, middle - STEP) == STEP
    assert at(middle + STEP, middle, middle - STEP) == 2 * STEP


@FEW
@given(data=st.data())
def test_a_sweep_holds_while_no_step_rises(data: st.DataObject) -> None:
    evidence = data.draw(coherent_evidence("threshold_sweep"))
    probes = evidence.trial.params["probes"]
    keys = [probes[k] for k in sorted(probes, key=int)]
    falling = sorted((n / 64 for n in data.draw(st.lists(st.integers(0, 63), min_size=9, max_size=9))), reverse=True)
    steps = dict(zip(keys, falling, strict=False))
    i = data.draw(st.integers(1, len(keys) - 1))

    assert deviation(with_answers(evidence, {}, steps)) == 0
    assert deviation(with_answers(evidence, {}, dict.fromkeys(keys, 0.5))) == 0
    assert deviation(with_answers(evidence, {}, {**steps, keys[i]: steps[keys[i - 1]] + STEP})) == STEP


# The bounds are the best there are: some joint distribution reaches each of them

NESTED = {"111": 0.25, "110": 0.25, "100": 0.25, "000": 0.25}
ATTAINED = {
    "frechet_and_upper": NESTED,
    "nary_and_upper": NESTED,
    "nary_or_lower": NESTED,
    "nary_and_lower": {"011": 0.25, "101": 0.25, "110": 0.25, "111": 0.25},
    "nary_or_upper": {"100": 0.25, "010": 0.25, "001": 0.25, "000": 0.25},
    "count_upper": {"110": 0.5, "000": 0.5},
    "count_lower": {"100": 0.5, "111": 0.5},
}
"""Joint distributions of three yes/no questions, by which of them are answered yes."""


@pytest.mark.parametrize("name", BOUNDS)
def test_some_joint_distribution_lies_on_the_boundary(name: str) -> None:
    joint, bound = ATTAINED[name], BOUNDS[name]
    n, least = {"conj": (2, 2), "all": (3, 3), "two": (3, 2), "any": (3, 1)}[bound.probe]
    singles = [sum(p for world, p in joint.items() if world[i] == "1") for i in range(n)]

    assert bound.edge(*singles) == sum(p for world, p in joint.items() if world[:n].count("1") >= least)
