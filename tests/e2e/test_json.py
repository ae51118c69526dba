# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/json.md, docs/json.schema.json and the code name the same members, and the examples are valid."""

import json
import os
import re

import pytest

import schema
from schema import SCHEMA
from tool import ROOT, parsed, run

DEFS = SCHEMA["$defs"]


def source(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def sections():
    """{name of an object: (its rows, its examples)} of docs/json.md."""
    found = {}
    for name, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", source("docs", "json.md"), re.M | re.S):
        rows = re.findall(r"^\| `(\S+)` \| (.*?) \| (.*?) \| ?(.*?) ?\|$", text, re.M)
        found[name] = rows, re.findall(r"(?:^    .*\n?)+", text, re.M)
    return found


def test_validation_is_on():
    if schema.jsonschema is None:
        pytest.skip("no jsonschema (package python3-jsonschema)")
    schema.jsonschema.Draft202012Validator.check_schema(SCHEMA)
    start = parsed([re.sub(r"\n *", "", sections()["start"][1][0])])[0]
    for wrong in ({**start, "more": 1}, {**start, "schema": 2}, {**start, "time": "12:00"}, {**start, "type": "begin"},
                  {**start, "host": 1}, {key: start[key] for key in start if key != "host"}):
        assert schema.complaint(wrong), wrong
    with pytest.raises(ValueError, match="not as in docs/json.schema.json: .*'more'"):
        schema.validate({**start, "more": 1}, b"")


def types(one):
    """The types of a member as the page states them."""
    if "$ref" in one:
        name = one["$ref"].split("/")[-1]
        return f"object [{name}](#{name})"
    if "const" in one or "enum" in one:
        return ", ".join(f"`{json.dumps(word)}`" for word in one.get("enum", [one.get("const")]))
    return one["type"]


def test_page_and_schema_agree():
    """The same objects with the same members in the same order, and the same types, meanings and necessity."""
    page = sections()
    assert list(page) == list(DEFS)
    for name, (rows, _) in page.items():
        properties = DEFS[name].get("properties", {})
        assert [row[0] for row in rows] == list(properties), name
        assert [row[0] for row in rows if not row[3]] == DEFS[name].get("required", []), name
        for member, kind, meaning, _ in rows:
            one = properties[member]
            assert meaning.replace("`", "'") == one.get("description", ""), (name, member)
            assert one.get("type") in ("array",) or kind == types(one), (name, member)


def objects(one):
    """All schemas of objects in a schema."""
    if isinstance(one, dict):
        if one.get("type") == "object":
            yield one
        for part in one.values():
            yield from objects(part)
    elif isinstance(one, list):
        for part in one:
            yield from objects(part)


def test_schema_is_strict():
    """No object may have other members; durations and sizes have their unit in the name."""
    assert all(one["additionalProperties"] is False or not one.get("properties") for one in objects(SCHEMA))
    assert all(part["properties"]["type"] for part in (DEFS[one["$ref"].split("/")[-1]] for one in SCHEMA["oneOf"]))
    inner = [*DEFS["parts"]["properties"].items(), *DEFS["phases"]["properties"].items()]
    assert all(one["type"] == "number" and one["description"].endswith(", ms") for _, one in inner)
    for name, one in (one for one in schema.members() if one not in inner):
        assert (one.get("type") == "number") == (name.endswith("_ms") and "$ref" not in one), name
        assert ("bytes" in name) == (one.get("type") == "integer" and one["description"].partition("; ")[0].endswith(", bytes")), name


def test_examples_are_valid():
    """Those of each type of object, with each word of type."""
    shown = []
    for name, (_, examples) in sections().items():
        for text in examples:
            found = parsed([re.sub(r"\n *", "", text.strip())])[0]
            assert found["type"] in str(DEFS[name]["properties"]["type"]), name
            shown.append(found["type"])
    types_of = [DEFS[one["$ref"].split("/")[-1]]["properties"]["type"] for one in SCHEMA["oneOf"]]
    assert {word for one in types_of for word in one.get("enum", [one.get("const")])} <= set(shown)


KEY = r'\\"(\w+)\\":'
OF_SPANS = {"key", "value", "stringValue", "intValue", "boolValue"}


def test_code_and_schema_agree():
    """Each key in the sources is a member of the schema; each member of statements and transactions is in the table of fields."""
    known = {name for name, _ in schema.members()}
    for file in sorted(os.listdir(os.path.join(ROOT, "cli"))):
        if file.endswith(".c") and not file.startswith("otlp"):
            keys = set(re.findall(KEY, source("cli", file))) - OF_SPANS
            assert keys <= known, f"{file}: {keys - known}"
    fields = set(re.findall(r'JSON(?:_STRING)?\("(\w+)"\)', source("cli", "fields.c")))
    assert len(fields) > 25
    assert fields == {one for name in ("statement", "transaction") for one in DEFS[name]["properties"]} - {"type", "time", "server"}
    types_of = set(re.findall(r'\{\\"type\\":\\"(\w+)\\"', "".join(source("cli", one) for one in os.listdir(os.path.join(ROOT, "cli"))
                                                               if one.endswith(".c"))))
    words = [DEFS[one["$ref"].split("/")[-1]]["properties"]["type"] for one in SCHEMA["oneOf"]]
    assert types_of == {word for one in words for word in one.get("enum", [one.get("const")])}


@pytest.mark.parametrize("name, file, pattern", [
    ("use", "db/breakdown.c", r'\[USE_\w+\] = "(\w+)"'), ("phases", "db/breakdown.c", r'\[PHASE_\w+\] = "(\w+)"'),
    ("parts", "bpf/event.h", r'ROW\(\w+, "(\w+)"'), ("sysctls", "host/privileges.c", r'\{ "([a-z_]+\.[a-z_.]+)",'),
    ("lost", "cli/summary.c", r'\{ "(\w+)", "'), ("lost_row", "cli/summary.c", r'\[LOST_\w+\] = "(\w+)"'),
])
def test_names_in_tables(name, file, pattern):
    """Names that the code has in tables."""
    found = re.findall(pattern, source(*file.split("/")))
    assert sorted(found) == sorted(set(DEFS[name]["properties"]) - {"server", "uid", "several"})


def test_doctor_prints_one_object():
    assert [one["type"] for one in parsed(run("doctor", "--json").stdout.splitlines())] == ["doctor"]
