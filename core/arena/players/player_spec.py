"""Descriptions of players: a short text on the command line, or a YAML file. Advice on programs that play
by other rules.

    fairy-stockfish                                    a program that speaks UCI
    xboard:sjeng;name=Sjeng;depth=4                    another protocol, limits of its own
    uci:sjaakii -uci;option.Hash=64;letters=also
    net:model.onnx;nodes=800;search.cpuct_init=2.2     a network with search settings
    net:model.onnx;settings=paper                      with a named set of the variant's spec
    net:-;evaluator=material;nodes=800                 a search without a network
    model.onnx, packaged                               short for net:model.onnx and net:packaged
    random                                             any legal move

A YAML file has the same keys (`option.Hash=64` is `options: {Hash: 64}` there).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from variant_ai.core.arena.players.player import LONGEST_WAIT, Allowance
from variant_ai.core.errors import SettingError, SpecError, UnknownNameError
from variant_ai.core.factories import PROGRAM_PROTOCOLS
from variant_ai.core.spec.catalogue import PACKAGED
from variant_ai.core.spec.search_settings import setting
from variant_ai.core.system.checked_models import Place, checked
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec

    Protocol = str
else:
    Protocol = Literal[PROGRAM_PROTOCOLS.names]

RANDOM = "random"
_HEAD = re.compile(
    rf"(?P<kind>{'|'.join((*PROGRAM_PROTOCOLS.names, 'net'))}):(?P<rest>.*)", re.DOTALL
)
_GROUPS = {"option": "options", "search": "search"}


class MoveLimits(BaseModel):
    """Limits of each move; the first one reached ends the search."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    clock: str | None = None
    """[MOVES/]BASE[+INCREMENT] in seconds, or 15:00+5."""
    movetime: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds for each move."""
    nodes: int | None = Field(default=None, ge=1)
    """Nodes, or simulations, for each move."""
    depth: int | None = Field(default=None, ge=1)
    """Plies of each search."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: object, info: ValidationInfo) -> object:
        """Reject true and false as numbers, which pydantic takes for 1 and 0."""
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and {int, float} & {kind, *get_args(kind)}:
            raise ValueError("a number is expected")
        return value

    @field_validator("clock", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        """Take a number of seconds as the text that it is on the command line."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number else value

    def allowance(self) -> Allowance:
        """Convert the limits. Raises SettingError if the clock cannot be parsed."""
        clock = Allowance.parse(self.clock) if self.clock else Allowance()
        return replace(
            clock,
            movetime=None if self.movetime is None else max(1, round(1000 * self.movetime)),
            nodes=self.nodes,
            depth=self.depth,
        )


class PlayerSpec(MoveLimits):
    """A player. Exactly one of `command`, `net` and `random` is given."""

    name: str = ""
    """Name in tables; if empty, a program's own name."""
    command: str = ""
    """Program with its arguments."""
    protocol: Protocol = "uci"
    """Protocol of the program."""
    options: dict[str, str | int | float | bool] = {}
    """Options of the program: {Hash: 64}."""
    lines: tuple[str, ...] = ()
    """Sent at every start (xboard)."""
    variant: str | None = None
    """The program's name of the variant."""
    ranks: int | None = Field(default=None, ge=0, le=1)
    """Number of the first rank; by default that of the protocol."""
    letters: Literal["own", "also"] = "own"
    """Letters in FENs: the spec's own, or its alternatives (`also`)."""
    restart: bool = False
    """Start a new process for each game."""
    optional: bool = False
    """Leave the player out if its program is not installed."""
    ponder: bool = False
    """A program thinks during the other side's turn; nets do not."""
    timeout: float = Field(default=20.0, gt=0, le=LONGEST_WAIT)
    """Seconds to start and to be ready."""

    net: str = ""
    """Net: an ONNX file, a run folder, `packaged`, or `-` for a search without a net."""
    evaluator: str = "auto"
    """Program that runs the network."""
    settings: str = "default"
    """Named set of search settings of the variant's spec."""
    search: dict[str, Any] = {}
    """Settings of the search (docs/search.md)."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of the evaluator."""

    random: bool = False
    """Any legal move."""

    @property
    def label(self) -> str:
        """Name of the player until it reports its own."""
        net = self.evaluator if self.net == "-" else net_name(self.net)
        return self.name or net or self.command or RANDOM

    @property
    def option_texts(self) -> dict[str, str]:
        """Options as text."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.options.items()
        }


def net_name(net: str) -> str:
    """Name of a net in tables: that of its file, or of its run if the file has a standard name."""
    path = Path(net)
    if path.suffix != ".onnx" or path.stem not in ("model", "model-int8"):
        name = path.stem if path.suffix == ".onnx" else path.name
        return path.parent.parent.name or name if path.parent.name == "checkpoints" else name
    return path.resolve().parent.name


def names_net(text: str) -> bool:
    """Return True if a player's text names a net: `net:FILE`, `packaged`, or a file `.onnx` and not a
    program with such an argument."""
    head = text.partition(";")[0].strip()
    if match := _HEAD.fullmatch(head):
        return match["kind"] == "net"
    one_word = len(head.split()) == 1 or Path(head).is_file()
    return head == PACKAGED or (head.endswith(".onnx") and one_word)


def parse_player(text: str) -> PlayerSpec:
    """Parse a player's text, or the YAML file that it names. Raises SettingError."""
    if text.endswith((".yaml", ".yml")) and ";" not in text:
        return player_of(read_yaml(Path(text)), f"player {text!r}")
    head, *rest = (part.strip() for part in text.split(";"))
    given: dict[str, Any] = {}
    match = _HEAD.fullmatch(head)
    if match and match["kind"] == "net":
        given["net"] = match["rest"].strip()
    elif match:
        given.update(protocol=match["kind"], command=match["rest"].strip())
    elif head == RANDOM:
        given["random"] = True
    elif names_net(head):
        given["net"] = head
    else:
        given["command"] = head
    for part in filter(None, rest):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise SettingError(f"player {text!r}: {part!r} is not KEY=VALUE")
        group, dot, inner = key.partition(".")
        if dot and group in _GROUPS:
            # texts: a program gets its options as they are written, `player_of` parses those of a search
            given.setdefault(_GROUPS[group], {})[inner] = value
        elif key == "lines":
            given.setdefault("lines", []).append(value)
        else:
            given[key] = _plain(value) if key not in ("name", "variant", "clock") else value
    return player_of(given, f"player {text!r}")


def player_of(given: object, origin: Place) -> PlayerSpec:
    """Check a player given as a mapping or as text. Raises SettingError."""
    if isinstance(given, str):
        return parse_player(given)
    spec = checked(PlayerSpec, given, origin)
    where = origin if isinstance(origin, str) else origin(())
    if bool(spec.command) + bool(spec.net) + spec.random != 1:
        raise SettingError(f"{where}: give exactly one of command, net and random")
    spec.allowance()
    return spec.model_copy(update={"search": _search_settings(spec, where)})


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


def program_variant(player: PlayerSpec, spec: VariantSpec) -> str:
    """The name by which a program is asked to play a variant."""
    return player.variant or spec.fairy or spec.variant


def advice_on_rules(name: str, asked: str, spec: VariantSpec, games: int) -> str:
    """Return a sentence about a program that broke the rules in some games, for the user.

    Programs answer for an older position when they reject a move that the spec allows, so that a legal
    game of the other side looks like an illegal move of theirs.
    """
    return (
        f"{name} broke the rules of {spec.variant} in {counted(games, 'game')}, which say nothing about its "
        f"strength: it was asked to play {asked!r}, and may know other rules by that name than the spec. "
        "Give it a file with these rules (`VariantPath`, an option of Fairy-Stockfish; the name in the file is "
        "`variant=` of a player), or play by another spec of the game (`variant-ai variants` lists them)."
    )


def read_yaml(path: Path) -> object:
    """Read a YAML file. Raises SettingError."""
    from variant_ai.core.spec.files.yaml_reader import load_yaml, read_text

    what = "a file of a player"
    try:
        return load_yaml(read_text(path, what), str(path), what, kind="safe")
    except SpecError as error:
        raise SettingError(str(error)) from None


def _plain(value: str) -> str | int | float | bool:
    """Convert a text to a number or truth value, if it is one."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
