# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""locks, on servers with hostile files and memory."""

import ctypes
import functools
import os
import platform
import shutil
import struct
import subprocess
import time

import pytest

from cluster import wait_for
from commanded import reveal
from requirements import need_root
from tool import DBSLOWER, FIXTURES, Locks, cpu_seconds, memory_of, parsed, spent_by_children

FIXTURE = os.path.join(FIXTURES, "hostilelocks.c")
IN_OPEN = 0x20

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the fixture is written for x86-64")


class Opened:
    """Watch by inotify whether a file is opened."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN) >= 0, ctypes.get_errno()

    def __bool__(self):
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *why):
        os.close(self.fd)


class Server:
    """The fixture while it plays a scene; @wrap is a command whose only child it is, @exec_by one that becomes it."""

    def __init__(self, path, *scene, wrap=(), exec_by=(), cwd=None, user=None, preload=None):
        env = {**os.environ, "HELD": "1", **({"LD_PRELOAD": str(preload)} if preload else {})}
        self.process = subprocess.Popen([*wrap, *exec_by, path, *map(str, scene)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=cwd, user=user, env=env, extra_groups=None if user is None else [])
        self.process.stdout.readline()
        self.pid = self.process.pid
        if wrap:
            with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
                self.pid = int(f.read())

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def play(self, *steps):
        """Play the scene; each step is what to wait for before it goes on."""
        self.begin()
        for step in steps:
            wait_for(step, what="the tool to have seen it")
            self.begin()
        assert self.process.stdout.readline() == "done\n"

    def play_to(self, traced, waits=1):
        """Play the scene while @traced looks at each of its waits."""
        def seen(before):
            return len([one for one in traced.waits if one["pid"] == self.pid]) == before and [
                one for one in traced.ask() if one["pid"] == self.pid]
        self.play(*(functools.partial(seen, number) for number in range(waits)))

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder where it lies, built as either server."""
    need_root()
    folder = tmp_path_factory.mktemp("hostilelocks")
    for name, args in (("postgres", ()), ("mysqld", ("-DMYSQLD",))):
        subprocess.run(["gcc", "-O2", "-rdynamic", "-no-pie", "-fcf-protection=none", *args, "-o", folder / name, FIXTURE],
                       check=True)
    return folder


@pytest.fixture
def server(built):
    running = []

    def start(*scene, name="postgres", folder=built, **keywords):
        running.append(Server(str(folder / name), *scene, **keywords))
        return running[-1]
    yield start
    for one in running:
        one.end()


def traced_at(tool, server):
    return tool("locks", "--json", "-m", 0, "-p", server.pid, kind=Locks)


def ends_soon(traced, seconds=30):
    """It ends, and takes no more than so many seconds of CPU time for that."""
    begun = spent_by_children() + cpu_seconds(traced.pid)
    traced.ended()
    assert spent_by_children() - begun < seconds
    return traced


def test_catalog_that_is_no_file(tool, server, tmp_path):
    """The catalog may be a device, which must not be opened."""
    base = tmp_path / "base" / "5"
    base.mkdir(parents=True)
    os.mkfifo(tmp_path / "device")
    (base / "pg_filenode.map").symlink_to(tmp_path / "device")
    hostile = server("catalog", cwd=tmp_path)
    with Opened(tmp_path / "device") as opened:
        traced = traced_at(tool, hostile)
        hostile.play_to(traced)
        wait = traced.wait_of(hostile.pid)
        ends_soon(traced)
        assert not opened
    assert wait["relation_oid"] == 4711 and "relation" not in wait


def catalog(base):
    """Makes the files of a database, in which relation 4711 is "told"."""
    base.mkdir(parents=True)
    (base / "pg_filenode.map").write_bytes(struct.pack("<4I", 0x592717, 1, 1259, 777))
    row = struct.pack("<4s4s", b"", b"") + b"\0" * 12 + struct.pack("<HB", 0, 24) + b"\0"
    row += struct.pack("<I64s", 4711, b"told")
    page = bytearray(8192)
    struct.pack_into("<H", page, 12, 28)
    struct.pack_into("<I", page, 24, 4096 | 1 << 15 | len(row) << 17)
    page[4096:4096 + len(row)] = row
    (base / "777").write_bytes(page)


