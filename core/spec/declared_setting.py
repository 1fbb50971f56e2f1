"""One declared setting: its type, default, range and meaning; checks values and reads them from text."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from variant_ai.core.errors import SettingError

Kind = Literal["int", "float", "bool", "name", "choice", "float or choice"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, as documents, option lists and parsers need it."""

    name: str
    kind: Kind
    choices: tuple[str, ...]
    default: Any
    meaning: str
    low: float
    """Least value; -inf for choices and booleans."""
    high: float
    """Greatest value; inf for choices and booleans."""
    unit: str = ""
    source: str = ""
    """Papers it comes from, with their value if it differs from the default."""
    spec: bool = False
    """True if a spec may set it in `search:`."""
    compiled: bool = False
    """True if compiled code reads it: it has a field in the compiled record."""
    option: str = ""
    """Name of the UCI option. By default the setting's name with capitals (`Virtual_Style`), for a float
    with `Centi_` in front. Options with Centi_ or Milli_ count hundredths or thousandths."""
    option_words: Mapping[str, object] | None = None
    """Words of the option that differ from the setting's own choices, and the choices they mean."""

    @property
    def accepted(self) -> str:
        """Accepted values as text: `a number from 0 to 100`."""
        words = " or ".join(self.choices)
        if self.kind == "bool":
            return "true or false"
        if self.kind == "name":
            return "a name"
        if self.kind == "choice":
            return words
        number = "a whole number" if self.kind == "int" else "a number"
        numbers = f"{number} from {_bound(self.low)} to {_bound(self.high)}"
        return f"{numbers}, or {words}" if words else numbers

    def check(self, value: object) -> None:
        """Raise SettingError if the setting does not accept the value."""
        if isinstance(value, str):
            fits = value in self.choices or (self.kind == "name" and bool(value))
        elif isinstance(value, bool) or self.kind in ("bool", "choice"):
            fits = isinstance(value, bool) and self.kind == "bool"
        elif isinstance(value, int) or (isinstance(value, float) and self.kind != "int"):
            fits = self.low <= value <= self.high
        else:
            fits = False
        if not fits:
            raise SettingError(f"search setting {self.name} = {value!r}: expected {self.accepted}")

    def parse(self, text: str) -> Any:
        """Return the value that the text stands for. Raises SettingError."""
        word = text.strip().lower()
        value: object = text
        if word in self.choices:
            value = word
        elif self.kind == "bool" and word in _BOOLEANS:
            value = _BOOLEANS[word]
        elif self.kind == "name":
            value = text.strip()
        elif self.kind != "choice":
            with contextlib.suppress(ValueError):
                value = int(word) if self.kind == "int" else float(word)
        self.check(value)
        return value


def _bound(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


_BOOLEANS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}
