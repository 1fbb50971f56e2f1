"""Experiments as YAML files: arms that differ in a few options of a training, at two scales.

    experiment: 1
    title: Weight of the value loss
    source: "[CrazyAra-preprint] and [CrazyAra], sections 3.1 and 8"
    question: How much may the value be worth before the policy suffers?
    variant: NAME
    stores: {games: "variant-ai import games.pgn -V NAME -o {store}"}
    options: {data: [games], batch: 256}             # of `variant-ai train`, without the dashes
    scales:
      small: {about: 2 cores and some minutes, options: {steps: 300}}
      full: {about: a GPU, options: {epochs: 7}}
    arms:
      α = 0.01: {value-weight: 0.01}
      α = 1: {value-weight: 1}
    metrics: [policy_accuracy, value_loss]

The options of an arm are those of the experiment, of the scale, of the arm, and of the arm at the
scale (`scales.small.arms`); later ones override earlier ones. The caller of `load_experiment` says how
options are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from variant_ai.core.errors import SettingError, SpecError, unknown
from variant_ai.core.spec.files.yaml_reader import (
    YamlNode,
    located_error,
    located_message,
    parse_yaml,
    plain_values,
    read_text,
    yaml_path,
)
from variant_ai_experiments.comparison import METRICS

SAMPLE = "sample"
"""The store that comes with the variant, as a name of `stores`."""
STORE_OPTIONS = ("data", "validation")
"""Options whose values are names of stores, `NAME` or `NAME:WEIGHT`."""
VARIANT = "variant"
"""Option whose value is another spec of the same rules: a name, or a file beside the experiment."""
START = "from"
"""Option whose value is an earlier arm: the training starts from that arm's net."""
NET_OPTIONS = ("net", "head", "blocks", "channels", "size", "wdl", "plies-left", "no-normalise")
"""Options of a net. A training that starts from a net keeps it."""
STORE = "{store}"
"""Stands for the store's path in the command that makes it."""
SAMPLE_SPLIT = "group:0.05"
"""Games of the sample that are held back if it replaces other stores."""

