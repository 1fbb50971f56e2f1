"""Folder of a run that learns by self-play: the names of its files, its state, its lock.

| file | contents |
| --- | --- |
| settings.yaml | what was asked, resolved |
| games/000012.store | games of generation 12: those that ended before net 12 was trained |
| games/000012.journal | the same while they are played, a line a game |
| nets/000012/model.onnx | net 12, trained on the games up to 000012.store; net 0 is the start |
| nets/000012/model-int8.onnx | the same in int8, if the run plays in it |
| generations.jsonl | a line of numbers for each generation |
| ladder.json, ladder.svg | results of matches between the nets |
| state.json | the last complete generation and what was counted, written last |
| report.html, pictures/ | everything on one page, and its pictures |
| environment.json | the machine and the versions of packages of the last process |

The folder is a run directory of `variant-ai train` as well: `config.json`, `checkpoints/`,
`metrics.jsonl` and `model.onnx` (the newest net, and `model-int8.onnx` if the run plays in int8) are the
learner's, so that commands accept the folder as a net.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from variant_ai.core.data.store.blocks import write_lock
from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import RUN_MODEL, beside_name
from variant_ai.core.reinforce.reinforce_settings import INT8, ReinforceSettings
from variant_ai.core.reinforce.settings_file import read_settings, settings_text
from variant_ai.core.system.checked_models import first_fault
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.run.run_folder import CHECKPOINTS, LOCK, locked, read_object

_OF_NETS = (RUN_MODEL, "nets", CHECKPOINTS)
"""Names in a run's folder at which nets are."""
_BEGUN = (LOCK, "games", "nets", "settings.yaml.part")
"""Names that a folder may have before it has settings."""


class RunState(BaseModel):
    """Counts of a run so far."""

    model_config = ConfigDict(extra="forbid")

    generation: int = Field(default=0, ge=0)
    """The last complete generation; 0: none."""
    player: int = Field(default=0, ge=0)
    """Generation of the net that plays."""
    games: int = Field(default=0, ge=0)
    """Games in the stores."""
    positions: int = Field(default=0, ge=0)
    """Recorded positions in the stores."""
    steps: int = Field(default=0, ge=0)
    """Steps of the learner up to the last complete generation."""
    evaluations: int = Field(default=0, ge=0)
    """Positions evaluated by self-play."""
    cpu_seconds: float = Field(default=0.0, ge=0)
    """CPU time of all processes of the run, over all resumes."""
    ladder_cpu_seconds: float = Field(default=0.0, ge=0)
    """The part of it that matches took."""
    seconds: float = Field(default=0.0, ge=0)
    """Time that passed while the run was under way."""
    lr: float | None = Field(default=None, gt=0)
    """Learning rate of the last complete generation by the schedule: a return to a checkpoint cuts that of
    its own generation only."""
    begun: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """`seconds` and `cpu_seconds` at the beginning of each step of the generation under way."""
    took: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """The same, spent in each of its steps that is done."""


