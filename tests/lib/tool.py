# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run build/dbslower and collect its output."""

import re
import json
import os
import resource
import select
import signal
import subprocess
import threading

from cluster import children, running, send, state, wait_for
from schema import validate

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
COMPLETION = os.path.join(ROOT, "cli", "completion.bash")
FIXTURES = os.path.join(TESTS, "fixtures")
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
CACHE = os.environ.get("CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dbslower")
DBSLOWER = os.path.join(BUILD, "dbslower")
VICTIM = os.path.join(BUILD, "tests", "kernel", "guest", "victim")
NOTEDUMP = os.path.join(BUILD, "tests", "lib", "notedump")
FORCE = os.environ.get("FORCE")		# a fallback that all commands that trace are to use, for a run of the whole suite
TRACE_NOT = ("doctor", "help", "list", "plan", "ps", "replay", "report", "--complete", "--help", "-h", "--tables", "--version", "-V")
PIPE_BYTES = 1 << 20	# after a signal, what nobody reads for a second is dropped


def image(folder):
    """The bytes of the binary that was built in this folder."""
    with open(os.path.join(folder, "dbslower"), "rb") as binary:
        return binary.read()


def arguments(args):
    """Return the arguments as texts, with the option that FORCE requires."""
    args = [str(arg) for arg in args]
    forced = FORCE and not (args and args[0] in TRACE_NOT) and "--force" not in args
    return [*args, f"--force={FORCE}"] if forced else args


def parsed(lines, valid=0):
    """
    The objects of lines of --json, which are bytes or text; the first ones have been found valid. ValueError: a line is
    not JSON, or not as docs/json.md states.
    """
    found = []
    for number, line in enumerate(lines):
        line = line.encode() if isinstance(line, str) else line
        try:
            found.append(json.loads(line.decode("utf-8")))
            if number >= valid:
                validate(found[-1], line)
        except ValueError as why:
            raise ValueError(f"not a JSON line ({why}): {line[:300]!r}") from None
    return found


class Reader(threading.Thread):
    """Collects a stream's lines until its end."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.lines = []
        self.part = b""			# of the last line
        self.lock = threading.Lock()
        os.set_blocking(stream.fileno(), False)
        self.start()

    def pull(self):
        """Take what has been written so far. Return whether there may be more to come."""
        with self.lock:
            while not self.stream.closed:
                try:
                    data = os.read(self.stream.fileno(), 1 << 20)
                except BlockingIOError:
                    return True
                *whole, self.part = (self.part + data).split(b"\n")
                self.lines += [line + b"\n" for line in whole]
                if not data:
                    self.lines += [self.part] if self.part else []
                    self.part = b""
                    break
        return False

    def run(self):
        poll = select.poll()
        poll.register(self.stream, select.POLLIN)
        while self.pull():
            poll.poll()

    @property
    def text(self):
        return b"".join(self.lines).decode(errors="replace")


def rest():
    """Wait until the statements of which the answers were received have ended: in some servers that is later."""
    for server in list(running):
        if hasattr(server, "rest") and server.process is not None and server.process.poll() is None:
            server.rest()


class Tool:
    """dbslower while it runs. attached=False does not wait for it to attach."""

    def __init__(self, *args, attached=True, wrap=(), **keywords):
        self.args = arguments(args)
        self.status = None
        self.valid = 0			# lines that objects() has validated
        self.wrap = wrap                # a command that runs it as its only child
        rest()
        self.process = subprocess.Popen([*wrap, DBSLOWER, *self.args],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        pipesize=PIPE_BYTES, **keywords)
        self.out = Reader(self.process.stdout)
        self.err = Reader(self.process.stderr)
        if attached:
            try:
                wait_for(self.is_attached, 60, "dbslower to attach")
            except BaseException:
                self.kill()
                raise

    @property
    def pid(self):
        return self.process.pid

    def is_attached(self):
        if self.ready():
            return True
        if self.process.poll() is not None:
            self.join()
            if self.ready():
                return True		# it has already done all it was asked for
            raise AssertionError(f"{self} ended before it was attached\n{self.said()}")
        return False

    def ready(self):
        if "--json" in self.args:
            return any(line.startswith((b"dbslower: tracing", b"dbslower: sampling")) for line in self.err.lines)
        return any(line.startswith(b"Tracing database queries") for line in self.out.lines)

    def join(self):
        self.out.join(60)
        self.err.join(60)
        self.process.stdout.close()
        self.process.stderr.close()

    def wait(self, timeout=60):
        """Waits for its own end; returns the exit status."""
        try:
            self.status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self} did not end within {timeout} s\n{self.said()}") from None
        self.join()
        return self.status

    def stop(self, sig=signal.SIGINT):
        """Ends it by a signal, when the statements of which the answers were received have ended; returns the exit status."""
        rest()
        if self.process.poll() is None:
            send(sig, *children(self.pid) if self.wrap else [self.pid])
        return self.wait()

    def pause(self):
        """Stops it until SIGCONT."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: state(self.pid) == "T", what=f"{self} to stop")

    def kill(self):
        if self.process.poll() is None:
            send(signal.SIGKILL, *children(self.pid) if self.wrap else [])	# else it keeps our pipes open
            self.process.kill()
        self.process.wait()
        self.join()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        if self.status is None:
            self.kill()

    def __str__(self):
        return " ".join(["dbslower", *self.args])

    # what it said

    @property
    def stdout(self):
        return self.out.text

    @property
    def stderr(self):
        return self.err.text

    def said(self):
        """For a message: the ends of both streams."""
        return (f"--- {self}: exit {self.process.poll()}, standard output ends:\n{self.stdout[-3000:]}"
                f"\n--- standard error ends:\n{self.stderr[-3000:]}")

    def objects(self):
        """The parsed lines of --json. A line that is not valid is an error."""
        lines = list(self.out.lines)
        try:
            found = parsed(lines, self.valid)
        except ValueError as why:
            raise AssertionError(f"{why}\n{self.said()}") from None
        self.valid = len(lines)
        return found

    @property
    def statements(self):
        return [o for o in self.objects() if o.get("type") == "statement"]

    @property
    def summary(self):
        found = [o for o in self.objects() if o.get("type") == "summary"]
        assert len(found) == 1, f"{len(found)} summaries\n{self.said()}"
        return found[0]

    def lost(self):
        """Return the losses of the summary, without texts that were truncated or left out for an overhead limit."""
        intended = {"text_truncated", "text_dropped", "why_dropped"}
        return {name: count for name, count in self.summary["lost"].items() if count and name not in intended}

    def rows(self):
        """The rows of the text form, without its header."""
        lines = self.stdout.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("TIME"):
                return lines[number + 1:]
        return []

    def wait_for(self, condition, timeout=60, what="the output"):
        """Waits until condition(self) is true."""
        try:
            return wait_for(lambda: condition(self), timeout, what)
        except TimeoutError as why:
            raise AssertionError(f"{why}\n{self.said()}") from None


