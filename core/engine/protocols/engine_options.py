"""Options of the engine: names, kinds, ranges, defaults, meaning.

Options of the search follow from `core/spec/search_settings.py`, the others are listed here. All of
it is printed before `uciok`, so only the standard library is imported. Names are CrazyAra's and
those of [Xiangqi-thesis] table 7.1 if they have the same option. `Centi_` and `Milli_` options count
hundredths and thousandths. `chosen_options.OptionSet` keeps the values that a client sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from variant_ai.core.errors import SettingError
from variant_ai.core.factories import DIALECTS
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS, setting

Kind = Literal["check", "spin", "combo", "string", "button"]
EMPTY = "<empty>"
"""The empty string in the protocols."""
MAX_NUMBER = 2_000_000_000
"""Largest bound of a number. Some bridges read bounds as 32-bit integers, and clients send back the
defaults that such a bridge has cut off."""
LEAST_ELO, MOST_ELO = 800, 2600
"""Range of limited strengths."""
AUTO = -1
"""Default of numbers that a spec may set, and their least value: many clients send back every
default, and any other number would then override the spec."""


@dataclass(frozen=True)
class Option:
    """One option, as it is declared to clients and documented."""

    name: str
    kind: Kind
    default: str | int | bool = ""
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    about: str = ""
    field: str = ""
    """Name of the search setting; empty for other options."""
    scale: float = 1.0
    """Value of 1 of the option in the setting: 0.01 for hundredths."""
    words: Mapping[str, object] | None = None
    """Values of the setting that the choices mean, if the choices differ from them."""
    ucci: bool = True
    """True if UCCI clients are offered it; they may set every option."""
    also: tuple[str, ...] = ()
    """Other accepted names."""

    @property
    def accepted(self) -> str:
        """Accepted values as text."""
        if self.kind == "check":
            return "true or false"
        if self.kind == "spin":
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "combo":
            return "one of " + ", ".join(self.choices)
        return "any text"

    def parse(self, text: str | None) -> str | int | bool:
        """Return the value that a client's text stands for. Raises SettingError."""
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
        raise SettingError(f"option {self.name}: {shown} given, expected {self.accepted}")

    def setting_value(self, value: str | int | bool) -> Any:
        """Return the value of the search setting; None if it is left to the spec."""
        if value in ("auto", AUTO) and self.default in ("auto", AUTO):
            return None
        if self.words is not None:
            return self.words[str(value).lower()]
        return value if self.scale == 1.0 else round(int(value) * self.scale, 6)


_TRUE = ("true", "on", "1", "yes")
_FALSE = ("false", "off", "0", "no")


def is_true(text: str) -> bool:
    """Return True if the text of a check option means yes."""
    return text.strip().lower() in _TRUE


def canonical(name: str) -> str:
    """Return the form in which names are compared: lower case, spaces instead of underscores."""
    return " ".join(name.lower().replace("_", " ").split())


def _spin(name: str, default: int, low: int, high: int, about: str, **more: Any) -> Option:
    return Option(name, "spin", default, low, high, about=about, **more)


def _check(name: str, default: bool, about: str, **more: Any) -> Option:
    return Option(name, "check", default, about=about, **more)


def _combo(name: str, default: str, choices: Sequence[str], about: str, **more: Any) -> Option:
    return Option(name, "combo", default, choices=tuple(choices), about=about, **more)


def search_option(name: str) -> Option:
    """Return the option of a search setting.

    A setting that a spec may have gets `auto`, or -1, as default: the value of the variant.
    """
    row = setting(name)
    about = row.meaning[0].upper() + row.meaning[1:]
    given: dict[str, Any] = {"field": name, "words": row.option_words}
    if row.kind in ("bool", "choice"):
        words = {"true": True, "false": False} if row.kind == "bool" else row.option_words
        choices = tuple(words or row.choices)
        if row.spec:
            about += "; auto: the value of the variant"
            given["words"] = words
            return _combo(row.option, "auto", ("auto", *choices), about, **given)
        if row.kind == "bool":
            return _check(row.option, row.default, about, **given)
        return _combo(row.option, row.default, choices, about, **given)
    if row.kind == "name":
        default = "auto" if row.spec else row.default
        about += "; auto: the value of the variant" if row.spec else ""
        return Option(row.option, "string", default, about=about, **given)
    scale = {"Centi": 0.01, "Milli": 0.001}.get(row.option.split("_")[0], 1.0)
    low, high = round(row.low / scale), min(round(row.high / scale), MAX_NUMBER)
    default = round(row.default / scale)
    if row.spec:
        about += f"; from {low} on" if low > 0 else ""
        about += f"; {AUTO}: the value of the variant"
        low = default = AUTO
    return _spin(row.option, default, low, high, about, scale=scale, **given)


