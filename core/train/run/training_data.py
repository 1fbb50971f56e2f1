"""The data of a training: open, check and split the stores, and make sources of batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.sample.mixture import MixedSampler, part_seed
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.sample.split import By, SplitPlan, points, shared_prefix, split_stores
from variant_ai.core.data.sample.value_labels import ValueLabels, fit_scale_of
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.stored_moves import RulesCodec
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, UnknownNameError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.devices import ALONE, Workers
from variant_ai.core.train.run.training_settings import DataConfig, TrainConfig

NO_SPLIT = "none"

TrainSource = Sampler | MixedSampler


@dataclass(frozen=True)
class OpenData:
    """Opened and split stores."""

    data: DataConfig
    """With hashes and sizes filled in."""
    train: TrainSource
    validation: Sampler | None
    validation_games: tuple[NDArray[np.int64], ...]
    """Indices of the validation games, one array per store that contains them."""
    seen: NDArray[np.bool_] | None
    """[N] True for validation positions (in stored order) that occur in training with the same move."""
    shared: int
    """Number of games of the validation stores that are also trained on; 0 if a training is resumed."""


@dataclass(frozen=True)
class Prepared(OpenData):
    """A training ready to run."""

    config: TrainConfig
    encoder: Encoder

    def validation_stores(self) -> list[Store]:
        """Open the stores that `validation` samples, in its order."""
        data = self.data
        return [Store(path, self.encoder.spec) for path in data.validation_stores or data.stores]


def parse_split(text: str, seed: int) -> SplitPlan | None:
    """Parse `BY[:VALIDATION[:TEST]]`: `group:0.05`, `game:0.1:0.1`, `year:2008:2009-`; None for `none`.

    Several years or sources are separated by commas. Raises UnknownNameError, DataError.
    """
    if text == NO_SPLIT:
        return None
    by, *parts = text.split(":")
    if by not in get_args(By):
        raise UnknownNameError("way to split", by, (*get_args(By), NO_SPLIT))
    if len(parts) > 2:
        raise DataError(f"split {text!r}: accepted is BY, BY:VALIDATION or BY:VALIDATION:TEST")
    known = cast(By, by)
    if by == "year" or (by == "source" and parts and not _is_number(parts[0])):
        keys = [tuple(part.split(",")) for part in parts] + [(), ()]
        return SplitPlan(known, validation_keys=keys[0], test_keys=keys[1], seed=seed)
    try:
        shares = [float(part) for part in parts]
    except ValueError:
        raise DataError(f"split {text!r}: shares are numbers, e.g. {by}:0.05") from None
    validation, test = [*shares, *[0.05, 0.0][len(shares) :]]
    return SplitPlan(known, validation, test, seed=seed)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Sampling:
    """Batches to draw from the stores."""

    batch: int
    """Positions of a step, in all processes together."""
    seed: int
    rules: Rules | None = None
    workers: Workers = ALONE
    """Each process trains on its own batches."""
    micro_batches: int = 1
    """Parts of a step, in all processes together; each is a batch of the samplers."""

    @property
    def part(self) -> int:
        """Positions in one part of a step."""
        return self.batch // self.micro_batches


def open_data(
    spec: VariantSpec, encoder: Encoder, data: DataConfig, sampling: Sampling
) -> OpenData:
    """Open the stores of a configuration, split them and make the samplers.

    The held-back games are always measured against their results.

    Raises DataError if a store does not have the hash of the configuration, and if visits, root values
    or scores are to be learnt but the training games have none.
    """
    codec = RulesCodec(spec, sampling.rules)  # one for all, because rules take a while to make
    stores = [Store(path, spec, codec=codec) for path in data.stores]
    others = [Store(path, spec, codec=codec) for path in data.validation_stores]
    hashes = _unchanged_stores(data, [*stores, *others])
    if not any(map(len, stores)):
        verb = "has" if len(stores) == 1 else "have"
        raise DataError(f"{' and '.join(data.stores)} {verb} no games")
    games, held, sides = _sides(data, stores)
    values, labelled = _value_labels(data, stores, games)
    train = _train_source(stores, encoder, labelled, games, sampling)
    _require_labels(labelled, values, train)
    shared = 0
    if others:
        validating, chosen = others, [np.arange(len(store)) for store in others]
        if not data.hashes:  # a new training
            shared = shared_games(stores, games, others, chosen)
    else:
        validating, chosen = stores, held
    validation = _validation(validating, encoder, data, chosen, sampling)
    seen = None
    if validation is not None and not others and len(stores) == 1:
        seen = seen_positions(stores[0], games[0], validation)
    filled = labelled.model_copy(
        update={
            "hashes": hashes,
            "sides": sides,
            "train_games": int(sum(map(len, games))),
            "validation_games": int(sum(map(len, chosen))),
            "train_positions": train.positions,
            "searched_positions": train.searched,
            "valued_positions": train.valued,
            "validation_positions": validation.positions if validation else 0,
        }
    )
    return OpenData(filled, train, validation, tuple(chosen), seen, shared)


def _unchanged_stores(data: DataConfig, stores: Sequence[Store]) -> tuple[str, ...]:
    """Hashes of the stores. Raises DataError if one is not that of the configuration."""
    hashes = tuple(store.content_hash for store in stores)
    if data.hashes and data.hashes != hashes:
        changed = next(
            path
            for path, was, now in zip(
                data.stores + data.validation_stores, data.hashes, hashes, strict=True
            )
            if was != now
        )
        raise DataError(f"{changed} is no longer the store that this training started with")
    return hashes


def _sides(
    data: DataConfig, stores: Sequence[Store]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], str]:
    """Games of each store to train on, those held back, and a digest of both. Raises DataError if a
    training started with other sides."""
    plan = parse_split(data.split, data.seed)
    if plan is None:
        games = [np.arange(len(store)) for store in stores]
        held = [np.zeros(0, np.int64) for _ in stores]
    else:
        splits = split_stores(stores, plan)
        games, held = [split.train for split in splits], [split.validation for split in splits]
    sides = _digest(games, held)
    if data.sides not in ("", sides):
        raise DataError(
            f"the games of {', '.join(data.stores)} are on other sides of the split {data.split} than "
            "when this training started: their years, groups or sources have changed"
        )
    return games, held, sides


def _value_labels(
    data: DataConfig, stores: Sequence[Store], games: Sequence[NDArray[np.int64]]
) -> tuple[ValueLabels, DataConfig]:
    """Value labels, and the configuration with the scale and the digest of scores filled in, if these are
    learnt. Raises DataError if a training started with other scores."""
    values = ValueLabels.parse(data.value_labels)
    if values.source == "score" and values.scale is None:
        values = replace(values, scale=fit_scale_of(stores, games))
        data = data.model_copy(update={"value_labels": str(values)})
    scores = _digest_of_scores(stores) if values.source == "score" else ""
    if data.scores not in ("", scores):
        raise DataError(
            f"the scores of {', '.join(data.stores)} are no longer those that this training started with"
        )
    return values, data.model_copy(update={"scores": scores})


def _require_labels(data: DataConfig, values: ValueLabels, train: TrainSource) -> None:
    """Raise DataError if no training game has the labels that are to be learnt."""
    if data.labels == "visits" and train.searched == 0:
        raise DataError(
            f"no training game has visits of a search ({', '.join(data.stores)}): self-play of a net "
            "stores them (`variant-ai generate --engine net:FILE`); use the label `move` to learn the "
            "moves played"
        )
    if values.source != "result" and train.valued == 0:
        name = "root value" if values.source == "root" else "score"
        raise DataError(
            f"no training game has a {name} ({', '.join(data.stores)}); use the value label `result`"
        )


def count_trained(
    data: DataConfig, stores: Sequence[Store], games: Sequence[NDArray[np.int64]]
) -> int:
    """Number of games of these stores, one array of indices each, that a training used.

    A game is recognised by its start and moves, so the stores may be merged or filtered ones. Stores of
    the training are found by their contents, among these stores and at their own paths; games of
    those that are nowhere are not counted.
    """
    own = _stores_of(data, stores)
    if not own:
        return 0
    everything = [np.arange(len(store)) for store in own]
    try:
        plan = parse_split(data.split, data.seed)
        if plan is not None:
            everything = [split.train for split in split_stores(own, plan)]
    except DataError:  # a side that no store has games on: that of the store that is not found
        pass
    return shared_games(own, everything, stores, games)


def _stores_of(data: DataConfig, others: Sequence[Store]) -> list[Store]:
    """The stores of a training that are unchanged at their paths or have the contents of another one."""
    known = {store.content_hash: store for store in others}
    found: list[Store] = []
    for path, content in zip(data.stores, data.hashes, strict=False):  # validation stores follow
        if content in known:
            found.append(known[content])
            continue
        with suppress(DataError, OSError):
            store = Store(path)
            if store.content_hash == content:
                found.append(store)
    return found


def data_of_file(metadata: Mapping[str, str]) -> DataConfig | None:
    """Data of the training of an ONNX file, from its metadata; its stores have no paths. None if it
    has none of it, or not in our form."""
    try:
        hashes = json.loads(metadata.get("data_hashes", "[]"))
        trained = hashes[: int(metadata.get("train_stores", len(hashes)))]
        data = {"stores": [""] * len(trained), "hashes": trained}
        split = {"split": metadata.get("data_split", NO_SPLIT)}
        return DataConfig.model_validate(data | split | {"seed": metadata.get("split_seed", 0)})
    except (TypeError, ValueError):
        return None


def _digest(*sides: list[NDArray[np.int64]]) -> str:
    """Digest of the games on each side, from which a run recognises its split."""
    digest = hashlib.sha256()
    for side in sides:
        for games in side:
            digest.update(len(games).to_bytes(8, "little"))
            digest.update(games.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def _digest_of_scores(stores: Sequence[Store]) -> str:
    """Digest of the scores of all games, which content hashes leave out."""
    digest = hashlib.sha256()
    for store in stores:
        digest.update(len(store).to_bytes(8, "little"))
        if store.scores is not None:
            digest.update(store.scores.astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def shared_games(
    stores: Sequence[Store],
    games: Sequence[NDArray[np.int64]],
    others: Sequence[Store],
    chosen: Sequence[NDArray[np.int64]],
) -> int:
    """Number of the `chosen` games of `others` that are also among `games` of `stores`."""
    trained = np.concatenate([points(store)[of] for store, of in zip(stores, games, strict=True)])
    pairs = zip(others, chosen, strict=True)
    return int(sum(np.isin(points(store)[of], trained).sum() for store, of in pairs))


def _train_source(
    stores: list[Store],
    encoder: Encoder,
    data: DataConfig,
    games: list[NDArray[np.int64]],
    sampling: Sampling,
) -> TrainSource:
    options: dict[str, Any] = {
        "batch": sampling.part,
        "seed": sampling.seed,
        "mirror": data.mirror,
        "forget_move_number": data.forget_move_number,
        "rules": sampling.rules,
        "labels": data.labels,
        "value_labels": data.value_labels,
    }
    rank, world = sampling.workers.rank, sampling.workers.world
    if not data.weights:
        with _naming_stores("to train on", stores):
            return Sampler(stores, encoder, games=games, rank=rank, world=world, **options)
    parts = []
    for number, (store, chosen) in enumerate(zip(stores, games, strict=True)):
        options["seed"] = part_seed(sampling.seed, number)
        with _naming_stores("to train on", [store]):
            parts.append(Sampler(store, encoder, games=chosen, **options))
    return MixedSampler(
        parts,
        data.weights,
        batch=sampling.part,
        rank=rank,
        world=world,
        batches=sampling.micro_batches,
    )


def _validation(
    stores: list[Store],
    encoder: Encoder,
    data: DataConfig,
    games: list[NDArray[np.int64]],
    sampling: Sampling,
) -> Sampler | None:
    """Sampler of the validation games; None if there are none."""
    if not any(map(len, games)):
        return None
    with _naming_stores("to validate on", stores):
        return Sampler(
            stores,
            encoder,
            batch=max(sampling.part, 256),
            seed=sampling.seed,
            games=games,
            rules=sampling.rules,
            labels=data.labels,
        )


@contextmanager
def _naming_stores(what: str, stores: list[Store]) -> Iterator[None]:
    """Add the side of the split and the stores to error messages."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{', '.join(str(s.path) for s in stores)}, {what}: {error}") from error


def seen_positions(store: Store, train: NDArray[np.int64], source: Sampler) -> NDArray[np.bool_]:
    """Mark the positions whose moves up to and including the next one also occur in a game of `train`.

    Returns bool [N] for the positions that `source`, a sampler of this store alone, sweeps.
    """
    shared = shared_prefix(store, train, source.origins[:, 1])
    places = source.swept()
    seen: NDArray[np.bool_] = places.plies < shared[places.games]
    return seen
