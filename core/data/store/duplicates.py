"""Games that are the same: one start, the same moves, whoever played them and wherever they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from variant_ai.core.data.store.stored_moves import Codes

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store

DIGEST_BYTES = 16


class Seen:
    """Games met so far, 16 bytes of each."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def is_new(self, start_fen: str | None, codes: Codes) -> bool:
        """Whether the game was not met before; it is from now on. `start_fen`: None or empty for the
        spec's start, as stores have it."""
        fen = (start_fen or "").encode("utf-8", "surrogatepass")
        told = fen + b"\0" + codes.tobytes()
        key = hashlib.blake2b(told, digest_size=DIGEST_BYTES).digest()
        if key in self._digests:
            return False
        self._digests.add(key)
        return True

    def new_of(self, store: Store, games: Iterable[int] | None = None) -> list[int]:
        """Games of a store, all or those of the indices, that were not met before."""
        ends, starts, fens = store.offsets, store.start_of, store.start_fens
        return [
            i
            for i in (range(len(store)) if games is None else games)
            if self.is_new(fens[starts[i]], store.codes[ends[i] : ends[i + 1]])
        ]
