"""Embedded models keep their promised properties and defects; functions become models that cannot do harm."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_jevbench import __version__
from pytest_jevbench.errors import AskError, ModelError, Refused, SettingError
from pytest_jevbench.model import EMBEDDED, Model, Request, embedded, find_callable, from_callable
from pytest_jevbench.model.embedded import BATCH_SHIFT, FIRST_BONUS, KEY_SHIFT
from pytest_jevbench.wire import Answers, Distribution, Question, check_question, read_answers, renorm, tv

REFERENCE = ["uniform", "random", "luce", "luce-biased"]
STATE = "The customer reports a broken screen and asks for a refund before Friday."
NOUL = {"type": "noul", "instructions": "Does the customer ask for a refund?"}
CHOICE = {
    "type": "choice",
    "instructions": "Which team should take this?",
    "criteria": {
        "money": "refund or payment",
        "repair": "broken screen or device",
        "other": "anything else",
        "x": None,
    },
}
SCORE = {"type": "score", "instructions": "How urgent is it?", "criteria": ["can wait", "this week", "before Friday"]}
BATCH: dict[str, Question] = {"refund": NOUL, "team": CHOICE, "urgency": SCORE}

# Questions of every legal kind, kept small: what a model does with a text does not depend on its length.
texts = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    ["refund", "broken screen", "Friday", "", "null", "[1]"]
)
leaves = st.none() | st.booleans() | st.integers(-9, 9) | texts
trees = st.lists(leaves, max_size=2) | st.dictionaries(texts, leaves, max_size=2)
parts = texts | trees
instructions = st.none() | parts
ids = st.text(min_size=1, max_size=6)
nouls = st.builds(
    lambda said, criteria: {"type": "noul", "instructions": said, **({"criteria": criteria} if criteria else {})},
    parts,
    st.dictionaries(st.sampled_from(["true", "false"]), st.none() | parts, max_size=2),
)
choices = st.builds(
    lambda said, criteria: {"type": "choice", "instructions": said, "criteria": criteria},
    instructions,
    st.dictionaries(ids, st.none() | parts, min_size=2, max_size=6),
)
scores = st.builds(
    lambda said, levels: {"type": "score", "instructions": said, "criteria": levels},
    instructions,
    st.lists(parts, min_size=2, max_size=10),
)
questions = nouls | choices | scores
batches = st.dictionaries(ids, questions, min_size=1, max_size=4)


def answer(name: str, state: Any, batch: dict[str, Question]) -> Answers:
    return read_answers(embedded(name).ask(Request.of(state, batch)).answers, batch)


def alone(name: str, state: Any, question: Question, key: str = "q") -> Distribution:
    return answer(name, state, {key: question}).distributions[key]


def first_odds(distribution: Distribution) -> float:
    """Return the log-odds of a Noul's yes, or of the first option or level against the last."""
    values = list(distribution.values())
    if list(distribution) == ["false", "true"]:
        values.reverse()
    return math.log(values[0] / values[-1])


# All of them


@pytest.mark.parametrize("name", REFERENCE)
@settings(deadline=None, max_examples=60)
@given(state=parts, batch=batches)
def test_a_reference_model_answers_every_legal_question_in_format(
    name: str, state: Any, batch: dict[str, Question]
) -> None:
    for key, question in batch.items():
        check_question(question, key, AskError)
    model = embedded(name)
    before = json.dumps([state, batch])
    answers = read_answers(model.ask(Request.of(state, batch)).answers, batch)
    assert list(answers.distributions) == list(batch)
    assert answers.quirks == ()
    assert json.dumps([state, batch]) == before


@pytest.mark.parametrize("name", REFERENCE)
def test_a_reference_model_answers_the_longest_menu(name: str) -> None:
    menu = {"type": "choice", "criteria": {f"o{n}": f"option {n}" for n in range(255)}}
    distribution = alone(name, STATE, menu)
    assert len(distribution) == 255
    assert math.isclose(math.fsum(distribution.values()), 1)


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_model_is_a_model_whose_answers_last(name: str) -> None:
    model = embedded(name)
    assert isinstance(model, Model)
    assert model.name == model.id == name
    assert model.lasting
    assert model.revision
    model.close()


