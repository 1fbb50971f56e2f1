"""Supplies of games for a run: players in this process, or on other machines (`cluster`); their nets."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.errors import SettingError
from variant_ai.core.inference.backends import onnx_backend
from variant_ai.core.inference.choosing.evaluator_factory import AUTO, make_evaluator
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.games.self_play import BaseSelfPlay, make_self_play
from variant_ai.core.reinforce.reinforce_settings import INT8, ReinforceSettings
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.devices import choose_device, choose_precision

INT8_EVALUATORS = ("openvino", "onnx")
"""Evaluators that run nets in int8."""


class GameSupply(ABC):
    """Games of self-play by the net that was given last."""

    plays_on = False
    """True if players go on while the learner trains."""

    @property
    @abstractmethod
    def evaluations(self) -> int:
        """Positions evaluated so far."""

    cpu_seconds = 0.0
    """CPU time that was spent in processes on other machines."""

    @property
    @abstractmethod
    def resignations(self) -> Counter[str]:
        """Resignations that were checked so far, by `RESIGNATIONS`."""

    @abstractmethod
    def use_net(self, path: Path, generation: int) -> None:
        """Play with another net; games in progress go on. Raises DataError if it does not fit."""

    @abstractmethod
    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        """Wait for the end of a game; None if `stop` returned True first."""

    @abstractmethod
    def close(self) -> None:
        """End all players. Games in progress are lost."""


class LocalGames(GameSupply):
    """Games that this process plays."""

    def __init__(
        self,
        spec: VariantSpec,
        settings: ReinforceSettings,
        done: set[int],
        *,
        rules: Rules,
        first_game: int = 1,
        openings: Sequence[Opening] = (),
    ) -> None:
        """done: numbers of games that are not played again. first_game: the least number. openings:
        see `BaseSelfPlay`."""
        self._spec, self._settings, self._rules = spec, settings, rules
        self._openings = openings
        self._done, self._first_game = done, first_game
        self._player: BaseSelfPlay | None = None
        self._net: Evaluator | None = None

    @property
    def evaluations(self) -> int:
        return 0 if self._player is None else self._player.evaluations

    @property
    def resignations(self) -> Counter[str]:
        return Counter() if self._player is None else self._player.resignations

    def use_net(self, path: Path, generation: int) -> None:
        evaluator = open_net(
            self._spec,
            path,
            self._settings,
        )
        if self._player is None:
            self._player = make_self_play(
                self._spec,
                evaluator,
                self._settings,
                generation=generation,
                first_game=self._first_game,
                done=frozenset(self._done),
                rules=self._rules,
                openings=self._openings,
            )
        else:
            self._player.set_net(evaluator, generation)
        self._close_net()
        self._net = evaluator

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        assert self._player is not None
        return self._player.next_game(stop)

    def close(self) -> None:
        if self._player is not None:
            self._player.close()
        self._close_net()

    def _close_net(self) -> None:
        if self._net is not None:
            self._net.close()
            self._net = None


def open_net(
    spec: VariantSpec,
    path: Path,
    settings: ReinforceSettings,
) -> Evaluator:
    """Open a net for self-play or matches, without a measurement because every generation has a new net.

    The evaluator `auto` is OpenVINO on a CPU, if it is installed, in bf16 if the processor multiplies
    bf16 matrices; otherwise onnxruntime. On a GPU it is onnxruntime if that supports it, otherwise
    torch. With the precision `int8` a file runs in its own precision: the first net has no int8 file.

    Raises DataError for a net of another variant or encoding, SettingError if int8 cannot be had,
    UnknownNameError, VariantAIError.
    """
    name, precision = settings.evaluator, settings.precision
    if name == AUTO and settings.device == "cpu":
        name = "openvino" if importlib.util.find_spec("openvino") else "onnx"
    elif name == AUTO:
        name = "onnx" if settings.device.partition(":")[0] in onnx_backend.devices() else "torch"
    chosen: str | None = precision
    if precision == INT8:
        if name not in INT8_EVALUATORS or settings.device != "cpu":
            raise SettingError(
                f"precision: int8 runs with {' or '.join(INT8_EVALUATORS)} on the device cpu, not with {name} "
                f"on {settings.device}"
            )
        chosen = None
    elif precision == AUTO:
        chosen = choose_precision(AUTO, choose_device("cpu")) if name == "openvino" else None
    return make_evaluator(
        spec,
        path,
        evaluator=name,
        batch=settings.games_at_once,
        threads=settings.threads or None,
        device=settings.device,
        precision=chosen,
    )
