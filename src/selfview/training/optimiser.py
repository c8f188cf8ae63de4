"""Adam, as the paper learns, whose state is named tensors."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim.adam import adam as fused_adam

from selfview.distributed import laid_out_as

BETAS = (0.9, 0.999)
EPS = 1e-8
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of every weight that has had a gradient


class Adam:
    """PyTorch's own kernel of Adam (Kingma, Ba, 2015) for a fixed list of weights.

    `torch.optim.Adam` imports PyTorch's compiler when it is made, which takes a fresh process as
    long as a small fit does.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.learning_rate = 0.0  # of the last step
        self.state: dict[int, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None], learning_rate: float) -> None:
        """Move the weights; one without a gradient stays."""
        self.learning_rate = learning_rate
        moved = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if not moved:
            return
        for i in moved:
            if i not in self.state:
                weight = self.parameters[i]
                zeros = torch.zeros_like(weight)
                count = torch.zeros((), dtype=torch.float32, device=weight.device)
                self.state[i] = {"step": count, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
        steps, means, squares = ([self.state[i][name] for i in moved] for name in MOMENTS)
        fused_adam(
            [self.parameters[i] for i in moved],
            # The fused kernel pairs entries by their place in memory.
            [laid_out_as(self.parameters[i], g) for i, g in enumerate(gradients) if g is not None],
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=learning_rate,
            weight_decay=0.0,
            eps=EPS,
            maximize=False,
        )

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """The state as named tensors."""
        return {
            f"{prefix}.{i}.{name}": tensor
            for i, moments in self.state.items()
            for name, tensor in moments.items()
        }

    def load(self, tensors: Mapping[str, Tensor], prefix: str) -> None:
        """Take the state that `tensors` named; ValueError if it is not one of these weights."""
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            if key.startswith(f"{prefix}."):
                number, name = key.removeprefix(f"{prefix}.").split(".", 1)
                i = int(number)
                weight = self.parameters[i] if 0 <= i < len(self.parameters) else None
                shape = None if weight is None else weight.shape
                if name not in MOMENTS or tensor.shape != (() if name == "step" else shape):
                    raise ValueError(f"{key} of shape {tuple(tensor.shape)} belongs to no weight")
                assert weight is not None
                own = tensor.to(weight.device, torch.float32)
                state.setdefault(i, {})[name] = own if name == "step" else laid_out_as(weight, own)
        if any(len(moments) < len(MOMENTS) for moments in state.values()):
            raise ValueError("a weight lacks some of its moments")
        self.state = state
