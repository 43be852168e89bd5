"""The HTTP client against a real server: what it sends, how it takes every way to fail, what it never shows."""

from __future__ import annotations

import gzip
import json
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jevbench.cache import MemoryStore
from pytest_jevbench.client import Client
from pytest_jevbench.errors import AskError, ModelError, Refused, SettingError
from pytest_jevbench.model import Reply, Request
from pytest_jevbench.model.base import without_secrets
from pytest_jevbench.model.systemone import LONGEST_PAUSE, SystemOne, checked_url, systemone
from server import (
    CLOSE,
    RESET,
    Behaviour,
    Received,
    Server,
    answers,
    cut,
    hang_up,
    http_1_0,
    late,
    page,
    reply,
    reset,
    response,
    send,
    trickle,
)

QUESTIONS: dict[str, dict[str, Any]] = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "desk": {"type": "choice", "instructions": "Which desk?", "criteria": {"b": "billing", "a": None}},
}
REQUEST = Request.of("Invoice 17 is overdue.", QUESTIONS)
KEY = "sk-geheim-0123456789abcdef"

RETRIED_STATUSES = [408, 429, 500, 502, 503, 504, 529]
REFUSED_STATUSES = [400, 401, 403, 404, 405, 413, 422]

PASSING: dict[str, tuple[Behaviour, str]] = {
    **{f"status {code}": (send("busy", code), str(code)) for code in RETRIED_STATUSES},
    "reset": (reset, "reset"),
    "reset midway": (cut(RESET), "reset"),
    "truncated": (cut(CLOSE), "reset"),
    "undecodable": (send(b"no gzip", content_encoding="gzip"), "reset"),
    "html": (page(), "invalid JSON"),
    "empty": (send(""), "invalid JSON"),
    "half a JSON": (send('{"answers": {"urgent"'), "invalid JSON"),
    "too deep": (send("[" * 100_000), "invalid JSON"),
    "late": (late(5, answers()), "timeout"),
    "trickle": (trickle(0.05), "timeout"),
}
"""What another try may mend, with the name it is counted under."""

FINAL: dict[str, tuple[Behaviour, type[AskError], str]] = {
    **{f"status {code}": (send('{"error": "no"}', code), Refused, f"HTTP {code}") for code in REFUSED_STATUSES},
    "html 404": (page(404), Refused, "HTTP 404"),
    "redirect": (send("", 301, location="http://127.0.0.2/v1"), Refused, "http://127.0.0.2/v1"),
    "no answers": (send('{"result": 1}'), ModelError, "answers"),
    "a list": (send("[1, 2]"), ModelError, "[1, 2]"),
    "null": (send("null"), ModelError, "None"),
    "a text": (send('"yes"'), ModelError, "yes"),
    "answers twice": (send('{"answers": {}, "answers": {}}'), ModelError, "'answers' twice"),
}
"""What another try would not mend: the class it raises, and words of its message."""

FAILURES: dict[str, Behaviour] = {
    **{name: behaviour for name, (behaviour, _) in PASSING.items()},
    **{name: behaviour for name, (behaviour, _, _) in FINAL.items()},
}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between tries instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr("pytest_jevbench.model.systemone.time.sleep", slept.append)
    return slept


def ask(url: str, name: str = "", **options: Any) -> Reply:
    """Ask the one request; of a server whose behaviour by this `name` is a slow one, with a short timeout."""
    model = SystemOne(url, **{"timeout": 0.4 if name in ("late", "trickle") else 10, "retries": 0, **options})
    try:
        return model.ask(REQUEST)
    finally:
        model.close()


def failure(script: Any, suffix: str = "", name: str = "", **options: Any) -> AskError:
    """Return the error of asking a server with this script."""
    with Server(script) as server, pytest.raises(AskError) as caught:
        ask(server.url + suffix, name, **options)
    return caught.value


def everything_shown(error: BaseException | None) -> str:
    """Return all that a traceback would print of an error and of what led to it, without the lines of code."""
    shown = ""
    while error is not None:
        shown += "".join(traceback.format_exception_only(error)) + repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return shown


# What is sent


def test_a_request_is_posted_with_its_model_first_and_every_order_kept() -> None:
    state = {"z": 1, "a": [True, None]}
    with Server() as server:
        model = SystemOne(server.url, "jev-7")
        model.ask(Request.of(state, QUESTIONS))
        model.close()
    (received,) = server.requests
    assert (received.method, received.path) == ("POST", "/v1/systemone")
    assert received.headers["content-type"] == "application/json"
    assert received.body == {"model": "jev-7", "state": state, "questions": QUESTIONS}
    pairs = dict(json.loads(received.raw, object_pairs_hook=list))
    assert list(pairs) == ["model", "state", "questions"]
    assert [name for name, _ in pairs["state"]] == ["z", "a"]
    assert [name for name, _ in pairs["questions"]] == ["urgent", "desk"]
    assert [name for name, _ in dict(pairs["questions"][1][1])["criteria"]] == ["b", "a"]


