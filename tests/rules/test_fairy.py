"""The guarded Fairy-Stockfish: no input ends the process, no answer is garbage."""

from __future__ import annotations

import random
import string
import subprocess
import sys
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variant_ai.core.errors import (
    FenError,
    MoveError,
    PluginError,
    SpecError,
    UnknownNameError,
    VariantAIError,
)
from variant_ai.core.rules import RULES_ENGINES, make_rules
from variant_ai.core.rules.fairy.fairy_rules import FairyRules, position_key
from variant_ai.core.rules.fairy.fairy_stockfish import (
    FairyVariant,
    fairy_variants,
    pyffish,
    spec_settings,
)
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import DOUBLE_STEP, EN_PASSANT, move_kind, same_position
from variant_ai.core.rules.text.notation import core_notations
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.testing import check_rules

SPECS = {name: load_spec(builtin_specs()[name]) for name in ("crazyhouse", "xiangqi")}


@cache
def rules_of(name: str, engine: str) -> Rules:
    """Hypothesis calls a test many times, so fixtures will not do."""
    return make_rules(load_spec(builtin_specs()[name]), engine)


def with_fairy(spec: VariantSpec, **changes: object) -> VariantSpec:
    data = spec.model_dump(mode="python", by_alias=True)
    return VariantSpec.model_validate({**data, **changes})


# --- the door ----------------------------------------------------------------------------------


def test_unknown_names_are_rejected_before_they_kill_the_process() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'xiangqi'"):
        FairyVariant("xianqi")
    with pytest.raises(UnknownNameError):
        FairyRules(with_fairy(SPECS["xiangqi"], fairy="no-such-game"))
    with pytest.raises(SpecError, match="no `fairy:` name"):
        FairyRules(with_fairy(SPECS["xiangqi"], fairy=None))
    assert len(fairy_variants()) >= 100


def test_configurations_are_loaded_once_and_take_effect() -> None:
    """Unknown keys are silent, so every key has to show its effect."""
    spec = SPECS["xiangqi"]
    first = FairyVariant("xiangqi", spec_settings(spec, move_count=True, chase=True))
    count = len(pyffish().variants())
    again = FairyVariant("xiangqi", spec_settings(spec, move_count=True, chase=True))
    assert (first.name, len(pyffish().variants())) == (again.name, count)
    assert first.name not in fairy_variants()

    base = spec_settings(spec, move_count=True, chase=True)
    rook_ending = "3k5/9/9/9/9/9/9/9/4R4/5K3 w - - {} 1"
    shuffle = ["h3h4", "h8h7", "h4h3", "h7h8"]
    check = ["e2d2", "d10e10", "d2e2", "e10d10"]
    chase = ["d1c3", "h1h3", "c3d1", "h3h1"]
    start = first.start_fen()
    no_move = "3k5/4P4/9/9/9/9/9/9/9/4K4 b - - 0 1"

    def having(**settings: str) -> FairyVariant:
        return FairyVariant("xiangqi", {**base, **settings})

    assert first.optional_end(rook_ending.format(120)) == 0
    assert first.optional_end(rook_ending.format(119)) is None
    assert having(nMoveRule="0").optional_end(rook_ending.format(500)) is None
    assert first.optional_end(start, shuffle * 2) == 0
    assert having(nFoldRule="4").optional_end(start, shuffle * 2) is None
    assert having(nFoldValue="loss").optional_end(start, shuffle * 2) == -1
    absolute = having(nFoldValue="loss", nFoldValueAbsolute="true")
    assert absolute.optional_end(start, [*shuffle * 2, shuffle[0]]) == 1
    assert first.optional_end(rook_ending.format(0), check * 2) == -1
    lawful = having(perpetualCheckIllegal="false", chasingRule="none")
    assert lawful.optional_end(rook_ending.format(0), check * 2) == 0
    x_ray = "5k3/9/9/9/9/9/9/9/9/3NK1cr1 w - - 0 1"
    assert first.optional_end(x_ray, chase * 2) == 1
    assert having(chasingRule="none").optional_end(x_ray, chase * 2) == 0
    assert first.mated_value(no_move) == -1
    assert having(stalemateValue="draw").mated_value(no_move) == 0
    counting = "8/8/3nk3/8/8/4R3/8/4K3 b - - 0 1"
    for rule, limit in (("none", "-"), ("makruk", "128")):
        makruk = FairyVariant("makruk", {"countingRule": rule})
        assert makruk.fen_after(counting, ["e6d7"]).split()[3] == limit
    asked = set(base) - {"countingRule"}
    assert asked == set(spec_settings(spec, move_count=False, chase=False)) - {"countingRule"}


