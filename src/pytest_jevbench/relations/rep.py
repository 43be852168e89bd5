"""REP - representation consistency: two descriptions of the same events get the same probabilities."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable

from ..wire import Question
from . import words
from .base import (
    Evidence,
    Outcome,
    Relation,
    compared,
    exchanged,
    fixed,
    invariant,
    invariant_under_keys,
    sides_differ,
)
from .build import (
    Built,
    Site,
    edited,
    fits,
    inserted,
    instructions,
    is_plain_noul,
    nouls,
    underscored,
)


def _de_morgan(evidence: Evidence) -> list[Outcome]:
    nand, or_not = evidence.q_yes(evidence.param("nand")), evidence.q_yes(evidence.param("or_not"))
    terms = {"P(not (A and B))": nand, "P(not A or not B)": or_not}
    return [Outcome(evidence.trial.key, abs(nand - or_not), sides_differ(nand, or_not), terms=terms)]


def _permuted(evidence: Evidence) -> list[Outcome]:
    got = evidence.q()
    if evidence.param("order") == "reversed":
        top = len(got) - 1
        got = {str(top - int(level)): value for level, value in got.items()}
    return [compared(evidence.trial.key, evidence.p(), got)]


def _renamed_options(evidence: Evidence) -> list[Outcome]:
    mapping = evidence.param("mapping")
    return [compared(evidence.trial.key, evidence.p(), {mapping[new]: v for new, v in evidence.q().items()})]


def _clone_symmetry(evidence: Evidence) -> list[Outcome]:
    got, option, clone = evidence.q(), evidence.param("option"), evidence.param("clone")
    terms = {f"P({option})": got[option], f"P({clone}), the same option again": got[clone]}
    return [Outcome(evidence.trial.key, abs(got[option] - got[clone]), None, terms=terms)]


def _swapped_pair(evidence: Evidence) -> list[Outcome]:
    return [compared(evidence.trial.key, evidence.p(), exchanged(evidence.q(), evidence.param("pair")))]


def _as_other_type(evidence: Evidence, yes: str) -> list[Outcome]:
    before, after = evidence.p_yes(), evidence.q()[yes]
    terms = {"P(yes), asked as a Noul": before, "P(yes), asked as the other type": after}
    return [Outcome(evidence.trial.key, abs(after - before), sides_differ(before, after), terms=terms)]


def _rewritten(site: Site, text: str | None, **params: str) -> Built | None:
    """Replace the instructions; None where there is no text or it would not change."""
    if text is None or text == site.question.get("instructions"):
        return None
    return Built(site.replacing(edited(site.question, instructions=text)), params)


def _paraphrased(site: Site) -> Built | None:
    text = site.bank.first("paraphrase", instructions(site.question))
    return _rewritten(site, text, rewrite=text) if isinstance(text, str) else None


def _translated(site: Site) -> Built | None:
    found = site.bank.translation(site.question)
    if found is None:
        return None
    language, translation = found
    question = edited(site.question, **{k: v for k, v in translation.items() if v is not None})
    params = {"language": language, "translation": json.dumps(translation, ensure_ascii=False)}
    return Built(site.replacing(question), params)


FIXED_WORDS = frozenset(
    {
        *("never", "nothing", "nobody", "nowhere", "neither", "without", "cannot", "hardly", "unless", "except"),
        *("fewer", "fewest", "least", "greater", "larger", "smaller", "higher", "lower", "longer", "shorter"),
        *("earlier", "later", "better", "worse", "older", "newer", "before", "after", "above", "below", "under"),
        *("beyond", "every", "always", "three", "seven", "eight", "eleven", "twelve", "twenty", "thirty", "forty"),
        *("fifty", "sixty", "seventy", "eighty", "ninety", "dozen", "hundred", "thousand", "million", "billion"),
        *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
        *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    }
)
"""Words of five letters or more in which a slip could change what is asked: negations, comparatives, numbers."""


def _with_typos(text: str, site: Site) -> str:
    """Swap two neighbouring inner letters in each of two drawn words."""
    found = [
        match
        for match in re.finditer(r"[^\W\d_]{5,}(?:['’][^\W\d_]+)?", text)
        if match[0].lower() not in FIXED_WORDS
        and not match[0].lower().endswith(("n't", "n’t"))
        and not text[match.end() :].lstrip().lower().startswith("than ")
        and _swaps(match[0])
    ]
    for match in sorted(site.rng.sample(found, min(2, len(found))), key=lambda each: each.start()):
        i = match.start() + site.rng.choice(_swaps(match[0]))
        text = text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text


def _swaps(word: str) -> list[int]:
    """Return where two neighbouring inner letters differ, so that a swap is a slip and not the same word."""
    return [i for i in range(1, len(word) - 2) if word[i] != word[i + 1] and word[i : i + 2].isalpha()]


def _without_punctuation(text: str, site: Site) -> str:
    """Drop punctuation at the edges of words.

    Apostrophes and % stay, and what may be part of a number or a name: signs inside a word, before a digit, or alone.
    """
    del site
    kept = []
    padded = f" {text} "
    for before, sign, after in zip(padded, text, padded[2:], strict=False):
        meant = sign in "'’%" or after.isdigit() or (before.isalnum() and after.isalnum())
        alone = before.isspace() and after.isspace()
        if meant or alone or not unicodedata.category(sign).startswith("P"):
            kept.append(sign)
    return " ".join("".join(kept).split())


NOISE: dict[str, Callable[[str, Site], str]] = {
    "lowercase": lambda text, _: text.lower(),
    "typos": _with_typos,
    "no_punctuation": _without_punctuation,
}


def _noisy(site: Site) -> Built | None:
    text = instructions(site.question)
    if text is None:
        return None
    kind = list(NOISE)[site.v]
    noisy = NOISE[kind](text, site)
    return _rewritten(site, noisy or None, kind=kind, rewrite=noisy)


def _verbose(site: Site) -> Built | None:
    text = instructions(site.question)
    return None if text is None else _rewritten(site, words.VERBOSITY[site.v].format(q=text))


def _neutral_key(site: Site) -> Built:
    new = site.new_key(f"item_{site.rng.getrandbits(24):06x}")
    return Built({new if key == site.key else key: q for key, q in site.batch.items()}, {"new_key": new})


def _described(site: Site) -> Built | None:
    if site.question["type"] != "choice":
        return None
    for option, text in site.question["criteria"].items():
        rewrite = site.bank.first("description", text)
        if isinstance(rewrite, str) and rewrite != text:
            criteria = {**site.question["criteria"], option: rewrite}
            return Built(
                site.replacing(edited(site.question, criteria=criteria)), {"option": option, "rewrite": rewrite}
            )
    return None


def compound(site: Site) -> Built | None:
    """Ask for A and B, not (A and B), and (not A) or (not B), about a drawn other Noul."""
    partners = nouls(site)
    if not partners or not is_plain_noul(site.question):
        return None
    partner = site.rng.choice(partners)
    a, b = site.question["instructions"], site.batch[partner]["instructions"]
    probes: dict[str, str] = {}
    params = {}
    for name, template in words.DE_MORGAN.items():
        key = params[name] = site.new_key(f"{site.key}__{name}__{partner}", probes)
        probes[key] = template.format(a=a, b=b)
    return Built(site.probing(probes), params, (site.key, partner))


def _reordered(site: Site) -> Built | None:
    if site.question["type"] == "noul":
        return None
    criteria = site.question["criteria"]
    if site.question["type"] == "score":
        return Built(site.replacing(edited(site.question, criteria=criteria[::-1])), {"order": "reversed"})
    order = list(range(len(criteria)))
    while order == sorted(order):
        site.rng.shuffle(order)
    ids = list(criteria)
    question = edited(site.question, criteria={ids[i]: criteria[ids[i]] for i in order})
    return Built(site.replacing(question), {"order": order})


def _neutral_ids(site: Site) -> Built | None:
    if site.question["type"] != "choice" or None in site.question["criteria"].values():
        return None
    criteria = site.question["criteria"]
    mapping = {f"option_{i}": old for i, old in enumerate(criteria, 1)}
    question = edited(site.question, criteria={new: criteria[old] for new, old in mapping.items()})
    return Built(site.replacing(question), {"mapping": mapping})


def cloned(site: Site) -> Built | None:
    """Duplicate a drawn option, right after itself, under a new id."""
    if site.question["type"] != "choice":
        return None
    criteria = site.question["criteria"]
    described = [option for option, text in criteria.items() if text is not None]
    if not described:
        return None
    option = site.rng.choice(described)
    clone = underscored(f"{option}_bis", criteria)
    question = edited(site.question, criteria=inserted(criteria, option, clone, criteria[option]))
    if not fits(question):
        return None
    return Built(site.replacing(question), {"option": option, "clone": clone})


def _conflicting_key(site: Site) -> Built:
    if site.v == 0:
        keys = {site.key: site.new_key(f"not_{site.key}")}
    else:
        other = site.rng.choice([key for key in site.batch if key != site.key])
        keys = {site.key: other, other: site.key}
    batch = {keys.get(key, key): question for key, question in site.batch.items()}
    return Built(batch, {"keys": keys}, tuple(keys))


def _pair(site: Site) -> tuple[str, str] | None:
    """Draw two options with descriptions that differ, in the question's order."""
    if site.question["type"] != "choice":
        return None
    criteria = site.question["criteria"]
    described = [option for option, text in criteria.items() if text is not None]
    if len(described) < 2:
        return None
    a, b = sorted(site.rng.sample(described, 2), key=list(criteria).index)
    return None if criteria[a] == criteria[b] else (a, b)


