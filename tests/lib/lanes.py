# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Four processes of pytest that share the tests, for ci/test. The first three each take the next file of which no other has
run a test. All have servers of their own, which run copies of the program: what one traces by a PID or a file, no other
runs. The last one starts the jobs of background.py, and when the others have ended runs the tests with the marker alone,
which trace all servers or concern all of the host, those that wait for jobs, and those that are calm.
"""

import os
import time

FOLDER = os.environ.get("DBSLOWER_LANES")	# where files are taken; none: one process runs all tests
NAMES = ("first", "second", "third", "last")
NUMBER = NAMES.index(os.environ.get("DBSLOWER_LANE", "first"))
LAST = NAMES[NUMBER] == "last"
mine = {}


def wants(comes_last):
    """Return whether this process is for such tests."""
    return not FOLDER or comes_last == LAST


def takes(item):
    """Return whether the test's file is this process's, which is the first that asks."""
    path = item.nodeid.partition("::")[0]
    if not LAST and path not in mine:
        try:
            os.close(os.open(os.path.join(FOLDER, path.replace("/", ":")), os.O_CREAT | os.O_EXCL))
            mine[path] = True
        except FileExistsError:
            mine[path] = False
    return mine.get(path, True)


def wait():
    """Wait until it is this process's turn."""
    while LAST and not os.path.exists(os.path.join(FOLDER, "last")):
        time.sleep(0.1)
