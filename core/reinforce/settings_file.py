"""Settings of a run as YAML: reading them, setting single words, and changing those of a run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from variant_ai.core.errors import DataError, SettingError, SpecError, closest
from variant_ai.core.reinforce.reinforce_settings import CHANGEABLE, Learning, ReinforceSettings
from variant_ai.core.spec.files.yaml_reader import (
    load_yaml,
    location_of,
    parse_yaml,
    plain_values,
    read_text,
    yaml_path,
)
from variant_ai.core.system.checked_models import reason_of

WHAT = "a settings file"


def make_settings(words: Mapping[str, Any]) -> ReinforceSettings:
    """Check words and fill in defaults. Raises SettingError that names each wrong word."""
    try:
        return ReinforceSettings.model_validate(words)
    except ValidationError as error:
        wrong = (
            f"{'.'.join(map(str, word))}{given}: {what}" for word, given, what in _faults(error)
        )
        raise SettingError("; ".join(wrong)) from None


def new_settings(words: Mapping[str, Any]) -> ReinforceSettings:
    """Return the settings of a new run. For the default network, options of its size that the words leave
    out have the values of `Learning.size`, not the large ones of a tower. Raises SettingError."""
    settings, default = make_settings(words), Learning()
    if settings.learning.net != default.net:
        return settings
    size = default.size | settings.learning.size
    learning = settings.learning.model_copy(update={"size": size})
    return settings.model_copy(update={"learning": learning})


def read_words(path: Path) -> dict[str, Any]:
    """Read the words of a settings file. The variant may be missing.

    Raises DataError if the file cannot be read or is not YAML, SettingError with file and line for a
    wrong word.
    """
    try:
        tree = parse_yaml(read_text(path, WHAT), str(path), WHAT, "variant, search, learning, ...")
    except SpecError as error:
        raise DataError(str(error)) from None
    words: dict[str, Any] = plain_values(tree)
    try:
        ReinforceSettings.model_validate({"variant": "", **words})
    except ValidationError as error:
        lines = []
        for word, given, what in _faults(error):
            where = location_of(tree, yaml_path(tree, word))
            lines.append(f"{where}: {'.'.join(map(str, word))}{given}: {what}")
        raise SettingError("\n".join(lines)) from None
    return words


def read_settings(path: Path) -> ReinforceSettings:
    """Read a settings file that names its variant. Raises DataError, SettingError."""
    return make_settings(read_words(path))


def settings_text(settings: ReinforceSettings) -> str:
    """Return all settings as YAML."""
    yaml = YAML(typ="safe")
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = io.StringIO()
    yaml.dump(settings.model_dump(mode="json"), text)
    return text.getvalue()


def set_word(words: dict[str, Any], name: str, value: Any) -> None:
    """Set a word by its dotted name, e.g. `search.nodes`. Raises SettingError for a name that leads
    through a word without words of its own."""
    *sections, last = name.split(".")
    for section in sections:
        words = words.setdefault(section, {})
        if not isinstance(words, dict):
            raise SettingError(f"{name}: {section} has no words of its own")
    words[last] = value


def parse_word(text: str) -> tuple[str, Any]:
    """Return name and value of `WORD=VALUE`, the value as in YAML. Raises SettingError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingError(f"{text!r}: expected WORD=VALUE, as in search.nodes=32")
    try:
        return name.strip(), load_yaml(value, name, "a value", kind="safe")
    except SpecError as error:
        raise SettingError(f"{text!r}: {error}") from None


def changed(settings: ReinforceSettings, words: Mapping[str, Any], where: str) -> ReinforceSettings:
    """Return the settings of a run that goes on with other words.

    Raises SettingError for a word that is not in CHANGEABLE and has another value than the run's.
    """
    own = settings.model_dump(mode="json")
    ours = flattened(own)
    for name, value in flattened(words).items():
        set_word(own, name, value)
    asked = make_settings(own).model_dump(mode="json")
    theirs = flattened(asked)
    for name in ours | theirs:
        before, value = ours.get(name), theirs.get(name)
        if value != before and name.split(".")[0] not in CHANGEABLE:
            raise SettingError(
                f"{where} was begun with {name} = {before!r}, not {value!r}; a run keeps its "
                f"settings, except {', '.join(CHANGEABLE)}. Begin another run with --run"
            )
    return make_settings(asked)


def flattened(words: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Words by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in words.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _similar_word(path: tuple[str | int, ...]) -> str | None:
    """The setting or section most similar to a wrong path, in the same section."""
    *sections, word = map(str, path)
    place: Any = ReinforceSettings(variant="x").model_dump()
    for section in sections:
        place = place.get(section) if isinstance(place, Mapping) else None
    guess = closest(word, list(place)) if isinstance(place, Mapping) else None
    return guess and ".".join([*sections, guess])


def _example(path: tuple[str | int, ...]) -> str:
    """The default of a list as an example: `, as in [0, 4]`; empty if it has none."""
    default: Any = ReinforceSettings(variant="x").model_dump(mode="json")
    for word in path:
        default = default.get(word) if isinstance(default, Mapping) else None
    return f", as in {default}" if default else ""


def _faults(error: ValidationError) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Path of each wrong word, its value as ` = VALUE` ("" if it is missing), and what is wrong."""
    found: dict[tuple[str | int, ...], tuple[str, str]] = {}
    for fault in error.errors():
        path, given, reason = fault["loc"], f" = {fault['input']!r}", reason_of(fault)
        if fault["type"] == "extra_forbidden":
            if guess := _similar_word(path):
                reason += f"; did you mean {guess!r}?"
        elif fault["type"] in ("tuple_type", "too_long"):
            reason = f"a list is expected{_example(path)}"
        elif fault["type"] == "missing" and isinstance(path[-1], int):  # of a pair
            path = path[:-1]
            reason = f"more values are expected{_example(path)}"
        elif fault["type"] == "missing":
            given = ""
        elif path[-1] in (
            "int",
            "bool",
        ):  # pydantic names each type of a word that may have several
            path = path[:-1]
            if path in found:
                reason = f"{found[path][1].removesuffix(' is expected')}, or {reason}"
        found[path] = given, reason
    for path, (given, reason) in found.items():
        yield path, given, reason