def _exchanged_ids(site: Site) -> Built | None:
    pair = _pair(site)
    if pair is None:
        return None
    swap = {pair[0]: pair[1], pair[1]: pair[0]}
    criteria = {swap.get(option, option): text for option, text in site.question["criteria"].items()}
    return Built(site.replacing(edited(site.question, criteria=criteria)), {"pair": list(pair)})


def _exchanged_descriptions(site: Site) -> Built | None:
    pair = _pair(site)
    if pair is None:
        return None
    old = site.question["criteria"]
    criteria = {**old, pair[0]: old[pair[1]], pair[1]: old[pair[0]]}
    return Built(site.replacing(edited(site.question, criteria=criteria)), {"pair": list(pair)})


def _retyped(site: Site, kind: str, criteria: object) -> Built | None:
    question = site.question
    if question["type"] != "noul" or question.get("criteria") or question.get("instructions") is None:
        return None
    new: Question = {"type": kind, "instructions": question["instructions"], "criteria": criteria}
    return Built(site.replacing(new), {"order": list(criteria)} if isinstance(criteria, dict) else {})


def _as_choice(site: Site) -> Built | None:
    order = ["yes", "no"]
    site.rng.shuffle(order)
    return _retyped(site, "choice", {name: words.YES_NO[name] for name in order})


