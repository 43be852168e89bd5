"""A real System One server around an embedded model: `pytest-jevbench serve --embedded NAME` (extra `server`)."""

from __future__ import annotations

import time
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
        from starlette.responses import JSONResponse
        from starlette.routing import Route
    except ImportError:
        raise _missing() from None

    def failed(status: int, kind: str, message: str) -> JSONResponse:
        return JSONResponse({"detail": {"error_type": kind, "message": message}}, status)

    async def systemone(http: HttpRequest) -> JSONResponse:
        raw = await http.body()
        if len(raw) > MOST_BYTES:
            return failed(413, "too_large", f"more than {MOST_BYTES} bytes")
        try:
            request, asked_for = read_request(raw)
        except Unusable as error:
            return failed(422, "invalid_request", str(error))
        started = time.perf_counter()
        reply = await run_in_threadpool(_answer, model, request, latency)
        usage = {"input_tokens": len(request.text) // 4, "output_tokens": len(request.questions)}
        body = {"model": asked_for, "answers": reply, "usage": usage}
        return JSONResponse(body, headers={"x-seconds": f"{time.perf_counter() - started:.4f}"})

    async def models(_: HttpRequest) -> JSONResponse:
        return JSONResponse({"data": [{"id": model.id, "object": "model"}]})

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
    """Serve an embedded model until it is stopped. Raises SettingError for an unknown model or a missing extra."""
    try:
        import uvicorn
    except ImportError:
        raise _missing() from None
    app = make_app(embedded(name), latency)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)


def _missing() -> SettingError:
    return SettingError("serving needs starlette and uvicorn", hint='pip install "pytest-jevbench[server]"')
