"""The ladder of a run: who plays whom, what is kept, Elo, the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.arena.players.player import Fault, Player, RandomPlayer, Reply, Turn
from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.arena.tables.elo import elo_of
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, EngineError, SettingError
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.ladder.ladder_record import (
    LadderMatch,
    LadderRecord,
    Opponent,
    draw_ladder,
)
from variant_ai.core.reinforce.ladder.run_ladder import (
    MakePlayer,
    RunLadder,
    outside_player,
    require_outside_players,
)
from variant_ai.core.reinforce.reinforce_settings import Ladder, ReinforceSettings
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry

VARIANT = "dobutsu"


def ladder(
    folder: Path,
    make_player: MakePlayer = outside_player,
    plies: int = 30,
    warn: Callable[[str], None] = lambda text: None,
    **words: Any,
) -> RunLadder:
    words = {"games": 4, "nodes": 0, "opponents": (1, 4)} | words
    settings = ReinforceSettings(variant=VARIANT, ladder=words, variety={"max_plies": plies})
    spec = registry().variant(VARIANT)
    return RunLadder(folder, spec, settings, make_player=make_player, warn=warn)


def nets() -> tuple[Callable[[int], Evaluator], list[int]]:
    """Nets of generations, and the generations whose net was asked for."""
    encoder = Encoder(registry().variant(VARIANT))
    asked: list[int] = []

    def net_of(generation: int) -> Evaluator:
        asked.append(generation)
        return RandomEvaluator(encoder.shape, encoder.actions, generation)

    return net_of, asked


def result(generation: int, opponent: Opponent, wins: int, losses: int, draws: int = 0) -> Any:
    return LadderMatch(
        generation=generation, opponent=opponent, wins=wins, draws=draws, losses=losses
    )


def test_a_generation_plays_some_before_it(tmp_path: Path) -> None:
    one = ladder(tmp_path)
    net_of, asked = nets()
    assert one.pairings(0) == []
    for generation in range(1, 7):
        one.measure(generation, net_of(generation), net_of)
    met = [(match.generation, match.opponent) for match in one.record.pairings]
    assert met == [(1, 0), (2, 1), (3, 2), (4, 3), (4, 0), (5, 4), (5, 1), (6, 5), (6, 2)]
    assert all(match.tally.games == 4 for match in one.record.pairings)
    assert asked.count(0) == 2
    assert list(one.record.elo()) == list(range(7))
    assert one.record.elo()[0] == (0.0, 0.0)
    assert (tmp_path / "ladder.svg").read_text("utf-8").startswith("<?xml")


def test_a_ladder_without_a_match_has_no_picture(tmp_path: Path) -> None:
    one = ladder(tmp_path, cpu_share=0.0)
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of, cpu_seconds=1.0, games=10)
    assert one.record.pairings == [] and not (tmp_path / "ladder.svg").exists()


def test_generations_that_were_not_measured_are_skipped(tmp_path: Path) -> None:
    """Otherwise nothing would connect the generations that are."""
    one = ladder(tmp_path, every=3)
    net_of, _ = nets()
    for generation in range(1, 10):
        one.measure(generation, net_of(generation), net_of)
    met = [(match.generation, match.opponent) for match in one.record.pairings]
    assert met == [(3, 0), (6, 3), (6, 0), (9, 6), (9, 3)]
    assert list(one.record.elo()) == [0, 3, 6, 9]


def test_what_was_played_is_not_played_again(tmp_path: Path) -> None:
    one = ladder(tmp_path)
    net_of, asked = nets()
    one.measure(1, net_of(1), net_of)
    again = ladder(tmp_path)
    assert again.record == one.record
    asked.clear()
    again.measure(1, net_of(1), net_of)
    assert asked == [1]
    again.measure(4, net_of(4), net_of)
    assert [match.opponent for match in again.record.pairings] == [0, 1, 0]


def test_matches_of_the_same_settings_are_the_same(tmp_path: Path) -> None:
    net_of, _ = nets()
    scores = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        one = ladder(tmp_path / name)
        one.measure(1, net_of(1), net_of)
        scores.append(one.record.pairings[0].tally)
    assert scores[0] == scores[1]


def test_matches_beyond_the_share_of_the_time_are_left_out(tmp_path: Path) -> None:
    one = ladder(tmp_path, cpu_share=0.1)
    net_of, _ = nets()
    one.record.pairings.append(
        LadderMatch(generation=1, opponent=0, wins=1, draws=0, losses=1, cpu_seconds=50.0)
    )
    one.measure(2, net_of(2), net_of, cpu_seconds=999.0)
    assert [match.generation for match in one.record.pairings] == [1]
    one.measure(2, net_of(2), net_of, cpu_seconds=1000.0)
    assert [match.generation for match in one.record.pairings] == [1, 2]


def test_the_first_match_is_estimated_by_the_games_so_far(tmp_path: Path) -> None:
    """It took two minutes in a run of 20 seconds."""
    one = ladder(tmp_path, cpu_share=0.1)
    net_of, _ = nets()
    games = one.settings.ladder.games
    one.measure(1, net_of(1), net_of, cpu_seconds=100.0, games=1)
    assert one.record.pairings == []
    one.measure(1, net_of(1), net_of, cpu_seconds=100.0, games=1000 * games)
    assert [match.generation for match in one.record.pairings] == [1]


def test_elo_of_a_chain() -> None:
    record = LadderRecord([result(1, 0, 30, 10), result(2, 1, 30, 10), result(2, 0, 36, 4)])
    elo = record.elo()
    assert elo[1][0] == pytest.approx(elo_of(0.75), abs=5)
    assert elo[2][0] == pytest.approx(2 * elo_of(0.75), abs=5)
    assert 0 < elo[1][1] < elo[2][1] + 100


def test_a_generation_that_won_every_game_does_not_change_others() -> None:
    """`fit` would add draws between all players, those of far generations included."""
    before = LadderRecord([result(1, 0, 30, 10)]).elo()
    record = LadderRecord([result(1, 0, 30, 10), *(result(g, g - 1, 40, 0) for g in range(2, 8))])
    elo = record.elo()
    assert elo[1][0] == pytest.approx(before[1][0], abs=1)
    steps = [elo[g][0] - elo[g - 1][0] for g in range(2, 8)]
    assert steps == pytest.approx([elo_of(40.5 / 41)] * 6, abs=1)


def test_generations_without_a_link_have_no_elo() -> None:
    record = LadderRecord([result(1, 0, 3, 1), result(8, 7, 2, 2), result(7, "engine", 0, 0)])
    assert list(record.elo()) == [0, 1]


def test_outside_players_link_generations() -> None:
    record = LadderRecord([result(0, "random", 10, 10), result(5, "random", 15, 5)])
    assert record.elo()[5][0] == pytest.approx(elo_of(0.75), abs=1)
    assert set(record.ratings()) == {0, 5, "random"}


@pytest.mark.parametrize(
    ("wins", "losses", "accepted"), [(2, 1, True), (1, 1, True), (1, 2, False)]
)
def test_gate(tmp_path: Path, wins: int, losses: int, accepted: bool) -> None:
    one = ladder(tmp_path, gate=True)
    one.record.pairings.append(result(1, 0, wins, losses, draws=2))
    assert one.accepts(1, 0) is accepted
    again = ladder(tmp_path, gate=True)
    assert again.record.accepted == ([1] if accepted else [])
    assert (1 if accepted else 0) in again.pairings(2)


def test_the_gate_meets_the_net_that_generates_games(tmp_path: Path) -> None:
    one = ladder(tmp_path, gate=True, opponents=(1,), every=2)
    one.record.pairings += [result(1, 0, 3, 1), result(2, 1, 1, 3)]
    assert one.accepts(1, 0) and not one.accepts(2, 1)
    assert one.pairings(3, 1) == [1]
    assert one.pairings(4, 1) == [2, 1]
    with pytest.raises(DataError, match="generation 3 has not played generation 1"):
        one.accepts(3, 1)


def test_without_a_gate_every_net_is_accepted(tmp_path: Path) -> None:
    one = ladder(tmp_path)
    one.record.pairings.append(result(1, 0, 0, 4))
    assert one.accepts(1, 0)
    assert one.pairings(2) == [1]


class Faulty(RandomPlayer):
    """Makes a mistake in its second game."""

    games = 0

    def new_game(self, game: Game, number: int = 0) -> None:
        super().new_game(game, number)
        self.games += 1

    def play(self, game: Game, turn: Turn) -> Reply:
        if self.games == 2:
            raise Fault("illegal move", "no such move")
        return super().play(game, turn)


def test_programs(tmp_path: Path) -> None:
    made: list[str] = []

    def make_player(player: PlayerSpec, rules: Rules) -> Player:
        made.append(player.command)
        return Faulty()

    one = ladder(tmp_path, make_player, engines=("toy;nodes=5", "random"), opponents=())
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of)
    program, random = one.record.pairings
    assert made == ["toy"]
    assert program.opponent == "toy;nodes=5"
    assert (program.tally.games, program.faults) == (3, 1)
    assert (random.tally.games, random.faults) == (4, 0)
    assert random.evaluations > 10


def test_a_program_is_seen_from_the_generation(tmp_path: Path) -> None:
    one = ladder(
        tmp_path, lambda player, rules: RandomPlayer(), engines=("toy;nodes=1",), games=20,
        nodes=32, plies=60, opponents=(),
    )  # fmt: skip
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of)
    tally = one.record.pairings[0].tally
    assert tally.games == 20
    assert tally.score > 0.8  # a search against random moves, with both colours


def test_a_stopped_match_is_not_kept(tmp_path: Path) -> None:
    def make_player(player: PlayerSpec, rules: Rules) -> Player:
        one.stop()
        return RandomPlayer()

    one = ladder(tmp_path, make_player, engines=("toy;nodes=5",))
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of)
    assert [match.opponent for match in LadderRecord.read(tmp_path / "ladder.json").pairings] == [0]


def test_a_stopped_match_of_nets_is_not_kept(tmp_path: Path) -> None:
    one = ladder(tmp_path, games=100)
    net_of, _ = nets()

    def stopping(generation: int) -> Evaluator:
        one.stop()
        return net_of(generation)

    one.measure(1, net_of(1), stopping)
    assert not one.record.pairings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"gate": True, "games": 0}, "a gate needs games"),
        ({"engines": ("fairy-stockfish",)}, "'fairy-stockfish' has no limit"),
    ],
)
def test_settings_that_cannot_work(tmp_path: Path, words: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ladder(tmp_path, **words)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("net:a.onnx;nodes=5", "give a program or `random`"),
        ("nonsense;nodes=5", "'nonsense;nodes=5': .*leave it out"),
        ("fairy-stockfish", "has no limit"),
    ],
)
def test_outside_players_that_cannot_play(engine: str, message: str) -> None:
    """They are found before a run has begun."""
    rules = make_rules(registry().variant(VARIANT))
    require_outside_players(Ladder(engines=("random",)), rules)
    with pytest.raises(SettingError, match=message):
        require_outside_players(Ladder(engines=("random", engine)), rules)


def test_nets_as_outside_players_need_a_maker(tmp_path: Path) -> None:
    one = ladder(tmp_path, engines=("net:a.onnx;nodes=5",), opponents=())
    net_of, _ = nets()
    with pytest.raises(SettingError, match="give a program or `random`"):
        one.measure(1, net_of(1), net_of)


def test_a_program_that_breaks_is_left_out(tmp_path: Path) -> None:
    """The others play, and the warning comes once."""

    def make_player(player: PlayerSpec, rules: Rules) -> Player:
        raise EngineError("toy: no such program")

    said: list[str] = []
    words = {"engines": ("toy;nodes=5", "random"), "opponents": ()}
    one = ladder(tmp_path, make_player, warn=said.append, **words)
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of)
    one.measure(2, net_of(2), net_of)
    assert [match.opponent for match in one.record.pairings] == ["random", "random"]
    (warning,) = said
    assert warning.startswith("ladder.engines: 'toy;nodes=5': its matches are left out: toy: no")


def test_faults_of_a_program_are_a_warning(tmp_path: Path) -> None:
    """An illegal move is often the sign of other rules."""
    said: list[str] = []
    words = {"engines": ("toy;nodes=5",), "opponents": ()}
    one = ladder(tmp_path, lambda player, rules: Faulty(), warn=said.append, **words)
    net_of, _ = nets()
    one.measure(1, net_of(1), net_of)
    one.measure(2, net_of(2), net_of)
    (warning,) = said
    assert "it lost 1 game by faults, which are not counted (illegal move 1)" in warning
    assert "it was asked to play 'dobutsu'" in warning


@pytest.mark.parametrize("content", ["{", "[]", '{"pairings": [{"generation": 1}]}', "{}"])
def test_a_damaged_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "ladder.json").write_text(content)
    with pytest.raises(DataError, match=r"ladder\.json: not the ladder of a run"):
        ladder(tmp_path)


def test_a_picture(tmp_path: Path) -> None:
    record = LadderRecord([result(1, 0, 3, 1), result(2, 1, 3, 1), result(2, "random", 4, 0)])
    draw_ladder(record, tmp_path / "one.svg")
    draw_ladder(record, tmp_path / "same.svg")
    draw_ladder(LadderRecord(), tmp_path / "empty.svg")
    one, same, empty = (
        (tmp_path / f"{name}.svg").read_bytes() for name in ("one", "same", "empty")
    )
    assert one.startswith(b"<?xml") and one == same != empty
    assert b"random" in one


def test_the_file_of_an_older_version(tmp_path: Path) -> None:
    """It also kept the progress of the run."""
    content = {
        "pairings": [vars(result(1, 0, 3, 1))],
        "progress": {"1": {"cpu_hours": 0.5, "evaluations": 1000}},
        "accepted": [1],
    }
    (tmp_path / "ladder.json").write_text(json.dumps(content))
    record = ladder(tmp_path).record
    assert (record.pairings, record.accepted) == ([result(1, 0, 3, 1)], [1])


def test_a_gate_may_be_switched_on_later(tmp_path: Path) -> None:
    """The generation that plays now is asked, not the last one that a gate accepted."""
    net_of, _ = nets()
    before = ladder(tmp_path, every=2)
    for generation in (2, 4):
        before.measure(generation, net_of(generation), net_of)
    gated = ladder(tmp_path, every=2, gate=True, cpu_share=0.0)
    assert gated.pairings(5, 4) == [4]
    gated.measure(5, net_of(5), net_of, generating=4, cpu_seconds=1000.0, games=100)
    played = gated.record.find(5, 4)
    assert played is not None
    assert gated.accepts(5, 4) == (played.tally.score >= 0.5)
