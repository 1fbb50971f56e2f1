"""Every option of the engine: its name, what it takes, what it does, and where it goes.

The table is written out, not derived from `SearchParams`, because it is printed before anything
heavy may be imported; a test holds the two together. Names are those that users of CrazyAra and
readers of the thesis (table 7.1) know where they are the same thing. `Centi_` names are hundredths.

What a client never sets stays at the default of the variant's spec, which may differ from the one
declared: `OptionSet.search_overrides` has only what was set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from variant_ai.specs.errors import SettingError, closest

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
    # --- the net -------------------------------------------------------------------------------
    Option("Model", "string", about="ONNX file of the net, or a folder with one; empty: the one "
           "that comes with the variant", also=("model directory", "weightsfile", "evalfile")),
    Option("Evaluator", "string", "auto", about="What runs the net: auto, onnx, openvino, torch; "
           "uniform and random play without one; check:A,B compares two"),
    _combo("Context", "cpu", ("cpu", "gpu"), "Device of the net"),
    _combo("Precision", "auto", ("auto", "float32", "float16", "bfloat16", "int8"),
           "Number format of the net; auto: the model's own"),
    _spin("Batch_Size", 16, 1, 4096, "Positions the net sees at once", field="batch_size"),
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
    _check("Use_NPS_Time_Manager", False, _NO_EFFECT, effect=False),
    # --- selection -----------------------------------------------------------------------------
    _centi("CPuct_Init", "cpuct_init", AUTO, AUTO, 10_000, "Exploration constant" + AS_SPEC),
    _spin("CPuct_Base", 19_652, 1, 1_000_000_000, "Visits in which the exploration constant grows "
          "by ln 2", field="cpuct_base"),
    _combo("U_Divisor", "auto", ("auto", "constant", "adaptive"), "Divisor of the exploration "
           "term: constant at Centi_U_Init_Divisor, or falling from there to Centi_U_Min_Divisor; "
           "auto: as the variant has it"),
    _centi("U_Init_Divisor", "u_init", 100, 1, 100, "Divisor of the exploration term in a young "
           "tree, or always"),
    _centi("U_Min_Divisor", "u_min", 25, 1, 100, "Where the adaptive divisor ends"),
    _spin("U_Base", 1965, 1, 1_000_000_000, "Visits after which 1/e of the way from the first "
          "divisor to the last is left", field="u_base"),
    _combo("Q_Unvisited", "auto", ("auto", "loss", "draw", "parent"), "Value of a move never "
           "visited; auto: as the variant has it", field="q_unvisited"),
    _centi("Q_Unvisited_Reduction", "q_unvisited_reduction", 20, 0, 200, "What `parent` takes off "
           "the node's value"),
    _centi("Node_Temperature", "node_temperature", AUTO, AUTO, 2000, "Softmax temperature of the "
           "policy at every node, from 5 on" + AS_SPEC),
    _combo("Virtual_Style", "auto", ("auto", "loss", "visit"), "What a visit under way counts "
           "as; auto: as the variant has it", field="virtual_style"),
    _centi("Virtual_Loss", "virtual_loss", AUTO, AUTO, 10_000, "How many visits one under way "
           "counts as" + AS_SPEC),
    _centi("Dirichlet_Epsilon", "noise_epsilon", 0, 0, 100, "Share of noise in the root's policy"),
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
    _centi("Q_Thresh_Init", "q_thresh_init", 50, 0, 100, "Share of the greatest visits below which "
           "a move's value counts for nothing, in a young tree"),
    _centi("Q_Thresh_Max", "q_thresh_max", 90, 0, 100, "The same in an old tree"),
    _spin("Q_Thresh_Base", 1965, 1, 1_000_000_000, "Visits after which 1/e of the way between "
          "them is left", field="q_thresh_base"),
    _combo("PV_Values", "auto", ("auto", "true", "false"), "Lower a move's value to that at the "
           "end of its line; auto: as the variant has it", field="pv_values",
           words={"true": "on", "false": "off"}),
    _spin("PV_Depth", 5, 1, 99, "Plies of that line", field="pv_depth"),
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

PRECISIONS = {
    "auto": None,
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
}
"""The option's words, which are CrazyAra's, and those of the evaluators."""
RANDOMNESS = {"none": 0.0, "tiny": 0.2, "small": 0.4, "medium": 0.6, "large": 0.8, "huge": 1.0}
VARIANT = "UCI_Variant"
VARIANT_ABOUT = (
    "Variant played. Stands last: some bridges lose what follows a long list. Names of "
    "Fairy-Stockfish are understood too"
)


def variant_option(names: Iterable[str], default: str) -> Option:
    """UCI_Variant with the variants of this installation."""
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


class Strength(NamedTuple):
    """What limited strength comes to."""

    nodes: int
    temperature: float


def strength_of(elo: int) -> Strength:
    """Nodes double every 150 points from 1 at 800; the temperature falls from 1.2 to 0 at 2000."""
    return Strength(round(2 ** ((elo - 800) / 150)), max(0.0, (2000 - elo) / 1000))


class OptionSet:
    """What a client has set. Not for two threads at once."""

    def __init__(self, variants: Sequence[str], variant: str) -> None:
        """variants: names offered; variant: the one played until another is chosen."""
        offered = (*OPTIONS, variant_option(variants, variant))
        self.uci: tuple[Option, ...] = offered
        """As declared to UCI clients."""
        self.ucci: tuple[Option, ...] = UCCI_OPTIONS
        """Those of UCCI alone, as declared."""
        self._options = {canonical(option.name): option for option in (*UCCI_OPTIONS, *offered)}
        self._names = {canonical(name): o for o in offered for name in o.also}
        self._given: dict[str, str | int | bool] = {}

    def find(self, name: str) -> Option:
        """Raises SettingError where there is none."""
        wanted = canonical(name)
        option = self._options.get(wanted) or self._names.get(wanted)
        if option is None:
            raise SettingError(self._unknown(name))
        return option

    def _unknown(self, name: str) -> str:
        guess = closest(name[:60], [option.name for option in self.uci])
        hint = f"did you mean {guess!r}?" if guess else "the handshake lists those there are"
        return f"unknown option {name if len(name) < 60 else f'{name[:60]}...'!r}; {hint}"

    def set(self, name: str, text: str | None) -> Option:
        """Take a client's value. Raises SettingError."""
        option = self.find(name)
        if option.kind != "button":
            self._given[option.name] = option.parse(text)
        return option

    def preset(self, name: str, text: str) -> None:
        """Set a value that the handshake declares as the default: a client that sends back what it
        was told then leaves it as it is. Raises SettingError."""
        option = self.find(name)
        value = option.parse(text)
        there = replace(option, default=value)
        self._options[canonical(option.name)] = there
        self.uci = tuple(there if o is option else o for o in self.uci)
        self.ucci = tuple(there if o is option else o for o in self.ucci)
        if option.kind != "button":
            self._given[option.name] = value

    def put(self, name: str, value: str | int | bool) -> None:
        """Set a value from within."""
        self._given[self.find(name).name] = value

    def is_given(self, name: str) -> bool:
        return name in self._given

    def value(self, name: str) -> Any:
        """Set, or default."""
        option = self._options[canonical(name)]
        return self._given.get(option.name, option.default)

    def text(self, name: str) -> str:
        return str(self.value(name))

    def number(self, name: str) -> int:
        return int(self.value(name))

    def is_on(self, name: str) -> bool:
        return bool(self.value(name))

    # --- what they come to ---------------------------------------------------------------------

    def search_overrides(self, spec_divisor: float | str = 1.0) -> dict[str, Any]:
        """Fields of SearchParams that stand above the spec's; `spec_divisor` is the spec's
        u_divisor, which the option for its first value has to know."""
        found: dict[str, Any] = {}
        for option in OPTIONS:
            if option.field and option.name in self._given:
                value = self._given[option.name]
                if value in ("auto", AUTO) and option.default in ("auto", AUTO):
                    continue
                if option.words is not None:
                    found[option.field] = option.words[str(value).lower()]
                    continue
                elif option.kind == "spin" and option.unit != 1.0:
                    value = round(int(value) * option.unit, 6)  # type: ignore[assignment]
                found[option.field] = value
        self._add_divisor(found, spec_divisor)
        if self.text("Search_Type") == "mcts":
            found["transpositions"] = False
        if self.number("hashsize") and self.is_given("hashsize"):
            found["memory_mb"] = self.number("hashsize")
        self._add_variety(found)
        return found

    def _add_divisor(self, found: dict[str, Any], spec_divisor: float | str) -> None:
        chosen = self.text("U_Divisor")
        if chosen == "auto":
            # a first value of 1 is the default, which a client may only have repeated
            if spec_divisor != "adaptive" and found.get("u_init", 1.0) != 1.0:
                found["u_divisor"] = found["u_init"]
        else:
            constant = found.get("u_init", 1.0)
            found["u_divisor"] = "adaptive" if chosen == "adaptive" else constant

    def _add_variety(self, found: dict[str, Any]) -> None:
        """Temperature from strength or UCCI's randomness; none of it in analysis."""
        if self.is_on("UCI_AnalyseMode"):
            found.update(temperature_moves=0, noise_epsilon=0.0)
            return
        tau = RANDOMNESS[self.text("randomness")]
        strength = self.strength
        if strength is not None:
            tau = max(tau, strength.temperature)
        if tau > 0:
            found.update(temperature=tau, temperature_decay=1.0, temperature_moves=1000)

    @property
    def strength(self) -> Strength | None:
        """None at full strength."""
        if self.is_on("UCI_AnalyseMode"):
            return None
        elos = []
        if self.is_on("UCI_LimitStrength"):
            elos.append(self.number("UCI_Elo"))
        if self.number("Skill Level") < 20:
            elos.append(800 + 90 * self.number("Skill Level"))
        return strength_of(min(elos)) if elos else None

    @property
    def node_limit(self) -> int | None:
        """The least of what limits the visits of a search, None without."""
        limits = [self.number("Nodes"), self.number("Simulations")]
        if (strength := self.strength) is not None:
            limits.append(strength.nodes)
        return min((n for n in limits if n > 0), default=None)

    @property
    def evaluator_settings(self) -> dict[str, Any]:
        """What a net has to be loaded anew for."""
        return {
            "model": self.text("Model"),
            "evaluator": self.text("Evaluator") or "auto",
            "device": self._device(),
            "precision": PRECISIONS[self.text("Precision")],
            "threads": self.number("Threads") or None,
            "batch": self.number("Batch_Size"),
        }

    def _device(self) -> str:
        """As evaluators name devices: `cpu`, `cuda`, `tensorrt`, `cuda:0,cuda:1`."""
        if self.text("Context") == "cpu":
            return "cpu"
        kind = "tensorrt" if self.is_on("Use_TensorRT") else "cuda"
        first, last = self.number("First_Device_ID"), self.number("Last_Device_ID")
        if first == 0 and last <= 0:
            return kind
        return ",".join(f"{kind}:{n}" for n in range(first, max(first, last) + 1))

    def for_ucci(self) -> list[Option]:
        """Options shown to UCCI clients: UCCI's own first, then the engine's."""
        own = {option.name for option in self.ucci}
        shown = [o for o in self.uci if o.ucci and o.name.lower() not in own]
        return [*self.ucci, *shown]
