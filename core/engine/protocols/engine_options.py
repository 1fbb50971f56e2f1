"""Every option of the engine: its name, what it takes, what it does, and where it goes.

The table is written out, not derived from `SearchParams`, because it is printed before anything
heavy may be imported; a test holds the two together. Names are those that users of CrazyAra and
readers of the thesis (table 7.1) know where they are the same thing. `Centi_` names are hundredths.

What a client has set, and what it comes to, is kept by `option_set.OptionSet`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from variant_ai.core.errors import SettingError

Kind = Literal["check", "spin", "combo", "string", "button"]
EMPTY = "<empty>"
"""How a protocol writes a string without a character."""


@dataclass(frozen=True)
class Option:
    """One option as it is declared and documented."""

    name: str
    kind: Kind
    default: str | int | bool = ""
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    about: str = ""
    field: str = ""
    """Of SearchParams; empty where it is something else."""
    unit: float = 1.0
    """What one of the option is worth in the field."""
    words: Mapping[str, object] | None = None
    """Combo values that the field calls otherwise."""
    ucci: bool = True
    """Whether UCCI clients are told of it; they may set all."""
    also: tuple[str, ...] = ()
    """Further names that are understood."""
    effect: bool = True
    """False: accepted because clients set it, and nothing follows."""

    @property
    def accepted(self) -> str:
        """In words."""
        if self.kind == "check":
            return "true or false"
        if self.kind == "spin":
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "combo":
            return "one of " + ", ".join(self.choices)
        return "any text"

    def parse(self, text: str | None) -> str | int | bool:
        """The value a client's text means. Raises SettingError."""
        given = (text or "").strip()
        if self.kind == "button":
            return True
        if self.kind == "string":
            return "" if given == EMPTY else given
        if self.kind == "check" and given.lower() in _TRUE + _FALSE:
            return given.lower() in _TRUE
        if (
            self.kind == "spin"
            and re.fullmatch(r"[+-]?[0-9]{1,18}", given)
            and self.low <= int(given) <= self.high
        ):
            return int(given)
        if self.kind == "combo":
            for choice in self.choices:
                if choice.lower() == given.lower():
                    return choice
        shown = repr(given if len(given) <= 60 else f"{given[:60]}...")
        raise SettingError(f"option {self.name}: {shown} where it takes {self.accepted}")


_TRUE = ("true", "on", "1", "yes")
_FALSE = ("false", "off", "0", "no")


def is_true(text: str) -> bool:
    """Whether the value of a check means yes."""
    return text.strip().lower() in _TRUE


def canonical(name: str) -> str:
    """The form in which names are compared: lower case, blanks for underscores."""
    return " ".join(name.lower().replace("_", " ").split())


def _spin(name: str, default: int, low: int, high: int, about: str, **more: Any) -> Option:
    return Option(name, "spin", default, low, high, about=about, **more)


def _check(name: str, default: bool, about: str, **more: Any) -> Option:
    return Option(name, "check", default, about=about, **more)


def _combo(name: str, default: str, choices: Sequence[str], about: str, **more: Any) -> Option:
    return Option(name, "combo", default, choices=tuple(choices), about=about, **more)


def _centi(name: str, field: str, default: int, low: int, high: int, about: str) -> Option:
    return _spin(f"Centi_{name}", default, low, high, about, field=field, unit=0.01)


MOST = 2_000_000_000
"""Greatest bound of a number: bridges read bounds as 32-bit integers, and send back what is left of
a default that lies between them."""
AUTO = -1
"""Default of numbers that specs set. Many clients send back every default they were told, and a
number would then stand above the spec's."""
AS_SPEC = "; -1: as the variant has it"
_NO_EFFECT = "Accepted, without effect here"

