"""The report of a run of self-play: one HTML page with numbers, curves and games."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.game_text import move_texts
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.draw import board_svg, png_bytes
from variant_ai.core.reinforce.budget import cpu_seconds
from variant_ai.core.reinforce.games.self_play import RESIGNATIONS
from variant_ai.core.reinforce.ladder.ladder_record import LadderRecord
from variant_ai.core.reinforce.ladder.run_ladder import PICTURE, RECORD
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.reinforce.report.generation_statistics import (
    Row,
    cpu_minutes,
    games_picture,
    learning_picture,
    speed_picture,
)
from variant_ai.core.reinforce.settings_file import flattened, settings_text
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.metric_tables import TITLES
from variant_ai.core.train.pictures.canvas import Picture
from variant_ai.core.train.report.report_page import (
    Board,
    BoardRow,
    Chapter,
    Table,
    WrittenReport,
    making,
    write_page,
)
from variant_ai.core.train.run.run_folder import ENVIRONMENT, read_object

LAST_ROWS = 10
"""Generations at the end of a run that are all in the table; of the earlier ones every tenth is."""
LAST_MATCHES = 30
LADDER_PIXELS = 840
CPU_SHARE = 0.01
"""Share of the CPU time of a run that its reports may take before the last one."""
FIRST_SECONDS = 5.0
"""CPU time that the first report is expected to take."""


class RunningReport:
    """The report of a run that is under way: it is written when it is cheap, and never ends the run."""

    def __init__(self, run: Path, rules: Rules, warn: Callable[[str], None]) -> None:
        """warn: gets a sentence about an error."""
        self._run, self._rules, self._warn = run, rules, warn
        self._written = cpu_seconds()
        self._cost = FIRST_SECONDS

    def after_generation(self) -> None:
        """Write the report if that takes at most CPU_SHARE of the time since the last one."""
        if self._cost <= CPU_SHARE * (cpu_seconds() - self._written):
            self.write()

    def write(self) -> None:
        """Write the report, or warn about the error that prevents it."""
        began = cpu_seconds()
        try:
            write_reinforce_report(self._run, self._rules)
        except Exception as error:  # a picture is no reason to lose hours of self-play
            self._warn(f"No report was written: {str(error) or type(error).__name__}.")
        self._written = cpu_seconds()
        self._cost = self._written - began


def write_reinforce_report(run: Path, rules: Rules, *, out: Path | None = None) -> WrittenReport:
    """Draw the pictures of a run into `RUN/pictures` and write its page; return the paths of all.

    The run may be under way. rules: of its spec. out: the page to write, `RUN/report.html` by default.

    Raises DataError if the folder is not a run or a file is damaged, OSError.
    """
    folder = ReinforceFolder(run)
    settings, state, rows = folder.settings(), folder.state(), folder.rows()
    ladder = LadderRecord.read(run / RECORD)
    chapters = [_summary(run, settings, state, rows, ladder)]
    if ladder.pairings:
        chapters.append(_strength(run, ladder))
    if rows:
        chapters.append(_generations(rows, ladder))
        chapters.append(_games(folder, rows, rules))
    chapters.append(making(run, "All settings", settings_text(settings)))
    subtitle = (
        f"{counted(state.generation, 'generation')}, {counted(state.games, 'game')}, "
        f"{counted(state.positions, 'position')}; run directory {run.resolve().name}."
    )
    title = f"{rules.spec.variant}: report of a run of self-play"
    return write_page(run, title, subtitle, chapters, out)


# --- chapters ------------------------------------------------------------------------------------


def _summary(
    run: Path,
    settings: ReinforceSettings,
    state: RunState,
    rows: Sequence[Row],
    ladder: LadderRecord,
) -> Chapter:
    facts = [
        ("variant", settings.variant),
        ("start", settings.start),
        ("net", settings.learning.net),
        ("generations", _of(state.generation, settings.generations)),
        ("games", f"{state.games:,}"),
        ("recorded positions", f"{state.positions:,}"),
        ("evaluations of self-play", f"{state.evaluations:,}"),
        ("steps of the learner", f"{state.steps:,}"),
        ("net that plays", f"generation {state.player}"),
        ("CPU time, minutes", _of(state.cpu_seconds / 60, settings.minutes)),
        ("elapsed time, minutes", f"{state.seconds / 60:.1f}"),
    ]
    measured = list(ladder.elo().items())
    if len(measured) > 1:
        generation, (elo, error) = measured[-1]
        facts.append(
            (f"Elo of generation {generation} above generation 0", f"{elo:+.0f} ± {error:.0f}")
        )
    facts += _machine(run)
    tables = [Table("Run", ("", ""), facts, numbers=False)]
    if rows:
        tables.append(_cpu_table(state, rows))
    tables.append(_changed_settings(settings))
    if resigned := _resignations(rows):
        tables.append(resigned)
    text = "" if rows else "No generation is complete yet."
    return Chapter("Summary", text, tables=tables)


def _of(used: float, whole: float | None) -> str:
    """A number with the budget for it, if there is one."""
    text = f"{used:,}" if isinstance(used, int) else f"{used:,.1f}"
    return text if whole is None else f"{text} of {whole:g}"


def _machine(run: Path) -> list[tuple[str, str]]:
    """The processor and the GPUs of the machine that ran it last, if they are known."""
    if not (run / ENVIRONMENT).is_file():
        return []
    environment = read_object(run / ENVIRONMENT)
    processor = environment.get("cpu") or {}
    facts = [("processor", f"{processor.get('name')}, {processor.get('cores')} logical cores")]
    if extensions := processor.get("extensions"):
        facts.append(("instruction sets", ", ".join(extensions)))
    if gpus := environment.get("gpus"):
        facts.append(("GPUs", ", ".join(gpus)))
    return facts


def _cpu_table(state: RunState, rows: Sequence[Row]) -> Table:
    """CPU time by step. Time without a step of its own is that of earlier processes that were
    killed, and of writing files."""
    spent = cpu_minutes(rows)
    total = state.cpu_seconds / 60
    parts = {
        "self-play": sum(spent["self-play"]),
        "training": sum(spent["training"]),
        "matches": state.ladder_cpu_seconds / 60,
    }
    parts["everything else"] = max(0.0, total - sum(parts.values()))
    shown = [
        (name, f"{minutes:,.1f}", f"{100 * minutes / total:.1f} %" if total else "")
        for name, minutes in parts.items()
    ]
    return Table("CPU time", ("step", "minutes", "share"), [*shown, ("all", f"{total:,.1f}", "")])


def _changed_settings(settings: ReinforceSettings) -> Table:
    """Settings that differ from their defaults."""
    own = flattened(settings.model_dump(mode="json"))
    usual = flattened(ReinforceSettings(variant=settings.variant).model_dump(mode="json"))
    rows = [
        (name, _word(value), _word(usual.get(name)))
        for name, value in own.items()
        if name != "variant" and value != usual.get(name)
    ]
    return Table(
        "Settings that differ from the defaults",
        ("setting", "here", "default"),
        rows or [("none", "", "")],
        numbers=False,
    )


def _word(value: Any) -> str:
    """A value as in a settings file."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _resignations(rows: Sequence[Row]) -> Table | None:
    """Resignations that were checked by games played out; None if there were none."""
    counts = [row.get("checked_resignations") or {} for row in rows]
    total = {name: sum(count.get(name, 0) for count in counts) for name in RESIGNATIONS}
    if not total["played_out"]:
        return None
    wrong = f"{total['wrong']:,}"
    if total["would_resign"]:
        wrong += f" ({100 * total['wrong'] / total['would_resign']:.1f} %)"
    return Table(
        "Resignations",
        ("", ""),
        [
            ("games played out regardless", f"{total['played_out']:,}"),
            ("of these, a side would have resigned", f"{total['would_resign']:,}"),
            ("of these, it did not lose", wrong),
        ],
    )


