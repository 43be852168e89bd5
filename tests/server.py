"""A System One server for tests: real sockets, one thread a connection, a script of what it does to each request.

    with Server([send("busy", 503, retry_after="0"), answers("luce")]) as server:
        ...                      # the first request gets a 503, the second and all later ones are answered
        assert server.requests[0].headers["authorization"] == "Bearer ..."

A behaviour is a function from the request to what goes over the wire, piece by piece: bytes are sent, a number is a
pause in seconds, CLOSE ends the connection and RESET tears it down (the client sees a TCP reset).
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, BinaryIO, Self

from pytest_jevbench.model import Request, embedded

End = Enum("End", ["CLOSE", "RESET"])
CLOSE, RESET = End.CLOSE, End.RESET


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived. `number` counts from 0 over all connections; `body` is None where it is no JSON."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any


Behaviour = Callable[[Received], Iterator[bytes | float | End]]


def reply(received: Received, by: str = "uniform", **fields: Any) -> dict[str, Any]:
    """Return a proper response body by an embedded model; `fields` add to it or replace what stands there."""
    request = Request.of(received.body["state"], received.body["questions"])
    return {"model": received.body["model"], "answers": embedded(by).ask(request).answers, **fields}


def response(body: bytes, status: int = 200, **headers: str) -> bytes:
    """Return a whole response; `headers` use underscores (`retry_after="1"`) and replace the standard ones."""
    given = {"content-type": "application/json", "content-length": str(len(body))}
    given.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def proper(received: Received, by: str = "uniform", **fields: Any) -> bytes:
    """Return a whole proper response."""
    return response(json.dumps(reply(received, by, **fields)).encode())


def answers(by: str = "uniform", **fields: Any) -> Behaviour:
    """Answer properly, by an embedded model; `fields` as in `reply`."""
    return lambda received: iter([proper(received, by, **fields)])


def send(text: str | bytes, status: int = 200, **headers: str) -> Behaviour:
    """Send this body, whatever was asked; `headers` as in `response`."""
    return lambda _: iter([response(text if isinstance(text, bytes) else text.encode(), status, **headers)])


def page(status: int = 200) -> Behaviour:
    """Send an HTML page, as a proxy does, or a server at another path."""
    return send("<!doctype html>\n<title>Welcome</title>", status, content_type="text/html; charset=utf-8")


def http_1_0(received: Received) -> Iterator[bytes | float | End]:
    """Answer as HTTP/1.0 does: no length, the end of the connection ends the body."""
    yield b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    yield json.dumps(reply(received)).encode()
    yield CLOSE


def reset(_: Received) -> Iterator[bytes | float | End]:
    """Tear the connection down before a response."""
    yield RESET


def late(seconds: float, then: Behaviour) -> Behaviour:
    """Wait, then do something else."""
    return lambda received: iter([seconds, *then(received)])


def hang_up(then: Behaviour) -> Behaviour:
    """Do something, then close the connection without having announced it."""
    return lambda received: iter([*then(received), CLOSE])


def cut(end: End) -> Behaviour:
    """Announce a whole answer, send a part of it, then CLOSE (a truncated body) or RESET."""
    # The pause keeps a reset from overtaking what was sent.
    return lambda received: iter([proper(received)[:-20], 0.05, end])


def trickle(pause: float, *, head: bool = False) -> Behaviour:
    """Answer properly, but byte by byte, so that every single read succeeds: the body, or already the head."""

    def behave(received: Received) -> Iterator[bytes | float | End]:
        whole = proper(received)
        start = 4 if head else whole.index(b"\r\n\r\n") + 4
        yield whole[:start]
        for n in range(start, len(whole)):
            yield pause
            yield whole[n : n + 1]

    return behave


class Server:
    """Listens on a free port of 127.0.0.1 while the context is open.

    `script` is a behaviour for every request, or a list for one request each, after which requests are answered
    properly. `requests` is what arrived; `most_at_once` the largest number of requests that waited at the same time
    for the first byte of their answer.
    """

    def __init__(self, script: Behaviour | Sequence[Behaviour] = ()) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._waiting: set[int] = set()
        self.requests: list[Received] = []
        self.connections = 0
        self.most_at_once = 0
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"http://{self.address}/v1/systemone"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        socket.create_connection(self._listener.getsockname()).close()  # wakes accept()
        self._threads[0].join(5)
        self._listener.close()
        for connection in list(self._open):
            with suppress(OSError):  # the client may have closed it already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stopping.is_set():
                connection.close()
                return
            self.connections += 1
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), connection.makefile("rb") as stream:  # the client may go away at any time
            while (received := self._read(stream)) and self._answer(connection, received):
                pass
        connection.close()
        self._open.discard(connection)

    def _read(self, stream: BinaryIO) -> Received | None:
        first = stream.readline().decode("latin-1").split()
        if len(first) < 3:
            return None
        headers = {}
        while line := stream.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        raw, body = stream.read(length), None
        if len(raw) < length:  # the client died while it sent
            return None
        with suppress(ValueError):
            body = json.loads(raw)
        with self._lock:
            received = Received(len(self.requests), first[0], first[1], headers, raw, body)
            self.requests.append(received)
            self._waiting.add(received.number)
            self.most_at_once = max(self.most_at_once, len(self._waiting))
        return received

    def _answer(self, connection: socket.socket, received: Received) -> bool:
        """Do what the script says; return whether the connection stays open."""
        for piece in self._behaviour(received.number)(received):
            if isinstance(piece, bytes):
                self._waiting.discard(received.number)
                connection.sendall(piece)
            elif isinstance(piece, End):
                self._waiting.discard(received.number)
                if piece is RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            elif self._stopping.wait(piece):
                return False
        return True

    def _behaviour(self, number: int) -> Behaviour:
        if callable(self._script):
            return self._script
        return self._script[number] if number < len(self._script) else answers()
