# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What probes do to traced programs on some kernels: nops of five bytes that become calls, and returns that make a system call
which a seccomp filter sees. bpftrace shows what this kernel does; --force tests the refusal on any.
"""

import contextlib
import errno
import os
import platform
import re
import shutil
import struct
import subprocess

import pytest

from cluster import wait_for
from elffile import text_segments, usdt_probes
from fallbacks import force
from peer import Bpftrace
from requirements import need_root
from seccomp import deny
from statements import with_tag
from test_trace import Trace
from tool import DBSLOWER, FIXTURES, Locks, refused, run
from user_engine import PROBES

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="other kernels only use breakpoints")

NOP, RETURNS = force("no-nop5"), force("no-filtered-returns")
NOP5 = bytes.fromhex("0f1f440000")
CLONE = 56
UNHARMED = "bad 0 of 200, child 0\n"


def compiled(folder, source, *flags):
    path = folder / ("-".join([source, *flags]).replace("/", "").replace("=", ""))
    subprocess.run(["gcc", "-O1", "-pthread", "-Wall", "-Wextra", *flags, "-o", path, os.path.join(FIXTURES, f"{source}.c")], check=True)
    return path


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    """red(NOP) is the program with that nop, as a path."""
    folder = tmp_path_factory.mktemp("red")
    return {nop: compiled(folder, "red", f"-D{nop}") for nop in ("N1", "N2", "N5", "N10")}


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("filtered"), "filtered")


def said(path):
    return subprocess.run([path], stdout=subprocess.PIPE, text=True, check=False).stdout


@pytest.fixture(scope="module")
def nops_harm(red):
    """Whether this kernel harms a program at such a site, and at such a function, as bpftrace does it."""
    seen = []
    for script in ("usdt:{}:app:leaf {{ @n = count(); }}", "uprobe:{}:entry {{ @n = count(); }}"):
        with Bpftrace("-e", script.format(red["N5"])):
            seen.append(said(red["N5"]) != UNHARMED)
    return seen


class Filtered:
    """The fixture while it runs."""

    def __init__(self, path, mode, *args, **keywords):
        self.process = subprocess.Popen([path, mode, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **keywords)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"
        if mode != "none":
            wait_for(self.restricted, what="seccomp")

    def restricted(self):
        """Return whether a thread is."""
        found = []
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/status") as f:
                found.append(int(re.search(r"^Seccomp:\s+(\d)$", f.read(), re.M)[1]))
        return any(found)

    def works(self):
        """It calls work(), in strict mode once; return whether it lives."""
        try:
            self.process.stdin.write("x")
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.3)
        return self.process.poll() is None

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def start(filtered):
    running = []

    def start_one(*args, **keywords):
        running.append(Filtered(filtered, *args, **keywords))
        return running[-1]

    yield start_one
    for one in running:
        one.close()


@pytest.fixture(scope="module")
def returns_kill(filtered):
    """Whether this kernel has a program killed when it returns, as bpftrace does it."""
    seen = []
    for mode in ("process", "strict"):
        with Bpftrace("-e", f"uretprobe:{filtered}:work {{ @n = count(); }}"):
            one = Filtered(filtered, mode)
            seen.append(not one.works())
            one.close()
    return any(seen)


def count(tool, *args):
    """tool, which counts hits."""
    return tool("trace", "--count", "--json", *args, kind=Trace)


def hits(traced):
    assert traced.stop() == 0, traced.said()
    return sum(one["count"] for one in traced.objects() if one["type"] == "hit_count")


# --- nops

@pytest.mark.parametrize("nop", ["N1", "N2", "N5", "N10"])
def test_untraced(red, nop):
    assert said(red[nop]) == UNHARMED


@pytest.mark.parametrize("way", [[], force("perf")], ids=" ".join)
@pytest.mark.parametrize("nop,place", [("N1", "u:{}:app:leaf"), ("N5", "u:{}:app:leaf"), ("N10", "u:{}:app:leaf"),
                                       ("N1", "p:{}:entry"), ("N2", "p:{}:entry"), ("N5", "p:{}:entry")])
def test_traced(red, nops_harm, tool, nop, place, way):
    """The program is never harmed; only what this kernel harms is refused."""
    place = place.format(red[nop])
    name = place.split(":", 2)[2]
    if nop == "N5" and nops_harm["entry" in place]:
        refused(run("trace", "--count", "-d", "1", *way, place), rf"{name}: cannot be traced \(on this kernel", "5-byte nop")
        return
    if nop == "N10":
        refused(run("trace", "--count", "-d", "1", *way, place), rf"{name}: cannot be traced \(the kernel cannot probe")
        return
    traced = count(tool, *way, place)
    assert said(red[nop]) == UNHARMED
    assert hits(traced) == (201 if "leaf" in place else 2), traced.said()


@pytest.mark.parametrize("place", ["u:{}:app:leaf", "p:{}:entry", "r:{}:entry", "--latency {}:entry"])
def test_refused_where_it_is_forced(red, place):
    done = run("trace", "--count", "-d", "1", *NOP, *place.format(red["N5"]).split())
    refused(done, place.rsplit(":", 1)[1] + ": cannot be traced", "5-byte nop")


def test_pattern_skips(red, tool):
    """A pattern matches what can be traced, and the others are reported."""
    traced = count(tool, *NOP, f"p:{red['N5']}:[em]*[yn]")
    assert said(red["N5"]) == UNHARMED
    assert hits(traced) == 1, traced.said()
    assert re.findall(r"^dbslower: (.*?): .*; skipped$", traced.stderr, re.M) == ["entry"], traced.said()


FORMS = {	# instructions of five bytes at a function's start; whether Linux takes it for a nop
    "nopl": (".byte 0x0f,0x1f,0x44,0,0", True),
    "nopl_other": (".byte 0x0f,0x1f,0x44,0x08,0x10", True),
    "nopw": (".byte 0x66,0x0f,0x1f,0x40,0", True),
    "nops": (".byte 0x66,0x66,0x66,0x66,0x90", True),
    "lea_sib": (".byte 0x48,0x8d,0x74,0x26,0", True),
    "lea_narrow": (".byte 0x66,0x48,0x8d,0x76,0", True),
    "mov": (".byte 0x66,0x66,0x48,0x89,0xc0", True),
    "jmp": (".byte 0xe9,0,0,0,0", True),
    "lea": ("leaq 8(%rsp),%rax", False),
    "lea_reg": (".byte 0x48,0x8d,0x74,0x24,0", False),
    "lea_rex": (".byte 0x4c,0x8d,0x74,0x26,0", False),
    "mov_imm": ("movl $1,%eax", False),
    "store": ("movq %rdi,-8(%rsp)", False),
    "mov_other": (".byte 0x66,0x66,0x48,0x89,0xc1", False),
    "jmp_on": (".byte 0xe9,1,0,0,0\n .byte 0x90", False),
    "xchg": (".byte 0x66,0x66,0x66,0x41,0x90", False),
}


def test_forms(tmp_path):
    """The nops of the kernel's insn_is_nop(): each is five bytes long, to the assembler, too."""
    text = "".join(f".globl {name}\n.type {name},@function\n{name}: {insn}\n1: ret\n.size {name},.-{name}\n"
                   f".if (1b - {name}) != {6 if name == 'jmp_on' else 5}\n.error \"{name}\"\n.endif\n"
                   for name, (insn, _) in FORMS.items())
    (tmp_path / "forms.s").write_text(f".text\n{text}.globl main\nmain: xorl %eax,%eax\n ret\n")
    subprocess.run(["gcc", "-o", "forms", "forms.s"], cwd=tmp_path, check=True)
    need_root()
    for name, (_, is_nop) in FORMS.items():
        done = run("trace", "--count", "-d", "0.05", *NOP, f"p:{tmp_path}/forms:{name}")
        assert ("5-byte nop" in done.stderr, done.returncode) == (is_nop, int(is_nop)), (name, done.stderr)


