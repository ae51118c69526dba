# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A mixed workload, compared with the server's own log statement by statement."""

import copy
import os
import subprocess

import pytest

import oracle
from cluster import Cluster
from complaints import RUNS, Off, RingFull, repeated, report
from fallbacks import ALL as ALL_FALLBACKS, OLD, force
from oracle import compare, expected
from peer import MARIADB, POSTGRES, POSTGRES_FUNCTIONS, Peer
from requirements import need_server
from statements import stopped
from workload import PROTOCOLS, TRANSACTIONS, Workload

AT_LEAST = 20_000

pytestmark = pytest.mark.calm


def test_tool_and_log_agree(postgres, tool, tmp_path):
    workload = Workload(postgres, tmp_path)
    tmp_path.chmod(0o755)
    workload.setup()

    def run():
        logged, traced = traced_by_two(postgres, tool, workload.run)
        got, summary = traced.compared, traced.summary
        print(oracle.figures(logged, got), oracle.spread(logged, got), summary, sep="\n")
        assert len(logged) >= AT_LEAST, f"the workload had only {len(logged)} statements"
        assert (summary["statements"], summary["printed"]) == (len(logged), len(logged)), summary
        cut = sum(one.get("truncated", False) for one in got)
        assert summary["lost"]["text_truncated"] == cut, f"{cut} texts are marked as cut: {summary}"
        return compare(logged, traced.compared)

    report(repeated(run))


def traced_by_two(cluster, tool, work, args=(), places=POSTGRES):
    """
    Run work() traced by the tool and by bpftrace. Return what the log says and the tool; compared are its statements with what
    the other has measured.
    """
    # What is compared is what they see, not whether they get a CPU beside any other load.
    priority = {"preexec_fn": lambda: os.nice(oracle.NICE)}
    with Peer(cluster.postgres, places, **priority) as peer:
        traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json", *args, **priority)
        offset = cluster.log_size()
        work()
        cluster.settle()
        oracle.stop(traced, peer)
    traced.compared = traced.statements
    peer.add(traced.compared)
    return expected(cluster.read_log(offset)), traced


def test_durations_on_a_cpu_of_its_own(clusters, tool, tmp_path):
    """Nothing delays a server that has a CPU to itself: the log alone confirms 99 % within 5 % or 100 us."""
    cluster = clusters(name="pinned", autovacuum="off")
    tmp_path.chmod(0o755)
    workload = Workload(cluster, tmp_path)
    workload.setup()
    server_cpu, other_cpu = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
    os.sched_setaffinity(cluster.pid, {server_cpu})
    os.sched_setscheduler(cluster.pid, os.SCHED_FIFO, os.sched_param(1))	# its backends inherit both
    traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json")
    os.sched_setaffinity(traced.pid, {other_cpu})
    offset = cluster.log_size()
    workload.one_client(wrap=("taskset", "-c", str(other_cpu)))
    cluster.settle()
    stopped(traced)
    logged = expected(cluster.read_log(offset))
    print(oracle.figures(logged, traced.statements), oracle.spread(logged, traced.statements), sep="\n")
    assert len(logged) >= len(PROTOCOLS) * TRANSACTIONS
    report(compare(logged, traced.statements))


# --- the comparer must complain: a log and an output made up, then spoilt in each way

def line(pid, at, text, number, vxid="3/1", app="tight x", severity="LOG", sqlstate="00000"):
    return (f"{1700000000 + at / 1000:.3f}|{pid}|65.{pid:x}|{number}|client backend|postgres|postgres|{vxid}|"
            f"{sqlstate}|{app}| {severity}:  {text}\n").replace("\n", "\n\t")[:-1]


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
        log.append(line(pid, 3000, "division by zero", 9000, severity="ERROR", sqlstate="22012"))
        log.append(line(pid, 3000, "select 1/0", 9001, severity="STATEMENT", sqlstate="22012"))
        show(pid, 2990, 0.5, "select 1/0", "error")
        got[-1]["sqlstate"] = "22012"
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