NO_EFFECT = "Accepted, without effect"

_FIRST = (
    # --- set by every client -------------------------------------------------------------------
    _spin("Threads", 0, 0, 1024, "Threads of the evaluator, at most one for each processor; "
          "0: the evaluator chooses. The tree itself uses one thread"),
    replace(search_option("memory_mb"), ucci=False),
    Option("Clear Hash", "button", about="Forget the search tree", ucci=False),
    _check("Ponder", False, "Informs that the client will send `go ponder`; the engine ponders only "
           "then", ucci=False),
    _spin("MultiPV", 1, 1, 256, "Number of variations reported, the best first",
          ucci=False),
    _spin("Move Overhead", 20, 0, 10_000, "Milliseconds lost between the engine's answer and the "
          "stop of its clock", also=("moveoverhead",)),
    _check("UCI_ShowWDL", False, "Report the probabilities of win, draw and loss, per mille",
           ucci=False),
    _check("UCI_AnalyseMode", False, "Play the best move at full strength, without any random "
           "choice", ucci=False),
    _check("UCI_LimitStrength", False, "Play with about the strength UCI_Elo, by fewer nodes and a "
           "temperature. The scale was not measured against people", ucci=False),
    _spin("UCI_Elo", 1600, LEAST_ELO, MOST_ELO, "Strength with UCI_LimitStrength, on a scale that only "
          "resembles Elo", ucci=False),
    _spin("Skill Level", 20, 0, 20, "Below 20 the same as UCI_LimitStrength with UCI_Elo "
          "800 + 90 a level"),
    _check("UCI_Chess960", False, "Play the variant with shuffled start positions that belongs to "
           "the chosen one, with a net of its own: chess960 for chess. Castling is then written as the king that takes its "
           "rook, and read in both notations at any time", ucci=False),
    Option("UCI_Opponent", "string", about=NO_EFFECT, ucci=False),
    Option("SyzygyPath", "string", about=NO_EFFECT, ucci=False),
    _spin("SyzygyProbeDepth", 1, 1, 100, NO_EFFECT, ucci=False),
    _spin("SyzygyProbeLimit", 7, 0, 7, NO_EFFECT, ucci=False),
    _check("Syzygy50MoveRule", True, NO_EFFECT, ucci=False),
    # --- the net -------------------------------------------------------------------------------
    Option("Model", "string", about="ONNX file of the net, or a folder with one; empty: the net "
           "of the variant", also=("model directory", "weightsfile", "evalfile")),
    Option("Evaluator", "string", "auto", about="Program that runs the net: auto, onnx, openvino, "
           "torch; material, uniform and random play without a net; check:A,B compares two"),
    _combo("Context", "cpu", ("cpu", "gpu"), "Device of the net"),
    _combo("Precision", "auto", ("auto", "float32", "float16", "bfloat16", "int8"),
           "Number format of the net; auto: bfloat16 if the processor has it, else int8 if the net "
           "has such a file and it is much faster, else the format of the file"),
    search_option("batch_size"),
    search_option("batch_growth"),
    _spin("First_Device_ID", 0, 0, 64, "First GPU to use with Context gpu"),
    _spin("Last_Device_ID", 0, 0, 64, "Last GPU to use; if there are several, they share each "
          "batch"),
    _check("Use_TensorRT", False, "Run the net with TensorRT if Context is gpu"),
    search_option("use_raw_network"),
    # --- limits and clock ----------------------------------------------------------------------
    _spin("Nodes", 0, 0, MAX_NUMBER, "Visits of every search that is not infinite; 0: no limit"),
    _spin("Simulations", 0, 0, MAX_NUMBER, "The same as Nodes; the smaller one counts"),
    _spin("Fixed_Movetime", 0, 0, MAX_NUMBER, "Milliseconds for every move, independent of the "
          "clock; 0: by the clock"),
    search_option("max_depth"),
    _check("Allow_Early_Stopping", True, "Answer once no other move can overtake the best one"),
    _spin("Centi_Random_Move_Factor", 0, 0, 100, "Vary the time of a move at random, by up to this "
          "many hundredths; 10 for games with people"),
    _spin("Slow Mover", 100, 10, 1000, "Time of a move by the clock, in per cent of the usual "
          "time", ucci=False),
    _spin("nodestime", 0, 0, 10_000, "Count time in nodes, this many per millisecond; 0: by the "
          "clock", ucci=False),
    _check("Use_NPS_Time_Manager", False, NO_EFFECT),
    # --- search --------------------------------------------------------------------------------
    Option("Search_Settings", "string", "default", about="Set of search settings of the variant, "
           "which the options below override: default, or a name in its spec such as paper"),
    _combo("Search_Type", "mcgs", ("mcgs", "mcts"), "Graph search, or a plain tree"),
    _combo("U_Divisor", "auto", ("auto", "constant", "adaptive"), "Divisor of the exploration "
           "term: constant, Centi_U_Init_Divisor, or adaptive, falling from there to "
           "Centi_U_Min_Divisor; auto: the value of the variant"),
)  # fmt: skip