def experiments(*args):
    """The processes that it creates, but for the one that attaches."""
    if not shutil.which("strace"):
        pytest.skip("no strace (package strace)")
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=clone", DBSLOWER, *map(str, args)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=60)
    return len(re.findall(r"clone\(child_stack=NULL, flags=0[,)<s ]", done.stderr))


def test_who_pays(red):
    """Only a trace that has such a site or a return tries it."""
    need_root()
    assert experiments("trace", "--count", "-d", "0.1", f"u:{red['N1']}:app:leaf") == 0
    assert experiments("trace", "--count", "-d", "0.1", f"p:{red['N5']}:main") == 0
    assert experiments("postgres", "-d", "0.1") == 0
    assert experiments("trace", "--count", "-d", "0.1", f"r:{red['N1']}:main") > 0
    assert experiments("trace", "--count", "-d", "0.1", *NOP, f"u:{red['N5']}:app:leaf") == 0


def test_experiment_that_fails(red, filtered, start):
    """What cannot be found out is not used: here no process can be created for it."""
    need_root()
    no_child = deny((CLONE, errno.EAGAIN, 0))
    done = run("trace", "--count", "-d", "0.1", f"u:{red['N5']}:app:leaf", preexec_fn=no_child)
    refused(done, "app:leaf: cannot be traced", "cannot be found out")
    one = start("process")
    done = run("trace", "--count", "-d", "0.1", f"r:{filtered}:work", preexec_fn=no_child)
    refused(done, "return of work", rf"\(PID {one.pid} filtered\)")


