"""YAML files that people write, and the file:line:column of what is wrong in them.

Every YAML file is read here, so that none takes more time or memory than a spec may.
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
"""Open brackets at once; the parser's time grows with the square of it."""
MAX_NODES = 20_000
"""Values, lists and mappings of a file, those behind an alias as often as it is used. The largest
spec or experiment that comes with the program has under 300."""


class _BoundError(MarkedYAMLError):
    """YAML, but more of it than is read."""


class _BoundedComposer(Composer):
    """Counts nodes while they are read. Ten lines of aliases of aliases stand for billions, which
    take no memory until somebody walks through them."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self._count = 0
        self._sizes: dict[int, int] = {}
        """Nodes in a finished node, itself included, by its id."""

    def compose_node(self, parent: Any, index: int) -> Any:
        before = self._count
        is_alias = self.parser.check_event(AliasEvent)
        mark = self.parser.peek_event().start_mark
        node = super().compose_node(parent, index)
        if is_alias and id(node) not in self._sizes:
            raise _BoundError(problem="an alias of what it stands in", problem_mark=mark)
        self._count += self._sizes[id(node)] if is_alias else 1
        self._sizes.setdefault(id(node), self._count - before)
        if self._count > MAX_NODES:
            problem = f"over {MAX_NODES:,} values (aliases count as often as they are used)"
            raise _BoundError(problem=problem, problem_mark=mark)
        return node


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


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value of a YAML file and where it stands."""

    value: Any
    """A plain value, a dict of Nodes by key, or a list of Nodes."""
    location: str
    """`file:line:column` of its key, or of the item in a list."""

    def get(self, key: str) -> Any:
        """The plain value of a key; None without one."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return None if found is None else plain_values(found)

    def __contains__(self, key: object) -> bool:
        return isinstance(self.value, dict) and key in self.value


def parse_yaml(text: str, where: str, what: str, keys: str) -> YamlNode:
    """The mapping that a YAML text is. `what` it should be (`a spec`), of which `keys`.

    Raises SpecError with line and column.
    """
    tree = load_yaml(text, where, what)
    if not isinstance(tree, CommentedMap):
        raise SpecError(f"{what} is a mapping of keys ({keys})", where)
    return _node(tree, where, f"{where}:1:1")


def _node(tree: Any, where: str, place: str) -> YamlNode:
    if isinstance(tree, CommentedMap):
        found = {}
        for key, value in tree.items():
            own = key in tree.lc.data  # merged in by `<<` it stands elsewhere
            at = _place(where, tree.lc.key(key)) if own else place
            found[str(key)] = _node(value, where, at)
        return YamlNode(found, place)
    if isinstance(tree, CommentedSeq):
        items = [(value, tree.lc.item(index)) for index, value in enumerate(tree)]
        return YamlNode([_node(value, where, _place(where, at)) for value, at in items], place)
    return YamlNode(_scalar(tree), place)


def _place(where: str, at: tuple[int, int]) -> str:
    line, column = at
    return f"{where}:{line + 1}:{column + 1}"


def load_yaml(text: str, where: str, what: str, *, kind: str = "rt") -> Any:
    """The tree of a YAML text. `kind`: `rt` keeps the places of its words, `safe` has plain types.

    Raises SpecError with line and column; also for more than `MAX_NODES` values.
    """
    depth = deepest = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise SpecError(f"brackets nested {deepest} deep; {what} needs no more than 5", where)
    yaml = YAML(typ=kind, pure=True)
    yaml.Composer = _BoundedComposer
    yaml.allow_duplicate_keys = False
    try:
        return yaml.load(text)
    except DuplicateKeyError as error:
        mark = error.problem_mark
        key = str(error.problem).split("found duplicate key ")[-1].split(" with value")[0]
        raise SpecError(f"duplicate key {key}; each key stands once", _mark(where, mark)) from None
    except _BoundError as error:
        raise SpecError(f"{what}: {error.problem}", _mark(where, error.problem_mark)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SpecError(f"not YAML: {error.problem or error.context}", _mark(where, mark)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", where) from None


def _mark(where: str, mark: Any) -> str:
    return where if mark is None else f"{where}:{mark.line + 1}:{mark.column + 1}"


def _scalar(value: Any) -> Any:
    """A value in the types of `json`; what JSON has no word for becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value)


def plain_values(node: YamlNode) -> Any:
    """The same tree in the types of `json`, without places."""
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
    """pydantic's location without the tags of unions, ending at the deepest word that exists."""
    path: list[str | int] = []
    node = tree
    for part in loc:
        found = _deeper(node, part)
        if found is not None:
            path.append(part)
            node = found
    return tuple(path)


def located_message(tree: YamlNode, path: Sequence[str | int], message: str) -> str:
    """`file:line:column: a.b.c: message`; a path too long for the tree ends where the tree does."""
    dotted = ".".join(str(part) for part in path)
    return f"{location_of(tree, path)}: {dotted + ': ' if dotted else ''}{message}"


def location_of(tree: YamlNode, path: Sequence[str | int]) -> str:
    """`file:line:column` of the deepest word of a path that exists."""
    node = tree
    for part in path:
        found = _deeper(node, part)
        if found is None:
            break
        node = found
    return node.location


def located_error(lines: Iterable[str], where: str) -> SpecError:
    """One error of several lines, each with its place; a line said twice stands once."""
    error = SpecError("\n".join(dict.fromkeys(lines)))
    error.where = where
    return error
