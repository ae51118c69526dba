# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A mixed workload, compared with the server's own log statement by statement."""

import copy
import os
import shutil
import subprocess

import pytest

import oracle
from cluster import Cluster, server_bindir
from fallbacks import ALL as ALL_FALLBACKS, OLD, force
from oracle import compare, expected
from requirements import need_server
from statements import stopped
from steal import RUNS, Off, RingFull, Steal, repeated, report
from workload import PROTOCOLS, TRANSACTIONS, Workload

AT_LEAST = 20_000

pytestmark = pytest.mark.calm


def test_tool_and_log_agree(postgres, tool, tmp_path):
    workload = Workload(postgres, tmp_path)
    tmp_path.chmod(0o755)
    workload.setup()

    def run(steal):
        logged, traced = traced_with_slack(postgres, tool, workload.run, steal)
        got, summary = traced.statements, traced.summary
        print(oracle.figures(logged, got), oracle.spread(logged, got), summary, sep="\n")
        assert len(logged) >= AT_LEAST, f"the workload had only {len(logged)} statements"
        assert (summary["statements"], summary["printed"]) == (len(logged), len(logged)), summary
        cut = sum(one.get("truncated", False) for one in got)
        assert summary["lost"]["text_truncated"] == cut, f"{cut} texts are marked as cut: {summary}"
        return compare(logged, traced.slack)

    report(repeated(run))


def traced_with_slack(cluster, tool, work, steal, args=()):
    """
    Run work() traced by two tools, the second with --why. Return what the log says and the first tool;
    its slack are its statements with their run-queue delays.
    """
    command = ("postgres", "-p", cluster.pid, "-m", "0", "--json")
    # What is compared is what they see, not whether they get a CPU beside any other load.
    priority = {"preexec_fn": lambda: os.nice(oracle.NICE)}
    traced, meter = tool(*command, *args, **priority), tool(*command, "--why", **priority)
    offset = cluster.log_size()
    with steal:
        work()
    cluster.settle()
    oracle.stop(traced, meter)
    traced.slack = traced.statements
    oracle.add_slack(traced.slack, meter.statements)
    return expected(cluster.read_log(offset)), traced


def test_durations_on_a_cpu_of_its_own(clusters, tool, tmp_path):
    """Nothing delays a server that has a CPU to itself, so there is no slack: 99 % within 5 % or 100 us."""
    cluster = clusters(name="pinned", autovacuum="off")
    tmp_path.chmod(0o755)
    workload = Workload(cluster, tmp_path)
    workload.setup()
    server_cpu, other_cpu = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
    os.sched_setaffinity(cluster.pid, {server_cpu})
    os.sched_setscheduler(cluster.pid, os.SCHED_FIFO, os.sched_param(1))	# its backends inherit both

    def run(steal):
        traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json")
        os.sched_setaffinity(traced.pid, {other_cpu})
        offset = cluster.log_size()
        with steal:
            workload.one_client(wrap=("taskset", "-c", str(other_cpu)))
        cluster.settle()
        stopped(traced)
        logged = expected(cluster.read_log(offset))
        print(oracle.figures(logged, traced.statements), oracle.spread(logged, traced.statements), sep="\n")
        assert len(logged) >= len(PROTOCOLS) * TRANSACTIONS
        return compare(logged, traced.statements)

    report(repeated(run))


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


def test_comparer_grants_each_its_own_delay():
    log, got = made_up()
    late = got[:40:2]
    for one in late:
        one["duration_ms"] += 0.3
    assert compare(expected(log), got)
    for one in late:
        one["slack_ms"] = 0.25
    assert compare(expected(log), got) == []
    for one in late:
        one["slack_ms"] = 0.15
    assert compare(expected(log), got), "it is off by more than its delay"
    for one, other in zip(late, got[1:40:2]):
        one["slack_ms"], other["slack_ms"] = 0.0, 1000.0
    assert compare(expected(log), got), "the delay is another's"
    for one in late:
        one["duration_ms"], one["slack_ms"] = 1.8, 1.0
    assert compare(expected(log), got), "a delay makes none shorter"