@pytest.mark.parametrize("name", REFERENCE)
def test_the_revision_of_a_reference_model_is_the_version_of_this_package(name: str) -> None:
    assert embedded(name).revision == __version__


def test_a_reference_model_answers_the_same_in_every_process() -> None:
    code = (
        "import json, sys; from pytest_jevbench.model import Request, embedded;"
        "state, batch, names = json.load(sys.stdin);"
        "print(json.dumps([embedded(name).ask(Request.of(state, batch)).answers for name in names]))"
    )
    given_ = json.dumps([{"text": STATE, "lone": "\ud800"}, BATCH, REFERENCE])
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            input=given_,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    state, batch, names = json.loads(given_)
    here = [embedded(name).ask(Request.of(state, batch)).answers for name in names]
    assert json.loads(printed[0]) == json.loads(printed[1]) == here


@pytest.mark.parametrize(
    ("name", "hint"),
    [("luse", "Did you mean 'luce'"), ("luce_biased", "'luce-biased'"), ("", "uniform"), ("gpt", "sparrow")],
)
def test_an_unknown_embedded_model_is_an_error_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(SettingError, match="no embedded model") as caught:
        embedded(name)
    assert hint in caught.value.hint


# uniform


@settings(deadline=None, max_examples=60)
@given(state=parts, question=questions)
def test_uniform_gives_every_outcome_the_same(state: Any, question: Question) -> None:
    distribution = alone("uniform", state, question)
    assert list(distribution.values()) == pytest.approx([1 / len(distribution)] * len(distribution), abs=1e-15)


# random


def random_yes(n: int, key: str = "a") -> list[float]:
    """Return the probability of yes to one of two equal questions, over n states."""
    batch: dict[str, Question] = {"a": NOUL, "b": NOUL}
    return [answer("random", f"state {i}", batch).distributions[key]["true"] for i in range(n)]


def test_random_answers_the_same_request_the_same() -> None:
    assert answer("random", STATE, BATCH) == answer("random", STATE, BATCH)


def test_random_answers_every_question_and_every_distinct_request_anew() -> None:
    reordered = dict(reversed(BATCH.items()))
    asked = [
        answer("random", STATE, BATCH),
        answer("random", STATE + " ", BATCH),
        answer("random", STATE, reordered),
        answer("random", STATE, {**BATCH, "more": NOUL}),
        answer("random", STATE, {"refund": NOUL}),
        answer("random", STATE, {"refund": {**NOUL, "instructions": "Is it?"}}),
    ]
    yes = [got.distributions["refund"]["true"] for got in asked] + [asked[3].distributions["more"]["true"]]
    assert len(set(yes)) == len(yes)


def test_random_is_spread_over_the_unit_interval_and_independent_between_questions() -> None:
    a, b = random_yes(1000, "a"), random_yes(1000, "b")
    assert statistics.mean(a) == pytest.approx(0.5, abs=0.05)
    assert statistics.stdev(a) == pytest.approx(0.2, abs=0.1)
    assert abs(statistics.correlation(a, b)) < 0.1
    assert abs(statistics.correlation(a[:-1], a[1:])) < 0.1


# luce


@settings(deadline=None, max_examples=80)
@given(state=parts, batch=batches, data=st.data())
def test_luce_is_blind_to_keys_order_and_batch(state: Any, batch: dict[str, Question], data: st.DataObject) -> None:
    together = answer("luce", state, batch).distributions
    reordered = dict(data.draw(st.permutations(list(batch.items()))))
    again = answer("luce", state, reordered).distributions
    for key, question in batch.items():
        assert again[key] == together[key]
        assert alone("luce", state, question, key + "'") == together[key]


