"""Memory is kept while a model trains, and given back afterwards."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, torch
from selfview.allocator import kept_memory

def faults():
    '''Pages that the system had to give while a block of 40 MiB came and went twenty times.'''
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(10 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20

torch.ones(10 << 20)
before = faults()
with kept_memory():
    torch.ones(10 << 20)
    within, held = faults(), resident()
print(before, within, held, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep memory")
def test_blocks_are_kept_within_and_given_back_after():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, within, held, left = map(int, done.stdout.split())
    assert within < before / 2
    assert left < held - 100