Single = bool | int | float | str
Options = dict[str, Single | list[Single]]
CheckOptions = Callable[[str, Mapping[str, Any]], Iterable[tuple[str, str]]]
"""Function of the command and options of an arm that returns what is wrong: option and message."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreSource(_Model):
    """Source of the games of a store."""

    make: str
    """Command that makes it, with `{store}` for its path."""
    source: str = Field(default="", alias="from")
    """Source of the files that the command reads; empty if it needs none."""


def _store_source(given: Any) -> Any:
    """Accept a command alone instead of a mapping."""
    return {"make": given} if isinstance(given, str) else given


class Scale(_Model):
    """Size of an experiment."""

    about: str
    """Machine it is meant for and the time it takes there."""
    options: Options = Field(default_factory=dict)
    arms: dict[str, Options] = Field(default_factory=dict)
    """Options of single arms at this scale."""
    seeds: int = Field(default=1, ge=1, le=100)
    """Runs of each arm, with the seeds 0, 1, …; tables show mean and standard deviation."""
    mates: str | None = None
    """Store whose positions with a mate in one all nets are measured on at the end, at most 1,000."""


class Experiment(_Model):
    """Comparison of trainings: arms, games and metrics."""

    experiment: Literal[1]
    title: str
    source: str
    """Paper, section, figure or table it repeats."""
    question: str
    expected: str = ""
    """Result of the source."""
    variant: str
    command: Literal["train", "nets"] = "train"
    """Kind of the arms: trainings, or timings of nets."""
    stores: dict[str, Annotated[StoreSource, BeforeValidator(_store_source)]] = Field(
        default_factory=dict
    )
    """Name of a store to the command that makes it, alone or as `make` beside `from`."""
    options: Options = Field(default_factory=dict)
    scales: dict[Literal["small", "full"], Scale] = Field(min_length=1)
    arms: dict[str, Options] = Field(min_length=1)
    metrics: list[str] = Field(min_length=1)
    """Columns of the table, of `comparison.METRICS`."""
    measure: dict[str, str] = Field(default_factory=dict)
    """Title to a store of `stores` that all nets are measured on at the end."""

    def arm_options(self, scale: str, arm: str) -> dict[str, Any]:
        """Return the merged options of an arm. One that continues with the net of another arm keeps that
        net: options of nets that all arms share are not for it."""
        merged: dict[str, Any] = {}
        layers = list(self._layers(scale, arm))
        continues = any(START in layer for _, layer in layers)
        for place, layer in layers:
            is_shared = place[-1] == "options"
            merged |= {
                option: value
                for option, value in layer.items()
                if not (continues and is_shared and option in NET_OPTIONS)
            }
        return merged

    def on_sample(self) -> Experiment:
        """Return the experiment with the variant's own games instead of its stores.

        A part of them is held back, and nothing else is measured. Raises SettingError if arms
        differ in their games or need none.
        """
        if self.command != "train":
            raise SettingError("its nets are timed without games: leave --sample out")
        for scale in self.scales:
            options = [self.arm_options(scale, arm) for arm in self.arms]
            if len({tuple(stores_of(own)) for own in options}) > 1:
                raise SettingError(
                    "the arms differ in their games, which one sample of games cannot replace"
                )

        def without(options: Options) -> Options:
            return {k: v for k, v in options.items() if k not in (*STORE_OPTIONS, "split")}

        def sized(scale: Scale) -> Scale:
            arms = {arm: without(options) for arm, options in scale.arms.items()}
            update = {"options": without(scale.options), "arms": arms, "mates": None}
            return scale.model_copy(update=update)

        return self.model_copy(
            update={
                "stores": {},
                "measure": {},
                "options": {**without(self.options), "data": [SAMPLE], "split": SAMPLE_SPLIT},
                "scales": {name: sized(scale) for name, scale in self.scales.items()},
                "arms": {arm: without(options) for arm, options in self.arms.items()},
            }
        )

    def _layers(self, scale: str, arm: str) -> Iterator[tuple[tuple[str, ...], Options]]:
        """Yield the paths and values of the options, the ones to be overridden first."""
        sized = self.scales[scale]  # type: ignore[index]
        yield ("options",), self.options
        yield ("scales", scale, "options"), sized.options
        yield ("arms", arm), self.arms[arm]
        yield ("scales", scale, "arms", arm), sized.arms.get(arm, {})

    def place_of(self, scale: str, arm: str, option: str) -> tuple[str, ...]:
        """Return the path, in the file, of the value of an option that is used."""
        found: tuple[str, ...] = ("arms", arm)
        for path, layer in self._layers(scale, arm):
            if option in layer:
                found = (*path, option)
        return found


def stores_of(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield option and name of each store that an arm uses, without weights."""
    for option in STORE_OPTIONS:
        given = options.get(option, [])
        for text in given if isinstance(given, list) else [given]:
            yield option, str(text).partition(":")[0]


def arm_folder(arm: str, seed: int | None = None) -> str:
    """Return the name of an arm's run directory: letters, digits and dashes."""
    name = re.sub(r"[^\w.]+", "-", arm.casefold()).strip("-") or "arm"
    return name if seed is None else f"{name}-seed{seed}"


def is_match(path: Path) -> bool:
    """Return True if the file is a match between players. Raises SpecError if it cannot be read."""
    tree = parse_yaml(
        read_text(path, "an experiment"), str(path), "an experiment", "experiment, title, arms, …"
    )
    return "experiment" not in tree and "players" in tree


