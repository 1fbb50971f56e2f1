"""Games for store tests that need no rules: any number is a move, and its code is the number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from variant_ai.core.data.game_record import RESULTS, GameRecord
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.data.store.stored_moves import Codes, RulesCodec
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec import builtin_specs, load_spec

SPEC = load_spec(builtin_specs()["xiangqi"])
OTHER = load_spec(builtin_specs()["crazyhouse"])


class FakeCodec(RulesCodec):
    """Moves are codes; a start position remembers its FEN's length."""

    def start(self, fen: str | None) -> Position:
        position = np.zeros(1, POSITION)
        position["ply"] = len(fen or "")
        return position

    def encode(self, fen: str | None, moves: Sequence[int]) -> Codes:
        return np.asarray(moves, np.uint16)

    def decode(self, fen: str | None, codes: Codes) -> list[int]:
        return [int(code) for code in codes]

    def encode_choices(
        self, fen: str | None, moves: Sequence[int], choices: Sequence[Sequence[int]]
    ) -> Codes:
        assert len(choices) == len(moves)
        return np.array([move for listed in choices for move in listed], np.uint16)

    def decode_choices(
        self, fen: str | None, codes: Codes, counts: Sequence[int], choices: Codes
    ) -> list[int]:
        assert len(counts) == len(codes) and sum(counts) == len(choices)
        return [int(code) for code in choices]


CODEC = FakeCodec(SPEC)


def write(path: Path, games: Sequence[GameRecord], **options: object) -> Path:
    with StoreWriter(path, SPEC, codec=CODEC, **options) as writer:  # type: ignore[arg-type]
        for game in games:
            writer.add(game)
    return path


def read(path: Path) -> Store:
    return Store(path, SPEC, codec=CODEC)


def game(number: int = 0, plies: int = 5, **facts: object) -> GameRecord:
    """A plain game, different for every number."""
    moves = [(number * 31 + ply * 7) % 4500 for ply in range(plies)]
    return GameRecord(variant=SPEC.variant, moves=moves, **facts)  # type: ignore[arg-type]


texts = st.text(max_size=12)
visited = st.tuples(st.integers(0, 65535), st.integers(1, 1000) | st.integers(1, (1 << 32) - 1))
scores = st.none() | st.integers(-32000, 32000)
root_value = st.none() | st.integers(-10_000, 10_000).map(lambda steps: steps / 10_000)


@st.composite
def records(draw: st.DrawFn) -> GameRecord:
    """Any game a reader could yield, and then some: odd texts, no moves, missing everything."""
    plies = draw(st.integers(0, 12))
    moves = draw(st.lists(st.integers(0, 65535), min_size=plies, max_size=plies))
    lists = st.none() | st.lists(scores, min_size=plies, max_size=plies)
    at_a_ply = st.lists(visited, max_size=4).map(tuple)
    visits = st.none() | st.lists(at_a_ply, min_size=plies, max_size=plies)
    root_values = st.none() | st.lists(root_value, min_size=plies, max_size=plies)
    trains = st.none() | st.lists(st.integers(0, 3), min_size=plies, max_size=plies)
    return GameRecord(
        variant=SPEC.variant,
        moves=moves,
        start_fen=draw(st.none() | st.text(min_size=1, max_size=8)),
        result=draw(st.sampled_from(RESULTS)),
        white=draw(texts),
        black=draw(texts),
        white_elo=draw(st.none() | st.integers(-5, 4000)),
        black_elo=draw(st.none() | st.integers(-5, 4000)),
        date=draw(st.sampled_from(["", "2008", "2008.05.31", "1955.??.??", "????.??.??", "x"])),
        event=draw(texts),
        site=draw(texts),
        round=draw(texts),
        eco=draw(texts),
        time_control=draw(texts),
        termination=draw(texts),
        group=draw(texts),
        source=draw(texts),
        number=draw(st.integers(0, 1 << 40)),
        scores=draw(lists),
        clocks=draw(lists),
        visits=draw(visits),
        root_values=draw(root_values),
        trains=draw(trains),
        generation=draw(st.none() | st.integers(0, (1 << 31) - 1)),
        comments=draw(st.dictionaries(st.integers(-1, plies), texts, max_size=3)),
        tags=draw(st.dictionaries(texts, texts, max_size=3)),
    )
