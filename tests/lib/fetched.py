# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What ci/fetch brings from outside, kept in CACHE."""

import fcntl
import os
import subprocess

from tool import CACHE, ROOT

CANNOT_BE_HAD = 3


class CannotBeHad(Exception):
    """Something from outside that is not here and cannot be fetched."""


def fetched(kind, *what, folder, more=()):
    """The path of @folder in CACHE after ci/fetch KIND WHAT FOLDER MORE."""
    path = os.path.join(CACHE, folder)
    os.makedirs(CACHE, exist_ok=True)
    # Another process of ci/test may be at it.
    with open(os.path.join(CACHE, f"{folder}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([os.path.join(ROOT, "ci", "fetch"), kind, *what, path, *more],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)
    if done.returncode == CANNOT_BE_HAD:
        raise CannotBeHad(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return path
