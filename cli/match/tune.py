"""`variant-ai tune`: search settings found by matches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.options import (
    COUNT,
    FOLDER,
    FiniteRange,
    examples,
    json_option,
    load_variant,
    output_option,
    seed_option,
    variant_option,
)
from variant_ai.cli.common.search_options import parse_settings
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.arena.match.match_settings import MatchSettings
    from variant_ai.core.arena.match.tournament import Tournament
    from variant_ai.core.arena.players.player_spec import PlayerSpec
    from variant_ai.core.arena.tuning.search_tuning import Match, MatchResult, Plan, TuningResult
    from variant_ai.core.rules.interface import Rules

OPENINGS = 100
"""Least number of openings, if no file is given."""
SPRT = (0.0, 20.0)
"""Elo of the two hypotheses of the test of the winner."""
CANDIDATE, PRESENT = "candidate", "present"


@click.command(
    epilog=examples(
        "variant-ai tune -V NAME --model packaged --nodes 400 -o runs/tune",
        "variant-ai tune -V NAME --model net.onnx --nodes 400 --range cpuct_init=1:4 \\",
        "    --range virtual_style=loss,visit --trials 40 -o runs/tune",
        "# by the clock; the same command resumes an interrupted tuning",
        "variant-ai tune -V NAME --model net.onnx --clock 1+0.01 -o runs/tune-clock",
    )
)
@variant_option()
@click.option(
    "-m",
    "--model",
    default="packaged",
    metavar="NET",
    help="Net that both sides play with: an ONNX file, a run, or packaged.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME=VALUES",
    help="Setting to tune: NAME=LOW:HIGH or NAME=VALUE,VALUE; may be given several times.  [default: "
    "the settings that matter most]",
)
@click.option(
    "--settings",
    "settings_name",
    default="default",
    metavar="NAME",
    help="Set of search settings of the variant to start from.",
)
@click.option(
    "--set",
    "present",
    multiple=True,
    metavar="NAME=VALUE",
    help="Present value of a setting; may be given several times.",
)
@click.option("--nodes", type=COUNT, help="Nodes for each move.  [default: 400]")
@click.option("--clock", metavar="TEXT", help="BASE+INCREMENT in seconds, instead of nodes.")
@click.option(
    "--trials",
    type=COUNT,
    default=60,
    help="Short matches before the finals, at least 8.",
)
@click.option(
    "--games",
    type=click.IntRange(min=2),
    default=20,
    help="Games of each trial, half of them with each colour; an even number.",
)
@click.option(
    "--final-games",
    type=click.IntRange(min=2),
    default=60,
    help="Games of each of three finalists; an even number.",
)
@click.option(
    "--sprt-games",
    type=click.IntRange(min=0, max=600),
    default=400,
    help="Maximum games of the test of the winner; 0: no test.",
)
@click.option("--minutes", type=FiniteRange(min=0, min_open=True), help="Stop after this time.")
@click.option(
    "--openings",
    metavar="FILE",
    help="As in `match`.  [default: positions of the variant's sample, otherwise random moves]",
)
@click.option(
    "--evaluator",
    default="auto",
    metavar="NAME",
    help="Program that runs the net, as in `match`.",
)
@click.option("--concurrency", type=COUNT, help="Games at a time.  [default: one per core]")
@output_option(
    "Folder of trials and results; an interrupted tuning in it is resumed.",
    type=FOLDER,
    metavar="FOLDER",
)
@seed_option
@json_option
def command(
    variant: str,
    model: str,
    ranges: tuple[str, ...],
    settings_name: str,
    present: tuple[str, ...],
    nodes: int | None,
    clock: str | None,
    minutes: float | None,
    openings: str | None,
    evaluator: str,
    concurrency: int | None,
    output: Path,
    as_json: bool,
    **numbers: int,
) -> int:
    """Find better search settings for a net by matches against the present settings.

    Each trial is a short match. A model of all results proposes the next trial and chooses three
    finalists, and the best of these plays a sequential test against the present settings. Prints
    settings to paste into the variant's spec. FOLDER keeps every game.
    """
    import threading

    from variant_ai.core.arena.tuning.search_tuning import (
        DEFAULT_RANGES,
        Plan,
        Range,
        Tuner,
        present_settings,
    )
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.system.processors import processors
    from variant_ai.plugins import registry

    if nodes is not None and clock is not None:
        raise click.UsageError("give --nodes or --clock, not both")
    spec = load_variant(variant)
    rules = registry().rules(spec)
    tuned = tuple(Range.parse(text) for text in ranges or DEFAULT_RANGES)
    if len({one.name for one in tuned}) < len(tuned):
        raise click.UsageError("--range: a setting is given twice")
    chosen = parse_settings(present)
    params = SearchParams.of(spec, settings_name, **chosen)
    limit = {"clock": clock} if clock else {"nodes": nodes or 400}
    base: dict[str, Any] = {
        "net": model,
        "evaluator": evaluator,
        "threads": 1,
        "settings": settings_name,
        "search": chosen,
    }
    longest = max(numbers[name] for name in ("games", "final_games", "sprt_games"))
    maker = _Matches(
        rules,
        base,
        limit,
        _openings(openings, rules, longest, numbers["seed"]),
        concurrency or processors(),
        numbers["seed"],
    )
    plan = Plan(
        variant=spec.variant,
        ranges=tuned,
        present=present_settings(params, tuned),
        description={
            **base,
            **limit,
            # raises before the folder is created, if a player cannot start
            **maker.digests(),
            "games": numbers["games"],
            "seed": numbers["seed"],
        },
        **numbers,
    )
    pairs = len(maker.openings)
    if clock is None and pairs < longest // 2:
        note(
            f"{counted(pairs, 'opening')} for matches of up to {counted(longest, 'game')}: games that repeat "
            "others move for move are no evidence; give more openings (`--openings`)"
        )
    with stop_on_signal() as interrupt:
        interrupt.stops.append(maker.stop)
        tuner = Tuner(plan, output, maker.play, note)
        timer = threading.Timer(60 * (minutes or 0), maker.stop)
        timer.daemon = True
        if minutes is not None:
            timer.start()
        outcome = tuner.run(lambda: maker.stopped)
        timer.cancel()
    _show(plan, outcome, output, as_json)
    if maker.stopped:
        note(
            f"{len(outcome.trials)} of {counted(plan.trials, 'trial')}; the same command resumes the tuning"
        )
    return EXIT_INTERRUPTED if interrupt() else 0


@dataclass
class _Matches:
    """Plays the matches of the tuner."""

    rules: Rules
    base: dict[str, Any]
    limit: dict[str, Any]
    openings: tuple[Opening, ...]
    concurrency: int
    seed: int
    stopped: bool = False
    _tournament: Tournament | None = None

    def stop(self) -> None:
        self.stopped = True
        if self._tournament is not None:
            self._tournament.stop()

    def digests(self) -> dict[str, str]:
        """Return digests of the net and of the openings. Raises as a match of these players does."""
        from variant_ai.cli.common.player_options import make_player
        from variant_ai.core.arena.games.openings import openings_digest
        from variant_ai.core.arena.tuning.search_tuning import Match

        settings = self._settings(Match(Path(), {}, 2, 0))
        player = make_player(settings.players[0], self.rules, self.seed)
        try:
            player.start()
        finally:
            player.close()
        digest = openings_digest(self.openings)
        return {"net_digest": player.digest, "openings_digest": digest}

    def play(self, match: Match) -> MatchResult:
        from variant_ai.cli.common.player_options import make_player
        from variant_ai.core.arena.match.match_record import tally_of
        from variant_ai.core.arena.match.tournament import Tournament
        from variant_ai.core.arena.tuning.search_tuning import MatchResult
        from variant_ai.plugins import registry

        settings = self._settings(match)
        self._tournament = Tournament(
            settings,
            self.rules,
            lambda index: make_player(settings.players[index], self.rules, settings.seed),
            self.openings,
            match.folder,
            registry().notation(self.rules.spec, "uci"),
        )
        if self.stopped:
            self._tournament.stop()
        try:
            state = self._tournament.run(lambda state, entry: None)
        except KeyboardInterrupt:  # stopped before its first game
            if not self.stopped:
                raise
            return MatchResult(tally=tally_of((), CANDIDATE), complete=False)
        return MatchResult(
            tally=tally_of(state.entries, CANDIDATE),
            complete=not state.stopped,
            sprt=state.sprt,
        )

    def _settings(self, match: Match) -> MatchSettings:
        from variant_ai.core.arena.match.match_settings import settings_of

        return settings_of(
            {
                "variant": self.rules.spec.variant,
                "players": [
                    self._player(CANDIDATE, match.settings),
                    self._player(PRESENT, {}),
                ],
                "games": match.games,
                "sprt": SPRT if match.sprt else None,
                "concurrency": self.concurrency,
                "openings": {"order": "random"},
                "seed": self.seed + match.number,
                **self.limit,
            },
            "tune",
        )

    def _player(self, name: str, settings: dict[str, Any]) -> PlayerSpec:
        from variant_ai.core.arena.players.player_spec import player_of

        search = {**self.base["search"], **settings}
        return player_of({**self.base, "name": name, "search": search}, "tune")


def _openings(file: str | None, rules: Rules, games: int, seed: int) -> tuple[Opening, ...]:
    """Return the openings of a file, or positions of the variant's sample, or random moves.

    games: of the longest match. It needs half as many openings: with a fixed number of nodes a pair of
    games from an opening that was played before repeats it move for move, and is no evidence.
    """
    from variant_ai.cli.common.player_options import load_openings
    from variant_ai.core.arena.games.openings import random_lines
    from variant_ai.core.arena.match.match_settings import OpeningSettings
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.plugins import registry

    if file is not None:
        return load_openings(OpeningSettings(file=file), rules, seed)
    count = max(OPENINGS, games // 2)
    entry = registry().entry_of(rules.spec)
    if entry is not None and entry.sample is not None and entry.sample.is_file():
        count = min(count, len(Store(entry.sample, rules.spec)))
        settings = OpeningSettings(store=str(entry.sample), least=4, most=16, count=count)
        return load_openings(settings, rules, seed)
    return random_lines(rules, count, (2, 8), seed)


def _show(plan: Plan, outcome: TuningResult, folder: Path, as_json: bool) -> None:
    """Print the results, and write the picture and the settings for a spec."""
    from variant_ai.core.arena.tuning.search_tuning import PICTURE, RESULT, spec_text
    from variant_ai.core.arena.tuning.tuning_picture import draw, importances

    facts: dict[str, Any] = {"trials": len(outcome.trials)}
    if outcome.surrogate is not None:
        write_whole(folder / PICTURE, draw(plan, outcome).png)
        shares = importances(plan, outcome)
        order = sorted(shares, key=lambda name: -shares[name])
        facts["importance"] = ", ".join(f"{name} {100 * shares[name]:.0f} %" for name in order)
        facts["picture"] = folder / PICTURE
    for number, (settings, tally) in enumerate(outcome.finals, start=1):
        facts[f"final {number}"] = f"{tally.text} with {spec_text(settings)}"
    test = outcome.test
    verdict, result = "", None
    if test is not None and outcome.strength is not None:
        verdict = test.sprt.verdict or "" if test.sprt is not None else ""
        open_ = "undecided" if test.complete else "not finished"
        result = {"H1": "better", "H0": "no better"}.get(verdict, open_)
        facts["test"] = f"{test.tally.text}, Elo {outcome.strength.text}: {result}"
        if test.sprt is not None:
            facts["SPRT"] = test.sprt.text
    if outcome.winner is not None:
        found = spec_text(outcome.winner)
        facts["winner"] = f"search: {found}"
        if verdict == "H0":
            facts["winner"] = f"none: {found} is no better"
        evidence = _evidence(plan, outcome, facts.get("test", "not tested"))
        pasted = f"{evidence}{'# no better: ' if verdict == 'H0' else ''}search: {found}\n"
        write_whole(folder / RESULT, pasted.encode())
    if as_json:
        print_json(
            {
                "variant": plan.variant,
                "present": plan.present,
                "trials": [
                    {"settings": one.settings, "tally": one.tally.text} for one in outcome.trials
                ],
                "finals": [
                    {"settings": settings, "tally": tally.text}
                    for settings, tally in outcome.finals
                ],
                "winner": outcome.winner,
                "test": None if test is None else test.tally.text,
                "result": result,
                "sprt": None if test is None or test.sprt is None else vars(test.sprt),
            }
        )
    else:
        print_facts(list(facts.items()))


def _evidence(plan: Plan, outcome: TuningResult, test: str) -> str:
    """Comments above the settings for a spec, with their evidence. `tune.json` has the rest."""
    import time

    limit = plan.description.get("nodes")
    each = f"{counted(limit, 'node')} per move" if limit else f"clock {plan.description['clock']}"
    digest = plan.description.get("net_digest", "")
    return (
        f"# variant-ai tune, {time.strftime('%Y-%m-%d')}: {plan.variant}, net "
        f"{plan.description['net']} ({digest}), {each},\n"
        f"# {counted(len(outcome.trials), 'trial')} of {counted(plan.games, 'game')}, finals of {plan.final_games}, on "
        f"{', '.join(one.text for one in plan.ranges)}\n"
        f"# test against the present settings: {test}\n"
    )
