"""What a match is made of: the keys of a YAML file of `experiments/`, and of `variant-ai match`.

Settings that decide which games are played are kept in the match's folder; a match goes on only
under the same ones. What may change between two runs is in `FREE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.arena.match.pairings import Kind, meetings
from variant_ai.core.arena.match.referee import Conduct, DrawRule, ResignRule
from variant_ai.core.arena.players.player_spec import Limits, PlayerSpec, checked, player_of
from variant_ai.core.arena.tables.sprt import Sprt
from variant_ai.core.errors import SettingError, unknown

FREE = frozenset(
    {"games", "concurrency", "title", "notes", "sprt", "needs", "small", "stop_at_no_shows"}
)
LIMITS = ("clock", "movetime", "nodes", "depth")


class OpeningSettings(BaseModel):
    """Where games begin. Without any source: at the variant's start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str | None = Field(
        default=None, description="EPD, FEN, Polyglot book, PGN, lines of moves"
    )
    lines: tuple[str, ...] = Field(default=(), description="lines of moves, in any notation")
    store: str | None = Field(default=None, description="game store to draw positions from")
    plies: int = Field(
        default=16,
        ge=1,
        description="plies taken of each game of a file, most plies of a line of a book",
    )
    least: int = Field(default=4, ge=0, description="least plies of a position of a store")
    most: int = Field(default=100, ge=0, description="most plies of it (thesis 5.2: 100)")
    count: int | None = Field(
        default=None, ge=1, description="number of openings; of a store 100 by default"
    )
    order: Literal["sequential", "random"] = Field(
        default="sequential", description="order in which they are used"
    )


class MatchSettings(Limits):
    """A match. Limits hold for players that have none of their own."""

    variant: str = Field(description="name of a variant, or path of a spec")
    title: str = Field(default="", description="title of the table")
    notes: tuple[str, ...] = Field(default=(), description="paragraphs for the table's page")
    needs: str = Field(
        default="",
        description="where nets, openings and programs come from, said if one is missing",
    )
    small: dict[str, Any] = Field(
        default_factory=dict, description="settings of a small run, in the place of those above"
    )
    players: tuple[PlayerSpec, ...] = Field(
        min_length=2, description="players: texts as on the command line, or mappings"
    )
    kind: Kind = Field(
        default="round-robin",
        description="everybody meets everybody, or the first players all others, or `pairs`",
    )
    seeds: int = Field(default=1, ge=1, description="first players that meet all others (gauntlet)")
    pairs: tuple[tuple[str, str], ...] = Field(
        default=(), description="names of the players that meet (pairs)"
    )
    games: int = Field(default=2, ge=1, description="games of each pair of players")
    openings: OpeningSettings = Field(
        default=OpeningSettings(), description="first moves; each opening with both colours"
    )
    ponder: bool = Field(
        default=False, description="programs think while the other side does; nets do not"
    )
    margin: float = Field(
        default=0.05, ge=0, allow_inf_nan=False, description="seconds a move may be over its time"
    )
    think: float = Field(default=60.0, gt=0, description="seconds for a move without a time limit")
    max_plies: int = Field(default=600, ge=1, description="a game of more plies is a draw")
    resign: str | None = Field(
        default=None,
        description="MOVES:CENTIPAWNS such as 3:600: a player loses after so many moves in a row "
        "with a score that low; with `:both` the other player must agree",
    )
    draw: str | None = Field(
        default=None,
        description="FIRST_MOVE:MOVES:CENTIPAWNS such as 40:8:10: from a move on, the game is drawn "
        "after so many moves of both with scores that close to 0",
    )
    check_mates: bool = Field(
        default=True, description="who announces a mate in one that is none loses the game"
    )
    stop_at_no_shows: bool = Field(
        default=True, description="a player that lost two games without a move stops the match"
    )
    sprt: tuple[float, float] | tuple[float, float, float, float] | None = Field(
        default=None, description="elo0, elo1, and alpha, beta (0.05 each)"
    )
    concurrency: int = Field(default=1, ge=1, description="games at a time")
    seed: int = Field(default=0, ge=0, description="seed of everything random")

    def meetings(self) -> list[tuple[int, int]]:
        """Who meets whom, by index. Raises SettingError where that makes no match."""
        if (self.kind == "pairs") != bool(self.pairs):
            raise SettingError("`kind: pairs` and `pairs` go together")
        labels = [player.label for player in self.players]
        for name in {name for pair in self.pairs for name in pair}:
            if labels.count(name) != 1:
                raise SettingError(f"pairs: {unknown('player', name, labels)}")
        named = [(labels.index(a), labels.index(b)) for a, b in self.pairs]
        return meetings(len(self.players), self.kind, self.seeds, named)

    def conduct(self) -> Conduct:
        """Raises SettingError where a rule cannot be read."""
        return Conduct(
            margin=round(1000 * self.margin),
            think=self.think,
            max_plies=self.max_plies,
            resign=resign_rule(self.resign) if self.resign else None,
            draw=draw_rule(self.draw) if self.draw else None,
            check_mates=self.check_mates,
        )

    def test(self) -> Sprt | None:
        """The sequential test, None where the match has a fixed length. Raises SettingError."""
        if self.sprt is None:
            return None
        if len(self.players) != 2:
            raise SettingError(f"sprt: it needs two players, not {len(self.players)}")
        return Sprt(*self.sprt)

    def decisive(self) -> dict[str, Any]:
        """What decides which games are played."""
        said = self.model_dump(mode="json", exclude_defaults=True, exclude=set(FREE))
        return {name: said[name] for name in sorted(said)}


