"""The mate-in-one set: positions from stored games in which a move wins at once.

[CrazyAra-preprint] section 8 and table 10: 1,000 positions of the test set, with 115.8 legal moves on
average, of which 1.62 mate. Here a move mates if the rules end the game in the position after it and
the mover wins: checkmate, a stalemate that loses, a variant's own win. So the set exists for every
variant.

N positions, n legal moves of one position, A actions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.jit import Number, Truth, njit
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.game_ends import end_of
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.kernel.movegen import VARIANT_ENDS, legal_moves_into, new_work
from variant_ai.core.rules.kernel.play_move import is_in_check, play_into
from variant_ai.core.rules.kernel.table_layout import NEVER_CHECKS, MoveLists, Tables, new_moves
from variant_ai.core.rules.position import POSITION, Position, new_position
from variant_ai.core.spec.hashing import rules_hash
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.text_tables import counted

COUNT = 1000
"""Number of positions in the published set."""
FORMAT = 1
TOP = 5


@dataclass(frozen=True)
class MateSet:
    """N positions, each with at least one move that wins at once."""

    variant: str
    rules_hash: str
    positions: Position
    """[N] dtype POSITION."""
    mates: tuple[tuple[int, ...], ...]
    """[N] the mating moves of each position, ascending."""
    legal: NDArray[np.int64]
    """[N] number of legal moves."""
    seed: int
    scanned: int
    """Number of positions searched to find these."""

    def __len__(self) -> int:
        return len(self.mates)

    @property
    def legal_moves(self) -> float:
        """Mean number of legal moves."""
        return float(self.legal.mean())

    @property
    def mating_moves(self) -> float:
        """Mean number of mating moves."""
        return float(np.mean([len(moves) for moves in self.mates]))


@dataclass(frozen=True)
class MateMetrics:
    """Results of a net on a mate-in-one set ([CrazyAra-preprint] table 10)."""

    positions: int
    legal_moves: float
    mating_moves: float
    accuracy: float
    """Share of positions where the legal move with the greatest logit mates."""
    top5_accuracy: float
    """Share of positions where one of the five legal moves with the greatest logits mates."""
    unmasked_accuracy: float
    """Share of positions where the action with the greatest logit is a mating move."""
    value_loss: float
    """Mean of (1 - v)²: the mover has won."""


# --- finding -------------------------------------------------------------------------------------


def find_mates(
    source: Sampler,
    rules: Rules,
    count: int = COUNT,
    *,
    advance: Callable[[int], None] = lambda n: None,
) -> MateSet:
    """Find the first `count` distinct positions with a mate in one, in the source's shuffled order.

    They depend on the games and the source's seed. `advance` is called with the number found. There
    are fewer than `count` if the games have no more. Raises DataError if they have none.
    """
    found: list[Position] = []
    mates: list[tuple[int, ...]] = []
    legal: list[int] = []
    seen: set[tuple[bytes, ...]] = set()
    scanned = 0
    finder = _Finder(rules)
    for batch in source.sweep(shuffle=True):
        for at in range(len(batch)):
            moves, n = finder(batch.positions, at)
            if not moves:
                continue
            position = batch.positions[at : at + 1].copy()
            identity = tuple(
                position[0][name].tobytes() for name in ("board", "hands", "side", "passes")
            )
            if identity in seen:
                continue
            seen.add(identity)
            found.append(position)
            mates.append(moves)
            legal.append(n)
            advance(1)
            if len(found) == count:
                scanned += at + 1
                break
        if len(found) == count:
            break
        scanned += len(batch)
    if not found:
        raise DataError(f"none of the {counted(scanned, 'position')} has a move that wins at once")
    return MateSet(
        rules.spec.variant,
        rules_hash(rules.spec),
        np.concatenate(found),
        tuple(mates),
        np.asarray(legal, np.int64),
        source.seed,
        scanned,
    )


class _Finder:
    """Finds the moves of a position that win at once."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        if is_compiled(rules):
            self._moves, self._replies, self._work = new_moves(2), new_moves(2), new_work()
            self._after, self._tables = new_position(), rules.tables
            table = rules.tables[0]
            mates_win = rules.types.royal >= 0 and table["checkmate"] < 0
            others = int(table["features"]) & (VARIANT_ENDS | NEVER_CHECKS)
            self._only_checks = int(mates_win and not others)

    def __call__(self, positions: Position, at: int) -> tuple[tuple[int, ...], int]:
        """All moves of `positions[at]` that win at once, ascending, and the number of legal moves.

        In variants with a royal piece, none for a position whose only winning move gives stalemate
        (rare, and slow to find), because moves that give no check are looked at only beside a mate.
        """
        if not is_compiled(self.rules):
            return self._by_playing(positions[at : at + 1])
        kept, n = self._winning(positions, at, self._only_checks)
        if kept and self._only_checks:
            kept, n = self._winning(positions, at, 0)
        return tuple(sorted(self._moves["move"][0, :kept].tolist())), n

    def _winning(self, positions: Position, at: int, only_checks: int) -> tuple[int, int]:
        """Put the winning moves into the front of the list; return their number and that of all."""
        tables = self._tables
        n = int(legal_moves_into(tables, positions, at, self._moves, self._work))
        kept = keep_mates(
            tables, positions, at, only_checks, self._after, self._moves, n, self._replies, self._work
        )  # fmt: skip
        return int(kept), n

    def _by_playing(self, position: Position) -> tuple[tuple[int, ...], int]:
        us = int(position[0]["side"])
        moves = self.rules.legal_moves(position).tolist()
        mates = []
        for move in moves:
            outcome = self.rules.outcome(self.rules.play(position, move))
            if outcome is not None and outcome.winner == us:
                mates.append(move)
        return tuple(sorted(mates)), len(moves)


