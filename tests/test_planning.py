"""Planning: what is built from cases alone, how a standard plan and a sample are chosen, written and read back."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import peer
from oracle import Oracle
from pytest_jevbench import load_suite
from pytest_jevbench.case import Case, to_case
from pytest_jevbench.errors import PlanError
from pytest_jevbench.freezing import freeze, freeze_sample
from pytest_jevbench.plan import Row, parse_plan
from pytest_jevbench.planning import (
    Planned,
    full_plan,
    plan_text,
    reduced,
    sample,
    standard_plan,
    trials,
)
from pytest_jevbench.relations import CATALOGUE, Trial, select, words
from pytest_jevbench.rewrites import Bank, Rewrite, read_rewrites
from pytest_jevbench.suite import PLAN_FILE, Suite
from pytest_jevbench.wire import check_question, load_json
from random_cases import coherent_cases, legal_cases, random_case

Pick = tuple[str, str, str, int]
"""Relation, case, target, variant."""
EVERYTHING = list(CATALOGUE.values())


def picks(chosen: Iterable[Trial]) -> list[Pick]:
    return [(trial.relation, trial.case, trial.key, trial.v) for trial in chosen]


def text(value: Any) -> str:
    """Return JSON text, in which order counts."""
    return json.dumps(value)


@st.composite
def case_sets(draw: st.DrawFn) -> tuple[list[Case], Bank]:
    """Draw some cases of several domains; some are odd, so that units skip cases and relations lack targets."""
    rng = draw(st.randoms(use_true_random=False))
    cases, rewrites = [], list[Rewrite]()
    for i in range(draw(st.integers(1, 5))):
        case, own = random_case(rng, f"case-{i}", rng.choice(("", "harbour", "garden")))
        keep = draw(st.integers(1, len(case.questions)))
        cases.append(replace(case, questions=dict(list(case.questions.items())[:keep])))
        rewrites += own
    cases += [replace(case, id=f"odd-{i}") for i, case in enumerate(draw(st.lists(legal_cases(), max_size=1)))]
    return cases, Bank(rewrites)


# The rules, once more, from the text of the catalogue

UNITS = {
    "option_clone": "option_clone clone_symmetry",
    "conjunction_disjunction": "frechet_and_upper inclusion_exclusion",
    "nary_conjunction": "nary_and_upper nary_and_lower nary_or_upper nary_or_lower",
    "quantifier_monotonicity": "quantifier_monotonicity count_upper count_lower",
    "de_morgan": "de_morgan compound_negation",
}
UNIT = {name: unit for unit, names in UNITS.items() for name in names.split()}


def sha(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode(errors="surrogatepass")).hexdigest()


def standard_by_the_rules(everything: Iterable[Trial], cases: Sequence[Case]) -> set[Pick]:
    variants: dict[str, dict[str, dict[str, dict[str, list[int]]]]] = {}
    for trial in everything:
        if trial.t == 0:
            unit = variants.setdefault(UNIT.get(trial.relation, trial.relation), {})
            by_key = unit.setdefault(trial.case, {}).setdefault(trial.relation, {})
            by_key.setdefault(trial.key, []).append(trial.v)
    ranks = sorted({case.domain for case in cases})
    chosen = set()
    for unit_name, by_case in variants.items():
        used, turns = Counter[tuple[str, str]](), Counter[str]()
        for case in sorted(cases, key=lambda each: sha(unit_name, "case", each.id)):
            if case.id not in by_case:
                continue
            keys = by_case[case.id]
            common = set.intersection(*map(set, keys.values()))
            picked = {
                name: min(common or own, key=lambda key: (used[case.domain, key], sha(unit_name, case.id, key)))
                for name, own in keys.items()
            }
            for key in set(picked.values()):
                used[case.domain, key] += 1
            number = turns[case.domain] + ranks.index(case.domain)
            turns[case.domain] += 1
            for name, key in picked.items():
                chosen.add((name, case.id, key, keys[name][key][number % len(keys[name][key])]))
    return chosen


def sample_by_the_rules(standard: Iterable[Trial], cases: Sequence[Case], per_domain: int) -> list[tuple[str, str]]:
    rows: dict[str, dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    sizes: dict[str, set[str]] = defaultdict(set)
    for trial in standard:
        unit = UNIT.get(trial.relation, trial.relation)
        rows[unit][trial.case].append(trial)
        sizes[unit].add(trial.relation)
    relations, labels = Counter[str](), Counter[str]()
    chosen = []
    for unit in sorted(rows, key=lambda name: (-len(sizes[name]), name)):
        for domain in dict.fromkeys(case.domain for case in cases):
            having = [case.id for case in cases if case.domain == domain and case.id in rows[unit]]
            order = sorted(having, key=lambda case: (relations[case], labels[case], sha("mini", unit, case)))
            for case in order[:per_domain]:
                relations[case] += len(rows[unit][case])
                labels[case] += sum(len(trial.requests) for trial in rows[unit][case])
                chosen += [(trial.relation, case) for trial in rows[unit][case]]
    places = [case.id for case in cases]
    return sorted(chosen, key=lambda row: (places.index(row[1]), row[0]))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(case_sets(), st.integers(1, 3))
def test_a_standard_plan_and_its_sample_are_chosen_by_the_rules(drawn: tuple[list[Case], Bank], n: int) -> None:
    cases, bank = drawn
    everything = full_plan(cases, select(), bank, draws=2)
    standard = standard_plan(everything, cases)
    chosen = picks(standard)

    assert set(chosen) == standard_by_the_rules(everything, cases)
    assert len({pick[:2] for pick in chosen}) == len(chosen), "one test per relation and case, one variant"
    assert all(trial.t == 0 for trial in standard)
    assert [each for each in everything if each in standard] == standard, "rows keep the full plan's order"
    drawn_sample = sample(standard, cases, n)
    assert [(trial.relation, trial.case) for trial in drawn_sample] == sample_by_the_rules(standard, cases, n)


# The official cases: the same choice as the official plan


@dataclass(frozen=True)
class Official:
    """The official suite, and what we choose from its cases and bank."""

    suite: Suite
    bank: Bank
    full: list[Trial]
    standard: list[Trial]

    @property
    def cases(self) -> list[Case]:
        return list(self.suite.plan.cases.values())


def bank_of(suite: Suite) -> Bank:
    return Bank(read_rewrites(suite.folder / "rewrites.jsonl"))


def rows_of(suite: Suite) -> list[Row]:
    return [row for test in suite.plan.tests for row in test.rows if isinstance(row, Row)]


@pytest.fixture(scope="module")
def official() -> Official:
    suite = load_suite("upstream:jevbench-240")
    bank, cases = bank_of(suite), list(suite.plan.cases.values())
    full = full_plan(cases, select(), bank)
    return Official(suite, bank, full, standard_plan(full, cases))


def test_our_standard_plan_of_the_official_cases_picks_what_the_official_plan_picks(official: Official) -> None:
    theirs = [(row["relation"], row["case"], row["key"], row["v"]) for row in map(decoded, rows_of(official.suite))]
    ours = picks(official.standard)

    assert len(ours) == len(theirs) == 12_000
    assert {pick[0] for pick in set(ours) ^ set(theirs)} <= {"typo_noise"}, "only slips hang on a list of words"
    assert without_slips(ours) == without_slips(theirs)


def decoded(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = load_json(row.line.decode())
    return found


def without_slips(chosen: Iterable[Pick]) -> list[Pick]:
    return [pick for pick in chosen if pick[0] != "typo_noise"]


def test_the_official_choice_follows_the_rules_as_we_read_them(official: Official) -> None:
    assert standard_by_the_rules(official.full, official.cases) == set(picks(official.standard))


def test_our_sample_has_the_relations_and_cases_of_the_official_mini_in_its_order(official: Official) -> None:
    mini = load_suite("upstream:jevbench-mini")
    ours = [(trial.relation, trial.case) for trial in sample(official.standard, official.cases, 2)]

    assert ours == [(row.relation, row.case) for row in rows_of(mini)]
    assert ours == sample_by_the_rules(official.standard, official.cases, 2)
    assert len(ours) == 1_200


SAME_REQUESTS = {
    *("instruction_paraphrase", "cross_lingual", "description_paraphrase", "option_permutation", "option_rename"),
    *("key_instruction_conflict", "name_description_conflict", "description_swap", "remove_option_iia"),
    *("pairwise_iia", "batch_solo", "batch_order", "batch_size_sweep"),
}
"""Relations whose requests hold neither a wording nor a name that each project chooses for itself."""
SAME_PARAMS = {
    "choice_complement": "option",
    "score_complement": "level",
    "noul_as_choice": "order",
    "option_merge": "merged parts",
    "option_split": "option",
    "option_clone": "option",
    "clone_symmetry": "option",
    "similarity_effect": "option",
    "partition_hierarchy": "blocks",
    "score_granularity": "blocks",
    "extreme_level": "added",
    "option_closure": "replaced",
    "threshold_sweep": "value subject",
    "natural_negation": "rewrite",
}
"""Params that say what was drawn or computed."""


def test_our_trials_of_the_official_cases_draw_and_compute_what_the_official_ones_do(official: Official) -> None:
    ours = dict(zip(picks(official.full), official.full, strict=True))
    compared = Counter[str]()
    for row in map(decoded, rows_of(official.suite)):
        relation, params = row["relation"], row["params"]
        trial = ours[relation, row["case"], row["key"], row["v"]]
        questions = official.suite.plan.cases[trial.case].questions
        sent = {key: questions[q["@"]] if "@" in q else q for key, q in row["requests"]["variant"]}
        assert list(trial.targets) == row["targets"]
        if relation in SAME_REQUESTS:
            assert text(trial.requests["variant"]) == text(sent)
            # Which of the two swapped descriptions is named first says nothing.
            assert trial.params == params or (
                relation == "description_swap" and trial.params["pair"][::-1] == params["pair"]
            )
        for name in SAME_PARAMS.get(relation, "").split():
            assert trial.params[name] == params[name]
        if relation in ("threshold_sweep", "score_cumulative", "choice_indicator"):
            assert list(trial.params["probes"]) == list(params["probes"])
        compared[relation] += 1

    assert compared == {relation.name: 240 for relation in select()}


def test_a_reduced_trial_is_null_exactly_where_the_official_one_is(official: Official) -> None:
    theirs = {
        (row["relation"], row["case"], row["key"]): row["reduced"] is None
        for row in map(decoded, rows_of(official.suite))
    }
    ours = {
        (trial.relation, trial.case, trial.key): reduced(
            trial, official.suite.plan.cases[trial.case], official.bank, 0
        )
        is None
        for trial in official.standard
    }
    same = ours.keys() & theirs.keys()

    assert len(same) > 11_900
    assert {key for key in same if ours[key] != theirs[key]} == set()
    assert 0 < sum(ours.values()) < len(ours)


# What is built


@settings(deadline=None, max_examples=20)
@given(coherent_cases())
def test_members_of_a_unit_send_identical_requests(drawn: tuple[Case, Bank]) -> None:
    case, bank = drawn
    sent: dict[tuple[str, str, int, int], set[str]] = defaultdict(set)
    members: dict[tuple[str, str, int, int], set[str]] = defaultdict(set)
    for trial in trials(case, EVERYTHING, bank, draws=3):
        unit = UNIT.get(trial.relation, trial.relation)
        sent[unit, trial.key, trial.v, trial.t].add(text([*map(list, trial.requests.items())]))
        members[unit, trial.key, trial.v, trial.t].add(trial.relation)

    assert all(len(requests) == 1 for requests in sent.values())
    for (unit, *_), names in members.items():
        assert names == set(UNITS.get(unit, unit).split())


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(legal_cases())
def test_every_legal_case_can_be_planned_and_every_request_can_be_sent(case: Case) -> None:
    for trial in full_plan([case], EVERYTHING, Bank(), draws=2):
        assert trial.key == trial.targets[0] or trial.relation in ("batch_order", "batch_size_sweep")
        assert set(trial.targets) <= case.questions.keys()
        assert load_json(text(trial.params)) == trial.params
        assert list(trial.requests) == ["variant"] or not CATALOGUE[trial.relation].scored
        for batch in trial.requests.values():
            assert batch
            assert all(isinstance(key, str) and key for key in batch)
            for question in batch.values():
                check_question(question, trial.relation, PlanError)


@settings(deadline=None, max_examples=20)
@given(coherent_cases())
def test_no_case_is_changed_by_what_is_built_from_it(drawn: tuple[Case, Bank]) -> None:
    case, bank = drawn
    before = copy.deepcopy(case)

    full_plan([case], EVERYTHING, bank)

    assert case == before
    assert text([case.state, case.questions]) == text([before.state, before.questions])


@settings(deadline=None, max_examples=10)
@given(coherent_cases())
def test_nothing_of_the_state_stands_in_a_request(drawn: tuple[Case, Bank]) -> None:
    case, bank = drawn
    state = {"xylograph": ["zugzwang 77", {"quokka": "vellichor"}]}
    found = full_plan([replace(case, state=state)], EVERYTHING, bank)

    assert found
    for trial in found:
        requests = text([*map(list, trial.requests.items())])
        assert not [word for word in ("xylograph", "zugzwang", "quokka", "vellichor") if word in requests]


def test_a_relation_that_looks_at_an_answer_while_building_is_an_error() -> None:
    case, rewrites = random_case(Random(0))
    curious = replace(CATALOGUE["verbosity"], build=lambda site: site.source)

    with pytest.raises(PlanError, match="looked at an answer"):
        list(trials(case, [curious], Bank(rewrites)))


# What cannot be quoted, edited or counted makes a relation not applicable

OF_TWO = {"de_morgan", "compound_negation", "inclusion_exclusion", "frechet_and_upper", "pair_choice_marginals"}
OF_THREE = {
    *("nary_and_upper", "nary_and_lower", "nary_or_upper", "nary_or_lower"),
    *("count_upper", "count_lower", "quantifier_monotonicity"),
}
OF_ONE = {"negation_wrapper", "entailment_strength"}
QUOTES_NOUL = OF_ONE | OF_TWO | OF_THREE
EDITS_TEXT = {"typo_noise", "verbosity"}
RETYPES = {"noul_as_choice", "noul_as_score"}
ADDS_OPTION = {"option_split", "option_clone", "clone_symmetry", "similarity_effect", "irrelevant_option"}
NEEDS_THREE = {"option_merge", "similarity_effect", "option_closure", "remove_option_iia"}
NEEDS_FOUR = {"pairwise_iia", "partition_hierarchy"}
NEEDS_TEXTS = {"option_split", "option_merge", "partition_hierarchy", "similarity_effect"}
QUOTES_MENU = {"choice_complement", "choice_indicator"}
QUOTES_SCALE = {"score_complement", "score_cumulative"}
NEEDS_COMPANY = {"batch_solo", "batch_order", "batch_content"}

NOULS = {f"n{i}": {"type": "noul", "instructions": f"Is it {word}?"} for i, word in enumerate(("wet", "old", "red"))}
MENU = {"a": "An apple", "b": "A banana", "c": "A cherry", "d": "A date"}
SCALE = ["None", "Little", "Much", "All"]
CHOICE = {"type": "choice", "instructions": "Which fruit is it?", "criteria": MENU}
SCORE = {"type": "score", "instructions": "How much is left?", "criteria": SCALE}


def applicable(questions: Mapping[str, Any], key: str) -> set[str]:
    """Return the relations that have a trial about one question."""
    case = to_case({"id": "c", "state": "s", "questions": questions}, "c")
    return {trial.relation for trial in full_plan([case], EVERYTHING, Bank()) if trial.key == key}


def about(question: Mapping[str, Any]) -> set[str]:
    return applicable({"q": question, **NOULS}, "q")


PLAIN = {
    "noul": QUOTES_NOUL | EDITS_TEXT | RETYPES,
    "choice": EDITS_TEXT | ADDS_OPTION | NEEDS_TEXTS | QUOTES_MENU | {"option_rename", "description_swap"},
    "score": EDITS_TEXT | QUOTES_SCALE | {"score_granularity", "extreme_level"},
}


@pytest.mark.parametrize("question", [NOULS["n0"], CHOICE, SCORE], ids=lambda question: question["type"])
def test_a_plain_question_is_what_relations_are_made_for(question: Mapping[str, Any]) -> None:
    assert about(question) >= PLAIN[question["type"]] | NEEDS_COMPANY | {"key_rename", "duplicate_question"}


@pytest.mark.parametrize("unquotable", [{"ask": "Is it wet?"}, ["Is it wet?"], "", "  \n"], ids=repr)
def test_instructions_that_are_no_text_are_neither_quoted_nor_edited(unquotable: Any) -> None:
    assert not about({"type": "noul", "instructions": unquotable}) & (QUOTES_NOUL | EDITS_TEXT)
    assert not about({**CHOICE, "instructions": unquotable}) & (QUOTES_MENU | EDITS_TEXT)
    assert not about({**SCORE, "instructions": unquotable}) & (QUOTES_SCALE | EDITS_TEXT)
    assert about({**CHOICE, "instructions": unquotable}) >= ADDS_OPTION | NEEDS_TEXTS | {"option_permutation"}


def test_missing_instructions_are_neither_quoted_nor_edited() -> None:
    choice = {"type": "choice", "criteria": MENU}
    noul = {"type": "noul", "criteria": {"true": "It is wet"}}

    assert not about(noul) & (QUOTES_NOUL | EDITS_TEXT | RETYPES)
    assert not about(choice) & (QUOTES_MENU | EDITS_TEXT)
    assert about(choice) >= ADDS_OPTION


def test_a_noul_with_criteria_is_not_quoted_because_they_are_part_of_the_question() -> None:
    found = about({**NOULS["n0"], "criteria": {"true": "Wet all over"}})

    assert not found & (QUOTES_NOUL | RETYPES)
    assert found >= EDITS_TEXT


def test_a_noul_with_criteria_is_nobodys_partner() -> None:
    company = {key: {**noul, "criteria": {"true": "Indeed"}} for key, noul in NOULS.items()}

    assert applicable({"q": NOULS["n0"], **company}, "q") & QUOTES_NOUL == OF_ONE


def test_an_option_without_a_description_is_called_by_its_id() -> None:
    found = about({**CHOICE, "criteria": {**MENU, "b": None}})

    assert not found & (QUOTES_MENU | {"option_rename"})
    assert found >= ADDS_OPTION | NEEDS_TEXTS | {"option_permutation", "name_description_conflict"}


def test_options_without_any_description_can_still_be_permuted() -> None:
    found = about({**CHOICE, "criteria": dict.fromkeys(MENU)})

    assert not found & {"option_rename", "option_clone", "clone_symmetry", "description_swap"}
    assert found >= {"option_permutation", "remove_option_iia", "pairwise_iia", "option_closure", "option_merge"}


def test_equal_texts_cannot_be_told_apart_by_a_probe() -> None:
    assert not about({**CHOICE, "criteria": {**MENU, "d": MENU["a"]}}) & QUOTES_MENU
    assert not about({**SCORE, "criteria": [*SCALE[:3], SCALE[0]]}) & QUOTES_SCALE


def test_structured_answers_are_not_quoted() -> None:
    assert not about({**CHOICE, "criteria": {**MENU, "b": {"fruit": "banana"}}}) & (NEEDS_TEXTS | QUOTES_MENU)
    assert not about({**SCORE, "criteria": [*SCALE[:3], ["All"]]}) & {*QUOTES_SCALE, "score_granularity"}


def test_a_menu_of_255_options_takes_no_further_one() -> None:
    full = {f"o{i}": f"Option {i}" for i in range(255)}
    case = to_case({"id": "c", "state": "s", "questions": {"q": {**CHOICE, "criteria": full}}}, "c")

    def variants(name: str) -> int:
        # Of the many pairs of so large a menu the first are enough.
        return len(list(islice(trials(case, [CATALOGUE[name]], Bank()), 3)))

    assert {name for name in ADDS_OPTION if variants(name)} == set()
    assert {name: variants(name) for name in ("pairwise_iia", "option_merge", "choice_indicator")} == {
        "pairwise_iia": 3,
        "option_merge": 1,
        "choice_indicator": 2,
    }


def test_a_menu_of_254_options_takes_one_more() -> None:
    almost = {f"o{i}": f"Option {i}" for i in range(254)}
    case = to_case({"id": "c", "state": "s", "questions": {"q": {**CHOICE, "criteria": almost}}}, "c")

    for name in ADDS_OPTION:
        (trial,) = trials(case, [CATALOGUE[name]], Bank())
        assert len(trial.requests["variant"]["q"]["criteria"]) == 255


def test_a_scale_of_ten_levels_takes_no_further_one() -> None:
    levels = [f"Level {i}" for i in range(10)]

    assert "extreme_level" not in about({**SCORE, "criteria": levels})
    assert "extreme_level" in about({**SCORE, "criteria": levels[:9]})


def test_a_menu_of_two_and_a_scale_of_three_are_too_small_for_some() -> None:
    two = about({**CHOICE, "criteria": {"a": "An apple", "b": "A banana"}})

    assert not two & (NEEDS_THREE | NEEDS_FOUR)
    assert two >= {"option_clone", "option_split", "option_rename", "irrelevant_option", *QUOTES_MENU}
    assert "score_granularity" not in about({**SCORE, "criteria": SCALE[:3]})


def test_a_question_alone_has_no_company_to_change() -> None:
    found = applicable({"q": NOULS["n0"]}, "q")

    assert not found & (NEEDS_COMPANY | {"batch_size_sweep"})
    assert found & QUOTES_NOUL == OF_ONE
    assert found >= {"duplicate_question", "key_rename", "key_instruction_conflict", "threshold_sweep", *EDITS_TEXT}


def test_a_case_with_one_noul_has_no_pairs_and_one_with_two_no_triples() -> None:
    alone = applicable({"q": NOULS["n0"], "c": CHOICE, "s": SCORE}, "q")
    two = applicable({"q": NOULS["n0"], "r": NOULS["n1"], "s": SCORE}, "q")

    assert alone & QUOTES_NOUL == OF_ONE
    assert two & QUOTES_NOUL == OF_ONE | OF_TWO


# What a rewrite must not change


def noise(instructions: str, kind: str) -> str:
    case = to_case({"id": "c", "state": "s", "questions": {"q": {"type": "noul", "instructions": instructions}}}, "c")
    found = trials(case, [CATALOGUE["typo_noise"]], Bank())
    return next((trial.params["rewrite"] for trial in found if trial.params["kind"] == kind), instructions)


@pytest.mark.parametrize(
    "spared",
    [
        *("Is it never so?", "Isn't it so?", "Is it neither?", "Doesn't it?", "Are fewer so?", "Is it above?"),
        *("Are thirteen so?", "Are fifteen so?", "Are ninety so?", "Are a dozen so?", "Is it warmer than you?"),
    ],
)
def test_slips_spare_negations_comparatives_and_numbers(spared: str) -> None:
    assert noise(spared, "typos") == spared


def test_slips_swap_letters_in_two_words() -> None:
    plain = "Does the warehouse answer letters from customers"
    changed = [(a, b) for a, b in zip(plain.split(), noise(plain, "typos").split(), strict=True) if a != b]

    assert len(changed) == 2
    for word, slip in changed:
        assert len(word) >= 5
        assert (word[0], word[-1], sorted(word)) == (slip[0], slip[-1], sorted(slip))
        assert sum(a != b for a, b in zip(word, slip, strict=True)) == 2


def test_lost_punctuation_leaves_apostrophes_and_the_sign_of_a_number() -> None:
    assert (
        noise("Isn't it, after all, 1,250.75 kg (or so)?", "no_punctuation") == "Isn't it after all 1,250.75 kg or so"
    )
    assert noise("Is it colder than -5 degrees?", "no_punctuation") == "Is it colder than -5 degrees"


def test_a_translation_that_may_not_be_sent_is_not_used() -> None:
    source = json.dumps({"instructions": SCORE["instructions"], "criteria": SCALE})
    fine: dict[str, Any] = {"instructions": "Wie viel ist übrig?", "criteria": ["Nichts", "Wenig", "Viel", "Alles"]}
    broken = [{**fine, "instructions": 5}, {**fine, "criteria": ["Nichts", None, "Viel", 3]}]
    case = to_case({"id": "c", "state": "s", "questions": {"q": SCORE, **NOULS}}, "c")

    def planned(rewrite: dict[str, Any]) -> list[Trial]:
        bank = Bank([Rewrite("translate:de", source, rewrite, accepted=True, audited=None)])
        return full_plan([case], [CATALOGUE["cross_lingual"]], bank)

    assert len(planned(fine)) == 1
    assert [planned(each) for each in broken] == [[], []]


# Wordings of our own

RUN = 8
WORD = re.compile(r"[\w'’]+")


def texts(value: Any) -> Iterator[str]:
    """Walk over every text in a value; keys are ids, not wordings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


