# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tool under Debian's kernels, old and new, x86-64 and aarch64, in an emulator.

make test boots the newest of x86-64 and aarch64 and the oldest of x86-64, make kernels all or what KERNELS names.
What a guest does is in tests/kernel/guest/init.c.
"""

import glob
import itertools
import os
import pathlib
import platform
import re

import pytest

import background
import kernels
import oracle
from cluster import SETTINGS, Cluster
from complaints import Off
from fetched import CannotBeHad
from fallbacks import LARGEST
from mariadb import SERVER
from requirements import need_maria, need_server
from statements import why_ns
from tap import parse_tap, plan_fault
from tool import parsed
from workload import FAILING, PARALLEL, PLAIN, SESSIONS, SETUP

INDEX = "create index on big (id)"
EXTENSION = "create extension dblink"
# Given last in postgresql.conf, so that no time zone of this machine's is looked for.
ZONES = {"timezone": "GMT", "log_timezone": "GMT"}
BINDIR = "/usr/lib/postgresql/15/bin"
TRANSACTIONS = 150
# An emulator may stop between pg_sleep()'s look at the server's clock and its wait, which is then shorter: by one sleep at most.
SLEEPS, SLEEP_NS = 20, 10e6
ASLEEP = f"select count(pg_sleep({SLEEP_NS / 1e9})) from generate_series(1, {SLEEPS}) /* asleep */"
AWAY = "select * from dblink('host=/tmp user=postgres dbname=postgres', 'select pg_sleep(0.1)::text') as t (a text) /* away */"
TOLERANCE_MS = 2.0	# a probe takes 30 times as long in an emulator


def booted(name, guest, folder, **keywords):
    """Return the console output of kernel @name; skip the test if there is none. guest() makes an Initramfs."""
    try:
        kernels.kernel(name)
        said, seconds = kernels.boot(name, guest().write(folder / "initramfs"), **keywords)
    except CannotBeHad as why:
        pytest.skip(f"{name}: {why}")
    return f"# {name}: {seconds:.1f} s\n{said}"


def check_tap(said):
    print(said)
    said = re.sub(r"^\[ *\d+\.\d+\] .*\n", "", said, flags=re.M)	# the kernel's own lines
    bad = [line for line in parse_tap(said) if not line[1]]
    assert not plan_fault(said, 1 if bad else 0), said[-6000:]
    assert not bad, said[-6000:]


def victim(folder, name, options=""):
    """The output of a guest that has no server. It may run slowly: it compares no durations."""
    return booted(name, lambda: kernels.victim_guest(name.split("-")[0]), pathlib.Path(folder), options=options)


@pytest.mark.parametrize("name", kernels.wanted())
def test_guest(name):
    """Each way to attach: all is seen, nothing lost uncounted, everything is given back."""
    check_tap(background.result(victim, name))


def lockdown_on():
    """All that are named; the newest x86-64 one where none is."""
    return kernels.wanted() if os.environ.get("KERNELS") else ["x86_64-newest"]


LOCKED_DOWN = "lockdown=confidentiality GUEST=lockdown"


@pytest.mark.parametrize("name", lockdown_on())
def test_lockdown(name):
    """Under lockdown=confidentiality it works, and what does not says why."""
    check_tap(background.result(victim, name, LOCKED_DOWN))


def loaded(name):
    """Yield the server, the fallbacks and the command of each run. The newest kernel needs no fallbacks."""
    forced = ("",) if name.endswith("-newest") and not os.environ.get("KERNELS") else ("", "--force=linux-5.4")
    return itertools.product(("postgres -x /postgres", "mysql -x /mariadbd"), forced, (*LARGEST, "locks"))


def programs_guest(name):
    """The tool, and the files of both servers."""
    guest = kernels.victim_guest("x86_64")
    guest.file("/postgres", f"{BINDIR}/postgres")
    guest.file("/mariadbd", SERVER)
    guest.steps("/programs", [
        [f"{line} {server} {force}", "/dbslower", *line.replace("recording", f"/tmp/{number}").split(), *server.split(), "-d", "0.1", *force.split()]
        for number, (server, force, line) in enumerate(loaded(name))])
    return guest


def programs(folder, name):
    """The output of a guest that loads the programs of commands."""
    return booted(name, lambda: programs_guest(name), pathlib.Path(folder), memory=768)


def programs_on():
    return [name for name in kernels.wanted() if name.startswith("x86_64-")]


@pytest.mark.parametrize("name", programs_on())
def test_programs(name):
    """Its verifier accepts the programs of both servers."""
    need_server()
    need_maria()
    if platform.machine() != "x86_64" or not os.path.exists(f"{BINDIR}/postgres"):
        pytest.skip("the servers are this machine's, those for x86-64")
    said = background.result(programs, name)
    check_tap(said)
    assert f"\n1..{len(list(loaded(name)))}\n" in said, said


def background_jobs(names):
    return [*((victim, name) for name in kernels.wanted() if f"test_guest[{name}]" in names),
            *((programs, name) for name in programs_on() if f"test_programs[{name}]" in names),
            *((victim, name, LOCKED_DOWN) for name in lockdown_on() if f"test_lockdown[{name}]" in names)]


def steps(bindir):
    """Yield the clients of the guest in order: an application's name and a command each."""
    psql = [f"{bindir}/psql", "-X", "-q", "-A", "-t"]
    for name, texts in (("psql", PLAIN + PARALLEL), ("psql-failing", FAILING), *(("psql-session", texts) for texts in SESSIONS)):
        for few in range(0, len(texts), 12):
            yield [name, *psql, *(word for text in texts[few:few + 12] for word in ("-c", text))]
    yield ["psql", *psql, "-c", ASLEEP, "-c", AWAY]
    for protocol in ("simple", "extended", "prepared"):
        yield [f"tight pgbench {protocol}", f"{bindir}/pgbench", "-n", "-M", protocol, "-t", str(TRANSACTIONS), "-f", "/read.sql"]


