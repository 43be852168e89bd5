"""A coherent model: it answers every request of a plan from one joint distribution, so that all laws hold at once.

For each case a set of weighted worlds is drawn. A world settles everything one may ask about the case: each yes/no
question (and whether the text proves or at least allows a yes), the right option of each Choice, the right level of
each Score and whether the truth lies even beyond its top, how many there are of what thresholds are asked about,
every text predicate, every filler. A request is answered by reading what each of its questions says, and summing
weights.

The oracle reads questions as a careful person would: from their wording alone, never from keys, option ids, order or
company. It takes the project's templates apart again, and refuses a text that it cannot read, or can read in two
ways: that it answers a whole plan shows that the wordings say what the laws mean. It shares no code with the
builders, only the words.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import product
from random import Random
from typing import Any, TypeVar

from pytest_jevbench.case import Case
from pytest_jevbench.relations import words
from pytest_jevbench.rewrites import Bank
from pytest_jevbench.wire import Question

Truth = tuple[bool, ...]
"""Whether something holds, world by world."""

WORLDS = 64
Found = TypeVar("Found")


class UnknownWordingError(ValueError):
    """A text that the oracle cannot read, or can read in more than one way."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a yes/no question asks: `true` in some worlds, and asked only about the `given` ones.

    `kind` says by what wording it was asked, `parts` about which other events, `number` what it compares with.
    """

    kind: str
    true: Truth
    given: Truth
    parts: tuple[Event, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of a Choice or Score: the worlds in which it is right, and by what wording it was offered.

    `says` identifies what it says: two options that say the same are one answer offered twice.
    """

    kind: str
    true: Truth
    says: str


@dataclass(slots=True)
class _Known:
    """A question of the case. `values` is the truth (0 or 1), or the index of the right option or level, by world.

    `names` maps the contents of options or levels, rewrites included, to their indices; indices beyond `size` are
    the strangers. `stronger` is whether a yes is proved, or whether the truth lies beyond the top level; `weaker`
    whether a yes is at least allowed. `criteria` are the contents that a Noul's criteria may have.
    """

    type: str
    values: tuple[int, ...]
    size: int
    names: dict[str, int] = field(default_factory=dict)
    stronger: Truth = ()
    weaker: Truth = ()
    criteria: set[str] = field(default_factory=set)

    def among(self, indices: Iterable[int]) -> Truth:
        """Return the worlds in which the right one is among these."""
        chosen = set(indices)
        return tuple(value in chosen for value in self.values)


