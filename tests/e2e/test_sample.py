# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--sample: statements from samples of the servers' memory, compared with the servers' own logs and with what clients measured."""

import errno
import itertools
import json
import os
import re
import subprocess
import threading
import time

import pytest

from cluster import children, wait_for
from commanded import as_user, reveal
from containers import UNSHARE, needs_namespaces
from mariadb import Maria
from postgres_releases import RELEASES, Release
from releases import Maria11, Mysql9
from requirements import need_maria, need_root
from seccomp import deny
from tool import FIXTURES, Tool, refused, run

pytestmark = pytest.mark.alone

INTERVAL = 10		# ms
CLIENTS = 6
PAUSES = 0, 0.02, 0.04	# of the clients between two statements, in turn
BPF, PERF_EVENT_OPEN = (321, 298) if os.uname().machine == "x86_64" else (280, 241)
LOGGED = re.compile(r"^(\d+) LOG:  duration: ([\d.]+) ms  (?:statement|execute [^:]*): (.*)$", re.M)


@pytest.fixture(scope="module", name="logging")
def make_logging(postgres):
    """The server, which logs the duration of every statement."""
    postgres.psql("alter system set log_min_duration_statement = 0", "alter system set log_line_prefix = '%p '", "select pg_reload_conf()")
    time.sleep(0.3)
    yield postgres
    postgres.psql("alter system reset log_min_duration_statement", "alter system reset log_line_prefix", "select pg_reload_conf()")


def sampled(*args, **keywords):
    return Tool("--sample", f"{INTERVAL}ms", "--json", *args, **keywords)


class Workers:
    """Threads that each run statements of some durations one after the other, and note what they measured."""

    def __init__(self, count, work):
        self.calls = []			# (text, when it began, when the client had its answer: ms)
        self.threads = [threading.Thread(target=work, args=(i, self.note)) for i in range(count)]

    def note(self, text, execute):
        begin = time.monotonic() * 1000
        execute(text)
        self.calls.append((text, begin, time.monotonic() * 1000))

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        return {text: end - begin for text, begin, end in self.calls}


def agree(statements, logged, took, late):
    """
    Each statement of @logged (text, ms) that lasted twice the interval is there once, but for what it says itself at least as long as it was
    logged, and nearly always as long; unless samples were @late, of which each can have missed one of each client. @took: after how many ms
    the server was idle, at the latest.
    """
    found, near, missing = {}, 0, 0
    for one in statements:
        assert one["duration_ms"] + one.get("duration_error_ms", 0) >= INTERVAL, one
        found.setdefault(one["query"], []).append(one)
    long = [(text, ms) for text, ms in logged if ms >= 2 * INTERVAL]
    assert len(long) >= 20, logged
    for text, ms in long:
        if text not in found:
            missing += 1
            continue
        (one,) = found.pop(text)
        wrong = one.get("duration_error_ms", 0)
        assert ms - wrong - 0.5 <= one["duration_ms"] <= took[text] + wrong + 0.5, (one, ms, took[text])
        near += abs(one["duration_ms"] - ms) <= wrong + 1
    assert missing <= late * CLIENTS and near >= 0.8 * (len(long) - missing), (missing, near, len(long))
    return found


def test_postgres(logging):
    compare(logging)


@pytest.mark.parametrize("release", RELEASES)
def test_releases(release):
    """The same of other releases; before 14 the entries of sessions have no symbol."""
    need_root()
    with Release(release, log_min_duration_statement="0", log_line_prefix="'%p '").init() as server:
        compare(server.start())


def compare(logging):
    """Statements of clients that think, or do not; texts of the simple and of the extended protocol."""
    def work(i, note):
        with logging.connect() as one:
            for n, ms in enumerate([25, 130, 45, 300, 33, 3, 60, 28]):
                text = f"select pg_sleep({ms / 1000}), '{i} {n}'"
                if i % 2:
                    note(text, one.execute)
                else:
                    note(text, lambda sql: one.execute(sql, prepare=True))
                time.sleep(PAUSES[i % 3])

    before = logging.log_size()
    with sampled("-p", logging.pid) as tool:
        took = Workers(CLIENTS, work).run()
        assert tool.stop() == 0, tool.said()
    logged = [(text, float(ms)) for _, ms, text in LOGGED.findall(logging.read_log(before).decode())]
    rest = agree([one for one in tool.statements if "pg_sleep" in one["query"]], [one for one in logged if "pg_sleep" in one[0]], took,
                 tool.summary["lost"]["late_samples"])
    assert not any(len(ones) > 1 for ones in rest.values()), rest
    exact = [one for one in tool.statements if "duration_error_ms" not in one]
    assert len(exact) >= 10, "idle sessions have the exact end"
    for one in tool.statements:
        assert one["user"] == one["database"] == "postgres" and not {"rows", "status", "sqlstate", "time_ms"} & set(one), one
    assert tool.summary["unseen_below_ms"] == INTERVAL and "boundary" not in tool.summary


