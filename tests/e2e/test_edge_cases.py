# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Edge cases: unusual orders of messages, one image at several mounts, malformed files."""

import datetime
import fcntl
import os
import re
import signal
import struct
import subprocess

import pytest

import backends
import wire
from cluster import wait_for
from containers import make_control_group
from statements import only, stopped, with_tag
from tool import DBSLOWER


# --- statements of one pipeline that never complete

def test_parsed_together(postgres, tool):
    """Three Parse messages and one Sync are three, not the last alone."""
    traced = tool("postgres", "-m", "0", "--json", "--prepares", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    connection.ask(*(wire.parse(f"select {n} /* parsed {n} */", f"p{n}") for n in range(3)))
    connection.close()
    stopped(traced)
    for n in range(3):
        one, = (one for one in traced.objects() if f"parsed {n} " in one.get("query", ""))
        assert one["type"] == "prepare" and "rows" not in one


def test_suspended_then_another(postgres, tool):
    """The time of a portal that was suspended is its own, not that of the next statement."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    slow = "select g, pg_sleep(0.1) from generate_series(1, 9) g /* suspended first */"
    traced.pause()		# it then reads both at once, and compares its clocks once
    connection.ask(wire.parse(slow), wire.bind(), wire.execute(rows=2),
                   wire.parse("select 2 /* quick second */", "q"), wire.bind("q", "other"), wire.execute("other"))
    connection.close()
    traced.process.send_signal(signal.SIGCONT)
    stopped(traced)
    first, second = only(traced, "suspended first"), only(traced, "quick second")
    assert first["duration_ms"] >= 200 and second["rows"] == 1, second
    began = [datetime.datetime.fromisoformat(one["time"].replace("Z", "+00:00")) for one in (first, second)]
    # The second begins behind the time of the first; times are cut at microseconds.
    assert (began[1] - began[0]).total_seconds() * 1e6 + 1 >= int(first["duration_ms"] * 1000), (first, second)


def test_same_beginning(postgres, tool):
    """Texts that differ only behind their first word of eight bytes."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    connection.ask(*(part for c in "ab" for part in (wire.parse(f"select 1, 2, 3 /* tail {c} */", c),
                                                     wire.bind(c, c), wire.execute(c))))
    connection.close()
    stopped(traced)
    only(traced, "tail a")
    only(traced, "tail b")


def test_terminated_in_the_second_part(postgres, tool):
    """The first part of "a; b" completed; the message failed all the same."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    connection.send(wire.simple("select 1 /* two parts */; select pg_sleep(60)"))
    query = "select pid from pg_stat_activity where wait_event = 'PgSleep' and application_name = 'by hand'"
    wait_for(lambda: postgres.psql(query).stdout.strip(), 60, "the second part to sleep")
    postgres.psql(f"select pg_terminate_backend(({query}))")
    with pytest.raises((ConnectionError, OSError)):
        connection.until(b"Z")
    stopped(traced)
    assert only(traced, "two parts")["status"] == "error"


def test_running_at_the_end_is_no_loss(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "--strict", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    connection.send(wire.simple("select pg_sleep(60) /* still running */"))
    query = "select pid from pg_stat_activity where wait_event = 'PgSleep' and application_name = 'by hand'"
    wait_for(lambda: postgres.psql(query).stdout.strip(), 60, "the statement to sleep")
    status = traced.stop()
    postgres.psql(f"select pg_terminate_backend(({query}))")
    postgres.settle()
    assert not with_tag(traced, "still running")
    assert traced.summary["boundary"] == 1 and not traced.lost(), traced.said()
    assert status == 0 and "nothing lost" in traced.stderr, f"exit status {status} under --strict\n{traced.said()}"


# --- one file, seen twice

def test_second_tool_reads_the_file_not_the_breakpoints(postgres, tool):
    """The kernel writes breakpoints into every private mapping of the file, a tracer's included."""
    tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    second = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    assert "by its USDT probes" in second.err.text, second.said()


OVERLAYS = """
set -e
for n in 1 2; do
    mkdir -p {dir}/$n/upper {dir}/$n/work {dir}/$n/root
    mount -t overlay overlay -o lowerdir={lower},upperdir={dir}/$n/upper,workdir={dir}/$n/work {dir}/$n/root
done
echo mounted
read line
umount -l {dir}/1/root {dir}/2/root
"""


