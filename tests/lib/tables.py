# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables of the binary: what dbslower --tables prints."""

import functools
import json
import re

from tool import run

TRANSACTIONS = 2		# what has a column; 1: statements, 0: both


@functools.cache
def tables():
    done = run("--tables")
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def fields(member):
    """The values of this member of the rows that have it: the names in keys of JSON."""
    rows = [row for row in tables()["fields"] if row.get(member)]
    return [(re.search(r"\w[\w.]*", row[member].removeprefix(',{"key":'))[0], row) for row in rows]


def features():
    """{name: (commit, (MAJOR, MINOR), fallback or None)}"""
    found = {}
    for row in tables()["features"]:
        commit, major, minor = re.fullmatch(r"(\w{12}), Linux (\d+)\.(\d+)", row["since"]).groups()
        found[row["name"]] = commit, (int(major), int(minor)), row.get("fallback")
    return found