@pytest.mark.parametrize("ms", [0.3, -0.3], ids=["longer", "shorter"])
def test_comparer_grants_what_both_tracers_measured(ms):
    log, got = made_up()
    late = got[:40:2]
    for one in late:
        one["duration_ms"] += ms
    assert compare(expected(log), got)
    for one in late:
        one["peer_ms"] = one["duration_ms"] - 0.05
    assert compare(expected(log), got) == []
    for one in late:
        one["peer_ms"] = one["duration_ms"] - 0.15
    assert compare(expected(log), got), "the other tracer says something else"
    for one, other in zip(late, got[1:40:2]):
        other["peer_ms"] = one["duration_ms"]
        one.pop("peer_ms")
    assert compare(expected(log), got), "the delay is another's"


def test_comparer_believes_no_tracer_alone():
    """Both may measure the same wrong thing."""
    log, got = made_up()
    simple = [one for one in got if "simple" in one["query"]]
    for one in simple:
        one["duration_ms"] = one["peer_ms"] = 2.5
    complaint, = compare(expected(log), got)
    assert isinstance(complaint, Off) and complaint.startswith("400 of 400 simple durations off"), complaint
    for one in simple[::2]:
        one["duration_ms"] = 2.0
    assert compare(expected(log), got) == []
    for one in got:
        one["duration_ms"] = one["peer_ms"] = 0.001
    assert any("of the log's bounds" in complaint for complaint in compare(expected(log), got))


def test_comparer_knows_a_cut():
    text = "é" * 3000
    log = line(1, 5, f"duration: 1.000 ms  statement: {text}", 1).encode()
    one = {"time": "1", "pid": 1, "duration_ms": 1.0, "status": "ok", "query": "é" * 2048,
           "query_bytes": 6000, "truncated": True}
    assert compare(expected(log), [one]) == []
    for wrong in ({"truncated": False}, {"query": text[:1000]}, {"query": "x" * 4096}, {"query_bytes": 4096}):
        assert compare(expected(log), [{**one, **wrong}]), f"accepted {wrong}"


# --- the other tracer, with made-up hits

def peer_of(places, *hits):
    peer = Peer("/program", places)
    peer.take([f"{place} {tid} {key} {round(ms * 1e6)}" for place, tid, key, ms in hits] + ["Attaching 2 probes...", ""], 10**18)
    return peer


def measured(peer, ms, duration_ms, tid=5):
    one = {"time": f"2001-09-09T01:46:40.{round(ms * 1e6):09}Z", "tid": tid, "duration_ms": duration_ms}
    peer.add([one])
    return one.get("peer_ms")


def test_peer_knows_where_statements_of_postgres_are():
    peer = peer_of(POSTGRES, ("b", 5, 5, 1), ("b", 5, 5, 2), ("e", 5, 5, 4), ("i", 5, 5, 5), ("b", 5, 5, 6), ("i", 5, 5, 8),
                   ("b", 6, 6, 1), ("i", 6, 6, 3.5))
    assert measured(peer, 1.05, 3.9) == measured(peer, 0.95, 2.9) == measured(peer, 1, 7.0) == 4.0, "until it is idle"
    assert measured(peer, 1, 2.5, tid=6) == 2.5 and measured(peer, 1, 2.5) == 4.0, "each has its own process"
    assert measured(peer, 1.5, 3.0) is None and measured(peer, 5, 1.0) is None and measured(peer, 9, 1.0) is None
    peer = peer_of(POSTGRES, ("b", 5, 5, 1), ("b", 5, 5, 1.5), ("e", 5, 5, 2), ("b", 5, 5, 3), ("e", 5, 5, 4), ("i", 5, 5, 5))
    assert measured(peer, 1, 1.0) == measured(peer, 1, 3.0) == measured(peer, 1, 4.0) == 1.0, "a pipeline's, when it completed"
    assert measured(peer, 3, 1.0) == 2.0


