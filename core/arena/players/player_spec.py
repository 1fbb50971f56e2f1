"""Descriptions of players: a short text on the command line, or a YAML file.

    fairy-stockfish                                    a program that speaks UCI
    xboard:sjeng;name=Sjeng;depth=4                    another protocol, limits of its own
    uci:sjaakii -uci;option.Hash=64;letters=also
    net:model.onnx;nodes=800;search.cpuct_init=2.2     a network with search settings
    net:model.onnx;settings=paper                      with a named set of the variant's spec
    net:-;evaluator=uniform;nodes=800                  a search without a network
    random                                             any legal move

The same words are the keys of a YAML file (`option.Hash=64` is `options: {Hash: 64}` there).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from variant_ai.core.arena.match.time_control import Allowance
from variant_ai.core.errors import SettingError, SpecError, UnknownNameError, unknown
from variant_ai.core.spec.search_settings import setting

PROTOCOLS = ("uci", "ucci", "cyclone", "xboard")
RANDOM = "random"
_HEAD = re.compile(rf"(?P<kind>{'|'.join((*PROTOCOLS, 'net'))}):(?P<rest>.*)", re.DOTALL)
M = TypeVar("M", bound=BaseModel)
_GROUPS = {"option": "options", "search": "search"}


class Limits(BaseModel):
    """Limits of each move; several may be given, the first one met ends the search."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clock: str | None = Field(
        default=None, description="[MOVES/]BASE[+INCREMENT] in seconds, or 15:00+5"
    )
    movetime: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="seconds for each move"
    )
    nodes: int | None = Field(
        default=None, ge=1, description="nodes, or simulations, for each move"
    )
    depth: int | None = Field(default=None, ge=1, description="plies of each search")

    def allowance(self) -> Allowance:
        """Raises SettingError where the clock cannot be read."""
        clock = Allowance.parse(self.clock) if self.clock else Allowance()
        return Allowance(
            base=clock.base,
            increment=clock.increment,
            moves=clock.moves,
            movetime=None if self.movetime is None else max(1, round(1000 * self.movetime)),
            nodes=self.nodes,
            depth=self.depth,
        )


class PlayerSpec(Limits):
    """A player. Exactly one of `command`, `net` and `random` says who moves."""

    name: str = Field(default="", description="in tables; a program's own name where empty")
    command: str = Field(default="", description="program with its arguments")
    protocol: Literal["uci", "ucci", "cyclone", "xboard"] = Field(
        default="uci", description="protocol of the program"
    )
    options: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="options of the program: {Hash: 64}"
    )
    lines: tuple[str, ...] = Field(default=(), description="sent at every start (xboard)")
    variant: str | None = Field(default=None, description="the program's name of the variant")
    ranks: Literal[0, 1] | None = Field(
        default=None, description="number of the first rank; left out, the protocol's way"
    )
    letters: Literal["own", "also"] = Field(
        default="own", description="letters of FENs: the spec's, or those it reads besides"
    )
    restart: bool = Field(default=False, description="a fresh process for each game")
    optional: bool = Field(
        default=False, description="left out of the match if its program is not installed"
    )
    ponder: bool = Field(
        default=False, description="a program thinks while the other side does; nets do not"
    )
    timeout: float = Field(default=20.0, gt=0, description="seconds to start and to be ready")

    net: str = Field(default="", description="network: an ONNX file")
    evaluator: str = Field(default="auto", description="program that runs the network")
    settings: str = Field(
        default="default", description="named set of search settings of the variant's spec"
    )
    search: dict[str, Any] = Field(
        default_factory=dict, description="settings of the search (docs/search.md)"
    )
    threads: int | None = Field(default=None, ge=1, description="threads of the evaluator")

    random: bool = Field(default=False, description="any legal move")

    @property
    def label(self) -> str:
        """What to call the player before it has said its name."""
        net = self.evaluator if self.net == "-" else net_name(self.net)
        return self.name or net or self.command or RANDOM

    @property
    def option_texts(self) -> dict[str, str]:
        """Options as the protocol writes them."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.options.items()
        }


def net_name(net: str) -> str:
    """Name of a net in tables: that of its file, or of its run, whose files all have one name."""
    path = Path(net)
    if path.suffix != ".onnx" or path.stem not in ("model", "model-int8"):
        name = path.stem if path.suffix == ".onnx" else path.name
        return path.parent.parent.name or name if path.parent.name == "checkpoints" else name
    return path.resolve().parent.name


def parse_player(text: str) -> PlayerSpec:
    """A player from its text, or the YAML file that the text names. Raises SettingError."""
    if text.endswith((".yaml", ".yml")) and ";" not in text:
        return player_of(read_yaml(Path(text)), text)
    head, *rest = (part.strip() for part in text.split(";"))
    said: dict[str, Any] = {}
    match = _HEAD.fullmatch(head)
    if match and match["kind"] == "net":
        said["net"] = match["rest"].strip()
    elif match:
        said.update(protocol=match["kind"], command=match["rest"].strip())
    elif head == RANDOM:
        said["random"] = True
    else:
        said["command"] = head
    for part in filter(None, rest):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise SettingError(f"player {text!r}: {part!r} is not KEY=VALUE")
        group, dot, inner = key.partition(".")
        if dot and group in _GROUPS:
            # the declaration of a setting of the search says how to read it, see `player_of`
            plain = value if group == "search" else _plain(value)
            said.setdefault(_GROUPS[group], {})[inner] = plain
        elif key == "lines":
            said.setdefault("lines", []).append(value)
        else:
            said[key] = _plain(value) if key not in ("name", "variant", "clock") else value
    return player_of(said, text)


def player_of(said: object, where: str) -> PlayerSpec:
    """A player from a mapping, or from a text inside a YAML file. Raises SettingError."""
    if isinstance(said, str):
        return parse_player(said)
    spec = checked(PlayerSpec, said, f"player {where!r}")
    if bool(spec.command) + bool(spec.net) + spec.random != 1:
        raise SettingError(f"player {where!r}: it needs one of command, net and random")
    spec.allowance()
    return spec.model_copy(update={"search": _search_settings(spec, f"player {where!r}")})


def _search_settings(player: PlayerSpec, where: str) -> dict[str, Any]:
    """Checked search settings of a player; texts are parsed. Raises SettingError."""
    found = {}
    try:
        for name, value in player.search.items():
            row = setting(name)
            found[name] = row.parse(value) if isinstance(value, str) else value
            row.check(found[name])
    except (SettingError, UnknownNameError) as error:
        raise SettingError(f"{where}: {error}") from error
    return found


def checked(model: type[M], said: object, where: str) -> M:
    """A pydantic model of what was said. Raises SettingError naming the key and what is wrong."""
    if not isinstance(said, dict):
        raise SettingError(f"{where}: a mapping is expected, not {type(said).__name__}")
    try:
        return model.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            at = model.model_fields if len(first["loc"]) == 1 else ()
            raise SettingError(f"{where}: {unknown('key', key, sorted(at))}") from error
        message = "a list is expected" if first["type"] == "tuple_type" else first["msg"]
        raise SettingError(f"{where}: {key}: {message}, given {first['input']!r:.60}") from error


def read_yaml(path: Path) -> object:
    """Raises SettingError where the file cannot be read."""
    from variant_ai.core.spec.located import load_yaml, read_text

    what = "a file of players or of a match"
    try:
        return load_yaml(read_text(path, what), str(path), what, kind="safe")
    except SpecError as error:
        raise SettingError(str(error)) from None


def _plain(value: str) -> str | int | float | bool:
    """A number or truth value where the text is one."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
