"""The zoo against the papers' tables: parameter counts, layers, shapes."""

from __future__ import annotations

import pytest
import torch
from synthetic import net_config

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import UnknownNameError, VariantAIError
from variant_ai.core.nets import NetConfig, NetShape, configure_for, core_networks
from variant_ai.core.nets.description import NetReport, describe, parameters
from variant_ai.core.nets.layers import SqueezeExcite
from variant_ai.core.spec import load_spec
from variant_ai.core.spec.catalogue import builtin_specs

XIANGQI = {"planes": 28, "board": (10, 9), "policy_planes": 50}
CRAZYHOUSE = {"planes": 34, "board": (8, 8), "policy_planes": 81}
LABELS = {10: 2086, 8: 2272}


def configured(
    name: str, variant: dict[str, object], head: str | None = None, **size: object
) -> NetConfig:
    actions = LABELS[variant["board"][0]] if head == "flat" else None
    return net_config(name, head=head, actions=actions, **variant, **size)


def built(name: str, variant: dict[str, object], head: str | None = None, **size: object):
    return configured(name, variant, head, **size).build()


def described(config: NetConfig) -> NetReport:
    return describe(config.build(), config.shape)


@pytest.mark.parametrize(
    ("name", "head", "count"),
    [
        ("risev2-mobile-small", "map", 3_452_817),
        ("risev2-mobile-small", "flat", 12_842_003),
        ("risev2-mobile", "map", 5_607_313),
        ("risev2-mobile", "flat", 14_996_499),
        ("risev3-mobile-small", "map", 2_781_045),
        ("risev3-mobile", "map", 5_839_221),
    ],
)
def test_parameters_of_thesis_table_4_13(name: str, head: str, count: int) -> None:
    assert parameters(built(name, XIANGQI, head, pool="window")) == count


def test_crazyhouse_risev2() -> None:
    net = built("risev2-mobile", CRAZYHOUSE)
    assert parameters(net) == 4_820_113
    # On 8 x 8 the thesis's window is the whole board.
    assert parameters(built("risev2-mobile", CRAZYHOUSE, pool="window")) == 4_820_113


def test_small_is_large_with_options() -> None:
    small = built("risev2-mobile-small", XIANGQI)
    large = built("risev2-mobile", XIANGQI, blocks=5, pyramid=False)
    assert small.state_dict().keys() == large.state_dict().keys()
    assert parameters(small) == parameters(large)


def test_risev2_reads_like_table_5() -> None:
    layers = described(configured("risev2-mobile", CRAZYHOUSE)).layers
    assert [layer.kind for layer in layers[:3]] == ["conv 3 x 3, 256", "batchnorm", "relu"]
    widths = [int(layer.kind.split()[-1]) for layer in layers if layer.kind.startswith("dconv")]
    assert widths == [128 + 64 * i for i in range(13)]
    last = [layer.kind for layer in layers if layer.name.startswith("tower.12.")]
    assert last == [
        "fc, 128", "relu", "fc, 256", "sigmoid",
        "conv 1 x 1, 896", "batchnorm", "relu",
        "dconv 3 x 3, 896", "batchnorm", "relu",
        "conv 1 x 1, 256", "batchnorm",
    ]  # fmt: skip
    policy = [layer.kind for layer in layers if layer.name.startswith("policy.")]
    assert policy == ["conv 3 x 3, 256", "batchnorm", "relu", "conv 3 x 3, 81", "flatten"]
    value = [layer.kind for layer in layers if layer.name.startswith("value.")]
    assert value == [
        "conv 1 x 1, 8", "batchnorm", "relu", "flatten", "fc, 256", "relu", "fc, 1", "tanh"
    ]  # fmt: skip


def test_risev2_attention_only_in_the_last_five_blocks() -> None:
    tower = built("risev2-mobile", XIANGQI).tower
    has = [any(isinstance(m, SqueezeExcite) for m in block.modules()) for block in tower]
    assert has == [False] * 8 + [True] * 5


def test_risev3_gates_are_hard_and_stand_last() -> None:
    net = built("risev3-mobile-small", XIANGQI)
    layers = described(configured("risev3-mobile-small", XIANGQI)).layers
    assert {x.kind for x in layers if x.kind.endswith("sigmoid")} == {"hardsigmoid"}
    kernels = [m.kernel_size[0] for m in net.tower.modules() if getattr(m, "groups", 1) > 1]
    assert kernels == [3, 3, 3, 5, 5]
    assert isinstance(list(net.tower[0].branch)[-1], SqueezeExcite)