@settings(deadline=None, max_examples=80)
@given(state=parts, choice=choices, data=st.data())
def test_luce_is_blind_to_the_order_and_the_ids_of_options(
    state: Any, choice: dict[str, Any], data: st.DataObject
) -> None:
    options = list(choice["criteria"].items())
    before = alone("luce", state, choice)
    shuffled = data.draw(st.permutations(options))
    # The last bit may differ: probabilities are normalised by a plain sum, in the order in which they are listed.
    assert alone("luce", state, {**choice, "criteria": dict(shuffled)}) == pytest.approx(before, abs=1e-12)
    renamed = {f"{n}": text for n, (_, text) in enumerate(options)}
    assert list(alone("luce", state, {**choice, "criteria": renamed}).values()) == list(before.values())


@settings(deadline=None, max_examples=80)
@given(state=parts, score=scores)
def test_luce_reads_a_score_upside_down_the_same(state: Any, score: dict[str, Any]) -> None:
    turned = {**score, "criteria": score["criteria"][::-1]}
    backwards = list(alone("luce", state, score).values())[::-1]
    assert list(alone("luce", state, turned).values()) == pytest.approx(backwards, abs=1e-12)


@settings(deadline=None, max_examples=80)
@given(state=parts, choice=choices, data=st.data())
def test_luce_answers_a_part_of_a_menu_as_the_menu_conditioned_on_it(
    state: Any, choice: dict[str, Any], data: st.DataObject
) -> None:
    whole = alone("luce", state, choice)
    keep = data.draw(st.lists(st.sampled_from(list(whole)), min_size=2, unique=True))
    part = alone("luce", state, {**choice, "criteria": {name: choice["criteria"][name] for name in keep}})
    assert tv(renorm(whole, keep), part) < 1e-12


@settings(deadline=None, max_examples=60)
@given(state=parts, choice=choices, data=st.data())
def test_luce_gives_an_option_more_when_it_is_listed_twice(
    state: Any, choice: dict[str, Any], data: st.DataObject
) -> None:
    option = data.draw(st.sampled_from(list(choice["criteria"])))
    clone = option + "'"
    assume(clone not in choice["criteria"])
    before = alone("luce", state, choice)
    after = alone("luce", state, {**choice, "criteria": {**choice["criteria"], clone: choice["criteria"][option]}})
    assert after[option] == pytest.approx(after[clone], abs=1e-15)
    p = before[option]
    assert after[option] + after[clone] == pytest.approx(2 * p / (1 + p))


def test_luce_reads_the_state_the_instructions_and_the_description() -> None:
    other_text = {**CHOICE, "criteria": {**CHOICE["criteria"], "other": "none of these"}}  # type: ignore[dict-item] # questions are JSON
    asked = [
        alone("luce", STATE, CHOICE),
        alone("luce", STATE + "!", CHOICE),
        alone("luce", STATE, {**CHOICE, "instructions": "Who?"}),
        alone("luce", STATE, other_text),
    ]
    assert all(tv(asked[0], other) > 1e-3 for other in asked[1:])


def test_luce_leans_to_the_description_that_shares_words_with_the_state() -> None:
    states = [f"Ticket {n}: broken screen" for n in range(200)]
    choice = {"type": "choice", "criteria": {"a": "broken screen", "b": "wrong colour"}}
    assert statistics.mean(alone("luce", state, choice)["a"] for state in states) > 0.75


def test_luce_answers_a_noul_by_its_instructions() -> None:
    negated = {**NOUL, "instructions": "Does the customer not ask for a refund?"}
    yes = alone("luce", STATE, NOUL)["true"]
    assert 0 < yes < 1
    assert alone("luce", STATE, negated)["true"] != pytest.approx(1 - yes, abs=1e-3)


