# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Nothing lost, nothing invented: a mixed workload, held against the server's own log."""

import copy
import json
import subprocess

import pytest

from fallbacks import force
import oracle
from oracle import Waiting, compare, expected
from workload import Workload

AT_LEAST = 20_000


def test_tool_and_log_agree(postgres, tool, tmp_path):
    workload = Workload(postgres, tmp_path)
    tmp_path.chmod(0o755)
    workload.setup()
    traced = tool("postgres", "-p", postgres.pid, "-m", "0", "--json")
    offset = postgres.log_size()
    with Waiting() as waiting:
        workload.run()
    status = traced.stop()
    logged = expected(postgres.read_log(offset))
    got = traced.statements
    print(oracle.figures(logged, got))
    print(oracle.spread(logged, got))
    print(f"waited {waiting.ms:.0f} ms for CPUs; {json.dumps(traced.summary)}")

    assert status == 0, traced.said()
    assert len(logged) >= AT_LEAST, f"the workload had only {len(logged)} statements"
    assert not traced.lost(), f"lost something: {traced.summary}"
    complaints = compare(logged, got, waited_ms=waiting.ms)
    assert not complaints, report(complaints)
    summary = traced.summary
    assert (summary["statements"], summary["printed"]) == (len(logged), len(logged)), summary
    cut = sum(one.get("truncated", False) for one in got)
    assert summary["lost"]["text_truncated"] == cut, f"{cut} texts are marked as cut: {summary}"


def report(complaints):
    return f"{len(complaints)} complaints:\n" + "\n".join(complaints[:40])


# --- the comparer must complain: a log and an output made up, then spoilt in each way

def line(pid, at, text, number, vxid="3/1", app="tight x", severity="LOG"):
    return (f"{1700000000 + at / 1000:.3f}|{pid}|65.{pid:x}|{number}|client backend|postgres|postgres|{vxid}|"
            f"00000|{app}| {severity}:  {text}\n").replace("\n", "\n\t")[:-1]


def made_up():
    """A log of some sessions with all kinds of statements, and the output that fits it."""
    log, got = [], []

    def show(pid, at, ms, text, status="ok"):
        got.append({"type": "statement", "time": f"2026-01-01T00:{int(at) // 60000:02}:{at % 60000 / 1000:012.9f}Z",
                    "pid": pid, "duration_ms": ms, "user": "postgres", "database": "postgres", "status": status,
                    "query": text, "query_bytes": len(text.encode()), "truncated": False})

    for pid in (100, 200):
        for n in range(200):
            at, number = n * 10, n * 10
            text = f"select\n\t{n} /* é simple */"
            log.append(line(pid, at + 2, f"duration: 2.000 ms  statement: {text}", number, f"3/{n}0"))
            show(pid, at, 2.01, text)
            text = f"select $1 /* extended {n} */"
            for step, name in ((1, "parse <unnamed>"), (2, "bind <unnamed>"), (3, "execute <unnamed>")):
                log.append(line(pid, at + 3, f"duration: 0.100 ms  {name}: {text}", number + step, f"3/{n}1"))
                log.append(line(pid, at + 3, "parameters: $1 = '1'", number + step, f"3/{n}1", severity="DETAIL"))
            show(pid, at + 3, 0.35, text)
        log.append(line(pid, 3000, "division by zero", 9000, severity="ERROR"))
        log.append(line(pid, 3000, "select 1/0", 9001, severity="STATEMENT"))
        show(pid, 2990, 0.5, "select 1/0", "error")
        log.append(line(pid, 3010, "a warning", 9002, severity="WARNING"))
    return "".join(log).encode(), got


def test_comparer_accepts_what_fits():
    log, got = made_up()
    logged = expected(log)
    assert len(logged) == len(got) == 802
    assert compare(logged, got) == []


def slower(one):
    one["duration_ms"] *= 1.2


