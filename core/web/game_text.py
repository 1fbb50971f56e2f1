"""Games that a visitor pastes: the first game of a text, in any format that can be imported."""

from __future__ import annotations

import io
from collections.abc import Sequence

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import GameReader, choose_reader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.errors import DataError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation

SOURCE = "pasted text"


def read_game(
    text: str, rules: Rules, notations: Sequence[Notation], readers: Sequence[GameReader]
) -> GameRecord:
    """Return the first game of a text. Raises DataError that says where reading stopped."""
    data = text.strip().encode()
    reader = choose_reader(readers, f"{SOURCE}.pgn", data[:4096])
    if reader is None:
        names = ", ".join(one.name for one in readers)
        raise DataError(f"this is no game in a known format; accepted: {names}")
    raw = next(iter(reader.read(io.BufferedReader(io.BytesIO(data)), SOURCE)), None)
    if raw is None:
        raise DataError("there is no game in this text")
    found = Resolver(rules, notations).resolve(raw)
    if not isinstance(found, GameRecord):
        raise DataError(found.detail or found.reason)
    return found
