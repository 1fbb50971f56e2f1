"""Every number and switch of the search: meaning, unit, range, default and where it comes from.

The defaults are those every variant starts from. A spec's `search:` words override them, and the
user's words override both: `SearchParams.of(spec, batch_size=32)`. A spec may have further sets of
words by name (`settings: {paper: …}`), each complete in itself: `SearchParams.of(spec, "paper")`.

`000 9.1` is the preprint's section, `thesis 7.1` the thesis' table of engine settings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_type_hints

from variant_ai.core.errors import SettingError, UnknownNameError
from variant_ai.core.spec.schema import Search as SearchWords
from variant_ai.core.spec.schema import VariantSpec

DEFAULT_SET = "default"
"""Name of the settings in a spec's `search:`, beside the names in its `settings:`."""
PAPER = "paper"
"""Set that the papers' experiments use, where a spec has it."""
FieldKind = Literal["int", "float", "bool", "choice", "float or choice"]


def _setting(
    default: Any,
    about: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    unit: str = "",
    source: str = "",
) -> Any:
    """A dataclass field that carries what documents and option lists say of it."""
    told = {"about": about, "low": low, "high": high, "unit": unit, "source": source}
    return field(default=default, metadata=told)


@dataclass(frozen=True, kw_only=True)
class SearchParams:
    """Settings of one search. Frozen: another setting is another object (`replace`).

    Raises SettingError where a value is outside its range. N is a move's visits, ΣN the sum over
    the moves of a node, P the prior probability, Q a value in [-1, 1] seen from the mover.
    """

    # --- batches -------------------------------------------------------------------------------
    batch_size: int = _setting(
        16,
        "positions the network sees at once",
        low=1,
        high=4096,
        unit="positions",
        source="thesis 7.1",
    )
    batch_growth: float = _setting(
        8.0,
        "a batch holds at most this part of the root's visits, 1/8, in powers of four: a few "
        "simulations spent all at once learn nothing from one another. 0: every batch is whole",
        low=0,
        high=1000,
    )
    threads: int = _setting(
        0,
        "threads of the evaluator; 0 leaves the choice to it. The tree has one thread",
        low=0,
        high=1024,
        unit="threads",
        source="thesis 7.1: 4",
    )
    memory_mb: int = _setting(
        512,
        "memory of all tree arrays together; a search ends when it is full",
        low=1,
        high=1 << 20,
        unit="MB",
    )

    # --- selection -----------------------------------------------------------------------------
    cpuct_init: float = _setting(
        2.5,
        "exploration constant: c = ln((ΣN + cpuct_base + 1) / cpuct_base) + cpuct_init",
        low=0,
        high=100,
        source="000 eq. 3; thesis 7.1",
    )
    cpuct_base: float = _setting(
        19652.0,
        "visits in which the exploration constant grows by ln 2",
        low=1,
        high=1e9,
        unit="visits",
        source="000 eq. 3; thesis 7.1",
    )
    u_divisor: float | Literal["adaptive"] = _setting(
        1.0,
        "d in U = c·P·√ΣN / (d + N): a constant, or `adaptive`, which falls with the visits from "
        "u_init to u_min",
        low=0.01,
        high=1,
        source="000 eq. 10, 11; thesis 7.1: 1",
    )
    u_min: float = _setting(
        0.25, "where an adaptive divisor ends", low=0.01, high=1, source="000 eq. 11"
    )
    u_init: float = _setting(
        1.0, "where an adaptive divisor starts", low=0.01, high=1, source="000 eq. 11"
    )
    u_base: float = _setting(
        1965.0,
        "visits after which 1/e of the way from u_init to u_min is left",
        low=1,
        high=1e9,
        unit="visits",
        source="000 eq. 11",
    )
    q_unvisited: Literal["loss", "draw", "parent"] = _setting(
        "loss",
        "Q of a move never visited: -1, 0, or the node's own value less q_unvisited_reduction. "
        "The paper's later remedy for draws, cutting moves of low prior, lost games and is not "
        "offered",
        source="000 9.1",
    )
    q_unvisited_reduction: float = _setting(
        0.2, "what `parent` takes off the node's value", low=0, high=2, unit="value"
    )
    node_temperature: float = _setting(
        1.0,
        "softmax temperature of the policy at every node; above 1 flattens it",
        low=0.05,
        high=20,
        source="thesis 7.1: 1.7; 000: 1",
    )

    # --- visits that are still at the network ---------------------------------------------------
    virtual_style: Literal["loss", "visit"] = _setting(
        "loss",
        "a visit not yet backed up counts as virtual_loss lost visits, or only as visits",
        source="000 9.1",
    )
    virtual_loss: float = _setting(
        1.0,
        "how many visits one that is under way counts as",
        low=0,
        high=100,
        unit="visits",
        source="000 9.1: 3; thesis 7.1: 1",
    )

    # --- noise at the root ----------------------------------------------------------------------
    noise_epsilon: float = _setting(
        0.0,
        "share ε of noise in the root's priors: (1 - ε)·P + ε·noise",
        low=0,
        high=1,
        source="thesis 7.1: 0 (matches); 000 9.1: 0.25",
    )
    noise_alpha: float = _setting(
        0.2, "α of Dirichlet noise", low=0.001, high=100, source="000 9.1; thesis 7.1"
    )
    noise_style: Literal["dirichlet", "uniform"] = _setting(
        "dirichlet", "drawn from Dir(α), or the same for each move", source="000 9.1, 10.2"
    )

    # --- knowledge ------------------------------------------------------------------------------
    enhance_checks: bool = _setting(
        False,
        "raise the priors of checking moves below enhance_threshold, then renormalise",
        source="000 eq. 12",
    )
    enhance_threshold: float = _setting(
        0.1,
        "checks with a prior from here on are left alone",
        low=0,
        high=1,
        unit="probability",
        source="000 9.2.7",
    )
    enhance_factor: float = _setting(
        0.5, "share of the greatest prior that is added", low=0, high=10, source="000 9.2.7"
    )
    mate_stop: bool = _setting(
        True, "no exploration at a node with a move that ends the game won", source="000 9.2.7"
    )
    solver: bool = _setting(
        True, "prove wins, losses and draws from finished games upwards", source="thesis 7.1"
    )

    look_for_mates: bool = _setting(
        True,
        "try the checks of a node for mate when it has had four visits; only with solver",
    )

    # --- graph ----------------------------------------------------------------------------------
    transpositions: bool = _setting(
        True, "equal positions share a node", source="000 9.2.5; arXiv 2012.11045"
    )
    backup: Literal["catch-up", "q-epsilon", "none"] = _setting(
        "catch-up",
        "what an edge does whose child was visited through another one: stop there and recompute "
        "Q up the path, the correction of the paper, or nothing",
        source="arXiv 2012.11045",
    )
    q_epsilon: float = _setting(
        0.01,
        "difference between edge and child from which `q-epsilon` corrects",
        low=0,
        high=2,
        unit="value",
        source="arXiv 2012.11045",
    )
    reuse_tree: bool = _setting(
        True, "keep what is below the new root after a move", source="000 9.1; thesis 7.1"
    )
    max_depth: int = _setting(
        99, "plies of a path from the root", low=1, high=1000, unit="plies", source="thesis 7.1"
    )

    # --- choice of the move ---------------------------------------------------------------------
    q_weight: float = _setting(
        0.0,
        "f in (1 - f)·N/ΣN + f·Q', with Q' in [0, 1]",
        low=0,
        high=1,
        source="000 eq. 5: 0.7; thesis 7.1: 0",
    )
    q_thresh_init: float = _setting(
        0.5,
        "Q' is 0 below this share of the greatest N, for a young tree",
        low=0,
        high=1,
        source="000 eq. 7; thesis 7.1",
    )
    q_thresh_max: float = _setting(
        0.9,
        "the same for an old tree; equal to q_thresh_init it is a constant (000 table 11: 0.33)",
        low=0,
        high=1,
        source="000 eq. 7; thesis 7.1",
    )
    q_thresh_base: float = _setting(
        1965.0,
        "visits after which 1/e of the way from q_thresh_init to q_thresh_max is left",
        low=1,
        high=1e9,
        unit="visits",
        source="000 eq. 7; thesis 7.1",
    )
    pv_values: Literal["off", "on"] = _setting(
        "off",
        "lower a move's Q to the value pv_depth plies down its line where that is less",
        source="000 eq. 6",
    )
    pv_depth: int = _setting(
        5, "t, counted from the root's move as 1", low=1, high=99, unit="plies", source="000 9.2.2"
    )
    temperature: float = _setting(
        1.7,
        "τ: moves are drawn with probability N^(1/τ) in the first temperature_moves moves",
        low=0,
        high=100,
        source="000 eq. 4, 11.1: 0.07; thesis 7.1: 1.7",
    )
    temperature_decay: float = _setting(
        0.92,
        "factor of τ for each of the player's own moves",
        low=0,
        high=1,
        source="thesis 7.1",
    )
    temperature_moves: int = _setting(
        0,
        "own moves that are drawn; afterwards, and always in a match, the best one is played",
        low=0,
        high=1000,
        unit="moves",
        source="thesis 7.1: 0; 000 11.1: 4",
    )
    quantile_clipping: float = _setting(
        0.25,
        "the unlikeliest moves that together have less than this probability are not drawn",
        low=0,
        high=1,
        unit="probability",
        source="thesis 7.1",
    )
    use_raw_network: bool = _setting(
        False, "play the policy's first move without a search", source="thesis 7.1"
    )

    # --- the same tree twice --------------------------------------------------------------------
    seed: int = _setting(0, "of noise and drawn moves", low=0, high=2**63 - 1)
    deterministic: bool = _setting(
        False,
        "the same seed and batch size give the same tree, whatever the time it takes",
    )

    def __post_init__(self) -> None:
        for row in field_table():
            value = getattr(self, row.name)
            if type(value) not in (int, float, bool) and isinstance(value, Real):  # numpy's
                value = int(value) if isinstance(value, Integral) else float(value)
                object.__setattr__(self, row.name, value)
            row.check(value)
            if row.kind.startswith("float") and isinstance(value, int):
                # compiled code has one signature: floats
                object.__setattr__(self, row.name, float(value))

    @classmethod
    def of(cls, spec: VariantSpec, settings: str = DEFAULT_SET, **overrides: Any) -> SearchParams:
        """The spec's settings, or those of its named set, with `overrides` applied.

        Raises UnknownNameError for a name that is no set or no setting, SettingError for a value.
        """
        words = words_of(spec, settings)
        named = {name: getattr(words, name) for name in SearchWords.model_fields}
        return cls(**{**named, **_known(overrides)})

    def leaves_at(self, visits: int) -> int:
        """How many leaves a batch may hold when the root has so many visits: 1, 4, 16, ..., sizes
        that every evaluator is ready for."""
        if self.batch_growth == 0:
            return self.batch_size
        share = max(1, int(visits / self.batch_growth))
        return min(self.batch_size, 1 << (share.bit_length() - 1 & ~1))

    def replace(self, **overrides: Any) -> SearchParams:
        """These settings with others in their place. Raises as `of` does."""
        return dataclasses.replace(self, **_known(overrides))


