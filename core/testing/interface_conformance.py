"""Conformance of encoders, networks, searches, trainers, notations and readers of game files: what every
implementation must do.

Call these from the tests of a plugin. Each raises AssertionError that names the fault, and
`check_reader` returns the games that it read. The built-in implementations pass the same checks.
"""

from __future__ import annotations

import io
import random
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import MAX_WORD, GameReader, RawGame
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.interface import InputEncoder, LabelEncoder
from variant_ai.core.errors import MoveError
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.nets.interface import NetShape, NetworkBuilder, problem_of_builder
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.shuffled_starts import random_start
from variant_ai.core.rules.text.notation import Notation, core_notations
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted
from variant_ai.core.testing.random_games import STYLES, random_move

if TYPE_CHECKING:
    from variant_ai.core.train.interface import BaseTrainer, TrainResult
    from variant_ai.core.train.run.run_folder import Observer

PLIES = 40
"""Length of the random game whose positions are looked at."""
NOTATION_PLIES = 80
"""Plies of the games whose moves are written and read."""
FOREIGN = ("", " ", "?", "♞x", "e2e4e6", "0" * 300, "Ж9=Ж", "\x00", "\ud800", "--", "@", "+", "=")
"""Words that are moves of hardly any notation."""
HEAD = 4096
"""Bytes that a reader recognises its files by."""
DAMAGED = 48
"""Damaged copies of a file that are read."""


def random_game(rules: Rules, plies: int = PLIES, seed: int = 0) -> Game:
    """Game of random legal moves, of `plies` plies at most."""
    rng, game = np.random.default_rng(seed), Game(rules)
    while len(game.moves) < plies and game.outcome() is None:
        game.push(int(rng.choice(game.legal_moves())))
    return game


def _positions(spec: VariantSpec) -> Position:
    positions: Position = np.concatenate(random_game(make_rules(spec)).positions)
    return positions


def check_input_encoder(make: Callable[[VariantSpec], InputEncoder], spec: VariantSpec) -> None:
    """Planes are of the promised shape, finite, written whole, the same each time and for each
    position by itself, and mirrored where the spec is symmetric."""
    encoder = make(spec)
    positions, names = _positions(spec), encoder.planes
    assert len(set(names)) == len(names), f"planes of one name: {sorted(names)}"
    shape = (len(positions), len(names), spec.board.ranks, spec.board.files)
    out = np.full(shape, np.nan, np.float32)
    encoder.encode(positions, out)
    assert np.isfinite(out).all(), "encode leaves elements unwritten, or writes NaN or infinity"
    again = np.full((1, *shape[1:]), np.nan, np.float32)
    for k in (0, len(positions) - 1):
        encoder.encode(positions[k : k + 1], again)
        assert np.array_equal(again[0], out[k]), f"position {k} alone has other planes"
    raw = np.full(shape, np.nan, np.float32)
    encoder.encode(positions, raw, raw=True)
    scale = encoder.scale
    assert scale.shape == (len(names),) and (scale > 0).all(), f"scale is {scale}"
    assert np.allclose(raw / scale[None, :, None, None], out, atol=1e-5), "raw / scale differs"
    if "files" in spec.symmetry:
        mirrored = np.full(shape, np.nan, np.float32)
        encoder.encode(positions, mirrored, mirrored=True)
        assert np.array_equal(mirrored, out[..., ::-1]), "mirrored planes are not the mirror image"


def check_label_encoder(make: Callable[[VariantSpec], LabelEncoder], spec: VariantSpec) -> None:
    """Every legal move of a game has an action of its own, and mirroring is its own inverse."""
    labels, encoder, rules = make(spec), Encoder(spec), make_rules(spec)
    assert labels.of_map.shape == (encoder.policy.size,), f"of_map has {labels.of_map.shape}"
    assert labels.to_map.shape == (labels.size,), f"to_map has {labels.to_map.shape}"
    known = np.flatnonzero(labels.to_map >= 0)
    assert np.array_equal(labels.of_map[labels.to_map[known]], known), "of_map and to_map differ"
    for position in random_game(rules).positions:
        moves = rules.legal_moves(position)
        actions = labels.of_map[encoder.action_indices(position, moves.tolist())]
        assert (actions >= 0).all(), f"a legal move has no label (FEN {rules.fen(position)})"
        assert len(set(actions.tolist())) == len(moves), "two legal moves share a label"
    if "files" in spec.symmetry:
        mirror = labels.mirrored()
        assert np.array_equal(mirror[mirror], np.arange(labels.size)), "mirrored twice differs"


