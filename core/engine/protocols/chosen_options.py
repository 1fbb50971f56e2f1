"""Options that a client has set, and the settings of search and evaluator that follow from them.

An option that a client does not set leaves its setting to the variant's spec, whose value may
differ from the declared default: `OptionSet.search_overrides` has only options that were set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from variant_ai.core.engine.protocols.engine_options import (
    OPTIONS,
    RANDOMNESS,
    UCCI_OPTIONS,
    Option,
    canonical,
    variant_option,
)
from variant_ai.core.errors import SettingError, closest
from variant_ai.core.system.processors import processors


class Strength(NamedTuple):
    """Limits of a search of limited strength."""

    nodes: int
    temperature: float


def strength_of(elo: int) -> Strength:
    """Return the limits for a strength: nodes double every 150 points from 1 at 800; the temperature
    falls from 1.2 to 0 at 2000."""
    return Strength(round(2 ** ((elo - 800) / 150)), max(0.0, (2000 - elo) / 1000))


class OptionSet:
    """Options with the values that a client has set. Not thread-safe."""

    def __init__(self, variants: Sequence[str], variant: str) -> None:
        """variants: names to offer; variant: the one to play until the client chooses another."""
        offered = (*OPTIONS, variant_option(variants, variant))
        self.uci: tuple[Option, ...] = offered
        """Options declared to UCI clients."""
        self.ucci: tuple[Option, ...] = UCCI_OPTIONS
        """Options that only UCCI has, as declared."""
        self._options = {canonical(option.name): option for option in (*UCCI_OPTIONS, *offered)}
        self._names = {canonical(name): o for o in offered for name in o.also}
        self._given: dict[str, str | int | bool] = {}

    def find(self, name: str) -> Option:
        """The option of that name. Raises SettingError for an unknown name."""
        key = canonical(name)
        option = self._options.get(key) or self._names.get(key)
        if option is None:
            raise SettingError(self._unknown(name))
        return option

    def _unknown(self, name: str) -> str:
        guess = closest(name[:60], [option.name for option in self.uci])
        hint = f"did you mean {guess!r}?" if guess else "the answer to `uci` lists the options"
        return f"unknown option {name if len(name) < 60 else f'{name[:60]}...'!r}; {hint}"

    def set(self, name: str, text: str | None) -> Option:
        """Set a value from a client's text. Raises SettingError."""
        option = self.find(name)
        if option.kind != "button":
            self._given[option.name] = option.parse(text)
        return option

    def preset(self, name: str, text: str) -> None:
        """Set a value and declare it as the default, so that a client that sends back every default
        does not change it. Raises SettingError."""
        option = self.find(name)
        value = option.parse(text)
        changed = replace(option, default=value)
        self._options[canonical(option.name)] = changed
        self.uci = tuple(changed if o is option else o for o in self.uci)
        self.ucci = tuple(changed if o is option else o for o in self.ucci)
        if option.kind != "button":
            self._given[option.name] = value

    def put(self, name: str, value: str | int | bool) -> None:
        """Set a value that is valid already."""
        self._given[self.find(name).name] = value

    def value(self, name: str) -> Any:
        """The value that was set, or the default."""
        option = self._options[canonical(name)]
        return self._given.get(option.name, option.default)

    def text(self, name: str) -> str:
        return str(self.value(name))

    def number(self, name: str) -> int:
        return int(self.value(name))

    def is_on(self, name: str) -> bool:
        return bool(self.value(name))

    # --- settings that follow ------------------------------------------------------------------

    def search_overrides(self, spec_divisor: float | str = 1.0) -> dict[str, Any]:
        """Return the fields of SearchParams that override the spec's.

        spec_divisor: u_divisor of the chosen set of settings. If it is a constant,
        Centi_U_Init_Divisor changes it.
        """
        found: dict[str, Any] = {}
        for option in OPTIONS:
            if option.field and option.name in self._given:
                value = option.setting_value(self._given[option.name])
                if value is not None:
                    found[option.field] = value
        self._add_divisor(found, spec_divisor)
        if self.text("Search_Type") == "mcts":
            found["transpositions"] = False
        if given := self._given.get("hashsize"):
            found["memory_mb"] = int(given)
        self._add_variety(found)
        return found

    def _add_divisor(self, found: dict[str, Any], spec_divisor: float | str) -> None:
        chosen = self.text("U_Divisor")
        if chosen == "auto":
            if spec_divisor != "adaptive" and "u_init" in found:
                found["u_divisor"] = found["u_init"]
        else:
            constant = found.get("u_init", 1.0)
            found["u_divisor"] = "adaptive" if chosen == "adaptive" else constant

    def _add_variety(self, found: dict[str, Any]) -> None:
        """Add the temperature of limited strength or of UCCI's randomness; none in analysis."""
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
        """Limits of the chosen strength, None at full strength."""
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
        """Smallest limit of the visits of a search, None without a limit."""
        limits = [self.number("Nodes"), self.number("Simulations")]
        if (strength := self.strength) is not None:
            limits.append(strength.nodes)
        return min((n for n in limits if n > 0), default=None)

    @property
    def evaluator_settings(self) -> dict[str, Any]:
        """Settings of the evaluator. If one changes, the net must be loaded again."""
        precision = self.text("Precision")  # in CrazyAra's words, which evaluators know
        return {
            "model": self.text("Model"),
            "evaluator": self.text("Evaluator") or "auto",
            "device": self._device(),
            "precision": None if precision == "auto" else precision,
            "threads": min(self.number("Threads"), processors()) or None,
            "batch": self.number("Batch_Size"),
        }

    def _device(self) -> str:
        """Device by the names of evaluators: `cpu`, `cuda`, `tensorrt`, `cuda:0,cuda:1`."""
        if self.text("Context") == "cpu":
            return "cpu"
        kind = "tensorrt" if self.is_on("Use_TensorRT") else "cuda"
        first, last = self.number("First_Device_ID"), self.number("Last_Device_ID")
        if first == 0 and last <= 0:
            return kind
        return ",".join(f"{kind}:{n}" for n in range(first, max(first, last) + 1))

    def for_ucci(self) -> list[Option]:
        """Options declared to UCCI clients: those of UCCI first, then the engine's."""
        own = {option.name for option in self.ucci}
        shown = [o for o in self.uci if o.ucci and o.name.lower() not in own]
        return [*self.ucci, *shown]
