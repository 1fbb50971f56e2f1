"""`variant-ai import`: games from files of any kind into a game store."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, fail
from variant_ai.cli.common.options import (
    COUNT,
    cluster_pools,
    examples,
    json_option,
    load_variant,
    make_resolver,
    ray_option,
    require_no_input,
    variant_option,
    with_options,
)
from variant_ai.cli.common.store_options import (
    command_digest,
    filter_options,
    game_filter,
    writing_mode,
)
from variant_ai.core.errors import DataError, UnknownNameError, os_reason
from variant_ai.core.system.files import is_same_file
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from variant_ai.core.data.filters import GameFilter
    from variant_ai.core.data.read.game_reader import Skip
    from variant_ai.core.data.read.importer import ImportReport

MAX_WORKERS = 3
"""Default limit, with which an import uses less than 500 MB."""
_EXAMPLES = examples(
    "variant-ai import games.pgn.gz -V NAME -o games.store",
    "variant-ai import lichess/*.pgn.zst -V NAME -o strong.store --min-rating 2000",
    "variant-ai import masters.tar.xz more/ -V NAME -o masters.store --drop-duplicates",
    "variant-ai import games.jsonl -V NAME -o masters.store --append --since 2008",
)


import_options = with_options(
    filter_options,
    click.option("--no-time-forfeits", is_flag=True, help="Drop games lost on time."),
    click.option("--keep-aborted", is_flag=True, help="Keep aborted games."),
    click.option(
        "--skipped",
        metavar="FILE",
        type=click.Path(),
        help="List of the games that could not be read.  [default: STORE.skipped.jsonl]",
    ),
    click.option(
        "--workers",
        type=COUNT,
        metavar="N",
        help="Processes that read moves, about 100 MB each.  [default: number of cores, at most 3]",
    ),
)
"""Adds the options of commands that import games; read conditions with `import_conditions`."""


def import_conditions(options: dict[str, Any]) -> GameFilter:
    """Return the conditions of the options, which are removed from `options`."""
    if not options.pop("keep_aborted"):
        options["not_endings"] += ("aborted",)
    if options.pop("no_time_forfeits"):
        options["not_endings"] += ("time",)
    return game_filter(options)


def import_workers(workers: int | None) -> int:
    """Return the number of worker processes."""
    from variant_ai.core.system.processors import processors

    return workers or min(MAX_WORKERS, processors())


@click.command("import", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@variant_option()
@click.option(
    "-o", "--output", metavar="STORE", required=True, type=click.Path(), help="Store to write."
)
@click.option("--append", is_flag=True, help="Add to an existing store.")
@click.option("--replace", is_flag=True, help="Overwrite an existing store.")
@import_options
@click.option(
    "--drop-duplicates",
    is_flag=True,
    help="Of games with the same start and moves, keep only the first, also with --append.",
)
@click.option("--reader", metavar="NAME", help="Read all files with this reader.")
@click.option("--notation", metavar="NAME", help="Read all moves in this notation.")
@ray_option("Read moves")
@json_option
def command(
    files: tuple[str, ...],
    variant: str,
    output: str,
    append: bool,
    replace: bool,
    drop_duplicates: bool,
    reader: str | None,
    notation: str | None,
    skipped: str | None,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Read games from FILES into a game store.

    FILES are PGN, lists of moves, tables or JSON lines, plain or compressed (.gz, .bz2, .xz, .zst,
    .zip, .tar), folders of such files, or - for standard input. Text may be UTF-8, UTF-16, Big5 or
    GB18030. Every move is checked; games that cannot be read are skipped, counted, and listed in a
    file. Aborted games are dropped, games lost on time are kept. After Ctrl-C or a kill, the same
    command resumes, also with --append, without adding games twice.
    """
    from variant_ai.core.data.read.game_files import total_bytes
    from variant_ai.core.data.read.importer import Importer
    from variant_ai.core.data.store.store_writer import StoreWriter
    from variant_ai.core.spec.hashing import rules_hash
    from variant_ai.core.system.child_processes import WorkerPool
    from variant_ai.plugins import registry

    mode = writing_mode(append, replace)
    spec = load_variant(variant)
    if notation is not None:
        registry().notation(spec, notation)
    table = registry().readers(spec)
    if reader is not None and reader not in table:
        raise UnknownNameError("reader", reader, table)
    conditions = import_conditions(options)
    make_pool: Callable[..., Executor] = WorkerPool
    if cluster is None:
        workers = import_workers(workers)
    else:
        workers, make_pool = cluster_pools(cluster, workers)
    require_no_input(Path(output), files)
    total = total_bytes(files)
    chosen = list(table.values()) if reader is None else [_always(table[reader])]
    listing = skip_list(skipped, output, files)
    deciding = (files, conditions.as_dict(), reader, notation, drop_duplicates, rules_hash(spec))
    with stop_on_signal() as interrupted:
        writer = StoreWriter(
            output,
            spec,
            mode=mode,
            sources=files,
            conditions=conditions,
            drop_duplicates=drop_duplicates,
            command=command_digest(deciding),
        )
        skips = SkipList(listing, skipped is None, append)
        if writer.resumed is not None:
            note(f"resuming after {counted(writer.resumed['games'], 'game')} of {output}")
            skips.resume(writer.resumed["listed"])
        with writer, skips, progress(quiet=as_json) as bar:
            task = bar.add_task("reading KiB", total=None if total is None else total / 1024)
            importer = Importer(
                readers=chosen,
                make_resolver=partial(make_resolver, spec, notation),
                conditions=conditions,
                workers=workers,
                make_pool=make_pool,
                on_skip=skips.add,
                on_bytes=lambda size: bar.advance(task, size / 1024),
                on_progress=lambda report: bar.update(task, note=_progress_note(report)),
                stop=interrupted,
            )
            writer.mark = lambda: {**importer.mark(), "listed": skips.size()}
            report = importer.run(files, writer, writer.resumed)
            if report.games:
                writer.close(
                    dropped=report.skipped + report.dropped, interrupted=report.interrupted
                )
                skips.drop_old()
            else:
                writer.abort()
        for message in writer.notes:
            note(message)
    if as_json:
        print_json(
            {
                "store": output if report.games else None,
                "variant": spec.variant,
                **report.as_json(),
                "skipped_list": listing if report.skipped else None,
            }
        )
    elif report.games:
        _print(report, output, listing)
    if report.interrupted:
        kept = f"{counted(report.games, 'game')} went into {output}; the same command resumes"
        note(f"Interrupted; {kept if report.games else 'nothing was imported'}.")
        return EXIT_INTERRUPTED
    if not report.games:
        fail(_no_games_message(report, listing))
    return 0


