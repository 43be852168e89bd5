"""The oracle answers everything the project asks from one joint distribution, and violates no law."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from oracle import ABOUT_OPTIONS, COMPOUNDS, Oracle, UnknownWordingError
from pytest_jevbench import Card, evaluate, load_suite
from pytest_jevbench.cache import MemoryStore
from pytest_jevbench.case import Case
from pytest_jevbench.client import Client
from pytest_jevbench.evidence import gather
from pytest_jevbench.judge import Verdict, judge
from pytest_jevbench.model import from_callable
from pytest_jevbench.own import own_plan
from pytest_jevbench.plan import Test
from pytest_jevbench.planning import full_plan, sample, standard_plan
from pytest_jevbench.relations import CATALOGUE, select, words
from pytest_jevbench.rewrites import Bank, read_rewrites
from pytest_jevbench.scores.coherence import Coherence, score
from pytest_jevbench.suite import Suite
from random_cases import coherent_cases

SCORED = {relation.name for relation in select()}


def verdicts(tests: Iterable[Test], ask: Callable[..., Any]) -> list[Verdict]:
    client = Client([from_callable(ask)], MemoryStore())
    judged = [judge(test.relation, gather(client, test), test.case.domain) for test in tests]
    return [each.verdict for each in judged if each is not None]


def scored(found: Sequence[Verdict]) -> Coherence:
    return score(found, Counter(verdict.relation for verdict in found), CATALOGUE, min_n=1, bootstrap=0)


def bank_of(suite: Suite) -> Bank:
    return Bank(read_rewrites(suite.folder / "rewrites.jsonl"))


@pytest.fixture(scope="module")
def examples() -> Suite:
    return load_suite("examples")


@pytest.fixture(scope="module")
def aquarium(examples: Suite) -> tuple[Case, Oracle]:
    """The case of `examples`, and the oracle of it."""
    (case,) = examples.plan.cases.values()
    return case, Oracle([case], bank_of(examples))


def assert_perfect(found: Sequence[Verdict]) -> None:
    """Every relation applied, every score is exactly 1, every deviation is a rounding error."""
    coherence = scored(found)
    assert {verdict.relation for verdict in found} == set(CATALOGUE)
    assert [verdict for verdict in found if not verdict.deviation < 1e-9] == []
    assert coherence.strict.overall == coherence.graded.overall == 1.0
    assert coherence.strict.relations == dict.fromkeys(coherence.strict.relations, 1.0)
    assert coherence.strict.relations.keys() == SCORED


@settings(deadline=None, max_examples=50)
@given(coherent_cases())
def test_the_oracle_scores_100_on_every_test_of_random_cases(drawn: tuple[Case, Bank]) -> None:
    case, bank = drawn

    assert_perfect(verdicts(own_plan([case], bank, draws=2).tests, Oracle([case], bank)))


def test_the_oracle_scores_exactly_100_on_the_examples(aquarium: tuple[Case, Oracle]) -> None:
    card: Card = evaluate(aquarium[1], "examples", cache=None, progress=False)

    assert card.errors == []
    assert card.scores.overall == card.scores.graded.overall == 1.0
    assert card.scores.relations == dict.fromkeys(sorted(SCORED, key=list(CATALOGUE).index), 1.0)
    assert "100.0" in card.table()


def test_the_oracle_scores_100_on_everything_that_can_be_built_from_the_examples(
    examples: Suite, aquarium: tuple[Case, Oracle]
) -> None:
    case, oracle = aquarium

    assert_perfect(verdicts(own_plan([case], bank_of(examples), draws=3).tests, oracle))


def test_the_oracle_scores_100_on_a_sample_of_the_official_cases_in_our_wordings() -> None:
    official = load_suite("upstream:jevbench-240")
    cases, bank = list(official.plan.cases.values()), bank_of(official)
    chosen = sample(standard_plan(full_plan(cases, select(), bank), cases), cases, 2)
    tests = [
        Test(CATALOGUE[trial.relation], official.plan.cases[trial.case], trial.key, (trial,)) for trial in chosen
    ]

    found = verdicts(tests, Oracle(cases, bank))

    assert len(found) == 1_200
    assert {verdict.relation for verdict in found} == SCORED
    assert max(verdict.deviation for verdict in found) < 1e-9
    assert scored(found).strict.overall == 1.0


# What the oracle is: unsure, conditioned on what is on offer, blind to everything but content, and strict


def ask(aquarium: tuple[Case, Oracle], question: Mapping[str, Any]) -> list[float]:
    case, oracle = aquarium
    return oracle.probabilities(case.state, question)


def test_the_oracle_is_sure_of_nothing(aquarium: tuple[Case, Oracle]) -> None:
    case, _ = aquarium
    answers = [ask(aquarium, question) for question in case.questions.values()]

    assert all(0.01 < p < 0.99 for answer in answers for p in answer)
    assert all(len(set(answer)) == len(answer) for answer in answers)


def test_the_oracle_gives_strangers_and_levels_beyond_the_top_some_mass(aquarium: tuple[Case, Oracle]) -> None:
    case, _ = aquarium
    choice, scale = case.questions["drop_cause"], case.questions["repair_urgency"]
    strange = {**choice["criteria"], "bread_oven": words.OFF_TOPIC["bread_oven"]}
    higher = [*scale["criteria"], words.BEYOND.format(o=scale["criteria"][-1])]

    assert 0.001 < ask(aquarium, {**choice, "criteria": strange})[-1] < 0.2
    assert ask(aquarium, {**scale, "criteria": higher})[-1] > 0.001


def test_the_questions_of_a_case_hang_together_in_the_oracle(aquarium: tuple[Case, Oracle]) -> None:
    case, _ = aquarium
    a, b = (case.questions[key] for key in ("flow_recovered", "limit_exceeded"))
    both = words.CONJUNCTION[0][0].format(a=a["instructions"], b=b["instructions"])
    p_both = ask(aquarium, {"type": "noul", "instructions": both})[1]

    assert abs(p_both - ask(aquarium, a)[1] * ask(aquarium, b)[1]) > 0.001, "independent answers prove less"


def test_the_oracle_reads_neither_keys_nor_ids_nor_order_nor_company(aquarium: tuple[Case, Oracle]) -> None:
    case, oracle = aquarium
    key, question = "drop_cause", case.questions["drop_cause"]
    backwards = {f"x{i}": text for i, text in enumerate(reversed(question["criteria"].values()))}
    whole = oracle(case.state, case.questions)[key]["probabilities"]
    alone = oracle(case.state, {"other": {**question, "criteria": backwards}})["other"]["probabilities"]

    assert list(alone.values()) == list(whole.values())[::-1]


@pytest.mark.parametrize(
    "question",
    [
        {"type": "noul", "instructions": "Is the moon full?"},
        {"type": "noul", "instructions": 'Is "no" the correct reply here? Is the moon full?'},
        {
            "type": "choice",
            "instructions": "Which task should the day shift do first?",
            "criteria": {"a": "x", "b": "y"},
        },
        {
            "type": "choice",
            "instructions": "Is pump P2 covered by a valid warranty?",
            "criteria": {"yes": "Y", "no": "N"},
        },
        {"type": "score", "instructions": "How worried does the writer sound?", "criteria": ["Unworried", "Sad"]},
    ],
    ids=lambda question: question["instructions"],
)
def test_a_wording_that_the_oracle_does_not_know_is_an_error_that_shows_it(
    aquarium: tuple[Case, Oracle], question: dict[str, Any]
) -> None:
    with pytest.raises(UnknownWordingError, match="cannot be read") as caught:
        ask(aquarium, question)

    assert question["instructions"] in str(caught.value).replace('\\"', '"')


def test_a_wording_that_can_be_read_in_two_ways_is_an_error() -> None:
    # Is it A and "B Second: C", or "A Second: B" and C?
    texts = ["A", "B", "A Second: B", "B Second: B"]
    case = Case("c", "s", {text: {"type": "noul", "instructions": text} for text in texts})
    probe = words.DE_MORGAN["and"].format(a="A", b="B Second: B")

    with pytest.raises(UnknownWordingError, match="can be read in 2 ways"):
        Oracle([case]).probabilities("s", {"type": "noul", "instructions": probe})


@pytest.mark.parametrize(
    "noisy",
    [
        "is pump p2 covered by a valid warranty?",
        "Is pmup P2 coevred by a valid warranty?",
        "Is pump P2 covered by a valid warranty",
    ],
)
def test_the_oracle_reads_through_noise(aquarium: tuple[Case, Oracle], noisy: str) -> None:
    clean = "Is pump P2 covered by a valid warranty?"

    assert ask(aquarium, {"type": "noul", "instructions": noisy}) == ask(
        aquarium, {"type": "noul", "instructions": clean}
    )


MEANT = {
    r"false that .* both": "nand",
    r'"no" to the first question, or to the second': "or_not",
    r"two or three of": "two",
    r"\bone or|at least one|or B, or": "or",
    r"\bboth\b|each of|as well as|every one|all three": "and",
    r"\bother\b|a mistake|passed over": "complement",
    r"above|or higher": "tail",
    r"the right one|correct to pick": "indicator",
}
"""What a reader takes a wording for, by the first of these phrases that it has."""


@pytest.mark.parametrize(
    ("kind", "template"), [row[:2] for row in COMPOUNDS] + [(kind, template) for _, kind, template in ABOUT_OPTIONS]
)
def test_the_oracle_takes_each_wording_for_what_its_english_says(kind: str, template: str) -> None:
    assert next(meant for phrase, meant in MEANT.items() if re.search(phrase, template)) == kind


def test_every_probability_is_as_drawn_whatever_the_seed(examples: Suite, aquarium: tuple[Case, Oracle]) -> None:
    case, oracle = aquarium
    again, other = Oracle([case], bank_of(examples)), Oracle([case], bank_of(examples), seed=1)

    assert again(case.state, case.questions) == oracle(case.state, case.questions)
    assert other(case.state, case.questions) != oracle(case.state, case.questions)