def test_catalog_that_is_a_file(tool, server, tmp_path):
    """… while that of the test before is looked for where this one is."""
    catalog(tmp_path / "base" / "5")
    hostile = server("catalog", cwd=tmp_path)
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    assert traced.wait_of(hostile.pid)["relation"] == "told"
    ends_soon(traced)


def link_to_pipe(base, secret):
    """A file whose read(2) blocks, although it is a regular one to stat(2)."""
    (base.parent / "tracing").mkdir()
    if subprocess.run(["mount", "-t", "tracefs", "none", base.parent / "tracing"]).returncode:
        pytest.skip("no tracefs")
    base.mkdir()
    (base / "pg_filenode.map").symlink_to("../tracing/trace_pipe")


def link_to_file(base, secret):
    base.mkdir()
    for name in ("pg_filenode.map", "777"):
        (base / name).symlink_to(secret / name)


def link_to_folder(base, secret):
    base.symlink_to(secret)


LEASE = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], "r+")
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print(flush=True)
sys.stdin.read()
"""


def leased(base, secret):
    """Opening the file waits for the owner of the lease, up to /proc/sys/fs/lease-break-time."""
    catalog(base)
    os.chown(base / "pg_filenode.map", OTHER, OTHER)
    process = subprocess.Popen(["python3", "-c", LEASE, base / "pg_filenode.map"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, user=OTHER, group=OTHER, extra_groups=[])
    assert process.stdout.readline()
    return process


def lease_seconds():
    """How long a lease lasts when somebody wants the file."""
    with open("/proc/sys/fs/lease-break-time", encoding="ascii") as f:
        return int(f.read())


OTHER = 1001
IN_NAMESPACE = 'mount --bind "$0" base/5 && exec setpriv --reuid=1001 --regid=1001 --clear-groups "$@"'


@pytest.mark.parametrize("attack", [link_to_pipe, link_to_file, link_to_folder, leased])
def test_catalog_of_another_user(tool, server, built, tmp_path, attack):
    """A user who starts a program cannot have it stall locks, nor have it read what he cannot."""
    data, secret = tmp_path / "data", tmp_path / "secret"
    (data / "base").mkdir(parents=True)
    catalog(secret)
    reveal(str(built))
    reveal(str(data))
    secret.chmod(0o700)
    holder = attack(data / "base" / "5", secret)
    try:
        hostile = server("catalog", cwd=data, user=OTHER)
        traced = traced_at(tool, hostile)
        begun = time.monotonic()
        hostile.play_to(traced)
        wait = traced.wait_of(hostile.pid)
        assert attack is not leased or time.monotonic() - begun < lease_seconds()	# else it has waited for that
        ends_soon(traced)
    finally:
        if holder:
            holder.communicate()
        if attack is link_to_pipe:
            subprocess.run(["umount", data / "base" / "tracing"], check=True)
    assert wait["relation_oid"] == 4711 and "relation" not in wait


def test_catalog_of_a_mount(tool, server, built, tmp_path):
    """A user mounts what he cannot read in a namespace of his own; it has the device of his files."""
    data, secret = tmp_path / "data", tmp_path / "secret"
    (data / "base" / "5").mkdir(parents=True)
    catalog(secret)
    reveal(str(built))
    reveal(str(data))
    wrap = ("unshare", "--mount", "--propagation", "private", "sh", "-c", IN_NAMESPACE, secret)
    if subprocess.run([*wrap, "true"], cwd=data).returncode:
        pytest.skip("no mount namespaces here")
    hostile = server("catalog", cwd=data, exec_by=wrap)
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    wait = traced.wait_of(hostile.pid)
    ends_soon(traced)
    assert wait["relation_oid"] == 4711 and "relation" not in wait


@pytest.mark.parametrize("same", [True, False], ids=["same", "other"])
def test_holder_that_is_another_program(tool, server, built, tmp_path, same):
    """Nobody names a process that has the same parent as its own, to have what is in its memory shown."""
    shutil.copy(built / "postgres", tmp_path / "postgres")
    holder = server("stay", folder=built if same else tmp_path)
    hostile = server("holder", holder.pid)
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    wait = traced.wait_of(hostile.pid)
    ends_soon(traced)
    shown = [one.get("query") for one in wait.get("holders", ()) if one.get("pid") == holder.pid]
    assert shown == (["select 'the text of another program'"] if same else []), wait


INVENTS = """
#include <sys/mman.h>
__attribute__((constructor)) static void invent(void)
{
	const char **names = (const char **)NAMES;

	mprotect((void *)((unsigned long)names & -4096UL), 8192, PROT_READ | PROT_WRITE);
	for (int i = 0; i < 6; i++)
		names[i] = "invented";
}
"""


def test_names_of_another_user(tool, server, built, tmp_path):
    """A user runs the program of a server with other names of locks in memory: the server's are its own."""
    reveal(str(built / "postgres"))
    table = subprocess.run(["nm", built / "postgres"], capture_output=True, text=True, check=True).stdout
    (names,) = [line.split()[0] for line in table.splitlines() if line.endswith(" LockTagTypeNames")]
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DNAMES=0x{names}", "-o", tmp_path / "invents.so", "-xc", "-"], check=True,
                   input=INVENTS, text=True)
    reveal(str(tmp_path / "invents.so"))
    other = server("catalog", user=OTHER, cwd="/", preload=tmp_path / "invents.so")
    victim = server("catalog")
    traced = tool("locks", "--json", "-m", 0, "-p", f"{other.pid},{victim.pid}", kind=Locks)
    for one in other, victim:
        one.play_to(traced)
        traced.wait_of(one.pid)
    ends_soon(traced)
    assert [one["lock"] for one in traced.waits] == ["invented", "relation"]


