"""Batch norm over the batch of all processes: moments, gradients and running statistics."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from selfview.distributed import Group, summed


@contextmanager
def synchronised(network: nn.Module, group: Group) -> Iterator[None]:
    """Within it, the batch norms of `network` normalise over the batch of all processes.

    Each is replaced by a twin with the same parameters and buffers, and comes back afterwards.
    """
    norms = [
        (parent, name, child)
        for parent in network.modules()
        for name, child in parent._modules.items()  # a norm that stands twice is there twice
        if isinstance(child, _BatchNorm) and group.size > 1
    ]
    try:
        for parent, name, norm in norms:
            setattr(parent, name, _twin(norm))
        yield
    finally:
        for parent, name, norm in norms:
            setattr(parent, name, norm)


def _twin(norm: _BatchNorm) -> nn.Module:
    on_cpu = all(t.device.type == "cpu" for t in norm.state_dict().values())
    kind = GlobalBatchNorm if on_cpu else nn.SyncBatchNorm  # which takes no processor's tensors
    twin = kind(norm.num_features, norm.eps, norm.momentum, affine=False, track_running_stats=False)
    twin.affine, twin.track_running_stats = norm.affine, norm.track_running_stats
    for name, parameter in norm.named_parameters():
        setattr(twin, name, parameter)
    for name, buffer in norm.named_buffers():
        twin.register_buffer(name, buffer)
    return twin.train(norm.training)


class GlobalBatchNorm(_BatchNorm):
    """Batch norm whose moments are those of the rows of all processes."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
            return nn.functional.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)
        # Sums are in float64, where the square of the mean can be taken off again without loss.
        dims = [d for d in range(x.ndim) if d != 1]  # all but channels
        wide = x.double()
        count = wide.new_full((1,), x.numel() / x.shape[1])
        sums = summed(torch.cat([wide.sum(dims), wide.square().sum(dims), count]))
        n = sums[-1].detach()
        mean, square = (sums[:-1] / n).chunk(2)  # (channels,) each
        variance = (square - mean.square()).clamp_min(0)
        if self.training and self.track_running_stats and self.running_mean is not None:
            self._remember(mean, variance, float(n))
        shape = [1, -1] + [1] * (x.ndim - 2)
        y = ((wide - mean.view(shape)) * (variance + self.eps).rsqrt().view(shape)).float()
        if self.affine:
            y = torch.addcmul(self.bias.view(shape), y, self.weight.view(shape))
        return y.to(x.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, n: float) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        # Without a momentum the statistics are the mean over all batches.
        momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), momentum)
        unbiased = variance * (n / max(n - 1, 1))
        self.running_var.lerp_(unbiased.to(self.running_var), momentum)