@settings(deadline=None, max_examples=40)
@given(state=parts, said=parts, criteria=st.tuples(st.none() | parts, st.none() | parts))
def test_luce_reads_both_orders_of_a_nouls_criteria_the_same(
    state: Any, said: Any, criteria: tuple[Any, Any]
) -> None:
    noul = {"type": "noul", "instructions": said, "criteria": {"true": criteria[0], "false": criteria[1]}}
    turned = {**noul, "criteria": {"false": criteria[1], "true": criteria[0]}}
    assert alone("luce", state, noul) == alone("luce", state, turned)


# luce-biased


@pytest.mark.parametrize("question", [NOUL, CHOICE, SCORE], ids=["noul", "choice", "score"])
def test_luce_biased_moves_by_the_batch_for_each_companion(question: Question) -> None:
    batches_of = [{"q": question, **dict.fromkeys("abcdefgh"[:n], NOUL)} for n in range(9)]
    odds = [first_odds(answer("luce-biased", STATE, batch).distributions["q"]) for batch in batches_of]
    assert [b - a for a, b in pairwise(odds)] == pytest.approx([BATCH_SHIFT] * 8)


@pytest.mark.parametrize("question", [NOUL, CHOICE, SCORE], ids=["noul", "choice", "score"])
def test_luce_biased_moves_by_the_key(question: Question) -> None:
    keys = [f"key {n}" for n in range(100)]
    odds = [first_odds(alone("luce-biased", STATE, question, key)) for key in keys]
    assert len({round(value, 9) for value in odds}) > 50
    assert 0.5 * KEY_SHIFT < max(odds) - min(odds) <= KEY_SHIFT + 1e-9
    assert odds == [first_odds(alone("luce-biased", STATE, question, key)) for key in keys]


@settings(deadline=None, max_examples=60)
@given(state=parts, question=choices | scores, key=ids)
def test_luce_biased_favours_the_first_option_or_level(state: Any, question: Question, key: str) -> None:
    plain, biased = alone("luce", state, question, key), alone("luce-biased", state, question, key)
    first, *others = plain
    gained = first_odds(biased) - first_odds(plain)
    assert FIRST_BONUS - 1e-9 <= gained <= FIRST_BONUS + KEY_SHIFT + 1e-9
    assert tv(renorm(plain, others), renorm(biased, others)) < 1e-9
    assert biased[first] > plain[first]


@settings(deadline=None, max_examples=40)
@given(state=parts, noul=nouls, key=ids)
def test_luce_biased_has_no_first_option_bonus_in_a_noul(state: Any, noul: Question, key: str) -> None:
    gained = first_odds(alone("luce-biased", state, noul, key)) - first_odds(alone("luce", state, noul, key))
    assert -1e-9 <= gained <= KEY_SHIFT + 1e-9


# sparrow


@pytest.mark.parametrize(
    "state",
    [STATE, "", {"text": STATE, "items": [1, None, {"a": True}]}, [STATE, 2], {}],
    ids=["text", "empty", "object", "array", "empty object"],
)
def test_sparrow_answers_every_kind_of_question(state: Any) -> None:
    pytest.importorskip("sparrow_decider")
    batch: dict[str, Question] = {
        **BATCH,
        "no descriptions": {"type": "choice", "criteria": {"yes": None, "no": None}},
        "trees": {"type": "choice", "instructions": {"ask": "which"}, "criteria": {"a": {"b": 1}, "c": ["d"]}},
        "one side": {"type": "noul", "criteria": {"true": "a refund is asked for"}},
        "null side": {"type": "noul", "instructions": ["Is it?"], "criteria": {"true": None, "false": "no"}},
        "levels": {"type": "score", "instructions": None, "criteria": [{"level": 1}, ["two"]]},
    }
    before = json.dumps([state, batch])
    model = embedded("sparrow")
    answers = read_answers(model.ask(Request.of(state, batch)).answers, batch)
    assert list(answers.distributions) == list(batch)
    assert answers.quirks == ()
    assert answers == read_answers(model.ask(Request.of(state, batch)).answers, batch)
    assert json.dumps([state, batch]) == before