def test_experiment_that_fails_is_reported():
    """A lack of processes, which passes, is not a property of the kernel."""
    need_root()
    doctor = run("doctor", "-v", preexec_fn=deny((CLONE, errno.EAGAIN, 0)))
    assert re.search(r"probes on 5-byte nops: unknown: Resource temporarily unavailable", doctor.stdout), doctor.stdout


# --- nops in servers

def nop_in_text(path):
    """The address of a nop of five bytes in the program, which readelf and objdump see as one, too."""
    with open(path, "rb") as f:
        data = f.read()
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", path], capture_output=True, text=True, check=True).stdout
    for address in (int(one, 16) for one in re.findall(r"^\s*(\w+):\s+nopl\s+0x0\(%rax,%rax,1\)$", listed, re.M)):
        for offset, vaddr, size in text_segments(path):
            at = offset + address - vaddr
            if vaddr <= address < vaddr + size and data[at:at + 5] == NOP5:
                return address
    raise AssertionError("no such nop")


def move_sites(path):
    """Make the notes of the file's USDT probes name that nop as their site."""
    nop, sites = nop_in_text(path), {site for _, site, _ in usdt_probes(path)}
    with open(path, "r+b") as f:
        data = f.read()
        at = data.find(b"stapsdt\0")
        while at >= 0:
            if data[at - 12:at - 8] == struct.pack("<I", 8) and struct.unpack_from("<Q", data, at + 8)[0] in sites:
                f.seek(at + 8)
                f.write(struct.pack("<Q", nop))
            at = data.find(b"stapsdt\0", at + 1)
    assert {site for _, site, _ in usdt_probes(path)} == {nop}


@pytest.mark.parametrize("forced", [False, True])
def test_server_is_traced_by_its_functions(clusters, server_copy, nops_harm, tool, forced):
    if not usdt_probes(server_copy):
        pytest.skip("this server has no USDT probes")
    if not forced and not nops_harm[0]:
        pytest.skip("this kernel replaces no such nop")
    move_sites(server_copy)
    cluster = clusters(name="nops", postgres=server_copy)
    traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json", *(NOP if forced else []))
    cluster.psql("select 1 /* nops */", "select 1/0 /* nops */", check=False)
    assert traced.stop() == 0
    found = [(one["query"], one["status"]) for one in with_tag(traced, "nops")]
    assert found == [("select 1 /* nops */", "ok"), ("select 1/0 /* nops */", "error")], traced.said()
    assert "by its symbols" in traced.stderr, traced.said()
    assert len(re.findall(r"^dbslower: \S*/postgres: a probe is not used \(\S+: on this kernel .*5-byte nop", traced.stderr, re.M)) == 1


def test_server_without_functions(tmp_path):
    """The error names the probe."""
    need_root()
    subprocess.run(["gcc", "-O2", "-S", "-o", "memsqld.s", os.path.join(FIXTURES, "memsqld.c")], cwd=tmp_path, check=True)
    text = (tmp_path / "memsqld.s").read_text()
    assert len(re.findall(r"^990:\s*nop$", text, re.M)) == 2
    (tmp_path / "memsqld.s").write_text(re.sub(r"(?m)^990:\s*nop$", "990: .byte 0x0f,0x1f,0x44,0,0", text))
    subprocess.run(["gcc", "-o", "memsqld", "memsqld.s"], cwd=tmp_path, check=True)
    done = run("-x", tmp_path / "memsqld", *PROBES, "-m", "0", "-d", "1", *NOP)
    refused(done, r"memsqld: a probe is not used \(query__", "5-byte nop")


# --- returns

MODES = ["process", "thread", "strict"]
TRACES = [["r:{}:work"], ["--ret", "{}:work"], ["--latency", "{}:work"], ["--hist", "latency", "{}:work"], ["r:{}:w*k"]]


