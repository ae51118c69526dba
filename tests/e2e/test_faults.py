# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults: limits, failing system calls, kills at any stage, stalled readers and tools, backends that end.

Each case ends with a message and a status, or goes on and counts; none crashes, hangs or leaves anything.
FAULTS=all tries every system call and limit, and DEATHS=1000000 says how many backends die.
"""

import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import time
from datetime import datetime

import pytest

import backends
from cluster import wait_for
from elffile import Memory
from fallbacks import force, forces
from requirements import need_root
from statements import stopped
from tool import DBSLOWER, Reader

ALL = os.environ.get("FAULTS") == "all"
DEATHS = int(os.environ.get("DEATHS", 2100))
BUFFERED = 500		# deaths that a buffer of any kind has room for, if the tool does not run meanwhile
TIMEOUT = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    need_root()
    return backends.build(tmp_path_factory.mktemp("backends"))


@pytest.fixture
def server(program):
    with backends.Backends(program) as one:
        yield one


def arguments(server, *more):
    return ["postgres", "-p", str(server.pid), "-m", "0", *more]


def ended(done, *words):
    """Return whether the tool continued; else check that its message has one of the words."""
    assert done.returncode in (0, 1), f"status {done.returncode}: {done.stderr}"
    if done.returncode:
        assert re.match(r"dbslower: ", done.stderr), f"no message: {done}"
        assert not words or re.search("|".join(words), done.stderr), done.stderr
    return done.returncode == 0


def run(*command, timeout=TIMEOUT, **keywords):
    """Wait for the end; after the timeout kill strace and the tool."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True, **keywords)
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


# --- limits

@pytest.mark.parametrize("args", [[], force("perfbuf")], ids=lambda args: " ".join(args) or "default")
def test_descriptors(server, args):
    """With each number of descriptors up to what suffices: what is lacking is said, and nothing else blamed."""
    for limit in range(64):
        done = run(DBSLOWER, *arguments(server, "-d", "0.01", *args), preexec_fn=limited(resource.RLIMIT_NOFILE, limit))
        if ended(done, "ulimit -n"):
            break
        assert not re.search("no uprobes|report this|processed", done.stderr), f"{limit}: {done.stderr}"
    assert 15 < limit < 63 and "nothing lost" in done.stderr, f"{limit}: {done.stderr}"


def test_descriptors_of_many(program, tmp_path):
    """The limit that a shell begins with does not keep it from a node's worth of images."""
    paths = []
    for number in range(16):
        (tmp_path / str(number)).mkdir()
        paths += ["-x", shutil.copy(program, tmp_path / str(number) / "postgres")]
    done = run(DBSLOWER, "postgres", "-d", "0.1", *paths,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 1024)))
    assert done.returncode == 0 and done.stderr.count("dbslower: tracing PostgreSQL") == 16, done


def test_descriptors_of_trace(server):
    for limit in range(64):
        done = run(DBSLOWER, "trace", "-p", str(server.pid), "-d", "0.01", "p::EndCommand",
                   preexec_fn=limited(resource.RLIMIT_NOFILE, limit))
        if ended(done, "ulimit -n"):
            break
    assert 5 < limit < 63 and "0 hits" in done.stderr, f"{limit}: {done.stderr}"


def least_memory():
    """Return the address space in bytes that the kernel requires to run the tool at all."""
    low, high = 0, 16 << 20
    while high - low > 16384:
        middle = (low + high) // 2
        try:
            fits = run(DBSLOWER, "--nonsense", preexec_fn=limited(resource.RLIMIT_AS, middle)).returncode >= 0
        except (OSError, subprocess.SubprocessError):
            fits = False
        low, high = (low, middle) if fits else (middle, high)
    return high


@pytest.mark.parametrize("args", [[], force("perfbuf"), ["top"], ["trace"], ["list"], ["doctor"]],
                         ids=lambda args: " ".join(args) or "default")
def test_memory(server, args):
    """With each size of memory, from the least that the kernel takes."""
    size, step, enough = least_memory(), 1.02 if ALL else 1.3, 64 << 20
    command = {"trace": ["trace", "-p", str(server.pid), "-d", "0.01", "p::EndCommand"],
               "list": ["list", "-p", str(server.pid)], "doctor": ["doctor", server.path],
               "top": ["top", *arguments(server, "-d", "0.01")]}.get("".join(args), arguments(server, "-d", "0.01", *args))
    while size < enough:
        done = run(DBSLOWER, *command, preexec_fn=limited(resource.RLIMIT_AS, int(size)))
        if args == ["doctor"] and done.returncode:
            assert re.search("memory", done.stderr + done.stdout), done
        elif ended(done, "memory", "no USDT probes") or "no USDT probes" in done.stderr:
            enough = 0
        size *= step
    assert done.returncode == 0 or args == ["list"], done


