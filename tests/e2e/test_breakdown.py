# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--why and --use: statements whose time went where we know. What the kernel counts of a process (/proc/PID/schedstat,
/proc/PID/io) and the server of a statement (EXPLAIN) is the oracle, and the clock of who holds a lock.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import psycopg
import pytest

import backends
import system_calls
import wire
from cluster import Cluster, children, has_left_cpu, scheduled, sleeps, state as process_state, wait_for
from containers import disk_of, little_cpu, slow_reads
from fallbacks import ALL as ALL_FALLBACKS, OLD, force, lacks
from fetched import CannotBeHad
from mariadb import Maria, maria_server
from slowfs import DELAY, SlowFs
from statements import only, stopped, why_ns
from tables import tables
from tool import DBSLOWER, Stat, counted

SLEEPS = 20
SLOW_READS = 40 << 20	# bytes a second
PARTS = {"cpu", "runqueue", "throttled", "disk", "fsync", "lock", "lwlock", "futex", "network", "remote", "pipe", "sleep", "ipc", "replication",
         "extension", "stopped", "other"}


def complete(traced):
    """Each statement's parts are there, and add up to its duration exactly."""
    for one in traced.statements:
        assert set(why_ns(one)) == PARTS, one
        assert sum(why_ns(one).values()) == round(one["duration_ms"] * 1e6), one
        waited = sum(ns for part, ns in why_ns(one).items() if part not in ("cpu", "runqueue", "throttled", "other"))
        assert round(sum(wait["total_ms"] for wait in one["waits"]) * 1e6) <= round(one["duration_ms"] * 1e6), one
        assert bool(one["waits"]) or not waited, one
    return traced


def ended(traced):
    return complete(stopped(traced))


# A kernel that does not describe its types: the scheduler's events tell.
NO_TYPES = ("unshare", "-m", "sh", "-c", '[ ! -e /sys/kernel/btf ] || mount -t tmpfs none /sys/kernel/btf && "$0" "$@"; exit $?')
WAYS = pytest.mark.parametrize("wrap", [(), NO_TYPES], ids=["types", "no-types"])


def way(traced):
    """It, which took the way that it was to take: with its types the kernel is not asked for system calls."""
    pid = children(traced.pid)[0] if traced.wrap else traced.pid
    links = ""
    for number in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as f:
            links += f.read()	# else it was closed meanwhile
    if "tp_name" in links and os.path.exists("/sys/kernel/btf/vmlinux"):
        types = not no_types(traced)
        assert bool(re.search(r"tp_name:\s*sys_enter", links)) != types, links
        assert bool(re.search(r"tp_name:\s*sched_switch", links)) == types, links
    return traced


def no_types(traced):
    """Return whether it does without the types of the kernel."""
    return bool(traced.wrap) or lacks(traced.args, (5, 4))


@pytest.fixture(params=[(), NO_TYPES], ids=["types", "no-types"])
def traced(request, postgres, tool):
    return way(tool("-p", postgres.pid, "-m", "0", "--json", "--why", "--use", wrap=request.param))


def late(why, part):
    """The nanoseconds of a part, and those in which another process had the CPU: it may have been about to wait."""
    return why[part] + why["runqueue"]


class Blocked(threading.Thread):
    """Something that waits. after(condition) comes back when it does; waited: how long it then did, at least."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work = work
        self.start()

    def run(self):
        self.work()

    def after(self, waits, release):
        wait_for(waits, what="it to wait")
        start = time.monotonic_ns()
        time.sleep(0.3)
        waited = time.monotonic_ns() - start
        release()
        self.join(60)
        return waited


# --- PostgreSQL

def test_sleep(postgres, traced):
    postgres.psql("select pg_sleep(0.3) /* asleep */")
    one = only(ended(traced), "asleep")
    why = why_ns(one)
    assert late(why, "sleep") >= 295e6 and why["sleep"], why
    # The session has ended before the names are read.
    assert [(wait["event"], wait["sleeps"], round(wait["total_ms"] * 1e6)) for wait in one["waits"] if wait["call"] == "epoll_wait"] == [
        ("Timeout:PgSleep", 1, why["sleep"])], one


def test_columns(postgres, tool):
    """As columns, without what --why shows below a statement."""
    traced = tool("-p", postgres.pid, "-m", "0", "-o", "time,ms,cpu,runqueue,sleep,lock,execute,query")
    postgres.psql("select pg_sleep(0.3) /* asleep */")
    stopped(traced)
    row, = [line for line in traced.rows() if "asleep" in line]
    ms, cpu, runqueue, sleep, lock, execute = (float(word) for word in row.split()[1:7])
    # It may also have to wait for something before and after it executes the statement.
    assert ms >= max(execute, sleep) and min(execute, sleep) >= 295 - runqueue, row
    assert cpu + sleep <= ms + 0.002 and not lock, row	# rounded
    assert traced.stdout.count("\n") == 2 + len(traced.rows()), traced.said()


def taken(cpu):
    """The nanoseconds in which interrupts and other hosts had the CPU; the kernel counts ticks."""
    with open("/proc/stat", encoding="ascii") as f:
        words = re.search(rf"^cpu{cpu} (.*)$", f.read(), re.M)[1].split()
    return sum(int(word) for word in words[5:8]) * 10**9 // os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_cpu_and_run_queue(postgres, traced):
    """Beside another one that never sleeps, on one CPU: about half of the time, which the kernel knows better."""
    with postgres.connect() as connection:
        pid = connection.info.backend_pid
        cpu = min(os.sched_getaffinity(pid))
        os.sched_setaffinity(pid, {cpu})
        connection.execute("select 1")
        other = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
        try:
            wait_for(lambda: scheduled(other.pid)[0] > 300e6, what="it to burn")
            before, taken_before = scheduled(pid), taken(cpu)
            connection.execute("select count(*) from generate_series(1, 6000000) /* burns */")
            after, taken_after = scheduled(pid), taken(cpu)
        finally:
            other.kill()
            other.wait()
    one = only(ended(traced), "burns")
    why, kernel, others = why_ns(one), [new - old for old, new in zip(before, after)], taken_after - taken_before
    # The kernel's numbers are of the whole exchange with the client, and without the time of interrupts and other hosts.
    for part, ns in zip(("cpu", "runqueue"), kernel):
        assert ns * 0.75 - 20e6 <= why[part] <= ns * 1.25 + 20e6 + others, (part, why, kernel, others)
    assert kernel[1] > 50e6 and not why["throttled"], (kernel, why)


def test_lock(postgres, traced):
    postgres.psql("create table if not exists locked as select 1 as id")
    with postgres.connect(autocommit=False) as holder, postgres.connect() as waiter:
        holder.execute("update locked set id = 2")
        blocked = Blocked(lambda: waiter.execute("update locked set id = 3 /* blocked */"))
        waited = blocked.after(lambda: postgres.psql("select 1 from pg_stat_activity where wait_event_type = 'Lock' "
                                                     f"and pid = {waiter.info.backend_pid}").stdout, holder.commit)
    why = why_ns(only(ended(traced), "blocked"))
    assert late(why, "lock") >= waited, (why, waited)


@contextlib.contextmanager
def by_signal(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: process_state(pid) == "T", what="it to stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def by_tracer(pid):
    """ptrace(2): PTRACE_SEIZE, PTRACE_INTERRUPT and PTRACE_DETACH, which requires a stopped tracee."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.ptrace(0x4206, pid, None, None) and not libc.ptrace(0x4207, pid, None, None), ctypes.get_errno()
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED | 0x40000000)	# __WALL
        yield
    finally:
        assert not libc.ptrace(17, pid, None, None), ctypes.get_errno()


