"""TensorBoard events of a fit, written as its epochs end."""

from pathlib import Path
from typing import Any

from selfview.errors import MissingDependencyError


class Events:
    """A writer of event files into `folder`, to be passed as `on_epoch`.

    Every metric of `history_` becomes a scalar of its own name; the step is the epoch. The file is
    made with the first epoch: what an interrupted run wrote from there on is then superseded.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingDependencyError(
                "--tensorboard needs tensorboard: pip install 'selfview[tensorboard]'"
            ) from error
        self.folder = folder
        self._make: Any = SummaryWriter
        self._writer: Any = None

    def __call__(self, end: Any) -> None:  # an EpochEnd
        if self._writer is None:
            self._writer = self._make(str(self.folder), purge_step=end.epoch)
        for name, value in end.metrics.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, end.epoch)
        self._writer.flush()

    @staticmethod
    def forget(folder: Path) -> None:
        """Remove the events in the folder, and the folder if nothing else is in it."""
        for path in folder.glob("events.out.tfevents.*"):
            path.unlink()
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._writer is not None:
            self._writer.close()