# --- system calls that fail

# It has ended or cannot know of it.
NEVER = {"execve", "exit", "exit_group", "arch_prctl", "set_tid_address", "poll", "write", "close", "munmap", "brk"}
# These are many: of each, in turn, some.
COMMON = {"open": 32, "openat": 2, "read": 32, "readlink": 48, "stat": 32, "fcntl": 32, "pread64": 32, "bpf": 10, "mmap": 8}


def made_calls(log):
    """[(system call, which of these in its process, its first argument)] of a run."""
    found, counts = [], collections.Counter()
    with open(log) as f:
        for match in re.finditer(r"^(\d+ +)?(\w+)\((\w*)", f.read(), re.M):
            counts[match[1], match[2]] += 1
            found.append((match[2], counts[match[1], match[2]], match[3]))
    return list(dict.fromkeys(found))


AT_ONCE = 4	# runs that mostly wait for the kernel to attach and detach


def each(cases, check, *arguments):
    """check(case, argument) for all cases, some at once: each of these with one of the arguments."""
    free = queue.SimpleQueue()
    for argument in arguments or [None] * AT_ONCE:
        free.put(argument)

    def one(case):
        argument = free.get()
        try:
            check(case, argument)
        finally:
            free.put(argument)
    with concurrent.futures.ThreadPoolExecutor(free.qsize()) as pool:
        for done in [pool.submit(one, case) for case in cases]:
            done.result()


def inject(call, what, number, *args, follow=("-f",), log="/dev/null"):
    """follow: in its child, too, which attaches the probes. A call that strace does not know goes by its number."""
    call = str(int(call[len("syscall_"):], 0)) if call.startswith("syscall_") else call
    return run("strace", *follow, "-qq", "-o", str(log), "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}",
               DBSLOWER, *args)


@pytest.fixture(scope="module")
def calls(program, tmp_path_factory):
    """calls(ARGS) gives [(system call, number, first argument)] of a run."""
    if not shutil.which("strace"):
        pytest.skip("no strace")

    def find(*args, follow=("-f",)):
        log = tmp_path_factory.mktemp("strace") / "log"
        run("strace", *follow, "-qq", "-o", str(log), DBSLOWER, *args)
        return made_calls(log)
    return find


@pytest.mark.parametrize("args, error", [([], "ENOMEM"), (force("perfbuf"), "EMFILE")], ids=["default", "perfbuf"])
def test_calls_fail(server, calls, args, error):
    """One at a time; of those that are many, some, and with an older way only what that adds."""
    command = arguments(server, "-d", "0.01", *args)
    usual = {call for call, _, _ in calls(*arguments(server, "-d", "0.01"))} - {"epoll_create1", "signalfd4"} if args else set()
    some = [(call, n) for call, n, _ in calls(*command)
            if call not in NEVER and (ALL or (n - 1) % COMMON.get(call, 2 if args else 1) == 0 and call not in usual)]
    assert {"epoll_create1", "signalfd4"} <= {call for call, _ in some}

    def check(case, _):
        call, number = case
        try:
            done = inject(call, f"error={error}", number, *command)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs when {call} number {number} fails") from None
        assert done.returncode in (0, 1) and re.search("^dbslower: ", done.stderr, re.M), (call, number, done)
        assert "report this" not in done.stderr, (call, number, done.stderr)
    each(some, check)
    assert run(DBSLOWER, *command).returncode == 0


def test_killed_at_every_stage(program, server, calls, tmp_path):
    """SIGKILL at a system call: no breakpoint stays."""
    command = arguments(server, "-d", "0.01")
    stages = [(call, n) for call, n, _ in calls(*command, follow=())
              if call in ("sendmsg", "recvmsg", "write", "epoll_create1", "fsmount")
              or (call == "bpf" and n % (1 if ALL else 12) == 0)]
    assert len(stages) > 5

    killed = []

    def check(case, server):
        call, number = case
        log = tmp_path / f"{call}.{number}"
        done = inject(call, "signal=KILL", number, *arguments(server, "-d", "0.01"), follow=(), log=log)
        # A run may make fewer calls than the one before.
        reached = any(case[:2] == (call, number) for case in made_calls(log))
        assert done.returncode == (-signal.SIGKILL if reached else 0), (call, number, done)
        killed.append(reached)
        memory = Memory(server.pid, server.path)
        wait_for(lambda: memory.breakpoints() == [], 60, f"the probes to go after {call} number {number}")
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(AT_ONCE):	# each of a file of its own
            (tmp_path / str(number)).mkdir()
            path = shutil.copy(program, tmp_path / str(number) / "postgres")
            servers.append(stack.enter_context(backends.Backends(path)))
        each(stages, check, *servers)
        assert any(killed)
        assert run(DBSLOWER, *command).returncode == 0
        # The other process may have been about to attach when there was no breakpoint yet.
        wait_for(lambda: not any(Memory(one.pid, one.path).breakpoints() for one in servers), 60,
                 "all probes to go")


