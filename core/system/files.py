"""Writing files whole, errors that name them, and names to tell them apart by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within, an OSError that names no file (a full disk on writing) names this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file aside and renames it; text is UTF-8 and ends with a newline."""
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
    """The last part of each path, or as many as it takes to tell them apart."""
    for parts in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return [str(path) for path in paths]