def _strength(run: Path, ladder: LadderRecord) -> Chapter:
    """Elo over the generations, and the last matches."""
    pictures = []
    if (run / PICTURE).is_file():
        png = png_bytes((run / PICTURE).read_text("utf-8"), width=LADDER_PIXELS)
        caption = (
            "Elo of each measured generation above generation 0, with its 95 % interval. "
            "Outside players are dotted lines."
        )
        pictures.append(Picture("ladder", "Ladder", caption, png))
    heads = (
        "generation", "opponent", "games", "wins", "draws", "losses", "score", "at greatest length",
        "different", "CPU s",
    )  # fmt: skip
    rows = [
        (
            str(played.generation),
            str(played.opponent),
            str(played.tally.games),
            str(played.wins),
            str(played.draws),
            str(played.losses),
            f"{100 * played.tally.score:.1f} %" if played.tally.games else "",
            str(played.capped),
            str(played.distinct),
            f"{played.cpu_seconds:.1f}",
        )
        for played in ladder.pairings[-LAST_MATCHES:]
    ]
    text = (
        "Matches of a generation against earlier ones and outside players. “at greatest length”: draws "
        "by reaching the greatest length; “different”: games that do not repeat another one."
    )
    return Chapter(
        "Strength", text, tables=(Table("Last matches", heads, rows),), pictures=pictures
    )


def _generations(rows: Sequence[Row], ladder: LadderRecord) -> Chapter:
    """Curves, and a table of the first, every tenth and the last generations."""
    elo = ladder.elo()
    late = rows[-LAST_ROWS]["generation"] if len(rows) >= LAST_ROWS else 0
    shown = [
        row
        for row in rows
        if row is rows[0] or row["generation"] % 10 == 0 or row["generation"] >= late
    ]
    heads = (
        "generation", "games", "window", "plies", "draws", "most frequent end",
        "entropy", TITLES["policy_loss"], TITLES["value_loss"], "always 0", "distinct", "CPU min", "Elo",
    )  # fmt: skip
    table = Table("", heads, [_generation_row(row, elo) for row in shown])
    return Chapter(
        "Generations",
        pictures=(learning_picture(rows), games_picture(rows), speed_picture(rows)),
        tables=(table,),
    )


