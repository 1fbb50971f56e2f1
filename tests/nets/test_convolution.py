"""The gradient with boards side by side is that of the plain convolution."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from variant_ai.core.nets import layers
from variant_ai.core.nets.layers import ABREAST, BoardConv, gradient_of_weights


def case(boards: int, height: int, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """x, weight and the gradient of the output."""
    torch.manual_seed(boards + height)
    x = torch.randn(boards, 6, height, width, dtype=dtype)
    weight = torch.randn(10, 6, 3, 3, dtype=dtype)
    gradient = torch.randn(boards, 10, height, width, dtype=dtype)
    return x.contiguous(memory_format=torch.channels_last), weight, gradient


def plain_gradient(x: Tensor, weight: Tensor, gradient: Tensor) -> Tensor:
    found = torch.nn.grad.conv2d_weight(x, list(weight.shape), gradient, padding=1)
    assert isinstance(found, Tensor)
    return found


@pytest.mark.parametrize("height, width", [(8, 8), (10, 9), (3, 1), (1, 5)])
@pytest.mark.parametrize("times", [1, 3])
def test_gradient_of_weights_is_the_plain_one(height: int, width: int, times: int) -> None:
    x, weight, gradient = case(times * ABREAST, height, width, torch.float64)
    expected = plain_gradient(x, weight, gradient)
    found = gradient_of_weights(gradient.contiguous(memory_format=torch.channels_last), x, weight)
    torch.testing.assert_close(found, expected)


def test_any_layout_is_read() -> None:
    x, weight, gradient = case(ABREAST, 4, 5, torch.float64)
    found = gradient_of_weights(gradient.contiguous(), x.contiguous(), weight)
    torch.testing.assert_close(found, plain_gradient(x, weight, gradient))


@pytest.fixture
def abreast(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the weights whose gradient was computed side by side, on any processor."""
    seen: list[tuple[int, ...]] = []

    def watched(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        seen.append(tuple(weight.shape))
        return gradient_of_weights(gradient, x, weight)

    monkeypatch.setattr(layers, "has_amx", lambda: True)
    monkeypatch.setattr(layers, "gradient_of_weights", watched)
    return seen


def twins(kernel: int = 3, *, groups: int = 1, bias: bool = False) -> tuple[nn.Module, nn.Module]:
    """A plain convolution and one of ours with the same weights."""
    torch.manual_seed(0)
    how = {"padding": kernel // 2, "groups": groups, "bias": bias}
    plain, ours = nn.Conv2d(8, 8, kernel, **how), BoardConv(8, 8, kernel, **how)
    ours.load_state_dict(plain.state_dict())
    return plain, ours


def learnt(layer: nn.Module, x: Tensor, *, bf16: bool) -> list[Tensor]:
    """Output, gradient of the input and of the weights."""
    x = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        out = layer(x)
    out.float().square().sum().backward()
    assert x.grad is not None
    return [out, x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]


def test_in_bf16_output_and_both_gradients_are_those_of_the_plain_layer(
    abreast: list[tuple[int, ...]],
) -> None:
    plain, ours = twins()
    x = torch.randn(2 * ABREAST, 8, 10, 9)
    expected, found = learnt(plain, x, bf16=True), learnt(ours, x, bf16=True)
    assert abreast == [(8, 8, 3, 3)]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        scale = other.float().abs().max()
        # Sums in another order. Where the processor has no bf16, some are rounded twice to 8 bits.
        assert (one.float() - other.float()).abs().max() <= scale / 64


@pytest.mark.parametrize(
    ("why", "layer", "boards", "bf16"),
    [
        ("fp32", twins()[1], ABREAST, False),
        ("a number of boards that does not fit", twins()[1], ABREAST + 1, True),
        ("a kernel of one square", twins(1)[1], ABREAST, True),
        ("a kernel of 5 x 5", twins(5)[1], ABREAST, True),
        ("depthwise", twins(groups=8)[1], ABREAST, True),
        ("bias", twins(bias=True)[1], ABREAST, True),
    ],
)
def test_anything_else_is_left_to_torch(
    why: str, layer: nn.Module, boards: int, bf16: bool, abreast: list[tuple[int, ...]]
) -> None:
    learnt(layer, torch.randn(boards, 8, 4, 4), bf16=bf16)
    assert not abreast, why


def test_frozen_weights_and_evaluation_take_the_plain_way(abreast: list[tuple[int, ...]]) -> None:
    layer = twins()[1].requires_grad_(False)
    learnt(layer, torch.randn(ABREAST, 8, 4, 4), bf16=True)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert twins()[1](torch.randn(ABREAST, 8, 4, 4)).grad_fn is None
    assert not abreast