_BY_TWO_OPTIONS = "u_divisor"
"""Set by U_Divisor and Centi_U_Init_Divisor together, see `OptionSet.search_overrides`."""
_LISTED = {_BY_TWO_OPTIONS, *(option.field for option in _FIRST)}

OPTIONS: tuple[Option, ...] = (
    *_FIRST,
    *(search_option(name) for name in SEARCH_SETTINGS if name not in _LISTED),
    # --- of other engines ----------------------------------------------------------------------
    _check("Random_Playout", False, NO_EFFECT),
    _check("Use_Advantage", False, NO_EFFECT),
    _spin("Contempt", 0, -100, 100, NO_EFFECT),
    _combo("Analysis Contempt", "Both", ("Off", "White", "Black", "Both"), NO_EFFECT, ucci=False),
    _combo("Protocol", "uci", (*DIALECTS.names, "xboard"), "Accepted, without effect: the "
           "first word of the client decides. XBoard needs the bridge uci2wb", ucci=False),
)  # fmt: skip

UCCI_OPTIONS: tuple[Option, ...] = (
    _check("usemillisec", False, "Times of `go` are in milliseconds instead of seconds"),
    _check("batch", False, "A `go` during a search waits until it ends, instead of stopping it"),
    _check("debug", False, "Report more during a search"),
    _check("ponder", False, "The same as Ponder in UCI"),
    _check("usebook", False, NO_EFFECT),
    Option("bookfiles", "string", about=NO_EFFECT),
    Option("egtbpaths", "string", about=NO_EFFECT),
    Option("evalapi", "string", about=NO_EFFECT),
    _spin("hashsize", 512, 0, 1 << 20, "Memory of the search tree in MB; 0: the default"),
    _combo("idle", "none", ("none", "small", "medium", "large"), NO_EFFECT),
    _check("promotion", False, NO_EFFECT),
    _combo("pruning", "large", ("none", "small", "medium", "large"), NO_EFFECT),
    _combo("knowledge", "large", ("none", "small", "medium", "large"), NO_EFFECT),
    _combo("randomness", "none", ("none", "tiny", "small", "medium", "large", "huge"),
           "Temperature of the choice of the move, from 0 to 1"),
    _combo("style", "normal", ("solid", "normal", "risky"), NO_EFFECT),
    _spin("resign", 3, 0, 49, "Resign if the expected score was below this percentage in three own "
          "moves in a row; 0: never"),
    Option("newgame", "button", about="The next position belongs to a new game"),
)  # fmt: skip

RANDOMNESS = {"none": 0.0, "tiny": 0.2, "small": 0.4, "medium": 0.6, "large": 0.8, "huge": 1.0}
VARIANT = "UCI_Variant"
SHUFFLED = "UCI_Chess960"


def variant_option(names: Iterable[str], default: str) -> Option:
    """UCI_Variant with the variants of this installation, and the names that clients use for them:
    some clients send only listed names. It is declared last: some bridges lose what follows a long
    list."""
    about = "Variant to play, by its name or that which Fairy-Stockfish has for it"
    return _combo(VARIANT, default, tuple(names), about, ucci=False)


def declare(option: Option) -> str:
    """Return the `option` line of UCI."""
    return f"option name {option.name} type {_declared(option)}"


def declare_ucci(option: Option) -> str:
    """Return the `option` line of UCCI, with the name as one lower-case word."""
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
