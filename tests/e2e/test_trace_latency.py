# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace --latency, compared with the clock of the traced program: measured inside and outside of each call."""

import os
import re

import pytest

from test_trace import WAYS, Probed, build, trace		# noqa: F401
from requirements import need_root
from tool import FIXTURES, run


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latency")
    build(folder, "-pthread", "-o", "latency", os.path.join(FIXTURES, "latency.c"))
    return folder / "latency"


def durations(lines, name):
    """{TID: [(inside, outside), …]} in ns, in the order of their ends."""
    out = {}
    for line in lines:
        if line.startswith(name):
            tid, *both = map(int, line.split()[1:])
            out.setdefault(tid, []).append(both)
    return out


def fits(traced, wanted):
    """Each hit is the one that the thread printed next."""
    seen = {}
    for hit in traced.hits:
        seen.setdefault(hit["tid"], []).append(round(hit["latency_ms"] * 1e6))
    assert seen.keys() == wanted.keys() and all(len(seen[tid]) == len(wanted[tid]) for tid in wanted), traced.said()
    for tid, both in wanted.items():
        assert all(inside <= ns <= outside for ns, (inside, outside) in zip(seen[tid], both)), (seen, wanted)


CASES = [("nest", ["work_nest"], 6), ("jump", ["work_jump (arg1 < 2)"], 2), ("jump", ["work_jump (retval > 0)"], 2),
         ("none", ["work_jump (arg1 == 1)"], 0),
         ("pair", ["work_begin", "work_end arg1"], 2)]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_latency(trace, program, way):		# noqa: F811
    one = Probed(program)
    traces = [trace("--latency", *way, "-p", one.pid, *words, "--json") for _, words, _ in CASES]
    lines = one()
    for traced, (name, _, count) in zip(traces, CASES):
        traced.wait_for(lambda tool, n=count: len(tool.hits) >= n, what="the ends")
        traced.ended()
        assert len(traced.hits) == count
        fits(traced, durations(lines, name))
    one.close()
    assert [hit["args"] for hit in traces[-1].hits] == [[3], [3]], traces[-1].said()


def test_latency_as_text(trace, program):		# noqa: F811
    one = Probed(program)
    traced = trace("--latency", "-p", one.pid, "work_jump")
    ((_, both), *_) = durations(one(), "jump").items()
    traced.wait_for(lambda tool: len(tool.rows()) == 2, what="the ends")
    traced.ended()
    one.close()
    head, *rows = traced.stdout.splitlines()
    assert re.match(r"TIME\(s\) +PID +TID +COMM +LAT\(us\) FUNC ", head), head
    (inside, outside), end = both[0], head.index("LAT(us)") + len("LAT(us)")
    assert all(re.search(r"(?<= )\d+\.\d{3}$", row[:end]) and row[end:].startswith(" work_jump ") for row in rows), rows
    assert any(inside <= round(float(row[:end].split()[-1]) * 1000) <= outside for row in rows), (rows, both)


def test_histogram_of_latencies(trace, program):		# noqa: F811
    one = Probed(program)
    traced = trace("--hist", "latency", "-p", one.pid, "work_nest", "--json")
    counted = trace("--count", "--latency", "-p", one.pid, "work_*", "--json")
    lines = one() + one()
    traced.ended(), counted.ended()
    one.close()
    both = [pair for pairs in durations(lines, "nest").values() for pair in pairs]
    (seen,) = [each for each in traced.objects() if each["type"] == "hit_histogram"]
    assert seen["expression"] == "latency" and seen["count"] == len(both) == 12, traced.said()
    for bucket in seen["buckets"]:
        below = bucket["lt_ms"] * 1e6
        assert sum(outside < below for _, outside in both) <= bucket["count"] <= sum(inside < below for inside, _ in both), \
            traced.said()
    counts = {each["function"]: each["count"] for each in counted.objects() if each["type"] == "hit_count"}
    assert counts == {"work_nest": 12, "work_jump": 4, "work_begin": 8, "work_end": 8}, counted.said()


@pytest.mark.parametrize("args, words", [
    (["--latency", "a:b"], "requires a function"), (["--latency", "x", "y", "z"], "too many probes"),
    (["--latency", "x arg1", "y"], "values are printed of the second probe"), (["--hist", "latency", "u:x"], "requires a function"),
])
def test_refused(program, args, words):
    need_root()
    done = run("trace", program, *args)
    assert done.returncode == 2 and words in done.stderr and not done.stdout, done
