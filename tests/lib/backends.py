# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulated PostgreSQL of fixtures/backends.c: any number of statements and of backends that end."""

import os
import shutil
import subprocess

import pytest

from commanded import Commanded
from tool import FIXTURES

SOURCE = os.path.join(FIXTURES, "backends.c")


def build(folder, name="postgres"):
    """Compiles it, an inode of its own. Returns its path."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    path = os.path.join(str(folder), name)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-rdynamic", "-pthread", "-o", path, SOURCE], check=True)
    return path


class Backends(Commanded):
    """It while it runs."""