def test_preactivation_block_has_three_norms_and_one_relu() -> None:
    report = described(configured("alphazero-preact-8v-map", CRAZYHOUSE, blocks=2, channels=8))
    kinds = [layer.kind for layer in report.layers if layer.name.startswith("tower.0.")]
    assert kinds == [
        "batchnorm", "conv 3 x 3, 8", "batchnorm", "relu", "conv 3 x 3, 8", "batchnorm"
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "policy", "name"), [(4, 8, "4v8p"), (8, 16, "8v16p")])
def test_alphazero_flat_heads(value: int, policy: int, name: str) -> None:
    config = configured(f"alphazero-{name}", CRAZYHOUSE, "flat", channels=16)
    kinds = [layer.kind for layer in described(config).layers]
    assert kinds.count("conv 3 x 3, 16") == 1 + 2 * 19
    assert f"conv 1 x 1, {value}" in kinds
    assert f"conv 1 x 1, {policy}" in kinds
    assert "fc, 2272" in kinds


@pytest.mark.parametrize("name", sorted(core_networks()))
@pytest.mark.parametrize("variant", [XIANGQI, CRAZYHOUSE])
def test_every_net_builds_for_every_variant_and_head(name: str, variant: dict) -> None:
    for head in core_networks()[name].heads:
        net = built(name, variant, head, blocks=2, channels=8).eval()
        height, width = variant["board"]
        with torch.no_grad():
            value, logits = net(torch.rand(3, variant["planes"], height, width))
        actions = LABELS[height] if head == "flat" else variant["policy_planes"] * height * width
        assert value.shape == (3,)
        assert logits.shape == (3, actions)
        assert value.abs().max() <= 1


def test_output_is_fp32_under_autocast() -> None:
    net = built("risev2-mobile", XIANGQI, blocks=1, channels=8)
    with torch.autocast("cpu", torch.bfloat16):
        value, logits = net(torch.rand(4, 28, 10, 9))
    assert value.dtype == logits.dtype == torch.float32


def test_same_seed_same_weights() -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        net = built("risev2-mobile", XIANGQI, blocks=1, channels=8)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    assert torch.equal(weights(3), weights(3))
    assert not torch.equal(weights(3), weights(4))


def test_flops_of_a_layer_by_hand() -> None:
    report = described(configured("alphazero-8v-map", CRAZYHOUSE, blocks=1, channels=16))
    stem = report.layers[0]
    assert stem.flops == 2 * 34 * 9 * 16 * 64
    assert report.flops == sum(layer.flops for layer in report.layers)
    assert report.parameters == sum(layer.parameters for layer in report.layers)


class TestWrongInput:
    encoder = Encoder(load_spec(builtin_specs()["xiangqi"]))

    def test_net(self) -> None:
        with pytest.raises(UnknownNameError, match="did you mean 'risev2-mobile'"):
            configure_for("risev2mobile", self.encoder)

    def test_head(self) -> None:
        with pytest.raises(UnknownNameError, match=r"head of net alphazero-4v8p 'map'.*flat"):
            configure_for("alphazero-4v8p", self.encoder)

    def test_option(self) -> None:
        with pytest.raises(UnknownNameError, match="did you mean 'channels'"):
            configure_for("risev2-mobile", self.encoder, chanels=3)

    def test_value(self) -> None:
        with pytest.raises(VariantAIError, match="blocks = 0: at least 1 is expected"):
            configure_for("risev2-mobile", self.encoder, blocks=0)

    def test_window_on_a_small_board(self) -> None:
        size = {"planes": 9, "board": (5, 6), "policy_planes": 4}
        with pytest.raises(VariantAIError, match="the board has 5 x 6"):
            built("risev2-mobile", size, pool="window")


def test_config_builds_the_same_net_again() -> None:
    config = net_config("risev2-mobile", blocks=2, channels=8, **XIANGQI)
    again = type(config).model_validate_json(config.model_dump_json())
    assert again == config
    assert again.shape == NetShape(28, 10, 9, 4500, "map", 50)
    assert again.title == "risev2-mobile 2x8 map"
    assert parameters(again.build()) == parameters(config.build())