@njit
def wins_at_once(
    t: Tables, p: Position, i: Number, move: Number, only_checks: Number,
    after: Position, replies: MoveLists, work: MoveWork,
) -> Truth:  # fmt: skip
    """Return True if the legal move wins position `p[i]` at once; with `only_checks`, only a check
    counts."""
    only = np.int64(0)  # a literal would be another signature
    play_into(t, p, i, after, only, move)
    if only_checks and not is_in_check(t, after, only):
        return False
    count = np.int64(legal_moves_into(t, after, only, replies, work))
    end = np.int64(end_of(t, after, only, count, np.int64(work[0]["check"])))
    return end >> 3 == np.int64(p[i]["side"]) + 1


@njit
def keep_mates(
    t: Tables, p: Position, i: Number, only_checks: Number, after: Position,
    moves: MoveLists, n: Number, replies: MoveLists, work: MoveWork,
) -> Number:  # fmt: skip
    """Move the winning moves among the n legal `moves` of `p[i]` to the front; return their number.

    t TABLES shape (1,); only_checks as for `wins_at_once`; after POSITION shape (1,) is scratch;
    moves and replies `new_moves(2)`; work `new_work()`.
    """
    kept = np.int64(0)
    for k in range(n):
        move = np.int64(moves[0]["move"][k])
        if wins_at_once(t, p, np.int64(i), move, np.int64(only_checks), after, replies, work):
            moves[0]["move"][kept] = move
            kept += 1
    return kept


# --- measuring -----------------------------------------------------------------------------------