def test_a_null_criteria_field_of_a_noul_is_not_sent() -> None:
    with Server() as server:
        client = Client([SystemOne(server.url)], MemoryStore())
        client.ask("s", {"q": {"type": "noul", "instructions": "Is it?", "criteria": None}})
        client.close()
    assert server.requests[0].body["questions"] == {"q": {"type": "noul", "instructions": "Is it?"}}


def test_a_null_description_of_an_option_is_sent() -> None:
    with Server() as server:
        ask(server.url)
    assert server.requests[0].body["questions"]["desk"]["criteria"] == {"b": "billing", "a": None}


def test_text_beyond_ascii_is_sent_as_utf_8() -> None:
    with Server() as server:
        model = SystemOne(server.url, "modèle")
        model.ask(Request.of("Zażółć 日本 🐦", QUESTIONS))
        model.close()
    assert "Zażółć 日本 🐦".encode() in server.requests[0].raw
    assert server.requests[0].body["model"] == "modèle"


def test_a_lone_surrogate_is_sent_escaped() -> None:
    with Server() as server:
        model = SystemOne(server.url)
        model.ask(Request.of({"cut \ud83d": "\udc00"}, QUESTIONS))
        model.close()
    assert b'{"cut \\ud83d":"\\udc00"}' in server.requests[0].raw


any_text = st.text(st.characters(exclude_categories=()))
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Server, SystemOne]]:
    with Server() as server:
        model = SystemOne(server.url)
        yield server, model
        model.close()


@settings(deadline=None, max_examples=60)
@given(state=any_text | st.lists(trees, max_size=3) | st.dictionaries(any_text, trees, max_size=3))
def test_any_state_arrives_as_it_was(running: tuple[Server, SystemOne], state: Any) -> None:
    server, model = running
    model.ask(Request.of(state, QUESTIONS))
    # Two surrogates that happen to make a pair are one character to every JSON reader.
    assert server.requests[-1].body["state"] == json.loads(json.dumps(state))


def test_the_bearer_token_is_sent() -> None:
    with Server() as server:
        ask(server.url, api_key=KEY)
        ask(server.url)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in server.requests[1].headers


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(code: int, pauses: list[float]) -> None:
    with Server() as other, Server(send("", code, location=f"http://u:pw@{other.address}/x?code=geheim")) as server:
        with pytest.raises(Refused) as caught:
            ask(server.url, api_key=KEY, retries=3)
        assert len(server.requests) == 1
    assert other.connections == 0
    assert f"http://{other.address}/x" in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "pw" not in str(caught.value)
    assert pauses == []


# What comes back


def test_a_reply_carries_answers_model_and_usage() -> None:
    with Server(answers("luce", model="jev-9", usage={"input_tokens": 12, "output_tokens": 3})) as server:
        got = ask(server.url, model="jev-latest")
    assert list(got.answers) == ["urgent", "desk"]
    assert got.model == "jev-9"
    assert got.usage == {"input_tokens": 12, "output_tokens": 3}
    assert got.retries == {}


@pytest.mark.parametrize("odd", [None, 7, ["x"]])
def test_a_model_or_usage_of_another_kind_is_ignored(odd: Any) -> None:
    with Server(
        lambda received: send(json.dumps({**reply(received), "model": odd, "usage": odd}))(received)
    ) as server:
        got = ask(server.url)
    assert (got.model, got.usage) == (None, {})


def test_http_1_0_extra_headers_and_compression_are_normal() -> None:
    def decorated(received: Received) -> Any:
        data = gzip.compress(json.dumps(reply(received)).encode())
        return iter(
            [response(data, content_encoding="gzip", set_cookie="a=b", x_powered_by="tests", server="x" * 500)]
        )

    with Server([http_1_0, decorated]) as server:
        model = SystemOne(server.url, retries=0)
        assert model.ask(REQUEST).answers == model.ask(REQUEST).answers
        model.close()
    assert server.connections == 2


def test_a_connection_is_used_again() -> None:
    with Server() as server:
        model = SystemOne(server.url)
        for _ in range(3):
            model.ask(REQUEST)
        model.close()
    assert (len(server.requests), server.connections) == (3, 1)


