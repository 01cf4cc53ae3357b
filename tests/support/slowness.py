# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many times longer work takes now than on this machine at rest: for limits of tests, which count wall time.

slowness.py SECONDS    prints SECONDS times that, in whole seconds
"""

import os
import sys
import time


def slowness(seconds=0.5):
    """Wall time over processor time of busy processes, one a core; 1 at rest, 2 beside as many others."""
    cores = len(os.sched_getaffinity(0))
    workers = []
    for _ in range(cores):
        worker = os.fork()
        if worker == 0:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            os._exit(0)  # pylint: disable=protected-access
        workers.append(worker)
    used = [os.wait4(worker, 0)[2] for worker in workers]
    return max(1.0, cores * seconds / sum(each.ru_utime + each.ru_stime for each in used))


if __name__ == "__main__":
    print(round(int(sys.argv[1]) * slowness()))
