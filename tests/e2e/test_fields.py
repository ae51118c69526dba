# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of a statement's fields, cli/fields.c, against what is printed, the man page and the completion."""

import os
import re
import subprocess

from tool import ROOT, run

# Members and attributes without a row: every record has a type, and a statement's attributes are all rows.
RECORD = ["type"]


def parts():
    """The rows of BREAKDOWN_TABLE(), as PART() in the table of fields."""
    with open(os.path.join(ROOT, "bpf", "event.h")) as f:
        names = re.findall(r'^\tROW\(\w+, "(\w+)", "', f.read(), re.M)
    assert names
    return "".join(f'\tPART("{name}"),\n' for name in names)


def source():
    with open(os.path.join(ROOT, "cli", "fields.c")) as f:
        text = f.read()
    text = text[text.index("const struct field field_rows[]"):text.index("{ .get = NULL }")]
    return text.replace("\tBREAKDOWN_TABLE(PART)\n", parts())


def rows(*macros):
    """The names in the first string of these macros, in the table's order; not of the rows of transactions alone."""
    table = re.sub(r"\{ (?:LEFT|RIGHT)[^}]*\bTRANSACTIONS,[^}]*\}", "", source())
    return re.findall(rf'\b(?:{"|".join(macros)})\((?:\d+, )?"([^"]+)"', table)


def columns():
    return rows("LEFT", "RIGHT", "PART", "PHASE")


def members():
    """In the order of the output: the time and the server are in the head of every record."""
    return RECORD + rows("JSON_HEAD") + ["server"] + rows("JSON", "JSON_STRING")


def attributes():
    found = re.findall(r'\bOTLP(?:_STRING|_FLAG|_GROUP)?\((\d+), "([^"]+)"', source())
    assert len({at for at, _ in found}) == len(found), "a position twice"
    return [name + "*" if name.endswith(".") else name for _, name in found]


def man_section(name):
    with open(os.path.join(ROOT, "cli", "dbslower.8")) as f:
        return re.search(rf"^\.Sh {name}\n(.*?)^\.Sh ", f.read(), re.M | re.S)[1]


def man_items(text):
    """The names of the first list of @text."""
    items = text[text.index(".Bl -tag"):text.index("\n.El")]
    return [name for names in re.findall(r"^\.It Cm (.*)$", items, re.M) for name in names.split(" , ")]


def test_every_row_has_a_getter():
    table = re.sub(r"(PART|PHASE)\([^)]*\),", "", source())
    entries = re.findall(r"\{ (?:LEFT|RIGHT|JSON|OTLP)[^}]*\}", table)
    assert len(entries) > 20 and all(re.search(r"\.get = |\bMEMBER\(", entry) for entry in entries)


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


def test_members_of_the_man_page():
    assert man_items(man_section("JSON")) == members()


def test_attributes_of_the_man_page():
    assert sorted(man_items(man_section("SPANS"))) == sorted(attributes())