@pytest.mark.parametrize("args", TRACES, ids=" ".join)
@pytest.mark.parametrize("mode", MODES)
def test_returns_are_refused_where_it_is_forced(filtered, start, mode, args):
    need_root()
    one = start(mode)
    done = run("trace", "-d", "1", *RETURNS, *(arg.format(filtered) for arg in args))
    refused(done, f"return of {re.escape(args[-1].rsplit(':', 1)[1])} in ", rf"\(PID {one.pid} filtered\)", "trace calls instead")
    assert one.works()


def test_pid_does_not_matter(filtered, start):
    """Probes are attached to the file, for all processes."""
    need_root()
    other, one = start("process"), start("none")
    refused(run("trace", "-d", "1", *RETURNS, "-p", one.pid, f"r:{filtered}:work"), rf"\(PID {other.pid} filtered\)")


def test_many_are_counted(filtered, start):
    need_root()
    ours = {start("thread").pid for _ in range(6)}
    done = run("trace", "-d", "1", *RETURNS, f"r:{filtered}:work")
    named, more = re.search(r"\(PID (.*) and (\d+) more\)", done.stderr).groups()
    assert {int(name.split()[0]) for name in named.split(", ")} < ours and len(named.split(", ")) + int(more) == 6, done.stderr


def test_many_groups(filtered, start):
    """The line behind them is found wherever it is: at the end of one read, or in two."""
    need_root()
    with open("/proc/self/status") as status:
        size = status.read().index("\nSeccomp:")
    for number in (*range((4100 - size) // 5, (4200 - size) // 5), 20000):
        one = start("process", preexec_fn=lambda number=number: os.setgroups(range(1000, 1000 + number)))
        refused(run("trace", "-d", "1", *RETURNS, f"r:{filtered}:work"), rf"\(PID {one.pid} filtered\)")
        one.close()


@pytest.mark.parametrize("args", TRACES[:1] + TRACES[3:4], ids=" ".join)
@pytest.mark.parametrize("mode", ["none", *MODES])
def test_returns(filtered, start, returns_kill, tool, mode, args):
    """Where this kernel does not have it killed, the program is traced and lives."""
    one = start(mode)
    args = [arg.format(filtered) for arg in args]
    if returns_kill and mode != "none":
        refused(run("trace", "-d", "1", *args), rf"\(PID {one.pid} filtered\)")
        return
    traced = tool("trace", *args, kind=Trace)
    assert one.works() and one.works()
    assert traced.stop() == 0 and one.works(), traced.said()
    assert int(re.search(r"(\d+) hits", traced.stderr)[1]) > 0, traced.said()


@pytest.mark.parametrize("mode", ["none", *MODES])
def test_calls_and_programs_without_a_filter(filtered, start, tool, mode):
    """What is forced concerns returns of restricted processes only."""
    one = start(mode)
    traced = count(tool, *RETURNS, f"{'r' if mode == 'none' else 'p'}:{filtered}:work")
    assert one.works() and one.works()
    assert hits(traced) > 0 and one.works(), traced.said()


def test_optional_probe_is_left_out(clusters, server_copy, start, tool):
    """locks without the returns of a function, where USDT probes tell nothing: reported once, and the rest goes on."""
    subprocess.run(["objcopy", "--remove-section", ".note.stapsdt", server_copy], check=True)
    cluster = clusters(name="returns", postgres=server_copy)
    one = start("process", server_copy)
    traced = tool("locks", "--json", "-v", "-m", "0", "-p", cluster.pid, *RETURNS, kind=Locks)
    assert traced.stop() == 0, traced.said()
    said_once = re.findall(r"^dbslower: return of PGSemaphoreLock in \S+: not traced: .*\(PID (\d+) filtered\)", traced.stderr, re.M)
    assert said_once == [str(one.pid)], traced.said()
    assert "LWLock waits are not traced" in traced.stderr
    one.close()
    again = tool("locks", "--json", "-v", "-m", "0", "-p", cluster.pid, *RETURNS, kind=Locks)
    assert again.stop() == 0 and "LWLock waits" not in again.stderr and "not traced" not in again.stderr, again.said()


# --- what is reported

def test_doctor(nops_harm, returns_kill):
    done = run("doctor", "-v")
    for subject, harms in (("probes on 5-byte nops", any(nops_harm)), ("probes on returns", returns_kill)):
        state, text = re.search(rf"^\s+(\w+)\s+{subject}: (.*)$", done.stdout, re.M).groups()
        assert (state, text == "harmless") == ("note" if harms else "ok", not harms), done.stdout
