"""Messages and bytes that two processes exchange in a training step, counted as they are sent.

    python benchmarks/traffic.py

Reductions are counted in the code that asks for them. Gradients go through PyTorch's
DistributedDataParallel: four bytes a weight, in buckets of up to 25 MiB. Nothing is timed.
"""

import os
import subprocess
import sys
import warnings
from collections import Counter

CASES = (  # features, prototypes k
    (784, 10),
    (784, 100),
    (784, 1000),
)
ROWS, STEPS = 32, 20


def count(features: int, k: int) -> tuple[Counter[str], int]:
    """Calls and bytes of the reductions of a fit, by what they are for; and the weights."""
    import numpy as np
    import torch.distributed as dist

    from selfview import SelfView

    sent: Counter[str] = Counter()
    original = dist.all_reduce

    def counted(x, *options):  # type: ignore[no-untyped-def]
        kind = "batch norm" if x.ndim == 1 and x.dtype.itemsize == 8 and len(x) > 100 else "rest"
        kind = "transport" if len(x.shape) == 1 and x.shape[0] == k else kind
        sent[f"{kind} calls"] += 1
        sent[f"{kind} bytes"] += x.numel() * x.element_size()
        return original(x, *options)

    dist.all_reduce = counted
    X = np.random.default_rng(0).normal(size=(ROWS, features)).astype(np.float32)
    model = SelfView(n_prototypes=k, neighbours=0, epochs=STEPS, random_state=0, verbose=0).fit(X)
    dist.all_reduce = original
    return sent, sum(p.numel() for p in model.network_.parameters())


def main() -> None:
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    dist.init_process_group("gloo")
    for features, k in CASES:
        sent, weights = count(features, k)
        if dist.get_rank() == 0:
            told = ", ".join(
                f"{kind} {sent[f'{kind} calls'] / STEPS:.0f} of "
                f"{sent[f'{kind} bytes'] / STEPS / 1000:.1f} kB in all"
                for kind in ("batch norm", "transport", "rest")
            )
            print(f"{features} features, k = {k}: {told}; gradients {4 * weights / 1e6:.1f} MB")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:
        run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        environment = {"OMP_NUM_THREADS": "1"} | os.environ
        sys.exit(subprocess.run([*run, __file__], env=environment).returncode)
