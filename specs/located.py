"""YAML files that people write, and the file:line:column of what is wrong in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from variant_ai.specs.errors import SpecError

MAX_FILE_BYTES = 1_000_000
MAX_DEPTH = 30
"""Open brackets at once; the parser's time grows with the square of it."""


def read_text(path: Path, what: str) -> str:
    """The text of a file that should be `what` (`a variant spec`). Raises SpecError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SpecError(f"over {MAX_FILE_BYTES} bytes: not {what}", str(path))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise SpecError("is not UTF-8 text", str(path)) from None


def parse_yaml(text: str, where: str, what: str, keys: str) -> CommentedMap:
    """The mapping that a YAML text is. `what` it should be (`a spec`), of which `keys`.

    Raises SpecError with line and column.
    """
    depth = deepest = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise SpecError(f"brackets nested {deepest} deep; {what} needs no more than 5", where)
    yaml = YAML(typ="rt", pure=True)
    yaml.allow_duplicate_keys = False
    try:
        tree = yaml.load(text)
    except DuplicateKeyError as error:
        mark = error.problem_mark
        key = str(error.problem).split("found duplicate key ")[-1].split(" with value")[0]
        raise SpecError(f"duplicate key {key}; each key stands once", _mark(where, mark)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SpecError(f"not YAML: {error.problem or error.context}", _mark(where, mark)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", where) from None
    if not isinstance(tree, CommentedMap):
        raise SpecError(f"{what} is a mapping of keys ({keys})", where)
    return tree


def _mark(where: str, mark: Any) -> str:
    return where if mark is None else f"{where}:{mark.line + 1}:{mark.column + 1}"


def plain(node: Any) -> Any:
    """The same tree in the types of `json`; what JSON has no word for becomes text."""
    if isinstance(node, Mapping):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [plain(value) for value in node]
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float):
        return float(node)
    return str(node)


def yaml_path(tree: Any, loc: Iterable[str | int]) -> tuple[str | int, ...]:
    """pydantic's location without the tags of unions, ending at the deepest word that exists."""
    path: list[str | int] = []
    node = tree
    for part in loc:
        if (isinstance(node, CommentedMap) and part in node) or (
            isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node)
        ):
            path.append(part)
            node = node[part]
    return tuple(path)


def line_of(tree: Any, where: str, path: Sequence[str | int], message: str) -> str:
    """`file:line:column: a.b.c: message`; a path too long for the tree ends where the tree does."""
    dotted = ".".join(str(part) for part in path)
    return f"{place_of(tree, where, path)}: {dotted + ': ' if dotted else ''}{message}"


def place_of(tree: Any, where: str, path: Sequence[str | int]) -> str:
    """`file:line:column` of the deepest word of a path that exists."""
    node: Any = tree
    line, column = 0, 0
    for part in path:
        if isinstance(node, CommentedMap) and part in node:
            line, column = node.lc.key(part)
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line, column = node.lc.item(part)
        else:
            break
        node = node[part]
    return f"{where}:{line + 1}:{column + 1}"


def located_error(lines: Iterable[str], where: str) -> SpecError:
    """One error of several lines, each with its place; a line said twice stands once."""
    error = SpecError("\n".join(dict.fromkeys(lines)))
    error.where = where
    return error
