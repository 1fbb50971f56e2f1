"""Settings: the spec's words, ranges, text; limits and reports."""

from __future__ import annotations

import pytest

from variant_ai.core.errors import SettingError, UnknownNameError
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import MAX_CENTIPAWNS, Line, Report, centipawns
from variant_ai.core.search.settings import PAPER, SearchParams
from variant_ai.core.spec import encoding_hash, rules_hash
from variant_ai.core.spec.schema import SearchWords
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS, setting
from variant_ai.plugins import registry


def test_published_settings_of_the_variants() -> None:
    crazyhouse = SearchParams.of(registry().variant("crazyhouse"), PAPER)
    assert crazyhouse.enhance_checks
    assert crazyhouse.u_divisor == "adaptive"
    assert (crazyhouse.q_weight, crazyhouse.virtual_loss) == (0.7, 3.0)
    assert (crazyhouse.virtual_style, crazyhouse.node_temperature) == ("loss", 1.0)
    xiangqi = SearchParams.of(registry().variant("xiangqi"), PAPER)
    assert not xiangqi.enhance_checks
    assert (xiangqi.u_divisor, xiangqi.q_weight, xiangqi.node_temperature) == (1.0, 0.0, 1.7)


def test_overrides_replace_settings_of_the_spec() -> None:
    spec = registry().variant("crazyhouse")
    params = SearchParams.of(spec, PAPER, q_weight=0.25, batch_size=64)
    assert (params.q_weight, params.batch_size) == (0.25, 64)
    assert params.enhance_checks
    assert params.replace(seed=7).seed == 7
    assert params.replace(seed=7).batch_size == 64


def test_a_named_set_is_complete_in_itself() -> None:
    """A set starts from the defaults and contains nothing of the spec's `search:`."""
    spec = registry().variant("crazyhouse")
    other = spec.model_copy(
        update={"search": SearchWords(cpuct_init=9.0), "settings": {"mine": SearchWords(u_min=0.5)}}
    )
    assert SearchParams.of(other).cpuct_init == 9.0
    assert SearchParams.of(other, "mine") == SearchParams(u_min=0.5)


def test_the_error_for_an_unknown_set_lists_those_of_the_spec() -> None:
    with pytest.raises(UnknownNameError, match=r"crazyhouse 'papr'.*'paper'.*default, paper"):
        SearchParams.of(registry().variant("crazyhouse"), "papr")


def test_sets_change_nothing_that_nets_and_games_depend_on() -> None:
    spec = registry().variant("crazyhouse")
    other = spec.model_copy(update={"settings": {}})
    assert rules_hash(other) == rules_hash(spec)
    assert encoding_hash(other) == encoding_hash(spec)


def test_whole_numbers_become_floats_where_floats_are_meant() -> None:
    params = SearchParams(cpuct_init=3, u_divisor=1)
    assert isinstance(params.cpuct_init, float)
    assert isinstance(params.u_divisor, float)
    assert isinstance(params.batch_size, int)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("batch_size", 0, "a whole number from 1 to 4096"),
        ("batch_size", 1.5, "a whole number"),
        ("batch_size", True, "a whole number"),
        ("q_weight", 1.01, "a number from 0 to 1"),
        ("q_weight", float("nan"), "a number from 0 to 1"),
        ("u_divisor", 0, "from 0.01 to 1, or adaptive"),
        ("u_divisor", "sometimes", "or adaptive"),
        ("backup", "both", "catch-up or q-epsilon or none"),
        ("solver", 1, "true or false"),
        ("noise_style", None, "dirichlet or uniform"),
    ],
)
def test_a_value_out_of_range_is_rejected(name: str, value: object, accepted: str) -> None:
    with pytest.raises(SettingError, match=f"{name} = .*{accepted}"):
        SearchParams(**{name: value})


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(UnknownNameError, match="cpuct_init"):
        SearchParams.of(registry().variant("xiangqi"), cpuct_inti=2)


def test_every_word_of_a_spec_is_a_setting_with_the_same_default() -> None:
    words = SearchWords()
    for name in SearchWords.model_fields.keys() - {"piece_gains"}:  # a table, not a setting
        assert getattr(words, name) == setting(name).default


def test_every_setting_is_explained_and_bounded() -> None:
    for row in SEARCH_SETTINGS.values():
        assert row.meaning, row.name
        assert "inf" not in row.accepted, row.name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("batch_size", " 32 ", 32),
        ("u_divisor", "Adaptive", "adaptive"),
        ("u_divisor", "0.5", 0.5),
        ("solver", "off", False),
        ("solver", "TRUE", True),
        ("virtual_style", "visit", "visit"),
        ("pv_values", "on", "on"),
    ],
)
def test_settings_are_read_from_text(name: str, text: str, value: object) -> None:
    read = setting(name).parse(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text"), [("batch_size", "many"), ("solver", "maybe"), ("backup", "")]
)
def test_unreadable_text_is_rejected(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=name):
        setting(name).parse(text)


def test_search_words_are_no_part_of_what_nets_and_games_depend_on() -> None:
    spec = registry().variant("xiangqi")
    other = spec.model_copy(update={"search": SearchWords(noise_alpha=0.5, mate_stop=False)})
    assert rules_hash(other) == rules_hash(spec)
    assert encoding_hash(other) == encoding_hash(spec)


def test_hashes_of_the_specs_that_games_and_nets_carry() -> None:
    """New words of the schema do not change the hashes."""
    hashes = {
        name: (rules_hash(spec), encoding_hash(spec))
        for name in ("crazyhouse", "xiangqi")
        if (spec := registry().variant(name))
    }
    assert hashes == {
        "crazyhouse": ("d2f1f33dc9b39957", "f772bc8189eeb005"),
        "xiangqi": ("212bef1755829fe0", "5315827c6405ce7d"),
    }


def test_the_smaller_visit_limit_counts() -> None:
    assert Limits(simulations=100, nodes=50).visits == 50
    assert Limits(movetime=1.0).visits is None


@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_limit_is_not_negative(value: float) -> None:
    with pytest.raises(SettingError, match="movetime"):
        Limits(movetime=value)


@pytest.mark.parametrize(
    ("q", "cp"),
    [(0.1291571, 75), (0.0770245, 43), (0.1034426, 59), (0.0779215, 44), (0.0887958, 51)],
)
def test_centipawns_of_the_thesis(q: float, cp: int) -> None:
    """Table 5.4."""
    assert centipawns(q) == cp
    assert centipawns(-q) == -cp


def test_centipawns_are_bounded() -> None:
    assert centipawns(0.0) == 0
    assert centipawns(1.0) == centipawns(0.99999) == MAX_CENTIPAWNS
    assert centipawns(-1.0) == -MAX_CENTIPAWNS


@pytest.mark.parametrize(
    ("plies", "moves"), [(1, 1), (2, 1), (3, 2), (-1, -1), (-2, -1), (-4, -2), (None, None)]
)
def test_mates_in_full_moves(plies: int | None, moves: int | None) -> None:
    assert Line(move=0, pv=(0,), visits=1, prior=1.0, q=0.0, mate=plies).mate_in == moves


def test_rates_never_divide_by_zero() -> None:
    assert Report(best=None, visits=10).nps == 0
    assert Report(best=None, visits=10, seconds=0.5).nps == 20