def measure_mates(
    predict: Callable[[NDArray[np.float32]], Any],
    mates: MateSet,
    rules: Rules,
    encoder: Encoder,
    *,
    batch: int = 256,
) -> MateMetrics:
    """Measure a net on the set. `predict` is a `Predictor`."""
    hits = top = unmasked = 0
    error = 0.0
    for first in range(0, len(mates), batch):
        positions = mates.positions[first : first + batch]
        output = predict(encoder.planes(positions))
        values = np.asarray(output[0], np.float64).reshape(-1)
        error += float(((1 - values) ** 2).sum())
        for k, logits in enumerate(output[1]):
            position = positions[k : k + 1]
            legal = encoder.action_indices(position, rules.legal_moves(position).tolist())
            winning = encoder.action_indices(position, list(mates.mates[first + k]))
            order = legal[np.argsort(-logits[legal], kind="stable")]
            hits += int(order[0] in winning)
            top += bool(np.isin(order[:TOP], winning).any())
            unmasked += int(int(np.argmax(logits)) in winning)
    n = len(mates)
    return MateMetrics(
        n, mates.legal_moves, mates.mating_moves, hits / n, top / n, unmasked / n, error / n
    )


# --- files ---------------------------------------------------------------------------------------


def save_mates(path: str | os.PathLike[str], mates: MateSet, rules: Rules) -> None:
    """Write JSON lines: a header, then one position a line, with moves in UCI."""
    head = {
        "format": FORMAT,
        "variant": mates.variant,
        "rules_hash": mates.rules_hash,
        "seed": mates.seed,
        "scanned": mates.scanned,
        "positions": len(mates),
        "legal_moves": round(mates.legal_moves, 3),
        "mating_moves": round(mates.mating_moves, 3),
    }
    lines: list[dict[str, Any]] = [head]
    for k, (moves, legal) in enumerate(zip(mates.mates, mates.legal.tolist(), strict=True)):
        position = mates.positions[k : k + 1]
        line: dict[str, Any] = {
            "fen": rules.fen(position),
            "mates": [rules.uci(move) for move in moves],
            "legal": legal,
        }
        repeated = int(position[0]["repetitions"])
        if repeated:  # not in the FEN, but there may be a plane for it
            line["repetitions"] = repeated
        if passes := int(position[0]["passes"]):  # not in the FEN; the next one ends the game
            line["passes"] = passes
        last = np.trim_zeros(position[0]["last_moves"], "b").tolist()
        if last:  # also not in the FEN
            line["last_moves"] = last
        lines.append(line)
    write_whole(Path(path), "".join(json.dumps(line) + "\n" for line in lines).encode())


def load_mates(path: str | os.PathLike[str], rules: Rules) -> MateSet:
    """Read a file of `save_mates`; each move must be legal.

    Raises DataError if it is not such a file, of another variant or rules, or has a wrong position.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no mate-in-one set {path}")
    try:
        head, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        version, variant, of_rules = (head[key] for key in ("format", "variant", "rules_hash"))
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise DataError(
            f"{path} is not a mate-in-one set; make one with `variant-ai store mates`"
        ) from None
    spec = rules.spec
    if version != FORMAT:
        raise DataError(f"{path} has format {version}; this version reads format {FORMAT}")
    if variant != spec.variant:
        raise DataError(f"{path} has positions of {variant}, not of {spec.variant}")
    if of_rules != rules_hash(spec):
        raise DataError(f"{path} was made under other rules of {variant}; make it again")
    positions = np.zeros(len(lines), POSITION)
    mates, legal = [], np.zeros(len(lines), np.int64)
    for k, line in enumerate(lines):
        try:
            position = rules.position(line["fen"])
            position[0]["passes"] = line.get("passes", 0)
            by_name = {rules.uci(move): move for move in rules.legal_moves(position).tolist()}
            mates.append(tuple(sorted(by_name[text] for text in line["mates"])))
            position[0]["repetitions"] = line.get("repetitions", 0)
            last = line.get("last_moves", [])
            position[0]["last_moves"][: len(last)] = last
        except (KeyError, TypeError, ValueError, OverflowError, VariantAIError) as error:
            raise DataError(f"{path}, line {k + 2}: {error}") from None
        positions[k] = position[0]
        legal[k] = len(by_name)
    if not mates or not all(mates):
        raise DataError(f"{path} has no positions, or one without a mating move")
    seed, scanned = head.get("seed", 0), head.get("scanned", 0)
    return MateSet(variant, of_rules, positions, tuple(mates), legal, seed, scanned)
