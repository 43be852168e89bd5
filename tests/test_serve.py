"""Servers of other processes as models of whole runs, and what the commands `serve` and `cache` do."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jevbench.cache import FILE, SqliteStore
from pytest_jevbench.model import Request, embedded
from pytest_jevbench.relations import CATALOGUE

Start = Callable[..., str]
Run = Callable[..., pytest.RunResult]
Deviations = dict[str, float]

SERVE = (sys.executable, "-m", "pytest_jevbench", "serve")
DAY = 86400
NOUL = '{"type": "noul", "instructions": "Is it urgent?"}'
WORDS = "The parcel never came and nobody answers the phone."
QUESTIONS: dict[str, Any] = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?", "criteria": None},
    "team": {"type": "choice", "instructions": "Who should answer?", "criteria": {"care": None, "sales": "Sells."}},
    "anger": {"type": "score", "instructions": "How angry is it?", "criteria": ["calm", "annoyed", "furious"]},
}


def script(name: str) -> str:
    """Return the path of a console script of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(name))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    process.kill()
    pytest.fail(f"{process.args!r} does not listen: {process.communicate()}")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers that take `--port`: `start(*SERVE, "--embedded", "luce")` returns where it listens."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*command: str) -> str:
        port = free_port()
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )
        processes.append(process)
        wait_for(port, process)
        return f"http://127.0.0.1:{port}"

    yield begin
    for process in processes:
        process.kill()
        process.wait(10)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_jevbench", *arguments], capture_output=True, text=True, check=False, timeout=10
    )