def test_sparrow_really_reads() -> None:
    pytest.importorskip("sparrow_decider")
    team = alone("sparrow", STATE, CHOICE)
    assert tv(team, alone("sparrow", "Please change my delivery address.", CHOICE)) > 0.01


def test_sparrow_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sparrow_decider", None)
    with pytest.raises(SettingError, match=r"sparrow-decider.*pip install \"pytest-jevbench\[demo\]\""):
        embedded("sparrow")


# Functions


def half(_state: Any, questions: dict[str, Any]) -> dict[str, Any]:
    return {key: {"type": "noul", "noul": 0.5} for key in questions}


class Caller:
    def __call__(self, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        return half(state, questions)

    def method(self, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        return half(state, questions)


def test_a_function_gets_the_state_and_the_questions_in_order() -> None:
    seen: list[Any] = []

    def record(state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        seen.append((state, questions, list(questions)))
        return half(state, questions)

    reply = from_callable(record).ask(Request.of({"a": ["\ud800"]}, BATCH))
    assert seen == [({"a": ["\ud800"]}, BATCH, list(BATCH))]
    assert reply.answers == half(None, BATCH)
    assert (reply.model, reply.usage, reply.retries) == (None, {}, {})


def test_a_function_may_change_what_it_gets() -> None:
    seen: list[Any] = []

    def destructive(state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        seen.append(json.dumps([state, questions]))
        state["list"].append("more")
        state.clear()
        questions["team"]["criteria"].clear()
        questions.pop("refund")
        return half(state, questions)

    state = {"list": [1, {"deep": 2}]}
    request = Request.of(state, BATCH)
    original = json.dumps([state, BATCH])
    model = from_callable(destructive)
    model.ask(request)
    model.ask(request)
    assert seen == [original, original]
    assert json.dumps([request.state, request.questions]) == original


def test_what_a_function_raises_becomes_a_model_error_with_file_and_line() -> None:
    def broken(state: Any, questions: dict[str, Any]) -> Any:
        return questions["missing"] or state

    with pytest.raises(ModelError) as caught:
        from_callable(broken, "mine").ask(Request.of(STATE, BATCH))
    message = str(caught.value)
    assert message.startswith("model mine: the function raised KeyError")
    assert "missing" in message
    assert f"{Path(__file__)}:{broken.__code__.co_firstlineno + 1}" in message
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_long_error_of_a_function_is_one_short_line() -> None:
    def broken(_state: Any, _questions: Any) -> Any:
        raise RuntimeError("line\n" * 1000)

    with pytest.raises(ModelError, match="RuntimeError") as caught:
        from_callable(broken).ask(Request.of(STATE, BATCH))
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 600


def test_an_error_whose_text_is_broken_still_becomes_a_model_error() -> None:
    class Rude(Exception):  # noqa: N818 - as users name them
        def __str__(self) -> str:
            raise ValueError("no text")

    def broken(_state: Any, _questions: Any) -> Any:
        raise Rude

    with pytest.raises(ModelError, match="Rude"):
        from_callable(broken).ask(Request.of(STATE, BATCH))


@pytest.mark.parametrize("error", [Refused("no", "here"), ModelError("down"), SettingError("no weights", "my model")])
def test_an_error_of_this_package_passes_through_a_function(error: Exception) -> None:
    def raising(_state: Any, _questions: Any) -> Any:
        raise error

    with pytest.raises(type(error)) as caught:
        from_callable(raising).ask(Request.of(STATE, BATCH))
    assert caught.value is error


def test_ctrl_c_in_a_function_passes_through() -> None:
    def interrupted(_state: Any, _questions: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        from_callable(interrupted).ask(Request.of(STATE, BATCH))


@pytest.mark.parametrize(
    ("name", "revision", "lasting"), [("", "", False), ("mine", "", True), ("", "r2", True), ("mine", "r2", True)]
)
def test_answers_of_a_function_last_only_with_a_name_or_a_revision(
    name: str,
    revision: str,
    lasting: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert from_callable(half, name, revision).lasting is lasting


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (half, "half"),
        (Caller(), "Caller"),
        (Caller().method, "Caller.method"),
        (partial(half), "partial"),
        (lambda _, questions: half("", questions), "<lambda>"),
    ],
    ids=["function", "object", "method", "partial", "lambda"],
)
def test_anything_that_can_be_called_is_a_model(function: Any, name: str) -> None:
    model = from_callable(function)
    assert isinstance(model, Model)
    assert model.name == model.id
    assert model.name.endswith(name)
    assert model.ask(Request.of(STATE, BATCH)).answers == half(STATE, BATCH)
    assert from_callable(function, "mine").name == "mine"
    model.close()


@pytest.mark.parametrize("thing", [None, 3, "module:name", {"answers": {}}])
def test_what_cannot_be_called_is_no_model(thing: Any) -> None:
    with pytest.raises(SettingError, match="no function"):
        from_callable(thing)


# Functions found by MODULE:NAME


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a few modules on the path, under names no other test uses."""
    (tmp_path / "jevtest_good.py").write_text(
        "number = 3\n"
        "def decide(state, questions):\n    return {}\n"
        "class Model:\n    def ask(self, state, questions):\n        return {}\n"
        "model = Model()\n"
    )
    (tmp_path / "jevtest_raises.py").write_text("raise RuntimeError('no weights')\n")
    (tmp_path / "jevtest_needs.py").write_text("import jevtest_missing_dependency\n")
    (tmp_path / "jevtest_broken.py").write_text("def decide(:\n")
    (tmp_path / "jevtest_package").mkdir()
    (tmp_path / "jevtest_package" / "__init__.py").write_text("")
    (tmp_path / "jevtest_package" / "inner.py").write_text("decide = lambda state, questions: {}\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("jevtest_"):
            del sys.modules[name]


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("spec", ["jevtest_good:decide", "jevtest_good:model.ask", "jevtest_package.inner:decide"])
def test_a_function_is_found_by_module_and_name(spec: str) -> None:
    assert from_callable(find_callable(spec)).ask(Request.of(STATE, BATCH)).answers == {}


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "MODULE:NAME"),
        ("jevtest_good", "MODULE:NAME"),
        ("jevtest_good:", "MODULE:NAME"),
        (":decide", "MODULE:NAME"),
        ("jevtest_nowhere:decide", "'jevtest_nowhere' cannot be found. Is it on sys.path?"),
        ("jevtest_package.nowhere:decide", "'jevtest_package.nowhere' cannot be found"),
        ("jevtest_good.inner:decide", "'jevtest_good.inner' cannot be found"),
        ("jevtest_needs:decide", "'jevtest_missing_dependency' cannot be found"),
        ("jevtest_raises:decide", "RuntimeError: no weights"),
        ("jevtest_broken:decide", "SyntaxError"),
        (".relative:decide", "relative import"),
        ("jevtest_good:decode", "Did you mean 'decide'?"),
        ("jevtest_good:decide.x", "no 'decide.x'"),
        ("jevtest_good:model.aks", "Did you mean 'ask'?"),
        ("jevtest_good:Model.aks", "Did you mean 'ask'?"),
        ("jevtest_good:number", "found 3; expected fn(state, questions)"),
        ("jevtest_good:number.real.x", "no 'number.real.x'"),
        ("jevtest_good:a:b", "no 'a:b'"),
    ],
)
def test_a_function_that_is_not_found_is_an_error_that_says_which_part(spec: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        find_callable(spec)
    assert words in str(caught.value)
    assert spec in str(caught.value)


@pytest.mark.usefixtures("modules")
def test_a_missing_dependency_is_not_blamed_on_the_path() -> None:
    with pytest.raises(SettingError) as caught:
        find_callable("jevtest_needs:decide")
    assert "sys.path" not in str(caught.value)
