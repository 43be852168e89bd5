"""A real System One server around an embedded model: `pytest-jevbench serve --embedded NAME` (extra `server`)."""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .errors import JevbenchError, SettingError, show
from .model.base import Request
from .model.embedded import EmbeddedModel, embedded
from .wire import RepeatedKeyError, check_question, is_text_or_tree, load_json, sent_form

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOST_BYTES = 16 * 1024 * 1024


class Unusable(JevbenchError):  # noqa: N818 - becomes a 422, not an error of ours
    """A request that is not in the format."""


def make_app(model: EmbeddedModel, latency: float = 0.0) -> Starlette:
    """Make the application: `POST /v1/systemone` and `GET /v1/models`. `latency` is added to each answer, in seconds.

    Raises SettingError when starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import Request as HttpRequest
        from starlette.responses import Response
        from starlette.routing import Route
    except ImportError:
        raise _missing() from None

    def sent(body: object, status: int = 200) -> Response:
        # ASCII, so that half a surrogate pair in a name comes back as it came.
        return Response(json.dumps(body), status, media_type="application/json")

    def failed(status: int, kind: str, message: str) -> Response:
        return sent({"detail": {"error_type": kind, "message": message}}, status)

    async def systemone(http: HttpRequest) -> Response:
        raw = await http.body()
        if len(raw) > MOST_BYTES:
            return failed(413, "too_large", f"more than {MOST_BYTES} bytes")
        try:
            request, asked_for = read_request(raw)
        except Unusable as error:
            return failed(422, "invalid_request", str(error))
        reply = await run_in_threadpool(_answer, model, request, latency)
        usage = {"input_tokens": len(request.text) // 4, "output_tokens": len(request.questions)}
        return sent({"model": asked_for, "answers": reply, "usage": usage})

    async def models(_: HttpRequest) -> Response:
        return sent({"data": [{"id": model.id, "object": "model"}]})

    return Starlette(routes=[Route("/v1/systemone", systemone, methods=["POST"]), Route("/v1/models", models)])


def _answer(model: EmbeddedModel, request: Request, latency: float) -> Any:
    time.sleep(latency)
    return model.ask(request).answers


def read_request(raw: bytes) -> tuple[Request, str]:
    """Read a request's body; returns it with the model's name. Raises Unusable that says what is wrong with it."""
    try:
        data = load_json(raw.decode())
    except RepeatedKeyError as repeated:
        raise Unusable(f"the key {str(repeated)!r} stands twice") from None
    except (ValueError, RecursionError) as broken:
        raise Unusable("the body is no JSON", found=str(broken)[:120]) from None
    if not isinstance(data, dict) or not {"state", "questions"} <= data.keys():
        raise Unusable("the body is no request", found=show(data), expected='{"model", "state", "questions"}')
    questions = data["questions"]
    if not isinstance(questions, dict) or not questions:
        raise Unusable("there are no questions", "questions", show(questions))
    if not is_text_or_tree(data["state"]):
        raise Unusable("the state is no text, object or array", "state", show(data["state"]))
    for key, question in questions.items():
        check_question(question, f"questions.{key}", Unusable)
    request = Request.of(data["state"], {key: sent_form(question) for key, question in questions.items()})
    return request, str(data.get("model", ""))


def serve(name: str, host: str, port: int, latency: float = 0.0) -> None:
    """Serve an embedded model until it is stopped, and say where.

    Raises SettingError for an unknown model, an address that cannot be had, and a missing extra.
    """
    try:
        import uvicorn
    except ImportError:
        raise _missing() from None
    app = make_app(embedded(name), latency)
    try:
        listener = socket.create_server((host, port))
    except OSError as taken:
        raise SettingError(f"the address cannot be had ({taken.strerror or taken})", f"{host}:{port}") from None
    sys.stdout.write(f"serving {name} at http://{host}:{listener.getsockname()[1]}/v1/systemone\n")
    sys.stdout.flush()
    with listener, suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


def _missing() -> SettingError:
    return SettingError("serving needs starlette and uvicorn", hint='pip install "pytest-jevbench[server]"')
