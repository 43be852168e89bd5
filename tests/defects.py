"""Planted defects: ways in which real models are incoherent, each put alone on top of the coherent oracle.

A defect changes the oracle's answer to one question. `planted` names the relations it was made for; which relations
it fails besides these is measured (`power.py`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oracle import Event, Oracle, answer
from pytest_jevbench.wire import Question

Answers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class At:
    """Where a defect sits: one question of one request to the oracle."""

    oracle: Oracle
    state: Any
    questions: Mapping[str, Question]
    key: str

    @property
    def question(self) -> Question:
        return self.questions[self.key]

    @property
    def kind(self) -> str:
        return str(self.question["type"])

    @property
    def instructions(self) -> str:
        return str(self.question["instructions"])

    @property
    def place(self) -> int:
        """The question's place in its request, from 0."""
        return list(self.questions).index(self.key)

    @property
    def event(self) -> Event:
        """What a Noul asks."""
        return self.oracle.event(self.state, self.question)

    @property
    def descriptions(self) -> list[str]:
        """What is offered: for a Noul no and yes."""
        criteria = self.question.get("criteria", ["no", "yes"])
        return [str(text) for text in (criteria.values() if isinstance(criteria, Mapping) else criteria)]

    def p(self, event: Event) -> float:
        return self.oracle.p(self.state, event)

    def coherent(self, key: str) -> list[float]:
        """What the oracle says to another question of the request."""
        return self.oracle.probabilities(self.state, self.questions[key])


