"""The exceptions and warnings of selfview.

Everything raised on purpose is a `SelfViewError`; what the caller can mend by calling differently
is also a `ValueError`, as scikit-learn's users expect.
"""


class SelfViewError(Exception):
    """Root of all errors that selfview raises on purpose."""


class InputError(SelfViewError, ValueError):
    """The data, a parameter or an option can't be used as given."""


class FileFormatError(SelfViewError, ValueError):
    """A file is damaged, of an unknown format, or not what its name says."""


class CheckpointError(SelfViewError, OSError):
    """State can't be written to, or read from, its folder."""


class TrainingError(SelfViewError):
    """Training can't go on."""


class DownloadError(SelfViewError):
    """A file could not be fetched, or what came isn't what its publisher says it should be."""


class MissingDependencyError(SelfViewError, ImportError):
    """An optional package is needed; the message holds the command that installs it."""


class SelfViewWarning(UserWarning):
    """Root of all warnings that selfview gives."""


class CollapseWarning(SelfViewWarning):
    """A fit diverged, collapsed, or found nothing beyond PCA: `health_` tells which, and why."""
