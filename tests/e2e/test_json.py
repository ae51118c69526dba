# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/json.md, its schema and the code name the same members, and the examples are valid."""

import json
import os
import re

import pytest

import schema
from schema import SCHEMA
from tables import TRANSACTIONS, fields, tables
from tool import BUILD, ROOT, image, parsed, run

DEFS = SCHEMA["$defs"]


def source(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def sections():
    """{name of an object: its examples} of docs/json.md."""
    found = re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", source("docs", "json.md"), re.M | re.S)
    return {name: [re.sub(r"\n *", "", one.strip()) for one in re.findall(r"(?:^    .*\n?)+", text, re.M)] for name, text in found}


def without(one, *names):
    return {name: value for name, value in one.items() if name not in names}


def wrong_ones():
    """Objects that differ from an example in one thing that docs/json.md rules out."""
    page = {name: json.loads(examples[0]) for name, examples in sections().items() if examples}
    start, statement, hit, summary, wait = (page[name] for name in ("start", "statement", "hit", "summary", "lock_wait"))
    return {
        "more": {**start, "more": 1}, "number": {**start, "schema": 2}, "time": {**start, "time": "12:00"},
        "word": {**start, "type": "begin"}, "type": {**start, "host": 1}, "required": without(start, "host"),
        "negative": {**statement, "pid": -1}, "fraction": {**statement, "pid": 1.5}, "pair": without(statement, "truncated"),
        "member of member": {**statement, "server": {}}, "part": {**statement, "why_ms": {"cpu": "1"}},
        "tag": {**statement, "tags": {"route": 1}}, "element": {**wait, "holders": [{"queued": False}]},
        "elements": {**wait, "tag": [1, 2, 3, "4"]}, "one of two": {**hit, "function": "f"}, "none of two": without(hit, "provider", "probe"),
        "one of four": {**summary, "hits": 1}, "loss": {**summary, "lost": {"ring_full": -1}},
    }


def test_validation_is_on():
    if schema.jsonschema is None:
        pytest.skip("no jsonschema (package python3-jsonschema)")
    schema.jsonschema.Draft202012Validator.check_schema(SCHEMA)
    accepted = [name for name, one in wrong_ones().items() if not schema.complaint(one)]
    assert not accepted, accepted
    with pytest.raises(ValueError, match="not as in docs/json.md: .*'more'"):
        schema.validate(wrong_ones()["more"], b"")


def test_every_row_is_read():
    """ci/schema leaves out no row of a table."""
    rows = re.findall(r"^\| [^|]+ \|", source("docs", "json.md"), re.M)
    others = [one for one in DEFS.values() if one["additionalProperties"]]
    assert len(rows) == sum(len(one["properties"]) + 1 for one in DEFS.values()) + len(others)
    assert len(others) == 4 and all(one["properties"] or one in others for one in DEFS.values())


def test_units():
    """Durations and sizes have their unit in the name."""
    phases = [*DEFS["phases"]["properties"].items()]
    assert all(one["type"] == "number" and one["description"].endswith(", ms") for _, one in phases)
    for name, one in (one for one in schema.members() if one not in phases):
        assert (one.get("type") == "number") == (name.endswith("_ms") and "$ref" not in one), name
        assert ("bytes" in name) == (one.get("type") == "integer" and one["description"].partition("; ")[0].endswith(", bytes")), name


def words_of(name):
    """The values of the member 'type' of an object."""
    one = DEFS[name]["properties"]["type"]
    return one.get("enum", [one.get("const")])


LINES = [one["$ref"].split("/")[-1] for one in SCHEMA["oneOf"]]


def test_examples_are_valid():
    """Those of each type of object, with each word of type."""
    shown = [(name, parsed([one])[0]["type"]) for name, examples in sections().items() for one in examples]
    assert all(word in words_of(name) for name, word in shown)
    assert {word for name in LINES for word in words_of(name)} == {word for _, word in shown}


# Members of spans and metrics, as OpenTelemetry's .proto files name them, other than those in camel case.
OF_OTLP = {"attributes", "code", "flags", "key", "kind", "metrics", "name", "resource", "scope", "spans", "sum", "unit", "value"}

# Members of plans, as EXPLAIN names its own; docs/plans.md.
OF_PLANS = {"Cursor", "Level", "Plan", "Plans", "Truncated"}


def keys_of(value):
    """The names of all members of an object and of the objects in it."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_code_and_page_agree():
    """Each key that the binary can print is a member; each member of statements and transactions is a field, in its order."""
    literals = image(BUILD).decode(errors="replace")
    known = {name for name, _ in schema.members()} | OF_OTLP | OF_PLANS | keys_of(tables())
    keys = {key for key in re.findall(r'"(\w+)":', literals) if not re.search("[a-z][A-Z]", key)}
    assert len(keys) > 150 and keys <= known, keys - known
    statements, transactions = (list(DEFS[name]["properties"]) for name in ("statement", "transaction"))
    assert ["type", "time", "server", *(key for key, row in fields("json") if row["of"] != TRANSACTIONS and key != "time")] == statements
    assert {"type", "server", *(key for key, _ in fields("json"))} == {*statements, *transactions}
    assert set(re.findall(r'\{"type":"(\w+)', literals)) == {word for name in LINES for word in words_of(name)}


@pytest.mark.parametrize("name", ["use", "phases", "sysctls"])
def test_names_in_tables(name):
    """Names that the code has in tables."""
    assert sorted(tables()[name]) == sorted(DEFS[name]["properties"])


@pytest.mark.parametrize("name, first", [("parts", "cpu"), ("losses", "ring_full")])
def test_names_in_the_manual(name, first):
    """Those that the page leaves to the manual, and the words of losses in messages."""
    items = re.search(rf"^\.It Cm {first}$.*?^\.El$", source("cli", "dbslower.8"), re.M | re.S)[0]
    found = re.findall(r"\w+", " ".join(re.findall(r"^\.It Cm (.*)$", items, re.M)))
    assert found == [one if isinstance(one, str) else one["name"] for one in tables()[name]]
    assert re.findall(r"^\.Qq (.*?)(?: :)?$", items, re.M) == [one["words"] for one in tables()[name] if "words" in one]


def test_doctor_prints_one_object():
    assert [one["type"] for one in parsed(run("doctor", "--json").stdout.splitlines())] == ["doctor"]
