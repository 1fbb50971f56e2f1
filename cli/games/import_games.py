"""`variant-ai import`: games from files of any kind into a game store."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    progress,
    variant_option,
)
from variant_ai.cli.common.game_filter_options import filter_options, game_filter
from variant_ai.cli.common.notation_options import load_notation, make_resolver, readers
from variant_ai.core.system.interrupts import stop_on_signal

if TYPE_CHECKING:
    from variant_ai.core.data.read.game_reader import Skip
    from variant_ai.core.data.read.importer import ImportReport
    from variant_ai.core.data.store.store_writer import Mode

MOST_WORKERS = 3
"""Unless asked for more: with these an import stays under 500 MB."""
_EXAMPLES = examples(
    "variant-ai import games.pgn.gz -V NAME -o games.store",
    "variant-ai import lichess/*.pgn.zst -V NAME -o strong.store --min-rating 2000",
    "variant-ai import masters.tar.xz more/ -V NAME -o masters.store --drop-duplicates",
    "variant-ai import games.jsonl -V NAME -o masters.store --append --since 2008",
)


@click.command("import", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@variant_option()
@click.option(
    "-o", "--output", metavar="STORE", required=True, type=click.Path(), help="Store to write."
)
@click.option("--append", is_flag=True, help="Add to the store if there is one.")
@click.option("--replace", is_flag=True, help="Take the place of the store if there is one.")
@filter_options
@click.option("--no-time-forfeits", is_flag=True, help="Drop games lost on time.")
@click.option("--keep-aborted", is_flag=True, help="Keep aborted games, else dropped.")
@click.option(
    "--drop-duplicates",
    is_flag=True,
    help="Of games with the same start and moves keep the first; with --append, that of the store.",
)
@click.option("--reader", metavar="NAME", help="Read every file so, whatever it looks like.")
@click.option("--notation", metavar="NAME", help="The moves are in this notation and no other.")
@click.option(
    "--skipped",
    metavar="FILE",
    type=click.Path(),
    help="List what could not be read there.  [default: STORE.skipped.jsonl]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that read moves.  [default: one for each core, 3 at most: each takes 100 MB]",
)
@json_option
def command(
    files: tuple[str, ...],
    variant: str,
    output: str,
    append: bool,
    replace: bool,
    no_time_forfeits: bool,
    keep_aborted: bool,
    drop_duplicates: bool,
    reader: str | None,
    notation: str | None,
    skipped: str | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Read games from FILES into a game store.

    FILES are PGN, lists of moves or JSON lines, plain or packed (.gz, .bz2, .xz, .zst, .zip, .tar),
    folders of such files, or - for standard input. Text may be UTF-8, UTF-16, Big5 or GB18030.
    Every move is checked; games that cannot be read are skipped, counted, and listed in a file.
    After a Ctrl-C or a kill the same command goes on, with --append too: games that are in stay
    single.
    """
    from variant_ai.core.data.read.game_files import total_bytes
    from variant_ai.core.data.read.importer import Importer
    from variant_ai.core.data.store.store_writer import StoreWriter
    from variant_ai.core.errors import UnknownNameError
    from variant_ai.core.spec.hashing import rules_hash
    from variant_ai.core.system.processors import processors

    if append and replace:
        raise click.UsageError("--append and --replace exclude each other")
    spec = load_variant(variant)
    if notation is not None:
        load_notation(spec, notation)
    table = readers(spec)
    if reader is not None and reader not in table:
        raise UnknownNameError("reader", reader, table)
    not_endings = options.pop("not_endings", ())
    if not keep_aborted:
        not_endings += ("aborted",)
    if no_time_forfeits:
        not_endings += ("time",)
    conditions = game_filter({**options, "not_endings": not_endings})
    total = total_bytes(files)
    chosen = list(table.values()) if reader is None else [_insistent(table[reader])]
    mode: Mode = "append" if append else "replace" if replace else "new"
    listing = skipped or f"{output}.skipped.jsonl"
    deciding = (files, conditions.as_dict(), reader, notation, drop_duplicates, rules_hash(spec))
    with stop_on_signal() as interrupted:
        writer = StoreWriter(
            output,
            spec,
            mode=mode,
            sources=files,
            conditions=conditions,
            drop_duplicates=drop_duplicates,
            command=hashlib.blake2b(repr(deciding).encode(), digest_size=16).hexdigest(),
        )
        skips = SkipList(listing, skipped is None, append)
        if writer.resumed is not None:
            note(f"going on after {writer.resumed['games']:,} games of {output}")
            skips.go_on(writer.resumed["listed"])
        with writer, skips, progress(quiet=as_json) as bar:
            task = bar.add_task("reading KiB", total=None if total is None else total / 1024)
            importer = Importer(
                readers=chosen,
                make_resolver=partial(make_resolver, spec, notation),
                conditions=conditions,
                workers=workers or min(MOST_WORKERS, processors()),
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
        for said in writer.notes:
            note(said)
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
        kept = f"{report.games:,} games are in {output}; the same command goes on"
        note(f"Interrupted; {kept if report.games else 'nothing was imported'}.")
        return EXIT_INTERRUPTED
    if not report.games:
        fail(_nothing(report, listing))
    return 0


def _print(report: ImportReport, output: str, listing: str) -> None:
    rate = report.read / max(report.seconds, 1e-9)
    facts: list[tuple[str, object]] = [
        ("store", output),
        ("games", f"{report.games:,} of {report.read:,} read"),
        ("plies", f"{report.plies:,}"),
        ("time", f"{report.seconds:.1f} s, {rate:,.0f} games/s"),
    ]
    facts += [("dropped", f"{n:,} {reason}") for reason, n in report.dropped.most_common()]
    facts += [("skipped", f"{n:,} {reason}") for reason, n in report.skipped.most_common()]
    if report.skipped:
        facts.append(("listed in", listing))
    print_facts(facts)


def _nothing(report: ImportReport, listing: str) -> str:
    reasons = [
        f"{n:,} {reason}"
        for counter in (report.skipped, report.dropped)
        for reason, n in counter.most_common(4)
    ]
    told = f" ({', '.join(reasons)})" if reasons else ""
    where = f"; see {listing}" if report.skipped else ""
    return f"no game was imported{told}{where}"


def _progress_note(report: ImportReport) -> str:
    skipped = report.skipped.total()
    return f"{report.games:,} games" + (f", {skipped:,} skipped" if skipped else "")


def _insistent(reader: Any) -> Any:
    """The reader, but sure of every file."""
    reader.sniff = lambda head: True
    return reader


class SkipList:
    """The file that skips are listed in, one JSON object a line; made when there is one to list."""

    def __init__(self, path: str, ours: bool, append: bool = False) -> None:
        """ours: nobody named the file, so that an old one of the name is from an import too.
        append: what it lists already stays."""
        self.path = path
        self.ours = ours and not append
        self.mode = "a" if append else "w"
        self.file: IO[str] | None = None

    def add(self, skip: Skip) -> None:
        """Raises DataError on a full disk and the like; a list that is empty then is removed."""
        with self._named_errors():
            if self.file is None:
                self.file = open(self.path, self.mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
            json.dump(skip.as_json(), self.file, ensure_ascii=False)
            self.file.write("\n")

    def size(self) -> int:
        """Bytes of the list, all on their way to the disk."""
        with self._named_errors():
            if self.file is not None:
                self.file.flush()
                return os.fstat(self.file.fileno()).st_size
            return os.path.getsize(self.path) if self.mode == "a" and self._exists() else 0

    def go_on(self, size: int) -> None:
        """Keep the first so many bytes of the list, of which an earlier process knew."""
        self.ours = False
        if size and self._exists():
            self.mode = "a"
            with self._named_errors():
                os.truncate(self.path, min(size, os.path.getsize(self.path)))

    def _exists(self) -> bool:
        return os.path.isfile(self.path)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        from variant_ai.core.errors import DataError, os_reason

        try:
            yield
        except OSError as error:
            self._give_up()
            raise DataError(
                f"cannot write the list of skipped games {self.path}: "
                f"{os_reason(error, Path(self.path))}"
            ) from error

    def _give_up(self) -> None:
        """Nothing more is written; a list without a line is no list."""
        file, self.file = self.file, None
        if file is None:
            return
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            if self._exists() and not os.path.getsize(self.path):
                os.unlink(self.path)

    def drop_old(self) -> None:
        """The store that an old list was of is another now, and nothing of it was skipped."""
        if self.file is None and self.ours:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def __enter__(self) -> SkipList:
        return self

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            with self._named_errors():
                self.file.close()