def test_stopped_while_it_loads(server, calls):
    """A stop and its end interrupt the verifier, which is asked again."""
    command = arguments(server, "-d", "0.01")
    loads = [n for call, n, first in calls(*command, follow=()) if first == "BPF_PROG_LOAD"]
    assert len(loads) >= 3
    for number in loads:
        done = inject("bpf", "error=EAGAIN", number, *command, follow=())
        assert ended(done), (number, done.stderr)


# --- readers and tools that stop

COUNT = 60000


def afterwards(server, out):
    """Run statements until the last one is shown, and so nothing is unread; return their number. The first may find the buffer full."""
    for number in range(1, 100):
        server.do(f"run 1 select {number} /* afterwards */")
        with contextlib.suppress(TimeoutError):
            wait_for(lambda n=number: out.lines and f"select {n} /* afterwards */".encode() in out.lines[-1], 1)
            return number
    raise AssertionError(f"no statement is shown any more, the last one is {out.lines[-1:]}")


def test_reader_stops(server):
    """A full pipe holds up nobody but the tool; what is lost is counted, and then it goes on."""
    read, write = os.pipe()
    process = subprocess.Popen([DBSLOWER, *arguments(server, "--json")], stdin=subprocess.DEVNULL, stdout=write,
                               stderr=subprocess.PIPE)
    os.close(write)
    try:
        assert b"tracing" in process.stderr.readline()
        server.do(f"run {COUNT} select 1 /* nobody reads */")
        with os.fdopen(read, "rb") as stream:
            out = Reader(stream)
            after = afterwards(server, out)	# a signal would discard what is unread for a second
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT)
            out.join()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    start, first, *_, last = out.lines
    assert b'"start"' in start and b"nobody reads" in first and process.returncode in (0, 1)
    summary = json.loads(last)
    statements, printed, ring_full = summary["statements"], summary["printed"], summary["lost"]["ring_full"]
    assert printed == len(out.lines) - 2 and ring_full, summary
    assert statements == COUNT + after and printed + ring_full == statements, summary


