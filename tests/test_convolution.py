"""Convolutions against PyTorch's own, which knows nothing of ours."""

import pytest
import torch
from torch import nn

from selfview.networks.convolution import Convolution, Flatten


def twins(channels, padding=0, stride=2):
    torch.manual_seed(0)
    ours = Convolution(channels, 6, 5, stride, padding)
    plain = nn.Conv2d(channels, 6, 5, stride, padding)
    plain.load_state_dict(ours.state_dict())
    return ours, plain


def gradients(layer, x):
    y = layer(x)
    return [y, *torch.autograd.grad(y.square().sum(), [x, layer.weight, layer.bias])]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("padding", "stride"), [(0, 2), (2, 2), (0, 1)])
@pytest.mark.parametrize("shape", [(28, 28), (9, 17), (6, 5)])
def test_values_and_gradients_are_those_of_a_plain_convolution(channels, padding, stride, shape):
    ours, plain = twins(channels, padding, stride)
    x = torch.randn(4, channels, *shape, requires_grad=True)
    for found, expected in zip(gradients(ours, x), gradients(plain, x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize(("padding", "stride"), [(0, 2), (2, 2), (0, 1)])
@pytest.mark.parametrize("shape", [(28, 28), (9, 17)])
def test_in_bfloat16_they_are_as_exact_as_those_of_a_plain_one(channels, padding, stride, shape):
    ours, plain = twins(channels, padding, stride)
    x = torch.randn(4, channels, *shape, requires_grad=True)
    exact = gradients(plain, x)
    with torch.autocast("cpu", torch.bfloat16):
        found, library = gradients(ours, x), gradients(plain, x)
    for a, b, true in zip(found, library, exact, strict=True):
        assert a.dtype == b.dtype
        # Of all entries: the largest error of a few is a matter of chance.
        error, usual = (a - true).norm(), (b - true).norm()
        assert error <= 1.2 * usual + 1e-3 * true.norm()


@pytest.mark.parametrize("channels", [1, 3, 16])
def test_in_bfloat16_overlapping_patches_are_summed_in_float32(channels):
    ours, plain = twins(channels, stride=1)
    x = torch.randn(4, channels, 28, 28, requires_grad=True)
    (exact,) = torch.autograd.grad(plain(x).sum(), x)
    with torch.autocast("cpu", torch.bfloat16):
        (found,) = torch.autograd.grad(ours(x).sum(), x)
    # 25 patches overlap; each of them, the weights and the sum are rounded once.
    assert (found - exact).norm() <= 2**-8 * exact.norm()


def test_gradients_are_right_by_finite_differences():
    ours, _ = twins(1, padding=2)
    ours.double()
    x = torch.randn(2, 1, 7, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ours, (x,), check_batched_grad=False)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("grad", [True, False])
def test_the_result_has_its_channels_last(channels, grad):
    ours, _ = twins(channels)
    with torch.set_grad_enabled(grad):
        y = ours(torch.randn(4, channels, 28, 28))
    assert y.stride() == (12 * 12 * 6, 1, 12 * 6, 6)


def test_only_what_is_asked_for_gets_a_gradient():
    ours, plain = twins(1)
    ours.weight.requires_grad_(False)
    x = torch.randn(3, 1, 12, 12, requires_grad=True)
    ours(x).sum().backward()
    plain(y := x.detach().clone().requires_grad_()).sum().backward()
    assert ours.weight.grad is None
    torch.testing.assert_close(ours.bias.grad, plain.bias.grad)
    torch.testing.assert_close(x.grad, y.grad)


def test_a_plain_copy_has_the_same_weights():
    ours, _ = twins(1)
    x = torch.randn(2, 1, 12, 12)
    torch.testing.assert_close(ours.plain()(x), ours(x))
    assert type(ours.plain()) is nn.Conv2d


def test_flattened_images_learn_the_same_and_with_their_channels_last():
    images = torch.randn(3, 4, 5, 6).contiguous(memory_format=torch.channels_last)
    slopes = torch.randn(3, 120)
    found, expected = (images.clone().requires_grad_() for _ in range(2))
    middle = found * 2
    flat = Flatten()(middle)
    seen = []
    middle.register_hook(lambda gradient: seen.append(gradient.stride()))
    (flat * slopes).sum().backward()
    ((expected * 2).flatten(1) * slopes).sum().backward()
    torch.testing.assert_close(flat, images.flatten(1) * 2)
    torch.testing.assert_close(found.grad, expected.grad)
    assert seen == [images.stride()]
