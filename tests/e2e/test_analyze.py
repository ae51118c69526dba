# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make analyze."""

import os
import shutil
import subprocess

import pytest

from tool import ROOT


def test_it_is_not_deaf(tmp_path):
    """It finds what is wrong."""
    if not shutil.which("cppcheck"):
        pytest.skip("no cppcheck (ci/dependencies analyze)")
    for folder in ("ci", "base", "usdt", "host", "loader", "sql", "probe", "db", "cli"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "good.c").write_text("int x;\n")
    shutil.copy(os.path.join(ROOT, "ci", "analyze"), tmp_path / "ci")
    (tmp_path / "db" / "bad.c").write_text("int f(void);\nint f(void) { int a[4] = { 0 }; return a[4]; }\n")
    done = subprocess.run([tmp_path / "ci" / "analyze", "cppcheck"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "arrayIndexOutOfBounds" in done.stdout + done.stderr, done