def test_peer_knows_where_statements_of_mariadb_are():
    """By the session: a pool's thread may leave a statement to another one."""
    peer = peer_of(MARIADB, ("b", 5, 77, 1), ("e", 5, 77, 2), ("e", 6, 77, 4), ("b", 6, 77, 5), ("b", 5, 77, 6), ("e", 5, 77, 7))
    assert measured(peer, 1, 1.0) == measured(peer, 1, 3.0) == 1.0 and measured(peer, 2, 2.1) == 2.0, "each part apart"
    assert measured(peer, 2, 2.0, tid=6) == 2.0 and measured(peer, 5, 1.0) is None
    assert measured(peer, 6, 1.0) == 1.0 and measured(peer, 6, 1.0, tid=7) is None
    peer = peer_of(MARIADB, ("x", 5, 0, 0.5), ("b", 5, 77, 1), ("b", 6, 88, 1.01), ("e", 5, 77, 2), ("x", 5, 0, 3), ("e", 5, 77, 4))
    assert measured(peer, 1, 2.0) == 2.0 and measured(peer, 1, 3.0) == 2.0, "a prepared one, behind its execution"
    assert measured(peer, 1, 2.0, tid=6) is None, "the thread tells the session"


def test_runs_that_lost_records_are_repeated():
    def repeats(*results):
        left = list(results)

        def run():
            now = left.pop(0)
            if now is RingFull:
                raise RingFull("3")
            return now
        return repeated(run), len(results) - len(left)
    assert repeats([]) == ([], 1) and repeats(["off"]) == (["off"], 1) and repeats(RingFull, RingFull, []) == ([], 3)
    complaints, ran = repeats(*[RingFull] * RUNS)
    assert ran == RUNS and "records were lost" in complaints[0]


# --- the log's reader, on forms of the log as the server writes them

def steps(*texts, vxid="3/1", app="x"):
    log = "".join(line(1, 5, text, n, vxid, app) for n, text in enumerate(texts))
    return [(one.text.decode(), one.failed, len(one.parts)) for one in expected(log.encode())]


def test_log_parse_alone_is_part_of_none():
    log = ("duration: 1.0 ms  parse P0: select 1", "duration: 1.0 ms  bind P0: select 1",
           "duration: 1.0 ms  execute P0: select 1")
    assert steps(*log) == [("select 1", False, 2)]
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


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    need_server()
    folder = tmp_path_factory.mktemp("prepared")
    with Cluster(name="old").init() as cluster:
        workload = Workload(cluster.start(), folder)
        workload.setup()
        yield workload


@pytest.mark.parametrize("args", [force("perf"), force("prealloc"), force("perf", "prealloc"),
                                  force("perfbuf"), force("probe-read"), force("semaphore"), force("pids"),
                                  ALL_FALLBACKS, OLD],
                         ids=" ".join)
def test_fallbacks_agree_with_the_log(prepared, tool, args):
    """Each fallback, on a smaller workload."""
    agrees(prepared, tool, args)


def test_server_without_usdt_agrees_with_the_log(clusters, server_copy, tool, tmp_path):
    """The same server without its notes is traced by its symbols, and must look the same."""
    subprocess.run(["objcopy", "--remove-section=.note.stapsdt", server_copy], check=True)
    notes = subprocess.run(["readelf", "-n", server_copy], capture_output=True, text=True, check=True).stdout
    assert "stapsdt" not in notes
    tmp_path.chmod(0o755)
    workload = Workload(clusters(name="symbols", postgres=server_copy), tmp_path)
    workload.setup()
    traced = agrees(workload, tool, [], POSTGRES_FUNCTIONS)
    assert "by its symbols" in traced.stderr and "does not report" not in traced.stderr, traced.said()


def agrees(workload, tool, args, places=POSTGRES):
    tools = []

    def work():
        for part in (workload.texts, workload.interrupted, workload.pipelines, workload.orders):
            part()
        workload.one_client(1000)	# one slow text is more than 1 % of the few above

    def run():
        logged, traced = traced_by_two(workload.cluster, tool, work, args, places)
        tools.append(traced)
        assert len(logged) > 3200, f"the workload had only {len(logged)} statements"
        return compare(logged, traced.compared)

    report(repeated(run))
    return tools[-1]
