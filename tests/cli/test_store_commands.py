"""`variant-ai store` and `variant-ai stats`, as a person at the terminal meets them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec import builtin_specs, load_spec

SPEC = load_spec(builtin_specs()["crazyhouse"])
GAMES = 12
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(SPEC)


@pytest.fixture(scope="module")
def records(rules: Rules) -> list[GameRecord]:
    """Short random games, the last a copy of the first."""
    dice = np.random.default_rng(7)
    made = []
    for i in range(GAMES - 1):
        position, moves = rules.position(), []
        for _ in range(6 + i):
            moves.append(int(dice.choice(rules.legal_moves(position))))
            position = rules.play(position, moves[-1])
        made.append(
            GameRecord(
                SPEC.variant,
                moves,
                result=("1-0", "0-1", "1/2-1/2", "*")[i % 4],  # type: ignore[arg-type]
                white=f"p{i % 3}",
                black="q",
                white_elo=2000 + i,
                black_elo=1990 if i != 4 else None,
                date=str(2000 + i),
                event="Cup 杯",
                source=f"s{i % 2}.pgn",
                termination="Time forfeit" if i == 2 else "",
            )
        )
    made.append(GameRecord(SPEC.variant, list(made[0].moves), white="copy"))
    return made


@pytest.fixture()
def store(tmp_path: Path, records: list[GameRecord]) -> Path:
    path = tmp_path / "games.store"
    with StoreWriter(path, SPEC, sources=["s0.pgn", "s1.pgn"], shard_games=5) as writer:
        for record in records:
            writer.add(record)
    return path


@pytest.fixture()
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*args: object, status: int = 0) -> Result:
        result = CliRunner().invoke(cli, [str(arg) for arg in args])
        assert result.exit_code == status, result.output
        return result

    return call


def fails(run: Run, *args: object) -> str:
    """The one sentence on stderr of a command that fails."""
    result = run(*args, status=1)
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ").strip()


# --- show --------------------------------------------------------------------------------------


def test_show_describes_a_store(run: Run, store: Path) -> None:
    text = run("store", "show", store).stdout
    for words in ("crazyhouse", f"games         {GAMES}", "s1.pgn", "content hash"):
        assert words in text
    shown = json.loads(run("store", "show", store, "--json").stdout)
    assert shown["games"] == GAMES and shown["closed"] is True
    assert shown["content_hash"] == Store(store).content_hash
    assert shown["runs"][0]["sources"] == ["s0.pgn", "s1.pgn"]


def test_show_lists_games(run: Run, store: Path) -> None:
    text = run("store", "show", store, "--games", "4-5").stdout
    assert "p0 (2003)" in text and "p1 (2004)" in text and "p2" not in text and "Cup 杯" in text
    shown = json.loads(run("store", "show", store, "--games", "11-", "--json").stdout)
    assert [(row["game"], row["white"], row["plies"]) for row in shown] == [
        (11, "p1", 16),
        (12, "copy", 6),
    ]


def test_show_writes_a_game_in_a_notation(run: Run, store: Path, rules: Rules) -> None:
    text = run("store", "show", store, "--game", 1, "--notation", "uci").stdout
    shown = json.loads(run("store", "show", store, "--game", 1, "--json").stdout)
    assert len(shown["moves"]) == 6 and shown["notation"] == "uci"
    assert f"   1. {shown['moves'][0]}  {shown['moves'][1]}" in text
    assert text.rstrip().endswith("1-0")
    san = json.loads(run("store", "show", store, "--game", 1, "--notation", "san", "--json").stdout)
    assert san["moves"] != shown["moves"]


def test_show_prints_scores_and_comments(
    run: Run, tmp_path: Path, records: list[GameRecord]
) -> None:
    with StoreWriter(tmp_path / "a.store", SPEC) as writer:
        moves = records[0].moves
        writer.add(
            GameRecord(
                SPEC.variant,
                moves,
                scores=[15, None, -40, 0, 1, 2],
                clocks=[60000, None, None, None, None, None],
                comments={-1: "before", 1: "why?"},
            )
        )
    lines = run("store", "show", "a.store", "--game", 1).stdout.splitlines()
    assert "before" in lines and any(line.endswith("why?") for line in lines)
    assert any("+15" in line and "60.0 s" in line for line in lines)


def test_questions_a_store_cannot_answer(run: Run, store: Path) -> None:
    assert fails(run, "store", "show", "no.store") == "there is no game store no.store"
    for number in (13, 0, -13):
        words = fails(run, "store", "show", store, "--game", number)
        assert f"has no game {number}; it has 12 games, numbered from 1" in words
    for span in ("13-", "0-3", "5-4"):
        words = fails(run, "store", "show", store, "--games", span)
        assert f"no games {span} in a store of 12 games, numbered from 1" in words
    for span in ("a-b", ""):
        assert "is not a range of games" in fails(run, "store", "show", store, "--games", span)
    assert "not of xiangqi" in fails(run, "store", "show", store, "-V", "xiangqi")
    words = fails(run, "store", "show", store, "--game", 1, "--notation", "sna")
    assert "'sna'" in words and "did you mean 'san'" in words


# --- filter, merge, split ----------------------------------------------------------------------


def moves_of(path: Path | str) -> list[list[int]]:
    found = Store(path)
    return [found.raw(i)[1].tolist() for i in range(len(found))]


def test_filter_keeps_what_meets_all_conditions(run: Run, store: Path) -> None:
    shown = json.loads(
        run(
            *("store", "filter", store, "-o", "kept.store", "--json", "--min-rating", 1980),
            *("--known-result", "--no-ending", "time", "--since", 2001),
        ).stdout
    )
    kept = [r.white_elo for r in Store("kept.store").facts()]
    assert kept == [2001, 2005, 2006, 2008, 2009, 2010] and shown["games"] == 6
    # Game 0 is too early, 2 lost on time, 3 and 7 have no result, 4 and the copy miss a rating.
    assert shown["dropped"] == {
        "rating missing": 2,
        "before 2001": 1,
        "ending: time": 1,
        "result unknown": 2,
    }
    assert "min rating 1980" in run("store", "show", "kept.store").stdout


def test_a_filter_that_no_game_passes_writes_nothing(run: Run, store: Path) -> None:
    said = run("store", "filter", store, "-o", "none.store", "--min-rating", 3000, status=1).stderr
    assert f"no game of {store} meets the conditions (" in said
    assert "rating" in said
    assert not Path("none.store").exists()
    run("store", "filter", store, "-o", "old.store")
    before = Path("old.store").read_bytes()
    run(*("store", "filter", store, "-o", "old.store", "--replace", "--min-plies", 900), status=1)
    assert Path("old.store").read_bytes() == before


def test_filters_follow_one_another(run: Run, store: Path) -> None:
    run("store", "filter", store, "-o", "a.store", "--min-plies", 9)
    run("store", "filter", "a.store", "-o", "b.store", "--max-plies", 12)
    run("store", "filter", store, "-o", "c.store", "--min-plies", 9, "--max-plies", 12)
    assert moves_of("b.store") == moves_of("c.store")
    text = run("store", "show", "b.store").stdout
    assert "min plies 9" in text and "max plies 12" in text and "s0.pgn" in text


def test_filtering_without_conditions_copies(run: Run, store: Path) -> None:
    run("store", "filter", store, "-o", "a.store")
    assert Store("a.store").content_hash == Store(store).content_hash
    assert list(Store("a.store").games()) == list(Store(store).games())


def test_merge_is_one_after_the_other(run: Run, store: Path) -> None:
    run("store", "filter", store, "-o", "a.store", "--source", "s0.pgn")
    run("store", "filter", store, "-o", "b.store", "--source", "s1.pgn", "--source", "x*")
    run("store", "merge", "a.store", "b.store", "-o", "ab.store")
    assert moves_of("ab.store") == moves_of("a.store") + moves_of("b.store")
    run("store", "merge", "ab.store", "-o", "c.store")
    assert Store("c.store").content_hash == Store("ab.store").content_hash
    shown = json.loads(
        run(
            "store", "merge", store, "a.store", "-o", "u.store", "--drop-duplicates", "--json"
        ).stdout
    )
    assert shown["games"] == GAMES - 1 and shown["dropped"] == {
        "duplicate": 1 + len(moves_of("a.store"))
    }
    assert moves_of("u.store") == moves_of(store)[:-1]


def test_merging_repairs_an_unfinished_store(run: Run, store: Path) -> None:
    torn = Path("torn.store")
    torn.write_bytes(store.read_bytes()[:-100])
    result = run("store", "merge", torn, "-o", "whole.store")
    assert "using its 2 finished shards" in result.stderr
    assert moves_of("whole.store") == moves_of(store)[:10]
    assert "no errors, 10 games" in run("store", "verify", "whole.store").stdout


def test_split_gives_every_game_to_one_store(run: Run, store: Path) -> None:
    shown = json.loads(
        run(
            *("store", "split", store, "-o", "new/parts", "--validation", 0.3, "--test", 0.2),
            *("--seed", 3, "--json"),
        ).stdout
    )
    sides = {name: moves_of(part["path"]) for name, part in shown.items()}
    assert sorted(sides) == ["test", "train", "validation"]
    assert sorted(m for moves in sides.values() for m in moves) == sorted(moves_of(store))
    for name, moves in sides.items():
        assert len(moves) == shown[name]["games"]
        assert (moves_of(store)[0] in moves) == (moves.count(moves_of(store)[0]) == 2)


def test_a_new_split_leaves_nothing_of_the_last(run: Run, store: Path) -> None:
    words = ("store", "split", store, "-o", "parts", "--validation", 0.3)
    run(*words, "--test", 0.3)
    assert Path("parts/test.store").exists()
    Path("parts/train.store").unlink()
    Path("parts/validation.store").unlink()
    assert "test.store already exists; use --replace" in fails(run, *words)
    run(*words, "--replace")
    assert sorted(path.name for path in Path("parts").iterdir()) == [
        "train.store",
        "validation.store",
    ]


def test_a_split_does_not_delete_the_store_it_divides(run: Run, store: Path) -> None:
    Path("parts").mkdir()
    store.rename("parts/test.store")
    words = ("store", "split", "parts/test.store", "-o", "parts", "--replace")
    assert "test.store is also an input" in fails(run, *words)
    assert len(Store("parts/test.store")) == 12


def test_shares_have_no_effect_where_keys_are_named(run: Run, store: Path) -> None:
    words = ("store", "split", store, "-o", "parts", "--by", "source", "--validation-on", "s0*")
    assert (
        "--test has no effect in a split by source" in run(*words, "--test", 0.1, status=2).stderr
    )
    run(*words)


def test_split_by_year(run: Run, store: Path) -> None:
    args = ("store", "split", store, "-o", ".", "--by", "year", "--validation-on", "2003-2004")
    text = run(*args).stdout
    assert "train.store" in text and "test" not in text
    assert [r.date for r in Store("validation.store").facts()] == ["2003", "2004"]
    assert "already exists; use --replace" in fails(run, *args)
    run(*args, "--replace")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("filter", "games.store", "-o", "games.store"), "is also an input"),
        (("filter", "games.store", "-o", "x", "--since", "May"), "is not a date"),
        (("filter", "games.store", "-o", "x", "--ending", "tiem"), "did you mean 'time'"),
        (("filter", "games.store", "-o", "x", "--result", "2-0"), "unknown result '2-0'"),
        (
            ("filter", "games.store", "-o", "x", "--min-plies", "9", "--max-plies", "3"),
            "no game fits",
        ),
        (("filter", "games.store", "-o", "no/x"), "no/x: there is no folder no"),
        (("merge", "games.store", "other.pgn", "-o", "x"), "other.pgn is not a game store"),
        (("split", "games.store", "-o", "p", "--by", "yera"), "did you mean 'year'"),
        (("split", "games.store", "-o", "p", "--by", "year"), "requires the years"),
        (("split", "games.store", "-o", "p", "--validation", "1"), "leave games for training"),
        (("split", "games.store", "-o", "games.store"), "games.store"),
        (("export", "games.store", "--format", "xml"), "unknown format 'xml'"),
        (
            ("export", "games.store", "-o", "x.foo"),
            "x.foo: the format is not clear from the name; end it in .pgn, .jsonl, .ndjson, .uci, .txt, "
            "or use --format (jsonl, moves, pgn)",
        ),
        (("export", "games.store", "-o", "x"), "x: the format is not clear from the name"),
        (("export", "games.store", "-o", "x.pgn.foo"), "the format is not clear from the name"),
        (("export", "games.store", "-o", "no/x.jsonl"), "no/x.jsonl: there is no folder no"),
        (("export", "games.store", "-o", "other.pgn"), "already exists; use --replace"),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Run, store: Path, args: tuple[str, ...], words: str
) -> None:
    Path("other.pgn").write_text('[Event "?"]\n\n1. e4 *\n', encoding="utf-8")
    before = store.read_bytes()
    if args == ("split", "games.store", "-o", "games.store"):
        run("store", *args, status=2)  # click's own: a folder is expected
    else:
        assert words in fails(run, "store", *args)
    assert store.read_bytes() == before and not Path("x").exists()


def test_what_a_killed_command_left_is_not_written_over_by_its_own_rescue(
    run: Run, store: Path
) -> None:
    partial = Path("whole.store.partial")
    partial.write_bytes(store.read_bytes()[:-100])
    before = partial.read_bytes()
    refused = run("store", "merge", partial, "-o", "whole.store", status=1)
    assert "would be overwritten" in refused.stderr
    assert partial.read_bytes() == before
    run("store", "merge", partial, "-o", "saved.store")
    assert moves_of("saved.store") == moves_of(store)[:10]


def test_a_store_of_another_variant_is_not_merged(run: Run, store: Path) -> None:
    with StoreWriter("x.store", load_spec(builtin_specs()["xiangqi"])):
        pass
    assert "holds games of xiangqi, not of crazyhouse" in fails(
        run, "store", "merge", store, "x.store", "-o", "y.store"
    )


def test_control_c_while_copying_leaves_everything_as_it_was(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store.read_bytes()
    real = StoreWriter._add

    def interrupted(self: StoreWriter, *args: object) -> None:
        real(self, *args)  # type: ignore[arg-type]
        if self.games == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(StoreWriter, "_add", interrupted)
    old = Path("old.store")
    old.write_bytes(before)
    run("store", "filter", store, "-o", old, "--replace", status=130)
    assert store.read_bytes() == old.read_bytes() == before
    assert sorted(map(str, Path().iterdir())) == ["games.store", "old.store"]


@pytest.mark.parametrize(
    "words",
    [
        ("filter", "games.store", "--min-plies", "1"),
        ("filter", "games.store", "--min-plies", "1000"),
        ("merge", "games.store"),
        ("export", "games.store"),
        ("label", "games.store", "--engine", "net:-;evaluator=uniform"),
    ],
)
def test_a_store_does_not_replace_itself(run: Run, store: Path, words: tuple[str, ...]) -> None:
    before = store.read_bytes()
    link = Path("link.store")
    link.symlink_to(store)
    for output in (store, link):
        for replace in ((), ("--replace",)):
            message = fails(run, "store", *words, "-o", output, *replace)
            assert f"{output} is also an input; give --output another name" in message
    assert store.read_bytes() == before


# --- export ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.pgn", "a.jsonl.gz", "a.txt.xz", "a.uci.zst", "a.pgn.bz2"])
def test_exports_are_imported_again(run: Run, store: Path, name: str) -> None:
    assert "12 games to" in run("store", "export", store, "-o", name).stderr
    run("import", name, "-V", "crazyhouse", "-o", "back.store", "--workers", 1)
    assert Store("back.store").content_hash == Store(store).content_hash
    if not name.startswith(("a.uci", "a.txt")):
        for record, again in zip(Store(store).facts(), Store("back.store").facts(), strict=True):
            assert (record.white, record.black, record.white_elo, record.event) == (
                again.white,
                again.black,
                again.white_elo,
                again.event,
            )
    assert Path(name).exists() and not list(Path().glob("*.partial"))


@pytest.mark.parametrize(
    ("name", "notation"), [("a.uci", "san"), ("a.jsonl", "san"), ("a.jsonl", "uci")]
)
def test_exports_in_other_notations_are_imported_again(
    run: Run, store: Path, name: str, notation: str
) -> None:
    run("store", "export", store, "-o", name, "--notation", notation)
    run("import", name, "-V", "crazyhouse", "-o", "back.store", "--workers", 1)
    back = Store("back.store")
    assert back.content_hash == Store(store).content_hash
    assert not any({"plies", "source"} & record.tags.keys() for record in back.games())


def test_exports_to_standard_output(run: Run, store: Path) -> None:
    words = ("store", "export", store, "--format", "moves", "--games", "1-2")
    lines = run(*words).stdout.splitlines()
    assert run(*words, "-o", "-").stdout.splitlines() == lines
    assert run(*words[:3]).stdout.startswith("[Event ")
    assert len(lines) == 2 and lines[0].startswith("startpos moves ") and lines[0].endswith(" 1-0")
    shown = json.loads(
        run(
            *("store", "export", store, "--format", "jsonl", "--player", "p1", "--max-plies", 7),
            *("--notation", "san"),
        ).stdout
    )
    assert shown["white"] == "p1" and shown["plies"] == 7 and shown["notation"] == "san"


def test_an_export_overwrites_only_with_replace(run: Run, store: Path) -> None:
    Path("a.uci").write_text("mine\n", encoding="utf-8")
    assert "use --replace" in fails(run, "store", "export", store, "-o", "a.uci")
    assert Path("a.uci").read_text(encoding="utf-8") == "mine\n"
    run("store", "export", store, "-o", "a.uci", "--replace", "--games", 3)
    assert Path("a.uci").read_text(encoding="utf-8").count("\n") == 1


def test_control_c_keeps_the_lines_written(tmp_path: Path) -> None:
    from variant_ai.core.data.game_text import text_file

    with pytest.raises(KeyboardInterrupt), text_file(tmp_path / "a.uci") as file:
        file.write("startpos moves e2e4 *\n")
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), text_file(tmp_path / "a.uci") as file:
        file.write("lost\n")
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["a.uci"]
    assert (tmp_path / "a.uci").read_text() == "startpos moves e2e4 *\n"


@pytest.fixture()
def small_files() -> Iterator[None]:
    """No file may grow beyond 1500 bytes: what a full disk does to a writer."""
    resource = pytest.importorskip("resource", reason="needs POSIX limits")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
@pytest.mark.usefixtures("small_files")
def test_a_full_disk_leaves_no_file(run: Run, tmp_path: Path) -> None:
    from variant_ai.core.data.game_text import text_file
    from variant_ai.core.errors import DataError

    for name in ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.jsonl.xz"):
        dice = np.random.default_rng(1)
        with (
            pytest.raises(DataError, match=f"cannot write .*{name}: .*; nothing was written"),
            text_file(tmp_path / name) as file,
        ):
            for _ in range(20000):
                file.write(f"{dice.integers(1 << 60)}\n")
    assert list(tmp_path.iterdir()) == []


# --- verify and stats --------------------------------------------------------------------------


def test_verify_reads_every_byte(run: Run, store: Path) -> None:
    assert "no errors, 12 games" in run("store", "verify", store, "--moves").stdout
    damaged = bytearray(store.read_bytes())
    damaged[-300] ^= 4
    Path("bad.store").write_bytes(damaged)
    shown = json.loads(run("store", "verify", store, "bad.store", "--json", status=1).stdout)
    assert shown[0]["problem"] is None and "shard 2" in shown[1]["problem"]
    assert "does not match its checksum" in fails(run, "store", "verify", "bad.store")


def test_verify_does_not_pass_an_unfinished_store(run: Run, store: Path) -> None:
    Path("torn.store").write_bytes(store.read_bytes()[:-10])
    words = fails(run, "store", "verify", "torn.store")
    assert "not closed by its writer; using its 3 finished shards" in words and "merge" in words


def test_verify_finds_illegal_moves(run: Run, tmp_path: Path, records: list[GameRecord]) -> None:
    path = tmp_path / "illegal.store"
    with StoreWriter(path, SPEC) as writer:
        writer.add(records[0])
        e2e5 = 36 | 12 << 7
        writer.add(GameRecord(SPEC.variant, [e2e5]))
    words = fails(run, "store", "verify", "--moves", path)
    assert "game 2, ply 1: e2e5 is not legal in rnbqkbnr/pppppppp" in words
    assert "no errors" in run("store", "verify", path).stdout


def test_stats_describes_games(run: Run, store: Path) -> None:
    text = run("stats", store).stdout
    for words in ("games", "first player won", "most active fifth", "first moves", "2000 to 2010"):
        assert words in text
    shown = json.loads(run("stats", store, "--json", "--known-result", "--top", 2).stdout)
    assert shown["games"] == 9 and shown["left_out"] == {"result unknown": 3}
    assert [p["name"] for p in shown["top_players"]] == ["q", "p0"]
    assert shown["plies"]["least"] == 6 and sum(m["games"] for m in shown["first_moves"]) == 9


def test_stats_of_no_games(run: Run) -> None:
    with StoreWriter("empty.store", SPEC):
        pass
    text = run("stats", "empty.store").stdout
    assert "No game has a rating." in text and "No game has the name of a player." in text


def test_every_command_has_an_example(run: Run) -> None:
    for name in ("show", "filter", "merge", "split", "export", "verify"):
        text = run("store", name, "--help").stdout
        assert f"variant-ai store {name}" in text.split("Examples:")[1]
    assert "variant-ai stats games.store" in run("stats", "--help").stdout
