"""Built-in encoders, networks, searches and trainers pass the checks that plugins are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import SyntheticSource, tiny_config

from variant_ai.core.encoding.input_planes import SpecPlanes
from variant_ai.core.encoding.move_labels import FlatLabels
from variant_ai.core.nets import core_networks
from variant_ai.core.search.search import Search
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.run_folder import Observer
from variant_ai.testing import (
    check_input_encoder,
    check_label_encoder,
    check_network,
    check_search,
    check_trainer,
)

MINI = load_spec(builtin_specs()["minixiangqi"])
KERNEL = [n for n, p in builtin_specs().items() if load_spec(p).rules.engine == "kernel"]


@pytest.mark.parametrize("name", KERNEL)
def test_encoders(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    check_input_encoder(SpecPlanes, spec)
    check_label_encoder(FlatLabels, spec)


@pytest.mark.parametrize("name", ["risev2-mobile-small", "alphazero-8v-map"])
def test_networks(name: str) -> None:
    check_network(core_networks()[name], MINI)


def test_search() -> None:
    check_search(Search, MINI)


def test_trainer(tmp_path: Path) -> None:
    def make(folder: Path, observer: Observer) -> Trainer:
        config, source = tiny_config(steps=8), SyntheticSource()
        return Trainer(config, source, None, folder, observer=observer, tensorboard=False)

    check_trainer(make, tmp_path)


def test_what_is_wrong_is_found() -> None:
    class Late(SpecPlanes):
        def encode(self, positions, out, *, mirrored=False, raw=False):  # type: ignore[no-untyped-def]
            super().encode(positions, out, mirrored=False, raw=raw)
            out[-1] += len(positions)

    with pytest.raises(AssertionError, match="alone has other planes"):
        check_input_encoder(Late, MINI)

    class Few(FlatLabels):
        @property
        def of_map(self) -> np.ndarray:  # type: ignore[override]
            return np.where(super().of_map == 5, 6, super().of_map)

    with pytest.raises(AssertionError, match="of_map and to_map differ"):
        check_label_encoder(Few, MINI)