def runs(wording: str) -> set[tuple[str, ...]]:
    found = WORD.findall(wording.lower())
    return {tuple(found[i : i + RUN]) for i in range(len(found) - RUN + 1)}


@pytest.fixture(scope="module")
def official_texts(official: Official) -> set[str]:
    """Every text that the official plans send."""
    found: set[str] = set()
    for suite in (official.suite, load_suite("upstream:jevbench-mini"), load_suite("upstream:examples")):
        for row in map(decoded, rows_of(suite)):
            found.update(texts([question for batch in row["requests"].values() for _, question in batch]))
    return found


def our_wordings() -> list[str]:
    """Every wording of ours, its slots removed."""
    named = [value for name, value in vars(words).items() if name.isupper()]
    return [re.sub(r"\{\w+\}", " ", wording) for wording in texts(named)]


def test_no_wording_of_ours_shares_eight_words_in_a_row_with_the_official_requests(official_texts: set[str]) -> None:
    theirs = set().union(*map(runs, official_texts))
    ours = our_wordings()

    assert len(ours) > 80
    assert len(official_texts) > 7_000
    assert {wording: found for wording in ours if (found := runs(wording) & theirs)} == {}


def test_no_whole_wording_of_ours_is_one_of_the_official_ones(official_texts: set[str]) -> None:
    theirs = {" ".join(WORD.findall(each.lower())) for each in official_texts}

    assert {wording for wording in our_wordings() if " ".join(WORD.findall(wording.lower())) in theirs} == set()


