"""The card: written whole, described by its schema, read back, judged again, and never replaced by less."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_jevbench.card import LEVELS, Card
from pytest_jevbench.cli import main
from pytest_jevbench.errors import CardError

Run = Callable[..., pytest.RunResult]
CardOf = Callable[..., dict[str, Any]]
Freeze = Callable[..., None]

ROOT = Path(__file__).parent.parent
EXAMPLES = ("--jev-suite=upstream:examples", "--jev-embedded=uniform")
MINI = ("--jev-suite=upstream:jevbench-mini", "--jev-embedded=luce")
UNIFORM = {"passed": 41, "violated": 9}


@pytest.fixture(scope="session")
def mini_card(mini_run: Path) -> Path:
    """Return the card of a whole run of the official mini."""
    return mini_run / "card.json"


def read(path: Path) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def differing(one: Card, other: Card) -> set[str]:
    """Return the parts in which two cards differ, of those that two runs with the same answers must agree in.

    The names only: pytest takes minutes to compare cards line by line.
    """
    first, second = one.model_dump(), other.model_dump()
    for card in (first, second):
        card["requests"], card["model"]["replicas"] = card["requests"]["distinct"], []
    return {name for name in first if first[name] != second[name]} - {"created", "environment"}


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return what `pytest-jevbench card show` prints."""
    capsys.readouterr()
    assert main(["card", "show", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


# What a run writes


def test_a_card_holds_to_its_published_schema(mini_card: Path) -> None:
    schema = read(ROOT / "docs" / "card.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(read(mini_card))


def test_the_schema_is_not_so_loose_that_anything_passes(mini_card: Path) -> None:
    validator = jsonschema.Draft202012Validator(read(ROOT / "docs" / "card.schema.json"))
    card = read(mini_card)
    for change in (
        {"jevbench_card": 2},
        {"scores": None},
        {"extra": 1},
        {"partial": "no"},
        {"tests": [card["tests"][0] | {"violated": "no"}]},
        {"settings": card["settings"] | {"tolerance": 1.5}},
    ):
        assert not validator.is_valid(card | change), change


def test_the_published_schema_is_the_one_the_program_has() -> None:
    program = [sys.executable, "-m", "pytest_jevbench"]
    done = subprocess.run([*program, "card", "schema"], capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "docs" / "card.schema.json").read_text(encoding="utf-8")


def test_the_published_catalogue_of_relations_is_the_one_the_program_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["relations", "--markdown"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "relations.md").read_text(encoding="utf-8")


def test_a_card_says_what_was_run_against_whom_and_how(mini_card: Path) -> None:
    card = read(mini_card)
    assert card["jevbench_card"] == 1
    assert card["tool"]["name"] == "pytest-jevbench"
    assert {name: card["suite"][name] for name in ("name", "edition")} == {
        "name": "jevbench-mini",
        "edition": "jevbench-1",
    }
    assert len(card["suite"]["plan_sha256"]) == 64
    assert (card["model"]["name"], card["partial"], card["errors"], card["warnings"]) == ("luce", None, [], [])
    assert card["settings"] == {"tolerance": 0.05, "min_n": 5, "bootstrap": 1000}
    assert card["selection"] == dict.fromkeys(("domains", "dimensions", "groups", "relations"))
    assert (len(card["tests"]), sum(test["violated"] for test in card["tests"])) == (1200, 613)
    assert card["scores"]["overall"] == pytest.approx(0.657, abs=0.0005)
    low, high = card["scores"]["ci"]["overall"]
    assert low < card["scores"]["overall"] < high
    assert card["requests"]["distinct"] == card["requests"]["sent"] == 1248
    assert set(card["requests"]["latency_ms"]) == {"p50", "p95", "max"}
    assert {domain["cases"] for domain in card["domains"].values()} <= set(range(1, 25))


def test_every_domain_counts_its_own_cases_and_tests(mini_card: Path) -> None:
    card = read(mini_card)
    for name, domain in card["domains"].items():
        tests = [test for test in card["tests"] if test["domain"] == name]
        assert (domain["tests"], domain["cases"]) == (len(tests), len({test["case"] for test in tests}))
    assert sum(domain["tests"] for domain in card["domains"].values()) == 1200


def test_a_selection_is_recorded(run: Run, card_of: CardOf) -> None:
    run(*EXAMPLES, "--jev-dimensions=CHO", "--jev-relations=option_clone,option_merge")
    selection = card_of()["selection"]
    assert selection == {
        "domains": None,
        "dimensions": ["CHO"],
        "groups": None,
        "relations": ["option_clone", "option_merge"],
    }


def test_two_runs_with_the_same_answers_give_the_same_card(mini_run: Path, mini_card: Path, run: Run) -> None:
    run(*MINI, f"--jev-cache={mini_run / '.jevbench-cache'}", f"--jev-card={mini_run / 'second.json'}")
    first, second = Card.load(mini_card), Card.load(mini_run / "second.json")
    assert differing(first, second) == set()
    assert (second.requests.sent, second.requests.cached) == (1, 1247)


def test_a_partial_run_never_replaces_a_whole_one(run: Run, card_of: CardOf) -> None:
    run(*EXAMPLES)
    whole = card_of()
    for arguments in (["-k", "option_clone"], ["-x"], ["examples::option_clone::support-001[urgency]"]):
        run(*EXAMPLES, *arguments)
        partial = card_of("last-partial.json")
        assert partial["partial"]
        assert len(partial["tests"]) < 50
        assert card_of()["created"] == whole["created"]
        assert len(card_of()["tests"]) == 50


def test_a_card_that_cannot_be_written_is_refused_before_anything_is_asked(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("folder")
    result = run(*EXAMPLES, "--jev-card=folder")
    assert result.ret == 4
    assert "--jev-card" in result.stderr.str()
    assert "folder" in result.stderr.str()
    assert not (pytester.path / ".jevbench-cache" / "last-card.json").exists()


# Load and save


def test_a_card_survives_loading_and_saving(mini_card: Path, tmp_path: Path) -> None:
    card = Card.load(mini_card)
    card.save(tmp_path / "deep" / "copy.json")
    assert (tmp_path / "deep" / "copy.json").read_bytes() == mini_card.read_bytes()
    assert (tmp_path / "deep" / "copy.json").stat().st_mode & 0o777 == 0o644


def test_a_reader_never_sees_half_a_card(mini_card: Path, tmp_path: Path) -> None:
    card, path = Card.load(mini_card), tmp_path / "card.json"
    card.save(path)
    size, saving = path.stat().st_size, threading.Event()

    def save() -> None:
        for _ in range(10):
            card.save(path)
        saving.set()

    writer = threading.Thread(target=save)
    writer.start()
    while not saving.is_set():
        assert len(path.read_bytes()) == size
    writer.join()
    assert [each.name for each in tmp_path.iterdir()] == ["card.json"]


def test_a_save_that_fails_leaves_the_old_card_and_nothing_else(mini_card: Path, tmp_path: Path) -> None:
    card = Card.load(mini_card)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").write_text("kept")
    with pytest.raises(CardError) as caught:
        card.save(tmp_path / "taken")
    assert str(tmp_path / "taken") in str(caught.value)
    with pytest.raises(CardError, match=r"note\.txt"):
        card.save(tmp_path / "taken" / "note.txt" / "card.json")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "taken",
        "taken/note.txt",
    ]


def test_any_id_that_json_can_hold_can_be_saved(mini_card: Path, tmp_path: Path) -> None:
    card = read(mini_card)
    card["tests"][0]["case"] = "lone \ud800, NUL \x00, line \u2028, emoji 🎉"
    (tmp_path / "odd.json").write_text(json.dumps(card), encoding="utf-8")
    odd = Card.load(tmp_path / "odd.json")
    odd.save(tmp_path / "again.json")
    assert Card.load(tmp_path / "again.json").tests[0] == odd.tests[0]


# card show


@pytest.mark.parametrize(
    ("level", "rows"),
    [
        ("dimension", {"REP": "56.4", "BAT": "100.0", "MEA": "11.5", "LOG": "60.4", "CHO": "100.0"}),
        ("group", {"REP.binding": "100.0", "REP.type": "20.8", "LOG.monotonicity": "29.2"}),
        ("relation", {"option_clone": "8.3", "cross_lingual": "4.2", "count_upper": "100.0"}),
        ("domain", {"logistics": "-", "finance_ops": "-"}),
    ],
)
def test_card_show_prints_the_scores_of_each_level(
    level: str, rows: dict[str, str], mini_card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, mini_card, "--level", level).splitlines()
    assert "jevbench-mini@jevbench-1, model luce" in lines[0]
    assert "65.7" in lines[1]
    found = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert {name: value for name, value in rows.items() if value in found[name]} == rows


def test_card_show_prints_dimensions_unless_told_otherwise(
    mini_card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, mini_card) == shown(capsys, mini_card, "--level", "dimension")


def test_card_show_says_what_a_partial_card_leaves_out(
    run: Run, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*EXAMPLES, "-k", "option_clone or similarity")
    text = shown(capsys, pytester.path / ".jevbench-cache" / "last-partial.json")
    assert "partial: 48 of 50 tests were not run (-k 'option_clone or similarity')" in text
    assert "0 of 1 planned tests judged" in text


# Judging again


@pytest.mark.parametrize(
    ("again", "fresh"),
    [
        ({"tolerance": 0.2, "bootstrap": 50}, ["--jev-tolerance=0.2", "--jev-bootstrap=50"]),
        ({"min_n": 25}, ["--jev-min-n=25"]),
        ({"tolerance": 0.0, "bootstrap": 0}, ["--jev-tolerance=0", "--jev-bootstrap=0"]),
    ],
    ids=str,
)
def test_a_card_judged_again_is_the_card_of_a_fresh_run_with_these_settings(
    again: dict[str, Any],
    fresh: list[str],
    mini_run: Path,
    mini_card: Path,
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(*MINI, f"--jev-cache={mini_run / '.jevbench-cache'}", f"--jev-card={tmp_path / 'fresh.json'}", *fresh)
    old, new = Card.load(mini_card), Card.load(tmp_path / "fresh.json")
    assert differing(old.judged_again(**again), new) == set()
    assert new.settings.model_dump() == old.settings.model_dump() | again
    options = [part for name, value in again.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    for level in LEVELS:
        ours = shown(capsys, mini_card, "--level", level, *options).splitlines()
        theirs = shown(capsys, tmp_path / "fresh.json", "--level", level).splitlines()
        assert ours[1:] == theirs[1:]


def test_a_card_judged_again_as_it_was_is_the_same(mini_card: Path) -> None:
    card = Card.load(mini_card)
    assert differing(card.judged_again(), card) == set()
    assert differing(card.judged_again(tolerance=0.3).judged_again(tolerance=0.05), card) == set()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tolerance", "1.5"], "tolerance"),
        (["--tolerance", "nan"], "tolerance"),
        (["--min-n", "0"], "min_n"),
        (["--bootstrap", "-1"], "bootstrap"),
        (["--level", "relations"], "Did you mean 'relation'?"),
    ],
    ids=" ".join,
)
def test_settings_no_card_can_be_judged_with_are_named(
    options: list[str], said: str, mini_card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", "show", str(mini_card), *options]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_a_number_that_is_none_is_a_misuse_too(mini_card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["card", "show", str(mini_card), "--tolerance", "much"])
    assert caught.value.code == 2
    assert "--tolerance" in capsys.readouterr().err


# Broken cards

Change = Callable[[dict[str, Any]], object]

BROKEN_TEXTS: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", "no JSON"),
    "half a file": (b'{"jevbench_card": 1, "created": "2026-01-', "no JSON"),
    "another encoding": ('{"created": "caf\xe9"}'.encode("latin-1"), "UTF-8"),
    "a list": (b"[1, 2]", "no coherence card"),
    "another tool's report": (b'{"scores": {"overall": 0.5}}', "no coherence card"),
    "a key twice": (b'{"jevbench_card": 1, "jevbench_card": 1}', "twice"),
    "a bottomless list": (b"[" * 100_000, "no usable JSON"),
}
BROKEN_FIELDS: dict[str, tuple[Change, str]] = {
    "a later format": (lambda card: card.update(jevbench_card=2), "jevbench_card"),
    "a missing field": (lambda card: card.pop("scores"), "scores"),
    "an extra field": (lambda card: card.update(rank=1), "rank"),
    "a text for a number": (lambda card: card["scores"].update(overall="high"), "scores.overall"),
    "a text for a judgement": (lambda card: card["tests"][7].update(violated="perhaps"), "tests.7.violated"),
    "no number": (lambda card: card["tests"][0].update(deviation=float("nan")), "NaN"),
    "a tolerance out of range": (lambda card: card["settings"].update(tolerance=5), "settings.tolerance"),
    "an unknown relation": (lambda card: card["checks"].update(option_clon=card["checks"]["option_clone"]), "clone"),
    "a test of an unknown relation": (lambda card: card["tests"][0].update(relation="option_clon"), "option_clon"),
    "variants without numbers": (lambda card: card["tests"][0]["detail"].update(variants={"0": "x"}), "variants"),
    "variants that are a list": (lambda card: card["tests"][0]["detail"].update(variants=[0.1]), "variants"),
    "a variant that is no index": (lambda card: card["tests"][0]["detail"].update(variants={"zz": 0.1}), "variants"),
    "terms that are a number": (lambda card: card["tests"][0]["detail"].update(terms=5), "terms"),
    "a missing dimension": (lambda card: card["scores"]["dimensions"].pop("LOG"), "LOG"),
    "a missing graded dimension": (lambda card: card["scores"]["graded"]["dimensions"].pop("LOG"), "LOG"),
    "a missing graded group": (lambda card: card["scores"]["graded"]["groups"].pop("REP.type"), "REP.type"),
    "a domain without a dimension": (lambda card: card["domains"]["logistics"]["dimensions"].pop("CHO"), "CHO"),
}


def refusals(path: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Return what is said of a broken card, however it is looked at; it is a set of one if all is well."""
    found = set()
    for options in (*(["--level", level] for level in LEVELS), ["--tolerance", "0.1"]):
        assert main(["card", "show", str(path), *options]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        found.add(captured.err)
    return found


@pytest.mark.parametrize("kind", BROKEN_TEXTS)
def test_a_file_that_is_no_card_is_named_in_one_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = BROKEN_TEXTS[kind]
    (tmp_path / "card.json").write_bytes(text)
    (message,) = refusals(tmp_path / "card.json", capsys)
    assert said in message
    assert message.startswith(f"pytest-jevbench: {tmp_path / 'card.json'}")
    assert message.count("\n") == 1


@pytest.mark.parametrize("kind", BROKEN_FIELDS)
def test_a_card_with_a_broken_field_is_named_with_the_field_in_one_line(
    kind: str, mini_card: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = BROKEN_FIELDS[kind]
    card = read(mini_card)
    change(card)
    (tmp_path / "card.json").write_text(json.dumps(card), encoding="utf-8")
    (message,) = refusals(tmp_path / "card.json", capsys)
    assert said in message
    assert message.startswith(f"pytest-jevbench: {tmp_path / 'card.json'}")
    assert message.count("\n") == 1


def test_a_card_that_is_not_there_and_a_folder_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = refusals(tmp_path / "nowhere.json", capsys)
    assert message == f"pytest-jevbench: {tmp_path / 'nowhere.json'}: there is no such file\n"
    (message,) = refusals(tmp_path, capsys)
    assert f"{tmp_path}: the file cannot be read" in message


def test_the_console_script_gives_the_same_exit_codes(mini_card: Path, tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "pytest-jevbench"
    for arguments, code in ([str(mini_card)], 0), ([str(tmp_path / "nowhere.json")], 2), ([], 2):
        done = subprocess.run([script, "card", "show", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
    # Whoever reads only the first lines closes the pipe: no reason to complain.
    piped = f"{script} card show {mini_card} --level relation | head -1"
    done = subprocess.run(["sh", "-c", piped], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# The hooks of a conftest.py

ANSWERS = """
import pytest
from pytest_jevbench.model import Request, embedded, from_callable

def uniform(state, questions):
    return embedded("uniform").ask(Request.of(state, questions)).answers
"""
HOOK = """
@pytest.hookimpl(optionalhook=True)
def pytest_jev_model(config):
    return {value}
"""
SUITE = EXAMPLES[0]


@pytest.mark.parametrize(
    ("value", "name", "replicas"),
    [
        ("uniform", "uniform", 1),
        ("from_callable(uniform, name='mine', revision='7')", "mine", 1),
        ("[uniform, uniform]", "uniform", 2),
    ],
)
def test_a_conftest_may_give_the_model(
    value: str, name: str, replicas: int, run: Run, card_of: CardOf, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(ANSWERS + HOOK.format(value=value))
    assert run(SUITE, "-k", "MEA.partition").parseoutcomes()["violated"] == 5
    model = card_of("last-partial.json")["model"]
    assert (model["name"], len(model["replicas"])) == (name, replicas)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("7", "this is no model; found 7"),
        ("[]", "the list of replicas is empty"),
        ("[from_callable(uniform, name='a'), from_callable(uniform, name='b')]", "the replicas are different models"),
        ("1 / 0", "the hook raised ZeroDivisionError: 'division by zero'"),
    ],
)
def test_what_a_conftest_gives_that_is_no_model_is_a_usage_error(
    value: str, said: str, run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(ANSWERS + HOOK.format(value=value))
    result = run(SUITE)
    assert result.ret == 4
    assert said in result.stderr.str()
    assert f"pytest_jev_model of {pytester.path / 'conftest.py'}" in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_two_models_are_an_error_that_names_every_place(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ANSWERS + HOOK.format(value="uniform"))
    pytester.makepyfile(also=ANSWERS + HOOK.format(value="uniform"))
    result = run(SUITE, "-p", "also", "--jev-embedded=uniform")
    assert result.ret == 4
    for place in ("--jev-embedded", str(pytester.path / "conftest.py"), str(pytester.path / "also.py")):
        assert place in result.stderr.str()


def test_a_conftest_that_gives_none_leaves_the_choice_to_the_options(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ANSWERS + HOOK.format(value="None"))
    assert run(*EXAMPLES).parseoutcomes() == UNIFORM


def test_a_conftest_sees_the_card_before_it_is_saved(run: Run, card_of: CardOf, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_jev_card(config, card):
            saved = (config.rootpath / ".jevbench-cache" / "last-card.json").exists()
            print(f"seen: {card.scores.overall} {len(card.tests)} {saved}")
        """
    )
    result = run(*EXAMPLES, "-n2", "-s")
    assert result.stdout.str().count("seen: ") == 1
    assert f"seen: {card_of()['scores']['overall']} 50 False" in result.stdout.str()


def test_a_conftest_that_fails_on_the_card_loses_neither_card_nor_summary(
    run: Run, card_of: CardOf, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_jev_card(config, card):
            assert card.scores.overall > 0.95, "not coherent enough"
        """
    )
    result = run(*EXAMPLES, "--jev-violations=record")
    assert result.ret != 0
    assert len(card_of()["tests"]) == 50
    assert "coherence  89.4" in result.stdout.str()
    (warning,) = (line for line in result.outlines if line.startswith("warning: pytest_jev_card"))
    assert "AssertionError" in warning
    assert "not coherent enough" in warning
