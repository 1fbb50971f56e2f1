"""`extends:` in a spec that contains only its differences from another one.

    extends: crazyhouse          a name, or the path of a file beside this one
    variant: my-crazyhouse
    input: [inherited, {halfmove: {max: 100}}]

Mappings are merged key by key, all other values are replaced. A key with `null` removes the
parent's. In a list the item `inherited` stands for the parent's items. The parent's keys keep
their order and new ones follow, since the order of pieces is the order of planes. The hashes of
the result are those of the same spec written out in full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from variant_ai.core.errors import SpecError, unknown
from variant_ai.core.spec.catalogue import SPEC_SUFFIXES, builtin_specs
from variant_ai.core.spec.files.fairy_ini import read_ini
from variant_ai.core.spec.files.yaml_reader import YamlNode, parse_yaml, plain_values, read_text

EXTENDS = "extends"
INHERITED = "inherited"
FAIRY_INI = "fairy_ini"
MAX_PARENTS = 20


def _ignore(_: Path) -> None:
    pass


def read_spec_file(path: Path, on_file: Callable[[Path], object] = _ignore) -> YamlNode:
    """`read_spec_tree` of a file. on_file: called with each file that belongs to the spec, before it is
    read. Raises SpecError."""
    on_file(path)
    return read_spec_tree(read_text(path, "a variant spec"), str(path), path.parent, on_file)


def read_spec_tree(
    text: str,
    where: str,
    folder: Path | None = None,
    on_file: Callable[[Path], object] = _ignore,
) -> YamlNode:
    """Parse a spec and merge it with those it extends. Raises SpecError with file, line and column.

    where: precedes line and column in messages. folder: of the spec's file; parents are searched
    there first, then among the specs that come with the program.
    """
    return _resolved(_parsed(text, where), where, folder, (), on_file)


def _parsed(text: str, where: str) -> YamlNode:
    return parse_yaml(text, where, "a spec", "spec, variant, board, pieces, …")


def _resolved(
    own: YamlNode,
    where: str,
    folder: Path | None,
    chain: tuple[Path, ...],
    on_file: Callable[[Path], object],
) -> YamlNode:
    own = _with_ini(own, folder, on_file)
    if EXTENDS not in own:
        return own
    parent = own.value[EXTENDS]
    path = _find(parent, folder)
    if path in chain or len(chain) >= MAX_PARENTS:
        names = " → ".join(p.name for p in (*chain, path))
        raise SpecError(f"{EXTENDS}: a spec cannot extend itself ({names})", parent.location)
    on_file(path)
    text = read_text(path, "a variant spec")
    whole = _resolved(_parsed(text, str(path)), str(path), path.parent, (*chain, path), on_file)
    rest = YamlNode({key: node for key, node in own.value.items() if key != EXTENDS}, own.location)
    return _merged(whole, rest)


def _with_ini(own: YamlNode, folder: Path | None, on_file: Callable[[Path], object]) -> YamlNode:
    """Replace the file named by `fairy_ini` with its text, so that a spec is whole by itself."""
    given = own.value.get(FAIRY_INI)
    name = None if given is None else given.value
    if not isinstance(name, str) or "\n" in name or name.lstrip().startswith("["):
        return own
    path = (folder or Path()) / name
    on_file(path)
    try:
        text = read_text(path, "a file of Fairy-Stockfish's variants")
    except SpecError as error:
        raise SpecError(f"{FAIRY_INI}: {error}", given.location) from None
    read_ini(text, str(path))
    return YamlNode({**own.value, FAIRY_INI: YamlNode(text, given.location)}, own.location)


def _find(parent: YamlNode, folder: Path | None) -> Path:
    """Find the file that a spec extends."""
    name = parent.value
    if not isinstance(name, str):
        raise SpecError(
            f"{EXTENDS}: given {plain_values(parent)!r}; accepted: the name of a variant, or the path of a "
            "spec",
            parent.location,
        )
    if name.endswith(SPEC_SUFFIXES):
        path = Path(name).expanduser()
        path = path if folder is None else folder / path
        if not path.is_file():
            raise SpecError(f"{EXTENDS}: there is no file {path}", parent.location)
        return path.resolve()
    beside = [] if folder is None else [folder / f"{name}{suffix}" for suffix in SPEC_SUFFIXES]
    found = next((path for path in beside if path.is_file()), builtin_specs().get(name))
    if found is None:
        known = unknown("variant", name, sorted(builtin_specs()))
        raise SpecError(f"{EXTENDS}: {known}, or the path of a spec", parent.location)
    return found.resolve()


def is_inherited(tree: YamlNode, key: str) -> bool:
    """Return True if a key of a merged spec comes from the file of another spec."""
    own, there = (node.location.rsplit(":", 2)[0] for node in (tree, tree.value[key]))
    return own != there


def _merged(parent: YamlNode | None, child: YamlNode) -> YamlNode:
    """Merge two values. In a mapping, None removes the parent's key."""
    if isinstance(child.value, list):
        return YamlNode(_merged_list(parent, child.value), child.location)
    if not isinstance(child.value, dict):
        return child
    keys: dict[str, YamlNode] = {}
    if parent is not None and isinstance(parent.value, dict):
        keys.update(parent.value)
    for key, node in child.value.items():
        if node.value is None and key in keys:
            del keys[key]
        else:
            keys[key] = _merged(keys.get(key), node)
    return YamlNode(keys, child.location)


def _merged_list(parent: YamlNode | None, items: Sequence[YamlNode]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item.value != INHERITED:
            found.append(item)
        elif parent is not None and isinstance(parent.value, list):
            found += parent.value
        else:
            raise SpecError(
                f"`{INHERITED}` stands for the items of the extended spec, which has no such list",
                item.location,
            )
    return found
