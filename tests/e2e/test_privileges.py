# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Privileges: each capability, files and processes of other users, hidepid, seccomp.

The program that is traced is tests/kernel/guest/victim.c, which says itself what must be seen.
"""

import os
import re
import shutil
import subprocess
import time

import pytest

from cluster import children
from fallbacks import force
from requirements import need_root
from tool import FIXTURES, VICTIM, parsed
from user_engine import PROBES

NOBODY, OTHER = 65534, 65533
TRACE = ("bpf", "perfmon")


@pytest.fixture(scope="module", autouse=True)
def needed():
    need_root()
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (package util-linux)")
    if tuple(map(int, os.uname().release.split(".")[:2])) < (5, 8):
        pytest.skip("CAP_BPF comes with Linux 5.8")


def as_user(uid, *capabilities):
    """The command that runs another as that user with exactly these capabilities."""
    sets = ",".join(["-all", *(f"+{one}" for one in capabilities)])
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", f"--inh-caps={sets}", f"--ambient-caps={sets}",
            f"--bounding-set={sets}", "--"]


class Victim:
    """The program to trace, running as a user."""

    def __init__(self, path, uid):
        self.path, self.uid = path, uid
        self.process = subprocess.Popen([*as_user(uid), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.ask(None) == []
        self.pid = self.process.pid

    def ask(self, command):
        if command:
            print(command, file=self.process.stdin, flush=True)
        return list(iter(lambda: self.process.stdout.readline().rstrip("\n"), "end"))

    def run(self):
        """Runs its statements; their texts in order."""
        return [line.split(" ", 2)[2] for line in self.ask("run")]


@pytest.fixture
def victims(public_tool):
    """victims(uid, mode) starts one, of a file of its own."""
    running = []

    def start(uid=NOBODY, mode=0o755):
        path = os.path.join(os.path.dirname(public_tool), f"victim-{len(running)}-{time.monotonic_ns()}")
        shutil.copy(VICTIM, path)
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        running.append(Victim(path, uid))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.communicate()
        os.unlink(one.path)


def check_traces(command, victim, *options):
    """Check that the tool shows the statements that the victim reports."""
    process = subprocess.Popen([*command, *options, *PROBES, "-m", "0", "--json"], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
    said = process.stderr.readline()
    if not said.startswith("dbslower: tracing"):
        process.kill()
        pytest.fail(said + process.communicate()[1])
    try:
        expected = victim.run()
    finally:
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, said + err
    got = parsed(out.splitlines())
    assert [one["query"] for one in got if one["type"] == "statement"] == expected and expected, out + err


def refused(command, *options):
    """Return the message. The exit status must be 1, without a verifier log."""
    done = subprocess.run([*command, *options, "-d", "0.2"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, cwd="/")
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.count("\n") == 1, f"one line with subject, cause and remedy: {done.stderr}"
    return done.stderr


def named(text):
    """The capabilities that it says are missing."""
    return set(re.search(r"missing ([A-Z_, ]+):", text)[1].split(", "))


def has_uprobe_multi(tool):
    rows = parsed([subprocess.run([tool, "doctor", "--json"], capture_output=True).stdout])[0]["features"]
    return next(row for row in rows if row["name"] == "uprobe_multi link")["has"]


# --- capabilities

@pytest.mark.parametrize("which", ["pid", "path"])
def test_two_capabilities_are_enough(victims, public_tool, which):
    if not has_uprobe_multi(public_tool):
        pytest.skip("no uprobe_multi")
    victim = victims()
    where = ("-p", str(victim.pid)) if which == "pid" else ("-x", victim.path)
    check_traces([*as_user(NOBODY, *TRACE), public_tool], victim, *where)


@pytest.mark.parametrize("held, missing", [
    ((), {"CAP_BPF", "CAP_PERFMON"}), (("bpf",), {"CAP_PERFMON"}), (("perfmon",), {"CAP_BPF"}),
    (("sys_ptrace", "dac_read_search"), {"CAP_BPF", "CAP_PERFMON"})])
@pytest.mark.parametrize("command", ["slow", "top", "stat", "trace"])
def test_missing_ones_are_named(victims, public_tool, command, held, missing):
    victim = victims()
    args = ["trace", f"{victim.path}:memsqld:query__start"] if command == "trace" else \
        [command, "-p", str(victim.pid), *PROBES]
    said = refused([*as_user(NOBODY, *held), public_tool], *args)
    assert named(said) == missing and "root" in said
    assert ("CAP_SYS_PTRACE" in said) == ("sys_ptrace" not in held), said


def test_process_of_another_user(victims, public_tool):
    victim = victims(OTHER)
    target = ("-p", str(victim.pid))
    said = refused([*as_user(NOBODY, *TRACE), public_tool], *target, *PROBES)
    assert str(victim.pid) in said and "requires CAP_SYS_PTRACE" in said, said
    check_traces([*as_user(NOBODY, *TRACE, "sys_ptrace"), public_tool], victim, *target)
    # Its file is enough without that.
    check_traces([*as_user(NOBODY, *TRACE), public_tool], victim, "-x", victim.path)


@pytest.mark.parametrize("which", ["pid", "path"])
def test_file_that_only_its_owner_reads(victims, public_tool, which):
    victim = victims(OTHER, 0o700)
    where = ("-p", str(victim.pid)) if which == "pid" else ("-x", victim.path)
    said = refused([*as_user(NOBODY, *TRACE, "sys_ptrace"), public_tool], *where, *PROBES)
    assert victim.path in said and "CAP_DAC_READ_SEARCH" in said and "CAP_SYS_PTRACE" not in said, said
    check_traces([*as_user(NOBODY, *TRACE, "sys_ptrace", "dac_read_search"), public_tool], victim, *where)


def test_without_uprobe_multi(victims, public_tool):
    """Kernels that were mended in 2025 want CAP_SYS_ADMIN for a perf uprobe."""
    victim = victims()
    where = ("-x", victim.path, *force("perf"))
    done = subprocess.run([*as_user(NOBODY, *TRACE), public_tool, *where, *PROBES, "-d", "0.2"], capture_output=True, text=True,
                          timeout=60, cwd="/")
    if done.returncode:
        assert "cannot attach" in done.stderr and "requires CAP_SYS_ADMIN" in done.stderr, done.stderr
        check_traces([*as_user(NOBODY, "sys_admin"), public_tool], victim, *where)
    else:
        check_traces([*as_user(NOBODY, *TRACE), public_tool], victim, *where)


# --- seccomp

@pytest.fixture(scope="module")
def refuse(tmp_path_factory):
    path = tmp_path_factory.mktemp("refuse") / "refuse"
    subprocess.run(["gcc", "-O2", "-o", path, os.path.join(FIXTURES, "refuse.c")], check=True)
    return str(path)


@pytest.mark.parametrize("call, options", [("bpf", ()), ("perf_event_open", force("perf"))])
def test_seccomp(victims, public_tool, refuse, call, options):
    victim = victims()
    said = refused([refuse, call, public_tool], "-x", victim.path, *options, *PROBES)
    assert "seccomp" in said and "container" in said and "missing CAP" not in said, said


# --- what is given up once all is attached

BITS = {"dac_override": 1, "dac_read_search": 2, "sys_ptrace": 19, "sys_admin": 21, "perfmon": 38, "bpf": 39,
        "checkpoint_restore": 40}


def status_of(pid):
    return dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{pid}/status"))


def caps(status, which):
    return {bit for bit in range(64) if int(status[which], 16) >> bit & 1}


def running(command, *options, until="dbslower: tracing"):
    """The program once it said that, and the last line of it."""
    process = subprocess.Popen([*command, *options, "-m", "0"] if "trace" not in options else [*command, *options],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    lines = [""]
    while not lines[-1].startswith(until):
        lines.append(process.stderr.readline())
        if not lines[-1]:
            process.kill()
            pytest.fail("".join(lines) + process.communicate()[1])
    process.said = lines[-1]
    return process


def ended(process):
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


KEPT = "dbslower: capabilities kept: "
LOOK = {"bpf", "sys_ptrace", "dac_read_search", "checkpoint_restore"}


@pytest.mark.parametrize("which, options, kept, user, of_child", [
    ("path", (), LOOK | {"perfmon"}, 0, {"bpf", "perfmon"}),
    ("path", force("perf"), LOOK | {"perfmon"}, 0, {"bpf", "sys_admin"}),
    ("pid", (), LOOK, None, {"bpf"}), ("pid", force("perf"), LOOK, None, {"bpf"}),
    ("trace", (), {"bpf"}, None, {"bpf"})])
def test_what_is_kept(victims, public_tool, which, options, kept, user, of_child):
    if not options and not has_uprobe_multi(public_tool):
        pytest.skip("no uprobe_multi")
    victim = victims(OTHER)
    args = ["trace", f"{victim.path}:memsqld:query__start"] if which == "trace" else \
        ["-p", str(victim.pid), *PROBES] if which == "pid" else ["-x", victim.path, *PROBES]
    own = caps(status_of("self"), "CapEff")
    process = running([public_tool], *args, *options)
    status = status_of(process.pid)
    child, = map(status_of, children(process.pid))
    expected = victim.run()
    out = ended(process)
    assert (status["Seccomp"], status["NoNewPrivs"]) == (child["Seccomp"], child["NoNewPrivs"]) == ("2", "1")
    assert caps(child, "CapEff") == caps(child, "CapPrm") == {BITS[one] for one in of_child} & own
    assert caps(status, "CapEff") == caps(status, "CapPrm") == {BITS[one] for one in kept} & own
    assert not caps(status, "CapInh") | caps(status, "CapBnd") | caps(status, "CapAmb")
    (uid,) = set(status["Uid"].split() + status["Gid"].split())
    if user is None:
        assert 1 << 31 <= int(uid) < 3 << 30 and not status["Groups"].split()
    else:
        assert int(uid) == user
    assert all(" ".join(text.split()) in out for text in expected if which != "trace" and text.isprintable()), out


@pytest.mark.parametrize("which", ["pid", "trace"])
def test_no_process_can_end_it(victims, public_tool, which):
    """Of its user there is no other process, and a user namespace cannot have one."""
    victim = victims(OTHER)
    args = ["trace", f"{victim.path}:memsqld:query__start"] if which == "trace" else ["-p", str(victim.pid), *PROBES]
    process = running([public_tool], *args)
    uid = status_of(process.pid)["Uid"].split()[0]
    kill = ["kill", "-KILL", str(process.pid)]
    killers = [as_user(one) for one in (NOBODY, OTHER, 1)]
    killers += [[*as_user(OTHER), "unshare", "--user", f"--map-user={uid}", "--"]]
    done = [subprocess.run([*killer, *kill], capture_output=True, text=True) for killer in killers]
    time.sleep(0.2)
    ended(process)
    assert all(one.returncode for one in done), done
    users = {line for line in os.popen("ps -e -o ruid=,euid=,suid=").read().split()}
    assert uid not in users


def test_what_a_user_keeps(victims, public_tool):
    if not has_uprobe_multi(public_tool):
        pytest.skip("no uprobe_multi")
    process = running([*as_user(NOBODY, *TRACE, "sys_ptrace", "net_admin"), public_tool], "-x", victims().path, "-v", *PROBES,
                      until=KEPT)
    status = status_of(process.pid)
    ended(process)
    assert caps(status, "CapEff") == {BITS["bpf"], BITS["perfmon"], BITS["sys_ptrace"]} and status["Seccomp"] == "2"
    assert process.said == KEPT + "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE; seccomp filter: on\n"


@pytest.mark.parametrize("which", ["pid", "trace"])
def test_all_is_kept(victims, public_tool, which):
    victim = victims()
    args = ["trace", f"{victim.path}:memsqld:query__start"] if which == "trace" else ["-p", str(victim.pid), *PROBES]
    own = status_of("self")
    process = running([public_tool], *args, "--keep-privileges")
    status = status_of(process.pid)
    ended(process)
    same = ("Uid", "Gid", "CapEff", "CapPrm", "CapBnd", "Seccomp", "NoNewPrivs")
    assert {key: status[key] for key in same} == {key: own[key] for key in same}


def test_without_seccomp(victims, public_tool, refuse):
    """A kernel, or a container, that has no filters."""
    victim = victims()
    process = running([refuse, "prctl", public_tool], "-p", str(victim.pid), "-v", *PROBES, until=KEPT)
    status = status_of(process.pid)
    ended(process)
    assert caps(status, "CapEff") <= {BITS[one] for one in LOOK}
    assert "seccomp filter: refused by the kernel" in process.said


# --- a private /proc

def test_hidepid(victims, public_tool):
    """Hidden is not the same as not there. Root sees all."""
    victim = victims(OTHER)
    script = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    target = ("-p", str(victim.pid))
    said = refused([*unshare, *as_user(NOBODY, *TRACE), public_tool], *target, *PROBES)
    assert "hidepid" in said and "CAP_SYS_PTRACE" in said, said
    # Whenever something starts by a server's name, it looks which processes are gone. This one is not.
    named = os.path.join(os.path.dirname(public_tool), "postgres")
    shutil.copy(shutil.which("true"), named)
    again = subprocess.Popen(["sh", "-c", f"while {named}; do :; done"])
    try:
        check_traces([*unshare, *as_user(NOBODY, *TRACE, "sys_ptrace"), public_tool], victim, *target)
        check_traces([*unshare, public_tool], victim, *target)
    finally:
        again.kill()
        again.wait()
        os.unlink(named)