def run(*args, timeout=60, **keywords):
    """Run the tool to its end. Return the CompletedProcess with texts."""
    keywords = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords}
    return subprocess.run([DBSLOWER, *arguments(args)], timeout=timeout, errors="replace", **keywords)


def run_other(command, **keywords):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd="/",
                          **keywords)


def sessions(*args):
    """Those that ps lists."""
    done = run("ps", "--json", *args)
    assert done.returncode == 0 and not done.stderr, done.stderr
    start, *found = parsed(done.stdout.encode().splitlines())
    assert start["type"] == "start" and all(one["type"] == "session" for one in found), done.stdout
    return found


def refused(done, *words, status=1):
    """It must have ended with the status, nothing on standard output, and one message with the words."""
    said = f"exit {done.returncode}\n--- out:\n{done.stdout}--- err:\n{done.stderr}"
    assert done.returncode == status, said
    assert not done.stdout, f"data on standard output: {said}"
    assert done.stderr.startswith("dbslower: "), said
    assert done.stderr.count("dbslower: ") == 1, f"more than one message: {said}"
    for word in words:
        assert re.search(word, done.stderr, re.I), f"no word of {word}: {said}"


class Announced(Tool):
    """Attached when it has reported what it traces."""

    def ready(self):
        return any(line.startswith(b"dbslower: tracing") for line in self.err.lines)


class Stat(Tool):
    """stat while it runs. It reports on standard error that it is attached, as with --json."""

    def ready(self):
        return any(line.startswith(b"dbslower: tracing") for line in self.err.lines)

    @property
    def histograms(self):
        return [one for one in self.objects() if one["type"] == "histogram"]


def counted(traced, by="wait"):
    """Stop the tool. Return {group: number of waits}. The kernel counts, so nothing may be lost."""
    assert traced.stop() == 0 and not traced.lost(), traced.said()
    return {one.get(by): one["count"] for one in traced.histograms}


class Locks(Tool):
    def ready(self):
        return any(line.startswith((b"dbslower: tracing", b"dbslower: no ")) for line in self.err.lines)

    @property
    def waits(self):
        """Those that have ended, but for the server's own short ones."""
        return [one for one in self.objects()
                if one["type"] == "lock_wait" and one["outcome"] != "waiting" and one.get("lock") != "lwlock"]

    def running(self):
        return [one for one in self.objects() if one["type"] == "lock_wait" and one["outcome"] == "waiting"]

    def answered(self):
        """Return whether it has taken SIGUSR1, done what it does then, and waits for more."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self} has ended\n{self.said()}")
        with open(f"/proc/{self.pid}/status") as f:
            pending = int(re.search(r"^ShdPnd:\s+(\w+)$", f.read(), re.M)[1], 16)
        # It waits after it has taken the signal: what is read at once is not of one point in time.
        return not pending >> (signal.SIGUSR1 - 1) & 1 and state(self.pid) == "S"

    def show(self):
        """Have it print the current waits, none if it has not heard of one yet; no more of them are to come."""
        self.process.send_signal(signal.SIGUSR1)
        wait_for(self.answered, what="an answer")
        self.out.pull()

    def ask(self):
        """Return the current waits."""
        before = len(self.running())
        self.show()
        return self.running()[before:]

    def shows(self, key, *values):
        """Waits until it shows current waits of all these."""
        self.wait_for(lambda tool: {one.get(key) for one in tool.ask()} >= set(values), what=f"the waits of {values}")

    def sees(self, *pids):
        """Waits until it knows who they wait for: on a busy machine it may come to look after a while."""
        self.wait_for(lambda tool: {one["pid"] for one in tool.ask() if one.get("holders")} >= set(pids),
                      what=f"the waits of {pids}")

    def wait_of(self, pid):
        """The first wait of this process, once it has ended."""
        return self.wait_for(lambda tool: [one for one in tool.waits if one["pid"] == pid], what=f"a wait of {pid}")[0]

    def ended(self):
        assert self.stop() == 0 and "nothing lost" in self.stderr, self.said()
        assert not any(self.summary["lost"].values()), self.said()
        return self


def cpu_seconds(pid):
    """CPU time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def spent_by_children():
    """CPU time of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_of(pid):
    """The most that it has had resident, bytes."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^VmHWM:\s+(\d+) kB", f.read(), re.M)[1]) << 10
