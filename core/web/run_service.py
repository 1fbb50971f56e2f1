"""The process that reads run folders: curves, ladder and games of `train` and `reinforce`.

Only folders below those that the server was given are read, and only by the names that `runs`
returns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.reinforce.ladder.ladder_record import LadderRecord
from variant_ai.core.reinforce.ladder.run_ladder import RECORD
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec.catalogue import SPEC_SUFFIXES
from variant_ai.core.train.measure.metric_tables import TITLES
from variant_ai.core.train.run.run_folder import (
    CONFIG,
    MODEL,
    Event,
    read_metrics,
    run_config,
    train_and_validation,
)
from variant_ai.core.web import Actions, Json

MOST_RUNS = 200
MOST_POINTS = 400
"""Points of a curve; of more, evenly spaced ones are kept."""
GAMES_A_PAGE = 25
Points = list[tuple[float, float]]
Curve = Json
"""`title`, and `series`: name and points of each line."""


class RunService:
    """Answers questions about runs, one after the other."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """roots: folders that hold run folders, or are some."""
        self._roots = tuple(roots)
        self.actions: Actions = {
            "runs": self._list,
            "run": self._show,
            "games": self._games,
        }

    def _folders(self) -> dict[str, Path]:
        """Run folders by name, those that changed last first. Of several with a name, the later ones
        have the folder above in it."""
        found: dict[str, Path] = {}
        seen: set[Path] = set()
        for root in self._roots:
            inner = sorted(root.iterdir()) if root.is_dir() and not _is_run(root) else [root]
            for folder in inner:
                path = folder.resolve()
                if _is_run(folder) and path not in seen:
                    seen.add(path)
                    found[_free_name(path, found)] = folder
        newest = sorted(found.items(), key=lambda one: -_changed(one[1]))
        return dict(newest[:MOST_RUNS])

    def _folder(self, name: str) -> Path:
        """Return the folder of a run. Raises UnknownNameError."""
        folders = self._folders()
        if name not in folders:
            raise UnknownNameError("run", name, folders)
        return folders[name]

    def _list(self, question: Json) -> Json:
        runs, folders = [], self._folders()
        for name, folder in folders.items():
            try:
                runs.append({"name": name, "changed": _changed(folder), **_kind(folder)})
            except VariantAIError as error:
                runs.append({"name": name, "changed": _changed(folder), "error": str(error)})
        return {"runs": runs, "paths": {name: str(folder) for name, folder in folders.items()}}

    def _show(self, question: Json) -> Json:
        """Return facts and curves of a run, the spec by which its net can be played if only a file
        has it, and for self-play its ladder and generations."""
        folder = self._folder(question["run"])
        shown: Json = {
            "name": question["run"],
            **_kind(folder),
            "spec": _spec_text(folder),
        }
        if shown["kind"] == "reinforce":
            run = ReinforceFolder(folder)
            state, rows = run.state(), run.rows()
            ladder = LadderRecord.read(folder / RECORD)
            return {
                **shown,
                "facts": [
                    ["generations", f"{state.generation:,}"],
                    ["games", f"{state.games:,}"],
                    ["positions", f"{state.positions:,}"],
                    ["CPU time", f"{state.cpu_seconds / 60:.1f} minutes"],
                    ["elapsed time", f"{state.seconds / 60:.1f} minutes"],
                ],
                "curves": generation_curves(rows),
                "ladder": [
                    [number, round(elo, 1), round(error, 1)]
                    for number, (elo, error) in ladder.elo().items()
                    if math.isfinite(elo) and math.isfinite(error)
                ],
                "generations": [row["generation"] for row in rows],
            }
        events = read_metrics(folder)
        last = events[-1] if events else {}
        return {
            **shown,
            "facts": [
                ["step", f"{int(last.get('step', 0)):,}"],
                ["trained for", f"{float(last.get('seconds') or 0) / 60:.1f} minutes"],
            ],
            "curves": training_curves(events),
            "ladder": [],
            "generations": [],
        }

    def _games(self, question: Json) -> Json:
        """Return games of a generation of self-play, GAMES_A_PAGE from number `first` on."""
        from variant_ai.core.data.store.game_store import Store

        folder = self._folder(question["run"])
        if _kind(folder)["kind"] != "reinforce":
            raise DataError("a run of `train` has no games of its own")
        run = ReinforceFolder(folder)
        generation = question.get("generation", 1)
        path = run.store(generation)
        if not path.exists():
            raise DataError(f"the games of generation {generation} are not there")
        store = Store(path)
        first = min(int(question.get("first", 0)), max(len(store) - 1, 0))
        spec = store.spec
        types, files = PieceTypes(spec), spec.board.files
        games = []
        for number in range(first, min(first + GAMES_A_PAGE, len(store))):
            record = store.game(number)
            games.append(
                {
                    "number": number + 1,
                    "result": record.result,
                    "termination": record.termination,
                    "fen": record.start_fen,
                    "moves": [uci(types, files, move) for move in record.moves],
                    "values": record.root_values,
                }
            )
        return {"variant": spec.variant, "games": games, "first": first, "count": len(store)}


def _free_name(path: Path, taken: Collection[str]) -> str:
    """Return the shortest end of a path that is not taken."""
    parts = path.parts
    ends = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return next((end for end in ends if end not in taken), str(path))


def _is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or ReinforceFolder(folder).exists()


def _changed(folder: Path) -> float:
    """Return when a run's files changed last, in seconds since 1970."""
    found = 0.0
    for name in (".", "metrics.jsonl", "generations.jsonl", "state.json"):
        try:
            found = max(found, (folder / name).stat().st_mtime)
        except OSError:
            continue
    return found