def load_experiment(path: Path, check_options: CheckOptions) -> Experiment:
    """Read and check a file. Raises SpecError: a line per mistake, each with its place."""
    where = str(path)
    tree = parse_yaml(
        read_text(path, "an experiment"), where, "an experiment", "experiment, title, arms, …"
    )
    if "experiment" not in tree and "players" in tree:
        raise SpecError(
            "is a match, not an experiment of trainings: run it with `variant-ai match --config FILE`",
            where,
        )
    if "experiment" not in tree:
        raise SpecError("is not an experiment of trainings: `experiment: 1` is missing", where)
    try:
        loaded = Experiment.model_validate_json(json.dumps(plain_values(tree)))
    except ValidationError as error:
        lines = (
            located_message(tree, yaml_path(tree, item["loc"]), _message(item))
            for item in error.errors(include_url=False)
        )
        raise located_error(lines, where) from None
    mistakes = [located_message(tree, at, message) for at, message in _mistakes(loaded, tree)]
    if not mistakes:
        mistakes = [
            located_message(tree, loaded.place_of(scale, arm, option), message)
            for scale in loaded.scales
            for arm in loaded.arms
            for option, message in check_options(loaded.command, loaded.arm_options(scale, arm))
        ]
    if mistakes:
        raise located_error(mistakes, where)
    return loaded


def _mistakes(loaded: Experiment, tree: YamlNode) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the contradictions between parts of a file, with their paths."""
    for i, metric in enumerate(loaded.metrics):
        if metric not in METRICS:
            yield ("metrics", i), unknown("metric", metric, list(METRICS))
    folders: dict[str, str] = {}
    for arm in loaded.arms:
        first = folders.setdefault(arm_folder(arm), arm)
        if first != arm:
            yield ("arms", arm), f"has the same letters and digits as {first!r}"
    for scale, sized in loaded.scales.items():
        for arm in sized.arms:
            if arm not in loaded.arms:
                yield ("scales", scale, "arms", arm), unknown("arm", arm, list(loaded.arms))
        if loaded.command == "nets" and sized.seeds > 1:
            yield ("scales", scale, "seeds"), "timings of nets have no seeds"
    known = [*loaded.stores, SAMPLE]
    for name, store in loaded.stores.items():
        if name == SAMPLE:
            yield ("stores", name), "is the name of the store that comes with the variant"
        if STORE not in store.make:
            yield ("stores", name), f"{STORE}, the path of the store, is missing in the command"
    for scale, sized in loaded.scales.items():
        if sized.mates is not None and sized.mates not in known:
            yield ("scales", scale, "mates"), unknown("store", sized.mates, known)
        if sized.mates is not None and loaded.command == "nets":
            yield ("scales", scale, "mates"), "is for experiments that train nets"
    for title, measured in loaded.measure.items():
        if measured not in known:
            yield ("measure", title), unknown("store", measured, known)
    for scale in loaded.scales:
        for arm in loaded.arms:
            options = loaded.arm_options(scale, arm)
            if VARIANT in options and (loaded.measure or loaded.scales[scale].mates):
                message = "nets of other specs cannot be measured together: leave `measure` out"
                yield loaded.place_of(scale, arm, VARIANT), message
            for option, named in stores_of(options):
                if named not in known:
                    yield loaded.place_of(scale, arm, option), unknown("store", named, known)
            before = list(loaded.arms)[: list(loaded.arms).index(arm)]
            if START in options and options[START] not in before:
                message = unknown("arm before this one", str(options[START]), before)
                yield loaded.place_of(scale, arm, START), message
            if START in options:
                for option in NET_OPTIONS:
                    if option in options:
                        message = (
                            f"the arm keeps the net of {options[START]!r}: leave {option!r} out"
                        )
                        yield loaded.place_of(scale, arm, option), message


def _message(item: Any) -> str:
    kind, given = item["type"], item["input"]
    last = str(item["loc"][-1]) if item["loc"] else ""
    if kind == "extra_forbidden":
        parts: dict[object, type[BaseModel]] = {"scales": Scale, "stores": StoreSource}
        fields = parts.get(item["loc"][0], Experiment).model_fields.items()
        return unknown("key", last, sorted(field.alias or name for name, field in fields))
    if kind == "missing":
        return f"the key {last!r} is missing"
    if kind == "literal_error":
        shown = last if last == "[key]" else repr(given)
        return f"given {shown}; accepted: {item['ctx']['expected']}"
    message: str = item["msg"]
    return message[0].lower() + message[1:]
