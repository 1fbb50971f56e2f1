"""Writing whole files, errors that name the file, and short names of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add this path to every OSError raised within that names no file, such as for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file under another name and rename it. Text is written as UTF-8 and ends with a
    newline."""
    if isinstance(content, str):
        content = (content if content.endswith("\n") else content + "\n").encode()
    part = path.with_name(path.name + ".part")
    try:
        with naming(path):
            part.write_bytes(content)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last part of each path, or as many parts as are needed to tell the paths apart."""
    for parts in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return [str(path) for path in paths]
