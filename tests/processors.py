"""The numeric tests as other processors would run them: `make test-processors`.

Every library that computes is held to a set of instructions, from those that all processors have
up to this one's own, with one thread and with two; those between the lowest and its own with one.
More than the processor has is left out, for PyTorch and OpenBLAS would take it and crash. The
processor as it is, on one thread, is `make test`.

    python tests/processors.py [ARGUMENTS OF PYTEST]
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

LEVELS = {  # by PyTorch's names for them
    "DEFAULT": {
        "ATEN_CPU_CAPABILITY": "default",  # PyTorch's own kernels
        "DNNL_MAX_CPU_ISA": "SSE41",  # its convolutions
        "MKL_CBWR": "COMPATIBLE",  # its matrix products
        "OPENBLAS_CORETYPE": "Nehalem",  # NumPy's and SciPy's
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",  # all but the baseline
    },
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "AVX512": {},
}
NUMERIC = (  # files that a processor's arithmetic may change
    "test_whitening.py",
    "test_convolution.py",
    "test_estimator_checks.py",
    "test_clusters.py",
    "test_explain.py",
    "test_groups.py",
    "test_losses.py",
    "test_method.py",
    "test_neighbours.py",
    "test_projection.py",
    "test_targets.py",
    "test_column_scales.py",
    "test_views.py",
    "baselines/test_classical.py",
    "evaluation/test_measures.py",
    "reliability/test_numbers.py",
)
# Of their tests, those that take longest.
LONGEST = ("grid_search", "hundred_thousand", "raw_wine", "CPC", "AdversarialAutoEncoder")


def environment(level: str, threads: int, own: str) -> dict[str, str]:
    """That of this process with a level's limits; the processor's own has none."""
    found = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if level == own:
        return found
    limits = dict(LEVELS[level])
    # NumPy warns of features that it doesn't know, or that the processor doesn't have.
    unwanted = limits.pop("NPY_DISABLE_CPU_FEATURES").split()
    there = [name for name in __cpu_dispatch__ if __cpu_features__[name] and name in unwanted]
    return found | limits | {"NPY_DISABLE_CPU_FEATURES": " ".join(there)}


def main() -> int:
    own = torch.backends.cpu.get_cpu_capability()
    names = list(LEVELS) if own in LEVELS else [own]
    failed = []
    for level in names[: names.index(own) + 1]:
        for threads in (1, 2):
            run = f"{level} on {threads} thread{'s' * (threads > 1)}"
            if (level, threads) == (own, 1):
                print(f"== {run}: left to `make test`", flush=True)
                continue
            if threads == 2 and level not in (names[0], own):
                continue
            print(f"== {run}", flush=True)
            start = time.monotonic()
            # Two processes of one thread, or one of two.
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2" if threads == 1 else "0"]
            command += ["-k", f"not ({' or '.join(LONGEST)})"]
            files = [Path(__file__).parent / name for name in NUMERIC]
            done = subprocess.run(
                [*command, *sys.argv[1:], *files], env=environment(level, threads, own)
            )
            print(f"== {run}: {time.monotonic() - start:.0f} s", flush=True)
            failed += [run] if done.returncode else []
    for level in names[names.index(own) + 1 :]:
        print(f"== {level}: skipped, this processor doesn't have it", flush=True)
    print("failed: " + ", ".join(failed) if failed else "passed on every processor that was tried")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
