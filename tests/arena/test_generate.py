"""Generated games: legal, repeatable, and never spoilt by an engine that misbehaves."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.arena.blunders import SHORTEST, BlunderRule, filtered, last_blunder
from variant_ai.core.arena.generate import (
    MAX_FAILURES,
    Dropped,
    Ended,
    GameGenerator,
    GenerateSettings,
    number_of,
)
from variant_ai.core.arena.generated import GeneratedGames, journal_path
from variant_ai.core.arena.openings import Opening, read_lines, read_positions
from variant_ai.core.arena.referee import MOVE_LIMIT, ResignRule
from variant_ai.core.arena.self_play import UciSelfPlayer
from variant_ai.core.arena.uci_client import GAMES_FOLDERS, Answer, UciClient, engine_command
from variant_ai.core.data.move_lists import MoveListReader
from variant_ai.core.data.record import MATE, GameRecord
from variant_ai.core.data.resolve import Resolver
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.notation import core_notations, uci
from variant_ai.core.rules.position import Position
from variant_ai.plugins import registry
from variant_ai.specs import DataError, EngineError

VARIANTS = sorted(name for name, e in registry().variants.items() if e.plugin == name)
SHORT = GenerateSettings(games=3, nodes=1, max_plies=16, move_timeout=20)


@pytest.fixture(scope="module", params=VARIANTS)
def rules(request: pytest.FixtureRequest) -> Rules:
    return make_rules(registry().variant(request.param))


@pytest.fixture(scope="module")
def one_rules() -> Rules:
    return make_rules(registry().variant(VARIANTS[0]))


class ToyEngine(UciClient):
    """An engine without a process: plays the first legal move, and does wrong on demand.

    The real client is tested against real processes elsewhere.
    """

    def __init__(self, rules: Rules, wrong: str = "", at: tuple[int, ...] = ()) -> None:
        super().__init__(["toy"])
        self.rules, self.wrong, self.at = rules, wrong, at
        self.games = self.starts = 0
        self.up = False

    @property
    def running(self) -> bool:
        return self.up

    def start(self) -> None:
        self.name, self.up = "Toy 1.0", True
        self.starts += 1

    def kill(self) -> None:
        self.up = False

    def close(self) -> None:
        self.kill()

    def set_variant(self, name: str) -> None:
        assert name == self.rules.spec.fairy

    def new_game(self) -> None:
        assert self.up
        self.games += 1

    def asked(self, limits: Mapping[str, int]) -> None:
        """For tests: told of every search."""

    def go(
        self,
        fen: str,
        moves: Sequence[str] = (),
        *,
        limits: Mapping[str, int],
        timeout: float,
        grace: float = 0.0,
    ) -> Answer:
        assert self.up and limits["nodes"] > 0
        self.asked(limits)
        if self.wrong and (not self.at or self.games in self.at):
            if self.wrong == "fails":
                raise EngineError("engine Toy died")
            return Answer({"illegal": "a1a1", "garbage": "?!", "no move": None}[self.wrong])
        game = Game.from_uci(self.rules, fen, moves)
        move = int(min(game.legal_moves()))
        return Answer(uci(self.rules.types, self.rules.spec.board.files, move), len(moves))


def generator(
    rules: Rules, settings: GenerateSettings, wrong: str = "", at: tuple[int, ...] = ()
) -> GameGenerator:
    return GameGenerator(
        rules,
        lambda: UciSelfPlayer(ToyEngine(rules, wrong, at), rules.spec.fairy),
        settings,
    )


def played(made: GameGenerator) -> tuple[list[GameRecord], list[Dropped]]:
    games: list[GameRecord] = []
    dropped: list[Dropped] = []
    for item in made.games():
        (games if isinstance(item, GameRecord) else dropped).append(item)  # type: ignore[arg-type]
    return games, dropped


def test_games_are_legal_and_end_as_their_record_says(rules: Rules) -> None:
    games, dropped = played(generator(rules, replace(SHORT, max_plies=40)))
    assert (len(games), dropped) == (3, [])
    for record in games:
        game = Game(rules)
        for move in record.moves:
            assert game.outcome() is None
            assert move in game.legal_moves()
            game.push(move)
        outcome = game.outcome()
        if outcome is None:
            assert (record.plies, record.result) == (40, "1/2-1/2")
            assert record.termination == "adjudicated: move limit"
        else:
            assert (outcome.result, outcome.reason) == (record.result, record.termination)


def test_scores_are_kept_ply_for_ply(one_rules: Rules) -> None:
    games, _ = played(generator(one_rules, SHORT))
    for record in games:
        opening = int(record.tags["RandomPlies"])
        assert record.opening_plies == opening
        assert record.scores is not None and len(record.scores) == record.plies
        assert record.scores[:opening] == [None] * opening
        # the toy engine's score is the ply
        assert record.scores[opening:] == list(range(opening, record.plies))


def test_the_same_seed_gives_the_same_games_with_any_number_of_workers(one_rules: Rules) -> None:
    settings = replace(SHORT, games=5, random_share=0.2)
    one, _ = played(generator(one_rules, settings))
    two, _ = played(generator(one_rules, replace(settings, workers=3)))
    other, _ = played(generator(one_rules, replace(settings, seed=1)))
    assert one == two
    assert [g.moves for g in one] != [g.moves for g in other]


def test_openings_differ_and_are_as_long_as_asked(one_rules: Rules) -> None:
    settings = replace(SHORT, games=12, random_plies=(2, 3), max_plies=3)
    games, _ = played(generator(one_rules, settings))
    lengths = {int(g.tags["RandomPlies"]) for g in games}
    assert lengths == {2, 3}
    positions = {Game(one_rules).rules.fen(after(one_rules, g)) for g in games}
    assert len(positions) == len(games)


def after(rules: Rules, record: GameRecord) -> Position:
    game = Game(rules)
    for move in record.moves[: int(record.tags["RandomPlies"])]:
        game.push(move)
    return game.position


def test_when_short_openings_run_out_longer_ones_are_drawn(one_rules: Rules) -> None:
    settings = replace(SHORT, games=3, random_plies=(0, 0), max_plies=4)
    games, _ = played(generator(one_rules, settings))
    assert len({tuple(g.moves) for g in games}) == 3


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("fails", "engine Toy died"),
        ("illegal", "a1a1"),
        ("garbage", "?!"),
        ("no move", "engine Toy 1.0 sees no move"),
    ],
)
def test_a_misbehaving_engine_loses_its_game_and_is_restarted(
    one_rules: Rules, wrong: str, reason: str
) -> None:
    made = generator(one_rules, SHORT, wrong, at=(2,))
    games, dropped = played(made)
    assert [d.number for d in dropped] == [1]
    assert reason in dropped[0].reason
    assert [g.number for g in games] == [1, 3, 4]
    assert [
        engine.client.starts
        for engine in made._engines
        if isinstance(engine, UciSelfPlayer) and isinstance(engine.client, ToyEngine)
    ] == [2]
    good, _ = played(generator(one_rules, replace(SHORT, games=4)))
    assert [g.moves for g in games] == [good[i].moves for i in (0, 2, 3)]


def test_an_engine_that_never_works_is_given_up(one_rules: Rules) -> None:
    made = generator(one_rules, replace(SHORT, games=100), "fails")
    seen: list[object] = []
    with pytest.raises(EngineError, match=f"{MAX_FAILURES} games in a row.*engine Toy died"):
        seen.extend(made.games())
    assert len(seen) == MAX_FAILURES


def test_failures_between_good_games_are_forgiven(one_rules: Rules) -> None:
    bad = tuple(range(2, 4 * MAX_FAILURES, 2))
    games, dropped = played(generator(one_rules, replace(SHORT, games=15), "fails", at=bad))
    assert len(games) == 15
    assert len(dropped) > MAX_FAILURES


def test_stop_ends_the_games_under_way(one_rules: Rules) -> None:
    made = generator(one_rules, SHORT)
    made.stop()
    assert next(made.games()) == Dropped(0, "stopped")


def test_no_engine_is_left_behind(one_rules: Rules) -> None:
    made = generator(one_rules, replace(SHORT, games=10, workers=2))
    games = made.games()
    next(games)
    assert any(engine.running for engine in made._engines)
    games.close()
    assert not any(engine.running for engine in made._engines)


def test_the_check_names_the_engine_and_ends_it(one_rules: Rules) -> None:
    made = generator(one_rules, SHORT)
    assert made.check_engine() == "Toy 1.0"
    assert not any(engine.running for engine in made._engines)


def test_nodes_vary_as_asked(one_rules: Rules) -> None:
    nodes: list[int] = []

    class Counting(ToyEngine):
        def asked(self, limits: Mapping[str, int]) -> None:
            nodes.append(limits["nodes"])

    settings = replace(SHORT, nodes=1000, node_jitter=0.1, games=6)
    made = GameGenerator(
        one_rules, lambda: UciSelfPlayer(Counting(one_rules), one_rules.spec.fairy), settings
    )
    played(made)
    assert all(900 <= n <= 1100 for n in nodes)
    assert min(nodes) < 930 and max(nodes) > 1070


def test_moves_by_lot_are_marked(one_rules: Rules) -> None:
    games, _ = played(generator(one_rules, replace(SHORT, random_share=0.5, games=4)))
    marks = 0
    for record in games:
        assert record.scores is not None
        opening = int(record.tags["RandomPlies"])
        unscored = {ply for ply in range(opening, record.plies) if record.scores[ply] is None}
        assert set(record.comments) == unscored
        marks += len(unscored)
    assert marks > 5


def test_a_game_played_before_is_dropped(one_rules: Rules) -> None:
    # one opening, nothing random behind it: longer openings lead into the same game
    made = generator(one_rules, replace(SHORT, random_plies=(0, 0), games=3))
    first = next(g for g in made.games() if isinstance(g, GameRecord))
    again = generator(one_rules, replace(SHORT, random_plies=(0, 0), games=3))
    results = list(again.games({0: first, 1: replace(first, number=2)}))
    assert results[:2] == [first, Dropped(1, "duplicate")]
    kept = [game for game in results if isinstance(game, GameRecord)]
    assert len(kept) == 3 and len({tuple(game.moves) for game in kept}) == 3


def test_games_are_told_when_they_end_whoever_is_slow(one_rules: Rules) -> None:
    """One of the first two games waits for the third: a kill meanwhile must not cost the others."""
    third, to_wait = threading.Event(), threading.Semaphore(1)

    class Slow(ToyEngine):
        def asked(self, limits: Mapping[str, int]) -> None:
            if to_wait.acquire(blocking=False):
                assert third.wait(30)

    settings = replace(SHORT, games=3, workers=2)
    made = GameGenerator(
        one_rules, lambda: UciSelfPlayer(Slow(one_rules), one_rules.spec.fairy), settings
    )
    told: list[int] = []

    def tell(game: Ended) -> None:
        told.append(number_of(game))
        if len(told) == 2:
            third.set()

    games = list(made.games(on_end=tell))
    assert sorted(told) == [0, 1, 2] and told[-1] != 2
    assert games == played(generator(one_rules, settings))[0]


def test_an_interrupted_run_goes_on_with_the_same_games(one_rules: Rules, tmp_path: Path) -> None:
    settings = replace(SHORT, games=5)
    whole, _ = played(generator(one_rules, settings))
    store, said = tmp_path / "g.store", {"seed": 0}
    with GeneratedGames(store, one_rules.spec.variant, said) as journal:
        for record in (whole[2], whole[0]):
            journal.add(record)
        journal.add(Dropped(7, "engine died"))
    with journal_path(store).open("ab") as torn:
        torn.write(b'{"number": 3, "mov')
    with pytest.raises(DataError, match="another command"):
        GeneratedGames(store, one_rules.spec.variant, {"seed": 1})
    with GeneratedGames(store, one_rules.spec.variant, said) as journal:
        assert (journal.resumed, journal.done) == (3, {0, 2, 7})
        done = {number_of(game): game for game in journal.games()}
        assert [done[0], done[2]] == [whole[0], whole[2]]
        assert list(generator(one_rules, settings).games(done, journal.add)) == whole
        after = list(journal.unlike())
        assert [game for game in after if isinstance(game, GameRecord)] == whole
        assert Dropped(7, "engine died") in after
        journal.remove()
    assert not journal_path(store).exists()


# --- filters -------------------------------------------------------------------------------------


class Scripted(ToyEngine):
    """Scores by game ply, 0 where nothing is said."""

    def __init__(self, rules: Rules, scores: Mapping[int, int]) -> None:
        super().__init__(rules)
        self.scores = scores

    def go(
        self,
        fen: str,
        moves: Sequence[str] = (),
        *,
        limits: Mapping[str, int],
        timeout: float,
        grace: float = 0.0,
    ) -> Answer:
        answer = super().go(fen, moves, limits=limits, timeout=timeout)
        return replace(answer, score=self.scores.get(len(moves), 0))


def scripted(
    rules: Rules, scores: Mapping[int, int], **said: Any
) -> tuple[list[GameRecord], list[Dropped]]:
    settings = replace(SHORT, games=1, random_plies=(2, 2), max_plies=30, **said)
    made = GameGenerator(
        rules, lambda: UciSelfPlayer(Scripted(rules, scores), rules.spec.fairy), settings
    )
    return played(made)


@pytest.mark.parametrize(
    ("scores", "both", "plies", "result"),
    [
        # the side of the even plies is lost three times in a row, and the game ends there
        ({4: -900, 6: -950, 8: -900}, False, 9, "0-1"),
        ({5: -900, 7: -900, 9: -2000}, False, 10, "1-0"),
        # once too few, or with a better score between
        ({4: -900, 6: -950, 8: -899}, False, 30, "1/2-1/2"),
        # the other side must say so too
        ({4: -900, 6: -950, 8: -900}, True, 30, "1/2-1/2"),
        ({4: -900, 6: -950, 8: -900, 3: 900, 5: 900, 7: 900}, True, 9, "0-1"),
    ],
)
def test_lost_games_are_ended(
    one_rules: Rules, scores: dict[int, int], both: bool, plies: int, result: str
) -> None:
    ((record,), dropped) = scripted(one_rules, scores, resign=ResignRule(3, 900, both))
    assert (record.plies, record.result, dropped) == (plies, result, [])
    resigned = result != "1/2-1/2"
    assert record.termination == ("adjudicated: resign rule" if resigned else MOVE_LIMIT)


def test_the_last_blunder_is_found() -> None:
    # ply 2 is called equal by its mover, and +5 by who answers
    assert last_blunder([0, 0, 0, 500, -500, 500], 400) == 2
    assert last_blunder([0, 0, 0, 500, -500, 500], 500) is None
    # a mate that is lost again costs no more than a won game
    assert last_blunder([MATE - 3, 200], 1100) == 0
    assert last_blunder([MATE - 3, 200], 1200) is None
    assert last_blunder([MATE - 3, -900, 950], 100) is None
    # what was drawn by lot is nobody's blunder, and the last move has no answer
    assert last_blunder([0, None, 800, -800], 400) is None
    assert last_blunder([0, 0, 900], 900) is None
    assert last_blunder([], 1) is None


def test_games_with_blunders_are_dropped(one_rules: Rules) -> None:
    made = GameGenerator(
        one_rules,
        lambda: UciSelfPlayer(Scripted(one_rules, {10: 500}), one_rules.spec.fairy),
        replace(SHORT, blunder=BlunderRule(400)),
    )
    seen: list[Ended] = []
    with pytest.raises(EngineError, match="none of the last 100 games was kept"):
        seen.extend(made.games())
    assert {game.reason for game in seen if isinstance(game, Dropped)} == {"blunder"}
    kept, dropped = scripted(one_rules, {7: 500}, blunder=BlunderRule(500))
    assert len(kept) == 1 and dropped == []


def test_games_are_cut_behind_their_last_blunder(one_rules: Rules) -> None:
    # the mover of ply 8 believes in 0, the other side in +7 from then on
    scores = {ply: 700 if ply % 2 else -700 for ply in range(9, 30)}
    ((whole,), _) = scripted(one_rules, scores)
    ((record,), dropped) = scripted(one_rules, scores, blunder=BlunderRule(400, "cut"))
    assert dropped == [] and record.tags["CutPlies"] == "9"
    assert record.moves == whole.moves[9:]
    assert record.scores is not None and whole.scores is not None
    assert record.scores == whole.scores[9:] and record.scores[0] == 700
    game = Game(one_rules)
    for move in whole.moves[:9]:
        game.push(move)
    assert record.start_fen == game.fen()
    assert (record.result, record.termination) == (whole.result, whole.termination)


def test_what_is_too_short_or_ends_otherwise_is_not_cut(one_rules: Rules) -> None:
    ((whole,), _) = scripted(one_rules, {})
    late = BlunderRule(400, "cut")
    scores = [0] * (whole.plies - SHORTEST)
    short = replace(whole, scores=[*scores, 900, *[0] * (SHORTEST - 1)])
    assert filtered(one_rules, short, late) is None
    # a repetition of which a part is cut away is none
    there_and_back = ["g1f3", "g8f6", "f3g1", "f6g8"] * 4
    game = Game(one_rules)
    for text in there_and_back:
        if game.outcome() is None:
            game.push_uci(text)
    assert game.outcome() is not None
    repeated = replace(whole, moves=list(game.moves), scores=[0, 900, *[0] * (game.ply - 2)])
    assert filtered(one_rules, repeated, replace(late, drop=950)) == repeated
    assert filtered(one_rules, repeated, late) is None


# --- openings from a file ------------------------------------------------------------------------


def test_openings_from_a_file(one_rules: Rules, tmp_path: Path) -> None:
    game = Game(one_rules)
    game.push(int(game.legal_moves()[0]))
    first = game.fen()
    game.push(int(game.legal_moves()[0]))
    second = game.fen()
    epd = " ".join(word for word in second.split() if not word.isdigit())
    file = tmp_path / "lines.epd"
    file.write_text(f'# two lines\n\n{first}\n{epd} bm a1a2; id "two; words";\n')
    openings = read_positions(file, one_rules)
    assert openings[0] == Opening(first)
    assert openings[1].fen is not None and openings[1].fen.split()[0] == second.split()[0]
    settings = replace(SHORT, openings=openings, random_plies=(1, 1))
    games, dropped = played(generator(one_rules, settings))
    assert dropped == []
    assert [g.start_fen for g in games] == [first, openings[1].fen, first]
    for record in games:
        game = Game(one_rules, record.start_fen)
        for move in record.moves:
            assert move in game.legal_moves()
            game.push(move)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no opening in it"),
        ("\nnot a position\n", r"lines.epd:2: "),
        ("8/8 w\n", r"lines.epd:1: "),
    ],
)
def test_bad_opening_files(one_rules: Rules, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "lines.epd"
    file.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_positions(file, one_rules)


def test_lines_of_games_are_openings(one_rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "lines.pgn"
    line = Game(one_rules)
    while line.ply < 6:
        line.push(int(line.legal_moves()[-1]))
    texts = line.uci_moves()
    file.write_text(f"{' '.join(texts[:3])}\n{' '.join(texts)}\n{' '.join(texts)}\n")
    openings = read_lines(
        file, 5, [MoveListReader()], lambda: Resolver(one_rules, core_notations())
    )
    assert openings == tuple(Opening(None, tuple(line.moves[:n])) for n in (3, 5))
    settings = replace(SHORT, openings=openings, random_plies=(1, 2))
    games, _ = played(generator(one_rules, settings))
    for record, plies in zip(games, (3, 5, 3), strict=True):
        assert record.start_fen is None
        assert record.moves[:plies] == line.moves[:plies]
        assert record.scores is not None
        assert record.scores[: plies + 1] == [None] * (plies + 1)
        assert record.tags["RandomPlies"] in ("1", "2")


def test_a_file_without_games_says_why(one_rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "lines.pgn"
    file.write_text("e2e4 z9z9\n")
    with pytest.raises(DataError, match=r"lines.pgn: there is no opening in it \("):
        read_lines(file, 5, [MoveListReader()], lambda: Resolver(one_rules, core_notations()))


# --- a real engine -------------------------------------------------------------------------------

HAVE_PEER = shutil.which("fairy-stockfish") or any(
    Path(folder, "fairy-stockfish").exists() for folder in GAMES_FOLDERS
)


@pytest.mark.peer
@pytest.mark.skipif(not HAVE_PEER, reason="fairy-stockfish is not installed")
def test_a_real_engine(rules: Rules) -> None:
    made = GameGenerator(
        rules,
        lambda: UciSelfPlayer(
            UciClient(engine_command("fairy-stockfish"), soft_options={"Hash": "1"}),
            rules.spec.fairy,
        ),
        GenerateSettings(games=2, nodes=60),
    )
    games, dropped = played(made)
    assert dropped == []
    assert all(g.white.startswith("Fairy-Stockfish") for g in games)
    for record in games:
        assert record.scores is not None
        if record.termination == "checkmate":
            assert record.scores[-1] == MATE - 1
