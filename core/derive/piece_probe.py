"""Movement of one piece: found by probing, and put into Betza words and zones.

The piece is put on every square, alone and among enemies, which shows the displacements it has with
and without capture, and where. On the square where it has most moves, single blockers show what can
be jumped, and hurdles show what must be.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from variant_ai.core.derive.betza_writer import can_be_lame, write_betza
from variant_ai.core.derive.probe_board import FairyMove, Pieces, ProbeBoard
from variant_ai.core.errors import SpecError
from variant_ai.core.spec.betza import Movement, Step
from variant_ai.core.spec.plane_layout import COMPASS


@dataclass
class PieceMoves:
    """Movement of a piece of the first player, as far as it is known."""

    symbol: str
    moves: str = ""
    """Betza word that holds everywhere."""
    from_: list[tuple[frozenset[int], str]] = field(default_factory=list)
    """Zones, and words of the moves that are added there."""
    within: frozenset[int] | None = None
    """Zone that it cannot leave."""
    seen: list[FairyMove] = field(default_factory=list)
    """Every move met, for those who look for promotions."""
    unsaid: list[str] = field(default_factory=list)
    """Movements that the notation cannot say."""
    stuck: frozenset[int] = frozenset()
    """Squares on which it has no move at all."""


Probed = dict[str, PieceMoves]
"""Symbols and their moves."""
Zone = frozenset[int] | None
"""Squares on which a movement exists; None is everywhere."""


def _times(step: Step, k: int) -> Step:
    return step[0] * k, step[1] * k


class PieceProbe:
    """Finds the movement of a piece."""

    def __init__(self, board: ProbeBoard, symbol: str, prey: str, *, royal: bool = False) -> None:
        """prey: symbol of an enemy piece that it may capture. royal: the piece may not enter attacked
        squares, so it is never put among many enemies."""
        self.board, self.symbol, self.prey, self.royal = board, symbol, prey, royal
        self.found = PieceMoves(symbol)
        self.quiet: dict[int, set[Step]] = {}
        """Displacements without capture on an empty board, by square."""
        self.capture: dict[int, set[Step]] = {}
        """Displacements to enemies when they are everywhere, by square."""
        self.among = 0
        """Square where the piece has most moves."""
        self.region: Zone = None
        self.movements: dict[Zone, set[Movement]] = defaultdict(set)

    def run(self) -> PieceMoves:
        board, found = self.board, self.found
        everywhere = range(board.squares)
        for square in everywhere:
            self.quiet[square] = self._steps(square, {})
            crowd = {other: self.prey for other in everywhere if other != square}
            self.capture[square] = (
                set(self.quiet[square]) if self.royal else self._steps(square, crowd)
            )
        centre = board.ranks // 2 * board.files + board.files // 2
        self.among = max(everywhere, key=lambda s: (self._freedom(s), -abs(s - centre)))
        if self.royal:
            self._forget_captures()
        found.stuck = frozenset(s for s in everywhere if not self._freedom(s))
        self.region = found.within = self._region()
        steps = set().union(*self.quiet.values(), *self.capture.values())
        bases = {(x // math.gcd(x, y), y // math.gcd(x, y)) for x, y in steps}
        for base in sorted(bases | set(COMPASS.values())):
            self._follow(base)
        for zone, movements in sorted(
            self.movements.items(), key=lambda item: (item[0] is not None, sorted(item[0] or ()))
        ):
            word = self._write(movements)
            if word and zone is None:
                found.moves = word
            elif word and zone is not None:
                found.from_.append((zone, word))
        return found

    def _freedom(self, square: int) -> int:
        return len(self.quiet[square]) + len(self.capture[square])

    def _forget_captures(self) -> None:
        """Remove captures that a royal piece does not have on the square where it is freest."""
        steps = self.quiet[self.among]
        wrong = {step for step in steps if not self._takes(step)}
        for square in self.capture:
            self.capture[square] -= wrong

    def _steps(self, square: int, others: Pieces) -> set[Step]:
        """Displacements of the piece on a square, with others on the board."""
        moves = [m for m in self.board.moves({**others, square: self.symbol}) if m.origin == square]
        self.found.seen += moves
        return {self.board.displacement(square, m.target) for m in moves if m.target != square}

    def _takes(self, step: Step) -> bool:
        """Return True if the piece captures a single enemy at a displacement, where it is freest."""
        near = sorted(range(self.board.squares), key=lambda s: abs(s - self.among))
        for square in near:
            target = self.board.step(square, *step)
            if target is not None and (square == self.among or self._freedom(square)):
                return step in self._steps(square, {target: self.prey})
        return False

    # --- zones -----------------------------------------------------------------------------------

    def _region(self) -> Zone:
        """Zone that the piece cannot leave; None if there is none."""
        board = self.board
        targets = frozenset(
            target
            for square in range(board.squares)
            for step in self.quiet[square] | self.capture[square]
            if (target := board.step(square, *step)) is not None
        )
        steps = set().union(*self.quiet.values())
        if not targets or all(self._zone(step, self.quiet) is None for step in steps):
            return None
        self.region = targets
        fits = all(self._zone(step, self.quiet) is None for step in steps)
        self.region = None
        return targets if len(targets) < board.squares and fits else None

    def _zone(self, step: Step, where: dict[int, set[Step]]) -> Zone:
        """Squares from which a displacement exists: all, or the simplest zone that says it."""
        board, inside = self.board, self.region or frozenset(range(self.board.squares))
        goals = {s: board.step(s, *step) for s in inside}
        possible = {s for s, t in goals.items() if t is not None and t in inside}
        available = {s for s in inside if step in where[s]}
        if available == possible:
            return None
        ranks = {s // board.files for s in available}
        files = {s % board.files for s in available}
        for wider in (
            frozenset(s for s in inside if s // board.files in ranks),
            frozenset(s for s in inside if s % board.files in files),
        ):
            if wider & possible == available:
                return wider
        return frozenset(available)

    # --- movements -------------------------------------------------------------------------------

    def _follow(self, base: Step) -> None:
        """Find the movements in one direction: hops, a slide, and leaps."""
        quiet = self._multiples(base, self.quiet)
        capture = self._multiples(base, self.capture)
        hop = self._hop(base) if base in COMPASS.values() else None
        if hop is not None:
            self.movements[None].add(hop)
            capture &= {1}
        double = _times(base, 2)
        slides = {1, 2} <= quiet and self._blocked(double, base)
        run = self._run(base, quiet) if slides else 0
        takes_both = {k for k in (1, 2) if self._takes(_times(base, k))} == {1, 2}
        takes_all = takes_both and (run > 1 or self._blocked(double, base))
        if run == 2 and not takes_all:  # a double step, which may be captured in passing
            run = 1
        if takes_all:
            self._add(None, base, run or self._capture_run(base), run > 1, True)
        elif run > 1:
            self._add(self._zone(base, self.quiet), base, run, True, False)
        quiet = {k for k in quiet if k > run or (run < 2 and k == 1)}
        if takes_all and run != 1:
            capture = set()
        for k in sorted(quiet | capture):
            self._leap(_times(base, k), k in quiet, k in capture)

    def _multiples(self, base: Step, where: dict[int, set[Step]]) -> set[int]:
        longest = max(self.board.files, self.board.ranks)
        met = set().union(*where.values())
        return {k for k in range(1, longest) if _times(base, k) in met}

    def _run(self, base: Step, quiet: set[int]) -> int:
        """Number of steps of a slide that exist in the same zone as the first."""
        zone, run = self._zone(base, self.quiet), 1
        while run + 1 in quiet:
            if self._zone(_times(base, run + 1), self.quiet) != zone:
                break
            run += 1
        return run

    def _capture_run(self, base: Step) -> int:
        """Number of steps of a slide that only captures. Each is tried on the square with the most room."""
        run = 2
        while self._takes(_times(base, run + 1)):
            run += 1
        return run

    def _add(self, zone: Zone, base: Step, run: int, quiet: bool, capture: bool) -> None:
        reach = 0 if run >= self._longest(base) else run
        self.movements[zone].add(Movement(*base, reach, quiet, capture))

    def _leap(self, step: Step, quiet: bool, capture: bool) -> None:
        zones = {
            mode: self._zone(step, where)
            for mode, where, has in (("m", self.quiet, quiet), ("c", self.capture, capture))
            if has
        }
        lame = self._is_lame(step)
        if lame and quiet and not capture and self._takes(step):  # a crowd is in its way
            zones["c"] = zones["m"]
            capture = True
        modes: dict[Zone, set[str]] = defaultdict(set)
        for mode, zone in zones.items():
            modes[zone].add(mode)
        for zone, has in modes.items():
            self.movements[zone].add(Movement(*step, 1, "m" in has, "c" in has, lame=lame))

    def _longest(self, base: Step) -> int:
        """Number of steps in a direction from edge to edge."""
        sizes = zip((self.board.files, self.board.ranks), base, strict=True)
        return min((size - 1) // abs(step) for size, step in sizes if step)

    def _is_lame(self, step: Step) -> bool:
        legs = Movement(*step, 1, True, True, lame=True).legs
        return can_be_lame(*step) and bool(legs) and self._blocked(step, legs[0])

    def _blocked(self, step: Step, leg: Step) -> bool:
        """Return True if a piece on `leg` stops the displacement; asked on one square."""
        # an enemy might attack the target, which a royal piece then avoids
        blocker = self.prey.upper() if self.royal else self.prey
        for square in sorted(range(self.board.squares), key=lambda s: abs(s - self.among)):
            on, target = self.board.step(square, *leg), self.board.step(square, *step)
            if on is None or target is None:
                continue
            if step in self.quiet[square]:
                return step not in self._steps(square, {on: blocker})
            if step in self._steps(square, {target: self.prey}):
                return step not in self._steps(square, {target: self.prey, on: blocker})
        return False

    def _hop(self, base: Step) -> Movement | None:
        """Movement that needs a hurdle: behind it at any distance, or just behind it."""
        far_step = _times(base, 3)
        roomy = [s for s in range(self.board.squares) if self.board.step(s, *far_step) is not None]
        if self.royal or not roomy:
            return None
        square = self.among if self.among in roomy else max(roomy, key=self._freedom)
        line = (self.board.step(square, *_times(base, k)) for k in (1, 2, 3))
        hurdle, near, far = (s for s in line if s is not None)
        near_step = _times(base, 2)
        after = self._steps(square, {hurdle: self.prey}) - self.quiet[square]

        def takes(step: Step, target: int) -> bool:
            """Return True if the piece captures behind the hurdle, and without it does not, or
            slides there."""
            behind = self._steps(square, {hurdle: self.prey, target: self.prey})
            slides = step in self.quiet[square] - self._steps(square, {hurdle: self.prey})
            return step in behind and (
                slides or step not in self._steps(square, {target: self.prey})
            )

        takes_far, takes_near = takes(far_step, far), takes(near_step, near)
        if far_step in after or takes_far:
            return Movement(*base, 0, far_step in after, takes_far, hop="over")
        if near_step in after or takes_near:
            return Movement(*base, 0, near_step in after, takes_near, hop="behind")
        return None

    def _write(self, movements: set[Movement]) -> str:
        """Write movements as a word, without those that have none, which are noted."""
        written = []
        for move in sorted(movements, key=lambda m: (m.dx, m.dy, m.reach, m.quiet, m.hop)):
            try:
                write_betza([move])
                written.append(move)
            except SpecError as error:
                self.found.unsaid.append(str(error))
        return write_betza(written) if written else ""
