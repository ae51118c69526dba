# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fallbacks for older kernels and minimal systems, forced on this one. test_oracle.py compares their statements."""

import errno
import itertools
import os
import platform
import re
import shutil
import subprocess

import pytest

import bpf_answers
import fallbacks
from cluster import wait_for
from fallbacks import force
from seccomp import deny
from statements import only, stopped, text_of, with_tag
from tables import features
from tool import DBSLOWER, ROOT, Stat, parsed, refused, run

FSOPEN = 430
WITHOUT_SYS = ("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount -l /sys && "$@"; exit $?', "sh")


# --- systems with nothing mounted

def mounts(pid):
    """The mounts of what it mounts itself: others come and go."""
    with open(f"/proc/{pid}/mountinfo") as f:
        return [line for line in f if line.partition(" - ")[2].split()[0] in ("sysfs", "tracefs", "debugfs")]


@pytest.mark.parametrize("args", [[], force("perf")], ids=lambda args: " ".join(args) or "default")
def test_sys_is_not_mounted(postgres, tool, args):
    before = mounts("self")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *args, wrap=WITHOUT_SYS)
    assert not any(" /sys" in line or "tracefs" in line for line in mounts(traced.pid))
    postgres.psql("select 1 /* without sys */")
    stopped(traced)
    only(traced, "without sys")
    assert mounts("self") == before


def test_sys_is_not_mounted_without_fsopen(postgres, tool):
    """As where a filter hides fsopen(2)."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"the number of fsopen(2) on {platform.machine()} is not known here")
    before = mounts("self")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *force("perf"), wrap=WITHOUT_SYS,
                  preexec_fn=deny(FSOPEN, errno.ENOSYS))
    postgres.psql("select 1 /* without fsopen */")
    stopped(traced)
    only(traced, "without fsopen")
    assert mounts("self") == before


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
    """The numbers of the helpers that the programs for a server call, other than those that ask for features."""
    if bpf_answers.SYS_BPF is None:
        pytest.skip(f"the number of bpf(2) on {platform.machine()} is not known here")
    ran = bpf_answers.Answered([DBSLOWER, "postgres", "-d", "0.1", *args], lambda program: 0)
    assert ran.done.returncode == 0, ran.done.stderr
    return set().union(*(program.helpers for program in ran.programs if program.name != "probe"))


def test_probe_read_calls_no_newer_helper(postgres):
    """The numbers are those of enum bpf_func_id."""
    newer, older = {112, 114}, {4, 45}	# probe_read_user and probe_read_user_str; probe_read and probe_read_str
    of_server = "-p", str(postgres.pid)
    assert newer <= helpers(*of_server) and not older & helpers(*of_server)
    forced = helpers(*of_server, *force("probe-read"))
    assert older <= forced and not newer & forced


# --- what is written about them

def test_manual_has_the_fallbacks_of_the_code():
    """With their releases, and so have the messages and doctor."""
    forced = {fallback: release for _, release, fallback in features().values() if fallback}
    assert forced == fallbacks.section()
    known, risks = re.search(r"expected (.*), linux-5\.4, (.*)$", run("--force=?").stderr.strip()).groups()
    assert set(known.split(", ")) == set(forced) and set(risks.split(", ")) == fallbacks.harmful() | {"go-returns", "little-memory"}
    assert {one["name"]: one["since"] for one in parsed([run("doctor", "--json").stdout])[0]["features"]} == \
        {name: f"{commit}, Linux {major}.{minor}" for name, (commit, (major, minor), _) in features().items()}


def test_readme_has_each_release():
    """What Linux 5.3 lacks, in the order of the releases."""
    newer = sorted((release, name) for name, (_, release, _) in features().items())
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (\d+)\.(\d+) \| (.*?) \| .+ \|$", f.read(), re.M)
    assert [((int(major), int(minor)), name) for major, minor, name in rows] == [one for one in newer if one[0] > (5, 3)]


def test_release_forces_what_is_newer(postgres):
    """-v prints what is missing: all features that came later, of those that are asked for."""
    since = {name: release for name, (_, release, _) in features().items()}
    for release in ((5, 4), (5, 10)):
        done = run("-p", postgres.pid, "--why", "-v", "-d", "0.1", f"--force=linux-{release[0]}.{release[1]}")
        has, missing = re.search(r"features of the kernel:(.*?); missing: (.*)", done.stderr).groups()
        assert all(since[name] > release for name in missing.split(", ")), done.stderr
        assert all(since[name] <= release for name in has.strip().split(", ") if name), done.stderr
    for wrong in ("linux-", "linux-5.x", "linux-5.4.1", "linux-999.1", "linux"):
        assert "unknown name" in run(f"--force={wrong}", "-d", "0.1").stderr
