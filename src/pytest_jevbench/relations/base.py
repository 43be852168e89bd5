"""What a relation is: one transformation of the questions with one law about the answers.

A relation reads `Evidence` (the trial, the source output P and the answers Q) and gives one `Outcome` per judged
question. It never sees a model, a tolerance of the run, or a score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..taxonomy import DIAGNOSTICS, dimension_of
from ..wire import Answers, Batch, Distribution, argmax, tv
from .build import Built, Site

VARIANT = "variant"
"""The label of the one request of every scored relation."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One row of a plan: the requests a relation sends about one target, and what its judge needs to read them.

    `v` is the variant's index, `t` the draw's; `targets` are the questions whose source output the law reads;
    `requests` maps a label to a batch of questions; the state of all of them is the case's.
    """

    relation: str
    case: str
    key: str
    v: int
    t: int
    targets: tuple[str, ...]
    requests: Mapping[str, Batch]
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A trial together with its answers: `source` to the case's own batch, `replies` to the trial's requests."""

    trial: Trial
    questions: Batch
    source: Answers
    replies: Mapping[str, Answers]

    def param(self, name: str) -> Any:
        """Return one of the trial's params."""
        return self.trial.params[name]

    def p(self, key: str = "") -> Distribution:
        """Return the source output of a question (default: the target)."""
        return self.source.distributions[self.trial.key if key == "" else key]

    def q(self, key: str = "") -> Distribution:
        """Return the answer to a question of the trial's request (default: the target)."""
        return self.replies[VARIANT].distributions[self.trial.key if key == "" else key]

    def p_yes(self, key: str = "") -> float:
        """Return the source output's probability of yes for a Noul."""
        return self.p(key)["true"]

    def q_yes(self, key: str) -> float:
        """Return the answered probability of yes for a Noul of the trial's request."""
        return self.q(key)["true"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One judged question: how far the law was missed, in [0, 1] for every law but the additive ones.

    `flip` says whether the decision changed, None where that is not defined. Laws about whole distributions keep
    the two they compare (`expected` from the source output, `got` from the answers); all others keep the numbers
    they used in `terms`, by name.
    """

    target: str
    deviation: float
    flip: bool | None
    expected: Mapping[str, float] = field(default_factory=dict)
    got: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, float] = field(default_factory=dict)


def fixed(n: int) -> Callable[[Site], int]:
    """Return the `variants` of a relation that has the same number of them for every target."""
    return lambda _: n


ONE = fixed(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation with its metadata; the taxonomy, the docs and the tables are made from these fields.

    `law` states the law in one line, `source` where it comes from, `check` names the one quantity measured,
    `spread` what its variants are. `unit` names the relations that share its requests (default: itself).
    `tolerance` replaces the run's where the law has one of its own.

    `variants` says how many variants a target has (0: the relation does not apply to it), `build` makes one of them
    (None: it does not apply after all), `draws` whether building draws, so that further draws are further trials.
    """

    name: str
    group: str
    form: str
    edits: tuple[str, ...]
    law: str
    check: str
    spread: str
    source: str
    deviate: Callable[[Evidence], list[Outcome]]
    build: Callable[[Site], Built | None]
    variants: Callable[[Site], int] = ONE
    draws: bool = False
    unit: str = ""
    tolerance: float | None = None

    @property
    def dimension(self) -> str:
        """The code of its dimension."""
        return dimension_of(self.group)

    @property
    def scored(self) -> bool:
        """Whether it enters the scores: diagnostics do not."""
        return self.dimension != DIAGNOSTICS


# How deviations are formed: the few shapes that all laws share


def compared(target: str, expected: Mapping[str, float], got: Mapping[str, float], *, flips: bool = True) -> Outcome:
    """Compare two distributions over the same outcomes by total variation; the decision is the argmax."""
    if expected.keys() != got.keys():
        raise ValueError(f"outcomes {sorted(expected)} against {sorted(got)}")
    flip = argmax(expected) != argmax(got) if flips else None
    return Outcome(target, tv(got, expected), flip, expected, got)


def sides_differ(a: float, b: float) -> bool:
    """Say whether two probabilities of yes lead to different decisions (yes is p > 0.5)."""
    return (a > 0.5) != (b > 0.5)


def invariant(evidence: Evidence) -> list[Outcome]:
    """The plainest law: the target's answer stays as it was."""
    return [compared(evidence.trial.key, evidence.p(), evidence.q())]


def invariant_under_keys(evidence: Evidence, keys: Mapping[str, str]) -> list[Outcome]:
    """The same for every question of `keys`, each read under the key it was sent as."""
    if evidence.trial.key not in keys:
        raise ValueError("the target is not among the keys")
    return [compared(question, evidence.p(question), evidence.q(sent)) for question, sent in keys.items()]


def complement(evidence: Evidence, event: str, probability: float, probe: str) -> list[Outcome]:
    """A probability and the probe's probability of the opposite sum to one; both on one side of 0.5 is a flip."""
    opposite = evidence.q_yes(probe)
    flip = (probability > 0.5) == (opposite > 0.5)
    terms = {f"P({event})": probability, f"P(not {event})": opposite, "their sum": probability + opposite}
    return [Outcome(evidence.trial.key, abs(probability + opposite - 1), flip, terms=terms)]


def excess(evidence: Evidence, over: float, terms: Mapping[str, float]) -> list[Outcome]:
    """A bound: the deviation is by how much it is overstepped."""
    return [Outcome(evidence.trial.key, max(0.0, over), None, terms=terms)]


def merged_into(distribution: Mapping[str, float], parts: Sequence[str], whole: str) -> Distribution:
    """Sum `parts` under `whole`, which comes last."""
    rest = {key: value for key, value in distribution.items() if key not in parts}
    rest[whole] = math.fsum(distribution[part] for part in parts)
    return rest


def added_to(distribution: Mapping[str, float], extra: str, original: str) -> Distribution:
    """Add `extra` to `original`, which keeps its place."""
    if original not in distribution or extra == original:
        raise KeyError(original)
    return {
        key: value + distribution[extra] if key == original else value
        for key, value in distribution.items()
        if key != extra
    }


def block_sums(distribution: Mapping[str, float], blocks: Mapping[str, Sequence[str]]) -> Distribution:
    """Sum a distribution over blocks of outcomes, in the order of the blocks."""
    return {block: math.fsum(distribution[part] for part in parts) for block, parts in blocks.items()}


def exchanged(distribution: Mapping[str, float], pair: Sequence[str]) -> Distribution:
    """Exchange two values and leave the keys where they are."""
    first, second = pair
    swap = {first: second, second: first}
    if not distribution.keys() >= swap.keys():
        raise KeyError(pair)
    return {key: distribution[swap.get(key, key)] for key in distribution}
