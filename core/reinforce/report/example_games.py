"""Games of some generations as boards, for the report of a run."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.write.text_output import move_texts
from variant_ai.core.draw import board_svg, png_bytes
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.report.report_page import Board, BoardRow

EVERY = 10
"""Generations from one game that is shown to the next."""
MOST_GAMES = 10
BOARDS = 24
"""Boards of a game, at most."""
PIXELS = 230
"""Width of a board."""
COLOURS = 64
"""Colours of a board's picture, which make it small."""


def shown_generations(generations: Sequence[int]) -> list[int]:
    """Choose the generations whose games are shown: the first, every tenth and the last; of a long run
    MOST_GAMES, evenly spaced."""
    if not generations:
        return []
    chosen = [
        number
        for number in generations
        if number % EVERY == 0 or number in (generations[0], generations[-1])
    ]
    if len(chosen) <= MOST_GAMES:
        return chosen
    kept = np.linspace(0, len(chosen) - 1, MOST_GAMES).round().astype(int)
    return [chosen[index] for index in kept]


def example_game(store: Store) -> GameRecord | None:
    """Return the game of median length, the first of several; None if the store is empty."""
    if len(store) == 0:
        return None
    order = np.argsort(store.lengths, kind="stable")
    median = store.lengths[order[(len(order) - 1) // 2]]
    return store.game(int(np.flatnonzero(store.lengths == median)[0]))


def game_boards(generation: int, record: GameRecord, rules: Rules) -> BoardRow:
    """Draw a game: at most BOARDS positions, evenly spaced after the random plies, the last one among
    them. Raises FenError for a damaged start.
    """
    texts = move_texts(rules, SanNotation(), record)
    first = min(record.opening_plies, len(texts))
    count = min(BOARDS, len(texts) - first + 1)
    shown = {int(ply) for ply in np.linspace(first, len(texts), count).round()}
    position = rules.position(record.start_fen)
    boards = []
    for ply in range(len(texts) + 1):
        if ply in shown:
            last = record.moves[ply - 1] if ply else None
            svg = board_svg(
                rules.spec, position, last_move=last, show_coordinates=False, size=PIXELS
            )
            boards.append(Board(_small_png(svg), _caption(record, texts, ply)))
        if ply < len(texts):
            position = rules.play(position, record.moves[ply])
    title = (
        f"Generation {generation}, game {record.number}: {record.result}, {record.termination}, "
        f"{counted(record.plies, 'ply')}"
    )
    return BoardRow(title, _numbered(texts, first), boards)


def _caption(record: GameRecord, texts: Sequence[str], ply: int) -> str:
    """The move that led to a board, with its ply from 1, and the root value of the search for it."""
    if ply == 0:
        return "start"
    value = None
    if record.root_values and ply > record.opening_plies:
        value = record.root_values[ply - 1]
    return f"{ply}. {texts[ply - 1]}" + ("" if value is None else f"\n{value:+.2f}")


def _numbered(texts: Sequence[str], first: int) -> str:
    """All moves with their plies; those of a random opening in brackets."""
    moves = [f"{ply}. {text}" for ply, text in enumerate(texts, 1)]
    opening = f"[{' '.join(moves[:first])}] " if first else ""
    return opening + " ".join(moves[first:])


def _small_png(svg: str) -> bytes:
    from PIL import Image

    small = io.BytesIO()
    with Image.open(io.BytesIO(png_bytes(svg, width=PIXELS))) as image:
        image.convert("RGB").quantize(COLOURS).save(small, "png", optimize=True)
    return small.getvalue()