@contextlib.contextmanager
def by_freezer(pid):
    """The freezer of control groups, version 2 or 1."""
    for base, state, frozen, values in (("/sys/fs/cgroup", "cgroup.freeze", "cgroup.events", ("1", "0", "frozen 1")),
                                        ("/sys/fs/cgroup/unified", "cgroup.freeze", "cgroup.events", ("1", "0", "frozen 1")),
                                        ("/sys/fs/cgroup/freezer", "freezer.state", "freezer.state", ("FROZEN", "THAWED", "FROZEN"))):
        folder = os.path.join(base, f"stop-{os.getpid()}")
        if not os.path.exists(os.path.join(base, "cgroup.procs")):
            continue
        os.mkdir(folder)
        if os.path.exists(os.path.join(folder, state)):
            break
        os.rmdir(folder)
    else:
        pytest.skip("no control groups that can be frozen")

    def write(name, text, to=folder):
        with open(os.path.join(to, name), "w", encoding="ascii") as f:
            f.write(text)

    def is_frozen():
        with open(os.path.join(folder, frozen), encoding="ascii") as f:
            return values[2] in f.read()
    write("cgroup.procs", str(pid))
    write(state, values[0])
    try:
        wait_for(is_frozen, what="it to freeze")
        yield
    finally:
        write(state, values[1])
        write("cgroup.procs", str(pid), base)
        os.rmdir(folder)


@pytest.mark.parametrize("stop", [by_signal, by_tracer, by_freezer])
def test_stopped(postgres, traced, stop):
    """While it runs, and in a system call in which it waits. A record of the scheduler does not tell of a freezer."""
    stops = []

    def run(text, seen, end):
        def work():
            with contextlib.suppress(Exception):	# it is cancelled
                connection.execute(text)
        blocked = Blocked(work)
        wait_for(lambda: postgres.psql(f"select 1 from pg_stat_activity where pid = {pid} and {seen}").stdout, what="it to run")
        with stop(pid):
            wait_for(lambda: has_left_cpu(pid), what="it to leave its CPU")	# it is said to be stopped before
            start = time.monotonic_ns()
            time.sleep(0.2)
            stops.append(time.monotonic_ns() - start)
        end()
        blocked.join()
    with postgres.connect() as connection, postgres.connect() as holder:
        pid = connection.info.backend_pid
        run("do $$ begin loop end loop; end $$ /* runs */", "query like 'do %'", lambda: holder.execute(f"select pg_cancel_backend({pid})"))
        holder.execute("select pg_advisory_lock(78)")
        run("select pg_advisory_lock(78) /* sleeps */", "wait_event = 'advisory'", lambda: holder.execute("select pg_advisory_unlock(78)"))
    ended(traced)
    for tag, stopped_ns in zip(("runs", "sleeps"), stops):
        one = only(traced, tag)
        if stop is by_freezer and no_types(traced):
            assert not why_ns(one)["stopped"], one
            continue
        assert why_ns(one)["stopped"] >= stopped_ns, (one, stopped_ns)
        assert round(sum(wait["total_ms"] for wait in one["waits"] if wait["call"] == "stopped") * 1e6) == why_ns(one)["stopped"], one


def test_pipe(postgres, traced):
    """What COPY reads from a program, and writes to one, is not the client's. The program waits until its server does."""
    wait = 'until grep -q "^[0-9]* (.*) S " /proc/$PPID/stat; do :; done; sleep 0.2'
    postgres.psql("create table if not exists piped (line text)", f"copy piped from program '{wait}; echo line' /* reads */",
                  f"copy (select repeat('x', 1000) from generate_series(1, 300)) to program '{wait}; cat >/dev/null' /* writes */")
    ended(traced)
    for tag in ("reads", "writes"):
        why = why_ns(only(traced, tag))
        if no_types(traced) and not why["pipe"]:	# what the file is is not known then, unless the server says that it does I/O
            assert late(why, "network") >= 150e6, why
            continue
        assert late(why, "pipe") >= 150e6 and why["pipe"] and why["network"] <= 20e6, why


def test_network(postgres, traced):
    """A client that does not read."""
    connection = wire.Wire(postgres, "lazy")
    connection.send(wire.simple("select repeat('x', 1000) from generate_series(1, 20000) /* not read */"))
    size = []
    blocked = Blocked(lambda: None)
    waited = blocked.after(lambda: postgres.psql("select 1 from pg_stat_activity where wait_event = 'ClientWrite' "
                                                 "and application_name = 'lazy'").stdout,
                           lambda: size.append(drain(connection)))
    connection.close()
    one = only(ended(traced), "not read")
    assert late(why_ns(one), "network") >= waited, (one, waited)
    assert size[0] * 0.95 <= one["use"]["sent_bytes"] <= size[0] * 1.05, (one, size)


