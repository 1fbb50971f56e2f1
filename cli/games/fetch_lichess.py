"""`variant-ai data fetch lichess`: the monthly files of database.lichess.org into a store."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    progress,
    variant_option,
)
from variant_ai.cli.common.game_filter_options import filter_options, game_filter
from variant_ai.cli.common.notation_options import make_resolver, readers
from variant_ai.cli.common.store_options import StorePath
from variant_ai.cli.games.import_games import MOST_WORKERS, SkipList

if TYPE_CHECKING:
    from variant_ai.core.data.fetch.lichess import MonthlyFile
    from variant_ai.core.data.fetch.monthly_archive import MonthReport
    from variant_ai.core.data.read.game_reader import Skip

BASE_VARIABLE = "VARIANT_AI_LICHESS"


@click.command(
    epilog=examples(
        "# the published set: both players at least 2000, aborted games dropped",
        "variant-ai data fetch lichess -V NAME --from 2016-01 --to 2018-06 --min-rating 2000 "
        "-o strong.store",
        "# the same command again goes on where it was stopped; a later --to adds months",
        "variant-ai data fetch lichess -V NAME --from 2024-01 -o recent.store",
        "# a variant that the site calls by another name",
        "variant-ai data fetch lichess -V mine.yaml --site-name racingKings -o races.store",
    )
)
@variant_option()
@click.option("--from", "first", metavar="YYYY-MM", help="First month; by default the first there.")
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; by default the last there is.")
@click.option(
    "-o",
    "--output",
    type=StorePath(),
    metavar="STORE",
    required=True,
    help="Store to write, or to add the months to that it does not have.",
)
@filter_options
@click.option("--no-time-forfeits", is_flag=True, help="Drop games lost on time.")
@click.option("--keep-aborted", is_flag=True, help="Keep aborted games, else dropped.")
@click.option(
    "--url",
    envvar=BASE_VARIABLE,
    show_envvar=True,
    metavar="URL",
    help="Server, or a mirror of it.  [default: https://database.lichess.org]",
)
@click.option(
    "--site-name", metavar="NAME", help="What the site calls the variant, where that is not known."
)
@click.option(
    "--no-checksums",
    is_flag=True,
    help="Do not ask for the list of checksums; needs --from and --to.",
)
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
@click.pass_context
def lichess(
    context: click.Context,
    /,
    variant: str,
    first: str | None,
    last: str | None,
    output: Path,
    no_time_forfeits: bool,
    keep_aborted: bool,
    url: str | None,
    site_name: str | None,
    no_checksums: bool,
    skipped: str | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Stream the rated games of lichess into a store, month by month.

    Files are unpacked and read as they come, and none is kept. A month is in the store whole, once
    its checksum is right, or not at all. Ctrl-C or a kill loses no finished month: the same command
    goes on. Aborted games are dropped, games lost on time are kept.
    """
    from variant_ai.core.data.fetch.lichess import BASE, SITE, Archive, Month
    from variant_ai.core.data.fetch.monthly_archive import Fetcher
    from variant_ai.core.data.read.importer import Importer
    from variant_ai.core.system.processors import processors

    spec = load_variant(variant)
    name = site_name or spec.names.get(SITE, (spec.variant,))[0]
    archive = Archive(name, url or BASE)
    begin, end = (None if text is None else Month.parse(text) for text in (first, last))
    if begin is not None and end is not None and end < begin:
        raise click.UsageError(f"--from {first} is after --to {last}")
    not_endings = options.pop("not_endings", ())
    not_endings += (() if keep_aborted else ("aborted",)) + (("time",) if no_time_forfeits else ())
    conditions = game_filter({**options, "not_endings": not_endings})
    note(f"Fetching games of {name} from {archive.folder}")
    if not no_checksums:
        files = archive.files(begin, end, on_wait=note)
    elif begin is None or end is None:
        raise click.UsageError("--no-checksums needs --from and --to")
    else:
        files = archive.unlisted(begin, end)

    listing = skipped or f"{output}.skipped.jsonl"
    done: list[MonthReport] = []
    unread: list[Skip] = []
    """Of the month under way: listed once its games stay, so that none stands there twice."""
    append = output.exists()
    with SkipList(listing, skipped is None, append) as skips, progress(quiet=as_json) as bar:
        task = bar.add_task("reading KiB", total=None)

        def begin_month(file: MonthlyFile) -> None:
            bar.reset(task, description=f"{file.month} KiB", total=None)

        def make_importer() -> Importer:
            unread.clear()
            return Importer(
                readers=list(readers(spec).values()),
                make_resolver=partial(make_resolver, spec),
                conditions=conditions,
                workers=workers or min(MOST_WORKERS, processors()),
                on_skip=unread.append,
                on_progress=lambda report: bar.update(task, note=f"{report.games:,} games"),
            )

        fetcher = Fetcher(
            output,
            spec,
            make_importer,
            conditions,
            open_remote=partial(
                _remote,
                on_bytes=lambda size: bar.advance(task, size / 1024),
                on_size=lambda size: bar.update(task, total=size / 1024),
                on_wait=note,
            ),
            on_month=begin_month,
            on_note=note,
        )
        left = fetcher.missing(files)
        if len(left) < len(files):
            note(f"{output} has {len(files) - len(left)} of the {len(files)} months already.")
        if left:
            months_left = f"{len(left)} months" if len(left) > 1 else "one month"
            note(f"{months_left}, {left[0].month} to {left[-1].month}, into {output}")
        try:
            with closing(fetcher.run(left)) as months:
                for report in months:
                    done.append(report)
                    if not unread:
                        skips.drop_old()
                    for skip in unread:
                        skips.add(skip)
                    note(_line(report))
        except KeyboardInterrupt:
            note(f"Interrupted; {output} has the months before. The same command goes on.")
            context.exit(EXIT_INTERRUPTED)
    _print(output, spec.variant, done, listing, as_json)


def _remote(url: str, **hooks: Any) -> Any:
    from variant_ai.core.data.fetch.remote_file import RemoteFile

    return RemoteFile(url, **hooks)


def _line(report: MonthReport) -> str:
    got = report.imported
    line = (
        f"{report.file.month}: {got.games:,} of {got.read:,} games, {report.bytes / 1e6:,.1f} MB "
        f"in {got.seconds:.0f} s"
    )
    if skipped := got.skipped.total():
        line += f", {skipped:,} could not be read"
    if report.resumed:
        line += f", went on after {report.resumed} broken connections"
    return line


def _print(
    output: Path, variant: str, done: list[MonthReport], listing: str, as_json: bool
) -> None:
    dropped: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for report in done:
        dropped += report.imported.dropped
        skipped += report.imported.skipped
    games = sum(report.imported.games for report in done)
    if as_json:
        print_json(
            {
                "store": str(output),
                "variant": variant,
                "months": [report.as_json() for report in done],
                "games": games,
                "dropped": dict(dropped.most_common()),
                "skipped": dict(skipped.most_common()),
                "skipped_list": listing if skipped else None,
            }
        )
        return
    read = sum(report.imported.read for report in done)
    facts: list[tuple[str, object]] = [
        ("store", output),
        ("months", f"{len(done):,} added"),
        ("games", f"{games:,} of {read:,} read"),
    ]
    facts += [("dropped", f"{n:,} {reason}") for reason, n in dropped.most_common()]
    facts += [("skipped", f"{n:,} {reason}") for reason, n in skipped.most_common()]
    if skipped:
        facts.append(("listed in", listing))
    print_facts(facts)