def one_message(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Check that a command was refused with one line that names what is wrong, and did nothing before."""
    assert done.returncode in (1, 2), done
    assert done.stderr.startswith("pytest-jevbench: "), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr


# The server of embedded models


@pytest.mark.parametrize("name", ["luce", "uniform"])
def test_the_served_model_gives_its_own_answers(start: Start, name: str) -> None:
    url = start(*SERVE, "--embedded", name)
    response = httpx.post(
        f"{url}/v1/systemone", json={"model": "mine", "state": WORDS, "questions": QUESTIONS}, timeout=10
    )
    assert response.status_code == 200
    body = response.json()
    assert body["answers"] == embedded(name).ask(Request.of(WORDS, QUESTIONS)).answers
    assert body["answers"].keys() == QUESTIONS.keys()
    assert body["model"] == "mine"
    assert body["usage"]["output_tokens"] == len(QUESTIONS)


def test_the_server_lists_its_model(start: Start) -> None:
    response = httpx.get(f"{start(*SERVE, '--embedded', 'luce')}/v1/models", timeout=10)
    assert response.status_code == 200
    assert response.json() == {"data": [{"id": "luce", "object": "model"}]}


def of(questions: str, state: str = '"s"') -> str:
    return f'{{"model": "m", "state": {state}, "questions": {questions}}}'


CHOICE_OF_ONE = '{"type": "choice", "instructions": "Which?", "criteria": {"only": null}}'
BAD = {
    "an empty body": ("", "the body is no JSON"),
    "no JSON": ("state=s", "the body is no JSON"),
    "no number of JSON": (of(f'{{"a": {NOUL}}}', "[NaN]"), "NaN"),
    "nested beyond all measure": ("[" * 100_000, "the body is no JSON"),
    "no object": ("[]", "the body is no request; found []"),
    "a key twice": (of(f'{{"a": {NOUL}, "a": {NOUL}}}'), "the key 'a' stands twice"),
    "two states": (f'{{"state": "s", "state": "t", "questions": {{"a": {NOUL}}}}}', "the key 'state' stands twice"),
    "no field for questions": ('{"model": "m", "state": "s"}', "the body is no request"),
    "no question": (of("{}"), "questions: there are no questions"),
    "a list of questions": (of(f"[{NOUL}]"), "questions: there are no questions"),
    "a question that is no object": (of('{"a": 3}'), "questions.a: "),
    "an unknown type": (of('{"a": {"type": "boolean", "instructions": "Is it?"}}'), "expected noul, choice or score"),
    "a choice of one option": (of(f'{{"a": {CHOICE_OF_ONE}}}'), "questions.a.criteria: expected 2 to 255 options"),
    "a bad question after a good one": (of(f'{{"a": {NOUL}, "b": {CHOICE_OF_ONE}}}'), "questions.b.criteria: "),
    "a number as state": (of(f'{{"a": {NOUL}}}', "3"), "state: the state is no text, object or array; found 3"),
}


def test_bad_requests_get_a_422_that_says_what_is_wrong(start: Start, subtests: pytest.Subtests) -> None:
    # One server for the whole table: a process for each row would take most of the time of this file.
    url = start(*SERVE, "--embedded", "luce") + "/v1/systemone"
    for what, (body, message) in BAD.items():
        with subtests.test(what):
            response = httpx.post(url, content=body, timeout=10)
            assert response.status_code == 422
            detail = response.json()["detail"]
            assert detail["error_type"] == "invalid_request"
            assert message in detail["message"]
    assert httpx.post(url, content=of(f'{{"a": {NOUL}}}'), timeout=10).status_code == 200


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (of(f'{{"\\ud800": {NOUL}}}'), ("answers", "\ud800", "type")),
        (of(f'{{"a": {NOUL}}}').replace('"m"', '"\\ud800"'), ("model",)),
    ],
    ids=["in a key", "in the model's name"],
)
def test_half_a_surrogate_pair_comes_back_as_it_came(start: Start, body: str, at: tuple[str, ...]) -> None:
    response = httpx.post(start(*SERVE, "--embedded", "luce") + "/v1/systemone", content=body, timeout=10)
    assert response.status_code == 200
    found = response.json()
    for key in at:
        found = found[key]
    assert found == ("noul" if len(at) > 1 else "\ud800")


def test_an_unknown_model_is_refused_with_one_message() -> None:
    one_message(command("serve", "--embedded", "lucee", "--port", str(free_port())), "'lucee'", "'luce'")


def test_a_port_in_use_is_refused_with_one_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        one_message(command("serve", "--embedded", "luce", "--port", port), port, "in use")


@pytest.mark.parametrize("arguments", [("--port", "99999"), ("--latency", "-1")], ids=" ".join)
def test_a_number_out_of_range_is_refused_without_a_traceback(arguments: tuple[str, str]) -> None:
    whole = ["serve", "--embedded", "luce", "--port", str(free_port()), *arguments]
    try:
        done = command(*whole)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{whole} is served")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert arguments[1] in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be interrupted alone there")
def test_the_server_says_where_it_listens_and_ends_quietly_when_interrupted() -> None:
    port = free_port()
    with subprocess.Popen(
        [*SERVE, "--embedded", "luce", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(port, process)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=10)
        finally:
            process.kill()
    assert out == f"serving luce at http://127.0.0.1:{port}/v1/systemone\n"
    assert err == ""


# Whole runs


@pytest.fixture
def deviations(run: Run, pytester: pytest.Pytester) -> Callable[[str], Deviations]:
    """Run the suite of examples and return the deviation of each test: `deviations("--jev-embedded=luce")`."""

    def measure(model: str) -> Deviations:
        suite = ("--jev-suite=upstream:examples", "--jev-cache=memory", "--jev-violations=record")
        done = run(*suite, "--jev-card=card.json", model)
        assert done.ret == 0, done.stdout.str()
        card = json.loads((pytester.path / "card.json").read_text(encoding="utf-8"))
        assert card["errors"] == []
        assert card["requests"]["sent"] == card["requests"]["distinct"] > 0
        found = {test["relation"]: test["deviation"] for test in card["tests"]}
        assert found.keys() == {name for name, relation in CATALOGUE.items() if relation.scored}
        assert len(card["tests"]) == len(found), "one test of each relation, so that its name stands for it"
        return found

    return measure


def over_http(url: str) -> str:
    return f"--jev-url={url}/v1/systemone"


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("luce", (*SERVE, "--embedded", "luce")),
        ("sparrow", (*SERVE, "--embedded", "sparrow")),
        ("sparrow", (script("sparrow-decider"), "serve")),
    ],
    ids=["luce", "sparrow", "sparrow's own server"],
)
def test_a_model_deviates_by_the_same_over_http_as_in_the_process(
    start: Start, deviations: Callable[[str], Deviations], name: str, server: tuple[str, ...]
) -> None:
    served = deviations(over_http(start(*server)))
    assert served == deviations(f"--jev-embedded={name}")
    assert max(served.values()) > 0.05


BROKEN = {
    "batch-leaks": {"batch_solo", "batch_size_sweep"},
    "order-leaks": {"batch_solo", "batch_order", "duplicate_question"},
    "id-leaks": {"key_rename", "key_instruction_conflict", "duplicate_question"},
}
"""By fault: the promises about representation and company that the clean mock keeps, and the faulty one breaks."""

UNTOUCHED = {
    # What leaks is the same in both requests; nary_or_lower is a bound that one faulty mock keeps by chance.
    "batch-leaks": {"batch_content", "batch_order", "duplicate_question", "key_instruction_conflict", "key_rename"},
    "order-leaks": {"batch_content", "batch_size_sweep", "key_instruction_conflict", "key_rename", "nary_or_lower"},
    "id-leaks": {"batch_content", "batch_order", "batch_size_sweep", "batch_solo"},
}
"""By fault: what keeps its deviation. All others get another one, as a fault changes every answer of the mock."""

ALWAYS_UNTOUCHED = {
    # The mock gives each option a weight of its own, so these hold in every request.
    "irrelevant_option", "option_permutation", "pairwise_iia", "remove_option_iia",
    # Bounds that the mock's answers happen to keep, whichever they are.
    "count_lower", "nary_and_lower", "nary_or_upper",
}  # fmt: skip


def without_rounding(found: Deviations) -> Deviations:
    """Take what a sum of floats leaves for nothing."""
    return {name: 0.0 if deviation < 1e-12 else deviation for name, deviation in found.items()}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_of_the_mock_changes_exactly_the_relations_it_concerns(
    start: Start, deviations: Callable[[str], Deviations], fault: str
) -> None:
    clean = without_rounding(deviations(over_http(start(script("jevcompat"), "mock"))))
    faulty = without_rounding(deviations(over_http(start(script("jevcompat"), "mock", "--fault", fault))))
    same = {name for name in clean if faulty[name] == clean[name]}
    assert same == UNTOUCHED[fault] | ALWAYS_UNTOUCHED
    kept = {name for name in clean if clean[name] == 0 and CATALOGUE[name].dimension in ("REP", "BAT")}
    assert kept - same == BROKEN[fault]
    assert max(faulty[name] for name in BROKEN[fault]) > 0.05


def test_the_mock_answers_alike_each_time(start: Start, deviations: Callable[[str], Deviations]) -> None:
    # Without this the table above would say nothing.
    assert deviations(over_http(start(script("jevcompat"), "mock"))) == deviations(
        over_http(start(script("jevcompat"), "mock"))
    )


# The commands on kept answers


def keep(folder: Path, name: str, revision: str, n: int, age: float = 0, *, set_aside: bool = False) -> None:
    """Keep `n` answers of a model that are `age` days old."""
    store = SqliteStore(folder, name, "jev-latest", revision)
    for number in range(n):
        store.put(f"{age} {set_aside} {number}", '{"answers": {}}')
    if set_aside:
        assert store.set_aside() >= n
    store.close()
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute(
            "UPDATE answers SET asked_at = ? WHERE key LIKE ?", (time.time() - age * DAY, f"%:{age} {set_aside} %")
        )
        database.commit()


def counted(folder: Path) -> dict[str, tuple[int, int]]:
    """Read `cache stats`: answers and set-aside ones by model."""
    done = command("cache", "stats", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    found = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(": ")
        parts = rest.split("; ")
        found[name] = (int(parts[0].split(" ")[0].replace(",", "")), int(parts[1].split(" ")[0].replace(",", "")))
    return found


def pruned(folder: Path, *arguments: str) -> str:
    done = command("cache", "prune", str(folder), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_stats_count_the_answers_of_each_model(tmp_path: Path) -> None:
    keep(tmp_path, "jev", "", 3, set_aside=True)
    keep(tmp_path, "jev", "", 1200)
    keep(tmp_path, "jev", "2", 4)
    keep(tmp_path, "luce", "0.1.0", 5)
    assert counted(tmp_path) == {"jev": (1200, 3), "jev (2)": (4, 0), "luce (0.1.0)": (5, 0)}


def test_prune_removes_what_was_set_aside_and_nothing_else(tmp_path: Path) -> None:
    keep(tmp_path, "jev", "", 3, set_aside=True)
    keep(tmp_path, "jev", "", 2, age=400)
    keep(tmp_path, "luce", "0.1.0", 5)
    assert pruned(tmp_path) == "3 answers removed\n"
    assert counted(tmp_path) == {"jev": (2, 0), "luce (0.1.0)": (5, 0)}
    assert pruned(tmp_path) == "0 answers removed\n"


def test_prune_removes_what_is_older_than_the_days(tmp_path: Path) -> None:
    keep(tmp_path, "jev", "", 3, age=9)
    keep(tmp_path, "jev", "", 2, age=1)
    keep(tmp_path, "luce", "0.1.0", 5, age=11)
    assert pruned(tmp_path, "--days", "10") == "5 answers removed\n"
    assert counted(tmp_path) == {"jev": (5, 0)}
    assert pruned(tmp_path, "--days", "1.5") == "3 answers removed\n"
    assert counted(tmp_path) == {"jev": (2, 0)}


def test_pruned_answers_give_their_space_back(tmp_path: Path) -> None:
    keep(tmp_path, "jev", "", 2000, set_aside=True)
    before = (tmp_path / FILE).stat().st_size
    pruned(tmp_path)
    assert (tmp_path / FILE).stat().st_size < before / 2


@pytest.mark.parametrize("days", ["-1", "nan", "soon"])
def test_days_that_are_no_number_from_zero_remove_nothing(tmp_path: Path, days: str) -> None:
    keep(tmp_path, "jev", "", 2, age=1)
    done = command("cache", "prune", str(tmp_path), "--days", days)
    assert counted(tmp_path) == {"jev": (2, 0)}
    assert done.returncode == 2
    assert "--days" in done.stderr


@pytest.mark.parametrize("action", ["stats", "prune"])
def test_a_missing_cache_is_named(tmp_path: Path, action: str) -> None:
    folder = tmp_path / "nowhere"
    done = command("cache", action, str(folder))
    one_message(done, str(folder), "there is no cache here")
    assert done.returncode == 2
    assert not folder.exists()


@pytest.mark.parametrize("action", ["stats", "prune"])
@pytest.mark.parametrize("content", [b"no database, " * 500, b""], ids=["other bytes", "an empty file"])
def test_a_damaged_cache_is_named_and_left_alone(tmp_path: Path, action: str, content: bytes) -> None:
    path = tmp_path / FILE
    path.write_bytes(content)
    done = command("cache", action, str(tmp_path))
    one_message(done, str(path), "the cache cannot be used")
    assert done.returncode == 2
    assert path.read_bytes() == content