def small_scale(said: dict[str, Any], where: str) -> dict[str, Any]:
    """The match with its own settings of a small run in the place of others.

    `divide_nodes: N` there divides the nodes of all players, `replace: [A, B]` writes B for A in
    the paths of nets and stores, and a limit takes the place of all limits of the match. Raises
    SettingError if the match has none.
    """
    small = said.get("small")
    if not isinstance(small, dict) or not small:
        raise SettingError(f"{where}: the match has no settings of a small run (`small`)")
    merged = {name: value for name, value in said.items() if name != "small"}
    if any(name in small for name in LIMITS):
        merged = {name: value for name, value in merged.items() if name not in LIMITS}
    merged |= {k: v for k, v in small.items() if k not in ("divide_nodes", "replace")}
    divisor, replace = small.get("divide_nodes", 1), small.get("replace", ["", ""])
    if not isinstance(divisor, int) or divisor < 1:
        raise SettingError(f"{where}: small.divide_nodes is {divisor!r}; accepted is 1 or more")
    if not isinstance(replace, list) or len(replace) != 2:
        raise SettingError(f"{where}: small.replace is {replace!r}; accepted is [OLD, NEW]")
    old, new = map(str, replace)
    players = []
    for player in merged.get("players") or ():
        if isinstance(player, dict):
            player = dict(player)
            if isinstance(player.get("nodes"), int):  # what is none is refused with its place
                player["nodes"] = max(1, player["nodes"] // divisor)
            if old and "net" in player:
                player["net"] = str(player["net"]).replace(old, new)
        players.append(player)
    return {**merged, "players": players}


def settings_of(
    said: object, where: str, require: Callable[[PlayerSpec], None] = lambda player: None
) -> MatchSettings:
    """Settings of a match from a YAML file or a command line.

    require: raises if a player cannot be had; called before anything is said of limits. Raises
    SettingError.
    """
    if isinstance(said, dict) and isinstance(said.get("players"), (list, tuple)):
        players = [
            player
            if isinstance(player, PlayerSpec)
            else player_of(player, f"{where}, player {number}")
            for number, player in enumerate(said["players"], start=1)
        ]
        said = {**said, "players": players}
    settings = checked(MatchSettings, said, where)
    settings.meetings()
    settings.conduct()
    settings.test()
    for player in settings.players:
        require(player)
    shared = settings.allowance()
    for player in settings.players:
        if not (player.allowance().given or shared.given or player.random):
            raise SettingError(
                f"{where}: nothing limits the moves of {player.label}; give clock, movetime, "
                "nodes or depth"
            )
    return settings


def resign_rule(text: str) -> ResignRule:
    """`3:600`, or `3:600:both`. Raises SettingError."""
    match = re.fullmatch(r"(\d+):(\d+)(:both)?", text)
    if match is None or int(match[1]) < 1:
        raise SettingError(f"resign {text!r}: it is MOVES:CENTIPAWNS, such as 3:600 or 3:600:both")
    return ResignRule(int(match[1]), int(match[2]), bool(match[3]))


def draw_rule(text: str) -> DrawRule:
    """`40:8:10`. Raises SettingError."""
    match = re.fullmatch(r"(\d+):(\d+):(\d+)", text)
    if match is None or int(match[2]) < 1:
        raise SettingError(f"draw {text!r}: it is FIRST_MOVE:MOVES:CENTIPAWNS, such as 40:8:10")
    return DrawRule(int(match[2]), int(match[3]), int(match[1]))
