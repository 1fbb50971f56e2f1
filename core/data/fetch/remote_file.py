"""File on a web server as a stream, hashed while it is read, and never kept on disk.

An interrupted transfer resumes at its last byte (RFC 9110, section 14: `Range` with `If-Range`, so
that two versions of a file are not joined); from a server without ranges the whole file is requested
again, and the bytes read before are skipped. (The retries of urllib3 cover requests, but not the
bodies of responses, so they would not replace this.)
"""

from __future__ import annotations

import email.utils
import hashlib
import http.client
import io
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
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
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class RemoteError(OSError):
    """Failure to read a file from its server; the message is one sentence for the user."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status, if it is the reason."""


class RemoteFile(io.RawIOBase):
    """Stream of the bytes of a URL.

    Reading raises RemoteError if all attempts fail; `failure` keeps the error for callers that read
    through layers which hide errors, such as `open_sources`.
    """

    def __init__(
        self,
        url: str,
        *,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        on_bytes: Callable[[int], None] = lambda size: None,
        on_size: Callable[[int], None] = lambda size: None,
        on_wait: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`on_bytes` is called with the number of received bytes, `on_size` with the size of the file
        when it is known, `on_wait` with the reason before each retry.

        Raises DataError if the URL is not of http or https.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise DataError(f"{url!r} is not a web address; accepted: http:// and https://")
        self.url = url
        self.received = 0
        """Bytes read so far."""
        self.size: int | None = None
        """Bytes of the whole file, None if unknown."""
        self.failure: RemoteError | None = None
        self.finished = False
        """True if the last byte has been read."""
        self.resumed = 0
        """Number of times the transfer was interrupted and resumed."""
        self._sha256 = hashlib.sha256()
        self._attempts, self._timeout = attempts, timeout
        self._on_bytes, self._on_size, self._on_wait = on_bytes, on_size, on_wait
        self._response: Any = None
        self._validator = ""
        self._failed = 0
        """Consecutive attempts without progress."""
        self._since = time.monotonic()
        """Time of the last byte, or of the first request."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[:_STEP]
        if not self._failed:
            self._since = time.monotonic()  # the caller may have paused for long
        while not self.finished:
            if self.failure is not None:
                raise self.failure
            try:
                if self._response is None and not self._connect():
                    break
                part = self._response.read1(len(view))  # `readinto` would wait for all of it
                got = len(part)
                view[:got] = part
                if got == 0 and self.size is not None and self.received < self.size:
                    raise http.client.IncompleteRead(b"", self.size - self.received)
            except (OSError, http.client.HTTPException) as error:
                self._give_up_or_wait(error)
                continue
            if got == 0:
                self.finished = True
                self._close()
                break
            self._failed = 0
            self.received += got
            self._sha256.update(view[:got])
            self._on_bytes(got)
            return got
        return 0

    def drain(self) -> None:
        """Read the rest of the file, for the checksum. Raises RemoteError."""
        while self.read(_STEP):
            pass

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes read so far, in hex digits."""
        return self._sha256.hexdigest()

    def close(self) -> None:
        self._close()
        super().close()

    # --- connections ---------------------------------------------------------------------------

    def _connect(self) -> bool:
        """Request the file, or the missing part of it; return False if nothing is missing."""
        headers = {}
        if self.received:
            headers["Range"] = f"bytes={self.received}-"
            if self._validator:
                headers["If-Range"] = self._validator
        try:
            self._response = _request(self.url, headers, self._timeout)
        except urllib.error.HTTPError as error:
            whole = error.headers.get("Content-Range", "").rpartition("/")[2]
            if error.code == 416 and whole == str(self.received):
                self.finished = True
                error.close()
                return False
            raise
        if self._response.status == 206:
            self._check_part()
        else:
            length = self._response.headers.get("Content-Length", "")
            self._learn_size(int(length) if length.isdigit() else None)
            self._validator = _validator(self._response.headers)
            self._skip(self.received)
        return True

    def _check_part(self) -> None:
        """Check that the part sent by the server begins at the next byte."""
        match = _RANGE.match(self._response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != self.received:
            raise http.client.HTTPException("the server sent a part that was not requested")
        if match[2] != "*":
            self._learn_size(int(match[2]))

    def _learn_size(self, size: int | None) -> None:
        if size is None:
            return
        if self.size is not None and size != self.size:
            raise self._fail(
                f"{self.url} changed while it was read, from {self.size:,} to "
                f"{counted(size, 'byte')}; start again"
            )
        if self.size is None:
            self.size = size
            self._on_size(size)

    def _skip(self, size: int) -> None:
        """Skip the bytes read before, from a server without ranges."""
        while size:
            got = len(self._response.read(min(size, _STEP)))
            if not got:
                raise http.client.IncompleteRead(b"", size)
            size -= got

    def _give_up_or_wait(self, error: OSError | http.client.HTTPException) -> None:
        """Wait before the next attempt. Raises RemoteError if there is none."""
        self._close()
        if isinstance(error, RemoteError):
            raise error
        status = None
        asked = 0.0
        """Seconds for which the server asks to wait."""
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # closes the connection
            status, asked = error.code, _retry_after(error.headers)
            if status not in _RETRIED:
                words = http.client.responses.get(status, "")
                message = f"{self.url} cannot be read: status {status} {words}".rstrip()
                raise self._fail(message, status) from error
        self._failed += 1
        reason = f"status {status}" if status else _message(error, self._timeout)
        if self._failed >= self._attempts:
            where = f" after {counted(self.received, 'byte')}" if self.received else ""
            waited = time.monotonic() - self._since
            raise self._fail(
                f"{self.url} could not be read{where}: {reason}; {self._attempts} attempts failed "
                f"in {waited:.0f} s",
                status,
            ) from error
        if self.received:
            self.resumed += 1
        pause = min(LONGEST_PAUSE, max(asked, FIRST_PAUSE * 2 ** (self._failed - 1)))
        self._on_wait(
            f"{self.url}: {reason}; retrying in {pause:.0f} s (attempt {self._failed} of "
            f"{self._attempts} failed)"
        )
        time.sleep(pause)

    def _fail(self, message: str, status: int | None = None) -> RemoteError:
        self.failure = RemoteError(message, status)
        return self.failure

    def _close(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def fetch_text(url: str, *, on_wait: Callable[[str], None] = lambda text: None) -> str:
    """Return a small text from a web server, within TEXT_SECONDS.

    Raises RemoteError, DataError if the URL is not of http or https.
    """
    begun = time.monotonic()
    with RemoteFile(url, attempts=TEXT_ATTEMPTS, timeout=TEXT_TIMEOUT, on_wait=on_wait) as file:
        text = b""
        while part := file.read(_STEP):
            text += part
            if len(text) > MAX_TEXT:
                raise RemoteError(f"{url} has more than {MAX_TEXT:,} bytes, too many for this text")
            if time.monotonic() - begun > TEXT_SECONDS:
                raise RemoteError(
                    f"{url} could not be read in {TEXT_SECONDS:g} s: only "
                    f"{counted(len(text), 'byte')} received"
                )
        return text.decode("utf-8", "replace")


def _request(url: str, headers: dict[str, str], timeout: float) -> Any:
    agent = {"User-Agent": f"variant-ai/{__version__}", "Accept-Encoding": "identity"}
    return urllib.request.urlopen(
        urllib.request.Request(url, headers={**agent, **headers}), timeout=timeout
    )


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
