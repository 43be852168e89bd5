"""A model behind `POST /v1/systemone`. The only module that imports httpx."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from .. import __version__
from ..errors import AskError, ModelError, Refused, SettingError, show
from ..wire import Repeated, load_answer_json
from .base import Reply, Request, without_secrets

RETRIED = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses that another try may mend; other 4xx are refusals."""
LONGEST_PAUSE = 30.0
LONGEST_REQUEST = 300.0
"""Seconds after which a request is given up, pauses included (longer where the tries alone may take longer)."""
LARGEST_BODY = 64 * 1024 * 1024


class SystemOne:
    """One endpoint. `timeout` bounds one try in seconds, body included; `retries` further tries follow a failure.

    With `replicated` set, a refused connection is not tried again here: another replica takes the request.

    The bearer token goes to this host only: redirects are not followed.
    """

    lasting = True

    def __init__(
        self,
        url: str,
        model: str = "jev-latest",
        revision: str = "",
        api_key: str = "",
        timeout: float = 60.0,
        retries: int = 3,
    ) -> None:
        self.url = checked_url(url)
        self.shown_url = without_secrets(self.url)
        self.name = self.id = model
        self.revision = revision
        self.timeout, self.retries = timeout, retries
        self._secrets = _secrets(api_key, self.url)
        self._answered = self._down = False
        self.replicated = False
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"pytest-jevbench/{__version__}",
        }
        if api_key:
            headers["Authorization"] = f"Bearer {checked_key(api_key)}"
        # A proxy from the environment must not get what is meant for a server on this machine, token included.
        self._http = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout, pool=None),
            follow_redirects=False,
            trust_env=not _is_loopback(self.url),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, request: Request) -> Reply:
        """Send the request, trying again after a passing failure.

        Raises Refused for a 4xx that another try cannot mend, ModelError for everything else that gives no
        `answers` object.
        """
        body = ('{"model":' + json.dumps(self.id) + "," + request.text[1:]).encode(errors="backslashreplace")
        causes: Counter[str] = Counter()
        deadline = time.monotonic() + max(LONGEST_REQUEST, self.timeout * (self.retries + 1))
        for attempt in range(self.retries + 1):
            outcome = self._try(body)
            if isinstance(outcome, Reply):
                return replace(outcome, retries=dict(causes))
            unreachable = outcome.cause in ("connection", "reset", "timeout")
            hopeless = unreachable and (self._down or (outcome.cause == "connection" and self.replicated))
            pause = _pause(attempt, outcome.retry_after)
            hopeless = hopeless or time.monotonic() + pause > deadline
            if attempt == self.retries or not outcome.passing or hopeless:
                error = self._error(outcome, tries=attempt + 1)
                error.retries = dict(causes)
                # The next request must not wait through the same tries again.
                error.unreachable = self._down = unreachable
                raise error
            causes[outcome.cause] += 1
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _try(self, body: bytes) -> Reply | _Failure:
        """One try: a reply, or what went wrong and whether another try may mend it."""
        try:
            status, headers, text = self._post(body)
        except httpx.ConnectError as down:
            # A server that never answered is a wrong address more often than one that is just restarting.
            return _Failure(
                "connection",
                "the server cannot be reached",
                str(down),
                "Is it running at this address?",
                passing=self._answered,
            )
        except (httpx.TimeoutException, _TooSlow) as slow:
            return _Failure("timeout", f"no complete answer within {self.timeout:g} s", str(slow))
        except _TooLarge:
            return _Failure("size", "the answer is too large", f"more than {LARGEST_BODY} bytes", passing=False)
        except (httpx.TransportError, httpx.DecodingError) as broken:
            return _Failure("reset", f"the connection failed ({type(broken).__name__})", str(broken))
        self._answered, self._down = True, False
        text = self._hidden(text)
        headers = httpx.Headers({name: self._hidden(value) for name, value in headers.items()})
        if status == 200:
            return _reply(text, headers)
        return _refusal(status, headers, text)

    def _post(self, body: bytes) -> tuple[int, httpx.Headers, str]:
        """Send once. Timeouts of httpx hold per read; the deadline bounds a body that trickles in."""
        deadline = time.monotonic() + self.timeout
        chunks, size = [], 0
        with self._http.stream("POST", self.url, content=body) as response:
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise _TooLarge
                if time.monotonic() > deadline:
                    raise _TooSlow("the body trickled in")
        return response.status_code, response.headers, b"".join(chunks).decode(errors="replace")

    def _error(self, failure: _Failure, tries: int) -> AskError:
        shown = " ".join("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in failure.found).split())
        return failure.kind(
            f"{failure.what}, {tries} tries" if tries > 1 else failure.what,
            self.shown_url,
            shown if len(shown) <= 200 else shown[:199] + "…",
            hint=failure.hint or HINTS_BY_CAUSE.get(failure.cause, "The server's log may say more."),
        )

    def _hidden(self, text: str) -> str:
        """Take out of a server's text what must never be shown or kept."""
        for secret in self._secrets:
            text = text.replace(secret, "[hidden]")
        return text


HINTS_BY_CAUSE = {
    "timeout": "A slow server needs a larger --jev-timeout.",
    "429": "Try larger --jev-retries.",
    "413": "The case or its batch is too large for this server.",
}


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try that gave no reply: `cause` names it in the statistics, `passing` is whether another try may mend it."""

    cause: str
    what: str
    found: str
    hint: str = ""
    passing: bool = True
    retry_after: float | None = None
    kind: type[AskError] = ModelError


class _TooSlow(Exception):  # noqa: N818 - never leaves this module
    """A body that kept trickling in beyond the deadline."""


class _TooLarge(Exception):  # noqa: N818 - never leaves this module
    """A body beyond the size limit."""


def _reply(text: str, headers: httpx.Headers) -> Reply | _Failure:
    """Read a response of status 200."""
    kind = headers.get("content-type", "no content type")
    try:
        data = load_answer_json("" if "html" in kind else text)
    except (ValueError, RecursionError):
        hint = "Is this the endpoint /v1/systemone?" if "html" in kind else ""
        return _Failure("invalid JSON", f"the response is no JSON ({kind})", text, hint)
    if not isinstance(data, dict) or isinstance(data, Repeated) or "answers" not in data:
        found = f"the key {data.key!r} twice" if isinstance(data, Repeated) else show(data)
        return _Failure(
            "no answers",
            "the response is no object with `answers`",
            found,
            'Return {"answers": {question id: answer}}.',
            passing=False,
        )
    model, usage = data.get("model"), data.get("usage")
    return Reply(data["answers"], model if isinstance(model, str) else None, usage if isinstance(usage, dict) else {})


HINTS = {
    401: "Set the bearer token in JEVBENCH_API_KEY (or --jev-api-key-env=NAME).",
    403: "The bearer token in JEVBENCH_API_KEY is not accepted for this.",
    404: "The path is usually /v1/systemone; a wrong --jev-model-id can also be the reason.",
    405: "The path is usually /v1/systemone.",
}


def _refusal(status: int, headers: httpx.Headers, text: str) -> _Failure:
    """Read a response of another status than 200."""
    if 300 <= status < 400:
        place = without_secrets(headers.get("location", ""))
        return _Failure(
            str(status),
            f"the server redirects (HTTP {status})",
            place,
            "Give that address instead.",
            passing=False,
            kind=Refused,
        )
    if status in RETRIED:
        return _Failure(str(status), f"the server failed (HTTP {status})", text, retry_after=_asked_for(headers))
    if status >= 500:
        return _Failure(str(status), f"the server failed (HTTP {status})", text, passing=False)
    if status < 300:
        return _Failure(str(status), f"the server answered with HTTP {status} instead of 200", text, passing=False)
    return _Failure(
        str(status),
        f"the server refused the request (HTTP {status})",
        text,
        HINTS.get(status, ""),
        passing=False,
        kind=Refused,
    )


def _asked_for(headers: httpx.Headers) -> float | None:
    """Seconds the server asks us to wait: milliseconds, seconds or a date; None for none that makes sense."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
            except (ValueError, TypeError):
                continue
        if seconds >= 0:
            return seconds
    return None


def _pause(attempt: int, asked: float | None) -> float:
    """Seconds before the next try: what the server asked for, else doubling from half a second, with jitter."""
    if asked is not None:
        return min(asked, LONGEST_PAUSE)
    return min(0.5 * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def checked_key(api_key: str) -> str:
    """Return the bearer token. Raises SettingError, without showing it, when no header can carry it."""
    if not api_key.isascii() or not api_key.isprintable():
        raise SettingError(
            "the API key has characters that cannot be sent",
            expected="printable ASCII",
            hint="Does it end in a line break?",
        )
    return api_key


def _secrets(api_key: str, url: str) -> list[str]:
    """What a server may send back and nobody may see: the token, and the secrets of the address."""
    parts = urlsplit(url)
    found = [
        api_key,
        json.dumps(api_key)[1:-1],
        repr(api_key)[1:-1],
        f"?{parts.query}" if parts.query else "",
        parts.password or "",
    ]
    return [secret for secret in found if secret]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


HOST = re.compile(r"[^\s.*/]{1,63}(\.[^\s.*/]{1,63})*\.?|[0-9a-f:.%]+", re.IGNORECASE)


def checked_url(url: str) -> str:
    """Return the URL. Raises SettingError unless it is an http or https address with a host."""
    try:
        parts = urlsplit(url)
        host = httpx.URL(url).raw_host.decode()
        usable = parts.scheme in ("http", "https") and parts.port != 0 and bool(HOST.fullmatch(parts.hostname or ""))
        usable = usable and bool(HOST.fullmatch(host))
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise SettingError(
            "this is no usable address",
            found=show(without_secrets(url)),
            expected="like http://127.0.0.1:8000/v1/systemone",
        )
    return url


def systemone(url: str, model: str = "jev-latest", **settings: Any) -> SystemOne:
    """Make a model of an endpoint; settings as in SystemOne. Raises SettingError for an unusable address."""
    return SystemOne(url, model, **settings)
