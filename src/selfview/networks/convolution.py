"""Convolutions in the channels-last layout, with faster gradients on a CPU."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class Convolution(nn.Conv2d):
    """`nn.Conv2d` whose result is channels-last in memory, the layout in which it is fastest.

    A layer keeps the layout of its input. That of a grey image can't be seen from its strides, so a
    network of plain layers would go on in the slower one. On a CPU, gradients are matrix products
    where those of the library are slow: all of a grey image's, and the weights' in bfloat16. All
    values are the same up to rounding.

    The layout is worth 1.2 of a step of the paper's network in float32, 1.5 in bfloat16, of which
    the products are 1.2; of the default's smaller network 1.0 to 1.1, and the products cost it 1.1
    in bfloat16 (`benchmarks/passes.py`, two cores of a Xeon with AMX).
    """

    def forward(self, x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        if channels > 1:
            x = x.contiguous(memory_format=torch.channels_last)
        else:
            x = x.reshape(n, height, width, 1).permute(0, 3, 1, 2)
        kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        learns = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        if not learns or not x.is_cpu or (channels > 1 and kind != torch.bfloat16):
            return super().forward(x)
        bias = None if self.bias is None else self.bias.to(kind)
        given = (x.to(kind), self.weight.to(kind), bias, self.stride, self.padding)
        y: Tensor = _ByProducts.apply(*given)  # type: ignore[no-untyped-call]
        return y

    def plain(self) -> nn.Conv2d:
        """The same as a layer of PyTorch's own."""
        sizes = (self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding)
        layer = nn.Conv2d(*sizes)  # type: ignore[arg-type]
        layer.load_state_dict(self.state_dict())
        return layer.requires_grad_(self.weight.requires_grad)


class Flatten(nn.Flatten):
    """`nn.Flatten` whose gradient has its channels last, as the layers before it have theirs."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 4 and x.requires_grad:
            last = partial(Tensor.contiguous, memory_format=torch.channels_last)
            x.register_hook(last)  # type: ignore[no-untyped-call]
        return super().forward(x)

    def plain(self) -> nn.Flatten:
        """The same as a layer of PyTorch's own."""
        return nn.Flatten(self.start_dim, self.end_dim)


class _ByProducts(torch.autograd.Function):
    """A convolution of an image whose channels are last in memory."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, *at: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.at = at
        return F.conv2d(x, weight, bias, *at)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        stride, padding = ctx.at
        filters, channels, *kernel = weight.shape
        flat = gradients[0].permute(0, 2, 3, 1).reshape(-1, filters)  # (places, filters)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0] and (channels == 1 or not _by_onednn(x)):
            patches = (flat @ weight.reshape(filters, -1)).view(len(x), -1, weight[0].numel())
            # (n, channels * pixels of the kernel, places), whose overlaps are summed in float32
            exact = patches.to(torch.promote_types(x.dtype, torch.float32)).transpose(1, 2)
            of_x = F.fold(exact, x.shape[2:], kernel, padding=padding, stride=stride).to(x.dtype)
        elif ctx.needs_input_grad[0]:
            rest = ([0], stride, padding, (1, 1), False, (0, 0), 1, (True, False, False))
            of_x = torch.ops.aten.convolution_backward(gradients[0], x, weight, *rest)[0]
        if ctx.needs_input_grad[1]:
            product = flat.T @ _patches(x, kernel, stride, padding)
            of_weight = product.view(filters, *kernel, channels).permute(0, 3, 1, 2)
        if ctx.needs_input_grad[2]:
            of_bias = flat.sum(0)
        return of_x, of_weight, of_bias, None, None


def _by_onednn(x: Tensor) -> bool:
    """Does the library sum the gradient of `x` in float32?

    On a processor without bfloat16 convolutions it adds up overlapping patches in bfloat16, and
    their gradient is off by one part in fifty.
    """
    if x.dtype != torch.bfloat16:
        return True
    built_in: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built_in and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _patches(x: Tensor, kernel: Any, stride: Any, padding: Any) -> Tensor:
    """What a kernel sees at every place of an image: (places, pixels of the kernel * channels)."""
    if any(padding):
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    image = x.permute(0, 2, 3, 1).contiguous()
    windows = image.unfold(1, kernel[0], stride[0]).unfold(2, kernel[1], stride[1])
    # (n, rows, columns, channels, height, width)
    return windows.permute(0, 1, 2, 4, 5, 3).reshape(-1, kernel[0] * kernel[1] * x.shape[1])
