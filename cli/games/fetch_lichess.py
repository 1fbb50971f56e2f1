"""`variant-ai data`: fetch published games, such as the monthly files of database.lichess.org."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.options import (
    examples,
    json_option,
    load_variant,
    make_resolver,
    output_option,
    variant_option,
)
from variant_ai.cli.games.import_games import (
    SkipList,
    import_conditions,
    import_options,
    import_workers,
    left_out_facts,
    skip_list,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.fetch.monthly_archive import MonthlyFile, MonthReport
    from variant_ai.core.data.read.game_reader import Skip

BASE_VARIABLE = "VARIANT_AI_LICHESS"
_EXAMPLES = examples(
    "variant-ai data fetch lichess -V NAME --from 2016-01 --to 2018-06 -o games.store",
)


@click.group(epilog=_EXAMPLES)
def command() -> None:
    """Fetch published games into game stores.

    Use `variant-ai import` for files on this computer.
    """


@command.group(epilog=_EXAMPLES)
def fetch() -> None:
    """Fetch an archive of games into a store, without keeping its files."""


@fetch.command(
    epilog=examples(
        "# the published set: both players at least 2000, aborted games dropped",
        "variant-ai data fetch lichess -V NAME --from 2016-01 --to 2018-06 --min-rating 2000 "
        "-o strong.store",
        "# the same command resumes after a stop; a later --to adds months",
        "variant-ai data fetch lichess -V NAME --from 2024-01 -o recent.store",
        "# a variant with another name on the site",
        "variant-ai data fetch lichess -V mine.yaml --site-name racingKings -o races.store",
    )
)
@variant_option()
@click.option(
    "--from", "first", metavar="YYYY-MM", help="First month; by default the first available."
)
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; by default the last available.")
@output_option("Store to write, or to which missing months are added.", metavar="STORE")
@import_options
@click.option(
    "--url",
    envvar=BASE_VARIABLE,
    show_envvar=True,
    metavar="URL",
    help="Server or mirror.  [default: https://database.lichess.org]",
)
@click.option("--site-name", metavar="NAME", help="Name of the variant on the site, if unknown.")
@click.option(
    "--no-checksums",
    is_flag=True,
    help="Do not download the list of checksums; requires --from and --to.",
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
    url: str | None,
    site_name: str | None,
    no_checksums: bool,
    skipped: str | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Fetch the rated games of lichess into a store, month by month.

    A file is kept, beside the store, only until its games are read. A month is in the store
    completely, after its checksum was verified, or not at all. After Ctrl-C or a kill, the same
    command resumes; finished months are kept. Aborted games are dropped, games lost on time are kept.
    """
    from variant_ai.core.data.fetch.monthly_archive import BASE, SITE, Archive, Fetcher, check_month
    from variant_ai.core.data.fetch.remote_file import fetch as fetch_file
    from variant_ai.core.data.read.importer import Importer
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    name = site_name or spec.names.get(SITE, (spec.variant,))[0]
    archive = Archive(name, url or BASE)
    begin, end = (None if text is None else check_month(text) for text in (first, last))
    if begin is not None and end is not None and end < begin:
        raise click.UsageError(f"--from {first} is after --to {last}")
    conditions = import_conditions(options)
    note(f"Fetching games of {name} from {archive.folder}")
    if not no_checksums:
        files = archive.files(begin, end, on_wait=note)
    elif begin is None or end is None:
        raise click.UsageError("--no-checksums requires --from and --to")
    else:
        files = archive.unlisted(begin, end)

    listing = skip_list(skipped, output)
    done: list[MonthReport] = []
    unread: list[Skip] = []
    """Skips of the current month, listed when it is finished, so that none is listed twice."""
    append = output.exists()
    with SkipList(listing, skipped is None, append) as skips, progress(quiet=as_json) as bar:
        task = bar.add_task("reading KiB", total=None)

        def begin_month(file: MonthlyFile) -> None:
            bar.reset(task, description=f"{file.month} KiB", total=None)

        def show(received: int, size: int | None) -> None:
            bar.update(task, completed=received / 1024, total=None if size is None else size / 1024)

        def make_importer() -> Importer:
            unread.clear()
            return Importer(
                readers=list(registry().readers(spec).values()),
                make_resolver=partial(make_resolver, spec),
                conditions=conditions,
                workers=import_workers(workers),
                on_skip=unread.append,
                on_progress=lambda report: bar.update(task, note=counted(report.games, "game")),
            )

        fetcher = Fetcher(
            output,
            spec,
            make_importer,
            conditions,
            fetch_file=partial(fetch_file, on_bytes=show, on_wait=note),
            on_month=begin_month,
            report=note,
        )
        left = fetcher.missing(files)
        if len(left) < len(files):
            note(
                f"{output} already has {len(files) - len(left)} of the {counted(len(files), 'month')}."
            )
        if left:
            months_left = counted(len(left), "month")
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
            note(f"Interrupted; finished months are in {output}. The same command resumes.")
            context.exit(EXIT_INTERRUPTED)
    _print(output, spec.variant, done, listing, as_json)


def _line(report: MonthReport) -> str:
    got = report.imported
    line = (
        f"{report.file.month}: {got.games:,} of {counted(got.read, 'game')}, {report.bytes / 1e6:,.1f} MB "
        f"in {got.seconds:.0f} s"
    )
    if skipped := got.skipped.total():
        line += f", {skipped:,} could not be read"
    if report.resumed:
        line += f", resumed after {report.resumed} interrupted connections"
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
    print_facts(facts + left_out_facts(dropped, skipped, listing))
