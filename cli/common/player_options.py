"""Players and openings of commands, made from texts that `core/arena/players/player_spec.py` parses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.cli.common.console import note
from variant_ai.cli.common.options import make_resolver
from variant_ai.core.errors import DataError
from variant_ai.core.spec.catalogue import PACKAGED

if TYPE_CHECKING:
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.arena.match.match_settings import OpeningSettings
    from variant_ai.core.arena.players.player import Player
    from variant_ai.core.arena.players.player_spec import PlayerSpec
    from variant_ai.core.inference.interface import Evaluator
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.settings import SearchParams


NO_NET = "-"
"""`net:-;evaluator=material`: a search without a network."""
KEPT_VISITS = 32
"""Moves stored of each search: with 800 visits and noise, they have 99 % of the visits."""


def make_player(
    spec: PlayerSpec,
    rules: Rules,
    seed: int = 0,
    *,
    kept_visits: int = 0,
    soft_options: Mapping[str, str] | None = None,
) -> Player:
    """Make a player; it is not started. kept_visits: see `NetPlayer`. soft_options: see
    `program_player`. Raises EngineError if its program does not exist."""
    from variant_ai.core.arena.players.net_player import NetPlayer
    from variant_ai.core.arena.players.player import RandomPlayer
    from variant_ai.core.arena.programs.program_player import program_player
    from variant_ai.plugins import registry

    if spec.random:
        return RandomPlayer(spec.label, seed)
    if spec.net:
        return NetPlayer(
            lambda: make_search(spec, rules),
            spec.label,
            net_digest(registry().net(rules.spec, Path(spec.net))),
            kept_visits=kept_visits,
        )
    return program_player(spec, rules, soft_options=soft_options)


def steady_player(
    spec: PlayerSpec,
    rules: Rules,
    *,
    hash_mb: int = 16,
    lines: int = 1,
) -> Player:
    """Make a player whose searches of a number of nodes can be repeated: one thread, and tables that
    every new game clears. hash_mb: memory of a program. lines: moves that a program compares."""
    from variant_ai.core.arena.programs.program_player import UciPlayer

    soft = {"Threads": "1", "Hash": str(hash_mb)} | ({"MultiPV": str(lines)} if lines > 1 else {})
    player = make_player(spec, rules, kept_visits=KEPT_VISITS, soft_options=soft)
    if isinstance(player, UciPlayer):
        player.resets_threads = True
    return player


def require_player(spec: PlayerSpec, folder: Path | None) -> None:
    """Raises EngineError or DataError if a player's program or net does not exist."""
    from variant_ai.core.arena.programs.engine_process import engine_command

    if spec.command:
        engine_command(spec.command)
    if spec.net and spec.net not in (NO_NET, PACKAGED) and not beside(spec.net, folder).exists():
        raise DataError(f"player {spec.label!r}: there is no net {spec.net}")


def net_digest(path: Path) -> str:
    """Digest of a net's file, or of the files in a run folder that may hold the net, 16 hex digits;
    empty if there is none."""
    files = [path]
    if path.is_dir():
        newest = sorted(path.glob("checkpoints/step-*/model.safetensors"))[-1:]
        files = [path / "model.onnx", path / "model.safetensors", *newest]
    found = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.blake2b(b"".join(found), digest_size=8).hexdigest() if found else ""


def make_search(spec: PlayerSpec, rules: Rules) -> BaseSearch:
    """Make a search with the player's network and settings."""
    from variant_ai.core.search.interface import make_search as search_of

    params = search_params(spec, rules)
    return search_of(rules.spec, load_net(spec, rules, params.batch_size), params, rules=rules)


def search_params(spec: PlayerSpec, rules: Rules) -> SearchParams:
    """Return the search settings of a net. Raises UnknownNameError for an unknown set of them."""
    from variant_ai.core.search.settings import SearchParams

    return SearchParams.of(rules.spec, spec.settings, **spec.search)


def load_net(spec: PlayerSpec, rules: Rules, batch: int) -> Evaluator:
    """Load the network of a player for batches of this size. Raises DataError."""
    from variant_ai.plugins import registry

    return registry().evaluator(
        rules.spec,
        None if spec.net == NO_NET else Path(spec.net),
        evaluator=spec.evaluator,
        batch=batch,
        threads=spec.threads,
    )


def load_openings(
    settings: OpeningSettings,
    rules: Rules,
    seed: int,
    *,
    folder: Path | None = None,
    max_plies: int | None = None,
) -> tuple[Opening, ...]:
    """Openings of a match, without those at whose end the game is over. Files are looked up in the
    current folder, then in `folder`. max_plies: length at which a game is ended. Raises DataError."""
    from variant_ai.core.arena.games.openings import (
        line_openings,
        played_out,
        random_starts,
        sampled_from_store,
    )
    from variant_ai.core.data.store.game_store import Store

    found: list[Opening] = []
    if settings.lines:
        found += line_openings(settings.lines, make_resolver(rules.spec))
    if settings.file is not None:
        path = beside(settings.file, folder)
        found += file_openings(path, settings.plies, rules, count=settings.count, seed=seed)
    if settings.store is not None:
        store = Store(beside(settings.store, folder), rules.spec)
        plies = (settings.least, settings.most)
        found += sampled_from_store(store, rules, settings.count or 100, plies, seed)
    if not found:
        return random_starts(rules, settings.count, seed)
    usable: list[Opening] = []
    over: list[str] = []
    for number, opening in enumerate(found, start=1):
        game = played_out(rules, opening)
        end = game.outcome()
        if end is not None:
            over.append(f"{number} ({end.reason})")
        elif max_plies is not None and game.ply >= max_plies:
            over.append(f"{number} ({game.ply} plies, at most {max_plies})")
        else:
            usable.append(opening)
        if len(usable) == settings.count:
            break
    listed = ", ".join(over[:10]) + (", …" if len(over) > 10 else "")
    if not usable:
        raise DataError(f"the game is over at the end of every opening: {listed}")
    if over:
        note(f"openings left out because the game is over at their end: {listed}")
    return tuple(usable)


def file_openings(
    path: Path, plies: int, rules: Rules, *, count: int | None = None, seed: int = 0
) -> tuple[Opening, ...]:
    """Openings of a file: positions of .epd and .fen, `count` lines sampled from a Polyglot book
    (.bin), else the first plies of its games."""
    from variant_ai.core.arena.games.openings import (
        BOOK_SUFFIX,
        POSITION_SUFFIXES,
        book_lines,
        read_lines,
        read_positions,
    )
    from variant_ai.core.data.read.game_files import unpacked_suffix
    from variant_ai.plugins import registry

    suffix = unpacked_suffix(path)
    if suffix in POSITION_SUFFIXES:
        return read_positions(path, rules)
    if suffix == BOOK_SUFFIX:
        return book_lines(path, rules, plies, count=count, seed=seed)
    spec = rules.spec
    every = list(registry().readers(spec).values())
    return read_lines(path, plies, every, lambda: make_resolver(spec), note)


def beside(name: str, folder: Path | None) -> Path:
    """The path as given; if it does not exist, the one in `folder` if that exists."""
    path = Path(name)
    if folder is not None and not path.exists() and (folder / path).exists():
        return folder / path
    return path
