# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""File systems that an ordinary user serves and that do not answer."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from cluster import children, wait_for
from commanded import reveal
from requirements import need_root
from stallfs import StallFs, build_idle
from test_user_engine import memsqld	# noqa: F401  pylint: disable=unused-import
from tool import FIXTURES, Locks, Tool, run
from user_engine import PROBES

pytestmark = pytest.mark.alone


STALLS = 100	# seconds; two of them are within the life of the file system


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    return build_idle(tmp_path_factory.mktemp("idle"))


@pytest.mark.parametrize("who, layer", [("user", "overlay"), ("user", "plain"), ("root", "plain")])
@pytest.mark.parametrize("name", ["mysqld", "anything"])
def test_no_answer(tmp_path, idle, name, who, layer):
    """Processes of such files are examined without a request to the file system."""
    need_root()
    with StallFs(tmp_path, idle, name, who, layer) as fs:
        fs.runs(name)
        begin = time.monotonic()
        try:
            done = run("doctor", "--json", timeout=STALLS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"doctor waits for the file system of {who}")
        assert time.monotonic() - begin < STALLS
        assert "/tmp/fs/" not in done.stdout and "/tmp/merged/" not in done.stdout, done.stdout
        run("list", "nothing", timeout=STALLS)


@pytest.mark.parametrize("who, layer", [("user", "overlay"), ("root", "plain")])
def test_no_answer_later(tmp_path, idle, memsqld, who, layer):	# noqa: F811
    """The same for a program that is started while another server is traced."""
    need_root()
    with Tool("-m", "0", "--json", "-x", memsqld.path, *PROBES) as traced, \
         StallFs(tmp_path, idle, "memsqld", who, layer) as fs:
        fs.runs("memsqld")
        memsqld()
        traced.wait_for(lambda tool: tool.statements, timeout=STALLS, what="a statement")
        assert traced.stop() == 0


LAUNCH = """
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
	if (chdir("/tmp/fs") || dup2(open("%s/in", O_RDWR), 0) || dup2(open("%s/out", O_RDWR), 1) != 1)
		return 1;
	return execl("%s/postgres", "postgres", "catalog", (char *)0);
}
"""


@pytest.mark.parametrize("who", ["root", "user"])
def test_working_directory_without_an_answer(tmp_path, who):
    """locks reads no catalog below a working directory that an ordinary user serves."""
    need_root()
    folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))	# /tmp is another one for the program
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        if str(parent) != "/tmp":
            parent.chmod(0o755)
    try:
        folder.chmod(0o755)
        subprocess.run(["gcc", "-O2", "-rdynamic", "-no-pie", "-fcf-protection=none", "-o", folder / "postgres",
                        os.path.join(FIXTURES, "hostilelocks.c")], check=True)
        (folder / "launch.c").write_text(LAUNCH % ((folder,) * 3))
        subprocess.run(["gcc", "-static", "-o", folder / "launch", folder / "launch.c"], check=True)
        for name in ("in", "out"):
            os.mkfifo(folder / name)
            (folder / name).chmod(0o666)
        with StallFs(tmp_path, folder / "launch", "launch", who, "plain") as fs:
            fs.runs("postgres")
            with Locks("locks", "--json", "-m", "0", "-p", fs.pid) as traced:
                scene = os.open(folder / "in", os.O_RDWR)	# does not wait for a reader
                os.write(scene, b"\n")
                os.close(scene)
                wait = traced.wait_for(lambda tool: tool.waits, timeout=STALLS, what="the wait")[0]
                assert traced.stop() == 0
        assert wait["relation_oid"] == 4711 and "relation" not in wait
    finally:
        shutil.rmtree(folder)


STALLED = """
#include <unistd.h>
int main(void)
{
	return execl("%s/postgres", "postgres", "file", "/tmp/fs/launch", (char *)0);
}
"""


@pytest.fixture(scope="module", name="stalled")
def build_stalled():
    """A folder that others can read, with tests/fixtures/stalled.c as postgres."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))	# /tmp is another one for the program
    folder.chmod(0o755)
    subprocess.run(["gcc", "-O2", "-rdynamic", "-o", folder / "postgres", os.path.join(FIXTURES, "stalled.c")], check=True)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def unserved(stalled, layer="plain"):
    """A server of USER, a page of whose memory is not served. Yields its PID."""
    need_root()
    (stalled / "launch.c").write_text(STALLED % stalled)
    subprocess.run(["gcc", "-static", "-o", stalled / "launch", stalled / "launch.c"], check=True)
    with open(stalled / "launch", "ab") as f:
        f.write(bytes(1 << 22))	# its end is not read when it is run
    reveal(str(stalled / "launch"))
    with StallFs(stalled, stalled / "launch", "launch", "fusermount", layer) as fs:
        fs.runs("postgres")
        wait_for(lambda: children(fs.pid), what="its backend")
        yield fs.pid


def test_sessions_without_an_answer(stalled, postgres):
    """ps leaves out the user whose process has a page that is not served, says so, and lists the others."""
    with unserved(stalled) as pid, postgres.connect() as one:
        one.execute("select 'this one'")
        begin = time.monotonic()
        done = run("ps", timeout=30)
        took = time.monotonic() - begin
        again = run("ps", "-i", "0.1", "-n", "5", timeout=30)
    for listed, n in ((done, 1), (again, 5)):
        assert listed.returncode == 0 and listed.stdout.count("select 'this one'") == n, listed
        assert re.fullmatch((rf"dbslower: process {pid}: its memory does not answer; it and \d+ other processes of "
                             r"servers of user ID 1001 are left out\n") * n, listed.stderr), listed.stderr
    assert took < 3, took


def test_sessions_with_a_late_answer(stalled):
    """Of a process that answers after 0.3 s, none are left out."""
    with unserved(stalled, "slow") as pid:
        done = run("ps", "--json", "-p", pid, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
        assert '"type":"session"' in done.stdout


def test_samples_without_an_answer(stalled, postgres):
    """So does --sample, which goes on with the others in another child, and ends in time."""
    with unserved(stalled) as pid, postgres.connect() as one:
        with Tool("--sample", "10ms", "--json") as tool:
            for i in range(10):	# longer than a look at the other one, and than the host may be busy
                one.execute(f"select pg_sleep(0.25), 'this one {i}'")
                time.sleep(0.02)
            begin = time.monotonic()
            assert tool.stop() == 0, tool.said()
            assert time.monotonic() - begin < 3
    said = [line for line in tool.stderr.splitlines() if "left out" in line]
    assert said == [f"dbslower: process {pid}: its memory does not answer; the servers of user ID 1001 are left out for a while"]
    assert [s["query"] for s in tool.statements] == [f"select pg_sleep(0.25), 'this one {i}'" for i in range(10)], tool.said()


def test_sessions_of_a_userfaultfd(stalled, postgres):
    """The kernel ends a read of a page that a userfaultfd does not serve; ps lists the others."""
    need_root()
    with subprocess.Popen([stalled / "postgres", "userfaultfd", "/"]) as other:
        try:
            with postgres.connect() as one:
                one.execute("select 'this one'")
                done = run("ps", timeout=30)
        finally:
            other.kill()
    assert done.returncode == 0 and "select 'this one'" in done.stdout, done
