# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Two processes of pytest that share the tests, for ci/test: each takes the next file of which the other has run no test. Both
have servers of their own, which run copies of the program: what one traces by a PID or a file, the other does not run.

Tests with the marker alone come after them, in one process: they trace whatever runs on the host, or change what concerns
all of it.
"""

import os

FOLDER = os.environ.get("DBSLOWER_LANES")	# where files are taken; none: one process runs all tests
NUMBER = int(os.environ.get("DBSLOWER_LANE", "0"))	# 0 or 1; the first one also runs jobs
mine = {}


def takes(item):
    """Return whether the test's file is this process's; the first of them that asks has it."""
    path = item.nodeid.partition("::")[0]
    if FOLDER and path not in mine:
        try:
            os.close(os.open(os.path.join(FOLDER, path.replace("/", ":")), os.O_CREAT | os.O_EXCL))
            mine[path] = True
        except FileExistsError:
            mine[path] = False
    return mine.get(path, True)
