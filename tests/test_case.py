"""Case files: what is read, and that every error names its file, line, field and value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_jevbench.case import Case, domains, parse_cases, read_cases, to_case
from pytest_jevbench.errors import CaseError

NOUL: dict[str, Any] = {"type": "noul", "instructions": "Is it urgent?"}
CHOICE: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which desk?",
    "criteria": {"b": "billing", "a": None, "c": "claims"},
}
SCORE: dict[str, Any] = {"type": "score", "instructions": "How late?", "criteria": ["on time", "late", "very late"]}
GOOD: dict[str, Any] = {
    "id": "mail-1",
    "state": "Invoice 17 is overdue.",
    "questions": {"urgent": NOUL, "desk": CHOICE, "delay": SCORE},
}
HALVES = {"money": ["b"], "rest": ["a", "c"]}


def line(case: Any) -> bytes:
    return json.dumps(case, ensure_ascii=False).encode()


def written(folder: Path, *lines: bytes) -> Path:
    path = folder / "cases.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def asked(question: Any, key: str = "q") -> dict[str, Any]:
    return GOOD | {"questions": {key: question}}


def lacking(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


def grouped(hierarchy: Any, key: str = "desk") -> dict[str, Any]:
    return GOOD | {"hierarchies": {key: hierarchy}}


# Broken lines: the line itself, the place after `file:line`, and what of the value is shown

BROKEN: dict[str, tuple[Any, str, str]] = {
    "no JSON": (b'{"id": "x", ', ":13", '{"id": "x"'),
    "text before the object": (b'case {"id": "x"}', ":1", "case"),
    "two objects on a line": (b"{} {}", ":4", "{} {}"),
    "a control character in a string": (b'{"id": "a\tb"}', ":10", "a\\tb"),
    "a number JSON does not have": (line(GOOD | {"state": {"limit": float("nan")}}), "", "NaN"),
    "an integer too long to read": (b'{"id": "x", "state": [' + b"9" * 5000 + b"]}", "", "4300"),
    "a depth nobody reads": (b'{"id": "x", "state": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "", "recursion"),
    "bytes that are not UTF-8": (b'{"id": "caf\xe9"}', "", "0xe9"),
    "UTF-16": ('{"id": "x"}'.encode("utf-16"), "", "0xff"),
    "an array": (b"[1, 2]", "", "[1, 2]"),
    "a string": (b'"mail-1"', "", "'mail-1'"),
    "null": (b"null", "", "None"),
    "a field twice": (b'{"id": "x", "id": "y"}', "", "'id'"),
    "a question twice": (
        b'{"id": "x", "state": "s", "questions": {"q": {"type": "noul"}, "q": {"type": "noul"}}}',
        "",
        "'q'",
    ),
    "an option twice": (
        b'{"id": "x", "state": "s", "questions": {"q": {"type": "choice", "criteria": {"a": "1", "a": "2"}}}}',
        "",
        "'a'",
    ),
    "no id": (lacking("id"), "", "'id'"),
    "no state": (lacking("state"), "", "'state'"),
    "no questions": (lacking("questions"), "", "'questions'"),
    "an empty object": ({}, "", "none"),
    "questions under a wrong name": (lacking("questions") | {"question": NOUL}, "", "id, state, question"),
    "an id that is a number": (GOOD | {"id": 17}, ": id", "17"),
    "an id that is null": (GOOD | {"id": None}, ": id", "None"),
    "an empty id": (GOOD | {"id": ""}, ": id", "''"),
    "a state that is a number": (GOOD | {"state": 5}, ": state", "5"),
    "a state that is null": (GOOD | {"state": None}, ": state", "None"),
    "a state that is true": (GOOD | {"state": True}, ": state", "True"),
    "questions that are an array": (GOOD | {"questions": [NOUL]}, ": questions", "'noul'"),
    "questions that are empty": (GOOD | {"questions": {}}, ": questions", "{}"),
    "an empty question key": (asked(NOUL, ""), ": questions", "'noul'"),
    "a question that is text": (asked("Is it urgent?"), ": questions.q", "'Is it urgent?'"),
    "a question without a type": (asked({"instructions": "x"}), ": questions.q", "'instructions': 'x'"),
    "an unknown type": (asked(NOUL | {"type": "bool"}), ": questions.q", "'bool'"),
    "an unknown field of a question": (asked(NOUL | {"weight": 3}), ": questions.q.weight", "3"),
    "instructions that are a number": (asked(NOUL | {"instructions": 7}), ": questions.q.instructions", "7"),
    "a Noul that asks nothing": (asked({"type": "noul"}), ": questions.q", "'noul'"),
    "a Choice of one option": (asked(CHOICE | {"criteria": {"a": "x"}}), ": questions.q.criteria", "{'a': 'x'}"),
    "a Choice without options": (asked({"type": "choice"}), ": questions.q.criteria", "'choice'"),
    "an empty option id": (asked(CHOICE | {"criteria": {"": "x", "b": "y"}}), ": questions.q.criteria", "'': 'x'"),
    "a description that is a number": (
        asked(CHOICE | {"criteria": {"a": "x", "b": 5}}),
        ": questions.q.criteria.b",
        "5",
    ),
    "a Score of eleven levels": (asked(SCORE | {"criteria": list("abcdefghijk")}), ": questions.q.criteria", "'a'"),
    "a level that is null": (asked(SCORE | {"criteria": ["a", None]}), ": questions.q.criteria.1", "None"),
    "the second question": (
        GOOD | {"questions": {"urgent": NOUL, "desk": CHOICE | {"criteria": []}}},
        ": questions.desk.criteria",
        "[]",
    ),
    "a domain that is a number": (GOOD | {"domain": 3}, ": domain", "3"),
    "thresholds that are an object": (GOOD | {"thresholds": {"days": 5}}, ": thresholds", "{'days': 5}"),
    "a threshold without a value": (
        GOOD | {"thresholds": [{"subject": "days"}]},
        ": thresholds.0.value",
        "{'subject': 'days'}",
    ),
    "a threshold that is text": (
        GOOD | {"thresholds": [{"subject": "days", "value": "5"}]},
        ": thresholds.0.value",
        "'5'",
    ),
    "a threshold that is true": (
        GOOD | {"thresholds": [{"subject": "days", "value": True}]},
        ": thresholds.0.value",
        "True",
    ),
    "a threshold with a fraction": (
        GOOD | {"thresholds": [{"subject": "days", "value": 5.5}]},
        ": thresholds.0.value",
        "5.5",
    ),
    "a threshold below zero": (
        GOOD | {"thresholds": [{"subject": "days", "value": -1}]},
        ": thresholds.0.value",
        "-1",
    ),
    "a threshold about nothing": (
        GOOD | {"thresholds": [{"subject": "", "value": 5}]},
        ": thresholds.0.subject",
        "''",
    ),
    "a threshold with an extra field": (
        GOOD | {"thresholds": [{"subject": "days", "value": 5, "unit": "d"}]},
        ": thresholds.0.unit",
        "'d'",
    ),
    "the second threshold": (
        GOOD | {"thresholds": [{"subject": "days", "value": 5}, {"subject": "days", "value": None}]},
        ": thresholds.1.value",
        "None",
    ),
    "hierarchies that are an array": (GOOD | {"hierarchies": [HALVES]}, ": hierarchies", "[{'money'"),
    "a hierarchy that is no list": (grouped(HALVES), ": hierarchies.desk", "'money'"),
    "a block that is text": (grouped([{"money": "b", "rest": ["a", "c"]}]), ": hierarchies.desk.0.money", "'b'"),
    "a hierarchy of an unknown question": (grouped([HALVES], "dsk"), ": hierarchies.dsk", ""),
    "a hierarchy of a Noul": (grouped([HALVES], "urgent"), ": hierarchies.urgent", ""),
    "a hierarchy of a Score": (grouped([{"x": ["0"], "y": ["1", "2"]}], "delay"), ": hierarchies.delay", ""),
    "a hierarchy of one block": (grouped([{"all": ["a", "b", "c"]}]), ": hierarchies.desk", "'all'"),
    "a hierarchy that leaves an option out": (grouped([{"x": ["a"], "y": ["b"]}]), ": hierarchies.desk", "'y'"),
    "a hierarchy that names an option twice": (
        grouped([{"x": ["a", "b"], "y": ["b", "c"]}]),
        ": hierarchies.desk",
        "['b', 'c']",
    ),
    "a hierarchy with an unknown option": (
        grouped([{"x": ["a", "b"], "y": ["c", "d"]}]),
        ": hierarchies.desk",
        "['c', 'd']",
    ),
    "a hierarchy with an empty block": (grouped([{"x": ["a", "b", "c"], "y": []}]), ": hierarchies.desk", "'y': []"),
    "a hierarchy whose block has no name": (
        grouped([{"": ["a"], "y": ["b", "c"]}]),
        ": hierarchies.desk",
        "'': ['a']",
    ),
    "the second hierarchy": (grouped([HALVES, {"x": ["a"]}]), ": hierarchies.desk", "{'x': ['a']}"),
    "a hierarchy of a question named choice": (
        GOOD | {"questions": {"choice": CHOICE}, "hierarchies": {"choice": [{"x": 5}]}},
        ": hierarchies.choice.0.x",
        "5",
    ),
    "a slip in `domain`": (GOOD | {"domains": "mail"}, "", "'domains'"),
    "a slip in `thresholds`": (GOOD | {"threshold": []}, "", "'threshold'"),
    "a slip in `hierarchies`": (GOOD | {"hierarchy": {}}, "", "'hierarchy'"),
}


@pytest.mark.parametrize(("broken", "place", "shown"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_named_by_file_line_and_field_with_its_value(
    tmp_path: Path, broken: Any, place: str, shown: str
) -> None:
    bad = broken if isinstance(broken, bytes) else line(broken)
    path = written(tmp_path, line(GOOD | {"id": "before"}), b"", bad, line(GOOD | {"id": "after"}))
    with pytest.raises(CaseError) as caught:
        read_cases(path)
    assert caught.value.where == f"{path}:3{place}"
    message = str(caught.value)
    assert message.startswith(f"{path}:3")
    assert shown in message


@pytest.mark.parametrize(
    ("name", "meant"), [("domains", "domain"), ("threshold", "thresholds"), ("hierarchy", "hierarchies")]
)
def test_a_slip_of_the_pen_is_answered_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(CaseError, match=f"Did you mean '{meant}'") as caught:
        to_case(GOOD | {name: None}, "f:1")
    assert caught.value.hint


def test_an_id_that_stands_twice_names_both_lines(tmp_path: Path) -> None:
    path = written(tmp_path, line(GOOD), line(GOOD | {"id": "other"}), line(GOOD))
    with pytest.raises(CaseError, match="'mail-1' stands twice") as caught:
        read_cases(path)
    assert caught.value.where == f"{path}:3"
    assert f"{path}:1" in caught.value.found


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n\t\r\n"], ids=repr)
def test_a_file_without_a_case_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    with pytest.raises(CaseError, match="no case") as caught:
        read_cases(path)
    assert caught.value.where == str(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no such file") as caught:
        read_cases(tmp_path / "nowhere.jsonl")
    assert caught.value.where == str(tmp_path / "nowhere.jsonl")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="cannot be read") as caught:
        read_cases(tmp_path)
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize("data", [b"", b"no gzip at all", b"\x1f\x8b\x08\x00cut"], ids=repr)
def test_a_zipped_file_that_is_broken_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(CaseError) as caught:
        read_cases(path)
    assert caught.value.where == str(path)


def test_a_long_value_is_cut_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        read_cases(written(tmp_path, line(asked("x" * 100_000))))
    assert len(str(caught.value)) < 600


# Good files


def test_a_case_is_read_with_all_its_fields(tmp_path: Path) -> None:
    full = GOOD | {
        "domain": "mail",
        "thresholds": [{"subject": "days", "value": 0}, {"subject": "invoices", "value": 17}],
        "hierarchies": {"desk": [HALVES, {"x": ["c"], "y": ["b"], "z": ["a"]}]},
        "gold": {"urgent": "true"},
        "source": "by hand",
    }
    (case,) = read_cases(written(tmp_path, line(full)))
    assert case == Case(
        id="mail-1",
        state="Invoice 17 is overdue.",
        questions={"urgent": NOUL, "desk": CHOICE, "delay": SCORE},
        domain="mail",
        thresholds=(("days", 0), ("invoices", 17)),
        hierarchies={"desk": [HALVES, {"x": ["c"], "y": ["b"], "z": ["a"]}]},
        extra={"gold": {"urgent": "true"}, "source": "by hand"},
    )


def test_a_case_needs_an_id_a_state_and_questions_only() -> None:
    case = to_case(GOOD, "f:1")
    assert (case.domain, case.thresholds, case.hierarchies, case.extra) == ("", (), {}, {})


def test_optional_fields_may_be_null() -> None:
    assert to_case(GOOD | {"domain": None, "thresholds": None, "hierarchies": None}, "f:1") == to_case(GOOD, "f:1")


def test_questions_and_options_keep_the_order_of_the_file(tmp_path: Path) -> None:
    (case,) = read_cases(written(tmp_path, line(GOOD | {"questions": {"z": CHOICE, "a": NOUL, "m": SCORE}})))
    assert list(case.questions) == ["z", "a", "m"]
    assert list(case.questions["z"]["criteria"]) == ["b", "a", "c"]


def test_null_criteria_of_a_noul_are_left_out() -> None:
    case = to_case(asked(NOUL | {"criteria": None}), "f:1")
    assert case.questions == {"q": NOUL}


def test_a_byte_order_mark_blank_lines_and_windows_line_ends_are_no_content(tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    lines = [line(GOOD | {"id": name}) for name in ids]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([lines[0], b"", lines[1], b"   ", b"", lines[2], b""]))
    assert [case.id for case in read_cases(path)] == ids


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\r\n\r\n" + line(GOOD) + b"\r\n\r\n" + line(GOOD | {"id": ""}) + b"\r\n")
    with pytest.raises(CaseError) as caught:
        read_cases(path)
    assert caught.value.where == f"{path}:5: id"


def test_a_last_line_without_a_line_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(line(GOOD) + b"\n" + line(GOOD | {"id": "last"}))
    assert [case.id for case in read_cases(path)] == ["mail-1", "last"]


def test_separators_of_unicode_inside_a_string_do_not_end_a_line(tmp_path: Path) -> None:
    state = "one\u2028two\u2029three\x85four\x0bfive\x0c"
    raw = json.dumps(GOOD | {"state": state}, ensure_ascii=False).encode()
    assert "\u2028".encode() in raw
    (case,) = read_cases(written(tmp_path, raw))
    assert case.state == state


def test_letters_outside_ascii_are_kept_everywhere(tmp_path: Path) -> None:
    raw = asked({"type": "choice", "criteria": {"да": "ja", "нет": "nein"}}, "ключ") | {"id": "件-1", "state": "😀"}
    (case,) = read_cases(written(tmp_path, line(raw)))
    assert (case.id, case.state, list(case.questions)) == ("件-1", "😀", ["ключ"])
    assert list(case.questions["ключ"]["criteria"]) == ["да", "нет"]


def test_escaped_and_plain_letters_are_the_same_case(tmp_path: Path) -> None:
    raw = GOOD | {"state": "Grüße 😀"}
    assert parse_cases(tmp_path, json.dumps(raw).encode()) == parse_cases(tmp_path, line(raw))


def test_a_state_may_be_large_and_nested(tmp_path: Path) -> None:
    deep: Any = "bottom"
    for level in range(200):
        deep = {"level": level, "next": [deep]}
    state = {"deep": deep, "wide": [{"n": i, "text": "x" * 50, "ok": i % 2 == 0} for i in range(5000)]}
    (case,) = read_cases(written(tmp_path, line(GOOD | {"state": state})))
    assert case.state == state


@pytest.mark.parametrize("state", ["", {}, [], [None, 1.5, True]], ids=repr)
def test_a_state_may_be_text_an_object_or_an_array(state: Any) -> None:
    assert to_case(GOOD | {"state": state}, "f:1").state == state


def test_domains_stand_in_order_of_first_appearance() -> None:
    cases = [
        to_case(GOOD | {"id": str(i), "domain": name}, "f:1") for i, name in enumerate(["b", "a", None, "b", "c"])
    ]
    assert domains(cases) == ["b", "a", "", "c"]
