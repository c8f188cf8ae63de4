"""A fit that goes on from its checkpoint, and ends in the middle of an epoch if it is told to.

Usage: [torchrun ...] resized_fit.py FOLDER LAUNCH STEPS ; every process writes the numbers of the
rows that it is given into FOLDER/rows-LAUNCH-RANK.txt, a line for each step.
"""

import sys
import warnings
from pathlib import Path

import cases
import numpy as np
import torch

from selfview import CollapseWarning
from selfview.distributed import launched
from selfview.estimator import base
from selfview.saving.checkpoints import Checkpoints
from selfview.training import loop


class EndedError(Exception):
    """So many steps are done."""


def noting(take, journal, most):
    """`train`, such that it notes the rows of every step, and raises before one too many."""

    def train(phases, optimisers, batch, *rest, **options):
        done = 0

        def noted(index):
            nonlocal done
            if done == most:
                raise EndedError
            done += 1
            with journal.open("a") as file:
                file.write(" ".join(map(str, index.tolist())) + "\n")
            return batch(index)

        return take(phases, optimisers, noted, *rest, **options)

    return train


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, launch, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    Checkpoints.INTERVAL = 0.0  # a state after every step
    with launched() as group:
        base.train = noting(loop.train, folder / f"rows-{launch}-{group.rank}.txt", most)
        given = dict(batch_size=32, neighbours=0, checkpoint=folder / "checkpoint")
        model = cases.smooth_model(3, **given)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CollapseWarning)
                model.fit(cases.rows(100))
        except EndedError:
            sys.exit(0)
        if group.is_main:
            weights = [p.detach().numpy().ravel() for p in model.network_.parameters()]
            np.save(folder / "weights.npy", np.concatenate(weights))