# Written and read back


def written(chosen: Iterable[Trial], cases: Sequence[Case], bank: Bank) -> str:
    by_id = {case.id: case for case in cases}
    planned = [Planned(trial, reduced(trial, by_id[trial.case], bank, 0)) for trial in chosen]
    return plan_text(planned, cases, seed=0, draws=2, relations=list(CATALOGUE), selection="all")


def in_order(trial: Trial) -> str:
    """Return a trial as text: questions and options in another order are another trial."""
    return text(
        [trial.relation, trial.case, trial.key, trial.v, trial.t, trial.targets, trial.requests, trial.params]
    )


def assert_reads_back(cases: Sequence[Case], bank: Bank) -> None:
    everything = full_plan(cases, EVERYTHING, bank, draws=2)
    plan = parse_plan(Path("tests.jsonl"), written(everything, cases, bank).encode(), cases)
    read = [trial for test in plan.tests for trial in test.trials()]

    assert sorted(map(in_order, read)) == sorted(map(in_order, everything))


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(case_sets())
def test_a_written_plan_reads_back_as_the_same_trials(drawn: tuple[list[Case], Bank]) -> None:
    cases, bank = drawn
    everything = full_plan(cases, EVERYTHING, bank, draws=2)
    # UTF-8 has no lone surrogates; JSON spells them.
    spelt = re.sub("[\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", written(everything, cases, bank))
    plan = parse_plan(Path("tests.jsonl"), spelt.encode(), cases)

    read = [trial for test in plan.tests for trial in test.trials()]
    assert sorted(map(in_order, read)) == sorted(map(in_order, everything))