Change = Callable[[At, list[float]], list[float]]


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect; `what` completes the sentence "the model ...". `change` gets the coherent probabilities."""

    name: str
    what: str
    planted: tuple[str, ...]
    change: Change


def broken(oracle: Oracle, defect: Defect) -> Callable[[Any, dict[str, Any]], Answers]:
    """Return the oracle with a defect, as a function that answers requests."""

    def ask(state: Any, questions: dict[str, Any]) -> Answers:
        answers = {}
        for key, question in questions.items():
            at = At(oracle, state, questions, key)
            answers[key] = answer(question, defect.change(at, oracle.probabilities(state, question)))
        return answers

    return ask


# Ways to bend a distribution


def bent(weights: Sequence[float]) -> list[float]:
    """Divide by the sum."""
    return [weight / math.fsum(weights) for weight in weights]


def tilted(p: Sequence[float], i: int, times: float) -> list[float]:
    """Multiply the weight of one outcome."""
    return bent([each * times if j == i else each for j, each in enumerate(p)])


def mixed(p: Sequence[float], other: Sequence[float], share: float) -> list[float]:
    """Mix in another distribution."""
    return [(1 - share) * own + share * each for own, each in zip(p, other, strict=True)]


def vague(p: Sequence[float], share: float) -> list[float]:
    """Mix in the uniform distribution."""
    return mixed(p, [1 / len(p)] * len(p), share)


def yes(probability: float) -> list[float]:
    """Return the distribution of a Noul."""
    return [1 - probability, probability]


def swayed(p: Sequence[float], texts: Sequence[str]) -> list[float]:
    """Multiply each weight by one of 1/3 to 3 that a text decides."""
    digests = [hashlib.sha256(text.encode()).digest()[0] / 255 for text in texts]
    return bent([each * 3 ** (2 * digest - 1) for each, digest in zip(p, digests, strict=True)])


# The defects


def _first_option(at: At, p: list[float]) -> list[float]:
    return p if at.kind == "noul" else tilted(p, 0, 2)


def _last_option(at: At, p: list[float]) -> list[float]:
    return p if at.kind == "noul" else tilted(p, len(p) - 1, 2)


def _reads_key(at: At, p: list[float]) -> list[float]:
    return swayed(p, [f"{at.key} {text}" for text in at.descriptions])


def _obeys_key(at: At, p: list[float]) -> list[float]:
    return p[::-1] if at.key.startswith("not_") else p


def _reads_ids(at: At, p: list[float]) -> list[float]:
    return swayed(p, list(at.question["criteria"])) if at.kind == "choice" else p


def _case_sensitive(at: At, p: list[float]) -> list[float]:
    return vague(p, 0.8) if at.instructions == at.instructions.lower() else p


def _needs_clean_text(at: At, p: list[float]) -> list[float]:
    ends = at.instructions.rstrip()[-1:]
    return vague(p, 0.8) if ends not in "?？.!:" else p


def _long_winded(at: At, p: list[float]) -> list[float]:
    return tilted(p, 1, 1.08 ** (len(at.instructions.split()) - 8)) if at.kind == "noul" else p


def _reads_wording(at: At, p: list[float]) -> list[float]:
    return swayed(p, [f"{at.instructions} {text}" for text in at.descriptions])


def _reads_descriptions(at: At, p: list[float]) -> list[float]:
    return p if at.kind == "noul" else swayed(p, at.descriptions)


ENGLISH = {"the", "is", "are", "does", "do", "has", "which", "how", "of"}


def _english_only(at: At, p: list[float]) -> list[float]:
    return p if ENGLISH & set(at.instructions.lower().split()) else vague(p, 0.8)


NEGATIVE = ("negation", "opposite", "complement", "nand", "or_not")


def _blind_to_not(at: At, p: list[float]) -> list[float]:
    return p[::-1] if at.kind == "noul" and at.event.kind in NEGATIVE else p


def _says_yes(at: At, p: list[float]) -> list[float]:
    return tilted(p, 1, 2) if at.kind == "noul" else p


def _overconfident(at: At, p: list[float]) -> list[float]:
    del at
    return bent([each**2 for each in p])


def _counts_copies(at: At, p: list[float]) -> list[float]:
    if at.kind != "choice":
        return p
    options = at.oracle.options(at.state, at.question)
    return bent(at.oracle.masses(at.state, options))


def _first_of_equals(at: At, p: list[float]) -> list[float]:
    if at.kind == "noul":
        return p
    says = [option.says for option in at.oracle.options(at.state, at.question)]
    firsts = [says.index(each) for each in says]
    return [math.fsum(p[j] for j, first in enumerate(firsts) if first == i) for i in range(len(p))]


def _spreads_evenly(at: At, p: list[float]) -> list[float]:
    return p if at.kind == "noul" else vague(p, 0.5)


def _overwhelmed(at: At, p: list[float]) -> list[float]:
    return bent([each ** (3 / len(p)) for each in p]) if at.kind == "choice" else p


def _contrasts(at: At, p: list[float]) -> list[float]:
    if at.kind != "choice":
        return p
    kinds = [option.kind for option in at.oracle.options(at.state, at.question)]
    # The answer right after the stranger, or before it where it comes last.
    i = kinds.index("stranger") if "stranger" in kinds else -1
    return p if i < 0 else tilted(p, i + 1 if i + 1 < len(p) else i - 1, 3)


def _shuns_catch_all(at: At, p: list[float]) -> list[float]:
    if at.kind != "choice":
        return p
    kinds = [option.kind for option in at.oracle.options(at.state, at.question)]
    return tilted(p, kinds.index("catch_all"), 0.2) if "catch_all" in kinds else p


def _conjunction_fallacy(at: At, p: list[float]) -> list[float]:
    if at.kind != "noul" or at.event.kind != "and":
        return p
    return yes(math.fsum(map(at.p, at.event.parts)) / len(at.event.parts))


def _exactly(at: At, p: list[float]) -> list[float]:
    """Read 'at least' as 'exactly', and 'or' as 'either, but not both'."""
    if at.kind != "noul" or at.event.kind not in ("or", "two", "weak", "tail"):
        return p
    event = at.event
    if event.kind == "tail":
        return yes(at.p(event.parts[0]))
    if event.kind == "weak":
        return yes(at.p(event) - at.p(event.parts[0]))
    wanted = 2 if event.kind == "two" else 1
    counts = map(sum, zip(*(part.true for part in event.parts), strict=True))
    return yes(at.p(Event("exactly", tuple(count == wanted for count in counts), event.given)))


def _doubts_plain_questions(at: At, p: list[float]) -> list[float]:
    return yes(p[1] / 3) if at.kind == "noul" and at.event.kind == "plain" else p


def _trusts_plain_questions(at: At, p: list[float]) -> list[float]:
    return yes(1 - p[0] / 3) if at.kind == "noul" and at.event.kind == "plain" else p


def _round_numbers(at: At, p: list[float]) -> list[float]:
    if at.kind != "noul" or at.event.number is None:
        return p
    return tilted(p, 1, 4) if at.event.number % 5 == 0 else p


def _neither(at: At, p: list[float]) -> list[float]:
    """Read 'not both' said the long way as 'neither'."""
    if at.kind != "noul" or at.event.kind != "or_not":
        return p
    parts = zip(*(part.true for part in at.event.parts), strict=True)
    return yes(at.p(Event("neither", tuple(not any(each) for each in parts), at.event.given)))


def _ignores_quoted_menu(at: At, p: list[float]) -> list[float]:
    if at.kind != "noul" or at.event.kind not in ("indicator", "complement", "tail"):
        return p
    everywhere = (True,) * len(at.event.given)
    return yes(at.p(Event("anywhere", at.event.true, everywhere)))


def _echoes_companions(at: At, p: list[float]) -> list[float]:
    others = [at.coherent(key)[1] for key in at.questions if key != at.key and at.questions[key]["type"] == "noul"]
    if at.kind != "noul" or not others:
        return p
    return mixed(p, yes(math.fsum(others) / len(others)), 0.4)


def _carries_over(at: At, p: list[float]) -> list[float]:
    """Lean to yes after a yes, to no after a no."""
    before = list(at.questions)[at.place - 1] if at.place else at.key
    if at.kind != "noul" or at.questions[before]["type"] != "noul" or before == at.key:
        return p
    return tilted(p, 1, 2.5 if at.coherent(before)[1] > 0.5 else 0.4)


def _tires(at: At, p: list[float]) -> list[float]:
    return vague(p, min(0.9, 0.1 * (len(at.questions) - 1)))


def _doubts_repeats(at: At, p: list[float]) -> list[float]:
    earlier = list(at.questions.values())[: at.place]
    return vague(p, 0.8) if at.question in earlier else p


def _firm(at: At, p: list[float]) -> list[float]:
    """Answer yes/no questions more firmly when 'yes' and 'no' are written out."""
    if at.kind == "noul":
        return p
    kinds = {option.kind for option in at.oracle.options(at.state, at.question)}
    return bent([each**3 for each in p]) if kinds == {"side"} else p


DEFECTS = (
    Defect(
        "first option",
        "favours what is listed first",
        ("option_permutation", "score_granularity"),
        _first_option,
    ),
    Defect("last option", "favours what is listed last", ("option_permutation", "extreme_level"), _last_option),
    Defect("reads keys", "takes a hint from a question's key", ("key_rename", "duplicate_question"), _reads_key),
    Defect("obeys keys", "answers the opposite under a key with `not_`", ("key_instruction_conflict",), _obeys_key),
    Defect(
        "reads ids",
        "takes a hint from an option's id",
        ("option_rename", "name_description_conflict", "description_swap"),
        _reads_ids,
    ),
    Defect("minds case", "gets lost in lower-case instructions", ("typo_noise",), _case_sensitive),
    Defect("minds punctuation", "gets lost without a mark at the end", ("typo_noise",), _needs_clean_text),
    Defect("likes length", "says yes more readily to longer instructions", ("verbosity",), _long_winded),
    Defect(
        "sways with wording",
        "leans differently for every wording of the instructions",
        ("instruction_paraphrase", "verbosity", "cross_lingual"),
        _reads_wording,
    ),
    Defect(
        "sways with descriptions",
        "leans differently for every wording of an answer",
        ("description_paraphrase",),
        _reads_descriptions,
    ),
    Defect("English only", "guesses in other languages", ("cross_lingual",), _english_only),
    Defect(
        "blind to not",
        "overlooks negations",
        ("negation_wrapper", "natural_negation", "choice_complement", "score_complement", "compound_negation"),
        _blind_to_not,
    ),
    Defect(
        "says yes",
        "leans to yes in yes/no questions",
        ("noul_as_choice", "noul_as_score", "negation_wrapper", "choice_indicator", "score_cumulative"),
        _says_yes,
    ),
    Defect("firm on types", "is firmer where yes and no are written out", ("noul_as_choice", "noul_as_score"), _firm),
    Defect(
        "overconfident",
        "squares its probabilities",
        ("option_merge", "partition_hierarchy", "score_cumulative", "choice_indicator", "inclusion_exclusion"),
        _overconfident,
    ),
    Defect(
        "counts copies",
        "gives each copy of an answer the weight of the original",
        ("option_clone", "similarity_effect"),
        _counts_copies,
    ),
    Defect("first of equals", "gives all to the first of two equal answers", ("clone_symmetry",), _first_of_equals),
    Defect(
        "spreads evenly",
        "leans to equal shares for whatever is listed",
        (*("option_merge", "option_split", "option_clone", "extreme_level", "pair_choice_marginals"),),
        _spreads_evenly,
    ),
    Defect(
        "overwhelmed",
        "is vaguer the longer the menu",
        ("remove_option_iia", "pairwise_iia"),
        _overwhelmed,
    ),
    Defect("contrasts", "favours what stands beside something absurd", ("irrelevant_option",), _contrasts),
    Defect("shuns none", "shuns 'none of the other answers'", ("option_closure",), _shuns_catch_all),
    Defect(
        "ignores the menu quoted",
        "judges a quoted answer as if anything else could be right",
        ("choice_indicator", "choice_complement"),
        _ignores_quoted_menu,
    ),
    Defect(
        "conjunction fallacy",
        "averages where all must hold",
        ("frechet_and_upper", "nary_and_upper", "inclusion_exclusion"),
        _conjunction_fallacy,
    ),
    Defect(
        "exactly",
        "reads 'at least' as 'exactly' and 'or' as 'not both'",
        ("quantifier_monotonicity", "nary_or_lower", "count_lower", "entailment_strength", "score_cumulative"),
        _exactly,
    ),
    Defect(
        "doubts plain questions",
        "says yes too rarely to plain questions, not to compound ones",
        ("nary_or_upper", "count_upper", "frechet_and_upper"),
        _doubts_plain_questions,
    ),
    Defect(
        "trusts plain questions",
        "says yes too often to plain questions, not to compound ones",
        ("nary_and_lower", "count_lower", "entailment_strength"),
        _trusts_plain_questions,
    ),
    Defect("neither", "reads 'no to the one or the other' as 'no to both'", ("de_morgan",), _neither),
    Defect("likes round numbers", "says yes more readily to round thresholds", ("threshold_sweep",), _round_numbers),
    Defect(
        "echoes", "leans to the answers of the other questions", ("batch_content", "batch_solo"), _echoes_companions
    ),
    Defect("carries over", "leans to the answer it gave just before", ("batch_order",), _carries_over),
    Defect("tires", "is vaguer the longer the batch", ("batch_size_sweep", "batch_solo"), _tires),
    Defect("doubts repeats", "hesitates when a question comes again", ("duplicate_question",), _doubts_repeats),
)
