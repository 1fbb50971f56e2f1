"""The ladder of a run: matches that measure each generation, and the gate.

    RUN/ladder.json     every pairing, written after each (`ladder_record.py`)
        ladder.svg      Elo over the generations (`ladder_record.py:draw_ladder`)

A generation plays some generations before it and the outside players of the settings. What is in
`ladder.json` is not played again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from variant_ai.core.arena.games.openings import played_out
from variant_ai.core.arena.match.referee import Conduct, Referee
from variant_ai.core.arena.players.player import (
    FAULTS,
    RULE_FAULTS,
    Allowance,
    Player,
    RandomPlayer,
)
from variant_ai.core.arena.players.player_spec import (
    PlayerSpec,
    advice_on_rules,
    parse_player,
    program_variant,
)
from variant_ai.core.arena.programs.program_player import program_player
from variant_ai.core.errors import DataError, EngineError, SettingError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.budget import cpu_seconds
from variant_ai.core.reinforce.ladder.ladder_record import (
    LadderMatch,
    LadderRecord,
    Opponent,
    draw_ladder,
)
from variant_ai.core.reinforce.ladder.net_match import (
    ScoreCount,
    SinglePlayer,
    make_batch_player,
    match_openings,
    play_match,
)
from variant_ai.core.reinforce.reinforce_settings import Ladder, ReinforceSettings
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

RECORD, PICTURE = "ladder.json", "ladder.svg"
MakePlayer = Callable[[PlayerSpec, Rules], Player]


def outside_player(player: PlayerSpec, rules: Rules) -> Player:
    """Make a player that is a program or random. Raises SettingError for a net, EngineError for a
    program that does not exist."""
    if player.random:
        return RandomPlayer(player.label)
    if player.net:
        raise SettingError(f"ladder.engines: {player.label}: give a program or `random`, not a net")
    return program_player(player, rules)


def outside_players(ladder: Ladder) -> dict[str, PlayerSpec]:
    """The outside players by their texts. Raises SettingError if one of them is not described
    correctly or has no limit, or for a gate without games."""
    if ladder.gate and ladder.games == 0:
        raise SettingError("ladder: a gate needs games, and `games` is 0")
    players = {text: parse_player(text) for text in ladder.engines}
    for text, player in players.items():
        if not (player.allowance().given or player.random):
            raise SettingError(
                f"ladder.engines: {text!r} has no limit; add one, such as `;nodes=100`"
            )
    return players


def require_outside_players(ladder: Ladder, rules: Rules) -> None:
    """Raise SettingError if one of the outside players cannot play, because its program does not exist
    or it is a net, or as `outside_players`. No program is started."""
    for text, player in outside_players(ladder).items():
        try:
            outside_player(player, rules).close()
        except EngineError as error:
            raise SettingError(
                f"ladder.engines: {text!r}: {error}; correct it, or leave it out "
                "(--set 'ladder.engines=[]')"
            ) from None


class RunLadder:
    """Measures the generations of one run. Not for several threads, except `stop`."""

    def __init__(
        self,
        folder: Path,
        spec: VariantSpec,
        settings: ReinforceSettings,
        *,
        rules: Rules | None = None,
        make_player: MakePlayer = outside_player,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Go on with the ladder of a run's folder, if it has one.

        make_player: makes the outside players. warn: called with a sentence about a player that
        fails, once for each. Raises SettingError as `outside_players`, DataError for a damaged file.
        """
        self.folder = folder
        self.spec = spec
        self.settings = settings
        self.rules = rules or make_rules(spec)
        self._engines = outside_players(settings.ladder)
        self._make_player = make_player
        self._warn_user = warn
        self._warned: set[Opponent] = set()
        """Players that a warning was about."""
        self._stopped = threading.Event()
        self.record = LadderRecord.read(folder / RECORD)

    def stop(self) -> None:
        """End `measure` soon, in the middle of a match, which is then played again. From any thread."""
        self._stopped.set()

    def pairings(self, generation: int, generating: int = 0) -> list[int]:
        """Earlier generations that a generation plays, nearest first.

        For each number of the setting `opponents`, it is the newest measured generation that lies at
        least so far back. With a gate `generating`, the one that generates games, is among them. Empty
        if this generation is not measured.
        """
        ladder = self.settings.ladder
        if generation == 0 or ladder.games == 0:
            return []
        found = set()
        if generation % ladder.every == 0:
            earlier = [number for number in self.record.measured if number < generation]
            for back in ladder.opponents:
                far = [number for number in earlier if number <= generation - back]
                if far:
                    found.add(far[-1])
        if ladder.gate:
            found.add(generating)
        return sorted(found, reverse=True)

    def measure(
        self,
        generation: int,
        evaluator: Evaluator,
        evaluator_of: Callable[[int], Evaluator],
        *,
        generating: int = 0,
        cpu_seconds: float | None = None,
        games: int = 0,
    ) -> None:
        """Play the pairings of a generation that are missing, and write record and picture.

        evaluator_of: returns the evaluator of an earlier generation; both belong to the caller.
        generating: generation that generates games until now.
        cpu_seconds: spent by the run so far; games: those of self-play in that time. If `cpu_seconds`
        is given, matches that would exceed `cpu_share` of it are left out, except that of the gate.
        The match of a program that can no longer be started is left out, too.
        Raises DataError if an evaluator does not fit the variant.
        """
        opponents: list[Opponent] = [*self.pairings(generation, generating)]
        if generation % self.settings.ladder.every == 0 and self.settings.ladder.games:
            opponents += self._engines
        opponents = [one for one in opponents if self.record.find(generation, one) is None]
        if not opponents:
            return
        for opponent in opponents:
            decides = self.settings.ladder.gate and opponent == generating
            if not decides and not self._affordable(opponent, cpu_seconds, games):
                continue
            if self._stopped.is_set():
                return
            try:
                played = self._play(generation, evaluator, opponent, evaluator_of)
            except EngineError as error:  # a broken program is no reason to end the run
                self._warn(opponent, f"its matches are left out: {error}")
                continue
            if played is None:
                return
            self.record.pairings.append(played)
            self.record.write(self.folder / RECORD)
        if self.record.pairings:
            draw_ladder(self.record, self.folder / PICTURE)

    def accepts(self, generation: int, previous: int) -> bool:
        """Return True if a generation may generate games instead of `previous`: without a gate always,
        otherwise if it has scored at least half against it. The answer is recorded.

        Raises DataError if there is a gate and the two have not played.
        """
        if not self.settings.ladder.gate:
            return True
        played = self.record.find(generation, previous)
        if played is None:
            raise DataError(
                f"{self.folder / RECORD}: generation {generation} has not played generation {previous}"
            )
        accepted = played.tally.score >= 0.5
        if accepted and generation not in self.record.accepted:
            self.record.accepted.append(generation)
            self.record.write(self.folder / RECORD)
        return accepted

    def _warn(self, opponent: Opponent, text: str) -> None:
        """Write a warning about an outside player, the first time."""
        if opponent not in self._warned:
            self._warned.add(opponent)
            self._warn_user(f"ladder.engines: {opponent!r}: {text}")

    def _warn_of_faults(self, opponent: str, name: str, faults: Counter[str]) -> None:
        """Warn that a program lost games by its own faults. faults: their reasons."""
        if not faults:
            return
        reasons = ", ".join(f"{reason} {count}" for reason, count in faults.most_common())
        text = f"it lost {counted(faults.total(), 'game')} by faults, which are not counted ({reasons})"
        if broken := sum(count for reason, count in faults.items() if reason in RULE_FAULTS):
            asked = program_variant(self._engines[opponent], self.spec)
            text += f". {advice_on_rules(name, asked, self.spec, broken)}"
        self._warn(opponent, text)

    def _affordable(self, opponent: Opponent, cpu_seconds: float | None, games: int) -> bool:
        """Return True if another match is within the ladder's share of the CPU time.

        Its cost is that of the last match of the same kind, and of the first one what as many games
        of self-play took, by their nodes. That is too much by the time of the training, and too little
        while games get longer.
        """
        if cpu_seconds is None:
            return True
        pairings, ladder = self.record.pairings, self.settings.ladder
        alike = [
            one for one in pairings if isinstance(one.opponent, str) == isinstance(opponent, str)
        ]
        cost = 0.0
        if alike:
            cost = alike[-1].cpu_seconds
        elif games:
            share_of_nodes = max(ladder.nodes, 1) / self.settings.search.nodes
            cost = ladder.games / games * share_of_nodes * cpu_seconds
        spent = sum(one.cpu_seconds for one in pairings)
        return spent + cost <= ladder.cpu_share * cpu_seconds

    def _play(
        self,
        generation: int,
        evaluator: Evaluator,
        opponent: Opponent,
        evaluator_of: Callable[[int], Evaluator],
    ) -> LadderMatch | None:
        """Play all games of a pairing; None if `stop` was called before their end."""
        if isinstance(opponent, str) and not self._engines[opponent].random:
            return self._play_program(generation, evaluator, opponent)
        begun = cpu_seconds()
        ladder = self.settings.ladder
        score = play_match(
            self.spec,
            evaluator,
            None if isinstance(opponent, str) else evaluator_of(opponent),
            games=ladder.games,
            nodes=ladder.nodes,
            opening_plies=ladder.opening_plies,
            max_plies=self.settings.variety.max_plies,
            seed=self._seed(generation),
            search=self.settings.search,
            rules=self.rules,
            stop=self._stopped.is_set,
        )
        if self._stopped.is_set():
            return None
        spent = cpu_seconds() - begun
        return LadderMatch(
            generation=generation, opponent=opponent, **vars(score), cpu_seconds=spent
        )

    def _play_program(self, generation: int, evaluator: Evaluator, text: str) -> LadderMatch | None:
        """Play a program, one game after the other; None if `stop` was called."""
        begun = cpu_seconds()
        ladder, most = self.settings.ladder, self.settings.variety.max_plies
        openings = match_openings(
            self.rules, ladder.games, ladder.opening_plies, most, self._seed(generation)
        )
        player = make_batch_player(
            self.spec,
            evaluator,
            self.rules,
            nodes=ladder.nodes,
            search=self.settings.search,
            max_plies=most,
            games=1,
        )
        net = SinglePlayer(f"generation {generation}", player)
        engine = self._make_player(self._engines[text], self.rules)
        allowances = (Allowance(), self._engines[text].allowance())
        referee = Referee(Conduct(max_plies=most), self._stopped.is_set)
        count = ScoreCount(most)
        faults: Counter[str] = Counter()
        try:
            for number, opening in enumerate(openings):
                turned = number % 2
                pair = (engine, net) if turned else (net, engine)
                limits = allowances[::-1] if turned else allowances
                game = played_out(self.rules, opening)
                given = game.ply
                played = referee.play(game, pair, (limits[0], limits[1]), number)
                if self._stopped.is_set():
                    return None
                if played.reason in FAULTS - {"resignation"}:
                    faults[played.reason] += 1
                    continue
                winner = {"1-0": 0, "0-1": 1}.get(played.result)
                count.add(game, given, turned, winner)
        finally:
            engine.close()
            net.close()
        self._warn_of_faults(text, engine.name, faults)
        return LadderMatch(
            generation=generation,
            opponent=text,
            **count.numbers(),
            faults=faults.total(),
            evaluations=player.evaluations,
            cpu_seconds=cpu_seconds() - begun,
        )

    def _seed(self, generation: int) -> int:
        """Seed of the openings of a generation, the same ones against all its opponents."""
        return (self.settings.seed << 32) + generation