def test_slack_is_of_the_same_statement():
    got = [{"pid": 1, "time": str(n), "query": f"select {n}"} for n in range(3)]
    metered = [{**one, "time": one["time"] + "1", "why_ms": {"runqueue": n, "cpu": 5}} for n, one in enumerate(got)]
    oracle.add_slack(got, metered[::-1])
    assert [one["slack_ms"] for one in got] == [0, 1, 2]
    with pytest.raises(AssertionError):
        oracle.add_slack(got, metered[1:])


def test_complaints_state_their_share():
    log, got = made_up()
    for one in got[:20:2]:
        slower(one)
    complaint, = compare(expected(log), got)
    assert isinstance(complaint, Off) and complaint.share == 10 / 400 and complaint.usual == pytest.approx(0.01)


def test_comparer_knows_a_cut():
    text = "é" * 3000
    log = line(1, 5, f"duration: 1.000 ms  statement: {text}", 1).encode()
    one = {"time": "1", "pid": 1, "duration_ms": 1.0, "status": "ok", "query": "é" * 2048,
           "query_bytes": 6000, "truncated": True}
    assert compare(expected(log), [one]) == []
    for wrong in ({"truncated": False}, {"query": text[:1000]}, {"query": "x" * 4096}, {"query_bytes": 4096}):
        assert compare(expected(log), [{**one, **wrong}]), f"accepted {wrong}"


# --- runs that the hypervisor disturbs, with made-up numbers

STAT = "cpu  9 9 9 9 9 9 9 {} 0 0\ncpu0 9 9 9 9 9 9 9 {} 0 0\ncpu1 9 9 9 9 9 9 9 {} 0 0\nintr 5\n"


def stolen_of(elapsed_ms, *cpus_ms):
    steal = Steal()
    steal.elapsed_ms, steal.cpus_ms = elapsed_ms, cpus_ms
    return steal


