"""Settings of a match, and the schedule of its games.

The settings are the keys of a YAML file of `experiments/` and the options of `variant-ai match`.
Those that decide which games are played are stored in the match's folder, and a match is only
resumed with the same ones; settings in `FREE` may change.

The schedule is a sequence of numbered pairings that depends on the settings alone, so a match can
be resumed where it stopped. In each round every pair of players plays one opening with both
colours, so the table is fair at any time, and a match with more games has the same first games.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.arena.match.referee import Conduct, DrawRule, ResignRule
from variant_ai.core.arena.players.player import LONGEST_WAIT
from variant_ai.core.arena.players.player_spec import MoveLimits, PlayerSpec, player_of
from variant_ai.core.arena.tables.sprt import Sprt
from variant_ai.core.errors import SettingError, SpecError, unknown
from variant_ai.core.spec.files.yaml_reader import (
    location_of,
    parse_yaml,
    plain_values,
    read_text,
    yaml_path,
)
from variant_ai.core.system.checked_models import checked
from variant_ai.core.system.text_tables import counted

FREE = frozenset(
    {"games", "concurrency", "title", "notes", "sprt", "needs", "small", "stop_at_no_shows"}
)
LIMITS = ("clock", "movetime", "nodes", "depth")
_FILE, _KEYS = "a file of a match", "variant, players, games, ..."
Kind = Literal["round-robin", "gauntlet", "pairs"]


class OpeningSettings(BaseModel):
    """Openings of games; without a source, the variant's start position."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    file: str | None = None
    """File of openings: EPD, FEN, Polyglot book, PGN, lines of moves."""
    lines: tuple[str, ...] = ()
    """Lines of moves, in any notation."""
    store: str | None = None
    """Game store to sample positions from."""
    plies: int = Field(default=16, ge=1)
    """Plies taken from each game of a file, maximum for a line of a book."""
    least: int = Field(default=4, ge=0)
    """Minimum plies before a position of a store."""
    most: int = Field(default=100, ge=0)
    """Maximum plies before it."""
    count: int | None = Field(default=None, ge=1)
    """Number of openings; of a store 100 by default."""
    order: Literal["sequential", "random"] = "sequential"
    """Order in which they are used."""


class MatchSettings(MoveLimits):
    """A match. Limits apply to players that have none of their own."""

    variant: str
    """Name of a variant, or path of a spec."""
    title: str = ""
    """Title of the table."""
    notes: tuple[str, ...] = ()
    """Paragraphs above the table."""
    needs: str = ""
    """Source of nets, openings and programs, printed if one is missing."""
    small: dict[str, Any] = Field(default_factory=dict)
    """Settings of a small run, which override the others."""
    players: tuple[PlayerSpec, ...]
    """Players: texts as on the command line, or mappings."""
    kind: Kind = "round-robin"
    """All players meet each other, or the first players all others, or `pairs`."""
    seeds: int = Field(default=1, ge=1)
    """Number of first players, who meet all others (gauntlet)."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of the players that meet (pairs)."""
    games: int = Field(default=2, ge=1)
    """Games of each pair of players."""
    openings: OpeningSettings = OpeningSettings()
    """First moves; each opening with both colours."""
    ponder: bool = False
    """Programs think during the other side's turn; nets do not."""
    margin: float = Field(default=0.05, ge=0, allow_inf_nan=False)
    """Tolerated overtime in seconds."""
    think: float = Field(default=60.0, gt=0, le=LONGEST_WAIT)
    """Greatest number of seconds for a move of a program that has no time limit."""
    max_plies: int = Field(default=600, ge=1)
    """A game of this length in plies is a draw."""
    resign: str | None = None
    """MOVES:CENTIPAWNS such as 3:600: a player loses after MOVES moves in a row with a score of
    -CENTIPAWNS or less; with `:both` the other player must agree."""
    draw: str | None = None
    """FIRST_MOVE:MOVES:CENTIPAWNS such as 40:8:10: from FIRST_MOVE on, the game is drawn after MOVES
    moves of both players with scores of at most CENTIPAWNS either way."""
    check_mates: bool = True
    """A player that announces a false mate in one loses the game."""
    stop_at_no_shows: bool = True
    """Stop the match if a player has lost two games without making a move."""
    sprt: tuple[float, float] | tuple[float, float, float, float] | None = None
    """Bounds elo0 and elo1, and alpha and beta (0.05 each)."""
    concurrency: int = Field(default=1, ge=1)
    """Games at the same time."""
    seed: int = Field(default=0, ge=0)
    """Seed of everything random."""

    def meetings(self) -> list[tuple[int, int]]:
        """Pairs of players that meet, by index. Raises SettingError."""
        if (self.kind == "pairs") != bool(self.pairs):
            raise SettingError("`kind: pairs` and `pairs` go together")
        labels = [player.label for player in self.players]
        for name in {name for pair in self.pairs for name in pair}:
            if labels.count(name) != 1:
                raise SettingError(f"pairs: {unknown('player', name, labels)}")
        named = [(labels.index(a), labels.index(b)) for a, b in self.pairs]
        return meetings(len(self.players), self.kind, self.seeds, named)

    def conduct(self) -> Conduct:
        """Rules of play. Raises SettingError if a rule cannot be parsed."""
        return Conduct(
            margin=round(1000 * self.margin),
            think=self.think,
            max_plies=self.max_plies,
            resign=resign_rule(self.resign) if self.resign else None,
            draw=draw_rule(self.draw) if self.draw else None,
            check_mates=self.check_mates,
        )

    def test(self) -> Sprt | None:
        """Sequential test; None if the match has a fixed length. Raises SettingError."""
        if self.sprt is None:
            return None
        if len(self.players) != 2:
            raise SettingError(f"sprt: it needs two players, not {len(self.players)}")
        return Sprt(*self.sprt)

    def decisive(self) -> dict[str, Any]:
        """Settings that decide which games are played."""
        given = self.model_dump(mode="json", exclude_defaults=True, exclude=set(FREE))
        return {name: given[name] for name in sorted(given)}