def server_guest(arch, bindir, *settings):
    """The tool, and what a server needs that is in @bindir."""
    guest = kernels.Initramfs()
    build = kernels.build_of(arch)
    guest.file("/init", os.path.join(build, "tests", "kernel", "guest", "init"))
    guest.file("/dbslower", os.path.join(build, "dbslower"))
    guest.device("/dev/ttyS1", 4, 65)
    guest.folder("/dev/shm", 0o1777)
    guest.text("/read.sql", "\\set id random(1, 60000)\nselect t from big where id = :id /* pgbench read */;\n")
    guest.text("/etc/passwd", f"postgres:x:{kernels.SERVER_UID}:{kernels.SERVER_UID}::/:/bin/false\n")
    settings = ["port=5432", "listen_addresses=", "unix_socket_directories=/tmp", "jit=off", "autovacuum=off", "shared_buffers=16MB",
                *settings]
    guest.steps("/server", [["server", f"{bindir}/postgres", "-D", "/data", *(f"-c{setting}" for setting in settings)]])
    guest.steps("/steps", steps(bindir))
    return guest


def riscv_guest():
    """A server for riscv64, which makes its cluster in the guest."""
    root = kernels.server("riscv64")
    share = glob.glob(f"{root}/usr/share/postgresql/*")[0]
    bindir = glob.glob(f"{root}/usr/lib/postgresql/*/bin")[0][len(root):]
    guest = server_guest("riscv64", bindir, "config_file=/postgresql.conf")
    for program in ("postgres", "initdb", "psql", "pgbench"):
        guest.foreign_program(root, f"{bindir}/{program}")
    for library in ("plpgsql", "dict_snowball", "dblink"):
        guest.foreign_program(root, f"{os.path.dirname(bindir)}/lib/{library}.so")
    guest.foreign_program(root, "/bin/sh")
    for folder in ("timezonesets", "tsearch_data", "extension"):
        guest.tree(f"{share[len(root):]}/{folder}", f"{share}/{folder}")
    guest.tree("/usr/lib/locale/C.utf8", f"{root}/usr/lib/locale/C.utf8")
    for path in glob.glob(f"{share}/*.*"):
        guest.file(path[len(root):], path)
    guest.folder("/data", 0o700, kernels.SERVER_UID)
    guest.text("/postgresql.conf", "".join(f"{key} = {value}\n" for key, value in {**SETTINGS, **ZONES}.items()))
    guest.steps("/before", [["initdb", f"{bindir}/initdb", "-D", "/data", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
                             "--locale=C.UTF-8"]])
    guest.steps("/prepare", [["setup", f"{bindir}/psql", "-X", "-q", "-c", "set log_min_duration_statement = -1", "-c", SETUP,
                               "-c", INDEX, "-c", EXTENSION]])
    return guest


