"""Random cases: some that the oracle can answer and all relations apply to, some that are merely legal.

`random_case` draws from any generator with the methods of `random.Random`, so that a seed gives a fixed case and
hypothesis can shrink one.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import strategies as st

from pytest_jevbench.case import Case, to_case
from pytest_jevbench.rewrites import Bank, Rewrite
from pytest_jevbench.wire import MAX_LEVELS, Question

THINGS = (
    *("lantern", "bridge", "kettle", "ledger", "orchard", "tractor", "window", "harbour", "cellar", "turbine"),
    *("parcel", "bicycle", "carpet", "engine", "fountain", "garage", "hammer", "island", "jacket", "ladder"),
    *("magnet", "needle", "oven", "pillow", "quarry", "radio", "saddle", "tunnel", "umbrella", "valley"),
)
TRAITS = ("broken", "painted", "rusty", "heavy", "locked", "borrowed", "wet", "insured", "crooked", "spotless")

# Everyday questions, and some that try to break out of the quotes and lists they will be put in.
ASKED = (
    "Is the {thing} {trait}?",
    "Has the {thing} been {trait} since {n} o'clock?",
    "Was the {thing}, {n}.5 metres from the road, found {trait}?",
    'Does the text call the {thing} "{trait}"?',
    "First: the {thing}. Second: is it {trait}?",
    "Is the {thing} {trait}? 2. Or does it only seem so?",
    "Ist das Ding namens {thing} größer als {n} Meter (oder {trait})?",
    "{{q}} stands on the {thing}; is it {trait}?",
    "  Is the {thing}\n{trait}, or isn't it?",
    "Would it be a mistake to call the {thing} {trait}",
)
WHICH = (
    "Which description fits the {thing} best?",
    "What is {trait} about the {thing}?",
    "Choose what happens to the {thing}; the choice lies between several things.",
)
HOW = ("How {trait} is the {thing}?", "The scale of the {thing}, lowest level first: how {trait} is it?")
ANSWER = (
    "The {thing} is {trait}",
    'It is "{trait}"; so says the {thing}',
    "Either the {thing} or something {trait}",
    "{trait}, and the text mentions the {thing}",
    "{thing} ({trait}) 🪣",
)
IDS = (
    *("left", "right", "option_1", "option_3", "none_of_the_others", "block_a", "yes", "no", "bee_keeping", "rest"),
    *("left_or_right", "left_bis", "rest_alike", "10", "Ω"),
)
KEYS = (
    *("first", "second", "urgent", "item_000000", "more_than_3", "first__no", "not_first", "first__again", "aside_1"),
    *("cause", "mood", "0", "Ж", "a b", "first__and__second"),
)


class _Writer:
    """Draws texts none of which is drawn twice."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._things = list(THINGS)
        rng.shuffle(self._things)
        self._drawn = 0

    def text(self, patterns: tuple[str, ...]) -> str:
        rng = self.rng
        thing = self._things[self._drawn % len(THINGS)] + "s" * (self._drawn // len(THINGS))
        self._drawn += 1
        return rng.choice(patterns).format(thing=thing, trait=rng.choice(TRAITS), n=rng.randint(2, 40))

    def noul(self) -> Question:
        return {"type": "noul", "instructions": self.text(ASKED)}

    def choice(self, least: int, most: int) -> Question:
        ids = self.rng.sample(IDS, self.rng.randint(least, most))
        return {
            "type": "choice",
            "instructions": self.text(WHICH),
            "criteria": {name: self.text(ANSWER) for name in ids},
        }

    def score(self, least: int, most: int) -> Question:
        levels = [self.text(ANSWER) for _ in range(self.rng.randint(least, most))]
        return {"type": "score", "instructions": self.text(HOW), "criteria": levels}

    def odd(self) -> Question:
        """A question that some relations cannot quote or edit."""
        kind = self.rng.randrange(6)
        if kind == 0:
            sides = {"true": self.text(ANSWER), "false": None}
            return {"type": "noul", "instructions": self.text(ASKED), "criteria": sides}
        if kind == 1:
            return {"type": "noul", "instructions": {"ask": self.text(ASKED), "how": ["briefly"]}}
        if kind == 2:
            return {"type": "noul", "criteria": {"true": self.text(ANSWER)}}
        choice = self.choice(2, 5)
        names = list(choice["criteria"])
        if kind == 3:
            return {**choice, "criteria": {**choice["criteria"], self.rng.choice(names): None}}
        if kind == 4:
            return {**choice, "instructions": None, "criteria": {name: {"is": name} for name in names}}
        return {"type": "score", "instructions": self.text(HOW), "criteria": [[self.text(ANSWER)], self.text(ANSWER)]}


def random_case(rng: Random, name: str = "case", domain: str = "", *, odd: bool = True) -> tuple[Case, list[Rewrite]]:
    """Draw a case to which every relation applies, and its bank, in which some entries may not be used.

    An `odd` case may also have a question that some relations cannot quote or edit.
    """
    writer = _Writer(rng)
    choices = [writer.choice(4, 6)] + ([writer.choice(2, 4)] if rng.random() < 0.3 else [])
    scores = [writer.score(4, 8)] + ([writer.score(2, 3)] if rng.random() < 0.3 else [])
    nouls = [writer.noul() for _ in range(rng.randint(3, 5))]
    questions = [*nouls, *choices, *scores, *([writer.odd()] if odd and rng.random() < 0.4 else [])]
    rng.shuffle(questions)
    batch = dict(zip(rng.sample(KEYS, len(questions)), questions, strict=True))
    raw: dict[str, Any] = {
        "id": name,
        "state": f"Report {rng.randrange(10**9)}: all quiet, 3 checks done, 1,250.75 kg.",
    }
    raw["questions"] = batch
    if domain:
        raw["domain"] = domain
    if rng.random() < 0.5:
        subjects = rng.sample(("crates", "open tickets", "metres above the {k} mark"), rng.randint(1, 2))
        raw["thresholds"] = [{"subject": each, "value": rng.choice((0, 2, 9, 14, 20, 60, 1000))} for each in subjects]
    if rng.random() < 0.5:
        raw["hierarchies"] = _hierarchies(rng, batch)
    return to_case(raw, name), _bank(rng, writer, batch)


def _hierarchies(rng: Random, batch: dict[str, Question]) -> dict[str, Any]:
    declared = {}
    for key, question in batch.items():
        if question["type"] == "choice" and len(question["criteria"]) > 3:
            options = list(question["criteria"])
            rng.shuffle(options)
            cut = rng.randint(1, len(options) - 2)
            declared[key] = [
                {"near": options[:cut], "far": options[cut:]},
                {"one": options[:1], "two": options[1:2], "all the rest": options[2:]},
            ]
    return declared


def _rewrite(kind: str, source: str, rewrite: Any, *, accepted: bool = True, audited: bool | None = None) -> Rewrite:
    return Rewrite(kind, source, rewrite, accepted, audited)


def _bank(rng: Random, writer: _Writer, batch: dict[str, Question]) -> list[Rewrite]:
    found: list[Rewrite] = []
    for question in batch.values():
        asked = question.get("instructions")
        if not isinstance(asked, str):
            continue
        found += _paraphrases(writer, asked)
        if question["type"] == "noul" and "criteria" not in question:
            found.append(_rewrite("negation", asked, writer.text(("Audited away: {thing}?",)), audited=False))
            found.append(_rewrite("negation", asked, f"On the contrary, {writer.text(ASKED)}"))
        if question["type"] == "choice":
            described = [
                text for text in question["criteria"].values() if isinstance(text, str) and rng.random() < 0.7
            ]
            found += [_rewrite("description", text, f"Described anew: {writer.text(ANSWER)}") for text in described]
        found += _translations(writer, question)
    return found


def _paraphrases(writer: _Writer, asked: str) -> list[Rewrite]:
    """Write one that was not accepted, and two that may be used, of which the first is."""
    other, good, better = (f"{which}, {writer.text(ASKED)}" for which in ("Another matter", "Again", "Once more"))
    return [
        _rewrite("paraphrase", asked, other, accepted=False),
        _rewrite("paraphrase", asked, good, audited=writer.rng.choice((True, None))),
        _rewrite("paraphrase", asked, better),
    ]


def _translations(writer: _Writer, question: Question) -> list[Rewrite]:
    """Translate a question whose criteria are all text into two languages."""
    asked, criteria = question["instructions"], question.get("criteria")
    parts = list(criteria.values() if isinstance(criteria, dict) else criteria or [])
    if not all(isinstance(part, str) for part in parts):
        return []
    found = []
    for language in ("zh", "de"):
        translated: Any = None
        if isinstance(criteria, dict):
            # In another order: it is the source's that counts.
            translated = {name: f"{language}：{text}" for name, text in reversed(criteria.items())}
        elif criteria is not None:
            translated = [f"{language}：{level}" for level in criteria]
        source = json.dumps({"instructions": asked, "criteria": criteria}, ensure_ascii=False)
        rewrite = {"instructions": f"{language}：{writer.text(ASKED)}", "criteria": translated}
        found.append(_rewrite(f"translate:{language}", source, rewrite, audited=writer.rng.choice((True, None))))
    return found


def coherent_cases() -> st.SearchStrategy[tuple[Case, Bank]]:
    """Draw cases to which every relation applies, each with its bank."""
    return st.randoms(use_true_random=False).map(_with_bank)


def _with_bank(rng: Random) -> tuple[Case, Bank]:
    case, rewrites = random_case(rng)
    return case, Bank(rewrites)


# Arbitrary legal cases

_text = st.text(max_size=12) | st.sampled_from(
    ["", " ", "Is it?", "{q} {k} {0}", "%s", '"', "“no”", "a\nb", "\x00", "\x1f", "ist's GUT?", "½ ﬁ İ ẞ", "\ud800"]
)
_tree = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_text, inner, max_size=2),
    max_leaves=4,
)
_part = _text | st.dictionaries(_text, _tree, max_size=2) | st.lists(_tree, max_size=2)
_name = st.text(min_size=1, max_size=4) | st.sampled_from(
    ["a", "b", "a_or_b", "a_bis", "option_1", "block_a", "yes", "none_of_the_others", "tide_table", "not_a", "@"]
)
_sides = st.dictionaries(st.sampled_from(["true", "false"]), _part | st.none(), min_size=1)
_nouls = st.fixed_dictionaries(
    {"type": st.just("noul"), "instructions": _part}, optional={"criteria": st.none()}
) | st.fixed_dictionaries({"type": st.just("noul"), "criteria": _sides}, optional={"instructions": _part | st.none()})
_options = st.dictionaries(_name, _part | st.none(), min_size=2, max_size=6)
_choices = st.fixed_dictionaries(
    {"type": st.just("choice"), "criteria": _options},
    optional={"instructions": _part | st.none()},
)
_scores = st.fixed_dictionaries(
    {"type": st.just("score"), "criteria": st.lists(_part, min_size=2, max_size=MAX_LEVELS)},
    optional={"instructions": _part | st.none()},
)


@st.composite
def legal_cases(draw: st.DrawFn) -> Case:
    """Draw a case that may be sent, however odd: any texts and trees, duplicates, nulls."""
    questions: dict[str, Any] = draw(st.dictionaries(_name, _nouls | _choices | _scores, min_size=1, max_size=6))
    raw: dict[str, Any] = {"id": draw(_name), "state": draw(_part), "questions": questions}
    if draw(st.booleans()):
        threshold = st.fixed_dictionaries({"subject": _name, "value": st.integers(0, 10**6)})
        raw["thresholds"] = draw(st.lists(threshold, max_size=2))
    raw["hierarchies"] = {}
    for key, question in questions.items():
        if question["type"] == "choice" and draw(st.booleans()):
            first, *rest = question["criteria"]
            names = draw(st.lists(_name, max_size=2, unique=True))
            raw["hierarchies"][key] = [{name: [first], f"{name}, not": rest} for name in names]
    return to_case(raw, "drawn")