@pytest.fixture
def overlays():
    """Two overlay mounts of the server's folder, as two containers of one image have them."""
    from cluster import server_bindir
    tmpfs = subprocess.run(["mktemp", "-d", "-p", "/dev/shm"], capture_output=True, text=True).stdout.strip()
    if not tmpfs:
        pytest.skip("no /dev/shm to put an overlay on")
    lower = os.path.dirname(server_bindir())
    shell = subprocess.Popen(["sh", "-c", OVERLAYS.format(dir=tmpfs, lower=lower)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if shell.stdout.readline() != "mounted\n":
        pytest.skip(f"no overlay mounts here: {shell.stderr.read()}")
    os.chmod(tmpfs, 0o755)
    yield [os.path.join(tmpfs, str(n), "root", "bin", "postgres") for n in (1, 2)]
    shell.communicate("\n")
    subprocess.run(["rm", "-rf", tmpfs], check=True)


@pytest.mark.alone
def test_two_overlays_of_one_image(overlays, clusters, tool):
    """The kernel's probes are on the lower inode: attached once, each hit counts once."""
    servers = [clusters(postgres=path, name=f"overlay{n}") for n, path in enumerate(overlays)]
    traced = tool("postgres", "-m", "0", "--json")
    for n, server in enumerate(servers):
        server.psql(f"select generate_series(1, 5) /* overlay {n} */")
    stopped(traced)
    for n in range(2):
        assert only(traced, f"overlay {n}")["rows"] == 5, traced.said()
    for server in servers:
        server.stop()


# --- hostile files

def sparse_elf(path, kind, name):
    """An executable with a section of 8 TiB that is nearly all hole."""
    names = b"\0.shstrtab\0" + name + b"\0"
    shoff = 0x1000
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, shoff, 0, 64, 56, 0, 64, 3, 1)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 0x800, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 11, kind, 0, 0, 0x2000, 1 << 43, 1, 0, 4, 24)
    with open(path, "wb") as f:
        f.write(header)
        f.seek(0x800)
        f.write(names)
        f.seek(shoff)
        f.write(sections)
        f.truncate(0x2000 + (1 << 43))


@pytest.mark.parametrize("kind,name", [(7, b".note.stapsdt"), (2, b".symtab"), (11, b".dynsym"), (1, b".rodata"),
                                       (0x6ffffff6, b".gnu.hash"), (3, b".strtab")])