def postgres_guest():
    """The server of this machine with a cluster that was made here."""
    guest = server_guest("x86_64", BINDIR)
    for program in ("postgres", "psql", "pgbench"):
        guest.program(os.path.join(BINDIR, program))
    for library in ("plpgsql", "dblink"):
        guest.program(f"/usr/lib/postgresql/15/lib/{library}.so")
    guest.tree("/usr/share/postgresql/15/timezonesets", "/usr/share/postgresql/15/timezonesets")
    guest.tree("/usr/lib/locale/C.utf8", "/usr/lib/locale/C.utf8")
    with Cluster(name="guest", **ZONES) as cluster:
        cluster.init().start()
        cluster.psql(SETUP, INDEX, EXTENSION)
        cluster.stop()
        guest.tree("/data", cluster.data, uid=kernels.SERVER_UID)
    return guest


def received(data):
    """The files that a guest sent: {path: bytes}."""
    files = {}
    while data:
        head, _, data = data.partition(b"\n")
        path, size = head.split()
        files[path.decode()], data = data[:int(size)], data[int(size):]
        assert len(files[path.decode()]) == int(size), f"{path} was cut"
    return files


def postgres_on():
    """All kernels for x86-64 and riscv64 that are named; the oldest for x86-64 where none is."""
    names = [name for name in kernels.wanted() if name.startswith(("x86_64-", "riscv64-"))]
    return names if os.environ.get("KERNELS") else names[:1]


def with_postgres(name, folder):
    """Return the console output and the files that the guest sent."""
    if name.startswith("riscv64-"):
        said = booted(name, riscv_guest, folder, memory=2048, data=folder / "data")
        return said, (folder / "data").read_bytes()
    need_server()
    if platform.machine() != "x86_64" or not os.path.exists(f"{BINDIR}/postgres"):
        pytest.skip("the guest's server is this machine's: PostgreSQL 15 for x86-64 (package postgresql-15)")
    said = booted(name, postgres_guest, folder, memory=1536, data=folder / "data")
    return said, (folder / "data").read_bytes()


@pytest.mark.calm
@pytest.mark.parametrize("name", postgres_on())
def test_postgres_agrees_with_its_log(name, tmp_path):
    """A real server: what the tool shows is what the server's log says."""
    said, data = with_postgres(name, tmp_path)
    check_tap(said)
    files = received(data)
    logged = oracle.expected(files["/server.log"])
    got = parsed(files["/tmp/tool.out"].splitlines())
    summary, got = got[-1], [one for one in got if one["type"] == "statement"]
    print(oracle.figures(logged, got), oracle.spread(logged, got), summary, sep="\n")
    assert len(logged) > 3 * TRANSACTIONS, f"only {len(logged)} statements"
    # An emulator loses its own CPU at any point, without the guest's knowledge: no single duration has a bound.
    complaints = [one for one in oracle.compare(logged, got) if not isinstance(one, Off)]
    complaints += oracle.out_of_order(logged, got) + oracle.mostly_short(logged, got, TOLERANCE_MS)
    assert not complaints, "\n".join(complaints[:40])
    for one in got:
        assert sum(why_ns(one).values()) == round(one["duration_ms"] * 1e6), one
        assert why_ns(one)["cpu"] > 0, one
        assert {"shared_blks_hit", "read_calls", "write_calls", "peak_growth_bytes", "sorts"} <= set(one["use"]), one
    assert all(max(one["use"][name] for one in got) > 0 for name in ("read_calls", "write_calls", "peak_growth_bytes"))
    looked_up = [one["use"] for one in got if "pgbench read" in one["query"]]
    assert len(looked_up) >= 3 * TRANSACTIONS
    assert all(use["shared_blks_hit"] + use["shared_blks_read"] >= 2 for use in looked_up), "an index and a table were read"
    asleep, = [why_ns(one)["sleep"] for one in got if one["query"] == ASLEEP]
    assert asleep > SLEEPS / 2 * SLEEP_NS, asleep
    away, = [why_ns(one) for one in got if one["query"] == AWAY]
    assert away["remote"] > 50e6 and away["extension"] == 0, away
    assert summary["type"] == "summary" and summary["printed"] == len(logged), summary
    assert not any(lost for key, lost in summary["lost"].items() if key != "text_truncated"), summary
