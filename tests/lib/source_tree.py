# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Copies of the source tree, and make in them."""

import os
import shutil
import subprocess

from tool import BUILD, ROOT

JOBS = f"-j{os.cpu_count() or 1}"


def copy_tree(to):
    """The sources without git and without what was built."""
    built = os.path.relpath(BUILD, ROOT)
    skip = {".git", "build", "__pycache__", ".pytest_cache", built.split(os.sep)[0]} - {"..", "."}

    def ignore(folder, names):
        return [name for name in names if name == "__pycache__" or (folder == ROOT and name in skip)]
    shutil.copytree(ROOT, to, ignore=ignore)
    return str(to)


def make(folder, *args):
    env = {key: value for key, value in os.environ.items()
           if key not in ("BUILD", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CC", "CFLAGS")}
    done = subprocess.run(["make", "-C", str(folder), JOBS, *args], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1800)
    assert done.returncode == 0, f"make {' '.join(args)}: exit {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout
