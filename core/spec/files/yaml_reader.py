"""YAML files, and the file:line:column of mistakes in them.

All YAML files are read here, within bounds of time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent

from variant_ai.core.errors import SpecError

MAX_FILE_BYTES = 1_000_000
MAX_DEPTH = 30
"""Nested brackets; the parser's time grows with the square of their number."""
MAX_NODES = 20_000
"""Values, lists and mappings in a file; those of an alias count at each use. The largest file that
comes with the program has under 300."""


_HINTS = (
    ("expected <block end>", "; is the line indented like the others of its mapping or list?"),
    (
        "mapping values are not allowed",
        "; is a blank missing after a colon, or a quote around a text?",
    ),
    ("could not find expected ':'", "; is a blank missing after a colon?"),
    ("expected ',' or", "; is a bracket not closed, or a comma missing?"),
)
"""Starts of the library's messages, and a hint for each."""


class _BoundError(MarkedYAMLError):
    """Valid YAML that exceeds the bounds."""


class _BoundedComposer(Composer):
    """Composer that counts nodes. Ten lines of aliases of aliases stand for billions of nodes,
    which take no memory until they are visited."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self._count = 0
        self._sizes: dict[int, int] = {}
        """Nodes in a finished node, including itself, by its id."""

    def compose_node(self, parent: Any, index: int) -> Any:
        before = self._count
        is_alias = self.parser.check_event(AliasEvent)
        mark = self.parser.peek_event().start_mark
        node = super().compose_node(parent, index)
        if is_alias and id(node) not in self._sizes:
            raise _BoundError(problem="an alias inside the value it refers to", problem_mark=mark)
        self._count += self._sizes[id(node)] if is_alias else 1
        self._sizes.setdefault(id(node), self._count - before)
        if self._count > MAX_NODES:
            problem = f"over {MAX_NODES:,} values (those of an alias count at each use)"
            raise _BoundError(problem=problem, problem_mark=mark)
        return node


def read_text(path: Path, what: str) -> str:
    """Read a text file. what: its expected content for messages (`a variant spec`). Raises
    SpecError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SpecError(f"over {MAX_FILE_BYTES} bytes: not {what}", str(path))
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise SpecError("is not UTF-8 text", str(path)) from None


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value in a YAML file, and its location."""

    value: Any
    """A plain value, a dict of Nodes by key, or a list of Nodes."""
    location: str
    """`file:line:column` of its key, or of the list item."""

    def get(self, key: str) -> Any:
        """Return the plain value of a key; None if there is none."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return None if found is None else plain_values(found)

    def __contains__(self, key: object) -> bool:
        return isinstance(self.value, dict) and key in self.value


def parse_yaml(text: str, where: str, what: str, keys: str) -> YamlNode:
    """Parse a YAML text that must be a mapping. what, keys: its name and keys for messages.

    Raises SpecError with line and column.
    """
    tree = load_yaml(text, where, what)
    if not isinstance(tree, CommentedMap):
        raise SpecError(f"{what} is a mapping of keys ({keys})", where)
    return _node(tree, where, f"{where}:1:1")


def _node(tree: Any, where: str, location: str) -> YamlNode:
    if isinstance(tree, CommentedMap):
        found = {}
        for key, value in tree.items():
            own = key in (tree.lc.data or ())  # a key merged in by `<<` is elsewhere
            at = _location(where, tree.lc.key(key)) if own else location
            found[str(key)] = _node(value, where, at)
        return YamlNode(found, location)
    if isinstance(tree, CommentedSeq):
        items = [(value, tree.lc.item(index)) for index, value in enumerate(tree)]
        return YamlNode(
            [_node(value, where, _location(where, at)) for value, at in items], location
        )
    return YamlNode(_scalar(tree), location)


def _location(where: str, at: tuple[int, int]) -> str:
    line, column = at
    return f"{where}:{line + 1}:{column + 1}"


def load_yaml(text: str, where: str, what: str, *, kind: str = "rt") -> Any:
    """Parse a YAML text. kind: `rt` keeps locations, `safe` gives plain types.

    Raises SpecError with line and column, also for more than `MAX_NODES` values.
    """
    depth = deepest = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise SpecError(f"brackets nested {deepest} deep; at most {MAX_DEPTH} are accepted", where)
    yaml = YAML(typ=kind, pure=True)
    yaml.Composer = _BoundedComposer
    yaml.allow_duplicate_keys = False
    try:
        return yaml.load(text)
    except DuplicateKeyError as error:
        mark = error.problem_mark
        key = str(error.problem).split("found duplicate key ")[-1].split(" with value")[0]
        raise SpecError(f"duplicate key {key}; give each key once", _mark(where, mark)) from None
    except _BoundError as error:
        raise SpecError(f"{what}: {error.problem}", _mark(where, error.problem_mark)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context)
        begun = error.context_mark
        # of a key, a quote or a bracket; a block may have begun anywhere before
        if begun and mark and begun.line < mark.line and " block " not in str(error.context):
            problem += f" in what begins in line {begun.line + 1}"
        hint = next((text for start, text in _HINTS if problem.startswith(start)), "")
        raise SpecError(f"not YAML: {problem}{hint}", _mark(where, mark)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", where) from None


def _mark(where: str, mark: Any) -> str:
    return where if mark is None else f"{where}:{mark.line + 1}:{mark.column + 1}"


def _scalar(value: Any) -> Any:
    """Convert a value to the types of `json`; other types become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value)


def plain_values(node: YamlNode) -> Any:
    """Convert a tree to the types of `json`, without locations."""
    if isinstance(node.value, dict):
        return {key: plain_values(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [plain_values(value) for value in node.value]
    return node.value


def _deeper(node: YamlNode, part: str | int) -> YamlNode | None:
    found: YamlNode | None = None
    if isinstance(node.value, dict):
        found = node.value.get(str(part))
    elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
        found = node.value[part]
    return found


def yaml_path(tree: YamlNode, loc: Iterable[str | int]) -> tuple[str | int, ...]:
    """Convert a location of pydantic: without tags of unions, ending at the deepest existing
    word."""
    path: list[str | int] = []
    node = tree
    for part in loc:
        found = _deeper(node, part)
        if found is not None:
            path.append(part)
            node = found
    return tuple(path)


def located_message(tree: YamlNode, path: Sequence[str | int], message: str) -> str:
    """Return `file:line:column: a.b.c: message`; if the path is too long, the location of its
    deepest existing word."""
    dotted = ".".join(str(part) for part in path)
    return f"{location_of(tree, path)}: {dotted + ': ' if dotted else ''}{message}"


def location_of(tree: YamlNode, path: Sequence[str | int]) -> str:
    """Return `file:line:column` of the deepest existing word of a path."""
    node = tree
    for part in path:
        found = _deeper(node, part)
        if found is None:
            break
        node = found
    return node.location


def located_error(lines: Iterable[str], where: str) -> SpecError:
    """Make one error of several lines, each with its location; equal lines appear once.

    where: the file, which is all that `SpecError.where` gets.
    """
    error = SpecError("\n".join(dict.fromkeys(lines)))
    error.where = where
    return error