@contextlib.contextmanager
def nobody_answers():
    """A port on which no further connection is accepted, and none refused."""
    with contextlib.ExitStack() as stack:
        listener, *waiting = (stack.enter_context(contextlib.closing(socket.socket())) for _ in range(4))
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.parametrize("host", ["socket", "127.0.0.1"])
def test_another_server(postgres, traced, host):
    """What a statement asks another server, its client and that server being on either kind of socket."""
    host = host.replace("socket", postgres.socket_dir)
    asks = f"from dblink('host={{}} port={{}} user=postgres dbname=postgres connect_timeout=2', 'select pg_sleep(0.3)::text') as t (a text)"
    with postgres.connect(host=host) as client, nobody_answers() as port:
        client.execute("create extension if not exists dblink")
        for there in (postgres.socket_dir, "127.0.0.1"):
            client.execute(f"select {asks.format(there, postgres.port)} /* asks */")
        for text in ("drop extension if exists postgres_fdw cascade", "create extension postgres_fdw",
                     "create or replace view slow as select pg_sleep(0.3)::text as a"):
            client.execute(text)
        for name in ("one", "two"):
            client.execute(f"create server {name} foreign data wrapper postgres_fdw options (host '{postgres.socket_dir}', "
                           f"port '{postgres.port}', async_capable 'true')")
            client.execute(f"create user mapping for postgres server {name}")
            client.execute(f"create foreign table {name} (a text) server {name} options (table_name 'slow')")
        client.execute("select * from one union all select * from two /* asks */")
        with pytest.raises(psycopg.errors.SqlclientUnableToEstablishSqlconnection):
            client.execute(f"select {asks.format('127.0.0.1', port)} /* connects */")
        with client.cursor().copy("copy (select a, pg_sleep(0.3)::text from generate_series(1, 1) a) to stdout /* no remote */") as copy:
            list(copy)
        client.execute("create temporary table copied (line text)")
        with client.cursor().copy("copy copied from stdin /* pauses */") as copy:
            copy.write("line\n" * 20000)
            time.sleep(0.3)
    ended(traced)
    away, told = {"asks": 300e6, "connects": 2e9}, not no_types(traced)
    for tag, asleep in away.items():
        for one in (one for one in traced.statements if tag in one["query"]):
            why = why_ns(one)
            other = why["remote"] if told else why["extension"] + why["network"] + why["ipc"]
            assert late(why, "runqueue") + other >= asleep and (why["remote"] > 0) == told, one
            assert not told or why["network"] == why["extension"] == why["ipc"] == 0, one
    assert len([one for one in traced.statements if "asks" in one["query"]]) == 3
    for tag in ("pauses", "no remote"):
        assert why_ns(only(traced, tag))["remote"] == 0, traced.said()
    why = why_ns(only(traced, "pauses"))
    assert late(why, "network") >= 200e6 and why["network"], why


def test_sockets_that_cannot_be_told_apart(postgres, tool, tmp_path):
    """Without one of the kernel's members, no socket is taken for another server's."""
    with open("/sys/kernel/btf/vmlinux", "rb") as f:
        types, name = f.read(), b"\0icsk_bind_hash\0"
    assert types.count(name) == 1
    (tmp_path / "types").write_bytes(types.replace(name, name.upper()))
    over = f'mount --bind {tmp_path}/types /sys/kernel/btf/vmlinux && "$0" "$@"; exit $?'
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--why", wrap=("unshare", "-m", "sh", "-c", over))
    with postgres.connect(host="127.0.0.1") as client:
        client.execute("create extension if not exists dblink")
        client.execute(f"select from dblink('host=127.0.0.1 port={postgres.port} user=postgres dbname=postgres', "
                       "'select pg_sleep(0.3)::text') as t (a text) /* asks */")
        client.execute("create temporary table copied (line text)")
        with client.cursor().copy("copy copied from stdin /* pauses */") as copy:
            copy.write("line\n" * 20000)
            time.sleep(0.3)
    ended(traced)
    asks, pauses = (why_ns(only(traced, tag)) for tag in ("asks", "pauses"))
    assert late(asks, "extension") >= 300e6 and asks["remote"] == pauses["remote"] == 0 and late(pauses, "network") >= 200e6, traced.said()


def drain(connection):
    """Reads to the end of the answer: so many bytes."""
    size, last, end = 0, b"", b"Z\0\0\0\5I"
    while last != end:
        data = connection.socket.recv(1 << 16)
        assert data, "the server hung up"
        size += len(data)
        last = (last + data)[-len(end):]
    return size


def test_disk(tool):
    """A table that is in no cache, on a disk that is slow for the backend: the kernel counts the bytes and the waiting."""
    with Cluster(name="cold", fsync="on", autovacuum="off") as cluster:
        cluster.init().start()
        cluster.psql("create table cold as select repeat('x', 1000) x from generate_series(1, 20000)", "checkpoint")
        path = os.path.join(cluster.data, cluster.psql("select pg_relation_filepath('cold')").stdout.decode().strip())
        cluster.restart()
        with slow_reads(path, SLOW_READS) as move, open(path, "rb") as f, cluster.connect() as connection:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            traced = tool("-p", cluster.pid, "-m", "0", "--json", "--why", "--use")
            connection.execute("set max_parallel_workers_per_gather = 0")
            pid = connection.info.backend_pid
            move(pid)
            before = fetched(pid)
            connection.execute("select count(x) from cold /* from the disk */")
            read = fetched(pid) - before
        one = only(ended(traced), "from the disk")
    assert one["use"].get("read_bytes", no_types(traced) and read) == read >= 20000 * 1000, (one, read)
    # The last bytes can be read ahead of what is wanted; a limit is kept in slices of time.
    assert late(why_ns(one), "disk") + why_ns(one)["cpu"] >= read / SLOW_READS * 1e9 / 2 and why_ns(one)["disk"], (one, read)
    assert {wait["call"] for wait in one["waits"]} & {"pread64", "preadv", "page_fault"}, one
    assert one["use"]["shared_blks_read"] >= 20000 * 1000 // 8192, one


def fetched(pid):
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return int(dict(line.split(": ") for line in f.read().splitlines())["read_bytes"])


