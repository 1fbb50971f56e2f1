"""Players and openings as commands name them, made into those of the arena."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.cli.common.console import note

if TYPE_CHECKING:
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.arena.match.match_settings import OpeningSettings
    from variant_ai.core.arena.players.net_player import Searcher
    from variant_ai.core.arena.players.player import Player
    from variant_ai.core.arena.players.player_spec import PlayerSpec
    from variant_ai.core.rules.interface import Rules


NO_NET = "-"
"""`net:-;evaluator=uniform`: a search without a network."""


def make_player(spec: PlayerSpec, rules: Rules, seed: int = 0) -> Player:
    """A player, not yet started. Raises EngineError where its program does not exist."""
    from variant_ai.core.arena.players.net_player import NetPlayer
    from variant_ai.core.arena.players.player import RandomPlayer
    from variant_ai.core.arena.programs.engine_process import engine_command
    from variant_ai.core.arena.programs.program_player import external_player
    from variant_ai.plugins import registry

    if spec.random:
        return RandomPlayer(spec.label, seed)
    if spec.net:
        return NetPlayer(
            lambda: make_search(spec, rules),
            spec.label,
            net_digest(registry().net(rules.spec, Path(spec.net))),
        )
    return external_player(
        rules,
        spec.protocol,
        engine_command(spec.command),
        name=spec.name,
        variant=spec.variant,
        options=spec.option_texts,
        lines=spec.lines,
        first_rank=spec.ranks,
        other_letters=spec.letters == "also",
        restart=spec.restart,
        ponder=spec.ponder,
        timeout=spec.timeout,
    )


def require_player(spec: PlayerSpec, folder: Path | None) -> None:
    """Raises EngineError or DataError if a player's program or net does not exist."""
    from variant_ai.core.arena.programs.engine_process import engine_command
    from variant_ai.core.engine.packaged_nets import PACKAGED
    from variant_ai.core.errors import DataError

    if spec.command:
        engine_command(spec.command)
    if spec.net and spec.net not in (NO_NET, PACKAGED) and not beside(spec.net, folder).exists():
        raise DataError(f"player {spec.label!r}: there is no net {spec.net}")


def net_digest(path: Path) -> str:
    """Digest of a net's file, or of those that may be it in a run directory, 16 hex digits; empty
    if there is none."""
    files = [path]
    if path.is_dir():
        newest = sorted(path.glob("checkpoints/step-*/model.safetensors"))[-1:]
        files = [path / "model.onnx", path / "model.safetensors", *newest]
    found = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.blake2b(b"".join(found), digest_size=8).hexdigest() if found else ""


def make_search(spec: PlayerSpec, rules: Rules) -> Searcher:
    """A search with the player's network and settings."""
    from variant_ai.core.search.search import Search
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.plugins import registry

    params = SearchParams.of(rules.spec, spec.settings, **spec.search)
    evaluator = registry().evaluator(
        rules.spec,
        None if spec.net == NO_NET else Path(spec.net),
        evaluator=spec.evaluator,
        batch=params.batch_size,
        threads=spec.threads,
    )
    return Search(rules.spec, evaluator, params, rules=rules)


def load_openings(
    settings: OpeningSettings, rules: Rules, seed: int, *, folder: Path | None = None
) -> tuple[Opening, ...]:
    """The openings of a match. Files are looked for here, then in `folder`. Raises DataError."""
    from variant_ai.cli.common.notation_options import make_resolver
    from variant_ai.core.arena.games.openings import (
        Opening,
        drawn_from_store,
        line_openings,
        played_out,
    )
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.errors import DataError

    found: list[Opening] = []
    if settings.lines:
        found += line_openings(settings.lines, make_resolver(rules.spec))
    if settings.file is not None:
        path = beside(settings.file, folder)
        found += file_openings(path, settings.plies, rules, count=settings.count, seed=seed)
    if settings.store is not None:
        store = Store(beside(settings.store, folder), rules.spec)
        plies = (settings.least, settings.most)
        found += drawn_from_store(store, rules, settings.count or 100, plies, seed)
    if not found:
        return (Opening(),)
    usable: list[Opening] = []
    over: list[str] = []
    for number, opening in enumerate(found, start=1):
        end = played_out(rules, opening).outcome()
        if end is None:
            usable.append(opening)
        else:
            over.append(f"{number} ({end.reason})")
        if len(usable) == settings.count:
            break
    said = ", ".join(over[:10]) + (", …" if len(over) > 10 else "")
    if not usable:
        raise DataError(f"the game is over at the end of every opening: {said}")
    if over:
        note(f"openings left out, the game is over there: {said}")
    return tuple(usable)


def file_openings(
    path: Path, plies: int, rules: Rules, *, count: int | None = None, seed: int = 0
) -> tuple[Opening, ...]:
    """Openings of a file: positions of .epd and .fen, `count` lines drawn of a Polyglot book
    (.bin), else the first plies of its games."""
    from variant_ai.cli.common.notation_options import make_resolver, readers
    from variant_ai.core.arena.games.openings import POSITION_SUFFIXES, read_lines, read_positions
    from variant_ai.core.arena.games.polyglot import BOOK_SUFFIX, book_lines
    from variant_ai.core.data.read.game_files import unpacked_suffix

    suffix = unpacked_suffix(path)
    if suffix in POSITION_SUFFIXES:
        return read_positions(path, rules)
    if suffix == BOOK_SUFFIX:
        return book_lines(path, rules, plies, count=count, seed=seed)
    spec = rules.spec
    every = list(readers(spec).values())
    return read_lines(path, plies, every, lambda: make_resolver(spec), note)


def beside(name: str, folder: Path | None) -> Path:
    """A path as given, or where there is nothing, from `folder`."""
    path = Path(name)
    if folder is not None and not path.exists() and (folder / path).exists():
        return folder / path
    return path
