"""The wire format: what questions may be, what answers must be, and the arithmetic of distributions."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jevbench.errors import AnswerFormatError, CaseError
from pytest_jevbench.wire import (
    Answers,
    RepeatedKeyError,
    argmax,
    check_question,
    load_answer_json,
    load_json,
    outcomes,
    read_answers,
    renorm,
    request_text,
    sent_form,
    tv,
)

NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it urgent?"}
CHOICE: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which desk?",
    "criteria": {"b": "billing", "a": None, "c": "claims"},
}
SCORE: dict[str, Any] = {"type": "score", "instructions": "How late?", "criteria": ["on time", "late", "very late"]}
QUESTIONS: dict[str, dict[str, Any]] = {"urgent": NOUL, "desk": CHOICE, "delay": SCORE}

GOOD: dict[str, Any] = {
    "urgent": {"type": "noul", "noul": 0.25},
    "desk": {"type": "choice", "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2}},
    "delay": {"type": "score", "probabilities": {"0": 0.1, "1": 0.2, "2": 0.7}},
}


def with_answer(key: str, **changes: Any) -> dict[str, Any]:
    answers = copy.deepcopy(GOOD)
    answers[key] |= changes
    return answers


def noul(value: Any) -> dict[str, Any]:
    return with_answer("urgent", noul=value)


def desk(**probabilities: Any) -> dict[str, Any]:
    return with_answer("desk", probabilities=probabilities)


def delay(probabilities: Any) -> dict[str, Any]:
    return with_answer("delay", probabilities=probabilities)


def without(key: str) -> dict[str, Any]:
    return {name: answer for name, answer in GOOD.items() if name != key}


def kinds(answers: Answers) -> list[str]:
    return [quirk.kind for quirk in answers.quirks]


# Reading good answers


def test_every_type_of_answer_is_read_in_the_order_of_its_question() -> None:
    read = read_answers(GOOD, QUESTIONS)
    assert {key: list(found.items()) for key, found in read.distributions.items()} == {
        "urgent": [("false", 0.75), ("true", 0.25)],
        "desk": [("b", 0.3), ("a", 0.5), ("c", 0.2)],
        "delay": [("0", 0.1), ("1", 0.2), ("2", 0.7)],
    }
    assert read.quirks == ()
    assert read.confidences == {}


def test_answers_are_found_by_question_id_whatever_their_order() -> None:
    assert read_answers(dict(reversed(GOOD.items())), QUESTIONS) == read_answers(GOOD, QUESTIONS)


def test_answers_to_questions_nobody_asked_and_unknown_fields_are_ignored() -> None:
    more = with_answer("urgent", latency=3, reasoning="because") | {"other": "not even an object"}
    assert read_answers(more, QUESTIONS) == read_answers(GOOD, QUESTIONS)


def test_a_mapping_that_is_no_dict_is_read() -> None:
    frozen = MappingProxyType({key: MappingProxyType(answer) for key, answer in GOOD.items()})
    assert read_answers(frozen, QUESTIONS) == read_answers(GOOD, QUESTIONS)


def test_levels_may_be_answered_by_text() -> None:
    by_text = delay({"very late": 0.7, "on time": 0.1, "late": 0.2})
    assert read_answers(by_text, QUESTIONS).distributions["delay"] == {"0": 0.1, "1": 0.2, "2": 0.7}


@pytest.mark.parametrize("number", [np.float64(0.25), np.float32(0.25), np.float16(0.25), Fraction(1, 4)])
def test_numbers_of_other_libraries_are_numbers(number: Any) -> None:
    p = read_answers(noul(number), QUESTIONS).distributions["urgent"]["true"]
    assert type(p) is float
    assert p == 0.25


@pytest.mark.parametrize("number", [0, 1, np.int64(1), np.uint8(0)])
def test_whole_numbers_are_probabilities(number: Any) -> None:
    assert read_answers(noul(number), QUESTIONS).distributions["urgent"]["true"] == float(number)


@pytest.mark.parametrize(("given_", "read"), [(-1e-6, 0.0), (-1e-7, 0.0), (1 + 1e-7, 1.0), (1.000001, 1.0)])
def test_a_probability_within_a_millionth_of_the_unit_interval_is_clipped(given_: float, read: float) -> None:
    assert read_answers(noul(given_), QUESTIONS).distributions["urgent"] == {"false": 1 - read, "true": read}


@pytest.mark.parametrize("outside", [-1.1e-6, 1 + 1.1e-6])
def test_a_probability_further_outside_is_an_error(outside: float) -> None:
    with pytest.raises(AnswerFormatError, match="outside"):
        read_answers(noul(outside), QUESTIONS)


def test_clipping_comes_before_normalising() -> None:
    read = read_answers(desk(a=1 + 1e-7, b=-1e-7, c=0.0), QUESTIONS)
    assert read.distributions["desk"] == {"b": 0.0, "a": 1.0, "c": 0.0}
    assert read.quirks == ()


@pytest.mark.parametrize("scale", [1e-300, 0.3, 2.0 / 3])
def test_every_positive_sum_is_normalised(scale: float) -> None:
    read = read_answers(desk(a=0.5 * scale, b=0.3 * scale, c=0.2 * scale), QUESTIONS)
    assert read.distributions["desk"] == pytest.approx({"a": 0.5, "b": 0.3, "c": 0.2})
    assert kinds(read) == ["sum"]


def test_a_confidence_is_kept_where_it_is_a_finite_number() -> None:
    answers = with_answer("urgent", confidence=0.5)
    answers["desk"]["confidence"] = "high"
    answers["delay"]["confidence"] = math.nan
    assert read_answers(answers, QUESTIONS).confidences == {"urgent": 0.5}


def test_a_confidence_too_large_for_a_float_is_not_a_crash() -> None:
    assert read_answers(with_answer("urgent", confidence=10**400), QUESTIONS).confidences == {}


# Quirks: usable, but counted


@pytest.mark.parametrize("off", [0.021, 0.5])
def test_a_sum_off_by_more_than_two_hundredths_is_counted_with_its_size(off: float) -> None:
    read = read_answers(desk(a=0.5, b=0.5, c=off), QUESTIONS)
    (quirk,) = read.quirks
    assert (quirk.kind, quirk.where) == ("sum", "desk")
    assert quirk.size == pytest.approx(off)


def test_a_sum_off_by_two_hundredths_is_rounding() -> None:
    read = read_answers(desk(a=0.4, b=0.4, c=0.19), QUESTIONS)
    assert read.quirks == ()
    assert math.fsum(read.distributions["desk"].values()) == pytest.approx(1)


def test_mass_on_an_undeclared_option_is_counted_and_taken_away() -> None:
    read = read_answers(desk(a=0.4, b=0.2, c=0.2, other=0.2), QUESTIONS)
    (quirk,) = read.quirks
    assert (quirk.kind, quirk.size, quirk.where) == ("undeclared", 0.2, "desk")
    assert read.distributions["desk"] == pytest.approx({"b": 0.25, "a": 0.5, "c": 0.25})


def test_an_undeclared_option_without_mass_is_no_quirk() -> None:
    assert read_answers(desk(a=0.5, b=0.3, c=0.2, other=0.0), QUESTIONS).quirks == ()


def test_mass_on_an_undeclared_level_is_counted() -> None:
    read = read_answers(delay({"0": 0.1, "1": 0.2, "2": 0.5, "3": 0.2}), QUESTIONS)
    assert [(quirk.kind, quirk.size) for quirk in read.quirks] == [("undeclared", 0.2)]


@pytest.mark.parametrize(("key", "wrong"), [("urgent", "choice"), ("desk", "score"), ("delay", None)])
def test_a_wrong_type_is_counted(key: str, wrong: Any) -> None:
    read = read_answers(with_answer(key, type=wrong), QUESTIONS)
    assert [(quirk.kind, quirk.where) for quirk in read.quirks] == [("type", key)]
    assert read.distributions == read_answers(GOOD, QUESTIONS).distributions


@pytest.mark.parametrize("key", list(QUESTIONS))
def test_a_missing_type_is_counted(key: str) -> None:
    answers = copy.deepcopy(GOOD)
    del answers[key]["type"]
    read = read_answers(answers, QUESTIONS)
    assert [(quirk.kind, quirk.where) for quirk in read.quirks] == [("no type", key)]


# Errors: each names the question, shows the value and states the format

STATED = {
    "urgent": '{"type": "noul", "noul": p}',
    "desk": "a probability for every option id",
    "delay": 'every level index "0" to "n-1"',
}

UNUSABLE: dict[str, tuple[str, Any, str]] = {
    "a Noul is not answered": ("urgent", without("urgent"), "['desk', 'delay']"),
    "a Choice is not answered": ("desk", without("desk"), "['urgent', 'delay']"),
    "nothing is answered": ("urgent", {}, "[]"),
    "an answer is null": ("urgent", GOOD | {"urgent": None}, "None"),
    "an answer is a number": ("urgent", GOOD | {"urgent": 0.25}, "0.25"),
    "an answer is an array": ("desk", GOOD | {"desk": [0.5, 0.3, 0.2]}, "[0.5, 0.3, 0.2]"),
    "a Noul has no `noul`": ("urgent", GOOD | {"urgent": {"type": "noul"}}, "{'type': 'noul'}"),
    "a Noul is null": ("urgent", noul(None), "None"),
    "a Noul is negative": ("urgent", noul(-0.25), "-0.25"),
    "a Noul is 1.5": ("urgent", noul(1.5), "1.5"),
    "a Noul is NaN": ("urgent", noul(math.nan), "nan"),
    "a Noul is Infinity": ("urgent", noul(math.inf), "inf"),
    "a Noul is -Infinity": ("urgent", noul(-math.inf), "-inf"),
    "a Noul is numpy's NaN": ("urgent", noul(np.float32("nan")), "nan"),
    "a Noul is true": ("urgent", noul(True), "True"),  # noqa: FBT003 - the value under test
    "a Noul is numpy's true": ("urgent", noul(np.True_), "True"),
    "a Noul is a string": ("urgent", noul("0.25"), "'0.25'"),
    "a Noul is an array": ("urgent", noul([0.25]), "[0.25]"),
    "a Noul is complex": ("urgent", noul(0.25j), "0.25j"),
    "a Noul is too large for a float": ("urgent", noul(10**400), "1000"),
    "a Choice has no probabilities": ("desk", GOOD | {"desk": {"type": "choice", "choice": "b"}}, "'choice': 'b'"),
    "the probabilities are an array": ("desk", with_answer("desk", probabilities=[1, 0, 0]), "[1, 0, 0]"),
    "an option is missing": ("desk", desk(a=0.5, b=0.5), "{'a': 0.5, 'b': 0.5}"),
    "an option is negative": ("desk", desk(a=1.2, b=-0.2, c=0.0), "{'b': -0.2}"),
    "an option is 1.5": ("desk", desk(a=1.5, b=0.0, c=0.0), "{'a': 1.5}"),
    "an option is NaN": ("desk", desk(a=0.5, b=math.nan, c=0.5), "nan"),
    "an option is Infinity": ("desk", desk(a=0.5, b=0.5, c=math.inf), "inf"),
    "an option is true": ("desk", desk(a=True, b=0.0, c=0.0), "{'a': True}"),
    "an option is a string": ("desk", desk(a="0.5", b=0.3, c=0.2), "{'a': '0.5'}"),
    "an option is null": ("desk", desk(a=None, b=0.5, c=0.5), "{'a': None}"),
    "the options sum to zero": ("desk", desk(a=0.0, b=0.0, c=0.0), "{'a': 0.0, 'b': 0.0, 'c': 0.0}"),
    "all mass is undeclared": ("desk", desk(a=0.0, b=0.0, c=0.0, other=1.0), "'other': 1.0"),
    "undeclared mass is negative": ("desk", desk(a=0.5, b=0.5, c=0.2, other=-0.2), "{'other': -0.2}"),
    "undeclared mass is no number": ("desk", desk(a=0.5, b=0.3, c=0.2, other="none"), "{'other': 'none'}"),
    "a level is missing": ("delay", delay({"0": 0.5, "1": 0.5}), "{'0': 0.5, '1': 0.5}"),
    "a level text is missing": ("delay", delay({"on time": 0.5, "late": 0.5}), "'on time': 0.5"),
    "levels are numbers": ("delay", delay({0: 0.1, 1: 0.2, 2: 0.7}), "{0: 0.1, 1: 0.2, 2: 0.7}"),
    "levels are an array": ("delay", delay([0.1, 0.2, 0.7]), "[0.1, 0.2, 0.7]"),
    "levels sum to zero": ("delay", delay({"0": 0, "1": 0, "2": 0}), "{'0': 0, '1': 0, '2': 0}"),
    "levels stand by index and by text": ("delay", delay({"0": 0.1, "1": 0.2, "2": 0.3, "late": 0.4}), "'late': 0.4"),
    "levels stand by text and by index": (
        "delay",
        delay({"on time": 0.1, "late": 0.2, "very late": 0.3, "2": 0.4}),
        "'2': 0.4",
    ),
    "some levels stand by index, some by text": ("delay", delay({"0": 0.1, "late": 0.2, "2": 0.7}), "'late': 0.2"),
}


@pytest.mark.parametrize(("key", "raw", "shown"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_answer_names_its_question_shows_the_value_and_states_the_format(
    key: str, raw: Any, shown: str
) -> None:
    with pytest.raises(AnswerFormatError) as caught:
        read_answers(raw, QUESTIONS)
    error = caught.value
    assert error.where == f"question {key!r}"
    assert shown in error.found
    assert STATED[key] in error.expected
    assert all(part in str(error) for part in (error.what, error.where, error.found, error.expected))


@pytest.mark.parametrize("raw", [None, [], "answers", 0.5, True], ids=repr)
def test_answers_that_are_no_object_are_shown(raw: Any) -> None:
    with pytest.raises(AnswerFormatError, match="no object") as caught:
        read_answers(raw, QUESTIONS)
    assert caught.value.found == repr(raw)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(AnswerFormatError) as caught:
        read_answers(GOOD | {"urgent": "x" * 5000}, QUESTIONS)
    assert len(caught.value.found) <= 120


REPEATED: dict[str, tuple[str, str, str]] = {
    "in the answers": ('{"urgent": {"noul": 0.2}, "urgent": {"noul": 0.8}}', "urgent", "twice"),
    "in an answer": ('{"urgent": {"type": "noul", "noul": 0.2, "noul": 0.8}}', "urgent", "'noul'"),
    "in an answer, the same value": ('{"urgent": {"type": "noul", "type": "noul", "noul": 0.2}}', "urgent", "'type'"),
    "in the probabilities": (
        '{"desk": {"type": "choice", "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2, "a": 0.5}}}',
        "desk",
        "'a'",
    ),
    "in the levels": (
        '{"delay": {"type": "score", "probabilities": {"0": 1, "1": 0, "2": 0, "1": 0}}}',
        "delay",
        "'1'",
    ),
}


@pytest.mark.parametrize(("text", "key", "named"), REPEATED.values(), ids=REPEATED)
def test_a_repeated_key_is_an_error_that_names_key_and_question(text: str, key: str, named: str) -> None:
    with pytest.raises(AnswerFormatError) as caught:
        read_answers(load_answer_json(text), {key: QUESTIONS[key]})
    assert caught.value.where == f"question {key!r}"
    assert named in str(caught.value)
    assert "twice" in str(caught.value)


def test_a_repeated_key_where_nobody_reads_is_ignored() -> None:
    text = '{"urgent": {"type": "noul", "noul": 0.2, "usage": {"n": 1, "n": 2}}}'
    assert read_answers(load_answer_json(text), {"urgent": NOUL}).distributions["urgent"]["true"] == 0.2


# Level texts that look like indices, or like nothing


def levels(texts: list[Any], probabilities: dict[str, float]) -> dict[str, float]:
    question = {"type": "score", "criteria": texts}
    read = read_answers({"q": {"type": "score", "probabilities": probabilities}}, {"q": question})
    assert read.quirks == ()
    return read.distributions["q"]


def test_texts_that_are_the_indices_of_other_levels_are_read_by_index() -> None:
    assert levels(["1", "0"], {"0": 0.25, "1": 0.75}) == {"0": 0.25, "1": 0.75}


def test_texts_that_overlap_with_indices_can_still_be_answered_by_text() -> None:
    assert levels(["1", "2", "3"], {"1": 0.25, "2": 0.25, "3": 0.5}) == {"0": 0.25, "1": 0.25, "2": 0.5}


def test_texts_that_overlap_with_indices_can_still_be_answered_by_index() -> None:
    assert levels(["1", "2", "3"], {"0": 0.25, "1": 0.25, "2": 0.5}) == {"0": 0.25, "1": 0.25, "2": 0.5}


def test_equal_level_texts_can_be_answered_by_index_only() -> None:
    assert levels(["same", "same"], {"0": 0.25, "1": 0.75}) == {"0": 0.25, "1": 0.75}
    with pytest.raises(AnswerFormatError, match="missing"):
        levels(["same", "same"], {"same": 1.0})


def test_levels_that_are_objects_are_answered_by_index() -> None:
    assert levels([{"low": 1}, ["high"]], {"0": 0.25, "1": 0.75}) == {"0": 0.25, "1": 0.75}


def test_a_level_that_is_an_object_has_no_text_to_be_answered_by() -> None:
    with pytest.raises(AnswerFormatError, match="missing"):
        levels(["low", {"high": 1}], {"low": 0.25, "": 0.75})


# Distributions

OUTCOMES = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True)


@st.composite
def distributions(draw: st.DrawFn) -> dict[str, float]:
    keys = draw(OUTCOMES)
    weights = draw(st.lists(st.integers(0, 100), min_size=len(keys), max_size=len(keys)).filter(any))
    return {key: weight / sum(weights) for key, weight in zip(keys, weights, strict=True)}


@settings(deadline=None)
@given(distributions(), distributions(), distributions())
def test_total_variation_is_a_metric_with_values_from_0_to_1(
    a: dict[str, float], b: dict[str, float], c: dict[str, float]
) -> None:
    assert tv(a, b) == tv(b, a)
    assert 0 <= tv(a, b) <= 1 + 1e-12
    assert tv(a, c) <= tv(a, b) + tv(b, c) + 1e-12
    assert tv(a, a) == 0


@settings(deadline=None)
@given(distributions(), st.randoms(use_true_random=False))
def test_total_variation_sees_values_and_not_their_order(a: dict[str, float], rng: Any) -> None:
    items = list(a.items())
    rng.shuffle(items)
    assert tv(a, dict(items)) == 0


@settings(deadline=None)
@given(distributions(), distributions())
def test_total_variation_is_zero_only_for_the_same_distribution(a: dict[str, float], b: dict[str, float]) -> None:
    same = all(a.get(key, 0.0) == b.get(key, 0.0) for key in "abcdef")
    assert (tv(a, b) == 0) == same


@settings(deadline=None)
@given(distributions(), distributions())
def test_total_variation_is_the_largest_difference_any_event_can_show(
    a: dict[str, float], b: dict[str, float]
) -> None:
    gain = math.fsum(max(0.0, a.get(key, 0.0) - b.get(key, 0.0)) for key in "abcdef")
    assert tv(a, b) == pytest.approx(gain, abs=1e-12)


def test_total_variation_counts_a_missing_key_as_zero() -> None:
    assert tv({"a": 0.5, "b": 0.5}, {"b": 0.5, "c": 0.5}) == 0.5
    assert tv({"a": 1.0}, {"b": 1.0}) == 1.0


def test_total_variation_does_not_lose_what_a_plain_sum_loses() -> None:
    keys = [f"o{i}" for i in range(255)]
    even = dict.fromkeys(keys, 1 / 255)
    one = dict.fromkeys(keys, 0.0) | {"o0": 1.0}
    assert tv(even, one) == math.fsum([*[1 / 255] * 254, 1 - 1 / 255]) / 2


@settings(deadline=None)
@given(distributions())
def test_argmax_is_the_first_of_the_largest_in_the_given_order(a: dict[str, float]) -> None:
    largest = [key for key, value in a.items() if value == max(a.values())]
    assert argmax(a) == largest[0]
    assert argmax(dict(reversed(a.items()))) == largest[-1]


@settings(deadline=None)
@given(distributions(), st.data())
def test_renormalising_keeps_order_proportions_and_a_sum_of_one(a: dict[str, float], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.sampled_from(list(a)), min_size=1, unique=True))
    kept = renorm(a, keep)
    assert list(kept) == keep
    assert math.fsum(kept.values()) == pytest.approx(1)
    if any(a[key] for key in keep):
        for one in keep:
            for other in keep:
                assert kept[one] * a[other] == pytest.approx(kept[other] * a[one], abs=1e-12)
    else:
        assert set(kept.values()) == {1 / len(keep)}


def test_renormalising_nothing_is_uniform() -> None:
    assert renorm({"a": 0.0, "b": 1.0, "c": 0.0}, ["c", "a"]) == {"c": 0.5, "a": 0.5}


# Requests


@settings(deadline=None)
@given(st.permutations(list(QUESTIONS)), st.permutations(list(QUESTIONS)))
def test_two_orders_of_a_batch_are_two_requests(one: list[str], other: list[str]) -> None:
    first = request_text("s", {key: QUESTIONS[key] for key in one})
    second = request_text("s", {key: QUESTIONS[key] for key in other})
    assert (first == second) == (one == other)


def test_a_request_keeps_every_order_and_every_letter() -> None:
    state = {"z": 1, "a": ["ü", "語", None]}
    text = request_text(state, {"desk": CHOICE})
    back = json.loads(text)
    assert list(back) == ["state", "questions"]
    assert list(back["state"]) == ["z", "a"]
    assert list(back["questions"]["desk"]["criteria"]) == ["b", "a", "c"]
    assert "ü" in text
    assert "語" in text


@pytest.mark.parametrize(
    ("question", "declared"),
    [(NOUL, ("false", "true")), (CHOICE, ("b", "a", "c")), (SCORE, ("0", "1", "2"))],
    ids=["noul", "choice", "score"],
)
def test_outcomes_stand_in_the_order_in_which_the_question_is_sent(
    question: dict[str, Any], declared: tuple[str, ...]
) -> None:
    assert outcomes(question) == declared


def test_a_null_criteria_field_of_a_noul_is_not_sent() -> None:
    assert sent_form(NOUL | {"criteria": None}) == NOUL
    one_sided = NOUL | {"criteria": {"true": "it burns"}}
    assert sent_form(one_sided) == one_sided


def test_a_null_description_of_an_option_is_sent() -> None:
    assert sent_form(CHOICE) == CHOICE


# Questions: what is legal on the wire

OPTIONS_255 = {f"o{i}": None for i in range(255)}
LEVELS_10 = [f"level {i}" for i in range(10)]

LEGAL: dict[str, Any] = {
    "a Noul": NOUL,
    "a Noul with null criteria": NOUL | {"criteria": None},
    "a Noul with the yes side only": NOUL | {"criteria": {"true": "it burns"}},
    "a Noul with the no side only": NOUL | {"criteria": {"false": "it can wait"}},
    "a Noul with both sides": NOUL | {"criteria": {"true": "it burns", "false": "it can wait"}},
    "a Noul with a null side": NOUL | {"criteria": {"true": None, "false": "it can wait"}},
    "a Noul of criteria alone": {"type": "noul", "criteria": {"true": "it burns"}},
    "instructions that are an object": NOUL | {"instructions": {"ask": "urgent?", "of": ["mail", 1, None]}},
    "instructions that are an array": NOUL | {"instructions": ["Is it urgent?", {"really": True}]},
    "a Choice": CHOICE,
    "a Choice without instructions": {"type": "choice", "criteria": {"a": None, "b": None}},
    "a Choice of null descriptions": CHOICE | {"criteria": {"a": None, "b": None}},
    "descriptions that are objects": CHOICE | {"criteria": {"a": {"text": "x"}, "b": ["y", "z"]}},
    "any non-empty option id": CHOICE | {"criteria": {" ": "x", "ключ::[1]%": "y", "score": "z", "\n": None}},
    "255 options": CHOICE | {"criteria": OPTIONS_255},
    "a Score": SCORE,
    "a Score of two levels": SCORE | {"criteria": ["no", "yes"]},
    "a Score of ten levels": SCORE | {"criteria": LEVELS_10},
    "levels that are objects": SCORE | {"criteria": [{"low": 1}, ["high"]]},
    "levels of equal text": SCORE | {"criteria": ["same", "same"]},
}


@pytest.mark.parametrize("question", LEGAL.values(), ids=LEGAL)
def test_all_that_is_legal_on_the_wire_may_be_asked(question: Any) -> None:
    before = copy.deepcopy(question)
    check_question(question, "here", CaseError)
    assert question == before


ILLEGAL: dict[str, tuple[Any, str, str]] = {
    "a question that is text": ("Is it urgent?", "", "'Is it urgent?'"),
    "a question that is null": (None, "", "None"),
    "a question without a type": ({"instructions": "x"}, "", "'instructions': 'x'"),
    "an unknown type": (NOUL | {"type": "quiz"}, "", "'quiz'"),
    "a type that is null": (NOUL | {"type": None}, "", "None"),
    "an extra field": (NOUL | {"weight": 3}, ".weight", "3"),
    "a Noul that asks nothing": ({"type": "noul"}, "", "{'type': 'noul'}"),
    "a Noul with empty criteria": (NOUL | {"criteria": {}}, ".criteria", "{}"),
    "a Noul with another side": (NOUL | {"criteria": {"true": "x", "maybe": "y"}}, ".criteria", "'maybe': 'y'"),
    "a Noul with criteria that are an array": (NOUL | {"criteria": ["no", "yes"]}, ".criteria", "['no', 'yes']"),
    "instructions that are a number": (NOUL | {"instructions": 5}, ".instructions", "5"),
    "instructions that are true": (CHOICE | {"instructions": True}, ".instructions", "True"),
    "a Choice without options": ({"type": "choice", "instructions": "x"}, ".criteria", "'instructions': 'x'"),
    "a Choice of null": (CHOICE | {"criteria": None}, ".criteria", "None"),
    "a Choice of no option": (CHOICE | {"criteria": {}}, ".criteria", "{}"),
    "a Choice of 1 option": (CHOICE | {"criteria": {"a": None}}, ".criteria", "{'a': None}"),
    "a Choice of 256 options": (CHOICE | {"criteria": OPTIONS_255 | {"more": None}}, ".criteria", "'o0': None"),
    "an empty option id": (CHOICE | {"criteria": {"": "x", "b": "y"}}, ".criteria", "'': 'x'"),
    "a Choice of an array": (CHOICE | {"criteria": ["a", "b"]}, ".criteria", "['a', 'b']"),
    "a description that is a number": (CHOICE | {"criteria": {"a": "x", "b": 5}}, ".criteria.b", "5"),
    "a description of an option named score": (CHOICE | {"criteria": {"a": "x", "score": 5}}, ".criteria.score", "5"),
    "a description of an option named str": (CHOICE | {"criteria": {"a": "x", "str": 5}}, ".criteria.str", "5"),
    "a description of an option named list[0]": (
        CHOICE | {"criteria": {"a": "x", "list[0]": 5}},
        ".criteria.list[0]",
        "5",
    ),
    "a Score of 1 level": (SCORE | {"criteria": ["a"]}, ".criteria", "['a']"),
    "a Score of 11 levels": (SCORE | {"criteria": [*LEVELS_10, "more"]}, ".criteria", "'level 0'"),
    "a Score of an object": (SCORE | {"criteria": {"0": "a", "1": "b"}}, ".criteria", "'0': 'a'"),
    "a null level": (SCORE | {"criteria": ["a", None]}, ".criteria.1", "None"),
    "a level that is a number": (SCORE | {"criteria": ["a", 5]}, ".criteria.1", "5"),
}


@pytest.mark.parametrize(("question", "path", "shown"), ILLEGAL.values(), ids=ILLEGAL)
def test_a_question_that_cannot_be_sent_is_named_with_its_field_and_value(
    question: Any, path: str, shown: str
) -> None:
    with pytest.raises(CaseError) as caught:
        check_question(question, "cases.jsonl:3: questions.q", CaseError)
    assert caught.value.where == f"cases.jsonl:3: questions.q{path}"
    assert shown in caught.value.found
    assert caught.value.what


# JSON with a key twice


def test_json_of_our_own_files_refuses_a_repeated_key_at_any_depth() -> None:
    with pytest.raises(RepeatedKeyError, match=r"^k$"):
        load_json('{"a": [{"b": {"k": 1, "x": 2, "k": 1}}]}')


def test_json_of_our_own_files_refuses_numbers_json_does_not_have() -> None:
    for text in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(ValueError, match=text):
            load_json(f'{{"state": {{"x": {text}}}}}')


def test_json_of_a_server_is_read_as_far_as_it_can_be() -> None:
    found = load_answer_json('{"a": NaN, "b": {"k": 1, "k": 2}}')
    assert math.isnan(found["a"])
    assert found["b"] == {"k": 2}