OPTIONS: tuple[Option, ...] = (
    # --- what every client sets ----------------------------------------------------------------
    _spin("Threads", 0, 0, 1024, "Threads of the evaluator; 0 leaves the choice to it. The tree "
          "has one thread", field="threads"),
    _spin("Hash", 512, 1, 1 << 20, "Memory of the search tree in MB", field="memory_mb",
          ucci=False, also=("hashsize",)),
    Option("Clear Hash", "button", about="Forget the search tree", ucci=False),
    _check("Ponder", False, "Tells that the client will send `go ponder`; the engine thinks on the "
           "opponent's time only when told to", ucci=False),
    _spin("MultiPV", 1, 1, 256, "Lines shown, best first"),
    _spin("Move Overhead", 20, 0, 10_000, "Milliseconds lost between the engine's move and the "
          "clock that stops", also=("moveoverhead",)),
    _check("UCI_ShowWDL", False, "Show the chances of win, draw and loss, per mille", ucci=False),
    _check("UCI_AnalyseMode", False, "Play the best move whatever the settings for variety "
           "say, and at full strength", ucci=False),
    _check("UCI_LimitStrength", False, "Play as strong as UCI_Elo says, approximately: with fewer "
           "nodes and a temperature. The scale was not measured against people", ucci=False),
    _spin("UCI_Elo", 1600, 800, 2600, "Strength with UCI_LimitStrength, in steps of a scale that "
          "only resembles Elo", ucci=False),
    _spin("Skill Level", 20, 0, 20, "Below 20 the same as UCI_LimitStrength with UCI_Elo "
          "800 + 90 a level"),
    _check("UCI_Chess960", False, "Castling is read in either form at any time; without effect",
           ucci=False, effect=False),
    Option("UCI_Opponent", "string", about=_NO_EFFECT, ucci=False, effect=False),
    Option("SyzygyPath", "string", about=_NO_EFFECT, ucci=False, effect=False),
    _spin("SyzygyProbeDepth", 1, 1, 100, _NO_EFFECT, ucci=False, effect=False),
    _spin("SyzygyProbeLimit", 7, 0, 7, _NO_EFFECT, ucci=False, effect=False),
    _check("Syzygy50MoveRule", True, _NO_EFFECT, ucci=False, effect=False),
    # --- the net -------------------------------------------------------------------------------
    Option("Model", "string", about="ONNX file of the net, or a folder with one; empty: the one "
           "that comes with the variant", also=("model directory", "weightsfile", "evalfile")),
    Option("Evaluator", "string", "auto", about="What runs the net: auto, onnx, openvino, torch; "
           "uniform and random play without one; check:A,B compares two"),
    _combo("Context", "cpu", ("cpu", "gpu"), "Device of the net"),
    _combo("Precision", "auto", ("auto", "float32", "float16", "bfloat16", "int8"),
           "Number format of the net; auto: bfloat16 if the processor has it, "
           "else that of the file"),
    _spin("Batch_Size", 16, 1, 4096, "Positions the net sees at once", field="batch_size"),
    _spin("Batch_Growth", 8, 0, 1000, "A batch holds at most this part of the root's visits: 8, an "
          "eighth; 0: batches are whole from the start", field="batch_growth"),
    _spin("First_Device_ID", 0, 0, 64, "First GPU to use with Context gpu"),
    _spin("Last_Device_ID", 0, 0, 64, "Last GPU to use; with several, each batch is shared among "
          "them"),
    _check("Use_TensorRT", False, "Run the net by TensorRT with Context gpu"),
    _check("Use_Raw_Network", False, "Play the policy's first move without a search",
           field="use_raw_network"),
    # --- limits and clock ----------------------------------------------------------------------
    _spin("Nodes", 0, 0, MOST, "Visits of every search that is not infinite; 0: no limit"),
    _spin("Simulations", 0, 0, MOST, "The same as Nodes; the smaller one counts"),
    _spin("Fixed_Movetime", 0, 0, MOST, "Milliseconds for every move whatever the clock says; "
          "0: by the clock"),
    _spin("Max_Search_Depth", 99, 1, 1000, "Plies of a path from the root", field="max_depth"),
    _check("Allow_Early_Stopping", True, "Answer once the best move can no longer be overtaken"),
    _spin("Centi_Random_Move_Factor", 0, 0, 100, "Vary the time for a move by up to so many "
          "hundredths either way; 10 for games with people"),
    _spin("Slow Mover", 100, 10, 1000, "Time for a move by the clock, in per cent of the usual",
          ucci=False),
    _spin("nodestime", 0, 0, 10_000, "Spend the time of a move as nodes, so many for each "
          "millisecond; 0: by the clock", ucci=False),
    _check("Use_NPS_Time_Manager", False, _NO_EFFECT, effect=False),
    # --- selection -----------------------------------------------------------------------------
    Option("Search_Settings", "string", "default", about="Named set of search settings of the "
           "variant, which the options below override: default, or a name of the spec such as "
           "paper"),
    _centi("CPuct_Init", "cpuct_init", AUTO, AUTO, 10_000, "Exploration constant" + AS_SPEC),
    _spin("CPuct_Base", AUTO, AUTO, 1_000_000_000, "Visits in which the exploration constant "
          "grows by ln 2, from 1 on" + AS_SPEC, field="cpuct_base"),
    _combo("U_Divisor", "auto", ("auto", "constant", "adaptive"), "Divisor of the exploration "
           "term: constant at Centi_U_Init_Divisor, or falling from there to Centi_U_Min_Divisor; "
           "auto: as the variant has it"),
    _centi("U_Init_Divisor", "u_init", AUTO, AUTO, 100, "Divisor of the exploration term in a "
           "young tree, or always, from 1 on" + AS_SPEC),
    _centi("U_Min_Divisor", "u_min", AUTO, AUTO, 100, "Where the adaptive divisor ends, from 1 "
           "on" + AS_SPEC),
    _spin("U_Base", AUTO, AUTO, 1_000_000_000, "Visits after which 1/e of the way from the first "
          "divisor to the last is left, from 1 on" + AS_SPEC, field="u_base"),
    _combo("Q_Unvisited", "auto", ("auto", "loss", "draw", "parent"), "Value of a move never "
           "visited; auto: as the variant has it", field="q_unvisited"),
    _centi("Q_Unvisited_Reduction", "q_unvisited_reduction", AUTO, AUTO, 200, "What `parent` takes "
           "off the node's value" + AS_SPEC),
    _centi("Node_Temperature", "node_temperature", AUTO, AUTO, 2000, "Softmax temperature of the "
           "policy at every node, from 5 on" + AS_SPEC),
    _combo("Virtual_Style", "auto", ("auto", "loss", "visit"), "What a visit under way counts "
           "as; auto: as the variant has it", field="virtual_style"),
    _centi("Virtual_Loss", "virtual_loss", AUTO, AUTO, 10_000, "How many visits one under way "
           "counts as" + AS_SPEC),
    _centi("Dirichlet_Epsilon", "noise_epsilon", AUTO, AUTO, 100, "Share of noise in the root's "
           "policy" + AS_SPEC),
    _centi("Dirichlet_Alpha", "noise_alpha", AUTO, AUTO, 10_000, "Parameter of the Dirichlet "
           "noise, from 1 on" + AS_SPEC),
    _combo("Noise_Style", "dirichlet", ("dirichlet", "uniform"), "Kind of noise",
           field="noise_style"),
    _combo("Enhance_Checks", "auto", ("auto", "true", "false"), "Raise the policy of checking "
           "moves; auto: as the variant has it", field="enhance_checks",
           words={"true": True, "false": False}),
    _centi("Enhance_Threshold", "enhance_threshold", AUTO, AUTO, 100, "Checks with a policy from "
           "here on are left alone" + AS_SPEC),
    _centi("Enhance_Factor", "enhance_factor", AUTO, AUTO, 1000, "Share of the greatest policy "
           "that is added to a check's" + AS_SPEC),
    _combo("Mate_Stop", "auto", ("auto", "true", "false"), "No exploration beside a move that "
           "wins at once; auto: as the variant has it", field="mate_stop",
           words={"true": True, "false": False}),
    _check("Look_For_Mates", True, "Try the checks of a position for mate when it has been "
           "visited four times",
           field="look_for_mates"),
    _check("MCTS_Solver", True, "Prove wins, losses and draws", field="solver"),
    # --- graph ---------------------------------------------------------------------------------
    _combo("Search_Type", "mcgs", ("mcgs", "mcts"), "Graph search, or a plain tree"),
    _check("Use_Transposition_Table", True, "Equal positions share a node; false is a plain tree "
           "too", field="transpositions"),
    _combo("Backup", "catch-up", ("catch-up", "q-epsilon", "none"), "What an edge does whose child "
           "was visited through another one", field="backup"),
    _spin("Milli_Q_Epsilon", 10, 0, 2000, "Difference from which `q-epsilon` corrects, in "
          "thousandths", field="q_epsilon", unit=0.001),
    _check("Reuse_Tree", True, "Keep what is below the new root after a move", field="reuse_tree"),
    # --- choice of the move --------------------------------------------------------------------
    _centi("Q_Value_Weight", "q_weight", AUTO, AUTO, 100, "Weight of values beside visits in the "
           "final choice" + AS_SPEC),
    _centi("Q_Thresh_Init", "q_thresh_init", AUTO, AUTO, 100, "Share of the greatest visits below "
           "which a move's value counts for nothing, in a young tree" + AS_SPEC),
    _centi("Q_Thresh_Max", "q_thresh_max", AUTO, AUTO, 100, "The same in an old tree" + AS_SPEC),
    _spin("Q_Thresh_Base", AUTO, AUTO, 1_000_000_000, "Visits after which 1/e of the way between "
          "them is left, from 1 on" + AS_SPEC, field="q_thresh_base"),
    _combo("PV_Values", "auto", ("auto", "true", "false"), "Lower a move's value to that at the "
           "end of its line; auto: as the variant has it", field="pv_values",
           words={"true": "on", "false": "off"}),
    _spin("PV_Depth", AUTO, AUTO, 99, "Plies of that line, from 1 on" + AS_SPEC, field="pv_depth"),
    _centi("Temperature", "temperature", 170, 0, 10_000, "Moves are drawn by visits^(1/temperature)"
           " in the first Temperature_Moves moves"),
    _centi("Temperature_Decay", "temperature_decay", 92, 0, 100, "Factor of the temperature for "
           "each own move"),
    _spin("Temperature_Moves", 0, 0, 1000, "Own moves that are drawn; 0: the best one is played",
          field="temperature_moves"),
    _centi("Quantile_Clipping", "quantile_clipping", 25, 0, 100, "The unlikeliest moves with this "
           "much probability together are not drawn"),
    _spin("Seed", 0, 0, MOST, "Of noise and drawn moves", field="seed"),
    _check("Deterministic", False, "The same seed gives the same tree, whatever the time",
           field="deterministic"),
    # --- known elsewhere -----------------------------------------------------------------------
    _check("Random_Playout", False, _NO_EFFECT, effect=False),
    _check("Use_Advantage", False, _NO_EFFECT, effect=False),
    _spin("Contempt", 0, -100, 100, _NO_EFFECT, effect=False),
    _combo("Analysis Contempt", "Both", ("Off", "White", "Black", "Both"), _NO_EFFECT,
           effect=False, ucci=False),
    _combo("Protocol", "uci", ("uci", "ucci", "cyclone", "xboard"), "Accepted, without effect: the "
           "first word of the client decides", effect=False, ucci=False),
)  # fmt: skip

