"""LOG - logical coherence: what entails more is no more probable."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Evidence, Outcome, Relation, excess

SWEEP_TOLERANCE = 0.05


def _and_upper(evidence: Evidence) -> list[Outcome]:
    a, b = (evidence.p_yes(key) for key in evidence.trial.targets)
    both = evidence.q_yes(evidence.param("conj"))
    return excess(evidence, both - min(a, b), {"P(A)": a, "P(B)": b, "P(A and B)": both})


def _singles(evidence: Evidence) -> list[float]:
    return [evidence.p_yes(key) for key in evidence.trial.targets]


def _bound(evidence: Evidence, param: str, event: str, bound: str, over: float) -> list[Outcome]:
    """`over` is by how much the probe's probability oversteps the bound (0 or less: not at all)."""
    terms = dict(zip(("P(A)", "P(B)", "P(C)"), _singles(evidence), strict=False))
    terms |= {f"P({event})": evidence.q_yes(evidence.param(param)), f"beyond {bound} by": over}
    return excess(evidence, over, terms)


def _all_upper(evidence: Evidence) -> list[Outcome]:
    over = evidence.q_yes(evidence.param("all")) - min(_singles(evidence))
    return _bound(evidence, "all", "all", "the least of the three", over)


def _all_lower(evidence: Evidence) -> list[Outcome]:
    singles = _singles(evidence)
    over = sum(singles) - (len(singles) - 1) - evidence.q_yes(evidence.param("all"))
    return _bound(evidence, "all", "all", "the sum of the three less 2", over)


def _any_upper(evidence: Evidence) -> list[Outcome]:
    over = evidence.q_yes(evidence.param("any")) - min(1.0, sum(_singles(evidence)))
    return _bound(evidence, "any", "at least one", "the sum of the three", over)


def _any_lower(evidence: Evidence) -> list[Outcome]:
    over = max(_singles(evidence)) - evidence.q_yes(evidence.param("any"))
    return _bound(evidence, "any", "at least one", "the greatest of the three", over)


def _count_upper(evidence: Evidence) -> list[Outcome]:
    over = evidence.q_yes(evidence.param("two")) - sum(_singles(evidence)) / 2
    return _bound(evidence, "two", "at least two", "half the sum of the three", over)


def _count_lower(evidence: Evidence) -> list[Outcome]:
    singles = _singles(evidence)
    over = (sum(singles) - 1) / (len(singles) - 1) - evidence.q_yes(evidence.param("two"))
    return _bound(evidence, "two", "at least two", "half of (the sum less 1)", over)


def _sweep(evidence: Evidence) -> list[Outcome]:
    probes: Mapping[str, str] = evidence.param("probes")
    by_threshold = {k: evidence.q_yes(probes[k]) for k in sorted(probes, key=int)}
    rise, lowest = 0.0, 1.0
    for p in by_threshold.values():
        rise = max(rise, p - lowest)
        lowest = min(lowest, p)
    return excess(evidence, rise, {f"P(more than {k})": p for k, p in by_threshold.items()})


def _entailment(evidence: Evidence) -> list[Outcome]:
    strong, weak = evidence.q_yes(evidence.param("strong")), evidence.q_yes(evidence.param("weak"))
    p = evidence.p_yes()
    over = max(strong - p, p - weak, strong - weak)
    return excess(evidence, over, {"P(stronger)": strong, "P(as asked)": p, "P(weaker)": weak})


def _quantifiers(evidence: Evidence) -> list[Outcome]:
    every, two, one = (evidence.q_yes(evidence.param(name)) for name in ("all", "two", "any"))
    over = max(every - two, two - one, every - one)
    return excess(evidence, over, {"P(all)": every, "P(at least two)": two, "P(at least one)": one})


RELATIONS = [
    Relation(
        name="frechet_and_upper",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(A and B) is at most the smaller of P(A) and P(B)",
        check="excess",
        spread="3 templates",
        source="Fréchet's bounds; conjunction fallacy (Tversky and Kahneman)",
        deviate=_and_upper,
        unit="conjunction_disjunction",
    ),
    Relation(
        name="nary_and_upper",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(all three) is at most the least of the three",
        check="excess",
        spread="drawn",
        source="Fréchet's bounds",
        deviate=_all_upper,
        unit="nary_conjunction",
    ),
    Relation(
        name="nary_and_lower",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(all three) is at least their sum less 2",
        check="excess",
        spread="drawn",
        source="Fréchet's bounds",
        deviate=_all_lower,
        unit="nary_conjunction",
    ),
    Relation(
        name="nary_or_upper",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(at least one of three) is at most their sum",
        check="excess",
        spread="drawn",
        source="Boole's inequality",
        deviate=_any_upper,
        unit="nary_conjunction",
    ),
    Relation(
        name="nary_or_lower",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(at least one of three) is at least the greatest of them",
        check="excess",
        spread="drawn",
        source="Fréchet's bounds",
        deviate=_any_lower,
        unit="nary_conjunction",
    ),
    Relation(
        name="count_upper",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(at least two of three) is at most half their sum",
        check="excess",
        spread="drawn",
        source="Markov's inequality on the number of true statements",
        deviate=_count_upper,
        unit="quantifier_monotonicity",
    ),
    Relation(
        name="count_lower",
        group="LOG.bounds",
        form="L",
        edits=("instructions", "batch"),
        law="P(at least two of three) is at least half of (their sum less 1)",
        check="excess",
        spread="drawn",
        source="Markov's inequality on the number of false statements",
        deviate=_count_lower,
        unit="quantifier_monotonicity",
    ),
    Relation(
        name="threshold_sweep",
        group="LOG.monotonicity",
        form="L",
        edits=("instructions", "batch"),
        law="P(more than k) never rises with k",
        check="monotonicity",
        spread="every declared threshold, else the digit groups of the state",
        source="monotonicity of a survival function",
        deviate=_sweep,
        tolerance=SWEEP_TOLERANCE,
    ),
    Relation(
        name="entailment_strength",
        group="LOG.monotonicity",
        form="L",
        edits=("instructions", "batch"),
        law="a stronger reading is at most, a weaker one at least as probable as the question",
        check="chain",
        spread="fixed",
        source="monotonicity under entailment",
        deviate=_entailment,
    ),
    Relation(
        name="quantifier_monotonicity",
        group="LOG.monotonicity",
        form="L",
        edits=("instructions", "batch"),
        law="P(all) <= P(at least two) <= P(at least one)",
        check="chain",
        spread="drawn",
        source="monotonicity under entailment",
        deviate=_quantifiers,
    ),
]
