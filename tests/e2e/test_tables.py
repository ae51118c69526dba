# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--tables, which only tests use: it is hidden, and what it prints is what --help prints."""

import re

from tables import tables
from tool import run


def test_is_hidden():
    assert "--tables" not in run("--help").stdout + run("--complete", "dbslower", "-").stdout
    assert run("--tables", "x").returncode == run("slow", "--tables").returncode == 2


def test_commands():
    section = re.search(r"^Commands.*:\n((?:  .*\n)+)", run("--help").stdout, re.M)[1]
    assert re.findall(r"^  (\w+) ", section, re.M) == [one["name"] for one in tables()["commands"]]


def test_options():
    """In the order of --help, with the words of it."""
    for command in tables()["commands"]:
        shown = re.findall(r"^ +(?:-\w, )?--([\w-]+)(?: (\S+))? +(.*)$", run(command["name"], "--help").stdout, re.M)
        assert shown == [(row["name"], row.get("arg", ""), row["help"]) for row in command["options"] if "help" in row]
