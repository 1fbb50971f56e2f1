"""Options: names, values, and their effect on the search."""

from __future__ import annotations

import itertools

import pytest

from variant_ai.core.engine.protocols.chosen_options import OptionSet, strength_of
from variant_ai.core.engine.protocols.engine_options import AUTO, OPTIONS, UCCI_OPTIONS, declare
from variant_ai.core.errors import SettingError
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.schema import SearchWords
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS
from variant_ai.plugins import registry

NOT_BY_FIELD = {"u_divisor"}
"""Set by U_Divisor and Centi_U_Init_Divisor together."""


def options() -> OptionSet:
    return OptionSet(["chess", "crazyhouse"], "crazyhouse")


def test_every_setting_of_the_search_is_an_option() -> None:
    assert {o.field for o in OPTIONS if o.field} | NOT_BY_FIELD == set(SEARCH_SETTINGS)


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.field], ids=lambda o: o.name)
def test_defaults_and_ranges_are_those_of_the_search(option) -> None:  # type: ignore[no-untyped-def]
    row = SEARCH_SETTINGS[option.field]
    if option.field in SearchWords.model_fields:
        assert option.default in ("auto", AUTO), "or clients that repeat it would overrule the spec"
        if row.kind == "name":
            assert option.kind == "string"
        elif option.kind == "spin":
            row.check(option.high if row.kind == "int" else round(option.high * option.scale, 6))
        else:
            words = option.words or {word: word for word in option.choices[1:]}
            assert set(words.values()) == set(row.choices or (True, False))
    elif option.words is not None:
        assert {str(word) for word in option.words.values()} == set(row.choices)
        assert option.words[str(option.default).lower()] == row.default
    elif option.kind == "spin":
        assert option.default * option.scale == pytest.approx(row.default)
        for bound in (option.low, option.high):
            row.check(int(bound) if row.kind == "int" else round(bound * option.scale, 6))
    else:
        assert option.default == row.default
        assert option.choices == row.choices


def test_names_are_unique_and_compared_without_case_blanks_or_underscores() -> None:
    chosen = options()
    names = [o.name for o in chosen.uci]
    assert len({n.lower().replace("_", " ") for n in names}) == len(names)
    for name in ("move overhead", "MOVE_OVERHEAD", "Move Overhead"):
        assert chosen.find(name).name == "Move Overhead"
    assert chosen.find("Model_Directory").name == "Model"
    assert chosen.uci[-1].name == "UCI_Variant"


def test_what_nobody_set_is_left_to_the_spec() -> None:
    assert options().search_overrides("adaptive") == {}
    spec = registry().variant("crazyhouse")
    assert SearchParams.of(spec).q_weight == spec.search.q_weight


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("Centi_CPuct_Init", "300", "cpuct_init", 3.0),
        ("Milli_Q_Epsilon", "5", "q_epsilon", 0.005),
        ("hash", "64", "memory_mb", 64),
        ("hashsize", "32", "memory_mb", 32),
        ("Use_Transposition_Table", "false", "transpositions", False),
        ("Search_Type", "MCTS", "transpositions", False),
        ("PV_Values", "true", "pv_values", "on"),
        ("Enhance_Checks", "FALSE", "enhance_checks", False),
        ("Mate_Stop", "false", "mate_stop", False),
        ("Centi_Q_Value_Weight", "0", "q_weight", 0.0),
        ("Q_Unvisited", "parent", "q_unvisited", "parent"),
        ("Temperature_Moves", "4", "temperature_moves", 4),
        ("randomness", "medium", "temperature", 0.6),
    ],
)
def test_options_reach_the_search(name: str, value: str, field: str, expected: object) -> None:
    chosen = options()
    chosen.set(name, value)
    found = chosen.search_overrides()
    assert found[field] == expected
    assert getattr(SearchParams.of(registry().variant("crazyhouse"), **found), field) == expected


def test_the_divisor_is_constant_or_falls() -> None:
    chosen = options()
    chosen.set("Centi_U_Init_Divisor", "50")
    assert chosen.search_overrides(1.0)["u_divisor"] == 0.5
    assert "u_divisor" not in chosen.search_overrides("adaptive")
    chosen.set("U_Divisor", "adaptive")
    assert chosen.search_overrides(1.0)["u_divisor"] == "adaptive"
    assert chosen.search_overrides(1.0)["u_init"] == 0.5
    chosen.set("U_Divisor", "constant")
    assert chosen.search_overrides("adaptive")["u_divisor"] == 0.5


@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi"])
def test_a_client_that_repeats_every_default_changes_nothing(variant: str) -> None:
    chosen = options()
    for option in (*chosen.uci, *UCCI_OPTIONS):
        if option.kind != "button":
            chosen.set(option.name, str(option.default).lower())
    spec = registry().variant(variant)
    found = chosen.search_overrides(spec.search.u_divisor)
    assert SearchParams.of(spec, **found) == SearchParams.of(spec)
    assert chosen.evaluator_settings == options().evaluator_settings


