"""Moves of games as 16-bit codes, and the replay that decodes them.

A store keeps moves as codes (`MoveCodec`), which can only be decoded by playing the game. Merging,
filtering, splitting, statistics and the arrays of the sampler use codes without a replay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import MoveError
from variant_ai.core.rules.interface import Rules, positions_before
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.encoding import MoveCodec

Codes = NDArray[np.uint16]
MAX_STARTS = 4096
"""Start positions that are cached."""


class RulesCodec:
    """Encoder and decoder of the moves of a game, which is played with the rules of the variant,
    compiled if the kernel has them. Errors are MoveError with the ply, and FenError."""

    def __init__(self, spec: VariantSpec, rules: Rules | None = None) -> None:
        self.spec = spec
        self._rules = rules

    @cached_property
    def rules(self) -> Rules:
        if self._rules is not None:
            return self._rules
        from variant_ai.core.rules import make_rules

        return make_rules(self.spec)

    @cached_property
    def _codec(self) -> MoveCodec:
        from variant_ai.core.encoding import MoveCodec

        return MoveCodec(self.spec)

    @cached_property
    def start(self) -> Callable[[str | None], Position]:
        """Start position of a game by its FEN; None is that of the variant."""
        return lru_cache(MAX_STARTS)(self.rules.position)

    def encode(self, fen: str | None, moves: Sequence[int]) -> Codes:
        """Codes of the moves played from `fen`."""
        return self._codec.encode_game(self.rules, self.start(fen), moves)

    def decode(self, fen: str | None, codes: Codes) -> list[int]:
        """Move integers of the codes."""
        return self._codec.decode_game(self.rules, self.start(fen), codes)

    def encode_choices(
        self, fen: str | None, moves: Sequence[int], choices: Sequence[Sequence[int]]
    ) -> Codes:
        """Codes of moves of the position before each ply, ply after ply."""
        codes = [
            self._at(ply, self._codec.encode, position, move)
            for ply, position in enumerate(self._before(fen, moves))
            for move in choices[ply]
        ]
        return np.array(codes, np.uint16)

    def decode_choices(
        self, fen: str | None, codes: Codes, counts: Sequence[int], choices: Codes
    ) -> list[int]:
        """Move integers of `choices`, of which each ply of the game has `counts`."""
        rest = iter(choices.tolist())
        return [
            self._at(ply, self._codec.decode, position, code)
            for ply, position in enumerate(self._before(fen, self.decode(fen, codes)))
            for code in islice(rest, counts[ply])
        ]

    def _before(self, fen: str | None, moves: Sequence[int]) -> Iterator[Position]:
        return positions_before(self.rules, self.start(fen), moves)

    def _at(
        self, ply: int, work: Callable[[Position, int], int], position: Position, n: int
    ) -> int:
        try:
            return work(position, n)
        except MoveError as error:
            raise MoveError(f"ply {ply + 1}: visited move: {error}") from None


def codes_hash(spec: VariantSpec) -> str:
    """Hash in 16 hex digits of the meaning of the codes: the derived policy planes in order.

    Equal rules give equal planes as long as planes are derived in the same way; the hash in a store
    shows a change of the derivation.
    """
    from variant_ai.core.spec.plane_layout import policy_planes

    planes = [(p.kind, p.dx, p.dy, p.piece) for p in policy_planes(spec, "derived")]
    board = (spec.board.files, spec.board.ranks, spec.board.sides)
    return hashlib.sha256(json.dumps([board, planes]).encode()).hexdigest()[:16]


class SeenGames:
    """Set of games, by a digest of start position and moves, to find duplicates."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def is_new(self, start_fen: str | None, codes: Codes) -> bool:
        """Add a game; return False if it was in the set. `start_fen`: None or empty for the start of
        the spec, as in stores."""
        fen = (start_fen or "").encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(fen + b"\0" + codes.tobytes(), digest_size=16).digest()
        if digest in self._digests:
            return False
        self._digests.add(digest)
        return True

    def new_of(self, store: Store, games: Iterable[int] | None = None) -> list[int]:
        """Add games of a store, all or those of the indices; return those that were not in the set."""
        chosen = range(len(store)) if games is None else list(games)
        every = zip(chosen, store.starts_and_codes(chosen), strict=True)
        return [i for i, (start, codes) in every if self.is_new(start, codes)]