def _kind(folder: Path) -> Json:
    """Return `kind`, `variant`, and `net`: True if there is one to play against. Raises DataError."""
    net = (folder / MODEL).is_file()
    if ReinforceFolder(folder).exists():
        name = ReinforceFolder(folder).settings().variant
        return {
            "kind": "reinforce",
            "variant": Path(name).stem if _is_spec_file(name) else name,
            "net": net,
        }
    return {"kind": "train", "variant": run_config(folder).variant, "net": net}


def _is_spec_file(name: str) -> bool:
    """Return True if the variant of a run of self-play is the path of a spec."""
    return Path(name).suffix in SPEC_SUFFIXES or len(Path(name).parts) > 1


def _spec_text(folder: Path) -> str | None:
    """Return the spec that a run's net was trained with, as JSON, which is YAML too: the file that it
    came from may have moved. None if the variant has a name, or if there is no net. Raises DataError.
    """
    if not ReinforceFolder(folder).exists():
        spec = run_config(folder).spec
        return json.dumps(spec, ensure_ascii=False) if spec else None
    net = folder / MODEL
    if not _is_spec_file(ReinforceFolder(folder).settings().variant) or not net.is_file():
        return None
    return read_model_file(net).info.spec or None


# --- curves --------------------------------------------------------------------------------------


def generation_curves(rows: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Return the curves of a run of self-play, by generation."""

    def of(name: str, factor: float = 1.0) -> Points:
        return _points(rows, "generation", lambda row: _number(row.get(name), factor))

    def trained(name: str) -> Points:
        return _points(
            rows, "generation", lambda row: _number((row.get("train") or {}).get(name), 1.0)
        )

    return _nonempty(
        [
            (
                "Policy loss",
                [
                    (TITLES["policy_loss"], trained("policy_loss")),
                    ("entropy of the targets", of("policy_entropy")),
                ],
            ),
            (
                "Value loss",
                [
                    (TITLES["value_loss"], trained("value_loss")),
                    ("loss of always 0", of("zero_value_loss")),
                ],
            ),
            (
                "Results, per cent",
                [
                    ("first player wins", of("first_player_wins", 100)),
                    ("draws", of("draws", 100)),
                    ("second player wins", of("second_player_wins", 100)),
                ],
            ),
            ("Plies of a game", [("mean", of("plies")), ("longest", of("longest"))]),
            ("Distinct positions, per cent", [("distinct", of("distinct_positions", 100))]),
        ]
    )


def training_curves(events: Sequence[Event]) -> list[Curve]:
    """Return the curves of a training, by step: the training's numbers and those of validation."""
    train, tested = train_and_validation(events)
    found = []
    for name, title in TITLES.items():
        lines = [
            (kind, _points(chosen, "step", lambda event: _number(event.get(name), 1.0)))  # noqa: B023
            for kind, chosen in (("training", train), ("validation", tested))
        ]
        found.append((title[0].upper() + title[1:], lines))
    rate = _points(train, "step", lambda event: _number(event.get("lr"), 1.0))
    return _nonempty([*found, ("Learning rate", [("learning rate", rate)])])


def _nonempty(curves: Iterable[tuple[str, list[tuple[str, Points]]]]) -> list[Curve]:
    found = []
    for title, lines in curves:
        series = [{"name": name, "points": points} for name, points in lines if points]
        if series:
            found.append({"title": title, "series": series})
    return found


def _points(
    rows: Sequence[Mapping[str, Any]],
    by: str,
    value: Callable[[Mapping[str, Any]], float | None],
) -> Points:
    points = [
        (float(row[by]), found) for row in rows if by in row and (found := value(row)) is not None
    ]
    if len(points) <= MOST_POINTS:
        return points
    last = len(points) - 1
    return [points[round(i * last / (MOST_POINTS - 1))] for i in range(MOST_POINTS)]


def _number(value: Any, factor: float) -> float | None:
    """Return a finite number times a factor, rounded; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(f"{value * factor:.6g}")