def test_throttled(postgres, traced):
    """A control group's limit, by what the kernel counts for the group; without the kernel's types, it is the run queue.

    The limit is so low that it is met although others want the CPU, too."""
    with little_cpu(5) as (move, throttled_ns), postgres.connect() as connection:
        pid = connection.info.backend_pid
        move(pid)
        os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))})
        before, (ran_ns, _), begin_ns = throttled_ns(), scheduled(pid), time.monotonic_ns()
        connection.execute("select count(*) from generate_series(1, 500000) /* limited */")
        elapsed_ns, stopped_ns, ran_ns = time.monotonic_ns() - begin_ns, throttled_ns() - before, scheduled(pid)[0] - ran_ns
        one = only(ended(traced), "limited")
    why, duration_ns = why_ns(one), one["duration_ms"] * 1e6
    part, other = ("runqueue", "throttled") if no_types(traced) else ("throttled", "runqueue")
    # It can be stopped before the statement has begun, and when that has ended but the client does not know yet.
    stopped_ns -= elapsed_ns - duration_ns
    # When it may run again it waits for a CPU like others, in the same part.
    assert stopped_ns > 0.5 * duration_ns and stopped_ns - why[other] - 0.03 * duration_ns <= why[part] <= 1.03 * duration_ns - ran_ns, (
        one, stopped_ns, elapsed_ns, ran_ns)


def test_file_system_of_a_process(postgres, traced):
    """What looks at files waits for whoever serves them, as for storage."""
    with SlowFs(os.path.join(postgres.dir, "slow")) as slow:
        before = len(slow.requests())
        postgres.psql(f"""select pg_read_file('{slow.folder}/file', -20, 10), size, pg_ls_dir('{slow.folder}')
            from pg_stat_file('{slow.folder}/file') /* served */""")
        asked = slow.requests()[before:]
        one = only(ended(traced), "served")
    calls = {wait["call"] for wait in one["waits"]}
    assert {"open", "read", "flush", "getattr", "readdir"} <= set(asked), asked
    assert {"openat", "close", "getdents64"} < calls or "others" in calls, calls
    why = why_ns(one)
    if no_types(traced):	# read(2) of a file is not told from that of a socket
        why["disk"], why["network"] = why["disk"] + why["network"], 0
    assert late(why, "disk") >= 0.95 * len(asked) * DELAY * 1e9 and why["disk"] > 0.8 * sum(
        ns for part, ns in why.items() if part not in ("cpu", "runqueue")), (one, asked)
    assert why["other"] + why["network"] < DELAY * 1e9, one


def test_many_kinds_of_waits(postgres, traced):
    """The longest one has its name, although it comes after more kinds than are kept."""
    holder, admin = postgres.connect(), postgres.connect()
    for text in ("create table last (i int)", "select pg_advisory_lock(7)", "begin", "lock table last"):
        holder.execute(text)

    def waits(event):
        return admin.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and wait_event = %s", [event]).fetchone()[0]

    with SlowFs(os.path.join(postgres.dir, "slow")) as slow, postgres.connect() as connection:
        thread = threading.Thread(target=connection.execute, args=(f"""do $$ begin
            perform pg_read_file('{slow.folder}/file', -20, 10), pg_ls_dir('{slow.folder}'), pg_stat_file('{slow.folder}/file');
            perform pg_sleep(0.02);
            perform pg_advisory_lock(7);
            copy pg_temp.lines from program 'sleep 0.03; echo 1';
            copy (select repeat('x', 1000) from generate_series(1, 1000)) to program 'sleep 0.03; cat >/dev/null';
            lock table last; end $$ /* kinds */""",))
        connection.execute("create temp table lines (i int)")
        connection.execute("set deadlock_timeout = '1h'")	# it would wake up once
        thread.start()
        wait_for(lambda: waits("advisory"), what="the first lock")
        holder.execute("select pg_advisory_unlock(7)")
        wait_for(lambda: waits("relation") and has_left_cpu(connection.info.backend_pid), what="the last lock")
        start = time.monotonic()
        time.sleep(1)
        least_ms = 1000 * (time.monotonic() - start)
        holder.execute("commit")
        thread.join()
        one = only(ended(traced), "kinds")
    holder.execute("drop table last")
    waits_ms = {wait.get("event", wait["call"]): wait["total_ms"] for wait in one["waits"]}
    longest = next(iter(waits_ms))
    assert len(waits_ms) == 8 and waits_ms["others"] > 20 and longest == "Lock:relation" and waits_ms[longest] >= least_ms, one
    why_ms = {part: ns / 1e6 for part, ns in why_ns(one).items()}
    known = sum(why_ms[part] for part in PARTS - {"cpu", "runqueue", "throttled", "other"})
    assert known - 0.01 < sum(waits_ms.values()) < known + why_ms["other"] + 0.01, one


def test_fsync(tool):
    """Commits wait for the disk, as long as the server says that it synchronized its log."""
    with Cluster(name="durable", fsync="on", synchronous_commit="on", track_wal_io_timing="on", autovacuum="off",
                 # The background writer logs nothing that the WAL writer synchronizes meanwhile, which would also do so
                 # with a page that a commit has filled.
                 wal_level="minimal", max_wal_senders="0", wal_writer_delay="10s") as cluster:
        if not disk_of(cluster.dir):
            pytest.skip("temporary files are not on a disk")
        cluster.init().start()
        cluster.psql("create table log (id int)")
        cluster.restart()	# processes add what they have spent to the server's sum when they end, or later
        traced = tool("-p", cluster.pid, "-m", "0", "--json", "--why", "--use")
        with cluster.connect() as connection:
            spent = [wal_sync_ns(connection)]
            for n in range(20):
                connection.execute(f"insert into log values ({n}) /* durable */")
            # It is reported when the backend is idle for a while, or ends.
            connection.execute("select pg_stat_force_next_flush()")
            spent.append(wal_sync_ns(connection))
            # Now the writes themselves wait until the disk has the data.
            connection.execute("alter system set wal_sync_method = 'open_datasync'")
            connection.execute("select pg_reload_conf()")
            wait_for(lambda: connection.execute("show wal_sync_method").fetchone() == ("open_datasync",), what="the setting")
            for n in range(5):
                connection.execute(f"insert into log values ({n}) /* synchronous */")
        ended(traced)
    durable = [one for one in traced.statements if "/* synchronous */" in one["query"]]
    part, other = ("disk", "fsync") if no_types(traced) else ("fsync", "disk")	# how the file was opened is not known then
    assert len(durable) == 5 and all(why_ns(one)[part] > why_ns(one)[other] for one in durable), durable
    assert all("pwrite64" in {wait["call"] for wait in one["waits"]} for one in durable), durable
    durable = [one for one in traced.statements if "/* durable */" in one["query"]]
    assert len(durable) == 20 and all(one["use"]["wal_records"] >= 2 for one in durable), durable
    waits = [{wait["call"] for wait in one["waits"]} for one in durable]
    assert all(why_ns(one)["fsync"] > 0 and "fdatasync" in calls for one, calls in zip(durable, waits)), waits
    fsync, others = (sum(sum(why_ns(one)[part] for part in parts) for one in durable) for parts in (("fsync",), (
        "disk", "runqueue", "cpu")))
    assert fsync <= (spent[1] - spent[0]) * 1.05 and spent[1] - spent[0] <= (fsync + others) * 1.05, (fsync, others, spent)


