# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fallbacks for older kernels and minimal systems, forced on this one. test_oracle.py compares their statements."""

import errno
import itertools
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fallbacks
from cluster import children, wait_for
from elffile import Memory
from fallbacks import force
from seccomp import deny
from statements import only, stopped, text_of, with_tag
from tool import DBSLOWER, ROOT, Stat, parsed, refused, run

FSOPEN = 430
WAYS = [[], force("perf"), force("tracefs")]
WITHOUT_SYS = ("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount -l /sys && "$@"; exit $?', "sh")


def has_ended(pid):
    """Return whether the process has closed its files, even if nobody has waited for it yet."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return re.search(r"^State:\s+[XZ]", f.read(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        return True


# --- events of tracefs are all that can outlive the tool

def test_tracefs_stop_leaves_nothing(postgres, tool, tracefs):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("tracefs"))
    assert "(uprobe_events)" in traced.err.text, traced.said()
    assert len(tracefs()) > 1
    postgres.psql("select 1 /* by uprobe_events */")
    stopped(traced)
    only(traced, "by uprobe_events")
    assert tracefs() == []


def test_tracefs_next_start_removes_what_was_killed(postgres, tool, tracefs):
    killed = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("tracefs"))
    works = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("tracefs"))
    before, others = tracefs(), children(killed.pid)
    for pid in others:		# else that removes them
        os.kill(pid, signal.SIGKILL)
    killed.kill()
    wait_for(lambda: all(has_ended(pid) for pid in others), what="the other process to close the events")
    left = [one for one in before if f":dbslower_{killed.pid}_" in one]
    assert left and set(left) <= set(tracefs()), "nothing was left, so this test proves nothing"
    after = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("tracefs"))
    assert not set(left) & set(tracefs())
    postgres.psql("select 1 /* both */")
    for one in (works, after):
        stopped(one)
        only(one, "both")
    assert tracefs() == []


def test_tracefs_killed(postgres, tool, tracefs):
    killed = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("tracefs"))
    assert tracefs()
    killed.kill()
    wait_for(lambda: tracefs() == [], 60, "the events to be removed by the other process")


def test_tracefs_signal_while_it_starts(postgres, tracefs):
    for ms in range(0, 60, 4):
        process = subprocess.Popen([DBSLOWER, "postgres", "-p", str(postgres.pid), *force("tracefs")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(ms / 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert tracefs() == [], f"after {ms} ms"


# --- systems with nothing mounted

def mounts(pid):
    """The mounts of what it mounts itself: others come and go."""
    with open(f"/proc/{pid}/mountinfo") as f:
        return [line for line in f if line.partition(" - ")[2].split()[0] in ("sysfs", "tracefs", "debugfs")]


@pytest.mark.parametrize("args", WAYS, ids=lambda args: " ".join(args) or "default")
def test_sys_is_not_mounted(postgres, tool, args, tracefs):
    before = mounts("self")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *args, wrap=WITHOUT_SYS)
    assert not any(" /sys" in line or "tracefs" in line for line in mounts(traced.pid))
    postgres.psql("select 1 /* without sys */")
    stopped(traced)
    only(traced, "without sys")
    assert mounts("self") == before
    assert tracefs() == []


@pytest.mark.parametrize("args", [force("perf"), force("tracefs")], ids=" ".join)
def test_sys_is_not_mounted_before_fsopen(postgres, tool, args, tracefs):
    """As on Linux before 5.2."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"the number of fsopen(2) on {platform.machine()} is not known here")
    before = mounts("self")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *args, wrap=WITHOUT_SYS,
                  preexec_fn=deny(FSOPEN, errno.ENOSYS))
    postgres.psql("select 1 /* without fsopen */")
    stopped(traced)
    only(traced, "without fsopen")
    assert mounts("self") == before
    assert tracefs() == []


def test_tracefs_is_forbidden(postgres):
    """If tracefs cannot be mounted, the message has the remedy."""
    if os.path.exists("/sys/kernel/tracing/uprobe_events"):
        pytest.skip("tracefs is mounted here")
    done = run("postgres", "-p", postgres.pid, *force("tracefs"), "-d", "0.2", preexec_fn=deny(FSOPEN, errno.EPERM))
    refused(done, "tracefs", "CAP_SYS_ADMIN", "mount -t sysfs")


# --- semaphores that are written

NOTES = "/run/dbslower"


def counts(pid, path):
    """The semaphores of a process that are not 0."""
    return Memory(pid, path).semaphores()