def test_holder_that_came_after(tool, server):
    """Who has got the lock since is no holder of a wait that is over when it is looked at."""
    hostile = server("over", server("stay").pid)
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    wait = traced.wait_of(hostile.pid)
    ends_soon(traced)
    assert not wait.get("holders"), wait


def test_cycle_that_is_none(tool, server):
    """Of 19 backends that each wait for eight there are more ways than can be followed."""
    hostile = server("cycle")
    traced = traced_at(tool, hostile)

    def known():
        return [one for one in traced.ask() if len(one.get("holders", ())) == 8]
    hostile.play(lambda: len(known()) == 19, lambda: len(known()) == 20, lambda: len(traced.waits) == 1)
    traced.wait_for(lambda traced: len(traced.waits) == 20, what="all waits")
    ends_soon(traced)
    (dead,) = [one for one in traced.waits if one["outcome"] == "deadlock"]
    assert len(dead["holders"]) == 8 and "cycle" not in dead
    assert all(len(one["holders"]) == 8 for one in traced.waits)


def test_session_that_leads_everywhere(tool, server):
    hostile = server("session", name="mysqld")
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    traced.wait_of(hostile.pid)
    ends_soon(traced)


def test_locks_on_the_fast_path(tool, server):
    """Of MySQL: the sessions that hold them are found by their own lists. An empty list of holders means that there is none."""
    hostile = server("metadata", name="mysqld")
    traced = traced_at(tool, hostile)
    hostile.play_to(traced, 4)
    traced.wait_for(lambda traced: len(traced.waits) == 4, what="all waits")
    ends_soon(traced)
    waits = traced.waits
    assert {(one["lock"], one["object"], one["connection_id"]) for one in waits} == {("metadata", "shop.acc", 1)}
    holders = {one["connection_id"]: one for one in waits[0]["holders"]}
    assert set(holders) == {2, 3, 4} and [holders[one]["queued"] for one in (2, 3, 4)] == [False, True, False], waits[0]
    assert holders[2]["idle_in_transaction"] and holders[4]["query"] == "select sleep(9) from acc", waits[0]
    assert waits[1]["holders"] == [] and "holders" not in waits[2], waits
    assert [one["connection_id"] for one in waits[3]["holders"]] == [2], waits[3]


def test_memory_that_changes(tool, server):
    """All that is followed is overwritten all the while, often with what looks like it."""
    hostile = server("noise")
    traced = traced_at(tool, hostile)
    hostile.play()
    traced.wait_for(lambda traced: len(traced.waits) >= 300, what="the waits")
    ends_soon(traced)


def test_storm(tool, server, tmp_path):
    """Each wait has 32 MiB of catalog to be read, and there are thousands: signals are heard all the same."""
    base = tmp_path / "base" / "5"
    base.mkdir(parents=True)
    (base / "pg_filenode.map").write_bytes(struct.pack("<4I", 0x592717, 1, 1259, 777))
    with open(base / "777", "wb") as f:
        f.truncate(32 << 20)
    hostile = server("storm", cwd=tmp_path)
    traced = traced_at(tool, hostile)
    hostile.play()
    assert len(ends_soon(traced, 5).waits) == 3000