def wal_sync_ns(connection):
    return float(connection.execute("select wal_sync_time from pg_stat_wal").fetchone()[0]) * 1e6


def test_use_is_what_explain_says(postgres, traced):
    """EXPLAIN counts the execution; the statement around it planned it, and looked into catalogs."""
    postgres.psql("create table if not exists used (id int primary key, text text) with (autovacuum_enabled = off)")
    with postgres.connect(autocommit=False) as connection:
        connection.execute("insert into used select g, repeat('x', 100) from generate_series(1, 10) g on conflict do nothing")
        text = ("explain (analyze, buffers, wal, format json) insert into used select g, repeat('y', 100) from "
                "generate_series(100, 5000) g on conflict (id) do update set text = excluded.text /* {} */")
        connection.execute(text.format("first"))	# its look into catalogs may prune and log their pages
        connection.rollback()
        plan = connection.execute(text.format("counted")).fetchone()[0][0]["Plan"]
        connection.rollback()
    use = only(ended(traced), "counted")["use"]
    assert use["wal_records"] == plan["WAL Records"] and use["wal_bytes"] == plan["WAL Bytes"], (use, plan)
    assert plan["Shared Hit Blocks"] <= use["shared_blks_hit"] <= plan["Shared Hit Blocks"] + 2000, (use, plan)
    assert use["shared_blks_dirtied"] >= plan["Shared Dirtied Blocks"] > 0, (use, plan)


def kernel_says(pid):
    """Return the kernel's counters of a process: VmPeak and RssShmem in bytes, and system calls that read and write."""
    said = {}
    for name in ("status", "io"):
        with open(f"/proc/{pid}/{name}", encoding="ascii", errors="replace") as f:
            said |= dict(line.rstrip("\n").split(":", 1) for line in f if ":" in line)
    return {key: int(said[key].split()[0]) * (1024 if said[key].endswith("kB") else 1)
            for key in ("VmPeak", "RssShmem", "syscr", "syscw")}


def explained(connection, query):
    """The nodes of a query's plan, the outermost first, with what PostgreSQL measured."""
    def nodes(plan):
        return [plan, *(node for inner in plan.get("Plans", ()) for node in nodes(inner))]
    return nodes(connection.execute(f"explain (analyze, format json) {query}").fetchone()[0][0]["Plan"])


def sort_spaces(nodes):
    """(type, KiB) of each sort of a plan, of parallel workers too."""
    sorts = [one for node in nodes for one in (node, *node.get("Workers", ())) if "Sort Space Used" in one]
    return [(one["Sort Space Type"], one["Sort Space Used"]) for one in sorts]


SMALL, LARGE = (f"(select g, mod(g, 7) from generate_series(1, {n}) g order by 2, 1 desc)" for n in (1000, 20000))


@pytest.mark.parametrize("query, settings, sorts, disk", [
    (LARGE, {}, 1, 0),
    (f"{LARGE} union all {SMALL}", {}, 2, 0),
    (f"{SMALL} union all {LARGE}", {"work_mem": "128kB"}, 2, 1),
    ("select * from sort_rows order by x, g", {"work_mem": "64kB", "max_parallel_workers_per_gather": 2, "parallel_setup_cost": 0,
                                               "parallel_tuple_cost": 0, "parallel_leader_participation": "off"}, 2, 1),
    ("select 1", {}, 0, 0),
], ids=["memory", "two", "disk", "parallel", "none"])
def test_sorts_are_what_explain_says(postgres, traced, query, settings, sorts, disk):
    """@disk: external ones, at the least: a worker that starts late may find no rows left."""
    with postgres.connect() as connection:
        if settings.get("parallel_setup_cost") == 0:
            postgres.psql("create table if not exists sort_rows as select g, repeat('x', 100) x from generate_series(1, 20000) g",
                          "analyze sort_rows")
        for name, value in settings.items():
            connection.execute(f"set {name} = '{value}'")
        spaces = sort_spaces(explained(connection, f"{query} /* sorted */"))
    use = only(ended(traced), "sorted")["use"]
    assert len(spaces) == use["sorts"] == sorts, (spaces, use)
    if "sorts_external" not in use:
        pytest.skip("a server without USDT probes")
    assert len([kind for kind, _ in spaces if kind == "Disk"]) == use["sorts_external"] >= disk, (spaces, use)
    assert use["sort_blocks"] * 8 == sum(size for kind, size in spaces if kind == "Disk"), (spaces, use)
    assert use["sort_bytes"] == 1024 * max((size for kind, size in spaces if kind == "Memory"), default=0), (spaces, use)


def test_incremental_sorts(postgres, traced):
    """Each group is one, of which EXPLAIN tells the number, and the memory of the largest."""
    with postgres.connect() as connection:
        connection.execute("create temp table groups as select g / 100 a, mod(g, 100) b from generate_series(0, 9999) g")
        for text in ("create index on groups (a)", "analyze groups", "set enable_seqscan = off", "set enable_bitmapscan = off"):
            connection.execute(text)
        node = explained(connection, "select * from groups order by a, b desc /* by groups */")[0]
    use = only(ended(traced), "by groups")["use"]
    if "Full-sort Groups" not in node:
        pytest.skip("a server before 13")
    found = [node[kind] for kind in ("Full-sort Groups", "Pre-sorted Groups")]
    assert use["sorts"] == sum(one["Group Count"] for one in found), (use, node)
    if "sort_bytes" in use:
        assert use["sort_bytes"] == 1024 * max(one["Sort Space Memory"]["Peak Sort Space Used"] for one in found), (use, node)