UCCI_OPTIONS: tuple[Option, ...] = (
    _check("usemillisec", False, "Times of `go` are milliseconds, not seconds"),
    _check("batch", False, "A `go` during a search waits for its end instead of ending it"),
    _check("debug", False, "Tell more while searching"),
    _check("ponder", False, "As Ponder of UCI"),
    _check("usebook", False, _NO_EFFECT, effect=False),
    Option("bookfiles", "string", about=_NO_EFFECT, effect=False),
    Option("egtbpaths", "string", about=_NO_EFFECT, effect=False),
    Option("evalapi", "string", about=_NO_EFFECT, effect=False),
    _spin("hashsize", 512, 0, 1 << 20, "Memory of the search tree in MB; 0: the default"),
    _combo("idle", "none", ("none", "small", "medium", "large"), _NO_EFFECT, effect=False),
    _check("promotion", False, _NO_EFFECT, effect=False),
    _combo("pruning", "large", ("none", "small", "medium", "large"), _NO_EFFECT, effect=False),
    _combo("knowledge", "large", ("none", "small", "medium", "large"), _NO_EFFECT, effect=False),
    _combo("randomness", "none", ("none", "tiny", "small", "medium", "large", "huge"),
           "Temperature of the choice of the move: 0 to 1"),
    _combo("style", "normal", ("solid", "normal", "risky"), _NO_EFFECT, effect=False),
    _spin("resign", 3, 0, 49, "Resign when the chances were below so many per cent in three own "
          "moves; 0: never"),
    Option("newgame", "button", about="What comes belongs to another game"),
)  # fmt: skip