def test_crowd(tool, server):
    """In a container each PID is looked for among all processes."""
    hostile = server("crowd", wrap=("unshare", "--pid", "--fork", "--kill-child"))
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    traced.wait_for(lambda traced: traced.waits, what="the wait")
    ends_soon(traced)


IMAGES = """
"$0" locks --json -m 0 > "$1/out" 2> "$1/err" &
until grep -q "waiting for one" "$1/err"; do sleep 0.1; done
for n in $(seq $2); do
    { until grep -q "$1/$n/postgres" "$1/err"; do sleep 0.05; done; [ $n -lt 60 ] || sleep 0.6; } |
        "$1/$n/postgres" stay > "$1/null"
done
{
    until [ "$(grep -c "$1/1/postgres" "$1/err")" -ge 2 ]; do sleep 0.05; done
    echo
    until grep -q lock_wait "$1/out"; do sleep 0.05; done
} | "$1/1/postgres" catalog > "$1/null"
ls -l /proc/$!/fd | grep -c bpf_link > "$1/links"
kill -INT $! && wait $!
"""
FILES = 70


def test_images_that_come_and_go(built, tmp_path):
    """A file that no process runs is detached, and attached again when it runs."""
    for number in range(1, FILES + 1):
        (tmp_path / str(number)).mkdir()
        shutil.copy(built / "postgres", tmp_path / str(number) / "postgres")
    wrap = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespaces here")
    done = subprocess.run([*wrap, "sh", "-c", IMAGES, DBSLOWER, tmp_path, str(FILES)], timeout=600)
    err = (tmp_path / "err").read_text()
    assert done.returncode == 0 and err.count("dbslower: tracing") > FILES, err
    links = int((tmp_path / "links").read_text())
    assert links <= 66, "what is gone is still traced"
    (wait,) = [one for one in parsed((tmp_path / "out").read_text().splitlines()) if one["type"] == "lock_wait"]
    assert wait["relation_oid"] == 4711 and err.count(f"{tmp_path}/1/postgres") == 2, err


def enlarge(path, size):
    """Has the file tell that so many bytes of its variables are in it; they are zeros."""
    with open(path, "r+b") as f:
        head = f.read(64)
        (at,), (n,) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<H", head, 56)
        f.seek(at)
        for number in range(n):
            kind, flags, offset, vaddr, paddr, filesz, memsz, align = struct.unpack("<IIQQQQQQ", f.read(56))
            if kind == 1 and flags & 2:
                f.seek(at + 56 * number)
                f.write(struct.pack("<IIQQQQQQ", kind, flags, offset, vaddr, paddr, size, max(size, memsz), align))
                f.truncate(max(offset + size, os.stat(path).st_size))
                return
    raise AssertionError("no variables")


def test_a_lot_of_variables(tool, server, built, tmp_path):
    shutil.copy(built / "postgres", tmp_path / "postgres")
    enlarge(tmp_path / "postgres", 256 << 20)
    hostile = server("catalog", folder=tmp_path)
    traced = traced_at(tool, hostile)
    hostile.play_to(traced)
    traced.wait_of(hostile.pid)
    assert memory_of(traced.pid) < 64 << 20
    ends_soon(traced)


def test_file_that_becomes_a_device(tmp_path):
    """Between a look at what it is and its opening another one is put there: that one is never opened."""
    need_root()
    os.mkfifo(tmp_path / "device")
    shutil.copy("/bin/true", tmp_path / "file")
    path = tmp_path / "path"
    flip = ("import os, sys\nos.chdir(sys.argv[1])\nn = 0\nwhile os.getppid() == int(sys.argv[2]):\n"
            " n += 1\n os.symlink(('file', 'device')[n & 1], 'next')\n os.rename('next', 'path')\n")
    flipper = subprocess.Popen(["python3", "-c", flip, tmp_path, str(os.getpid())])
    try:
        while not path.is_symlink():
            time.sleep(0.01)
        with Opened(tmp_path / "device") as opened:
            found = []
            while len(found) < 400 or len({one.stderr for one in found}) == 1:	# until it has found now one, now the other
                found.append(subprocess.run([DBSLOWER, "list", path], capture_output=True, timeout=60))
                assert len(found) < 40000, found[0]
            assert not opened
    finally:
        flipper.kill()
        flipper.wait()