def _as_score(site: Site) -> Built | None:
    return _retyped(site, "score", list(words.YES_NO_LEVELS[site.v]))


RELATIONS = [
    Relation(
        name="instruction_paraphrase",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="a faithful paraphrase of the instructions leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality: probability attaches to an event, not to its description",
        build=_paraphrased,
        deviate=invariant,
    ),
    Relation(
        name="cross_lingual",
        group="REP.invariance",
        form="E",
        edits=("instructions", "criteria"),
        law="the question in another language leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality, across languages",
        build=_translated,
        deviate=invariant,
    ),
    Relation(
        name="typo_noise",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="lower case, two typing slips or missing punctuation leave the answer as it is",
        check="tv",
        spread="3 kinds of noise",
        source="extensionality; robustness to surface noise",
        build=_noisy,
        variants=fixed(len(NOISE)),
        draws=True,
        deviate=invariant,
    ),
    Relation(
        name="verbosity",
        group="REP.invariance",
        form="E",
        edits=("instructions",),
        law="guidance without content around the instructions leaves the answer as it is",
        check="tv",
        spread="3 templates",
        source="extensionality; conditioning on nothing changes nothing",
        build=_verbose,
        variants=fixed(len(words.VERBOSITY)),
        deviate=invariant,
    ),
    Relation(
        name="key_rename",
        group="REP.invariance",
        form="E",
        edits=("key",),
        law="a question's key is a name: a neutral one leaves the answer as it is",
        check="tv",
        spread="drawn",
        source="extensionality; identifiers carry no evidence",
        build=_neutral_key,
        draws=True,
        deviate=lambda e: invariant_under_keys(e, {e.trial.key: e.param("new_key")}),
    ),
    Relation(
        name="description_paraphrase",
        group="REP.invariance",
        form="E",
        edits=("criteria",),
        law="a faithful paraphrase of one option's description leaves the answer as it is",
        check="tv",
        spread="one rewrite of the bank",
        source="extensionality",
        build=_described,
        deviate=invariant,
    ),
    Relation(
        name="de_morgan",
        group="REP.invariance",
        form="E",
        edits=("instructions", "batch"),
        law="'not both' and 'at least one is false' are one event and get one probability",
        check="nand_vs_or_not",
        spread="drawn",
        source="De Morgan's law",
        build=compound,
        draws=True,
        deviate=_de_morgan,
    ),
    Relation(
        name="option_permutation",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="another order of the options, or the levels reversed, moves no probability",
        check="tv",
        spread="drawn",
        source="exchangeability of labels; position bias",
        build=_reordered,
        draws=True,
        deviate=_permuted,
    ),
    Relation(
        name="option_rename",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="neutral option ids with the same descriptions move no probability",
        check="tv",
        spread="fixed",
        source="exchangeability of labels; identifiers carry no evidence",
        build=_neutral_ids,
        deviate=_renamed_options,
    ),
    Relation(
        name="clone_symmetry",
        group="REP.equivariance",
        form="E",
        edits=("criteria",),
        law="an option and its identical copy get the same probability",
        check="clone_symmetry",
        spread="drawn",
        source="principle of indifference between identical descriptions",
        build=cloned,
        draws=True,
        deviate=_clone_symmetry,
        unit="option_clone",
    ),
    Relation(
        name="key_instruction_conflict",
        group="REP.binding",
        form="E",
        edits=("key",),
        law="a question is answered by its instructions, also under a negated or an exchanged key",
        check="tv",
        spread="2 kinds of key",
        source="binding: the instructions define the event",
        build=_conflicting_key,
        variants=lambda site: min(2, len(site.batch)),
        draws=True,
        deviate=lambda e: invariant_under_keys(e, e.param("keys")),
    ),
    Relation(
        name="name_description_conflict",
        group="REP.binding",
        form="E",
        edits=("criteria",),
        law="two options that exchange their ids exchange their probabilities",
        check="tv",
        spread="drawn",
        source="binding: the description defines the option",
        build=_exchanged_ids,
        draws=True,
        deviate=_swapped_pair,
    ),
    Relation(
        name="description_swap",
        group="REP.binding",
        form="E",
        edits=("criteria",),
        law="two options that exchange their descriptions exchange their probabilities",
        check="tv",
        spread="drawn",
        source="binding: the description defines the option",
        build=_exchanged_descriptions,
        draws=True,
        deviate=_swapped_pair,
    ),
    Relation(
        name="noul_as_choice",
        group="REP.type",
        form="E",
        edits=("type", "criteria"),
        law="a yes/no question asked as a Choice of yes and no keeps its probability of yes",
        check="abs_diff",
        spread="drawn",
        source="extensionality across answer types",
        build=_as_choice,
        draws=True,
        deviate=lambda e: _as_other_type(e, "yes"),
    ),
    Relation(
        name="noul_as_score",
        group="REP.type",
        form="E",
        edits=("type", "criteria"),
        law="a yes/no question asked as a Score of two levels keeps its probability of yes",
        check="abs_diff",
        spread="2 templates",
        source="extensionality across answer types",
        build=_as_score,
        variants=fixed(len(words.YES_NO_LEVELS)),
        deviate=lambda e: _as_other_type(e, "1"),
    ),
]
