"""What a model is to the rest: something that answers a request, with a name the cache and the card can use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit, urlunsplit

from ..wire import Batch, request_text, sent_form


@dataclass(frozen=True, slots=True)
class Request:
    """One request: a state and a batch of questions, and the order-preserving text that identifies it."""

    state: Any
    questions: Batch
    text: str
    digest: bytes

    @staticmethod
    def of(state: Any, questions: Batch) -> Request:
        """Make a request. Two orders of the same questions are two requests; a null Noul criteria is left out."""
        text = request_text(state, questions)
        if '"criteria":null' in text:
            questions = {key: sent_form(question) for key, question in questions.items()}
            text = request_text(state, questions)
        return Request(state, questions, text, hashlib.sha256(text.encode(errors="surrogatepass")).digest())


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model sent back: its `answers` object as it came, and what it said about itself."""

    answers: Any
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    retries: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Model(Protocol):
    """A model: `ask` answers one request or raises AskError.

    `name`, `id` (the request's `model` field) and `revision` key the cache; `lasting` says whether answers may be
    kept beyond the run (a callable without a name or revision may be another one tomorrow).
    """

    name: str
    id: str
    revision: str
    lasting: bool

    def ask(self, request: Request) -> Reply:
        """Answer a request. Raises ModelError or Refused."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


def without_secrets(url: str) -> str:
    """Return a URL without user, password and query, for messages and cards."""
    try:
        parts = urlsplit(url)
        if not parts.netloc and "@" in url:
            return "an address that cannot be parsed"
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return "an address that cannot be parsed"
