"""Crazyhouse nets layer by layer: [CrazyAra-preprint] tables 3 to 8, and the parameters of each layer
counted by hand. 34 planes of 8 x 8, 81 policy planes, 2272 labels."""

from __future__ import annotations

import pytest
from synthetic import net_config

from variant_ai.core.nets.description import Layer, NetReport, describe

Row = tuple[str, tuple[int, ...], int]
"""Kind, output without the batch, parameters."""
BOARD = (8, 8)


def report(name: str) -> NetReport:
    flat = name in ("alphazero-4v8p", "alphazero-8v16p")
    config = net_config(
        name, planes=34, board=BOARD, policy_planes=81, actions=2272 if flat else None
    )
    return describe(config.build(), config.shape)


def rows(layers: tuple[Layer, ...], under: str) -> list[Row]:
    return [(x.kind, x.output, x.parameters) for x in layers if x.name.startswith(f"{under}.")]


def conv(inputs: int, outputs: int, kernel: int, *, depthwise: bool = False) -> Row:
    weights = outputs * kernel**2 * (1 if depthwise else inputs)
    word = "dconv" if depthwise else "conv"
    return f"{word} {kernel} x {kernel}, {outputs}", (outputs, *BOARD), weights


def norm(channels: int) -> Row:
    return "batchnorm", (channels, *BOARD), 2 * channels


def relu(*shape: int) -> Row:
    return "relu", shape, 0


def dense(inputs: int, outputs: int) -> Row:
    return f"fc, {outputs}", (outputs,), inputs * outputs + outputs


STEM = [conv(34, 256, 3), norm(256), relu(256, *BOARD)]


def value_head(n: int) -> list[Row]:
    """Table 6."""
    return [
        conv(256, n, 1), norm(n), relu(n, *BOARD), ("flatten", (64 * n,), 0),
        dense(64 * n, 256), relu(256), dense(256, 1), ("tanh", (1,), 0),
    ]  # fmt: skip


def flat_head(n: int) -> list[Row]:
    """Table 7; its softmax is taken outside the net."""
    return [conv(256, n, 1), norm(n), relu(n, *BOARD), ("flatten", (64 * n,), 0),
            dense(64 * n, 2272)]  # fmt: skip


MAP_HEAD = [conv(256, 256, 3), norm(256), relu(256, *BOARD), conv(256, 81, 3),
            ("flatten", (5184,), 0)]  # fmt: skip
"""Table 8."""

RESIDUAL = [conv(256, 256, 3), norm(256), relu(256, *BOARD), conv(256, 256, 3), norm(256),
            relu(256, *BOARD)]  # fmt: skip
"""Table 3: the last ReLU stands behind the shortcut."""

PREACT = [norm(256), conv(256, 256, 3), norm(256), relu(256, *BOARD), conv(256, 256, 3), norm(256)]
"""Table 4."""


@pytest.mark.parametrize(
    ("name", "value", "policy"),
    [
        ("alphazero-4v8p", value_head(4), flat_head(8)),
        ("alphazero-8v16p", value_head(8), flat_head(16)),
        ("alphazero-8v-map", value_head(8), MAP_HEAD),
    ],
)
def test_table_3(name: str, value: list[Row], policy: list[Row]) -> None:
    found = report(name)
    assert rows(found.layers, "stem") == STEM
    for block in range(19):
        assert rows(found.layers, f"tower.{block}") == RESIDUAL
    assert not rows(found.layers, "tower.19")
    assert rows(found.layers, "value") == value
    assert rows(found.layers, "policy") == policy
    assert found.parameters == sum(p for _, _, p in [*STEM, *RESIDUAL * 19, *value, *policy])


def test_table_4() -> None:
    found = report("alphazero-preact-8v-map")
    assert rows(found.layers, "stem") == STEM
    for block in range(19):
        assert rows(found.layers, f"tower.{block}") == PREACT
    end = [(x.kind, x.output) for x in found.layers if x.name in ("tower.19", "tower.20")]
    assert end == [("batchnorm", (256, 8, 8)), ("relu", (256, 8, 8))]
    assert rows(found.layers, "value") == value_head(8)
    assert rows(found.layers, "policy") == MAP_HEAD
    counted = [*STEM, *PREACT * 19, norm(256), *value_head(8), *MAP_HEAD]
    assert found.parameters == sum(p for _, _, p in counted)


def test_table_5() -> None:
    found = report("risev2-mobile")
    assert rows(found.layers, "stem") == STEM
    counted = [*STEM]
    for block in range(13):
        width = 128 + 64 * block
        attention = [dense(256, 128), relu(128), dense(128, 256), ("sigmoid", (256,), 0)]
        expected = [
            *(attention if block >= 8 else []),
            conv(256, width, 1), norm(width), relu(width, *BOARD),
            conv(width, width, 3, depthwise=True), norm(width), relu(width, *BOARD),
            conv(width, 256, 1), norm(256),
        ]  # fmt: skip
        assert rows(found.layers, f"tower.{block}") == expected
        counted += expected
    assert not rows(found.layers, "tower.13")
    assert rows(found.layers, "value") == value_head(8)
    assert rows(found.layers, "policy") == MAP_HEAD
    counted += [*value_head(8), *MAP_HEAD]
    assert found.parameters == sum(p for _, _, p in counted) == 4_820_113


def test_windows_are_an_option() -> None:
    config = net_config("risev2-mobile", planes=34, board=BOARD, policy_planes=81)
    assert config.size["pool"] == "global"