def words_of(spec: VariantSpec, settings: str = DEFAULT_SET) -> SearchWords:
    """The spec's `search:` words, or those of its named set. Raises UnknownNameError."""
    if settings == DEFAULT_SET:
        return spec.search
    if settings not in spec.settings:
        names = (DEFAULT_SET, *spec.settings)
        raise UnknownNameError(f"set of search settings of {spec.variant}", settings, names)
    return spec.settings[settings]


@dataclass(frozen=True)
class FieldRow:
    """One setting, as a document, an option list or a parser needs it."""

    name: str
    kind: FieldKind
    default: Any
    low: float
    """Least value, -inf without a bound and for choices."""
    high: float
    choices: tuple[str, ...]
    unit: str
    about: str
    source: str

    @property
    def accepted(self) -> str:
        """In words: `a number from 0 to 100`."""
        words = " or ".join(self.choices)
        if self.kind == "bool":
            return "true or false"
        if self.kind == "choice":
            return words
        what = "a whole number" if self.kind == "int" else "a number"
        numbers = f"{what} from {_shown(self.low)} to {_shown(self.high)}"
        return f"{numbers}, or {words}" if words else numbers

    def check(self, value: object) -> None:
        """Raises SettingError where the field does not take the value."""
        if isinstance(value, str):
            fits = value in self.choices
        elif isinstance(value, bool) or self.kind in ("bool", "choice"):
            fits = isinstance(value, bool) and self.kind == "bool"
        elif isinstance(value, int) or (isinstance(value, float) and self.kind != "int"):
            fits = self.low <= value <= self.high
        else:
            fits = False
        if not fits:
            raise SettingError(f"search setting {self.name} = {value!r}: it takes {self.accepted}")

    def parse(self, text: str) -> Any:
        """The value that text means. Raises SettingError."""
        word = text.strip().lower()
        value: object = text
        if word in self.choices:
            value = word
        elif self.kind == "bool" and word in _BOOLEANS:
            value = _BOOLEANS[word]
        elif self.kind != "choice":
            with contextlib.suppress(ValueError):
                value = int(word) if self.kind == "int" else float(word)
        self.check(value)
        return value


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


_BOOLEANS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}
_table: list[FieldRow] = []


def field_table() -> tuple[FieldRow, ...]:
    """Every setting in the order of the class."""
    if not _table:
        hints = get_type_hints(SearchParams)
        for each in dataclasses.fields(SearchParams):
            kind, choices = _kind(hints[each.name])
            _table.append(
                FieldRow(
                    name=each.name,
                    kind=kind,
                    default=each.default,
                    choices=choices,
                    **each.metadata,
                )
            )
    return tuple(_table)


def setting(name: str) -> FieldRow:
    """The setting of that name. Raises UnknownNameError."""
    rows = {row.name: row for row in field_table()}
    if name not in rows:
        raise UnknownNameError("search setting", name, rows)
    return rows[name]


def _kind(hint: Any) -> tuple[FieldKind, tuple[str, ...]]:
    if hint is bool:
        return "bool", ()
    if hint is int:
        return "int", ()
    if hint is float:
        return "float", ()
    inner = get_args(hint)
    if float in inner:
        words = next(get_args(part) for part in inner if part is not float)
        return "float or choice", words
    return "choice", inner


def _known(overrides: dict[str, Any]) -> dict[str, Any]:
    for name in overrides:
        setting(name)
    return overrides