@pytest.fixture
def server(clusters, server_copy):
    """A server whose file nobody else has probes on: the kernel wants all to agree who counts."""
    return clusters(name="semaphore", postgres=server_copy)


def test_semaphore_is_written_and_taken_back(server, tool):
    """In the main process, in a backend that was there and in one that comes; a stop leaves nothing."""
    path = server.postgres
    with server.connect() as before:
        old = before.info.backend_pid
        assert counts(old, path) == {} == counts(server.pid, path)
        traced = tool("postgres", "-m", "0", "--json", "-p", server.pid, *force("semaphore"))
        during = counts(server.pid, path)
        assert during and set(during.values()) == {1} and counts(old, path) == during
        note, = os.listdir(NOTES)
        assert os.stat(f"{NOTES}/{note}").st_mode & 0o777 == 0o600 and os.stat(NOTES).st_mode & 0o777 == 0o700
        with server.connect() as after:
            new = after.info.backend_pid
            assert counts(new, path) == during, "it was not inherited"
            after.execute("select 1 /* by hand */")
            stopped(traced)
            assert counts(old, path) == counts(new, path) == counts(server.pid, path) == {}
    only(traced, "by hand")
    assert not os.path.exists(NOTES)


def test_semaphore_kill_is_repaired(server, tool):
    path = server.postgres
    with server.connect() as before:
        killed = tool("postgres", "-m", "0", "--json", "-p", server.pid, *force("semaphore"))
        lives = tool("postgres", "-m", "0", "--json", "-p", server.pid, *force("semaphore"))
        with server.connect() as after:
            pids = [server.pid, before.info.backend_pid, after.info.backend_pid]
            during = [counts(pid, path) for pid in pids]
            assert all(set(one.values()) == {2} for one in during), during
            killed.kill()
            assert [counts(pid, path) for pid in pids] == during, "nothing was left, so this test proves nothing"
            run("postgres", "-x", sys.executable)	# any start will do
            assert all(set(counts(pid, path).values()) == {1} for pid in pids)
            stopped(lives)
            assert all(counts(pid, path) == {} for pid in pids)
    assert not os.path.exists(NOTES)


def test_semaphore_two_at_once(server, tool):
    """The second one's start does not repair the first one's."""
    args = ("postgres", "-m", "0", "--json", "-p", server.pid, *force("semaphore"))
    with server.connect() as connection:
        def now():
            return set(counts(connection.info.backend_pid, server.postgres).values())
        first = tool(*args)
        second = tool(*args)
        assert now() == {2}
        stopped(first)
        assert now() == {1}
        stopped(second)
        assert now() == set()


def test_semaphore_of_a_server_started_after(clusters, server_copy, tool):
    cluster = clusters(name="later", postgres=server_copy, start=False)
    traced = tool("postgres", "-x", server_copy, "-m", "0", "--json", *force("semaphore"))
    cluster.start()
    wait_for(lambda: set(counts(cluster.pid, cluster.postgres).values()) == {1}, what="its semaphores")

    def seen():
        """They are written one after the other: a process may inherit some of them."""
        cluster.psql("select 1 /* started after */")
        return with_tag(traced, "started after")
    wait_for(seen, what="a statement")
    assert traced.stop() == 0
    assert counts(cluster.pid, cluster.postgres) == {}


def test_semaphore_no_place_for_the_note(server, tool):
    script = 'mount -t tmpfs -o ro tmpfs /run && "$@"; exit $?'
    traced = tool("postgres", "-m", "0", "--json", "-p", server.pid, *force("semaphore"),
                  wrap=("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"))
    assert "/run/dbslower: cannot record" in traced.err.text and "SIGKILL" in traced.err.text, traced.said()
    server.psql("select 1 /* without a note */")
    stopped(traced)
    only(traced, "without a note")
    assert counts(server.pid, server.postgres) == {}


# --- PID namespaces

def test_pids_in_a_namespace(postgres):
    unshare = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespaces here")
    done = subprocess.run([*unshare, DBSLOWER, "postgres", *force("pids"), "-d", "0.2"], capture_output=True, text=True,
                          timeout=60)
    refused(done, "PID namespace", "5\\.7")


# --- perf buffers