def test_sorts_that_do_not_end(postgres, traced):
    """Inside a transaction the next command ends the sort of the one before: it was none of its own."""
    with postgres.connect(autocommit=False) as connection:
        connection.execute(f"{LARGE} limit %s /* left */", (10,))
        connection.execute("select %s /* next */", (1,))
        connection.commit()
        with pytest.raises(Exception, match="division by zero"):
            connection.execute(f"select 1 / (g - 1) from {LARGE} g (g, r) /* fails */")
    ended(traced)
    if "sorts_external" not in only(traced, "next")["use"]:
        pytest.skip("a server without USDT probes")
    for tag in ("left", "fails"):
        use = only(traced, tag)["use"]
        assert use["sorts"] == 1 and not set(use) & {"sorts_external", "sort_bytes", "sort_blocks"}, use
    use = only(traced, "next")["use"]
    assert [use[name] for name in ("sorts", "sorts_external", "sort_bytes", "sort_blocks")] == [0] * 4, use


def test_memory_is_what_the_kernel_says(postgres, traced):
    """Memory counts if no earlier statement needed it; shared buffers that are touched do not."""
    postgres.psql("create table if not exists touched as select repeat('x', 1000) x from generate_series(1, 20000)")
    with postgres.connect() as connection:
        pid = connection.info.backend_pid
        for text in ("set jit = off", "set max_parallel_workers_per_gather = 0", "set work_mem = '256MB'", "set enable_mergejoin = off"):
            connection.execute(text)
        query = "select count(*) from generate_series(1, 200000) a join generate_series(1, 200000) b on a = b"
        said = [kernel_says(pid)]
        hashed = 0
        for text in ("select count(x) from touched /* touches */", "", f"{query} /* again */"):
            if text:
                connection.execute(text)
            else:
                hashed = max(node.get("Peak Memory Usage", 0) for node in explained(connection, f"{query} /* hashes */")) * 1024
            said.append(kernel_says(pid))
    ended(traced)
    if no_types(traced):		# where it keeps its counts is not known then
        untold = {"read_calls", "write_calls", "minor_faults", "major_faults", "peak_growth_bytes"}
        assert not any(untold & set(one["use"]) for one in traced.statements), traced.statements
        return
    grown = {tag: only(traced, tag)["use"]["peak_growth_bytes"] for tag in ("touches", "hashes", "again")}
    kernel = [{key: new[key] - old[key] for key in new} for old, new in zip(said, said[1:])]
    for (tag, growth), seen in zip(grown.items(), kernel):
        # Between statements, too, memory is allocated.
        assert abs(growth - seen["VmPeak"]) <= 1 << 20, (tag, grown, kernel)
        use = only(traced, tag)["use"]
        assert [use["read_calls"], use["write_calls"]] == [seen["syscr"], seen["syscw"]], (tag, use, kernel)
    assert kernel[0]["RssShmem"] > 10 << 20 and grown["touches"] <= 4 << 20, (grown, kernel)
    assert grown["hashes"] >= hashed > 8 << 20 and grown["again"] <= grown["hashes"] / 4, (grown, hashed)


def test_counters_that_cannot_be_read(tool, tmp_path):
    """As those of a backend that is terminated, where the kernel tells of its end when its memory is gone (before 6.16)."""
    with backends.Backends(backends.build(tmp_path)) as server:
        traced = tool("-p", server.pid, "-m", "0", "--json", "--why", "--use")
        server.do("run 1 select 1 /* stays */")
        server.do("hide 0 select 1 /* hidden */")
        stopped(traced)
    assert only(traced, "stays")["use"]["shared_blks_hit"] == 0, traced.said()
    assert ("minor_faults" in only(traced, "hidden")["use"]) != no_types(traced) and "shared_blks_hit" not in only(traced, "hidden")["use"], traced.said()


@pytest.mark.parametrize("args", [(), ALL_FALLBACKS, ["--use", "--phases", *OLD]],
                         ids=["default", "fallbacks", "linux-5.4"])
def test_adds_up_under_load(postgres, tool, args):
    """All protocols, pipelines and failures; several at once."""
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--why", *args)

    def work(number):
        with postgres.connect() as connection:
            for n in range(60):
                # All fit into one CPU's buffer, however late the tool reads it.
                traced.wait_for(lambda tool, n=n: len(tool.out.lines) >= 4 * 5 * (n - 10), what="what was executed")
                connection.execute("select %s::int /* extended */", (n,))
                with connection.pipeline():
                    for text in ("select 1", "select pg_sleep(0.001)", "select 2"):
                        connection.execute(text)
                try:
                    connection.execute(f"select {number}/0")
                except Exception:
                    pass
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended(traced)
    assert len(traced.statements) >= 4 * 60 * 5, traced.summary


def test_parallel_workers(postgres, traced):
    """They are shown apart, and as many as EXPLAIN says; the leader waits for them."""
    postgres.psql("create table if not exists parallel_rows as select g, repeat('x', 100) x from generate_series(1, 200000) g", "analyze parallel_rows")
    with postgres.connect() as connection:
        for text in ("set max_parallel_workers_per_gather = 2", "set parallel_setup_cost = 0", "set parallel_tuple_cost = 0",
                     "set parallel_leader_participation = off"):
            connection.execute(text)
        query = "select count(*) from parallel_rows where length(x) > 10 and sqrt(g) > 3"
        plan = connection.execute(f"explain (analyze, format json) {query}").fetchone()[0][0]["Plan"]
        while "Workers Launched" not in plan:
            plan = plan["Plans"][0]
        connection.execute(f"{query} /* many */")
        connection.execute("select 1 /* alone */")
    ended(traced)
    one = only(traced, "many")
    assert one["workers"]["count"] == plan["Workers Launched"] == 2, (one, plan)
    assert one["workers"]["why_ms"]["cpu"] > 0 and why_ns(one)["ipc"] > 0, one
    assert "workers" not in only(traced, "alone"), traced.said()