def maria_work(server):
    def work(i, note):
        with server.connect() as client:
            for n, ms in enumerate([25, 130, 45, 300, 33, 3, 60, 28, 1]):
                note(f"select sleep({ms / 1000}), '{i} {n}'", client.query)
                time.sleep(PAUSES[i % 3])
    return work


def idle_after(calls, logged):
    """{text: ms} until the server was idle: it may be after the answer, but is before it has run the client's next statement."""
    took = {text.split("'")[1]: ms for text, ms in logged}
    order = sorted((text.split("'")[1].split(), text, begin, end) for text, begin, end in calls)
    return {text: next_end - took[" ".join(next_key)] - begin for (key, text, begin, _), (next_key, _, _, next_end) in itertools.pairwise(order)
            if key[0] == next_key[0]}


@pytest.mark.parametrize("make", [Maria, Maria11, Mysql9])
def test_maria(make):
    """The same of MariaDB, whose ends are exact if the client pauses, and of MySQL, which has no end."""
    need_maria()
    server = make(long_query_time="0", slow_query_log="ON")
    server.init()
    with server.start():
        server.query("select 1")
        before = server.log_size()
        with sampled("-p", server.pid) as tool:
            workers = Workers(CLIENTS, maria_work(server))
            workers.run()
            assert tool.stop() == 0, tool.said()
        log = server.read_log(before)
    log = log.decode() if isinstance(log, bytes) else log
    logged = [(text, float(s) * 1000) for s, text in re.findall(r"Query_time: ([\d.]+)[^\n]*\n(?:[^\n]*\n)*?(select sleep\([^\n]*);\n", log)]
    agree([one for one in tool.statements if one["query"].startswith("select sleep")], logged, idle_after(workers.calls, logged),
          tool.summary["lost"]["late_samples"])
    exact = sum("duration_error_ms" not in one for one in tool.statements)
    pauses = sum(PAUSES[int(re.search(r"'(\d+) ", one["query"])[1]) % 3] > 0 for one in tool.statements)
    assert exact == 0 if make is Mysql9 else exact >= pauses * 0.8 > 10, tool.stdout
    assert {one["user"] for one in tool.statements} == {"root"} and all(one["connection_id"] for one in tool.statements)


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS], ids=["forbidden", "not in the kernel"])
def test_without_bpf(logging, error):
    """Where bpf(2) and perf_event_open(2) fail, the message offers it, and it works; it keeps no capability for these."""
    need_root()
    forbidden = deny((BPF, error), (PERF_EVENT_OPEN, error))
    done = run("-d", "0.1", "-p", logging.pid, preexec_fn=forbidden)
    assert done.returncode == 1 and done.stderr.endswith("; or, without programs and probes, specify --sample 10ms\n"), done
    assert "--sample" not in run("locks", "-d", "0.1", preexec_fn=forbidden).stderr
    with sampled("-p", logging.pid, "-v", preexec_fn=forbidden) as tool:
        (child,) = children(tool.pid)
        with open(f"/proc/{child}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        with logging.connect() as one:
            one.execute("select pg_sleep(0.3), 'without'")
            tool.wait_for(lambda t: t.statements, what="the statement")
        assert tool.stop() == 0, tool.said()
    assert int(status["CapEff"], 16) == 1 << 19 | 1 << 2 | 1 << 40 and status["Seccomp"] == "2" and status["Name"] == "session-reader", status
    assert "CAP_BPF" not in tool.stderr and "CAP_SYS_PTRACE" in tool.stderr, tool.stderr
    assert ["select pg_sleep(0.3), 'without'"] == [one["query"] for one in tool.statements]


def test_running_ended_and_selected(logging):
    """What runs at the end, or began before; a backend that is ended; -p of one backend; texts beyond track_activity_query_size."""
    long = f"select pg_sleep(0.3), '{'x' * 3000}'"
    with logging.connect() as early, logging.connect() as other, logging.connect() as selected:
        begun = threading.Thread(target=lambda: pytest.raises(Exception, early.execute, "select pg_sleep(600), 'early'"))
        begun.start()
        wait_for(lambda: logging.psql("select 1 from pg_stat_activity where query like '%''early''%' and pid <> pg_backend_pid()").stdout,
                 what="the statement")
        with sampled("-p", logging.pid) as tool, sampled("-p", selected.info.backend_pid) as one:
            killed = threading.Thread(target=lambda: pytest.raises(Exception, other.execute, "select pg_sleep(60), 'killed'"))
            begin = time.monotonic()
            killed.start()
            selected.execute("select pg_sleep(0.3), 'selected'")
            selected.execute(long)
            time.sleep(0.3)
            logging.psql(f"select pg_terminate_backend({other.info.backend_pid})")
            killed.join()
            took = (time.monotonic() - begin) * 1000
            for each, n in ((tool, 3), (one, 2)):
                each.wait_for(lambda t, n=n: len(t.statements) >= n, what="the statements")
            assert tool.stop() == 0 and one.stop() == 0, tool.said() + one.said()
        early.cancel()
        begun.join()
    found = {one["query"]: one for one in tool.objects() if "query" in one}
    assert found["select pg_sleep(600), 'early'"]["type"] == "running" and found["select pg_sleep(600), 'early'"]["duration_ms"] > 300
    wrong = found["select pg_sleep(60), 'killed'"].get("duration_error_ms", 0)
    assert 200 < found["select pg_sleep(60), 'killed'"]["duration_ms"] <= took + wrong
    assert found["select pg_sleep(60), 'killed'"]["type"] == "statement"
    assert found[long]["truncated"] is False
    assert [s["query"] for s in one.statements] == ["select pg_sleep(0.3), 'selected'", long]


def test_not_sampled(logging):
    with logging.connect() as hidden, sampled("-p", logging.pid) as tool:
        hidden.execute("set track_activities = off")
        hidden.execute("select pg_sleep(0.1)")
        time.sleep(0.05)
        assert tool.stop() == 0, tool.said()
    assert tool.summary["lost"]["not_sampled"] == 1 and not any("0.1" in one["query"] for one in tool.statements), tool.said()


def test_recorded(logging, tmp_path):
    """A recording of samples says what they say, and other commands count the same."""
    path = tmp_path / "a.rec"
    with Tool("record", path, "--sample", f"{INTERVAL}ms", "-p", logging.pid, attached=False) as record, \
         sampled("-p", logging.pid) as tool, Tool("stat", "--sample", f"{INTERVAL}ms", "--json", "-p", logging.pid) as stat, \
         Tool("top", "--sample", f"{INTERVAL}ms", "--json", "-p", logging.pid) as top:
        wait_for(lambda: "sampling" in record.stderr, what="record")
        with logging.connect() as one:
            for i in range(5):
                one.execute(f"select pg_sleep({0.2 + i / 100}), 'of {i}'")
                time.sleep(0.03)
        for each in (tool, record, stat, top):
            assert each.stop() == 0, each.said()
    found = [json.loads(line) for line in run("replay", path, "--json").stdout.splitlines()]
    replayed = [one for one in found if one["type"] == "statement"]
    assert [one["query"] for one in replayed] == [one["query"] for one in tool.statements] and len(replayed) == 5
    for recorded, one in zip(replayed, tool.statements):
        assert abs(recorded["duration_ms"] - one["duration_ms"]) <= recorded.get("duration_error_ms", 0) + one.get("duration_error_ms", 0) + 0.001
    histogram = [one for one in stat.objects() if one["type"] == "histogram"]
    assert [one["count"] for one in histogram] == [5], stat.stdout
    assert [one["calls"] for one in top.objects() if one["type"] == "group"] == [5], top.stdout


def test_server_that_starts_later(clusters, server_copy):
    """Its statements are there, and an end of a server is survived."""
    server = clusters(postgres=server_copy, start=False)
    with sampled("-x", server_copy, attached=False) as tool:
        tool.wait_for(lambda one: "waiting for one" in one.stderr, what="the message")
        server.start()
        tool.wait_for(lambda one: "dbslower: sampling" in one.stderr, what="the server")
        with server.connect() as one:
            one.execute("select pg_sleep(0.3), 'first'")
        server.restart()
        with server.connect() as one:
            def seen():
                one.execute("select pg_sleep(0.1), 'second'")
                return any("second" in found["query"] for found in tool.statements)
            wait_for(seen, what="the server that was started again")
        assert tool.stop() == 0, tool.said()
    texts = [one["query"][-8:-1] for one in tool.statements if "pg_sleep" in one["query"]]
    assert texts[0] == " 'first" and set(texts[1:]) == {"'second"}, tool.stdout


def test_hostile_memory(logging, tmp_path):
    """Pointers that lead anywhere, of another user, change nothing for the server beside it."""
    need_root()
    path = tmp_path / "postgres"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-rdynamic", "-o", path, os.path.join(FIXTURES, "hostileentries.c")], check=True)
    reveal(str(path))
    for seed in range(3):
        with subprocess.Popen([path, str(seed)], stdout=subprocess.PIPE, **as_user()) as other:
            try:
                assert other.stdout.readline() == b"ready\n"
                def work(_, note):
                    with logging.connect() as one:
                        for i in range(10):	# longer than the host may be busy with something else
                            note(f"select pg_sleep(0.15), 'honest {i}'", one.execute)
                            time.sleep(0.02)

                with sampled("-p", f"{logging.pid},{other.pid}") as tool:
                    took = Workers(1, work).run()
                    listed = run("ps", "--json", "-p", f"{logging.pid},{other.pid}")
                    assert tool.stop() == 0, tool.said()
            finally:
                other.kill()
        honest = [one for one in tool.statements if one["server"]["pid"] == logging.pid and "honest" in one.get("query", "")]
        assert [one["query"] for one in honest] == [f"select pg_sleep(0.15), 'honest {i}'" for i in range(10)], tool.said()
        for one in honest:
            wrong = one.get("duration_error_ms", 0)
            assert 150 - wrong <= one["duration_ms"] <= took[one["query"]] + wrong + 0.5, one
        assert listed.returncode == 0, listed


@pytest.mark.parametrize("args, words", [
    (("--sample", "0.5"), "not from 1 ms to 60 s"), (("--sample", "10ms", "--why"), "cannot be combined with --why"),
    (("stat", "--sample", "10ms", "--wait", "cpu"), "cannot be combined with --wait"), (("locks", "--sample", "10ms"), "unknown option")])
def test_refused(args, words):
    refused(run(*args), words, status=2)


def test_pid_namespace(clusters):
    """The server numbers its processes in another way than this host."""
    need_root()
    needs_namespaces()
    server = clusters(wrap=UNSHARE)
    with sampled("-p", server.pid) as tool:
        with server.connect() as one, server.connect() as two:
            for i in range(3):
                one.execute(f"select pg_sleep(0.05), 'one {i}'")
                two.execute(f"select pg_sleep(0.05), 'two {i}'")
            time.sleep(0.05)
            inside = server.backends()
        assert tool.stop() == 0, tool.said()
    texts = [one["query"].split("'")[1] for one in tool.statements]
    assert set(texts) >= {"one 1", "one 2", "two 1", "two 2"}, (texts, tool.said())
    assert {one["pid"] for one in tool.statements} <= set(inside), (inside, tool.stdout)


def test_child_is_killed(logging):
    """Another one samples on, and it is said; without any that lives, the end is a failure."""
    with sampled("-p", logging.pid) as tool, logging.connect() as one:
        time.sleep(1.1)
        (child,) = children(tool.pid)
        os.kill(child, 9)
        tool.wait_for(lambda t: "has ended" in t.stderr, what="the message")
        wait_for(lambda: children(tool.pid) and children(tool.pid) != [child], what="another child")

        def seen():
            one.execute("select pg_sleep(0.1), 'after'")
            return tool.statements
        wait_for(seen, what="its first statement")
        assert {s["query"] for s in tool.statements} == {"select pg_sleep(0.1), 'after'"}, tool.said()

        def ended():
            for child in children(tool.pid):
                os.kill(child, 9)
            return tool.process.poll() is not None
        wait_for(ended, what="the end")
        assert tool.wait() == 1, tool.said()
    assert tool.stderr.count("session-reader: the process that reads sessions cannot be started, or has ended") >= 2, tool.stderr


def test_many_short_connections(logging):
    """A session that is new at each sample; the long statements of those are all there."""
    def work(i, note):
        for n in range(10):
            with logging.connect() as one:
                note(f"select pg_sleep(0.05), '{i} {n}'", one.execute)

    with sampled("-p", logging.pid) as tool:
        took = Workers(4, work).run()
        assert tool.stop() == 0, tool.said()
    found = [one["query"] for one in tool.statements if "pg_sleep" in one["query"]]
    assert len(set(found)) == len(found) and set(found) <= set(took), tool.said()
    assert len(took) - len(found) <= tool.summary["lost"]["late_samples"], tool.said()
