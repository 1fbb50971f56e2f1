"""Files of crazyhouse games: PGN of chess servers, drops as `N@g5`, `P@h6` or `@h6`."""

from __future__ import annotations

from variant_ai.core.data.read.pgn import PgnReader


def crazyhouse_pgn() -> PgnReader:
    """Reader of PGN in SAN; a `Variant` header is optional, and checked if there is one."""
    return PgnReader("crazyhouse-pgn", notations=("san", "uci"))
