# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals while dbslower attaches: nothing may remain in the processes that map the file."""

import errno
import fcntl
import os
import shutil
import signal

import pytest

import interrupted
from cluster import children, wait_for
from fallbacks import force
from seccomp import deny
from tool import DBSLOWER

PROCESSES = 150
TRIES = 20
SYS_CLOSE_RANGE = 436
SYS_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}

# Each perf event takes the kernel long to remove: fewer probes, and fewer runs.
FEW = {"probes": ["idle:probe0", "idle:probe1"]}
METHODS = [pytest.param([], {}, 20, id="multi"), pytest.param(force("perf"), FEW, 10, id="perf")]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    return interrupted.build(tmp_path_factory.mktemp("idle"))


@pytest.fixture
def idle(program):
    processes = interrupted.Idle(program, PROCESSES)
    yield processes
    processes.end()


def ended(process, idle):
    """The process ended as it should, and took its probes with it."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and b"lost" in err, (process.returncode, out, err)
    assert idle.left() == (0, 0), err


@pytest.mark.parametrize("args, probes, times", METHODS)
def test_terminated_while_attaching(idle, args, probes, times):
    """It removes the probes, prints the summary, and ends with success."""
    for _ in range(times):
        process = interrupted.start(DBSLOWER, idle, *args, **probes)
        interrupted.wait_attaching(process, idle)
        process.terminate()
        ended(process, idle)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_while_attaching(idle, sig):
    """The same, as from a terminal: the signal is sent to the process group."""
    for _ in range(5):
        process = interrupted.start(DBSLOWER, idle, start_new_session=True)
        interrupted.wait_attaching(process, idle)
        os.killpg(process.pid, sig)
        ended(process, idle)


def test_rest_is_not_attached(program, idle):
    """Of two files, the second one is left alone after a signal, which is said."""
    other = interrupted.Idle(program, 1, 1)
    try:
        for _ in range(TRIES):
            process = interrupted.start(DBSLOWER, idle, probes=["idle:*", f"{other.path}:idle:*"])
            interrupted.wait_attaching(process, idle)
            process.terminate()
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0 and idle.left() == other.left() == (0, 0), err
            if b"tracing" not in err:	# else this process did not get a CPU in time
                break
        assert b"interrupted while attaching" in err and b"tracing" not in err, err
    finally:
        other.end()


def killed(process):
    """It was killed, and has not been able to say anything."""
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("args, probes, times", METHODS)
def test_killed_while_attaching(idle, args, probes, times):
    """SIGKILL to the process group; another process removes the probes."""
    for _ in range(times):
        process = interrupted.start(DBSLOWER, idle, *args, **probes, start_new_session=True)
        interrupted.wait_attaching(process, idle)
        os.killpg(process.pid, signal.SIGKILL)
        killed(process)
        assert idle.left_after(60) == (0, 0)


def attached(idle, *args):
    process = interrupted.start(DBSLOWER, idle, *args, start_new_session=True)
    process.stdout.readline()
    assert idle.left() == (interrupted.PROBES * (PROCESSES + 1),) * 2
    return process


def test_killed_while_detaching(idle):
    killed_in_time = 0
    for _ in range(TRIES):
        process = attached(idle)
        process.send_signal(signal.SIGINT)
        interrupted.wait_detaching(idle)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert idle.left_after(60) == (0, 0)
        killed_in_time += process.returncode == -signal.SIGKILL	# else this process did not get a CPU before its end
        if killed_in_time == 5:
            return
    raise AssertionError(f"only {killed_in_time} were killed in time")


@pytest.mark.parametrize("args", [[], force("perf")], ids=["multi", "perf"])
def test_other_process_killed(program, args):
    """The probes stay as long as one of both lives, and nothing stays after that."""
    idle = interrupted.Idle(program, 1, 2)
    try:
        process = interrupted.start(DBSLOWER, idle, *args, probes=["idle:probe0"])
        process.stdout.readline()
        child, = children(process.pid)
        assert open(f"/proc/{child}/comm", encoding="ascii").read() != open(f"/proc/{process.pid}/comm", encoding="ascii").read()
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: open(f"/proc/{child}/stat", encoding="ascii").read().split()[2] == "Z", what="its end")
        assert idle.left() == (2, 2)
        process.send_signal(signal.SIGINT)
        ended(process, idle)
    finally:
        idle.end()


def test_next_start_repairs(idle):
    """If both processes are killed, the kernel may leave breakpoints, which a start and a stop remove."""
    for _ in range(TRIES):
        process = interrupted.start(DBSLOWER, idle)
        interrupted.wait_attaching(process, idle)
        for pid in [process.pid, *children(process.pid)]:
            os.kill(pid, signal.SIGKILL)
        killed(process)
        if idle.left_after(1) != (0, 0):
            break
    else:
        pytest.skip(f"the kernel left nothing in {TRIES} tries")
    process = attached(idle)
    process.send_signal(signal.SIGINT)
    ended(process, idle)


@pytest.mark.parametrize("args", [[], force("perf")], ids=["multi", "perf"])
def test_without_other_process(program, args):
    """If no other process can be created, dbslower attaches by itself."""
    idle = interrupted.Idle(program, 1, 3)
    try:
        process = interrupted.start(DBSLOWER, idle, *args, probes=["idle:probe0"],
                                    preexec_fn=deny(SYS_SOCKETPAIR[os.uname().machine], errno.EPERM))
        process.stdout.readline()
        assert children(process.pid) == [] and idle.left() == (2, 2)
        process.send_signal(signal.SIGINT)
        ended(process, idle)
    finally:
        idle.end()


@pytest.mark.parametrize("close_range", [True, False], ids=["close_range", "each"])
def test_inherited_descriptors(program, close_range):
    """The other process keeps none, whatever its number: whoever reads from it waits for its end."""
    idle, (end, inherited) = interrupted.Idle(program, 1, 4), os.pipe()
    high = fcntl.fcntl(inherited, fcntl.F_DUPFD, 2000)
    try:
        process = interrupted.start(DBSLOWER, idle, probes=["idle:probe0"], pass_fds=(high,),
                                    preexec_fn=None if close_range else deny(SYS_CLOSE_RANGE, errno.ENOSYS))
        process.stdout.readline()
        child, = children(process.pid)
        held = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
        assert len(held) == 2 and all(one.startswith(("socket:", "anon_inode:")) for one in held), held
        process.send_signal(signal.SIGINT)
        ended(process, idle)
    finally:
        for fd in end, inherited, high:
            os.close(fd)
        idle.end()


def test_files_detached_at_once(program, tmp_path):
    """The kernel waits for each file: as many processes as there are files remove the probes."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    files = [interrupted.Idle(program, 0, number) for number in range(5, 9)]
    try:
        process = interrupted.start(DBSLOWER, files[0], probes=[f"{one.path}:idle:probe0" for one in files])
        process.stdout.readline()
        child, = children(process.pid)
        # In a file, unlike on standard error, each line has a PID, also when one process is left.
        with interrupted.strace(child, "-o", tmp_path / "closed", "-e", "trace=close"):
            process.send_signal(signal.SIGINT)
            ended(process, files[0])
        closed = (tmp_path / "closed").read_text()
        closers = {line.split()[0] for line in closed.splitlines() if " close(" in line}
        assert len(closers) == len(files), closed
        assert all(one.left() == (0, 0) for one in files)
    finally:
        for one in files:
            one.end()
