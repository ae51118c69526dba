# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of a statement's fields against what is printed, the man page and the completion."""

import os
import re
import subprocess

from tables import TRANSACTIONS, fields
from tool import ROOT, run


def columns():
    return [name for name, row in fields("column") if row["of"] != TRANSACTIONS]


def attributes():
    found = fields("attribute")
    assert len({row["position"] for _, row in found}) == len(found), "a position twice"
    return [name + "*" if name.endswith(".") else name for name, _ in found]


def man_section(name):
    with open(os.path.join(ROOT, "cli", "dbslower.8")) as f:
        return re.search(rf"^\.Sh {name}\n(.*?)^\.Sh ", f.read(), re.M | re.S)[1]


def man_items(text):
    """The names of the first list of @text."""
    items = text[text.index(".Bl -tag"):text.index("\n.El")]
    return [name for names in re.findall(r"^\.It Cm (.*)$", items, re.M) for name in names.split(" , ")]


def test_columns_of_the_man_page():
    assert man_items(man_section("COLUMNS")) == columns()


def test_columns_of_the_help():
    text = run("--help").stdout
    section = re.search(r"^Columns.*\n((?:  .*\n)+)", text, re.M)[1]
    assert re.findall(r"^  ([\w.]+) ", section, re.M) == columns()


def test_columns_of_the_completion():
    script = f"""source {os.path.join(ROOT, "cli", "completion.bash")}; compopt() {{ :; }}
COMP_WORDS=(dbslower -o ""); COMP_CWORD=2; _dbslower; printf '%s\\n' "${{COMPREPLY[@]}}" """
    path = os.path.dirname(os.environ["BUILD"] + "/dbslower")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": path + ":" + os.environ["PATH"]})
    assert done.returncode == 0 and sorted(done.stdout.split()) == sorted(columns()), done


def test_attributes_of_the_man_page():
    assert sorted(man_items(man_section("SPANS"))) == sorted(attributes())