def small_scale(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Override settings of a match by its own settings of a small run.

    There, `divide_nodes: N` divides the nodes of all players, `replace: [A, B]` replaces A by B in
    the paths of nets, and a limit replaces all limits of the match. Raises SettingError
    if the match has no such settings.
    """
    small = given.get("small")
    if not isinstance(small, dict) or not small:
        raise SettingError(f"{where}: the match has no settings of a small run (`small`)")
    merged = {name: value for name, value in given.items() if name != "small"}
    if any(name in small for name in LIMITS):
        merged = {name: value for name, value in merged.items() if name not in LIMITS}
    merged |= {k: v for k, v in small.items() if k not in ("divide_nodes", "replace")}
    divisor, replace = small.get("divide_nodes", 1), small.get("replace", ["", ""])
    if not isinstance(divisor, int) or divisor < 1:
        raise SettingError(f"{where}: small.divide_nodes is {divisor!r}; it must be 1 or more")
    if not isinstance(replace, list) or len(replace) != 2:
        raise SettingError(f"{where}: small.replace is {replace!r}; it must be [OLD, NEW]")
    old, new = map(str, replace)
    players = []
    for player in merged.get("players") or ():
        if isinstance(player, dict):
            player = dict(player)
            if isinstance(player.get("nodes"), int):  # other types are reported later
                player["nodes"] = max(1, player["nodes"] // divisor)
            if old and "net" in player:
                player["net"] = str(player["net"]).replace(old, new)
        players.append(player)
    return {**merged, "players": players}


def read_match(path: Path) -> dict[str, Any]:
    """Read the settings of a match from a YAML file; players may be missing. Raises SettingError with
    file and line for a wrong value."""
    try:
        tree = parse_yaml(read_text(path, _FILE), str(path), _FILE, _KEYS)
    except SpecError as error:
        raise SettingError(str(error)) from None
    given: dict[str, Any] = plain_values(tree)

    def place(path: Sequence[str | int]) -> str:
        return location_of(tree, yaml_path(tree, path))

    def place_in_player(index: int, path: Sequence[str | int]) -> str:
        return f"{place(('players', index, *path))}: player {index + 1}"

    players = given.get("players", [])
    if isinstance(players, list):
        for index, player in enumerate(players):
            player_of(player, partial(place_in_player, index))
        others = {key: value for key, value in given.items() if value is not None}
        others |= {"players": [PlayerSpec(random=True)] * 2}
        checked(MatchSettings, {"variant": "", **others}, place)
    return given


def settings_of(
    given: object, where: str, require: Callable[[PlayerSpec], None] = lambda player: None
) -> MatchSettings:
    """Check the settings of a match from a YAML file or a command line.

    where: their origin, for error messages. require: raises if a player is not available; called
    before limits are checked. Raises SettingError.
    """
    if isinstance(given, dict) and isinstance(given.get("players"), (list, tuple)):
        players = [
            player
            if isinstance(player, PlayerSpec)
            else player_of(player, f"{where}, player {number}")
            for number, player in enumerate(given["players"], start=1)
        ]
        given = {**given, "players": players}
    settings = checked(MatchSettings, given, where)
    settings.meetings()
    settings.conduct()
    settings.test()
    for player in settings.players:
        require(player)
    shared = settings.allowance()
    for player in settings.players:
        if not (player.allowance().given or shared.given or player.random):
            raise SettingError(
                f"{where}: player {player.label} has no limit; give clock, movetime, nodes or depth"
            )
    return settings


def resign_rule(text: str) -> ResignRule:
    """Parse `3:600` or `3:600:both`. Raises SettingError."""
    match = re.fullmatch(r"(\d+):(\d+)(:both)?", text)
    if match is None or int(match[1]) < 1:
        raise SettingError(
            f"resign {text!r}: expected MOVES:CENTIPAWNS, such as 3:600 or 3:600:both"
        )
    return ResignRule(int(match[1]), int(match[2]), bool(match[3]))


def draw_rule(text: str) -> DrawRule:
    """Parse `40:8:10`. Raises SettingError."""
    match = re.fullmatch(r"(\d+):(\d+):(\d+)", text)
    if match is None or int(match[2]) < 1:
        raise SettingError(f"draw {text!r}: expected FIRST_MOVE:MOVES:CENTIPAWNS, such as 40:8:10")
    return DrawRule(int(match[2]), int(match[3]), int(match[1]))


# --- pairings ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairing:
    """One game to be played; players and openings by index."""

    number: int
    """Counted from 0, in the order of play."""
    round: int
    """Counted from 0; the two games with one opening are in the same round."""
    first: int
    """Player who moves first in the variant."""
    second: int
    opening: int


def meetings(
    players: int, kind: Kind, seeds: int = 1, pairs: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Pairs of players that meet: all, in a gauntlet each of the first `seeds` players with each of
    the others, or the given `pairs`. Raises SettingError if a player would have no games."""
    if players < 2:
        raise SettingError(f"a match needs two players, not {players}")
    if kind == "gauntlet" and not 0 < seeds < players:
        raise SettingError(
            f"a gauntlet of {counted(players, 'player')} has 1 to {counted(players - 1, 'seed')}"
        )
    if kind == "pairs":
        if len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise SettingError("pairs: two players meet once; give them more games")
        if any(a == b for a, b in pairs):
            raise SettingError("pairs: a player meets another one, not itself")
        if missing := set(range(players)) - {player for pair in pairs for player in pair}:
            raise SettingError(f"pairs: player {min(missing) + 1} is in no pair")
        return list(pairs)
    return [
        (a, b)
        for a in range(players)
        for b in range(a + 1, players)
        if kind == "round-robin" or a < seeds <= b
    ]


def pairings(
    pairs: Sequence[tuple[int, int]], games: int, openings: Sequence[int]
) -> Iterator[Pairing]:
    """Games of a match: `games` for each pair, the k-th round with `openings[k]`, which start again
    after the last."""
    number = 0
    for k in range((games + 1) // 2):
        opening = openings[k % len(openings)]
        for a, b in pairs:
            for game, (first, second) in enumerate(((a, b), (b, a))):
                if 2 * k + game < games:
                    yield Pairing(number, k, first, second, opening)
                number += 1


def opening_order(count: int, order: Literal["sequential", "random"], seed: int) -> list[int]:
    """Indices of the openings in the order of rounds."""
    indices = list(range(count))
    if order == "random":
        random.Random(f"openings {seed}").shuffle(indices)
    return indices