def test_a_connection_closed_after_an_answer_does_no_harm() -> None:
    with Server(hang_up(answers())) as server:
        model = SystemOne(server.url, retries=1)
        for _ in range(3):
            assert model.ask(REQUEST).model == "jev-latest"
        model.close()
    assert server.connections == len(server.requests) == 3


# Failures


@pytest.mark.parametrize("name", PASSING)
def test_a_passing_failure_is_retried_and_counted_by_its_cause(name: str, pauses: list[float]) -> None:
    behaviour, cause = PASSING[name]
    with Server([behaviour, behaviour]) as server:
        got = ask(server.url, name, retries=3)
    assert got.retries == {cause: 2}
    assert len(server.requests) == 3
    assert len(pauses) == 2


def test_different_causes_are_counted_apart() -> None:
    with Server([reset, send("", 503), page(), send("", 503)]) as server:
        assert ask(server.url, retries=4).retries == {"reset": 1, "503": 2, "invalid JSON": 1}


@pytest.mark.parametrize("name", PASSING)
def test_a_failure_that_does_not_pass_is_a_model_error(name: str, pauses: list[float]) -> None:
    with Server(PASSING[name][0]) as server, pytest.raises(ModelError, match="2 tries") as caught:
        ask(server.url, name, retries=1)
    assert len(server.requests) == 2
    assert len(pauses) == 1
    assert type(caught.value) is ModelError


@pytest.mark.parametrize("name", FINAL)
def test_a_final_failure_is_not_retried(name: str, pauses: list[float]) -> None:
    behaviour, kind, words = FINAL[name]
    with Server(behaviour) as server, pytest.raises(kind) as caught:
        ask(server.url, retries=3)
    assert len(server.requests) == 1
    assert pauses == []
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert "tries" not in str(caught.value)


@pytest.mark.parametrize("code", [201, 204, 206])
def test_another_2xx_is_no_refusal(code: int) -> None:
    error = failure(send("" if code == 204 else "{}", code))
    assert type(error) is ModelError
    assert f"HTTP {code}" in str(error)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_one_line_that_starts_with_the_address(name: str) -> None:
    with Server(FAILURES[name]) as server, pytest.raises(AskError) as caught:
        ask(server.url, name)
    message = str(caught.value)
    assert message.startswith(f"{server.url}: ")
    assert len(message.splitlines()) == 1
    assert len(message) < 500


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_says_what_to_do(name: str) -> None:
    assert failure(FAILURES[name], name=name).hint


@pytest.mark.parametrize(
    ("code", "hint"), [(401, "JEVBENCH_API_KEY"), (403, "JEVBENCH_API_KEY"), (404, "/v1/systemone")]
)
def test_a_refusal_names_the_setting_to_look_at(code: int, hint: str) -> None:
    assert hint in failure(send("", code)).hint


def test_what_a_server_says_is_shown_cut_and_on_one_line() -> None:
    error = failure(send("Unknown model:\n\n\t'jev-9'\r\n" + "x" * 5000, 422))
    assert "Unknown model: 'jev-9' xxx" in str(error)
    assert len(str(error)) < 500


def test_control_characters_of_a_server_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in str(failure(send("\x1b[2J\x1b]0;owned\x07no", 400)))


def test_a_server_that_is_not_there_is_named_and_not_waited_for(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ModelError, match=r"cannot be reached.*Is it running") as caught:
        ask(f"http://127.0.0.1:{port}/v1/systemone", retries=3)
    assert str(caught.value).startswith(f"http://127.0.0.1:{port}/v1/systemone: ")
    assert pauses == []


def test_a_server_that_went_away_after_an_answer_is_waited_for(pauses: list[float]) -> None:
    with Server(hang_up(answers())) as server:
        model = SystemOne(server.url, retries=2, timeout=1)
        model.ask(REQUEST)
    with pytest.raises(ModelError, match="3 tries"):
        model.ask(REQUEST)
    model.close()
    assert len(pauses) == 2


def test_an_answer_that_is_too_large_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jevbench.model.systemone.LARGEST_BODY", 1000)
    with Server(send(" " * 5000)) as server, pytest.raises(ModelError, match=r"too large.*1000 bytes"):
        ask(server.url, retries=3)
    assert len(server.requests) == 1


def test_the_timeout_bounds_a_body_that_trickles_in() -> None:
    started = time.monotonic()
    error = failure(trickle(0.02), timeout=0.3)
    assert "0.3 s" in str(error)
    assert time.monotonic() - started < 3