def test_sparse_file(tmp_path, kind, name):
    """The tool ends with a message; an endless table is read up to a limit."""
    path = tmp_path / "postgres"
    try:
        sparse_elf(path, kind, name)
    except OSError as error:
        pytest.skip(f"no sparse files of this size here: {error}")
    done = subprocess.run([DBSLOWER, "-x", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and re.search(r"not a supported database server|cannot be traced", done.stderr), done.stderr


def test_sparse_program_headers(tmp_path):
    """The same where the file says that it has four thousand millions of segments."""
    path = tmp_path / "postgres"
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 4096, 64, 0, 64, 56, 0xffff, 64, 2, 1)
    try:
        with open(path, "wb") as f:
            f.write(header + struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0xfffffff0, 1, 0))
            f.truncate(200 << 30)
    except OSError as error:
        pytest.skip(f"no sparse files of this size here: {error}")
    done = subprocess.run([DBSLOWER, "-x", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "its functions have no symbols (PostgreSQL)" in done.stderr, done.stderr


def test_signal_while_it_starts():
    """Before it reads signals itself, they end it at once."""
    process = subprocess.Popen([DBSLOWER, "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (0, -signal.SIGTERM)


# --- what a stopped reader, a closed descriptor or a filter must not do

def test_reader_of_messages_has_stopped(postgres):
    """Standard error is a pipe that nobody empties: a signal ends it all the same."""
    read, write = os.pipe()
    os.write(write, bytes(fcntl.fcntl(write, fcntl.F_GETPIPE_SZ)))
    process = subprocess.Popen([DBSLOWER, "postgres", "-p", str(postgres.pid)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=write)
    os.close(write)
    wait_for(lambda: open(f"/proc/{process.pid}/wchan").read() != "0" or process.poll() is not None, 60, "it to block")
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    os.close(read)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptor(postgres, closed):
    """Its own descriptors do not become the standard ones; the time of -d holds."""
    done = subprocess.run(f"{DBSLOWER} postgres -m 0 --json -p {postgres.pid} -d 0.5 {closed}", shell=True, timeout=60)
    assert done.returncode == 0


def test_count_and_strict(postgres, tool):
    """A statement that is dropped is not counted as truncated."""
    traced = tool("postgres", "-m", "0", "--strict", "-n", "1", "--json", "-p", postgres.pid)
    postgres.psql("select 1", f"select 2 /* {'longer than the default ' * 200} */")
    assert traced.wait() == 0, traced.said()


@pytest.mark.parametrize("args, status", [([], 1), (["--text", "16"], 0)], ids=["default", "asked for"])
def test_truncated_texts_and_strict(postgres, tool, args, status):
    traced = tool("postgres", "-m", "0", "--strict", "--json", "-p", postgres.pid, *args)
    postgres.psql(f"select 2 /* {'longer than the default ' * 200} */")
    assert traced.stop() == status, traced.said()
    assert traced.summary["lost"]["text_truncated"] == 1


def test_count_while_another_runs(postgres, tool):
    """A statement that runs on after the last one asked for is not lost."""
    connection = wire.Wire(postgres, "by hand")
    traced = tool("postgres", "-m", "0", "--strict", "-n", "1", "--json", "-p", postgres.pid)
    connection.send(wire.simple("select pg_sleep(60)"))
    query = "select pid from pg_stat_activity where wait_event = 'PgSleep' and application_name = 'by hand'"
    wait_for(lambda: postgres.psql(query).stdout.strip(), 60, "the statement to sleep")
    status = traced.wait()
    postgres.psql(f"select pg_terminate_backend(({query}))")
    postgres.settle()		# else its end is a statement of the next test
    assert status == 0, traced.said()


def test_filters(postgres, tool):
    postgres.psql("create role someone login superuser", "create database somewhere")
    here = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--user", "someone")
    there = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--db", "somewhere")
    text = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--match", "NEEDLE")
    regex = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--match", "/some(one|body), n[aeiou]+dle/")
    with postgres.connect(user="someone") as one, postgres.connect(dbname="somewhere") as two:
        two.execute("select 1 /* in somewhere */")
        one.execute("select 1 /* by someone, needle */")
        # Once a session's user is known the kernel leaves it out: it is not counted any more. Records come in order.
        here.wait_for(lambda tool: with_tag(tool, "by someone"), what="the first statement")
        one.execute("select 1 /* of the same */")
        here.wait_for(lambda tool: with_tag(tool, "of the same"), what="the second statement")
        for n in range(50):
            two.execute(f"select {n} /* ignored */")
    for traced, seen, unseen in ((here, "by someone", "in somewhere"), (there, "in somewhere", "by someone"),
                                 (text, "needle", "in somewhere"), (regex, "needle", "in somewhere")):
        stopped(traced)
        only(traced, seen)
        assert not with_tag(traced, unseen), traced.said()
    assert here.summary["statements"] < 20 and text.summary["statements"] > 50, here.said() + text.said()
    postgres.settle()		# the server waits five seconds for a backend to leave the database
    postgres.psql("drop database somewhere", "drop role someone")


# --- containers

CONTAINER = "0123456789ab" + "cd" * 26


@pytest.fixture
def control_group():
    """A control group with the name that docker gives one, for a process and its children to come."""
    folder, base = make_control_group(f"docker-{CONTAINER}.scope")

    def move(pid, to=folder):
        with open(os.path.join(to, "cgroup.procs"), "w") as f:
            f.write(str(pid))
    yield move

    def removed():
        """Processes come and go meanwhile."""
        try:
            with open(os.path.join(folder, "cgroup.procs")) as f:
                for pid in f.read().split():
                    move(pid, base)
            os.rmdir(folder)
        except OSError:
            return False
        return True
    wait_for(removed, 60, "the control group to be empty")


@pytest.mark.alone
def test_container(postgres, clusters, tool, control_group):
    other = clusters(name="other")
    control_group(other.pid)
    traced = tool("postgres", "-m", "0", "--json", "--container", CONTAINER[:6])
    postgres.psql("select 1 /* on the host */")
    with other.connect() as connection:		# it is looked up in /proc, where a short one is gone too soon
        connection.execute("select 1 /* in the container */")
        stopped(traced)
    assert only(traced, "in the container")["server"]["container"] == CONTAINER[:12]
    assert not with_tag(traced, "on the host"), traced.said()