def _print(report: ImportReport, output: str, listing: str) -> None:
    rate = report.read / max(report.seconds, 1e-9)
    facts: list[tuple[str, object]] = [
        ("store", output),
        ("games", f"{report.games:,} of {report.read:,} read"),
        ("plies", f"{report.plies:,}"),
        ("time", f"{report.seconds:.1f} s, {rate:,.0f} games/s"),
    ]
    print_facts(facts + left_out_facts(report.dropped, report.skipped, listing))


def left_out_facts(
    dropped: Counter[str], skipped: Counter[str], listing: str
) -> list[tuple[str, object]]:
    """Numbers of games that were dropped and skipped by reason, for `print_facts`."""
    facts: list[tuple[str, object]] = []
    facts += [("dropped", f"{n:,} {reason}") for reason, n in dropped.most_common()]
    facts += [("skipped", f"{n:,} {reason}") for reason, n in skipped.most_common()]
    return facts + ([("listed in", listing)] if skipped else [])


def _no_games_message(report: ImportReport, listing: str) -> str:
    reasons = [
        f"{n:,} {reason}"
        for counter in (report.skipped, report.dropped)
        for reason, n in counter.most_common(4)
    ]
    why = f" ({', '.join(reasons)})" if reasons else ""
    where = f"; see {listing}" if report.skipped else ""
    return f"no game was imported{why}{where}"


def _progress_note(report: ImportReport) -> str:
    skipped = report.skipped.total()
    return counted(report.games, "game") + (f", {skipped:,} skipped" if skipped else "")


def _always(reader: Any) -> Any:
    """Make a reader accept every file."""
    reader.sniff = lambda head: True
    return reader


def skip_list(skipped: str | None, output: str | Path, files: Sequence[str] = ()) -> str:
    """Return the name of the list of skips. Fails for the name of the store or of an input file,
    which the list would overwrite."""
    listing = Path(skipped or f"{output}.skipped.jsonl")
    for other in (Path(output), *map(Path, files)):
        if listing.absolute() == other.absolute() or is_same_file(listing, other):
            kind = "the store" if other == Path(output) else "an input file"
            fail(f"--skipped {listing} is {kind}; give the list another name")
    return str(listing)


class SkipList:
    """File of skips, one JSON object a line; it is created with the first skip."""

    def __init__(self, path: str, is_default: bool, append: bool = False) -> None:
        """`is_default`: the file has its default name; an old file of that name is the list of an
        earlier import and may be deleted. `append`: keep the skips that are listed already."""
        self.path = path
        self.may_delete = is_default and not append
        self.mode = "a" if append else "w"
        self.file: IO[str] | None = None

    def add(self, skip: Skip) -> None:
        """Add a skip. Raises DataError for errors such as a full disk; an empty list is removed."""
        with self._named_errors():
            if self.file is None:
                self.file = open(self.path, self.mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
            json.dump(skip.as_json(), self.file, ensure_ascii=False)
            self.file.write("\n")

    def size(self) -> int:
        """Size of the list in bytes, after writing it to disk."""
        with self._named_errors():
            if self.file is not None:
                self.file.flush()
                return os.fstat(self.file.fileno()).st_size
            return os.path.getsize(self.path) if self.mode == "a" and self._exists() else 0

    def resume(self, size: int) -> None:
        """Keep the first `size` bytes of the list of an earlier process."""
        self.may_delete = False
        if size and self._exists():
            self.mode = "a"
            with self._named_errors():
                os.truncate(self.path, min(size, os.path.getsize(self.path)))

    def _exists(self) -> bool:
        return os.path.isfile(self.path)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise OSErrors as DataErrors, which no reader takes for those of a damaged file."""
        try:
            yield
        except OSError as error:
            self._close_and_drop_empty()
            raise DataError(
                f"cannot write the list of skipped games {self.path}: "
                f"{os_reason(error, Path(self.path))}"
            ) from error

    def _close_and_drop_empty(self) -> None:
        """Close the file after an error, and delete it if it is empty."""
        file, self.file = self.file, None
        if file is None:
            return
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            if self._exists() and not os.path.getsize(self.path):
                os.unlink(self.path)

    def drop_old(self) -> None:
        """Delete the list of an earlier store with the same name if there is no skip now."""
        if self.file is None and self.may_delete:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def __enter__(self) -> SkipList:
        return self

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            with self._named_errors():
                self.file.close()