@dataclass(frozen=True)
class ReinforceFolder:
    """Paths of a run and how its files are read and written."""

    path: Path

    @property
    def settings_file(self) -> Path:
        return self.path / "settings.yaml"

    @property
    def rows_file(self) -> Path:
        return self.path / "generations.jsonl"

    @property
    def newest_net(self) -> Path:
        return self.path / RUN_MODEL

    @property
    def newest_int8_net(self) -> Path:
        return beside_name(self.newest_net, INT8)

    def store(self, generation: int) -> Path:
        return self.path / "games" / f"{generation:06}.store"

    def journal(self, generation: int) -> Path:
        return self.path / "games" / f"{generation:06}.journal"

    def net(self, generation: int) -> Path:
        return self.path / "nets" / f"{generation:06}" / RUN_MODEL

    def int8_net(self, generation: int) -> Path:
        return beside_name(self.net(generation), INT8)

    def exists(self) -> bool:
        """Return True if there is a run."""
        return self.settings_file.is_file()

    def require_free(self) -> None:
        """Raise DataError if the path holds anything but a run of self-play."""
        if self.exists() or not self.path.exists():
            return
        if not self.path.is_dir():
            raise DataError(f"{self.path} is not a folder; name another for the run")
        if other := sorted(path.name for path in self.path.iterdir() if path.name not in _BEGUN):
            raise DataError(
                f"{self.path} holds no run of self-play but other files ({other[0]}); name another "
                "folder"
            )

    def write(self, settings: ReinforceSettings) -> None:
        """Write the settings of a run, and make the folders of a new one. Raises OSError."""
        for name in ("games", "nets"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        write_whole(self.settings_file, settings_text(settings))

    def settings(self) -> ReinforceSettings:
        """Read the settings. Raises DataError if the folder is not a run, or they are damaged."""
        if not self.exists():
            if not self.path.exists():
                raise DataError(f"there is no folder {self.path}; name that of a run of self-play")
            raise DataError(f"{self.path} holds no run of self-play: it has no settings.yaml")
        return read_settings(self.settings_file)

    def state(self) -> RunState:
        """Read the state; that of a run that has just begun if there is none. Raises DataError."""
        path = self.path / "state.json"
        if not path.is_file():
            return RunState()
        try:
            return RunState.model_validate(read_object(path))
        except ValidationError as error:
            word, reason, _ = first_fault(error)
            raise DataError(
                f"{path} is damaged ({word}: {reason}); delete it, and games and nets are counted "
                "again, with the CPU time from 0"
            ) from None

    def write_state(self, state: RunState) -> None:
        write_whole(self.path / "state.json", state.model_dump_json(indent=2))

    def rows(self) -> list[dict[str, Any]]:
        """Numbers of each complete generation, in order."""
        if not self.rows_file.is_file():
            return []
        rows: dict[int, dict[str, Any]] = {}
        for line in self.rows_file.read_text("utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                row = json.loads(line)
                rows[row["generation"]] = row
        return [rows[generation] for generation in sorted(rows)]

    def add_row(self, row: dict[str, Any]) -> None:
        """Add the numbers of a generation, in place of those written before a kill."""
        rows = [old for old in self.rows() if old["generation"] < row["generation"]]
        write_whole(
            self.rows_file, "".join(f"{json.dumps(line)}\n" for line in [*rows, row]).encode()
        )

    def holder(self) -> str:
        """Return the process that is running it, as `process 12, since …`; empty if there is none, or if
        the file system has no locks."""
        path = self.path / LOCK
        # After a kill the file still names the process; without a name nobody holds the lock, and it
        # is not taken from a process that is about to.
        if not path.is_file() or not (named := path.read_text("utf-8").strip()):
            return ""
        try:
            with path.open("rb") as file, write_lock(file, path):
                return ""
        except DataError:
            return named

    def games_in_hand(self, generation: int) -> int:
        """Number of games in the journal of a generation."""
        path = self.journal(generation)
        return path.read_bytes().count(b"\n") if path.is_file() else 0

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run. A folder that was made for it is removed again if an error comes before there is a
        run. Raises DataError if the folder holds other files, or that names the process that holds the
        lock; OSError."""
        self.require_free()
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with locked(self.path):
                yield
        except BaseException:
            if is_new and not self.exists():
                shutil.rmtree(self.path, ignore_errors=True)
            raise


def run_of_net(path: Path) -> tuple[ReinforceFolder, int | None] | None:
    """The run of self-play that a net lies in, and the generation of the net, None for the newest; None if
    it lies in no such run. path: of the run, or of a net or checkpoint inside it."""
    path = path.resolve()
    for folder in (path, *path.parents[:3]):
        names = path.relative_to(folder).parts
        if ReinforceFolder(folder).exists() and (not names or names[0] in _OF_NETS):
            of_generation = names[:1] == ("nets",) and len(names) > 1 and names[1].isdecimal()
            return ReinforceFolder(folder), int(names[1]) if of_generation else None
    return None
