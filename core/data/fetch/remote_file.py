"""Files of a web server, into files on disk.

An interrupted transfer resumes at its last byte (RFC 9110, section 14: `Range` with `If-Range`, so
that two versions of a file are not joined); a server without ranges sends the whole file again. (The
retries of urllib3 cover requests, but not the bodies of responses, so they would not replace this.)
"""

from __future__ import annotations

import email.utils
import http.client
import io
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO, Any
from urllib.parse import urlsplit

from variant_ai import __version__
from variant_ai.core.errors import DataError
from variant_ai.core.system.text_tables import counted

ATTEMPTS = 6
"""Consecutive attempts without progress after which reading fails."""
TIMEOUT = 30.0
"""Seconds without a byte after which a connection is closed."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between attempts, doubled from the first to the longest."""
MAX_TEXT = 16 << 20
"""Limit in bytes of `fetch_text`."""
TEXT_ATTEMPTS, TEXT_TIMEOUT, TEXT_SECONDS = 4, 15.0, 120.0
"""Attempts and timeout of a small text, for which the user waits, and the limit in seconds."""
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504))
"""HTTP statuses that may be temporary."""
_STEP = 1 << 16


class RemoteError(OSError):
    """Failure to read a file from its server; the message is one sentence for the user."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status, if it is the reason."""


def fetch(
    url: str,
    file: IO[bytes],
    *,
    attempts: int = ATTEMPTS,
    timeout: float = TIMEOUT,
    on_bytes: Callable[[int, int | None], None] = lambda received, size: None,
    on_wait: Callable[[str], None] = lambda text: None,
) -> int:
    """Write the bytes of a URL to an empty file; return how many times the transfer was resumed.

    `on_bytes` is called with the number of bytes received so far and the size of the whole file (None
    if unknown), `on_wait` with the reason before each retry. Raises RemoteError if all attempts fail,
    DataError if the URL is not of http or https, or the file cannot be written.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise DataError(f"{url!r} is not a web address; accepted: http:// and https://")
    validator = ""
    whole: int | None = None  # bytes of the whole file
    resumed = failed = furthest = 0
    since = time.monotonic()  # of the last byte, or of the first request
    while True:
        received = file.tell()
        status, pause = None, 0.0
        try:
            with _request(url, received, validator, timeout) as response:
                length = response.headers.get("Content-Length", "")
                if response.status != 206:
                    validator = _validator(response.headers)
                    received = file.seek(0)
                    file.truncate()
                    whole = None
                size = received + int(length) if length.isdigit() else None
                if None not in (size, whole) and size != whole:
                    raise RemoteError(
                        f"{url} changed while it was read, from {whole:,} to "
                        f"{counted(size or 0, 'byte')}; start again"
                    )
                whole = whole if size is None else size
                while part := response.read1(_STEP):
                    _write(file, part, url)
                    received += len(part)
                    if received > furthest:  # not the bytes of a file that is sent again
                        furthest, failed, since = received, 0, time.monotonic()
                    on_bytes(received, size)
            if size is None or received >= size:
                return resumed
            reason = "the connection was closed before the end"
        except RemoteError:
            raise
        except urllib.error.HTTPError as error:
            error.close()  # closes the connection
            status, pause = error.code, _retry_after(error.headers)
            if status == 416 and error.headers.get("Content-Range", "") == f"bytes */{received}":
                return resumed  # nothing is missing
            if status not in _RETRIED:
                words = http.client.responses.get(status, "")
                message = f"{url} cannot be read: status {status} {words}".rstrip()
                raise RemoteError(message, status) from error
            reason = f"status {status}"
        except (OSError, http.client.HTTPException) as error:
            reason = _message(error, timeout)
        failed += 1
        if failed >= attempts:
            where = f" after {counted(received, 'byte')}" if received else ""
            raise RemoteError(
                f"{url} could not be read{where}: {reason}; {attempts} attempts failed in "
                f"{time.monotonic() - since:.0f} s",
                status,
            )
        if received:
            resumed += 1
        pause = min(LONGEST_PAUSE, max(pause, FIRST_PAUSE * 2 ** (failed - 1)))
        on_wait(
            f"{url}: {reason}; retrying in {pause:.0f} s (attempt {failed} of {attempts} failed)"
        )
        time.sleep(pause)


def fetch_text(url: str, *, on_wait: Callable[[str], None] = lambda text: None) -> str:
    """Return a small text from a web server, within TEXT_SECONDS.

    Raises RemoteError, DataError if the URL is not of http or https.
    """
    begun = time.monotonic()

    def check(received: int, size: int | None) -> None:
        if received > MAX_TEXT:
            raise RemoteError(f"{url} has more than {MAX_TEXT:,} bytes, too many for this text")
        if time.monotonic() - begun > TEXT_SECONDS:
            raise RemoteError(
                f"{url} could not be read in {TEXT_SECONDS:g} s: only {counted(received, 'byte')} "
                "received"
            )

    file = io.BytesIO()
    fetch(url, file, attempts=TEXT_ATTEMPTS, timeout=TEXT_TIMEOUT, on_bytes=check, on_wait=on_wait)
    return file.getvalue().decode("utf-8", "replace")


def _request(url: str, first: int, validator: str, timeout: float) -> Any:
    """Request a file from its byte `first` on; the response may be the whole file (its status says)."""
    headers = {"User-Agent": f"variant-ai/{__version__}", "Accept-Encoding": "identity"}
    if first:
        headers["Range"] = f"bytes={first}-"
        if validator:
            headers["If-Range"] = validator
    response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    part = response.headers.get("Content-Range", "")
    if response.status == 206 and not part.startswith(f"bytes {first}-"):
        response.close()
        raise http.client.HTTPException("the server sent a part that was not requested")
    return response


def _write(file: IO[bytes], part: bytes, url: str) -> None:
    try:
        file.write(part)
        file.flush()
    except OSError as error:
        raise DataError(f"{url} cannot be kept on this disk: {error.strerror}") from error


def _validator(headers: Any) -> str:
    """Strong ETag or date of the last change, for `If-Range`, which does not allow weak tags."""
    tag = str(headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified", ""))


def _retry_after(headers: Any) -> float:
    """Seconds to wait before the next request according to the server; 0 if unknown."""
    text = str(headers.get("Retry-After", "")).strip()
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _message(error: Exception, timeout: float) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection was closed before the end"
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return f"no response in {timeout:g} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return " ".join(str(reason).split()) or type(error).__name__
