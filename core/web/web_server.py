"""The web server: the page's files, and the WebSocket over which it talks.

What a security checklist asks for: nothing is loaded from another host (Content-Security-Policy),
no other page may talk to the server (Origin, and Host against DNS rebinding), a token unless only
this machine can connect, bounded messages, nothing of a visitor in HTML.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from variant_ai.core.spec.catalogue import SPECS
from variant_ai.core.web.client_messages import protocol_document
from variant_ai.core.web.visitor import Visitor
from variant_ai.core.web.web_settings import WebSettings, is_loopback
from variant_ai.core.web.work_room import WorkRoom

STATIC = Path(__file__).parent / "static"
FILES = {
    "app.js": "text/javascript",
    "app-style.css": "text/css",
    "icon.svg": "image/svg+xml",
}
"""Files of the page with their types; there are no others."""
SCHEMA = SPECS / "schema.json"
"""The JSON schema of specs, by which the editor completes words."""
PROTOCOL = "protocol.json"
PAGES = ("/", "/analyse", "/watch", "/variant", "/help")
"""Addresses of the page; which view it shows is its own business."""
COOKIE = "variant-ai-token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-cache",
}
REJECTED, TOO_MANY = 403, 503
"""Status of a request, or of the handshake of a WebSocket, that is rejected."""


def make_app(settings: WebSettings, room: WorkRoom) -> ASGIApp:
    """Return the application of a server."""
    visitors = 0

    def problem() -> str | None:
        """Return why no more pages may connect; None if they may."""
        if visitors < settings.limits.visitors:
            return None
        return f"Too many pages are open: at most {settings.limits.visitors}. Close one, or wait."

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        room.start()
        try:
            yield
        finally:
            await room.close()

    async def page(request: Request) -> Response:
        if settings.token and request.query_params.get("token") is not None:
            # the rest of the query is a game
            shown = request.url.remove_query_params("token").replace(scheme="", netloc="")
            answer = RedirectResponse(shown, 303)
            # lax, not strict: the address may be clicked on another page, in a mail for instance;
            # other pages cannot talk all the same, because of the Origin
            answer.set_cookie(COOKIE, settings.token, httponly=True, samesite="lax", max_age=86400)
            return answer
        return FileResponse(STATIC / "index.html", media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name == PROTOCOL:
            return JSONResponse(protocol_document(settings.limits))
        if name == SCHEMA.name:
            return FileResponse(SCHEMA, media_type="application/json")
        if name not in FILES or not (STATIC / name).is_file():
            return PlainTextResponse("There is no such file.", 404)
        return FileResponse(STATIC / name, media_type=FILES[name])

    async def health(request: Request) -> Response:
        reason = problem()
        if reason is not None:
            return PlainTextResponse(reason, TOO_MANY)
        return JSONResponse({"ok": True, "visitors": visitors})

    async def talk(socket: WebSocket) -> None:
        nonlocal visitors
        reason = problem()
        if reason is not None:  # before the page believes that it is connected
            await _reject(reason, TOO_MANY, socket.scope, socket.receive, socket.send)
            return
        visitors += 1

        async def receive() -> str | None:
            try:
                message = await socket.receive()
            except (WebSocketDisconnect, RuntimeError):
                return None
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            return text if isinstance(text, str) else ""

        async def send(text: str) -> None:
            try:
                await socket.send_text(text)
            except (WebSocketDisconnect, RuntimeError) as error:
                raise ConnectionError(str(error)) from None

        try:
            await socket.accept()
            await Visitor(room, send).run(receive)
        finally:
            visitors -= 1

    routes = [
        *(Route(path, page, methods=["GET"]) for path in PAGES),
        Route("/files/{name}", file, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        WebSocketRoute("/talk", talk),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), settings)


@dataclass(frozen=True)
class Guard:
    """Rejects requests of other pages and without the token, and adds headers to all answers."""

    app: ASGIApp
    settings: WebSettings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        reason = self._rejection(HTTPConnection(scope))
        if reason is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await _reject(reason, REJECTED, scope, receive, send)
        else:
            await PlainTextResponse(reason, REJECTED)(scope, receive, _with_headers(send))

    def _rejection(self, request: HTTPConnection) -> str | None:
        """Return why a request is rejected; None if it is not."""
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self.settings.is_local and not is_loopback(name):
            return "This server answers to localhost only."
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests of other pages are rejected."
        token = self.settings.token
        if token:
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            given = request.query_params.get("token") or request.cookies.get(COOKIE) or bearer
            if not hmac.compare_digest(given.encode(), token.encode()):
                return "Open the address that `variant-ai web` has printed: it has the token."
        return None


async def _reject(reason: str, status: int, scope: Scope, receive: Receive, send: Send) -> None:
    """Reject the handshake of a WebSocket with a text. Browsers hide it from their pages, which ask
    for /health; other programs see it."""
    if "websocket.http.response" in scope.get("extensions", {}):
        await PlainTextResponse(reason, status)(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": reason})


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message.setdefault("headers", [])
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending


async def serve(app: ASGIApp, settings: WebSettings, sockets: list[Any]) -> None:
    """Serve until a signal ends the process. sockets: listening ones."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=4 * settings.limits.message,
        ws_ping_interval=20.0,
        ws_ping_timeout=60.0,
        limit_concurrency=4 * settings.limits.visitors,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    await uvicorn.Server(config).serve(sockets=sockets)