def test_presets_are_declared_so_that_repeating_them_keeps_them() -> None:
    chosen = options()
    chosen.preset("hash", "64")
    chosen.preset("Centi_Q_Value_Weight", "30")
    chosen.preset("resign", "0")
    lines = [declare(option) for option in (*chosen.uci, *chosen.ucci)]
    assert "option name Hash type spin default 64 min 1 max 1048576" in lines
    assert "option name resign type spin default 0 min 0 max 49" in lines
    assert chosen.search_overrides()["q_weight"] == 0.3
    chosen.set("Centi_Q_Value_Weight", "-1")
    assert "q_weight" not in chosen.search_overrides()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Hash", "0"),
        ("Hash", "many"),
        ("Hash", ""),
        ("Hash", "9" * 30),
        ("Ponder", "maybe"),
        ("Backup", "none of these"),
        ("UCI_Variant", "draughts"),
    ],
)
def test_values_out_of_range_are_refused_and_nothing_changes(name: str, value: str) -> None:
    chosen = options()
    before = chosen.value(name)
    with pytest.raises(SettingError, match=f"option {name}: .* given, expected"):
        chosen.set(name, value)
    assert chosen.value(name) == before


def test_an_unknown_name_gets_the_closest_one() -> None:
    with pytest.raises(SettingError, match="unknown option 'Batchsize'; did you mean 'Batch_Size'"):
        options().set("Batchsize", "1")


@pytest.mark.parametrize("value", ["true", "True", "on", "1"])
def test_switches_are_read_in_any_way(value: str) -> None:
    chosen = options()
    chosen.set("usemillisec", value)
    assert chosen.is_on("usemillisec")


# --- strength ------------------------------------------------------------------------------------


def test_strength_grows_with_its_number() -> None:
    steps = [strength_of(elo) for elo in range(800, 2601, 100)]
    assert steps[0].nodes == 1 and steps[-1].nodes == 4096
    assert all(a.nodes <= b.nodes for a, b in itertools.pairwise(steps))
    assert all(a.temperature >= b.temperature for a, b in itertools.pairwise(steps))
    assert steps[-1].temperature == 0


def test_limited_strength_limits_nodes_and_draws_moves() -> None:
    chosen = options()
    assert chosen.node_limit is None and chosen.strength is None
    chosen.set("UCI_Elo", "1100")
    assert chosen.strength is None, "only with UCI_LimitStrength"
    chosen.set("UCI_LimitStrength", "true")
    assert chosen.node_limit == 4
    found = chosen.search_overrides()
    assert found["temperature"] == pytest.approx(0.9) and found["temperature_moves"] == 1000
    chosen.set("UCI_AnalyseMode", "true")
    assert chosen.node_limit is None
    assert chosen.search_overrides()["temperature_moves"] == 0


def test_skill_is_strength_by_another_name() -> None:
    chosen = options()
    chosen.set("Skill Level", "0")
    assert chosen.strength == strength_of(800)
    chosen.set("Skill Level", "20")
    assert chosen.strength is None


def test_the_least_limit_counts() -> None:
    chosen = options()
    chosen.set("Nodes", "500")
    chosen.set("Simulations", "300")
    assert chosen.node_limit == 300


# --- nets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("set_to", "device"),
    [
        ({}, "cpu"),
        ({"First_Device_ID": "1"}, "cpu"),
        ({"Context": "gpu"}, "cuda"),
        ({"Context": "gpu", "Use_TensorRT": "true"}, "tensorrt"),
        ({"Context": "gpu", "First_Device_ID": "1"}, "cuda:1"),
        ({"Context": "gpu", "Last_Device_ID": "2"}, "cuda:0,cuda:1,cuda:2"),
    ],
)
def test_devices(set_to: dict[str, str], device: str) -> None:
    chosen = options()
    for name, value in set_to.items():
        chosen.set(name, value)
    assert chosen.evaluator_settings["device"] == device


# --- declared ------------------------------------------------------------------------------------


def test_declarations() -> None:
    lines = [declare(option) for option in options().uci]
    assert "option name Hash type spin default 512 min 1 max 1048576" in lines
    assert "option name Clear Hash type button" in lines
    assert "option name Model type string default <empty>" in lines
    assert (
        "option name Backup type combo default catch-up var catch-up var q-epsilon var none"
        in lines
    )
    assert (
        lines[-1]
        == "option name UCI_Variant type combo default crazyhouse var chess var crazyhouse"
    )


def test_bounds_fit_the_numbers_of_bridges() -> None:
    for option in (*OPTIONS, *UCCI_OPTIONS):
        if option.kind == "spin":
            assert -(2**31) <= option.low <= int(option.default) <= option.high < 2**31


def test_options_say_what_they_do() -> None:
    for option in (*OPTIONS, *UCCI_OPTIONS):
        assert option.about, option.name
