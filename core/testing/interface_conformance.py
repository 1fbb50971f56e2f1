"""Conformance of encoders, networks, searches and trainers: what every implementation must do.

Call these from the tests of a plugin. Each raises AssertionError with what is wrong, and returns None if
all is well. The built-in implementations pass the same checks.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.interface import InputEncoder, LabelEncoder
from variant_ai.core.errors import MoveError
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.nets.interface import NetShape, NetworkBuilder, problem_of_builder
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.train.interface import BaseTrainer, TrainResult
    from variant_ai.core.train.run.run_folder import Observer

PLIES = 40
"""Length of the random game whose positions are looked at."""


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
