"""A web server on this machine that serves bytes from memory and misbehaves on request."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard


def pzstd(data: bytes) -> bytes:
    """Files compressed like those of the site: frames of parts, each after a skippable frame that has
    the next one's size."""
    half = len(data) // 2
    packed = b""
    for part in (data[:half], data[half:]):
        frame = zstandard.ZstdCompressor(level=3).compress(part)
        packed += b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little")
        packed += len(frame).to_bytes(4, "little") + frame
    return packed


@dataclass
class FlakyServer:
    """Files by path (`/folder/name`), and what goes wrong with the next requests for them."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[int | float]] = field(default_factory=dict)
    """Path to what befalls the next requests, one each: a whole number up to 99 closes the
    connection after so many hundredths of what was asked for, one from 100 is a status."""
    silent: set[str] = field(default_factory=set)
    """Paths whose requests are taken and never answered."""
    slow: set[str] = field(default_factory=set)
    """Paths whose bytes come one by one, a hundred a second."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the server ends: nobody is kept waiting any more."""
    ranges: bool = True
    shift: int = 0
    """Bytes by which parts begin later than where they were asked for."""
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and `Range` of each request."""

    def add_month(self, variant: str, month: str, pgn: str, *, listed: str | None = None) -> str:
        """A month of games, and its line in the list of checksums (`listed`: a wrong one)."""
        data = pzstd(pgn.encode())
        name = f"lichess_db_{variant}_rated_{month}.pgn.zst"
        self.files[f"/{variant}/{name}"] = data
        line = f"{listed or hashlib.sha256(data).hexdigest()}  {name}\n"
        sums = f"/{variant}/sha256sums.txt"
        self.files[sums] = self.files.get(sums, b"") + line.encode()
        return f"/{variant}/{name}"

    def asked(self, path: str) -> list[str]:
        """The ranges asked for of a path, `''` where all of it was."""
        return [wanted for asked, wanted in self.requests if asked == path]


@contextmanager
def serving(server: FlakyServer) -> Iterator[FlakyServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            server.requests.append((self.path, wanted))
            if self.path in server.silent:
                server.over.wait(60)
                return
            queue = server.faults.get(self.path, [])
            fault = queue.pop(0) if queue else None
            data = server.files.get(self.path)
            if fault is not None and fault >= 100:
                self.send_error(int(fault))
                return
            if data is None:
                self.send_error(404)
                return
            tag = f'"{hashlib.sha256(data).hexdigest()[:8]}"'
            first = 0
            if wanted and server.ranges and self.headers.get("If-Range", tag) == tag:
                first = int(wanted.removeprefix("bytes=").rstrip("-")) + server.shift
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            part = data[first:]
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if self.path in server.slow:
                for byte in part:
                    self.wfile.write(bytes([byte]))
                    if server.over.wait(0.01):
                        return
                return
            self.wfile.write(part if fault is None else part[: len(part) * int(fault) // 100])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            http.shutdown()
            thread.join()
