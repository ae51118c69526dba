# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Validate objects of --json against the schema that ci/schema makes of docs/json.md."""

import json
import os
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCHEMA = json.loads(subprocess.check_output([sys.executable, os.path.join(ROOT, "ci", "schema")]))


def members():
    """All (name, schema) of members."""
    return [one for part in SCHEMA["$defs"].values() for one in part.get("properties", {}).items()]


WORDS = {name for name, one in members() if "enum" in one or "const" in one}	# their values matter
# Objects of durations: one of 0 has no decimals.
DURATIONS = {name for name, one in members() if name.endswith("_ms") and "$ref" in one}
VALIDATOR = jsonschema and jsonschema.Draft202012Validator(SCHEMA)
valid = set()		# signatures
lines = set()		# hashes of valid lines without their digits
plans = {}		# (names, types) of an object: the names of members of which these are not all that matters


def signature(value, name=""):
    """What an object, or a value of one, has in common with all that are valid if it is."""
    if type(value) is list:
        return (list, frozenset(signature(one, name) for one in value))
    if type(value) is not dict:
        return value if name in WORDS else type(value)
    kinds = map(type, value.values())
    shape = (tuple(value), frozenset(kinds) if name in DURATIONS else tuple(kinds))
    plan = plans.get(shape)
    if plan is None:
        plan = plans[shape] = [key for key, one in value.items() if key in WORDS or type(one) in (dict, list)]
    return (*shape, *[signature(value[key], key) for key in plan]) if plan else shape


def complaint(found):
    """Why the object is not valid, or None."""
    for error in VALIDATOR.iter_errors(found):
        branches = {}
        for one in error.context or ():
            branches.setdefault(one.schema_path[0], []).append(one)
        # Of the types of objects, that which it has.
        own = [branch for branch in branches.values() if not any(list(one.path) == ["type"] for one in branch)]
        return "; ".join(f"{one.json_path}: {one.message}" for one in (own[0] if own else [error]))
    return None


def validate(found, line):
    """ValueError: the object, which is the line, is not as docs/json.md states."""
    alike = hash(line.translate(None, b"0123456789"))	# most lines differ in numbers alone
    if jsonschema is None or alike in lines:
        return
    shape = signature(found)
    if shape not in valid:
        why = complaint(found)
        if why:
            raise ValueError(f"not as in docs/json.md: {why[:2000]}")
        valid.add(shape)
    lines.add(alike)