def test_odd_move_counts_are_an_error() -> None:
    data = SPECS["xiangqi"].model_dump(mode="python", by_alias=True)
    data["rules"]["no_progress"]["plies"] = 101
    with pytest.raises(SpecError, match="101"):
        spec_settings(VariantSpec.model_validate(data), move_count=True, chase=True)


@pytest.mark.parametrize("move", ["a1a9", "", "e2e4e5", "P@e4", "0000", "\x00", "\udc80", "九"])
def test_illegal_moves_are_errors(move: str) -> None:
    fairy = FairyVariant("xiangqi")
    for ask in (fairy.legal_moves, fairy.fen_after, fairy.in_check, fairy.optional_end):
        with pytest.raises(MoveError):
            ask(fairy.start_fen(), [move])


@given(st.text(max_size=120) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
@settings(max_examples=150)
def test_any_text_is_accepted_or_rejected(text: str) -> None:
    fairy = FairyVariant("crazyhouse")
    for ask in (fairy.legal_moves, fairy.in_check, fairy.immediate_end, fairy.optional_end):
        with suppress(VariantAIError):
            ask(text)


# --- records -----------------------------------------------------------------------------------


def test_start_is_not_lost() -> None:
    """pyffish's `game_result` gives -32000 for a position that has legal moves."""
    assert pyffish().game_result("xiangqi", pyffish().start_fen("xiangqi"), []) == -32000
    for name in SPECS:
        rules = rules_of(name, "fairy")
        assert rules.outcome(rules.position()) is None


@pytest.mark.parametrize("name", sorted(SPECS))
def test_records_follow_fairy_stockfish(name: str) -> None:
    rules, rng = rules_of(name, "fairy"), random.Random(11)
    fairy = FairyVariant(name)
    position, start = rules.position(), fairy.start_fen()
    moves: list[str] = []
    for _ in range(35):
        legal = rules.legal_moves(position)
        texts = [core_notations()[0].write(rules, position, int(m)) for m in legal]
        assert texts == fairy.legal_moves(start, moves)
        assert rules.in_check(position) == fairy.in_check(start, moves)
        if not texts:
            break
        pick = rng.randrange(len(texts))
        before = position.copy()
        position = rules.play(position, int(legal[pick]))
        assert same_position(before, rules.play(before, int(legal[pick]))) is False
        moves.append(texts[pick])
        ours, theirs = rules.fen(position).split(), fairy.fen_after(start, moves).split()
        assert ours[:2] == theirs[:2] and ours[-1] == theirs[-1]
        assert int(position["ply"][0]) == len(moves)
        assert position["key"][0] == position_key(position)
        again = rules.position(rules.fen(position))
        again["checks"] = position["checks"]
        assert same_position(again, position)


def test_pawn_moves_have_their_kinds() -> None:
    rules, uci = rules_of("crazyhouse", "fairy"), core_notations()[0]
    position = rules.position()
    for text in ("e2e4", "a7a6", "e4e5", "d7d5"):
        position = rules.play(position, uci.read(rules, position, text))
    capture = uci.read(rules, position, "e5d6")
    assert move_kind(capture) == EN_PASSANT
    assert move_kind(uci.read(rules, rules.position(), "e2e4")) == DOUBLE_STEP
    after = rules.play(position, capture)
    assert rules.fen(after).startswith("rnbqkbnr/1pp1pppp/p2P4/8/8/8/PPPP1PPP/RNBQKBNR[P] b")


@pytest.mark.parametrize("engine", ["fairy", "kernel"])
@pytest.mark.parametrize(
    ("name", "fen"),
    [
        ("xiangqi", "4k4/9/9/9/9/9/9/9/9/4K4 w - - 0 1"),  # the generals face each other
        ("xiangqi", "4k4/9/9/9/9/9/9/9/4R4/3K5 w - - 0 1"),  # the general can be taken
        ("crazyhouse", "4k3/8/8/8/8/8/4R3/4K3[] w - - 0 1"),
        ("crazyhouse", "8/8/8/8/8/8/8/4K3[] w - - 0 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/3KK3[] w - - 0 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/4K3[-3] w - - 0 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/4K3[" + "P" * 200 + "] w - - 0 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/4K3[] x - - 0 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/4K3[] w - - -5 1"),
        ("crazyhouse", "4k3/8/8/8/8/8/8/4K3[] w - - 99999999999999 1"),
        ("xiangqi", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"),
        ("crazyhouse", "xiangqi"),
        ("crazyhouse", ""),
        ("crazyhouse", "8/" * 500_000),
    ],
    ids=lambda text: text[:40],
)
def test_positions_that_cannot_be_played_on(engine: str, name: str, fen: str) -> None:
    with pytest.raises(FenError) as error:
        rules_of(name, engine).position(fen)
    assert len(str(error.value)) < 1000


# --- anything goes, for both engines -----------------------------------------------------------

_FEN_LETTERS = "KQRBNPkqrbnpaceACE12345678990~[]+-/ wbr"
_mangled = st.builds(
    lambda fen, at, junk, cut: fen[: at % len(fen)] + junk + fen[at % len(fen) + cut :],
    st.sampled_from(
        [
            *(spec.rules.start for spec in SPECS.values()),
            "r2q3k/ppp2p1p/2n1pN2/3pP3/3P4/4BB2/PPP2PPP/R2Q1RK1[Rbbnnp] w - - 4 22",
            "r1bqk2r/pppp1Q~pp/8/8/8/8/PPP2PPP/R3K2R[NBp] b KQkq - 1 20",
        ]
    ),
    st.integers(0, 200),
    st.text(_FEN_LETTERS, max_size=6),
    st.integers(0, 8),
)
_texts = _mangled | st.text(max_size=40)
_moves = st.text("abcdefghi0123456789@xO-=+#NBRQKPq", max_size=8) | st.text(max_size=8)


@pytest.mark.parametrize("engine", ["fairy", "kernel"])
@given(name=st.sampled_from(sorted(SPECS)), fen=_texts, texts=st.lists(_moves, max_size=4))
@settings(max_examples=60)
def test_only_our_errors_come_out(engine: str, name: str, fen: str, texts: list[str]) -> None:
    rules = rules_of(name, engine)
    try:
        position = rules.position(fen)
    except VariantAIError:
        position = rules.position()
    legal = rules.legal_moves(position)
    rules.outcome(position)
    assert same_position(rules.position(rules.fen(position)), position)
    for move in legal[:3].tolist():
        after = rules.play(position, move)
        rules.legal_moves(after)
    for text in texts:
        for notation in core_notations():
            try:
                assert notation.read(rules, position, text) in legal
            except VariantAIError:
                continue
    with suppress(VariantAIError):
        rules.judge_cycle(fen, texts)


@given(st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=80)
def test_any_integer_played_is_a_move_or_an_error(move: int) -> None:
    rules = rules_of("crazyhouse", "fairy")
    position = rules.position()
    with suppress(VariantAIError):
        rules.play(position, move)


# --- engines by name ---------------------------------------------------------------------------


def test_engines_by_name() -> None:
    spec = SPECS["xiangqi"]
    assert make_rules(spec).name == spec.rules.engine
    assert make_rules(spec, "fairy").name == "fairy"
    with pytest.raises(UnknownNameError, match="did you mean 'kernel'"):
        make_rules(spec, "kernal")
    with pytest.raises(PluginError, match="already exists"):
        RULES_ENGINES.register("fairy", make_rules)
    RULES_ENGINES.register("also-fairy", FairyRules)
    assert "also-fairy" in RULES_ENGINES.names
    assert make_rules(spec, "also-fairy").legal_moves(make_rules(spec).position()).dtype == np.int32


def test_positions_print(capsys: pytest.CaptureFixture[str]) -> None:
    """pyffish writes complaints to the standard streams; none of them come from here."""
    rules = rules_of("xiangqi", "fairy")
    for text in ("", string.printable, "4k4/9/9/9/9/9/9/9/9/4K4 w - - 0 1"):
        with pytest.raises(FenError):
            rules.position(text)
    assert capsys.readouterr() == ("", "")


def berolina() -> VariantSpec:
    """Pawns that step askew, whose double step is taken on a square it names together with its own."""
    data = load_spec(builtin_specs()["chess"]).model_dump(mode="python", by_alias=True)
    pawn = {"moves": "fmFfcW", "from": {"rank 2": "fmnA"}, "passant": False}
    pieces = {**data["pieces"], "P": {**data["pieces"]["P"], **pawn}}
    rules = {**data["rules"], "engine": "fairy"}
    named = {"variant": "askew", "fairy": "berolina", "policy": "derived"}
    return VariantSpec.model_validate({**data, "pieces": pieces, "rules": rules, **named})


def test_two_squares_of_a_double_step_are_kept_beside_the_record() -> None:
    rules = make_rules(berolina())
    position = rules.position()
    after = rules.play(position, core_notations()[0].read(rules, position, "e2g4"))
    assert rules.fen(after).split()[3] in ("-", "f3g4")
    assert int(after["ep"][0]) == -1
    assert same_position(rules.position(rules.fen(after)), after) or rules.fen(after).endswith(
        "0 1"
    )


def test_a_fen_that_cannot_be_read_is_attributed_to_fairy_stockfish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fen = "4k3/8/8/8/8/8/8/4K3 w - f33 0 1"
    monkeypatch.setattr(FairyVariant, "fen_after", lambda *given: fen)
    chess = load_spec(builtin_specs()["chess"])
    report = check_rules(chess, 20, seed=1, isolated=False)
    assert ": Fairy-Stockfish's FEN '" in report.first_difference
    assert "is rejected when it is read: e.p. square" in report.first_difference


def test_counting_limit_is_kept() -> None:
    """Makruk's FEN has the limit in place of the e.p. square."""
    rules = rules_of("makruk", "fairy")
    uci = core_notations()[0]
    position = rules.position("8/8/3nk3/8/8/4R3/8/4K3 b - - 0 1")
    for text, fen in (
        ("e6d7", "8/3k4/3n4/8/8/4R3/8/4K3 w - 128 0 2"),
        ("e3e4", "8/3k4/3n4/8/4R3/8/8/4K3 b - 128 1 2"),
    ):
        position = rules.play(position, uci.read(rules, position, text))
        assert rules.fen(position) == fen
        assert same_position(rules.position(fen), position)
    assert rules.outcome(position) is None
    over = rules.outcome(rules.position("8/8/3k4/8/4R3/8/8/4K3 b - 32 33 2"))
    assert over is not None and (over.reason, over.winner) == ("move count", None)
    assert over.detail == "makruk counting, limit 32 plies"
    assert rules.outcome(rules.position("8/8/3k4/8/4R3/8/8/4K3 b - 32 32 2")) is None


@pytest.mark.parametrize("name", ["crazyhouse", "dobutsu", "horde", "makruk", "shogi", "xiangqi"])
def test_both_engines_keep_the_same_records(name: str) -> None:
    """Moves as integers, records after them but for the key, and outcomes."""
    kernel, fairy, rng = rules_of(name, "kernel"), rules_of(name, "fairy"), random.Random(17)
    position = kernel.position()
    for _ in range(25):
        legal = sorted(kernel.legal_moves(position).tolist())
        assert legal == sorted(fairy.legal_moves(position).tolist())
        ours, theirs = kernel.outcome(position), fairy.outcome(position)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert (ours.winner, ours.reason) == (theirs.winner, theirs.reason)
        if ours is not None or not legal:
            position = kernel.position()
            continue
        board = position["board"][0]
        sharp = [m for m in legal if move_kind(m) or board[m & 127]]
        move = rng.choice(sharp if sharp and rng.random() < 0.5 else legal)
        after, same = kernel.play(position, move), fairy.play(position, move)
        same["key"] = after["key"]
        assert same_position(after, same), kernel.fen(after)
        position = after


def test_pyffish_is_imported_by_the_first_question_only() -> None:
    """Its import takes half a second and 100 MB, which no game without a chase should cost."""
    code = (
        "import sys, variant_ai.core.rules.fairy.fairy_rules, variant_ai.core.rules.game as game\n"
        "from variant_ai.core.rules import make_rules\n"
        "from variant_ai.core.spec import builtin_specs, load_spec\n"
        "game.Game(make_rules(load_spec(builtin_specs()['xiangqi']))).outcome()\n"
        "print('pyffish' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