def test_a_question_in_another_order_is_written_out_and_one_unchanged_is_a_reference() -> None:
    case = to_case({"id": "c", "state": "s", "questions": {"q": CHOICE, **NOULS}}, "c")
    chosen = full_plan([case], [CATALOGUE["option_permutation"]], Bank())
    (row,) = map(load_json, written(chosen, [case], Bank()).splitlines()[1:])
    sent = dict(row["requests"]["variant"])

    assert {key: sent[key] for key in NOULS} == {key: {"@": key} for key in NOULS}
    assert sent["q"]["criteria"] == MENU
    assert list(sent["q"]["criteria"]) != list(MENU)


# Frozen


def write_folder(folder: Path, cases: Iterable[Case], rewrites: Iterable[Rewrite]) -> Path:
    """Write the files a person writes before freezing."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "id": case.id,
            "domain": case.domain,
            "state": case.state,
            "questions": case.questions,
            "thresholds": [{"subject": subject, "value": value} for subject, value in case.thresholds],
            "hierarchies": case.hierarchies,
        }
        for case in cases
    ]
    bank = [
        {"kind": r.kind, "source": r.source, "rewrite": r.rewrite, "accepted": r.accepted, "audited": r.audited}
        for r in rewrites
    ]
    for name, content in (("cases.jsonl", lines), ("rewrites.jsonl", bank)):
        (folder / name).write_text("".join(f"{text(line)}\n" for line in content), encoding="utf-8")
    return folder


def some_cases(n: int, *, odd: bool = True) -> tuple[list[Case], list[Rewrite]]:
    drawn = [random_case(Random(i), f"case-{i}", ("harbour", "garden")[i % 2], odd=odd) for i in range(n)]
    return [case for case, _ in drawn], [rewrite for _, own in drawn for rewrite in own]


def frozen_text(folder: Path) -> str:
    return gzip.decompress((folder / PLAN_FILE).read_bytes()).decode()


def test_freezing_twice_gives_the_same_text(tmp_path: Path) -> None:
    one, other = (write_folder(tmp_path / name / "suite", *some_cases(4)) for name in ("one", "other"))
    freeze(one)
    before, manifest = frozen_text(one), (one / "manifest.json").read_text(encoding="utf-8")

    freeze(one)
    freeze(other)

    assert frozen_text(one) == frozen_text(other) == before
    assert (one / "manifest.json").read_text(encoding="utf-8") == manifest
    assert (other / "manifest.json").read_text(encoding="utf-8") == manifest
    freeze(other, seed=1)
    assert frozen_text(other) != before


def test_a_case_with_a_lone_surrogate_can_be_frozen(tmp_path: Path) -> None:
    # JSON can spell one, the reader takes it, and so does the wire.
    questions = {"q": {"type": "noul", "instructions": "Is \ud800 a sign?"}, **NOULS}
    case = to_case({"id": "c", "state": "s", "questions": questions}, "c")

    suite = freeze(write_folder(tmp_path / "suite", [case], []))

    standard = standard_plan(full_plan([case], select(), Bank()), [case])
    assert [in_order(trial) for test in suite.plan.tests for trial in test.trials()] == list(map(in_order, standard))


def test_a_frozen_suite_holds_the_standard_plan_and_its_sample(tmp_path: Path) -> None:
    cases, rewrites = some_cases(4)
    folder = write_folder(tmp_path / "suite", cases, rewrites)
    suite = freeze(folder)
    standard = standard_plan(full_plan(cases, select(), Bank(rewrites)), cases)
    drawn = [freeze_sample(folder, tmp_path / name, 1) for name in ("mini", "again")]

    assert [in_order(trial) for test in suite.plan.tests for trial in test.trials()] == list(map(in_order, standard))
    for mini in drawn:
        chosen = [in_order(trial) for test in mini.plan.tests for trial in test.trials()]
        assert chosen == list(map(in_order, sample(standard, cases, 1)))
        assert len(chosen) == 100
    assert frozen_text(tmp_path / "mini") == frozen_text(tmp_path / "again")


def test_a_sample_of_a_plan_with_several_rows_a_test_keeps_each_row_once(tmp_path: Path) -> None:
    # No plan of ours has them; the format does.
    cases, rewrites = some_cases(1)
    folder = write_folder(tmp_path / "suite", cases, rewrites)
    freeze(folder)
    every_option = full_plan(cases, [CATALOGUE["option_closure"]], Bank(rewrites))
    (folder / PLAN_FILE).write_bytes(gzip.compress(written(every_option, cases, Bank(rewrites)).encode(), mtime=0))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][PLAN_FILE] = hashlib.sha256((folder / PLAN_FILE).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(text(manifest), encoding="utf-8")

    mini = freeze_sample(folder, tmp_path / "mini", 1)

    chosen = [trial for test in mini.plan.tests for trial in test.trials()]
    assert len(every_option) > 3
    assert sorted(map(in_order, chosen)) == sorted(map(in_order, every_option))


# The peer runs what we froze


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """A suite that we froze, of cases with nothing that the peer does not accept."""
    folder = write_folder(tmp_path_factory.mktemp("peer") / "ours", *some_cases(4, odd=False))
    (folder / "manifest.json").write_text(text({"name": "ours", "min_n": 1}), encoding="utf-8")
    return freeze(folder)


def test_the_peers_command_line_runs_a_suite_that_we_froze(ours: Suite, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = Path(sys.executable).with_name("jevbench")
    options = ["--suite", str(ours.folder), "--backend", "fake:coherent", "--no-cache", "--out", str(report)]
    done = subprocess.run(
        [command, "eval", *options], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["result"]["errors"] == []
    assert found["result"]["planned_tests"] == {relation.name: 4 for relation in select()}
    # A toy of one score for every text: it cannot fail where menus are cut, and cannot but fail where they are split.
    assert found["scores"]["pillars"]["CHO"] == found["scores"]["pillars"]["BAT"] == 1.0
    assert found["scores"]["relations"]["option_split"] == found["scores"]["relations"]["option_clone"] == 0.0


@pytest.mark.parametrize(("model", "overall"), [("luce-biased", None), ("two-decimals", None), ("oracle", 1.0)])
def test_the_peer_scores_a_suite_that_we_froze_as_we_do(
    ours: Suite, monkeypatch: pytest.MonkeyPatch, model: str, overall: float | None
) -> None:
    name, oracle = str(ours.folder), Oracle(ours.plan.cases.values(), bank_of(ours))
    manifest = json.loads((ours.folder / "manifest.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(peer, "load_suite", lambda asked: load_suite(asked.removeprefix("upstream:")))
    monkeypatch.setitem(peer.DISTINCT, name, manifest["plan"]["requests"])
    monkeypatch.setitem(peer.MODELS, "oracle", lambda: lambda request: oracle(request.state, request.questions))

    found = peer.run_both(name, model)

    # By domain, the peer counts planned tests only of relations that have too few.
    told = [each for each in found.problems if not re.search(r"^domains.*(planned|coverage): .*theirs None$", each)]
    assert told == []
    assert found.judged == 200
    assert found.overall[0] is not None
    assert overall is None or found.overall == (overall, overall)
    assert [line for line in found.on_tolerance if "violated False" not in line] == []
