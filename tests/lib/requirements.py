# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Skip a test where the machine lacks something that the test requires."""

import importlib.util
import os
import shutil

import pytest

from cluster import server_bindir
from mariadb import maria_server
from tool import CACHE


def need_server():
    if not server_bindir():
        pytest.skip("no PostgreSQL server under /usr/lib/postgresql (package postgresql-15)")


def need_root():
    if os.geteuid() != 0:
        pytest.skip("tracing needs root")


def need_maria():
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")


def need_terminal():
    """tmux, and what emulates a terminal for lib/terminal.py."""
    for package, there in (("tmux", shutil.which("tmux")), ("python3-pyte", importlib.util.find_spec("pyte"))):
        if not there:
            pytest.skip(f"{package} is not installed")


def need_promtool():
    """Return its path; the package prometheus would start a service."""
    found = shutil.which("promtool", path=os.path.join(CACHE, "monitoring", "usr", "bin") + os.pathsep + os.environ["PATH"])
    if not found:
        pytest.skip("no promtool (package prometheus, which ci/dependencies test unpacks)")
    return found