def test_perfbuf_wakes(postgres, tool, tmp_path):
    """A statement wakes a tool that has gone to sleep for five seconds."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    log = tmp_path / "calls"
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("perfbuf"),
                  wrap=("strace", "-qq", "-e", "trace=poll,ppoll", "-o", log))
    numbers = itertools.count()
    with postgres.connect() as connection:
        def woken():
            """One that comes while it still naps wakes nothing."""
            n = next(numbers)
            connection.execute(f"select 1 /* wake {n}. */")
            wait_for(lambda: with_tag(traced, f"wake {n}."), what="the statement")
            return re.search(r"(, 5000|\{tv_sec=5, .*)\) = 1 ", log.read_text())
        wait_for(woken, every=0.5, what="a sleep that a statement ended")
    stopped(traced)


def test_perfbuf_longest_text(postgres, tool):
    """A record of perf has at most 64 KiB: what does not fit is marked."""
    traced = tool("postgres", "-m", "0", "--json", "--text", "1024k", "-p", postgres.pid, *force("perfbuf"))
    fits, cut = text_of(64744, "fits"), text_of(64745, "cut")
    postgres.psql(fits, cut)
    traced.stop()
    assert only(traced, "fits")["query"] == fits and not only(traced, "fits")["truncated"]
    one = only(traced, "cut")
    assert one["query"] == cut[:64744] and one["truncated"] and one["query_bytes"] == 64745
    assert not traced.lost(), traced.said()


def test_perfbuf_stat(postgres, tool):
    """Counting in the kernel requires no buffer; executed programs are still reported."""
    traced = tool("stat", "postgres", "-m", "0", "--json", "-p", postgres.pid, *force("perfbuf", "probe-read"),
                  kind=Stat)
    postgres.psql(*["select 1"] * 10)
    assert traced.stop() == 0, traced.said()
    assert sum(one["count"] for one in traced.histograms) == 10 and not traced.lost(), traced.said()


# --- reading memory

def helpers(*args):
    """The names and numbers of what the programs call, as --dump-bpf has them; of all programs that a server takes."""
    done = run("postgres", "--dump-bpf", "-d", "0.1", *args)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"call (\w+#\d+)", done.stderr))


def test_probe_read_calls_no_newer_helper(postgres):
    """The numbers are those of enum bpf_func_id: 112 and 114, 4 and 45."""
    newer, older = {"probe_read_user#112", "probe_read_user_str#114"}, {"probe_read#4", "probe_read_str#45"}
    assert newer <= helpers("-p", postgres.pid) and not older & helpers("-p", postgres.pid)
    forced = helpers("-p", postgres.pid, *force("probe-read"))
    assert older <= forced and not newer & forced


# --- what is written about them

def test_table_is_that_of_the_code():
    """docs/architecture.md and the manual have the features, commits and releases of loader/feature.c."""
    with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (\d+)\.(\d+) \| (.*?) \| (\w{12}) \| .* \| (?:`(\S+)`)? ?\|$", f.read(), re.M)
    listed = {name: f"{commit}, Linux {major}.{minor}" for major, minor, name, commit, _ in rows}
    assert listed == {one["name"]: one["since"] for one in parsed([run("doctor", "--json").stdout])[0]["features"]}
    releases = [(int(major), int(minor)) for major, minor, *_ in rows]
    assert releases == sorted(releases, reverse=True)
    forced = {fallback: release for release, (*_, fallback) in zip(releases, rows) if fallback}
    assert forced == fallbacks.section()
    assert set(re.search(r"expected (.*), linux-4\.18$", run("--force=?").stderr.strip())[1].split(", ")) == set(forced)


def test_readme_has_each_release():
    """What Linux 4.18 lacks, in the order of the releases."""
    features = parsed([run("doctor", "--json").stdout])[0]["features"]
    newer = sorted((tuple(map(int, one["since"].split()[-1].split("."))), one["name"]) for one in features)
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (\d+)\.(\d+) \| (.*?) \| .+ \|$", f.read(), re.M)
    assert [((int(major), int(minor)), name) for major, minor, name in rows] == [one for one in newer if one[0] > (4, 18)]


def test_release_forces_what_is_newer(postgres):
    """-v prints what is missing: all features that came later, of those that are asked for."""
    since = {one["name"]: tuple(map(int, one["since"].split()[-1].split("."))) for one in parsed([run("doctor", "--json").stdout])[0]["features"]}
    for release in ((4, 18), (5, 10)):
        done = run("-p", postgres.pid, "--why", "-v", "-d", "0.1", f"--force=linux-{release[0]}.{release[1]}")
        has, missing = re.search(r"features of the kernel:(.*?); missing: (.*)", done.stderr).groups()
        assert all(since[name] > release for name in missing.split(", ")), done.stderr
        assert all(since[name] <= release for name in has.strip().split(", ") if name), done.stderr
    for wrong in ("linux-", "linux-5.x", "linux-5.4.1", "linux-999.1", "linux"):
        assert "unknown fallback" in run(f"--force={wrong}", "-d", "0.1").stderr