RANDOMNESS = {"none": 0.0, "tiny": 0.2, "small": 0.4, "medium": 0.6, "large": 0.8, "huge": 1.0}
VARIANT = "UCI_Variant"
VARIANT_ABOUT = (
    "Variant played. Stands last: some bridges lose what follows a long list. Names of "
    "Fairy-Stockfish are understood too"
)


def variant_option(names: Iterable[str], default: str) -> Option:
    """UCI_Variant with the variants of this installation, and the names that clients have for them:
    some send only what is listed."""
    return _combo(VARIANT, default, tuple(names), VARIANT_ABOUT, ucci=False)


def declare(option: Option) -> str:
    """The `option` line of UCI."""
    return f"option name {option.name} type {_declared(option)}"


def declare_ucci(option: Option) -> str:
    """The `option` line of UCCI: one lower-case word."""
    return f"option {option.name.lower().replace(' ', '_')} type {_declared(option)}"


def _declared(option: Option) -> str:
    if option.kind == "button":
        return "button"
    if option.kind == "check":
        return f"check default {str(option.default).lower()}"
    if option.kind == "spin":
        return f"spin default {option.default} min {option.low} max {option.high}"
    if option.kind == "combo":
        return f"combo default {option.default} " + " ".join(f"var {c}" for c in option.choices)
    return f"string default {option.default or EMPTY}"


def documented(option: Option) -> str:
    """The option's row in docs/engine.md."""
    if option.kind == "button":
        takes, default = "", ""
    elif option.kind == "check":
        takes, default = "true, false", str(option.default).lower()
    elif option.kind == "spin":
        takes, default = f"{option.low} – {option.high}", str(option.default)
    elif option.kind == "combo" and option.name != VARIANT:
        takes, default = ", ".join(option.choices), str(option.default)
    else:
        takes, default = "", "" if option.name == VARIANT else str(option.default)
    return f"| `{option.name}` | {option.kind} | {takes} | {default} | {option.about} |"