def _generation_row(row: Row, elo: Mapping[int, tuple[float, float]]) -> tuple[str, ...]:
    train = row.get("train") or {}
    losses = [
        f"{train[name]:.3f}" if train.get(name) is not None else ""
        for name in ("policy_loss", "value_loss")
    ]
    ends = row["ends"]
    most = max(ends, key=ends.get) if ends else ""
    rating, error = elo.get(row["generation"], (None, 0.0))
    return (
        str(row["generation"]),
        f"{row['games']:,}",
        f"{row['window']:,}",
        f"{row['plies']:.1f}",
        f"{100 * row['draws']:.1f} %",
        f"{most} {100 * ends[most] / max(1, row['games']):.0f} %" if most else "",
        f"{row['policy_entropy']:.2f}",
        *losses,
        f"{row['zero_value_loss']:.3f}",
        f"{100 * row['distinct_positions']:.0f} %",
        f"{row['cpu_minutes']:.1f}",
        "" if rating is None else f"{rating:+.0f} ± {error:.0f}",
    )


def _games(folder: ReinforceFolder, rows: Sequence[Row], rules: Rules) -> Chapter:
    """A game of some generations; stores that were removed are left out."""
    kept = [row["generation"] for row in rows if folder.store(row["generation"]).is_file()]
    board_rows = []
    for generation in shown_generations(kept):
        record = example_game(Store(folder.store(generation), rules.spec))
        if record is not None:
            board_rows.append(game_boards(generation, record, rules))
    return Chapter(
        "Games",
        "A game of median length of the first, every tenth and the last generation, by the net before "
        "it. Below a board are the move that led to it and the value of the search for the player who "
        "made that move, from -1 (lost) to 1 (won). Random plies of the opening are in brackets.",
        board_rows=board_rows,
    )


# --- games as boards --------------------------------------------------------------------------------

EVERY = 10
"""Generations from one game that is shown to the next."""
MOST_GAMES = 10
BOARDS = 24
"""Boards of a game, at most."""
BOARD_PIXELS = 230
"""Width of a board."""
BOARD_COLOURS = 64
"""Colours of a board's picture, which make it small."""


def shown_generations(generations: Sequence[int]) -> list[int]:
    """Choose the generations whose games are shown: the first, every tenth and the last; of a long run
    MOST_GAMES, evenly spaced."""
    if not generations:
        return []
    chosen = [
        number
        for number in generations
        if number % EVERY == 0 or number in (generations[0], generations[-1])
    ]
    if len(chosen) <= MOST_GAMES:
        return chosen
    kept = np.linspace(0, len(chosen) - 1, MOST_GAMES).round().astype(int)
    return [chosen[index] for index in kept]


def example_game(store: Store) -> GameRecord | None:
    """Return the game of median length, the first of several; None if the store is empty."""
    if len(store) == 0:
        return None
    order = np.argsort(store.lengths, kind="stable")
    median = store.lengths[order[(len(order) - 1) // 2]]
    return store.game(int(np.flatnonzero(store.lengths == median)[0]))


def game_boards(generation: int, record: GameRecord, rules: Rules) -> BoardRow:
    """Draw a game: at most BOARDS positions, evenly spaced after the random plies, the last one among
    them. Raises FenError for a damaged start.
    """
    texts = move_texts(rules, SanNotation(), record)
    first = min(record.opening_plies, len(texts))
    count = min(BOARDS, len(texts) - first + 1)
    shown = {int(ply) for ply in np.linspace(first, len(texts), count).round()}
    position = rules.position(record.start_fen)
    boards = []
    for ply in range(len(texts) + 1):
        if ply in shown:
            last = record.moves[ply - 1] if ply else None
            svg = board_svg(
                rules.spec, position, last_move=last, show_coordinates=False, size=BOARD_PIXELS
            )
            boards.append(Board(_small_png(svg), _caption(record, texts, ply)))
        if ply < len(texts):
            position = rules.play(position, record.moves[ply])
    title = (
        f"Generation {generation}, game {record.number}: {record.result}, {record.termination}, "
        f"{counted(record.plies, 'ply')}"
    )
    return BoardRow(title, _numbered(texts, first), boards)


def _caption(record: GameRecord, texts: Sequence[str], ply: int) -> str:
    """The move that led to a board, with its ply from 1, and the root value of the search for it."""
    if ply == 0:
        return "start"
    value = None
    if record.root_values and ply > record.opening_plies:
        value = record.root_values[ply - 1]
    return f"{ply}. {texts[ply - 1]}" + ("" if value is None else f"\n{value:+.2f}")


def _numbered(texts: Sequence[str], first: int) -> str:
    """All moves with their plies; those of a random opening in brackets."""
    moves = [f"{ply}. {text}" for ply, text in enumerate(texts, 1)]
    opening = f"[{' '.join(moves[:first])}] " if first else ""
    return opening + " ".join(moves[first:])


def _small_png(svg: str) -> bytes:
    from PIL import Image

    small = io.BytesIO()
    with Image.open(io.BytesIO(png_bytes(svg, width=BOARD_PIXELS))) as image:
        image.convert("RGB").quantize(BOARD_COLOURS).save(small, "png", optimize=True)
    return small.getvalue()
