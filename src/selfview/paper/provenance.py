"""Where a result comes from: the commit, the versions, the machine, the moment."""

import contextlib
import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "openTSNE", "umap-learn")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def provenance() -> dict[str, Any]:
    """Everything about this process that could change a number or a time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"commit": commit(), "versions": versions(), "machine": machine(), "when": now}


@functools.cache
def commit() -> str:
    """The commit of the checkout that this package runs from, or its version.

    Changes that are not committed are said: "-dirty".
    """
    from selfview import __version__

    here = Path(__file__).parent
    try:
        top = _git(here, "rev-parse", "--show-toplevel")
        # A package installed inside somebody else's checkout is not of that checkout.
        if not (Path(top) / "src" / "selfview" / "paper" / Path(__file__).name).exists():
            return f"selfview {__version__}"
        words = ("describe", "--always", "--abbrev=12", "--exclude=*")
        changed = _git(
            here, "status", "--porcelain", "--untracked-files=no", "--", str(here.parent)
        )
        return _git(here, *words) + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return f"selfview {__version__}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python, of this package and of those that compute."""
    from selfview import __version__

    found = {"python": platform.python_version(), "selfview": __version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor, cores, the threads torch may use, and what the processor computes with."""
    import torch

    known: dict[str, str] = {}
    with contextlib.suppress(OSError):  # not Linux
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        known = {line.partition(":")[0].strip(): line.partition(":")[2] for line in lines}
    flags = known.get("flags", "").split()
    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "cpu": known.get("model name", "").strip() or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "flags": [flag for flag in FLAGS if flag in flags],
        "cuda": cuda,
        # A busy machine times badly.
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
    }