SPOILT = {
    "one dropped": (lambda got: got.pop(77), "not seen"),
    "the first dropped": (lambda got: got.pop(0), "not seen"),
    "the last dropped": (lambda got: got.pop(), "not seen"),
    "a failure dropped": (lambda got: got.pop(400), "not seen"),
    "one twice": (lambda got: got.append(copy.deepcopy(got[5])), "invented"),
    "one invented": (lambda got: got.append({**got[5], "query": "select 'mine'", "query_bytes": None}), "invented"),
    "one of another session": (lambda got: got.append({**got[5], "pid": 300}), "invented"),
    "a text changed": (lambda got: got[9].update(query=got[9]["query"] + " "), "not seen"),
    "a text emptied": (lambda got: got[9].update(query=""), "not seen"),
    "a text absent": (lambda got: got[9].pop("query"), "not seen"),
    "a text cut without need": (lambda got: got[9].update(truncated=True), "not seen"),
    "two swapped": (lambda got: got[10].update(time=got[13]["time"]), "not seen"),
    "a failure shown as ok": (lambda got: got[400].update(status="ok"), "status ok"),
    "a success shown as failed": (lambda got: got[30].update(status="error"), "status error"),
    "another user": (lambda got: got[30].update(user="me"), "user me"),
    "all simple ones 20 % slower": (lambda got: [slower(one) for one in got[::2]], "durations off"),
    "2 % of the simple ones slower": (lambda got: [slower(one) for one in got[:20:2]], "durations off"),
    "all 1 ms shorter": (lambda got: [one.update(duration_ms=one["duration_ms"] - 1) for one in got], "bounds"),
    "one far off": (lambda got: got[4].update(duration_ms=5000.0), "must be within"),
    "one without a duration": (lambda got: got[4].pop("duration_ms"), "no duration"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_comparer_complains(how):
    log, got = made_up()
    spoil, word = SPOILT[how]
    spoil(got)
    complaints = compare(expected(log), got)
    assert any(word in complaint for complaint in complaints), f"{how}: said only {complaints[:5]}"


def test_comparer_accepts_what_waiting_explains():
    log, got = made_up()
    for one in got[:40:2]:
        one["duration_ms"] += 0.3
    assert compare(expected(log), got, waited_ms=5) == []
    assert compare(expected(log), got, waited_ms=3)


def test_comparer_knows_a_cut():
    text = "é" * 3000
    log = line(1, 5, f"duration: 1.000 ms  statement: {text}", 1).encode()
    one = {"time": "1", "pid": 1, "duration_ms": 1.0, "status": "ok", "query": "é" * 2048,
           "query_bytes": 6000, "truncated": True}
    assert compare(expected(log), [one]) == []
    for wrong in ({"truncated": False}, {"query": text[:1000]}, {"query": "x" * 4096}, {"query_bytes": 4096}):
        assert compare(expected(log), [{**one, **wrong}]), f"accepted {wrong}"


# --- the log's reader, on forms of the log as the server writes them

def steps(*texts, vxid="3/1", app="x"):
    log = "".join(line(1, 5, text, n, vxid, app) for n, text in enumerate(texts))
    return [(one.text.decode(), one.failed, len(one.parts)) for one in expected(log.encode())]


def test_log_parse_alone_is_one_of_its_own():
    log = ("duration: 1.0 ms  parse P0: select 1", "duration: 1.0 ms  bind P0: select 1",
           "duration: 1.0 ms  execute P0: select 1")
    assert steps(*log) == [("select 1", False, 1), ("select 1", False, 2)]
    assert steps(*log, app="pipeline") == [("select 1", False, 3)]


def test_log_suspended_portal_is_one():
    assert steps("duration: 1.0 ms  bind <unnamed>: q", "duration: 1.0 ms  execute <unnamed>: q",
                 "duration: 1.0 ms  execute fetch from <unnamed>: q") == [("q", False, 3)]


def test_log_failures():
    def failing(*lines):
        log = "".join(line(1, 5, text, n, severity=severity) for n, (severity, text) in enumerate(lines))
        return [(one.text.decode(), one.failed) for one in expected(log.encode())]
    execute = ("LOG", "duration: 1.0 ms  execute <unnamed>: insert")
    assert failing(("LOG", "duration: 1.0 ms  parse <unnamed>: q"), ("ERROR", "no"), ("STATEMENT", "q")) == [("q", True)]
    assert failing(execute, ("ERROR", "no")) == [("insert", True)], "a deferred check at the Sync"
    assert failing(execute, ("ERROR", "no"), ("STATEMENT", "q")) == [("insert", False), ("q", True)]
    assert failing(("FATAL", "terminated while idle")) == []
    assert failing(("WARNING", "duration: 1.0 ms  statement: mine")) == []


def test_log_ignores_other_backends():
    entry = line(1, 5, "duration: 1.0 ms  statement: q", 1).replace("client backend", "parallel worker")
    assert expected(entry.encode()) == []


def test_log_reader_refuses_what_it_does_not_know():
    with pytest.raises(ValueError):
        expected(b"something else\n")


@pytest.mark.parametrize("args", [force("perf"), force("prealloc"), force("perf", "prealloc"),
                                  force("perfbuf"), force("probe-read"),
                                  force("tracefs"), force("semaphore"), force("pids"),
                                  force("tracefs", "prealloc", "perfbuf", "probe-read", "semaphore", "pids")],
                         ids=" ".join)
def test_fallbacks_agree_with_the_log(clusters, server_copy, tool, tmp_path, args):
    """What older kernels are traced with, on a smaller workload, and on a file that nobody else traces."""
    agrees(clusters(name="old", postgres=server_copy), tool, tmp_path, args)


def test_server_without_usdt_agrees_with_the_log(clusters, server_copy, tool, tmp_path):
    """The same server without its notes is traced by its symbols, and must look the same."""
    subprocess.run(["objcopy", "--remove-section=.note.stapsdt", server_copy], check=True)
    notes = subprocess.run(["readelf", "-n", server_copy], capture_output=True, text=True, check=True).stdout
    assert "stapsdt" not in notes
    traced = agrees(clusters(name="symbols", postgres=server_copy), tool, tmp_path, [])
    assert "by its symbols" in traced.stderr and "does not show" not in traced.stderr, traced.said()


def agrees(cluster, tool, tmp_path, args):
    tmp_path.chmod(0o755)
    workload = Workload(cluster, tmp_path)
    workload.setup()
    traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json", *args)
    offset = cluster.log_size()
    with Waiting() as waiting:
        for part in (workload.texts, workload.interrupted, workload.pipelines, workload.orders):
            part()
    cluster.settle()
    status = traced.stop()
    logged, got = expected(cluster.read_log(offset)), traced.statements
    assert status == 0 and not traced.lost(), traced.said()
    assert len(logged) > 200, f"the workload had only {len(logged)} statements"
    # One text of 100 kB, whose log line takes long to write, is more than 1 % of so few
    complaints = compare(logged, got, share=0.9, waited_ms=waiting.ms)
    assert not complaints, report(complaints)
    return traced