class Oracle:
    """The model: `oracle(state, questions)` gives the answers. Cases are told apart by their states."""

    def __init__(self, cases: Iterable[Case], bank: Bank | None = None, seed: int = 0) -> None:
        self._readers: dict[str, _Reader] = {}
        for case in cases:
            state = _content(case.state)
            if state in self._readers:
                raise ValueError(f"two cases have the state of {case.id}")
            self._readers[state] = _Reader(case, bank or Bank(), seed)

    def __call__(self, state: Any, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Answer a request. Raises UnknownWordingError."""
        return {key: answer(question, self.probabilities(state, question)) for key, question in questions.items()}

    def probabilities(self, state: Any, question: Question) -> list[float]:
        """Return the probabilities of a question's outcomes, in their order. Raises UnknownWordingError."""
        return list(self._reader(state).probabilities(question))

    def event(self, state: Any, question: Question) -> Event:
        """Return what a Noul asks. Raises UnknownWordingError."""
        return self._reader(state).event(question)

    def options(self, state: Any, question: Question) -> list[Option]:
        """Return what the options of a Choice or the levels of a Score say. Raises UnknownWordingError."""
        return self._reader(state).options(question)

    def p(self, state: Any, event: Event) -> float:
        """Return the probability of an event, in the worlds in which it is asked about."""
        return self._reader(state).p(event)

    def masses(self, state: Any, options: Sequence[Option]) -> list[float]:
        """Return the probability that each option is right, options that are right together not sharing it."""
        return [self._reader(state).weight(option.true) for option in options]

    def _reader(self, state: Any) -> _Reader:
        found = self._readers.get(_content(state))
        if found is None:
            raise UnknownWordingError(f"a state of no case: {state!r}")
        return found


def answer(question: Question, probabilities: Sequence[float]) -> dict[str, Any]:
    """Write probabilities, given in the order of the outcomes, as the answer to a question."""
    confidence = max(probabilities)
    if question["type"] == "noul":
        return {"type": "noul", "noul": probabilities[1], "confidence": confidence}
    names = question["criteria"] if question["type"] == "choice" else map(str, range(len(question["criteria"])))
    return {
        "type": question["type"],
        "probabilities": dict(zip(names, probabilities, strict=True)),
        "confidence": confidence,
    }


def _content(value: Any) -> str:
    """Return what identifies a text or a tree: two that read the same have the same content."""
    return value if isinstance(value, str) else f"\0{json.dumps(value)}"


def _contents(question: Question) -> list[str]:
    """Return the contents of a Choice's options or a Score's levels; an option without a description is its id."""
    criteria = question["criteria"]
    if isinstance(criteria, Mapping):
        return [_content(name if text is None else text) for name, text in criteria.items()]
    return [_content(text) for text in criteria]


SLOT = re.compile(r"\{(\w+)\}")


def parses(template: str, text: str) -> Iterator[dict[str, str]]:
    """Yield every way in which `text` can be the template with its slots filled."""
    # Literals stand at even places, names of slots between them.
    yield from _filled(SLOT.split(template), text)


def _filled(parts: list[str], text: str) -> Iterator[dict[str, str]]:
    literal, *rest = parts
    if not text.startswith(literal):
        return
    text = text[len(literal) :]
    if not rest:
        if not text:
            yield {}
        return
    name, *after = rest
    if len(after) == 1:
        if text.endswith(after[0]):
            yield {name: text[: len(text) - len(after[0])]}
        return
    start = text.find(after[0])
    while start >= 0:
        for found in _filled(after, text[start:]):
            yield {name: text[:start], **found}
        start = text.find(after[0], start + 1)


def listed(text: str, known: Iterable[str], joint: str) -> Iterator[list[str]]:
    """Yield every way in which `text` can be a list of known texts, each in quotation marks."""
    for name in known:
        quoted = f'"{name}"'
        if text == quoted:
            yield [name]
        elif text.startswith(quoted + joint):
            for rest in listed(text[len(quoted + joint) :], known, joint):
                yield [name, *rest]


def _signature(text: str) -> tuple[str, ...]:
    """Return what survives lower case, swapped inner letters and lost punctuation."""
    return tuple("".join(sorted(word)) for word in re.findall(r"[^\W_]+", text.casefold()))


def _negated(event: Event, kind: str) -> Event:
    return Event(kind, tuple(not each for each in event.true), event.given, (event,))


def _joined(kind: str, events: Sequence[Event], holds: Callable[[int], bool]) -> Event:
    """Join yes/no questions by how many of them are to be answered yes."""
    counts = map(sum, zip(*(event.true for event in events), strict=True))
    return Event(kind, tuple(holds(count) for count in counts), events[0].given, tuple(events))


YES = {words.YES_NO["yes"], *(levels[1] for levels in words.YES_NO_LEVELS)}
NO = {words.YES_NO["no"], *(levels[0] for levels in words.YES_NO_LEVELS)}

COMPOUNDS: list[tuple[str, str, tuple[str, ...], Callable[[int], bool]]] = [
    ("and", words.DE_MORGAN["and"], ("a", "b"), lambda n: n == 2),
    ("nand", words.DE_MORGAN["nand"], ("a", "b"), lambda n: n < 2),
    ("or_not", words.DE_MORGAN["or_not"], ("a", "b"), lambda n: n < 2),
    *(("and", both, ("a", "b"), lambda n: n == 2) for both, _ in words.CONJUNCTION),
    *(("or", either, ("a", "b"), lambda n: n > 0) for _, either in words.CONJUNCTION),
    ("and", words.NARY["all"], ("a", "b", "c"), lambda n: n == 3),
    ("or", words.NARY["any"], ("a", "b", "c"), lambda n: n > 0),
    ("and", words.QUANTIFIERS["all"], ("a", "b", "c"), lambda n: n == 3),
    ("two", words.QUANTIFIERS["two"], ("a", "b", "c"), lambda n: n >= 2),
    ("or", words.QUANTIFIERS["any"], ("a", "b", "c"), lambda n: n > 0),
]
"""Questions about other questions, by how many of these have the answer yes: kind, template, slots, condition."""

ABOUT_OPTIONS = [
    *(("choice", "indicator", template) for template in words.CHOICE_INDICATOR),
    *(("choice", "complement", template) for template in words.CHOICE_COMPLEMENT),
    *(("score", "complement", template) for template in words.SCORE_COMPLEMENT),
    *(("score", "tail", template) for template in words.SCORE_CUMULATIVE),
]
"""Questions about one answer of another question whose answers are all quoted: its type, kind, template."""


class _Reader:
    """Reads and answers the questions about one case."""

    def __init__(self, case: Case, bank: Bank, seed: int) -> None:
        self._state = _content(case.state)
        self._seed = seed
        self._answered: dict[str, list[float]] = {}
        menus = [len(q["criteria"]) for q in case.questions.values() if q["type"] == "choice"]
        self.worlds = max(WORLDS, *(n + len(words.OFF_TOPIC) for n in menus)) if menus else WORLDS
        weights = [rng.random() + 0.05 for rng in [self._drawn("weights")] for _ in range(self.worlds)]
        self.weights = [each / math.fsum(weights) for each in weights]
        self.everywhere: Truth = (True,) * self.worlds
        self._asked: dict[str, list[tuple[_Known, bool]]] = {}
        for question in case.questions.values():
            self._learn(question, bank)
        self._noisy: dict[tuple[str, ...], list[str]] = {}
        for text in self._asked:
            self._noisy.setdefault(_signature(text), []).append(text)
        self._facts = {text: self._toss(text, 0.5) for text in words.FILLERS}
        for has, lacks in words.PREDICATES:
            self._facts[has] = self._toss(has, 0.5)
            self._facts[lacks] = tuple(not each for each in self._facts[has])
        self._numbers = {subject: self._count(subject, value) for subject, value in case.thresholds}
        self._digits = self._count(words.DIGIT_GROUPS, len(re.findall(r"\d+(?:[.,]\d+)*", self._state)))

    # The joint distribution

    def _drawn(self, *parts: str) -> Random:
        text = "\x1f".join([str(self._seed), self._state, *parts])
        return Random(hashlib.sha256(text.encode(errors="surrogatepass")).digest())

    def _toss(self, text: str, p: float) -> Truth:
        rng = self._drawn("toss", text)
        return tuple(rng.random() < p for _ in range(self.worlds))

    def _count(self, subject: str, near: int) -> tuple[int, ...]:
        rng = self._drawn("count", subject)
        spread = max(4, near // 2)
        return tuple(max(0, near + rng.randint(-spread, spread)) for _ in range(self.worlds))

    def _index(self, text: str, size: int, strangers: int) -> tuple[int, ...]:
        """Draw the right option by world: each is right somewhere, some are right often."""
        rng = self._drawn("index", text)
        often = [rng.random() ** 2 + 0.02 for _ in range(size)]
        drawn = [*range(size + strangers), *rng.choices(range(size), often, k=self.worlds - size - strangers)]
        rng.shuffle(drawn)
        return tuple(drawn)

    def weight(self, true: Truth) -> float:
        """Return the weight of the worlds in which something holds."""
        return math.fsum(weight for weight, holds in zip(self.weights, true, strict=True) if holds)

    def p(self, event: Event) -> float:
        """Return the probability of an event among the worlds it is asked about."""
        both = tuple(true and given for true, given in zip(event.true, event.given, strict=True))
        return self.weight(both) / self.weight(event.given)

    # What is known of the case

    def _learn(self, question: Question, bank: Bank) -> None:
        asked = question.get("instructions")
        name = _content([question["type"], asked, question.get("criteria") if question["type"] == "noul" else None])
        known = self._draw(question, name)
        self._name(_content(asked), known)
        for text in filter(None, [bank.first("paraphrase", asked)]):
            self._name(text, known)
        if known.type == "noul":
            for text in filter(None, [bank.first("negation", asked)]):
                self._name(text, known, yes=False)
        translated = bank.translation(question)
        if translated is not None:
            _, fields = translated
            other = {**question, **{name: value for name, value in fields.items() if value is not None}}
            self._name(_content(other.get("instructions")), known)
            self._describe(known, other)
        if known.type == "choice":
            for i, text in enumerate(question["criteria"].values()):
                for rewrite in filter(None, [bank.first("description", text)]):
                    self._describe_one(known, rewrite, i)

    def _draw(self, question: Question, name: str) -> _Known:
        if question["type"] == "noul":
            often = self._drawn("often", name).uniform(0.05, 0.95)
            yes = self._toss(name, often)
            known = _Known("noul", tuple(map(int, yes)), 2)
            known.stronger = tuple(a and b for a, b in zip(yes, self._toss(f"proved {name}", 0.6), strict=True))
            known.weaker = tuple(a or b for a, b in zip(yes, self._toss(f"allowed {name}", 0.4), strict=True))
        else:
            size = len(question["criteria"])
            strangers = len(words.OFF_TOPIC) if question["type"] == "choice" else 0
            known = _Known(question["type"], self._index(name, size, strangers), size)
            known.stronger = self._toss(f"beyond {name}", 0.5)
            if strangers:
                known.names = {text: size + i for i, text in enumerate(words.OFF_TOPIC.values())}
        self._describe(known, question)
        return known

    def _describe(self, known: _Known, question: Question) -> None:
        if known.type == "noul":
            known.criteria.add(_content(question.get("criteria")))
            return
        for i, text in enumerate(_contents(question)):
            self._describe_one(known, text, i)

    def _describe_one(self, known: _Known, text: str, i: int) -> None:
        if known.names.setdefault(text, i) != i:
            raise ValueError(f"two answers of one question read {text!r}")

    def _name(self, text: str, known: _Known, *, yes: bool = True) -> None:
        readings = self._asked.setdefault(text, [])
        if any(other.type == known.type and (other is not known or also != yes) for other, also in readings):
            raise ValueError(f"two questions of one type read {text!r}")
        readings.append((known, yes))

    # Reading

    def _questions(self, instructions: Any) -> list[tuple[_Known, bool]]:
        """Find whose instructions these are; the flag is False where they ask for the opposite."""
        text = _content(instructions)
        if text in self._asked:
            return self._asked[text]
        for template in words.VERBOSITY:
            for slots in parses(template, text):
                if slots["q"] in self._asked:
                    return self._asked[slots["q"]]
        return []

    def _slips(self, instructions: Any) -> list[tuple[_Known, bool]]:
        """Find the question of which these instructions are a noisy copy."""
        text = _content(instructions)
        alike = self._noisy.get(_signature(text), [])
        if not alike:
            return []
        return self._asked[max(alike, key=lambda each: SequenceMatcher(None, text, each, autojunk=False).ratio())]

    def event(self, question: Question) -> Event:
        """Read a Noul."""
        instructions, criteria = question.get("instructions"), _content(question.get("criteria"))
        found = self._plain(self._questions(instructions), criteria)
        if not found and "criteria" not in question and isinstance(instructions, str):
            found = self._readings(instructions)
        if not found:
            found = self._plain(self._slips(instructions), criteria)
        return _only(found, question)

    def _plain(self, known: Iterable[tuple[_Known, bool]], criteria: str) -> list[Event]:
        events = []
        for each, yes in known:
            if each.type == "noul" and criteria in each.criteria:
                event = Event("plain", tuple(map(bool, each.values)), self.everywhere)
                events.append(event if yes else _negated(event, "opposite"))
        return events

    def _quoted(self, text: str) -> list[Event]:
        """Read a yes/no question that stands inside another."""
        return self._plain(self._asked.get(text, []), _content(None))

    def _readings(self, text: str) -> list[Event]:
        """Read a Noul without criteria that is none of the case's own, in every way it can be read."""
        return [
            *self._fillers(text),
            *self._negations(text),
            *self._compounds(text),
            *self._strengths(text),
            *self._comparisons(text),
            *self._about_options(text),
        ]

    def _fillers(self, text: str) -> Iterator[Event]:
        if text in words.FILLERS:
            yield Event("filler", self._facts[text], self.everywhere)
        for slots in parses(words.FILLER_AGAIN, text):
            yield from self._fillers(slots["q"])

    def _negations(self, text: str) -> Iterator[Event]:
        for template in words.NEGATION:
            for slots in parses(template, text):
                for event in self._quoted(slots["q"]):
                    yield _negated(event, "negation")

    def _compounds(self, text: str) -> Iterator[Event]:
        for kind, template, names, holds in COMPOUNDS:
            for slots in parses(template, text):
                for events in product(*(self._quoted(slots[name]) for name in names)):
                    yield _joined(kind, events, holds)

    def _strengths(self, text: str) -> Iterator[Event]:
        for kind, template in (("strong", words.STRONG), ("weak", words.WEAK)):
            for slots in parses(template, text):
                for known, yes in self._asked.get(slots["q"], []):
                    if known.type == "noul" and yes:
                        true = known.stronger if kind == "strong" else known.weaker
                        plain = self._plain([(known, True)], _content(None))
                        yield Event(kind, true, self.everywhere, tuple(plain))

    def _comparisons(self, text: str) -> Iterator[Event]:
        found = [(slots["k"], self._digits) for slots in parses(words.DIGIT_GROUPS, text)]
        found += [
            (slots["k"], self._numbers[slots["subject"]])
            for slots in parses(words.THRESHOLD, text)
            if slots["subject"] in self._numbers
        ]
        for k, numbers in found:
            if re.fullmatch(r"0|[1-9][0-9]*", k):
                yield Event("more", tuple(n > int(k) for n in numbers), self.everywhere, number=int(k))

    def _about_options(self, text: str) -> Iterator[Event]:
        for kind, form, template in ABOUT_OPTIONS:
            for slots in parses(template, text):
                for known, _ in self._asked.get(slots["q"], []):
                    if known.type != kind or slots["o"] not in known.names:
                        continue
                    for menu in listed(slots["menu"], known.names, "; "):
                        if slots["o"] in menu:
                            yield self._about_option(known, form, [known.names[each] for each in menu], slots["o"])

    def _about_option(self, known: _Known, kind: str, menu: list[int], option: str) -> Event:
        """Read a question about one answer: it presupposes that one of those quoted is right."""
        i = known.names[option]
        given = known.among(menu)
        one = Event("indicator", known.among([i]), given)
        if kind == "tail":
            return Event("tail", known.among(menu[menu.index(i) :]), given, (one,))
        return one if kind == "indicator" else _negated(one, kind)

    def options(self, question: Question) -> list[Option]:
        """Read the options of a Choice or the levels of a Score."""
        instructions, texts = question.get("instructions"), _contents(question)
        own = self._questions(instructions)
        found = self._menus(own, question["type"], texts)
        if isinstance(instructions, str):
            found += self._pairs(instructions, texts)
        if not found:
            found = self._menus(self._slips(instructions), question["type"], texts)
        return _only(found, question)

    def _menus(self, questions: Iterable[tuple[_Known, bool]], kind: str, texts: list[str]) -> list[list[Option]]:
        found = []
        for known, yes in questions:
            menu: list[Option] = []
            if known.type == kind:
                menu = self._menu(known, texts)
            elif known.type == "noul" and yes and set(texts) <= YES | NO:
                menu = [Option("side", known.among([int(text in YES)]), str(text in YES)) for text in texts]
            if menu:
                found.append(menu)
        return found

    def _menu(self, known: _Known, texts: list[str]) -> list[Option]:
        """Read all answers on offer; none where one of them is no answer to this question."""
        menu: list[Option] = []
        for text in texts:
            readings = {option.true: option for option in self._offers(known, text)}
            if len(readings) != 1:
                return []
            menu += readings.values()
        others = [option for option in menu if option.kind != "catch_all"]
        unlisted = tuple(
            right and not any(holds)
            for right, *holds in zip(known.among(range(known.size)), *(o.true for o in others), strict=True)
        )
        # The catch-all ranges over the question's own answers: a stranger is right only where it is on offer.
        menu = [replace(option, true=unlisted) if option.kind == "catch_all" else option for option in menu]
        return self._below_beyond(menu)

    def _below_beyond(self, menu: list[Option]) -> list[Option]:
        """Where 'even further up than X' is on offer, X means no further up than X."""
        beyond = [option for option in menu if option.kind == "beyond"]
        for top in beyond:
            menu = [
                replace(option, true=tuple(a and not b for a, b in zip(option.true, top.true, strict=True)))
                if option.kind == "own"
                else option
                for option in menu
            ]
        return menu

    def _offers(self, known: _Known, text: str) -> Iterator[Option]:
        """Read one answer in every way it can be read."""
        names = known.names
        if text in names:
            kind = "own" if names[text] < known.size else "stranger"
            yield Option(kind, known.among([names[text]]), f"{names[text]}")
            return
        if text == words.CATCH_ALL and known.type == "choice":
            yield Option("catch_all", (), "the rest")
        yield from self._joined_offers(known, text)
        for slots in parses(words.TWIN, text):
            if slots["o"] in names:
                yield Option("twin", known.among([names[slots["o"]]]), f"{names[slots['o']]}")
        for slots in parses(words.SPLIT, text):
            if slots["o"] in names and slots["x"] in self._facts:
                holds = zip(known.among([names[slots["o"]]]), self._facts[slots["x"]], strict=True)
                yield Option("split", tuple(a and b for a, b in holds), text)
        for slots in parses(words.BEYOND, text):
            if known.type == "score" and names.get(slots["o"]) == known.size - 1:
                top = zip(known.among([known.size - 1]), known.stronger, strict=True)
                yield Option("beyond", tuple(a and b for a, b in top), text)

    def _joined_offers(self, known: _Known, text: str) -> Iterator[Option]:
        for slots in parses(words.MERGED, text):
            if known.type == "choice" and slots["a"] in known.names and slots["b"] in known.names:
                yield self._block("merged", known, [slots["a"], slots["b"]])
        for template, slot, joint in ((words.BLOCK, "menu", "; "), (words.COARSER, "levels", " or ")):
            if (template == words.BLOCK) == (known.type == "choice"):
                for slots in parses(template, text):
                    for members in listed(slots[slot], known.names, joint):
                        yield self._block("block", known, members)

    def _block(self, kind: str, known: _Known, members: Iterable[str]) -> Option:
        indices = sorted({known.names[member] for member in members})
        return Option(kind, known.among(indices), " or ".join(map(str, indices)))

    def _pairs(self, instructions: str, texts: list[str]) -> list[list[Option]]:
        """Read a Choice over the joint answers to two yes/no questions."""
        cells = {text: name for name, text in words.PAIR_OPTIONS.items()}
        if not set(texts) <= cells.keys():
            return []
        found = []
        for slots in parses(words.PAIR, instructions):
            for first, second in product(self._quoted(slots["a"]), self._quoted(slots["b"])):
                joint = [f"{a:d}{b:d}" for a, b in zip(first.true, second.true, strict=True)]
                found.append([Option("cell", tuple(j == cells[t] for j in joint), cells[t]) for t in texts])
        return found

    # Answering

    def probabilities(self, question: Question) -> list[float]:
        """Answer a question: in each world the right options share its weight, worlds without one do not count."""
        text = json.dumps(question)
        if text not in self._answered:
            if question["type"] == "noul":
                yes = self.p(self.event(question))
                self._answered[text] = [1 - yes, yes]
            else:
                self._answered[text] = self._shared([option.true for option in self.options(question)])
        return self._answered[text]

    def _shared(self, truths: Sequence[Truth]) -> list[float]:
        right = [sum(holds) for holds in zip(*truths, strict=True)]
        masses = [
            math.fsum(w / n for w, n, holds in zip(self.weights, right, true, strict=True) if holds)
            for true in truths
        ]
        total = math.fsum(masses)
        return [mass / total for mass in masses]


def _only(found: Sequence[Found], question: Question) -> Found:
    if len(found) != 1:
        ways = "cannot be read" if not found else f"can be read in {len(found)} ways"
        raise UnknownWordingError(f"a question that {ways}: {json.dumps(question, ensure_ascii=False)}")
    return found[0]