def test_workers_of_one_that_began_before(postgres, tool):
    """They are not those of the session's next statement."""
    postgres.psql("create table if not exists few_rows as select g from generate_series(1, 20000) g", "analyze few_rows")
    with postgres.connect() as connection, postgres.connect() as holder:
        for text in ("set max_parallel_workers_per_gather = 2", "set parallel_setup_cost = 0", "set parallel_tuple_cost = 0",
                     "set min_parallel_table_scan_size = 0"):
            connection.execute(text)
        query = "count(*) from few_rows where sqrt(g) > 3"
        assert any(node.get("Workers Launched") for node in explained(connection, f"select {query}"))
        holder.execute("select pg_advisory_lock(77)")
        blocked = Blocked(lambda: connection.execute(f"do $$ begin perform pg_advisory_lock(77); perform {query}; end $$ /* earlier */"))
        wait_for(lambda: postgres.psql("select 1 from pg_stat_activity where wait_event = 'advisory'").stdout, what="it to wait")
        traced = tool("-p", postgres.pid, "-m", "0", "--json", "--why")
        holder.execute("select pg_advisory_unlock(77)")
        blocked.join()
        connection.execute("select 1 /* next */")
    stopped(traced)
    assert "workers" not in only(traced, "next"), traced.said()


def test_every_system_call_has_a_name():
    """As the kernel's headers name it; newer ones may name more."""
    assert not system_calls.lacking(tables()["calls"], system_calls.named("asm/unistd.h"))


def test_began_before(postgres, tool):
    """Nobody saw where its time went: nothing is made up."""
    with postgres.connect() as connection:
        holder = postgres.connect()
        holder.execute("select pg_advisory_lock(72)")
        blocked = Blocked(lambda: connection.execute("select pg_advisory_lock(72) /* earlier */"))
        wait_for(lambda: postgres.psql("select 1 from pg_stat_activity where wait_event = 'advisory'").stdout, what="it to wait")
        traced = tool("-p", postgres.pid, "-m", "0", "--json", "--why")
        holder.close()
        blocked.join()
    stopped(traced)
    assert "why_ms" not in only(traced, "earlier")


@pytest.mark.parametrize("ways", [[], force("perfbuf")], ids=["ring", "perf"])
def test_short_texts(postgres, tool, ways):
    """A breakdown is longer than the record of a statement with so little text."""
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--why", "--text", "16", *ways)
    postgres.psql("select 1", "select 2")
    assert len(ended(traced).statements) == 2, traced.said()


@pytest.mark.parametrize("args", [force("perfbuf"), ALL_FALLBACKS], ids=["perfbuf", "fallbacks"])
def test_no_types_the_old_ways(postgres, tool, args):
    """Records go by perf buffers, also from programs on events."""
    traced = way(tool("-p", postgres.pid, "-m", "0", "--json", "--why", *args, wrap=NO_TYPES))
    waits = tool("stat", "-p", postgres.pid, "-m", "5", "--json", "--wait", "sleep", "--match", "slow", *args, kind=Stat, wrap=NO_TYPES)
    postgres.psql("select pg_sleep(0.05) /* slow */")
    assert late(why_ns(only(ended(traced), "slow")), "sleep") >= 49e6, traced.said()
    assert counted(waits) == {"sleep": 1}, waits.said()


def test_doctor_tells_of_no_types():
    done = subprocess.run([*NO_TYPES, DBSLOWER, "doctor", "-v"], capture_output=True, text=True, timeout=60)
    assert re.search(r"types of the kernel \(BTF\): +no .*--why uses tracefs events", done.stdout), done.stdout


def test_neither_types_nor_events(postgres):
    """Root that may not mount: it says what is missing."""
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (package util-linux)")
    hide = 'for folder in btf tracing debug; do [ ! -e /sys/kernel/$folder ] || mount -t tmpfs none /sys/kernel/$folder; done; exec setpriv --bounding-set -sys_admin "$0" "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", hide, DBSLOWER, "-p", str(postgres.pid), "-d", "0.1", "--why"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "/sys/kernel/btf/vmlinux nor events of its scheduler in tracefs: " in done.stderr, done
    assert "mount -t tracefs tracefs" in done.stderr, done


# --- MariaDB

@pytest.fixture(scope="module")
def maria():
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with Maria(slow_query_log="OFF").init() as server:
        server.start()
        with server.connect() as client:
            for text in ("create database d", "create table d.t (id int primary key, v int) engine=innodb",
                         "insert into d.t values (1, 1)"):
                client.query(text)
        yield server


def state(server, words):
    with server.connect() as client:
        return client.rows(f"select 1 from information_schema.processlist where state like '{words}'")


def is_stuck(server):
    """Whether it waits for a client that does not read; it says so before each write, too, but runs between them."""
    with server.connect() as client:
        thread = client.rows("select tid from information_schema.processlist where state = 'Writing to net'")
        return thread and sleeps(int(thread[0][0]))


@pytest.mark.parametrize("hold, wait, words", [
    (["begin", "update d.t set v = v + 1 where id = 1"], "update d.t set v = 0 where id = 1 /* waits */", None),
    (["begin", "select * from d.t"], "alter table d.t comment 'x' /* waits */", "Waiting for table metadata lock"),
    (["do get_lock('l', 60)"], "select get_lock('l', 60) /* waits */", "User lock"),
], ids=["row", "metadata", "user"])
def test_maria_locks(maria, tool, hold, wait, words):
    def waits():
        if words:
            return state(maria, words)
        time.sleep(0.2)		# InnoDB's tables are read anew only when they have not been read for 0.1 s
        with maria.connect() as client:
            return client.rows("select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'")
    traced = tool("-p", maria.pid, "-m", "0", "--json", "--why", "--use")
    with maria.connect() as holder, maria.connect() as waiter:
        for text in hold:
            holder.query(text)
        blocked = Blocked(lambda: waiter.query(wait))
        waited = blocked.after(waits, lambda: holder.query("commit" if hold[0] == "begin" else "do release_lock('l')"))
        waiter.query("do release_all_locks()")
    why = why_ns(only(ended(traced), "waits"))
    assert late(why, "lock") >= waited, (why, waited)


