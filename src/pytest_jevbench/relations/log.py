"""LOG - logical coherence: what entails more is no more probable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from . import words
from .base import Evidence, Outcome, Relation, excess, fixed
from .build import Built, Site, is_plain_noul, nouls
from .mea import two_nouls

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
    if not by_threshold:
        raise ValueError("there are no probes")
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


def _three(site: Site, templates: Mapping[str, str]) -> Built | None:
    """Ask about the target and two drawn other Nouls together."""
    partners = nouls(site)
    if len(partners) < 2 or not is_plain_noul(site.question):
        return None
    targets = (site.key, *site.rng.sample(partners, 2))
    a, b, c = (site.batch[key]["instructions"] for key in targets)
    probes: dict[str, str] = {}
    params = {}
    for name, template in templates.items():
        key = params[name] = site.new_key(f"{site.key}__{name}_of_three", probes)
        probes[key] = template.format(a=a, b=b, c=c)
    return Built(site.probing(probes), params, targets)


DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def grid(value: int) -> list[int]:
    """Return the thresholds asked about around a value: the smallest nine of a fine or a proportional grid."""
    if value <= 20:
        found = {max(0, k) for k in range(value - 3, value + 4)}
    else:
        found = {int(value * share) for share in (0.25, 0.5, 0.8, 0.95, 1, 1.05, 1.25, 2)}
    return sorted(found)[:9]


def _swept(site: Site) -> Built:
    if site.case.thresholds:
        subject, value = site.case.thresholds[site.v]
        template = words.THRESHOLD
    else:
        state = site.case.state
        text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
        subject, value = "digit groups", len(DIGITS.findall(text))
        template = words.DIGIT_GROUPS
    probes: dict[str, str] = {}
    keys = {}
    for k in grid(value):
        keys[str(k)] = site.new_key(f"more_than_{k}", probes)
        probes[keys[str(k)]] = template.format(subject=subject, k=k)
    return Built(site.probing(probes), {"probes": keys, "value": value, "subject": subject})


def _readings(site: Site) -> Built | None:
    if not is_plain_noul(site.question):
        return None
    question = site.question["instructions"]
    strong = site.new_key(f"{site.key}__proven")
    weak = site.new_key(f"{site.key}__allowed", [strong])
    probes = {strong: words.STRONG.format(q=question), weak: words.WEAK.format(q=question)}
    return Built(site.probing(probes), {"strong": strong, "weak": weak})


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
        build=two_nouls,
        variants=fixed(len(words.CONJUNCTION)),
        draws=True,
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
        build=lambda site: _three(site, words.NARY),
        draws=True,
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
        build=lambda site: _three(site, words.NARY),
        draws=True,
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
        build=lambda site: _three(site, words.NARY),
        draws=True,
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
        build=lambda site: _three(site, words.NARY),
        draws=True,
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
        build=lambda site: _three(site, words.QUANTIFIERS),
        draws=True,
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
        build=lambda site: _three(site, words.QUANTIFIERS),
        draws=True,
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
        build=_swept,
        variants=lambda site: max(1, len(site.case.thresholds)) if site.is_first else 0,
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
        build=_readings,
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
        build=lambda site: _three(site, words.QUANTIFIERS),
        draws=True,
        deviate=_quantifiers,
    ),
]
