# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/json.md, docs/json.schema.json and the code name the same members, and the examples are valid."""

import json
import os
import re

import pytest

import schema
from schema import SCHEMA
from tables import fields, tables
from tool import BUILD, ROOT, image, parsed, run

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


# Members of spans and metrics, as OpenTelemetry's .proto files name them, other than those in camel case.
OF_OTLP = {"attributes", "code", "flags", "key", "kind", "metrics", "name", "resource", "scope", "spans", "sum", "unit", "value"}


def keys_of(value):
    """The names of all members of an object and of the objects in it."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_code_and_schema_agree():
    """Each key that the binary can print is a member of the schema; each member of statements and transactions is a field."""
    literals = image(BUILD).decode(errors="replace")
    known = {name for name, _ in schema.members()} | OF_OTLP | keys_of(tables())
    keys = {key for key in re.findall(r'"(\w+)":', literals) if not re.search("[a-z][A-Z]", key)}
    assert len(keys) > 150 and keys <= known, keys - known
    found = {name for name, _ in fields("json")}
    assert len(found) > 25
    assert found == {one for name in ("statement", "transaction") for one in DEFS[name]["properties"]} - {"type", "server"}
    words = [DEFS[one["$ref"].split("/")[-1]]["properties"]["type"] for one in SCHEMA["oneOf"]]
    assert set(re.findall(r'\{"type":"(\w+)', literals)) == {word for one in words for word in one.get("enum", [one.get("const")])}


@pytest.mark.parametrize("name", ["use", "phases", "parts", "sysctls", "lost", "lost_row"])
def test_names_in_tables(name):
    """Names that the code has in tables."""
    found = {"lost": [row["name"] for row in tables()["losses"]],
             "lost_row": [one for one in tables()["losses_by_user"] if one]}.get(name) or tables()[name]
    assert sorted(found) == sorted(set(DEFS[name]["properties"]) - {"server", "uid", "several"})


def test_losses_are_explained():
    """By the schema in the words of the code, and by the manual."""
    losses = {row["name"]: row["help"] for row in tables()["losses"]}
    assert losses == {name: one["description"] for name, one in DEFS["lost"]["properties"].items()}
    page = re.search(r"^\.It Cm ring_full$.*?^\.El$", source("cli", "dbslower.8"), re.M | re.S)[0]
    assert sorted(re.findall(r"\w+", " ".join(re.findall(r"^\.It Cm (.*)$", page, re.M)))) == sorted(losses)


def test_doctor_prints_one_object():
    assert [one["type"] for one in parsed(run("doctor", "--json").stdout.splitlines())] == ["doctor"]