@WAYS
def test_maria_sleep_network_and_fsync(maria, tool, wrap):
    traced = way(tool("-p", maria.pid, "-m", "0", "--json", "--why", "--use", wrap=wrap))
    with maria.connect() as client:
        client.query("select sleep(0.3) /* asleep */")
        client.query("set global innodb_flush_log_at_trx_commit = 1")
        client.query("replace into d.t values (7, floor(rand() * 1e9)) /* durable */")
        client.query("set global innodb_flush_log_at_trx_commit = 0")
    with maria.connect() as lazy:
        lazy.send(3, b"select repeat('x', 1000) from d.seq_1_to_20000 /* not read */")
        blocked = Blocked(lambda: None)
        waited = blocked.after(lambda: is_stuck(maria), lambda: lazy.results())
    ended(traced)
    assert late(why_ns(only(traced, "asleep")), "sleep") >= 299e6, traced.said()
    one = only(traced, "not read")
    assert late(why_ns(one), "network") >= waited, (one, waited)
    assert "sent_bytes" not in one.get("use", {}) or one["use"]["sent_bytes"] >= 20000 * 1000, one
    assert {wait["call"] for wait in only(traced, "durable")["waits"]} <= {"fdatasync", "fsync", "pwrite64", "futex", "page_fault"}, \
        traced.said()


@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "tcp"])
def test_maria_another_server(tool, tcp):
    """What an engine asks another server; the client is on either kind of socket."""
    server = Maria(slow_query_log="OFF").init()
    with contextlib.ExitStack() as stack:
        stack.enter_context(server)
        try:
            server.bring_plugin("ha_federatedx.so").start()
        except CannotBeHad as why:
            pytest.skip(str(why))
        client = stack.enter_context(server.connect(tcp=tcp))
        for text in ("install soname 'ha_federatedx'", "create database d", "create table d.t (a int primary key)", "insert into d.t values (1)",
                     "create view d.slow as select a, sleep(0.3) b from d.t", "create user there@'127.0.0.1'", "grant all on d.* to there@'127.0.0.1'",
                     f"create table d.away (a int, b int) engine=federated connection='mysql://there@127.0.0.1:{server.port}/d/slow'"):
            client.query(text)
        traced = tool("-p", server.pid, "-m", "0", "--json", "--why")
        client.query("select a, b from d.away /* asks */")
        client.send(3, b"select repeat('x', 1000) from d.t, d.seq_1_to_20000 /* not read */")
        blocked = Blocked(lambda: None)
        waited = blocked.after(lambda: is_stuck(server), client.results)
        ended(traced)
    why = why_ns(only(traced, "asks"))
    assert late(why, "remote") >= 300e6 and why["remote"] and why["network"] == 0, why
    why = why_ns(only(traced, "not read"))
    assert late(why, "network") >= waited and why["network"] and why["remote"] == 0, (why, waited)


@pytest.fixture(scope="module")
def durable_maria():
    """A server that writes to its disk what is committed, and reads what is not in its small buffer pool."""
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with Maria(slow_query_log="OFF", innodb_flush_method="fsync", innodb_flush_log_at_trx_commit="1",
               innodb_buffer_pool_size="6M", innodb_use_native_aio="ON", log_bin="ON", sync_binlog="1").init() as server:
        server.start()
        with server.connect() as client:
            for text in ("create database d", *(f"create table d.t{n} engine=innodb as select 1 v" for n in range(8)),
                         "create table d.large engine=innodb as select seq, repeat('x', 1000) x from d.seq_1_to_16000"):
                client.query(text)
        yield server


@pytest.mark.parametrize("binlog, wrap", [(0, ()), (1, ()), (1, NO_TYPES)], ids=["log", "binlog", "no-types"])
def test_maria_commits_of_others(durable_maria, tool, wrap, binlog):
    """Of threads that commit at once one writes the log for all. Each changes a table of its own."""
    traced = way(tool("-p", durable_maria.pid, "-m", "0", "--json", "--why", wrap=wrap))

    def work(number):
        with durable_maria.connect() as client:
            client.query(f"set sql_log_bin = {binlog}")
            for n in range(30):
                client.query(f"update d.t{number} set v = v + {n} /* commits */")
    for thread in [Blocked(lambda n=n: work(n)) for n in range(8)]:
        thread.join()
    named = []
    for one in ended(traced).statements:
        slept = sum(wait["total_ms"] for wait in one["waits"] if wait["call"] == "futex")
        if "commits" in one["query"] and slept:
            named.append(one["why_ms"]["futex"] < slept / 2 < one["why_ms"]["fsync"])
    # Mutexes of the server are waited for as well, and for long if who has one has lost its CPU, but by few statements.
    assert named and sum(named) > len(named) / 2, (len(named), sum(named))


def test_maria_reads_of_others(durable_maria, tool):
    """
    Pages that are read ahead are read by other threads. What one ends of which no sleep is known, as the server has just
    created it, or it has slept since before tracing, remains futex: so others have read before.
    """
    path = os.path.join(durable_maria.data, "d", "large.ibd")
    with slow_reads(path, SLOW_READS) as move, open(path, "rb") as f, durable_maria.connect() as client:
        os.fsync(f.fileno())
        move(durable_maria.pid)
        traced = tool("-p", durable_maria.pid, "-m", "0", "--json", "--why")
        for text in ("before", "scans"):
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            client.query(f"select sum(length(x)) from d.large /* {text} */")
    one = only(ended(traced), "scans")
    assert why_ns(one)["disk"] > 5 * why_ns(one)["futex"] and "futex" in {wait["call"] for wait in one["waits"]}, one
    assert why_ns(one)["disk"] >= (one["duration_ms"] * 1e6 - why_ns(one)["runqueue"] - why_ns(one)["cpu"]) / 2, one


@WAYS
def test_maria_waits_are_counted(maria, tool, wrap):
    """Its sleep is in a futex; what it waits for between statements is not counted."""
    traced = {what: way(tool("stat", "-p", maria.pid, "-u", "-m", "5", "--json", "--wait", what, kind=Stat, wrap=wrap))
              for what in ("sleep", "futex", "network", "poll")}
    with maria.connect() as client:
        for _ in range(SLEEPS):
            client.query("select sleep(0.016)")	# until a time that it computes before it may be preempted
            time.sleep(0.01)
    assert counted(traced["sleep"]) == {"sleep": SLEEPS}, traced["sleep"].said()
    assert counted(traced["futex"]) == {"futex": SLEEPS}, traced["futex"].said()
    assert counted(traced["network"]) == counted(traced["poll"]) == {}
    assert traced["futex"].histograms[0]["buckets"][0]["lt_ms"] >= 16.384, traced["futex"].said()