def test_output_would_block(server):
    """EAGAIN: the reader's end of the terminal, say, was made non-blocking."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
    process = subprocess.Popen([DBSLOWER, *arguments(server, "--json")], stdin=subprocess.DEVNULL, stdout=write,
                               stderr=subprocess.PIPE)
    os.close(write)
    try:
        assert b"tracing" in process.stderr.readline()
        server.do("run 3000 select 1 /* more than a pipe takes */")
        with os.fdopen(read, errors="replace") as out:
            assert '"start"' in out.readline()
            lines = [out.readline() for _ in range(3000)]
            process.send_signal(signal.SIGTERM)
            rest = out.readlines()
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    assert all("more than a pipe takes" in line for line in lines)
    assert len(rest) == 1 and '"statements":3000,"printed":3000' in rest[0], rest


def test_reader_goes_away(server):
    """EPIPE in full flow: it ends by itself and in order."""
    process = subprocess.Popen([DBSLOWER, *arguments(server, "--json")], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert b"tracing" in process.stderr.readline()
        server.begin(f"run {COUNT} select 1")
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(TIMEOUT) == 0
        server.finish()
        assert Memory(server.pid, server.path).breakpoints() == []
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def test_disk_fills_up(server, tmp_path):
    """A file that can grow no more: a message, the status, and it ends by itself."""
    with open(tmp_path / "out", "wb") as out:
        process = subprocess.Popen([DBSLOWER, *arguments(server, "--json")], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.PIPE, text=True,
                                   preexec_fn=limited(resource.RLIMIT_FSIZE, 100000))
        assert "tracing" in process.stderr.readline()
        server.do("run 3000 select 1")
        err = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == 1 and re.search("output: cannot write: File too large; raise .* ulimit -f", err), err
    assert Memory(server.pid, server.path).breakpoints() == []


@pytest.mark.parametrize("why", [(), ("--why",)], ids=" ".join)
def test_tool_is_suspended(server, tool, why):
    """SIGSTOP for a while, then SIGCONT: losses are counted, each statement once, and it goes on."""
    traced = tool(*arguments(server, "--json", *why))
    traced.pause()
    server.do(f"run {COUNT} select 1 /* suspended */")
    traced.process.send_signal(signal.SIGCONT)
    after = afterwards(server, traced.out)
    assert traced.stop() == 0
    lost = traced.summary["lost"]
    assert lost["ring_full"] and not lost["table_full"], traced.said()
    assert traced.summary["statements"] == COUNT + after
    assert len(traced.statements) == traced.summary["printed"] == COUNT + after - lost["ring_full"]
    assert lost.get("why_dropped", 0) == (sum("why_ms" not in one for one in traced.statements) if why else 0)


# --- clocks

@pytest.mark.parametrize("behind, args", [(False, []), (True, force("perfbuf"))], ids=["ahead", "behind"])
def test_time_namespace(server, tool, behind, args):
    """CLOCK_MONOTONIC is another one there than that of programs: no time may show it."""
    offset = -int(time.monotonic() / 2) if behind else 100000	# a clock cannot be below 0
    wrap = ("unshare", "--time", "--monotonic", str(offset), "--fork")
    if subprocess.run([*wrap, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no time namespaces here")
    traced = tool(*arguments(server, "--json", *args), wrap=wrap)
    before = time.time()
    server.do("run 1 select 1 /* one */")
    traced.wait_for(lambda tool: tool.statements, what="the statement")
    server.do("begin select 2 /* two */")
    assert traced.stop() == 0
    after = time.time()
    shown = [one for one in traced.objects() if one["type"] in ("statement", "running")]
    assert [one["query"] for one in shown] == ["select 1 /* one */", "select 2 /* two */"], traced.said()
    for one in shown:
        began = datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp()
        assert before - 0.01 <= began <= began + one["duration_ms"] / 1000 <= after + 0.01, (before, one, after)
    assert traced.summary["boundary"] == 1 and not traced.lost(), traced.said()


# --- servers and backends that die

@pytest.mark.parametrize("args", [[], force("prealloc"), force("perfbuf")], ids=lambda args: " ".join(args) or "default")
def test_deaths_leave_no_entries(server, tool, args):
    """The table has 4096 entries with --force=prealloc: none is left by those who end in mid-statement."""
    deaths = DEATHS if not forces(args, "perfbuf") else min(DEATHS, 1000)
    traced = tool(*arguments(server, "--json", *args))
    shown = 1	# lines: the first one is no statement
    for how, words in (("exit", "ended"), ("kill", "killed")):
        for begun in range(0, deaths, BUFFERED):
            count = min(BUFFERED, deaths - begun)
            server.do(f"{how} {count} select 1 /* {words} */")
            shown += count
            traced.wait_for(lambda tool, lines=shown: len(tool.out.lines) >= lines)
    server.do("run 1 select 1 /* lives */")
    stopped(traced, idle=True)
    seen = collections.Counter((one["query"], one["status"]) for one in traced.statements)
    assert seen == {("select 1 /* ended */", "error"): deaths, ("select 1 /* killed */", "error"): deaths,
                    ("select 1 /* lives */", "ok"): 1}
    assert len({one["pid"] for one in traced.statements}) > deaths


def test_pid_is_used_again(server, tool):
    """The statement of the ended backend is not attributed to the new one."""
    traced = tool(*arguments(server, "--json"))
    said = server.do("reuse select 1 /* one PID */")
    stopped(traced, idle=True)
    if said == ["cannot"]:
        pytest.skip("the kernel gives no PID twice here")
    pid = int(said[0].split()[1])
    assert [(one["pid"], one["status"]) for one in traced.statements] == [(pid, "error"), (pid, "ok")], traced.said()


def test_server_is_killed(program, tool):
    """SIGKILL of a server in mid-statement; the next one of that file is seen."""
    traced = tool("postgres", "-x", program, "-m", "0", "--json")
    for number in range(3):
        with backends.Backends(program) as one:
            one.do(f"begin select {number} /* never ends */")
    with backends.Backends(program) as one:
        one.do("run 1 select 1 /* the next */")
        stopped(traced, idle=True)
    assert [(one["query"], one["status"]) for one in traced.statements] == [
        *((f"select {n} /* never ends */", "error") for n in range(3)), ("select 1 /* the next */", "ok")]


SERVERS = 100
FILES = 16	# that differ; the others share them


def test_hundred_servers(program, tool, tmp_path):
    """One tool for all."""
    files = []
    for number in range(FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        files.append(shutil.copy(program, folder / "postgres"))
    running = []
    try:
        running = [backends.Backends(files[n % FILES]) for n in range(SERVERS)]
        traced = tool("postgres", "-m", "0", "--json", *(arg for path in files for arg in ("-x", path)))
        for number, one in enumerate(running):
            one.begin(f"run 20 select {number}")
        for one in running:
            one.finish()
        assert traced.stop() == 0
    finally:
        for one in running:
            one.end()
    seen = collections.Counter((one["pid"], one["query"]) for one in traced.statements)
    assert seen == {(one.pid, f"select {n}"): 20 for n, one in enumerate(running)}
    assert not traced.lost(), traced.said()