def test_steal_is_read_for_each_cpu(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text(STAT.format(30, 10, 20))
    with Steal(stat) as steal:
        stat.write_text(STAT.format(75, 15, 60))
    assert steal.cpus_ms == [5 * steal.tick_ms, 40 * steal.tick_ms] and steal.ms == 45 * steal.tick_ms
    steal.elapsed_ms = 1000
    assert steal.share == 40 * steal.tick_ms / 1000
    with Steal() as here:
        pass
    assert len(here.cpus_ms) == os.cpu_count() and here.elapsed_ms > 0


def test_only_disturbed_durations_are_measured_again():
    slow, disturbed = Off("slow", share=0.03, usual=0.01), stolen_of(10_000, 50, 150)
    assert disturbed.explains([slow]) and not disturbed.explains([slow, "not seen"]) and not disturbed.explains([])
    assert not stolen_of(10_000, 50, 0).explains([slow]), "it is calm"
    disturbed = stolen_of(60_000, 0, 150)
    assert disturbed.explains([Off("one", 155)])
    assert not disturbed.explains([Off("one", 300), Off("one", 155)])


def test_no_more_is_excused_than_was_stolen():
    def excused(share, *cpus_ms):
        return stolen_of(6000, *cpus_ms).excuses([Off("slow", share=share, usual=0.01)])
    assert excused(0.05, 300, 0) and excused(0.05, 300, 300), "5 % of a CPU, and the usual 1 %"
    assert not excused(0.07, 300, 0) and not excused(0.07, 300, 300), "one CPU of two disturbs what ran there"
    assert excused(0.14, 420, 840) and not excused(0.17, 420, 840)
    assert not excused(0.011, 50, 0), "it is calm"
    assert not excused(1.0, 5000, 0) and excused(1.0, 6000, 0)
    assert stolen_of(6000, 300, 100).excuses([Off("one", 405), Off("one", 120)])
    assert not stolen_of(6000, 300, 100).excuses([Off("one", 420), Off("one", 120)])
    assert not stolen_of(6000, 300, 0).excuses([Off("slow", share=0.02, usual=0.01), "not seen"])


def repeats(*runs):
    """Return the complaints after these runs, each an exception or the share that is off and the ms stolen, and how many ran."""
    left = list(runs)

    def run(steal):
        now = left.pop(0)
        if isinstance(now, Exception):
            raise now
        steal.elapsed_ms, steal.cpus_ms = 6000, [0, now[1]]
        return [Off("slow", share=now[0], usual=0.01)] if now[0] > 0.01 else []
    return repeated(run), len(runs) - len(left)


def test_a_calm_run_decides():
    calm, disturbed, excused, wrong = (0.0, 0), (0.2, 300), (0.05, 300), (0.02, 50)
    assert repeats(calm) == ([], 1) and repeats((0.0, 300)) == ([], 1)
    assert repeats(wrong) == (["slow"], 1)
    assert repeats(excused, excused, wrong) == (["slow"], 3), "what the others excuse does not count"
    assert repeats(disturbed, calm) == ([], 2)
    assert repeats(disturbed, RingFull(), calm) == ([], 3)
    assert repeats(*[disturbed, excused, disturbed, disturbed]) == ([], RUNS)
    complaints, ran = repeats(*[disturbed] * RUNS)
    assert ran == RUNS and complaints[0] == "slow"
    complaints, ran = repeats(*[RingFull()] * RUNS)
    assert ran == RUNS and "records were lost" in complaints[0]
    assert repeats(excused, excused, excused, RingFull())[0] == [], "its losses are counted"


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
    """The workload of a server that runs a copy of the program."""
    need_server()
    folder = tmp_path_factory.mktemp("prepared")
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and str(parent).startswith("/tmp/") and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o055)
    path = shutil.copy(os.path.join(server_bindir(), "postgres"), folder)
    with Cluster(name="old", postgres=path).init() as cluster:
        workload = Workload(cluster.start(), folder)
        workload.setup()
        yield workload


@pytest.mark.parametrize("args", [force("perf"), force("prealloc"), force("perf", "prealloc"),
                                  force("perfbuf"), force("probe-read"), force("semaphore"), force("pids"),
                                  ALL_FALLBACKS, OLD],
                         ids=" ".join)
def test_fallbacks_agree_with_the_log(prepared, tool, args):
    """Each fallback, on a smaller workload and on a file that no other tool traces."""
    agrees(prepared, tool, args)


def test_server_without_usdt_agrees_with_the_log(clusters, server_copy, tool, tmp_path):
    """The same server without its notes is traced by its symbols, and must look the same."""
    subprocess.run(["objcopy", "--remove-section=.note.stapsdt", server_copy], check=True)
    notes = subprocess.run(["readelf", "-n", server_copy], capture_output=True, text=True, check=True).stdout
    assert "stapsdt" not in notes
    tmp_path.chmod(0o755)
    workload = Workload(clusters(name="symbols", postgres=server_copy), tmp_path)
    workload.setup()
    traced = agrees(workload, tool, [])
    assert "by its symbols" in traced.stderr and "does not report" not in traced.stderr, traced.said()


def agrees(workload, tool, args):
    tools = []

    def work():
        for part in (workload.texts, workload.interrupted, workload.pipelines, workload.orders):
            part()
        workload.one_client(1000)	# one slow text is more than 1 % of the few above

    def run(steal):
        logged, traced = traced_with_slack(workload.cluster, tool, work, steal, args)
        tools.append(traced)
        assert len(logged) > 3200, f"the workload had only {len(logged)} statements"
        return compare(logged, traced.slack)

    report(repeated(run))
    return tools[-1]
