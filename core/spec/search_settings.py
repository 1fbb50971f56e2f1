"""Settings of the search: the one place that declares them.

A setting is one field of `SearchSettings`: name, type, default, meaning, range, unit and source.
From it follow the option of all protocols (`core/engine/protocols/engine_options.py`),
`--set NAME=VALUE`, `search.NAME=VALUE` of players in matches, `tune --range`, and the tables in
docs/search.md and docs/engine.md, which `python docs/tables.py` writes. With `spec=True` also the
word in a spec's `search:` and its JSON schema (`schema.py`), with `compiled=True` the field of the
compiled record (`core/search/compiled_settings.py`).

Nothing large is imported here: the engine declares its options before it loads anything.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from variant_ai.core.errors import UnknownNameError
from variant_ai.core.spec.declared_setting import Kind, Setting


def _setting(
    default: Any, meaning: str, bounds: tuple[float, float] = (-math.inf, math.inf), **known: Any
) -> Any:
    """Return a dataclass field with what is known of a setting; `known`: fields of `Setting`.

    bounds: least and greatest value, needed for numbers.
    """
    low, high = bounds
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high, **known})


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of one search, with the defaults that every variant starts with.

    N is the number of visits of a move, ΣN their sum over the moves of a node, P the prior
    probability, Q a value in [-1, 1] from the view of the side to move.
    """

    algorithm: str = _setting(
        "graph",
        "search by its name: `graph`, the Monte-Carlo graph search, or one of a plugin",
        spec=True,
        option="Search_Algorithm",
    )

    # --- batches -------------------------------------------------------------------------------
    batch_size: int = _setting(
        16,
        "positions that the network evaluates at once",
        bounds=(1, 4096),
        unit="positions",
        source="[Xiangqi-thesis] table 7.1",
    )
    batch_growth: float = _setting(
        8.0,
        "a batch holds at most 1/batch_growth of the root's visits, rounded down to a power of 4, "
        "because simulations of one batch learn nothing from each other; 0: every batch is full",
        bounds=(0, 1000),
        option="Batch_Growth",
    )
    memory_mb: int = _setting(
        512,
        "memory of the search tree in MB; the search ends when it is full",
        bounds=(1, 1 << 20),
        unit="MB",
        option="Hash",
    )

    # --- selection -----------------------------------------------------------------------------
    cpuct_init: float = _setting(
        1.5,
        "exploration constant: c = ln((ΣN + cpuct_base + 1) / cpuct_base) + cpuct_init",
        bounds=(0, 100),
        source="[CrazyAra-preprint] eq. 3; [Xiangqi-thesis] table 7.1: 2.5",
        spec=True,
        compiled=True,
        option="Centi_CPuct_Init",
    )
    cpuct_base: float = _setting(
        19652.0,
        "visits after which the exploration constant has grown by ln 2",
        bounds=(1, 1_000_000_000),
        unit="visits",
        source="[CrazyAra-preprint] eq. 3; [Xiangqi-thesis] table 7.1",
        spec=True,
        compiled=True,
        option="CPuct_Base",
    )
    u_divisor: float | Literal["adaptive"] = _setting(
        1.0,
        "d in U = c·P·√ΣN / (d + N): a constant, or `adaptive`, which falls from u_init to u_min "
        "with the visits",
        bounds=(0.01, 1),
        source="[CrazyAra-preprint] eq. 10, 11; [Xiangqi-thesis] table 7.1: 1",
        spec=True,
        compiled=True,
    )
    u_init: float = _setting(
        1.0,
        "divisor of the exploration term in a young tree, if it is adaptive",
        bounds=(0.01, 1),
        source="[CrazyAra-preprint] eq. 11",
        spec=True,
        compiled=True,
        option="Centi_U_Init_Divisor",
    )
    u_min: float = _setting(
        0.25,
        "divisor of the exploration term in an old tree, if it is adaptive",
        bounds=(0.01, 1),
        source="[CrazyAra-preprint] eq. 11",
        spec=True,
        compiled=True,
        option="Centi_U_Min_Divisor",
    )
    u_base: float = _setting(
        1965.0,
        "visits after which 1/e of the way from u_init to u_min is left",
        bounds=(1, 1_000_000_000),
        unit="visits",
        source="[CrazyAra-preprint] eq. 11",
        spec=True,
        compiled=True,
        option="U_Base",
    )
    # Cutting moves of low prior, which the paper uses against draws, lost games here: not offered.
    q_unvisited: Literal["loss", "draw", "parent"] = _setting(
        "parent",
        "Q of a move without visits: -1, 0, or the node's own value minus q_unvisited_reduction",
        source="[CrazyAra-preprint] section 9.1: loss",
        spec=True,
        compiled=True,
    )
    q_unvisited_reduction: float = _setting(
        0.2,
        "subtracted from the node's value if q_unvisited is `parent`",
        bounds=(0, 2),
        unit="value",
        spec=True,
        compiled=True,
    )
    node_temperature: float = _setting(
        1.0,
        "softmax temperature of the policy at every node; above 1 the policy is flatter",
        bounds=(0.05, 20),
        source="[Xiangqi-thesis] table 7.1: 1.7; [CrazyAra-preprint]: 1",
        spec=True,
        compiled=True,
    )

    # --- virtual loss --------------------------------------------------------------------------
    virtual_style: Literal["loss", "visit"] = _setting(
        "loss",
        "a pending visit, not yet backed up, counts as virtual_loss lost visits, or as visits "
        "without a result",
        source="[CrazyAra-preprint] section 9.1",
        spec=True,
        compiled=True,
    )
    virtual_loss: float = _setting(
        1.0,
        "number of visits that one pending visit counts as",
        bounds=(0, 100),
        unit="visits",
        source="[CrazyAra-preprint] section 9.1: 3; [Xiangqi-thesis] table 7.1: 1",
        spec=True,
        compiled=True,
    )

    # --- noise at the root ---------------------------------------------------------------------
    noise_epsilon: float = _setting(
        0.0,
        "share ε of noise in the root's priors: (1 - ε)·P + ε·noise",
        bounds=(0, 1),
        source="[Xiangqi-thesis] table 7.1: 0 (matches); [CrazyAra-preprint] section 9.1: 0.25",
        spec=True,
        option="Centi_Dirichlet_Epsilon",
    )
    noise_alpha: float = _setting(
        0.2,
        "parameter α of the Dirichlet noise",
        bounds=(0.001, 100),
        source="[CrazyAra-preprint] section 9.1; [Xiangqi-thesis] table 7.1",
        spec=True,
        option="Centi_Dirichlet_Alpha",
    )
    noise_style: Literal["dirichlet", "uniform"] = _setting(
        "dirichlet",
        "noise sampled from Dir(α), or the same for every move",
        source="[CrazyAra-preprint] sections 9.1, 10.2",
    )

    # --- checks, mates, proofs -----------------------------------------------------------------
    enhance_checks: bool = _setting(
        False,
        "raise the priors of checking moves below enhance_threshold, then renormalise",
        source="[CrazyAra-preprint] eq. 12",
        spec=True,
        compiled=True,
    )
    enhance_threshold: float = _setting(
        0.1,
        "checking moves with at least this prior are not raised",
        bounds=(0, 1),
        unit="probability",
        source="[CrazyAra-preprint] section 9.2.7",
        spec=True,
        compiled=True,
    )
    enhance_factor: float = _setting(
        0.5,
        "share of the greatest prior that is added to the prior of a checking move",
        bounds=(0, 10),
        source="[CrazyAra-preprint] section 9.2.7",
        spec=True,
        compiled=True,
    )
    mate_stop: bool = _setting(
        True,
        "do not explore other moves at a node with a move that wins at once",
        source="[CrazyAra-preprint] section 9.2.7",
        spec=True,
        compiled=True,
    )
    solver: bool = _setting(
        True,
        "prove wins, losses and draws from finished games upwards",
        source="[Xiangqi-thesis] table 7.1",
        compiled=True,
        option="MCTS_Solver",
    )
    look_for_mates: bool = _setting(
        True,
        "let the rules look for mates by checks before the net is asked; only with solver",
        compiled=True,
    )
    mate_visits: int = _setting(
        1,
        "visits of a node at which they look for a mate; 1: at every new leaf",
        bounds=(1, 1_000_000),
        unit="visits",
        compiled=True,
    )
    mate_positions: int = _setting(
        200,
        "most positions searched for a mate at one node",
        bounds=(1, 1_000_000),
        unit="positions",
        compiled=True,
    )

    look_for_material: bool = _setting(
        True,
        "let the rules look for material that moves win or lose, at every new leaf, and add it to the net's "
        "value and priors; only where the spec has piece_gains or piece_gain_share, or the evaluator is "
        "material",
        compiled=True,
    )
    piece_gain_share: float = _setting(
        0.0,
        "gain of a capture as a share of the piece's value by its mobility; for nets, where the spec has no "
        "piece_gains",
        bounds=(0, 5),
        spec=True,
    )
    material_prior: float = _setting(
        7.0,
        "a move's gain of material, times this, is added to the logit of its prior",
        bounds=(0, 100),
        spec=True,
        compiled=True,
    )
    material_positions: int = _setting(
        3000,
        "most positions searched for material at one leaf; where they are not enough, nothing is added",
        bounds=(1, 1_000_000),
        unit="positions",
        compiled=True,
    )

    # --- graph ---------------------------------------------------------------------------------
    transpositions: bool = _setting(
        True,
        "equal positions share a node; if false, the search is a plain tree",
        source="[CrazyAra-preprint] section 9.2.5; [MCGS]",
        compiled=True,
        option="Use_Transposition_Table",
    )
    backup: Literal["catch-up", "q-epsilon", "none"] = _setting(
        "catch-up",
        "at an edge whose child was visited through another edge: stop there and recompute Q up "
        "the path, apply the correction of the paper, or do nothing",
        source="[MCGS]",
        compiled=True,
    )
    q_epsilon: float = _setting(
        0.01,
        "least difference between edge and child that `q-epsilon` corrects",
        bounds=(0, 2),
        unit="value",
        source="[MCGS]",
        compiled=True,
        option="Milli_Q_Epsilon",
    )
    reuse_tree: bool = _setting(
        True,
        "keep the part of the tree below the new root after a move",
        source="[CrazyAra-preprint] section 9.1; [Xiangqi-thesis] table 7.1",
    )
    max_depth: int = _setting(
        99,
        "longest path from the root, in plies",
        bounds=(1, 1000),
        unit="plies",
        source="[Xiangqi-thesis] table 7.1",
        compiled=True,
        option="Max_Search_Depth",
    )

    # --- choice of the move --------------------------------------------------------------------
    q_weight: float = _setting(
        0.0,
        "weight f of values in the final choice: (1 - f)·N/ΣN + f·Q', with Q' in [0, 1]",
        bounds=(0, 1),
        source="[CrazyAra-preprint] eq. 5: 0.7; [Xiangqi-thesis] table 7.1: 0",
        spec=True,
        option="Centi_Q_Value_Weight",
    )
    # [CrazyAra-preprint] table 11 has a constant threshold, q_thresh_init = q_thresh_max = 0.33.
    q_thresh_init: float = _setting(
        0.5,
        "Q' is 0 for moves with less than this share of the greatest N, in a young tree",
        bounds=(0, 1),
        source="[CrazyAra-preprint] eq. 7; [Xiangqi-thesis] table 7.1",
        spec=True,
    )
    q_thresh_max: float = _setting(
        0.9,
        "Q' is 0 for moves with less than this share of the greatest N, in an old tree",
        bounds=(0, 1),
        source="[CrazyAra-preprint] eq. 7; [Xiangqi-thesis] table 7.1",
        spec=True,
    )
    q_thresh_base: float = _setting(
        1965.0,
        "visits after which 1/e of the way from q_thresh_init to q_thresh_max is left",
        bounds=(1, 1_000_000_000),
        unit="visits",
        source="[CrazyAra-preprint] eq. 7; [Xiangqi-thesis] table 7.1",
        spec=True,
        option="Q_Thresh_Base",
    )
    pv_values: Literal["off", "on"] = _setting(
        "off",
        "reduce a move's Q to the value pv_depth plies down its principal variation, if that is "
        "lower",
        source="[CrazyAra-preprint] eq. 6",
        spec=True,
        option="PV_Values",
        option_words={"true": "on", "false": "off"},
    )
    pv_depth: int = _setting(
        5,
        "plies down the principal variation for pv_values; the root's move is the first",
        bounds=(1, 99),
        unit="plies",
        source="[CrazyAra-preprint] section 9.2.2",
        spec=True,
        option="PV_Depth",
    )
    temperature: float = _setting(
        1.7,
        "temperature τ: the first temperature_moves moves are sampled with probability N^(1/τ)",
        bounds=(0, 100),
        source="[CrazyAra-preprint] eq. 4, section 11.1: 0.07; [Xiangqi-thesis] table 7.1: 1.7",
    )
    temperature_decay: float = _setting(
        0.92,
        "factor of τ after each of the player's own moves",
        bounds=(0, 1),
        source="[Xiangqi-thesis] table 7.1",
    )
    temperature_moves: int = _setting(
        0,
        "number of own moves that are sampled; later, or if 0, the best move is played",
        bounds=(0, 1000),
        unit="moves",
        source="[Xiangqi-thesis] table 7.1: 0; [CrazyAra-preprint] section 11.1: 4",
    )
    quantile_clipping: float = _setting(
        0.25,
        "the least likely moves that together have less than this probability are not sampled",
        bounds=(0, 1),
        unit="probability",
        source="[Xiangqi-thesis] table 7.1",
    )
    use_raw_network: bool = _setting(
        False,
        "play the best move of the policy without a search",
        source="[Xiangqi-thesis] table 7.1",
    )

    # --- reproducibility -----------------------------------------------------------------------
    seed: int = _setting(0, "seed of noise and of sampled moves", bounds=(0, 2**63 - 1))
    deterministic: bool = _setting(
        False, "the same seed and batch size give the same tree, independent of timing"
    )


def setting(name: str) -> Setting:
    """The setting of that name. Raises UnknownNameError."""
    if name not in SEARCH_SETTINGS:
        raise UnknownNameError("search setting", name, SEARCH_SETTINGS)
    return SEARCH_SETTINGS[name]


def _read_class() -> dict[str, Setting]:
    hints = get_type_hints(SearchSettings)
    found = {}
    for each in dataclasses.fields(SearchSettings):
        kind, choices = _kind(hints[each.name])
        title = "_".join(word.capitalize() for word in each.name.split("_"))
        option = f"Centi_{title}" if kind == "float" else title
        known = {"option": option, **each.metadata}
        found[each.name] = Setting(
            name=each.name, kind=kind, choices=choices, default=each.default, **known
        )
    return found


def _kind(hint: Any) -> tuple[Kind, tuple[str, ...]]:
    """Kind and choices of a field's type."""
    if hint in (bool, int, float):
        return hint.__name__, ()
    if hint is str:
        return "name", ()
    parts = get_args(hint)
    if float in parts:
        return "float or choice", next(get_args(part) for part in parts if part is not float)
    return "choice", parts


SEARCH_SETTINGS: Mapping[str, Setting] = _read_class()
"""Every setting by name, in the order of `SearchSettings`."""