# Pauses


@pytest.mark.parametrize("asked", ["0", "0.25", "2", "17.5"])
def test_the_pause_a_server_asks_for_is_kept(asked: str, pauses: list[float]) -> None:
    with Server([send("", 429, retry_after=asked), send("", 503, retry_after=asked)]) as server:
        ask(server.url, retries=2)
    assert len(pauses) == 2
    assert all(float(asked) <= pause <= float(asked) * 1.5 for pause in pauses)


def test_a_pause_asked_for_in_milliseconds_is_kept(pauses: list[float]) -> None:
    with Server([send("", 429, retry_after_ms="7500")]) as server:
        ask(server.url, retries=1)
    assert 7.5 <= pauses[0] <= 7.5 * 1.5


def test_a_pause_asked_for_as_a_date_is_kept(pauses: list[float]) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=10), usegmt=True)
    with Server([send("", 503, retry_after=until)]) as server:
        ask(server.url, retries=1)
    assert 8 <= pauses[0] <= 15


@pytest.mark.parametrize("asked", ["31", "86400", "inf", "1e300"])
def test_a_long_pause_is_capped(asked: str, pauses: list[float]) -> None:
    with Server([send("", 503, retry_after=asked)]) as server:
        ask(server.url, retries=1)
    assert pauses == [LONGEST_PAUSE]


@pytest.mark.parametrize("asked", ["soon", "-1", "nan", ""])
def test_a_senseless_pause_is_replaced_by_our_own(asked: str, pauses: list[float]) -> None:
    with Server([send("", 503, retry_after=asked)]) as server:
        ask(server.url, retries=1)
    assert 0.25 <= pauses[0] <= 0.5


def test_pauses_double_with_jitter_up_to_the_cap(pauses: list[float]) -> None:
    with Server([send("", 503)] * 8) as server:
        ask(server.url, retries=8)
    longest = [0.5, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]
    assert len(pauses) == len(longest)
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    assert len({pause / most for pause, most in zip(pauses, longest, strict=True)}) > 1


# Secrets


def echo(*, header: str = "", status: int = 400, text: str = "{}") -> Behaviour:
    """Send the request's token back, in the body or in a header."""

    def behave(received: Received) -> Any:
        token = received.headers["authorization"]
        headers = {header: token} if header else {}
        return send(text.replace("TOKEN", token), status, **headers)(received)

    return behave


ECHOES: dict[str, Behaviour] = {
    "a refusal": echo(text="bad token: TOKEN"),
    "a failing server": echo(status=503, text="TOKEN"),
    "at the cut of a long text": echo(text="x" * 180 + "TOKEN"),
    "no JSON": echo(status=200, text="TOKEN"),
    "no answers": echo(status=200, text='{"detail": "TOKEN"}'),
    "no answers, at the cut": echo(status=200, text='{"detail": "' + "x" * 90 + 'TOKEN"}'),
    "a key twice": echo(status=200, text='{"TOKEN": 1, "TOKEN": 2}'),
    "a content type": echo(status=200, header="content_type", text="?"),
    "a redirect": echo(status=307, header="location", text=""),
    "an answer": echo(status=200, text='{"answers": {"urgent": "TOKEN", "desk": "TOKEN"}}'),
    "a list of answers": echo(status=200, text='{"answers": ["TOKEN"]}'),
    "a question id": echo(status=200, text='{"answers": {"TOKEN": 1}}'),
}


@pytest.mark.parametrize("name", ECHOES)
def test_a_token_is_never_shown_even_if_the_server_sends_it_back(name: str) -> None:
    with Server(ECHOES[name]) as server:
        client = Client([SystemOne(server.url, api_key=KEY, retries=0)], MemoryStore())
        with pytest.raises(AskError) as caught:
            client.ask("s", QUESTIONS)
        client.close()
    assert "geheim" not in everything_shown(caught.value)
    assert KEY[:8] not in everything_shown(caught.value)


@pytest.mark.parametrize(
    "key", ["sk-geheim\n", "sk-geheim\r\nX: y", "sk-\x00geheim", "sk-geheïm", "sk-geheim…", "\ud800"]
)
def test_a_token_that_cannot_be_sent_is_an_error_that_does_not_show_it(key: str) -> None:
    with Server() as server, pytest.raises(SettingError) as caught:
        ask(server.url, api_key=key)
    assert server.requests == []
    assert "gehe" not in everything_shown(caught.value)


