# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The end-to-end tests that do not apply to what an old release lacks: with FORCE=linux-4.18 they are left out."""

import fnmatch

from fallbacks import lacks
from tool import FORCE

ALWAYS = (999, 0)
OUT = [		# pattern of file::test, the release that has what it tests, the reason
]


def not_under_force(item):
    """Return whether @item does not apply to what FORCE forces."""
    name = item.nodeid.rpartition("/")[2]
    return bool(FORCE) and any(fnmatch.fnmatchcase(name, pattern) and (release == ALWAYS or lacks([], release)) for pattern, release, _ in OUT)
