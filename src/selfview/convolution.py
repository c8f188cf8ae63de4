"""The convolution that images enter by: it settles the layout, and grey images learn quicker."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class FirstConvolution(nn.Conv2d):
    """`nn.Conv2d` whose result has its channels last in memory, as convolutions like it best.

    A layer takes over the layout of its input; but that of a grey image can't be told from its
    strides, so that a network of plain layers would go on in the slower one. Gradients of a grey
    image's convolution are matrix products here, on a processor in float32, where those of the
    library reach a tenth of the speed. All values are the same up to rounding.
    """

    def forward(self, x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        if channels > 1:
            return super().forward(x.contiguous(memory_format=torch.channels_last))
        x = x.reshape(n, height, width, 1).permute(0, 3, 1, 2)
        learns = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        if not learns or not x.is_cpu or torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        y: Tensor = _Grey.apply(x, self.weight, self.bias, self.stride, self.padding)  # type: ignore[no-untyped-call]
        return y

    def plain(self) -> nn.Conv2d:
        """The same as a layer of PyTorch's own."""
        sizes = (self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding)
        layer = nn.Conv2d(*sizes)  # type: ignore[arg-type]
        layer.load_state_dict(self.state_dict())
        return layer.requires_grad_(self.weight.requires_grad)


class _Grey(torch.autograd.Function):
    """A convolution of one channel with a bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, *at: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.at = {"kernel_size": weight.shape[2:], "stride": at[0], "padding": at[1]}
        return F.conv2d(x, weight, bias, *at)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        filters = len(weight)
        gradient = gradients[0].permute(0, 2, 3, 1).reshape(-1, filters)  # (places, filters)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            patches = (gradient @ weight.view(filters, -1)).view(len(x), -1, weight[0].numel())
            of_x = F.fold(patches.transpose(1, 2), x.shape[2:], **ctx.at)
        if ctx.needs_input_grad[1]:
            patches = F.unfold(x, **ctx.at).transpose(1, 2).reshape(len(gradient), -1)
            of_weight = (gradient.T @ patches).view_as(weight)
        if ctx.needs_input_grad[2]:
            of_bias = gradient.sum(0)
        return of_x, of_weight, of_bias, None, None