def check_network(builder: NetworkBuilder, spec: VariantSpec) -> None:
    """Nets have the promised outputs, depend on torch's seed alone, learn from both losses, and can be
    exported."""
    import torch

    from variant_ai.core.nets.network import outputs_of
    from variant_ai.core.nets.onnx_export import export_onnx

    assert isinstance(builder, NetworkBuilder), f"{builder!r} is no NetworkBuilder"
    problem = problem_of_builder(builder)
    assert not problem, f"the builder {problem}"
    for head in builder.heads:
        encoder = Encoder(spec, head)
        planes, ranks, files = encoder.shape
        shape = NetShape(planes, ranks, files, encoder.actions, head, encoder.policy_shape[0])

        def build(seed: int, shape: NetShape = shape) -> torch.nn.Module:
            torch.manual_seed(seed)
            return builder.build(shape, builder.size())

        net = build(0)
        assert isinstance(net, torch.nn.Module), f"{head}: built a {type(net).__name__}"
        net.eval()
        batch = torch.from_numpy(encoder.planes(_positions(spec)[:2]))
        with torch.no_grad():
            found, again = outputs_of(net, batch), outputs_of(build(0).eval(), batch)
        assert found.value.shape == (2,), f"{head}: value is {tuple(found.value.shape)}"
        assert found.policy.shape == (2, encoder.actions), f"{head}: {tuple(found.policy.shape)}"
        assert bool((found.value.abs() <= 1).all()), f"{head}: values outside [-1, 1]"
        assert torch.equal(found.policy, again.policy), f"{head}: one seed, two nets"
        for output in ("policy", "value"):
            learner = build(1).train()
            loss = getattr(outputs_of(learner, batch), output).square().sum()
            loss.backward()
            learns = any(w.grad is not None and bool(w.grad.any()) for w in learner.parameters())
            assert learns, f"{head}: no weight learns from the {output}"
        with tempfile.TemporaryDirectory() as folder:
            export_onnx(net, Path(folder) / "net.onnx", {}, shape=shape)


def check_search(make: Callable[..., BaseSearch], spec: VariantSpec) -> None:
    """Positions are searched within their limits, from several threads, and games to their end."""
    rules = make_rules(spec)
    encoder = Encoder(spec)
    evaluator = RandomEvaluator(encoder.shape, encoder.actions)
    with make(spec, evaluator, None, rules=rules) as search:
        start = search.game.fen()
        legal = [int(move) for move in search.game.legal_moves()]
        report = search.run(Limits(nodes=32))
        assert report.best in legal, f"the best move {report.best} is not legal"
        assert report.stopped_by, "the report does not say why the search ended"
        assert search.report().best == report.best, "report() and run() disagree"
        assert {move for move, _ in search.root_visits()} <= set(legal)
        some = search.run(Limits(nodes=8), moves=legal[:1])
        assert some.best == legal[0], "a move that was not to be searched was chosen"
        try:
            search.run(Limits(nodes=1), moves=[-1])
        except MoveError:
            pass
        else:
            raise AssertionError("moves without a legal one must raise MoveError")
        timer = threading.Timer(0.2, search.stop)
        timer.start()
        assert search.run(Limits(infinite=True)).best in legal, "an infinite search has no answer"
        timer.join()
        search.settle()
        search.advance(legal[0])
        assert search.game.fen() != start, "advance does not play the move"
        search.clear()
        assert search.game.moves[-1] == legal[0], "clear forgets the game"
        _check_game(search, rules)