@pytest.mark.parametrize("name", FAILURES)
def test_user_password_and_query_of_an_address_are_never_shown(name: str) -> None:
    with Server(FAILURES[name]) as server, pytest.raises(AskError) as caught:
        ask(f"http://nutzer:geheim@{server.address}/v1/systemone?code=geheim#geheim", name)
    assert str(caught.value).startswith(f"{server.url}: ")
    assert "geheim" not in everything_shown(caught.value)
    assert "nutzer" not in everything_shown(caught.value)


def test_a_query_is_not_shown_by_way_of_the_server() -> None:
    error = failure(lambda got: send(f"Cannot POST {got.path}", 404)(got), "?code=geheim")
    assert "geheim" not in str(error)


def test_an_unreachable_address_is_shown_without_its_secrets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ModelError) as caught:
        ask(f"http://nutzer:geheim@{address}/v1?code=geheim")
    assert str(caught.value).startswith(f"http://{address}/v1: ")
    assert "geheim" not in everything_shown(caught.value)


# Addresses

UNUSABLE = [
    "",
    "localhost",
    "localhost:8000/v1/systemone",
    "127.0.0.1:8000/v1/systemone",
    "//127.0.0.1:8000/v1/systemone",
    "https//127.0.0.1/v1",
    "ftp://127.0.0.1/v1",
    "file:///etc/hosts",
    "http://",
    "http:///v1/systemone",
    "http://?x=1",
    "http://:8000/v1",
    "http://nutzer@/v1",
    "http://127.0.0.1:99999/v1",
    "http://127.0.0.1:-1/v1",
    "http://127.0.0.1:0/v1",
    "http://127.0.0.1:port/v1",
    "http://[::1/v1",
    "http://127.0.0.1/v1\n",
    "http://127.0.0.1/\x00",
    "http://my host/v1",
    "http://example..org/v1",
    f"http://{'a' * 64}.example/v1",
    f"http://127.0.0.1/{'a' * 70_000}",
    "http://\ud800/v1",
]


@pytest.mark.parametrize("url", UNUSABLE, ids=lambda url: ascii(url[:40]))
def test_an_unusable_address_is_a_setting_error(url: str) -> None:
    with pytest.raises(SettingError, match=r"no usable address.*like http://127.0.0.1:8000/v1/systemone") as caught:
        SystemOne(url)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "url",
    [
        "http://nutzer:geheim@127.0.0.1:99999/v1",
        "http://nutzer:geheim@[::1/v1",
        "http://127.0.0.1:99999/v1?code=geheim",
        "nutzer:geheim@127.0.0.1:8000/v1",
        "http:/nutzer:geheim@127.0.0.1:8000/v1",
        "http:nutzer:geheim@127.0.0.1:8000/v1",
        "//nutzer:geheim@127.0.0.1:8000/v1",
        "ftp://nutzer:geheim@127.0.0.1/v1",
        "http://nutzer:geheim@",
    ],
)
def test_an_unusable_address_is_shown_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        systemone(url)
    assert "geheim" not in everything_shown(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1/systemone",
        "https://example.org/v1/systemone",
        "http://localhost",
        "HTTP://LOCALHOST:80/v1",
        "http://[::1]:8000/v1/systemone",
        "https://bücher.example/v1",
        "https://nutzer:wort@example.org/v1?code=1",
    ],
)
def test_a_usable_address_is_taken_as_it_is(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://u:p@example.org:8443/v1?a=1&b=2#c", "https://example.org:8443/v1"),
        ("https://u:p@p@example.org/v1", "https://example.org/v1"),
        ("http://u@[::1]:8000/", "http://[::1]:8000/"),
        ("/relative?a=1", "/relative"),
    ],
)
def test_secrets_are_taken_out_of_an_address(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_model_made_by_the_short_name_has_its_settings() -> None:
    make: Callable[..., SystemOne] = systemone
    model = make("http://127.0.0.1:8000/v1/systemone", "jev-7", revision="r2", timeout=5.0, retries=1)
    assert (model.id, model.name, model.revision, model.timeout, model.retries) == ("jev-7", "jev-7", "r2", 5.0, 1)
    assert model.lasting
    model.close()


def test_a_request_is_given_up_when_its_pauses_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jevbench.model.systemone.LONGEST_REQUEST", 0.5)
    with Server(send("busy", 503, retry_after="20")) as server:
        model = SystemOne(server.url, timeout=0.1, retries=3)
        started = time.monotonic()
        with pytest.raises(ModelError, match="HTTP 503"):
            model.ask(Request.of("s", {"q": {"type": "noul", "instructions": "Is it?"}}))
        assert time.monotonic() - started < 5
        model.close()
    assert len(server.requests) == 1