def _check_game(search: BaseSearch, rules: Rules) -> None:
    """Play on until the game ends or is long; the end has no best move."""
    game = random_game(rules, plies=200, seed=1)
    for ply in (1, len(game.moves) // 2, len(game.moves)):
        part = Game(rules)
        for move in game.moves[:ply]:
            part.push(move)
        search.set_game(part)
        report = search.run(Limits(nodes=4))
        if part.outcome() is None:
            assert report.best in part.legal_moves(), f"no legal move at ply {ply}"
        else:
            assert report.best is None and report.stopped_by == "game over"


def check_trainer(make: Callable[[Path, Observer], BaseTrainer], folder: Path) -> None:
    """A training ends at its last step with a checkpoint, and one that was interrupted by Ctrl-C goes
    on to the same net. To be called in the main thread.

    make: called with a run directory and an observer, always with the same configuration.
    """
    from variant_ai.core.train.run.run_folder import NoObserver

    whole = make(folder / "whole", NoObserver())
    done = whole.run()
    assert not done.stopped and done.state.step == whole.config.steps, f"ended at {done.state}"
    assert done.checkpoint.path.is_dir(), f"no checkpoint at {done.checkpoint.path}"
    done.checkpoint.check()
    assert not done.net.training, "the net is not in evaluation mode"

    class Interrupting(NoObserver):
        def stepped(self, step: int) -> None:
            if step == whole.config.steps // 2:
                signal.raise_signal(signal.SIGINT)

    half = make(folder / "half", Interrupting()).run()
    assert half.stopped, "Ctrl-C in the middle does not stop the training"
    assert half.state.step < whole.config.steps
    resumed = make(folder / "half", NoObserver()).run(resume=True)
    assert resumed.state.step == whole.config.steps, "a resumed training does not reach its end"
    _same_weights(done, resumed)


def _same_weights(one: TrainResult, other: TrainResult) -> None:
    """A training that was interrupted ends with the same net, but for rounding."""

    both = (result.net.state_dict().values() for result in (one, other))
    for mine, theirs in zip(*both, strict=True):
        assert np.allclose(mine.numpy(), theirs.numpy(), atol=1e-5), (
            "a resumed training ends with another net"
        )


def check_notation(
    make: Notation | Callable[[], Notation],
    rules: Rules,
    *,
    games: int = 6,
    seed: int = 0,
    starts: Sequence[str] = (),
) -> None:
    """Every legal move of random games has a text of its own, one word that is read back as the same
    move; any other text is a MoveError that shows it.

    make: the notation, or its class. starts: FENs that every other game begins at.
    """
    notation = make if isinstance(make, Notation) else make()
    assert isinstance(notation, Notation), f"made a {type(notation).__name__}, not a Notation"
    assert getattr(notation, "name", ""), "the notation has no name"
    rng = random.Random(seed)
    earlier: list[str] = []
    for number in range(games):
        given = rng.choice(starts) if starts and number % 2 else None
        game = Game(rules, given or random_start(rules.spec, rng))
        style = rng.choice(STYLES)
        while game.ply < NOTATION_PLIES and game.outcome() is None:
            texts = _written(notation, rules, game.position, game.legal_moves().tolist())
            for word in (*FOREIGN, *rng.sample(earlier, min(8, len(earlier)))):
                _read_foreign(notation, rules, game.position, word)
            earlier.append(rng.choice(texts))
            game.push(random_move(rules, game.position, game.legal_moves().tolist(), style, rng))
        line = notation.write_line(rules, game.positions[0], game.moves)
        assert len(line) == len(game.moves), f"write_line: {len(line)} texts of {game.ply} moves"


def _written(notation: Notation, rules: Rules, position: Position, moves: list[int]) -> list[str]:
    """Write all moves and read them back."""
    texts: dict[str, int] = {}
    for move in moves:
        where = f"{rules.uci(move)} (FEN {rules.fen(position)})"
        text = notation.write(rules, position, move)
        assert isinstance(text, str), f"{notation.name} writes {text!r} for {where}"
        assert len(text.split()) == 1, f"{text!r} is not one word; {notation.name}, {where}"
        assert len(text) <= MAX_WORD, f"{text!r} is longer than {MAX_WORD} characters; {where}"
        assert text not in texts, (
            f"{notation.name} writes {text!r} for {where} and for {rules.uci(texts[text])}"
        )
        texts[text] = move
        try:
            read = notation.read(rules, position, text)
        except MoveError as error:
            raise AssertionError(f"{text!r}, written for {where}, is not read: {error}") from error
        assert read == move, f"{text!r}, written for {where}, is read as {rules.uci(read)}"
    return list(texts)


def _read_foreign(notation: Notation, rules: Rules, position: Position, word: str) -> None:
    """A word that was not written for this position is a legal move or a MoveError."""
    where = f"(FEN {rules.fen(position)})"
    try:
        move = notation.read(rules, position, word)
    except MoveError as error:
        shown = word[:20] in str(error) or repr(word)[1:20] in str(error)
        assert shown, f"the error about {word!r} does not show it: {error}"
    except Exception as error:
        raise AssertionError(
            f"{word!r} raises {type(error).__name__}, not MoveError {where}"
        ) from error
    else:
        assert move in rules.legal_moves(position), f"{word!r} is read as an illegal move {where}"


def check_reader(
    make: GameReader | Callable[[], GameReader],
    data: bytes,
    *,
    games: int,
    rules: Rules | None = None,
    notations: Sequence[Notation] = (),
    seed: int = 0,
) -> list[GameRecord]:
    """A file is recognised and always read as the same games, and damage to it is never an error but a
    game with a problem.

    make: the reader, or its class. data: an undamaged file with this number of `games`. rules: if given, the games must be
    legal, in one of `notations` or those of the core. Returns the games; none without `rules`.
    """
    reader = make if isinstance(make, GameReader) else make()
    assert isinstance(reader, GameReader), f"made a {type(reader).__name__}, not a GameReader"
    assert getattr(reader, "name", ""), "the reader has no name"
    for suffix in reader.extensions:
        assert suffix.startswith(".") and suffix == suffix.lower(), (
            f"extension {suffix!r}; accepted: lower case with its dot, such as '.pgn'"
        )
    assert reader.sniff(data[:HEAD]), "the reader does not recognise its own file"
    rng = random.Random(seed)
    for other in (b"", b"\0" * 64, bytes(rng.randrange(256) for _ in range(HEAD))):
        found = reader.sniff(other)
        assert found is False, f"sniff gives {found!r} for {other[:8]!r}…; expected False"
    read = _read(reader, data)
    assert len(read) == games, f"{counted(len(read), 'game')} were read, the file has {games}"
    for number, game in enumerate(read, 1):
        where = f"game {number}, line {game.line}"
        assert not game.problem, f"{where}: {game.problem}: {game.detail}"
        assert game.number == number, f"{where} says that its number is {game.number}"
        assert game.source == "file", f"{where} says that its source is {game.source!r}"
        assert len(game.lines) == len(game.moves), f"{where}: lines and moves differ in length"
    lines = [game.line for game in read]
    assert lines == sorted(lines) and lines[:1] >= [1], f"lines of the games: {lines}"
    pairs = zip_longest(reader.read(_stream(data), "file"), reader.read(_stream(data), "file"))
    assert all(one == other for one, other in pairs), "two files read at once give other games"
    for _ in range(DAMAGED):
        at = rng.randrange(len(data) + 1)
        _read(reader, data[:at])
        junk = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        _read(reader, data[:at] + junk + data[at + rng.randrange(9) :])
    return [] if rules is None else _resolved(read, rules, notations)


def _stream(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def _read(reader: GameReader, data: bytes) -> list[RawGame]:
    """Read a whole file, damaged or not."""
    try:
        read = list(reader.read(_stream(data), "file"))
    except Exception as error:
        raise AssertionError(
            f"a file that ends in {data[-20:]!r} raises {type(error).__name__}: {error}; a reader "
            "gives a game with a `problem` instead"
        ) from error
    for game in read:
        assert isinstance(game, RawGame), f"yielded a {type(game).__name__}, not a RawGame"
    return read


def _resolved(read: list[RawGame], rules: Rules, notations: Sequence[Notation]) -> list[GameRecord]:
    resolver = Resolver(rules, [*notations, *core_notations()])
    records = []
    for game in read:
        record = resolver.resolve(game)
        assert isinstance(record, GameRecord), f"game {game.number}: {record.detail}"
        records.append(record)
    return records
