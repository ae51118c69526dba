# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dbslower doctor, compared with readelf, /proc and the behaviour of the kernel."""

import contextlib
import os
import pathlib
import platform
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bpf_objects
from cluster import server_bindir
from containers import control_group
from elf_oracle import Oracle
from elffile import readelf, usdt_probes
from fallbacks import lacks
from mariadb import maria_server
from requirements import need_root
from seccomp import deny
from tables import features
from tool import DBSLOWER, parsed, run, run_other

NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}
# Functions that the tables name, and where PostgreSQL's arguments are by the x86-64 calling convention.
POSTGRES_FUNCTIONS = ("EndCommand", "AbortCurrentTransaction")
DISPATCH = "_Z16dispatch_command19enum_server_commandP3THDPcjb"	# MariaDB 10.11's
MARIADB_FUNCTIONS = (DISPATCH, "_ZN3THDD1Ev")
MARIADB_CALLS = ("_Z18log_slow_statementP3THD", "_Z20delete_explain_queryP3LEX")
ENDBR64 = bytes.fromhex("f30f1efa")


def doctor(*args, status=None, **keywords):
    """Its one object, after what holds always."""
    done = run("doctor", "--json", *args, **keywords)
    return checked(done, status)


def checked(done, status=None):
    said = f"exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr}"
    assert done.stderr == "" and done.stdout.count("\n") == 1, said
    (found,) = parsed([done.stdout])
    assert found["type"] == "doctor"
    assert done.returncode == (1 if found["obstacles"] else 0), said
    assert status is None or done.returncode == status, said
    return found


def postgres_file():
    if not server_bindir():
        pytest.skip("no PostgreSQL server under /usr/lib/postgresql (package postgresql-15)")
    return os.path.join(server_bindir(), "postgres")


def maria_file():
    if not maria_server():
        pytest.skip("no MariaDB server (package mariadb-server-core)")
    return maria_server()


def function_sites(path, names):
    """{name: address} as readelf has it, behind a landing pad."""
    oracle = Oracle(path)
    defined, _ = oracle.symbols(("-s", "--wide"))
    sites = {}
    with open(path, "rb") as f:
        for name in names:
            value = defined[name][0][0]
            f.seek(oracle.offset(value))
            sites[name] = value + (4 if f.read(4) == ENDBR64 else 0)
    return sites


def only_server(found):
    assert len(found["servers"]) == 1, found
    return found["servers"][0]


def addresses(server):
    return {site["probe"]: site["address"] for site in server["sites"]}


def args_of(site):
    return {arg["name"]: arg.get("spec") for arg in site["args"]}


# --- files

def test_postgres_file():
    path = postgres_file()
    server = only_server(doctor(path, status=0))
    assert server["engine"] == "postgresql" and server["title"] == "PostgreSQL" and server["path"] == path
    version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    assert server["version"] and version.strip().endswith(server["version"])
    functions = function_sites(path, POSTGRES_FUNCTIONS)
    assert {name: addresses(server)[name] for name in functions} == functions
    notes = [site for site in Oracle(path).sites() if site[:2] == ("postgresql", "statement__status")]
    probes = [site for site in server["sites"] if site["probe"] == "postgresql:statement__status"]
    assert server["usdt"] == bool(notes)
    assert [(site["address"], site.get("semaphore", 0)) for site in probes] == [(n[2], n[4]) for n in notes]
    for site, note in zip(probes, notes):
        assert args_of(site)["text"] == note[5].split()[0]
    if platform.machine() == "x86_64":
        end = next(site for site in server["sites"] if site["probe"] == "EndCommand")
        assert args_of(end)["rows"] == "8@8(%rdi)"


def test_mariadb_file():
    path = maria_file()
    server = only_server(doctor(path, status=0))
    assert server["engine"] == "mysql" and not server["usdt"]
    functions = function_sites(path, MARIADB_FUNCTIONS)
    assert {name: addresses(server)[name] for name in functions} == functions
    code = subprocess.run(["objdump", "-d", f"--disassemble={DISPATCH}", path], capture_output=True, text=True,
                          check=True).stdout
    calls = [(name, int(at, 16)) for at, name in re.findall(r"^ *(\w+):.*\bcall +\w+ <(\w+)@", code, re.M)
             if name in MARIADB_CALLS]
    assert sorted(calls) == sorted((name, site["address"]) for site in server["sites"] for name in MARIADB_CALLS
                                   if site["probe"] == f"call of {name} in {DISPATCH}") and len(calls) == 3
    logged = args_of(next(site for site in server["sites"] if "log_slow_statement" in site["probe"]))
    assert {"text", "length", "user", "database", "rows", "error"} <= set(logged)
    assert "inner" not in logged and "tag" not in logged, "what its program does not ask for"


def test_prepared_statements_of_another_build(tmp_path):
    """A server that leaves their ends to a place that is not found."""
    data, path = Path(maria_file()).read_bytes(), tmp_path / "mariadbd"
    name = MARIADB_CALLS[1].encode() + b"\0"
    assert data.count(name) == 1
    path.write_bytes(data.replace(name, name.upper()))
    assert "this server does not report prepared statements, statements of init_file\n" in run("doctor", path).stdout
    assert "does not report" not in run("doctor", maria_file()).stdout


@pytest.mark.parametrize("file", [postgres_file, maria_file])
def test_text_says_the_same(file):
    path = file()
    done = run("doctor", "-v", path)
    assert done.returncode == 0 and done.stderr == "", done
    words = re.sub(r",\s+", ", ", done.stdout)
    for site in only_server(doctor(path))["sites"]:
        assert f"{site['probe']} {site['address']:#x}" in words
        assert "semaphore" not in site or f"semaphore {site['semaphore']:#x}" in words
        for arg in site["args"]:
            assert f"{arg['name']} {arg.get('spec', 'is absent')}" in words
    assert done.stdout.endswith("No obstacles found.\n")


def test_file_as_nobody(public_tool):
    need_root()
    path = postgres_file()
    done = run_other([public_tool, "doctor", "--json", path], **NOBODY)
    assert checked(done, 0)["servers"] == doctor(path)["servers"]


def test_file_that_nobody_may_read(public_tool, tmp_path):
    need_root()
    path = tmp_path / "postgres"
    shutil.copy(postgres_file(), path)
    path.chmod(0o700)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        if str(parent) != "/tmp":
            parent.chmod(0o755)
    found = checked(run_other([public_tool, "doctor", "--json", path], **NOBODY), 1)
    assert "Permission denied" in found["obstacles"][0]["text"] and "may read" in found["obstacles"][0]["remedy"]


def test_renamed_server(tmp_path):
    path = tmp_path / "database"
    shutil.copy(postgres_file(), path)
    assert only_server(doctor(path, status=0))["engine"] == "postgresql"


def test_other_architecture(tmp_path):
    data = bytearray(open(postgres_file(), "rb").read())
    other = 183 if platform.machine() == "x86_64" else 62
    data[18:20] = struct.pack("<H", other)
    path = tmp_path / "postgres"
    path.write_bytes(data)
    found = doctor(path, status=1)
    assert not only_server(found)["traced"] and "another architecture" in found["obstacles"][0]["text"]


def make_file(tmp_path, kind):
    path = tmp_path / kind
    if kind == "script":
        path.write_text("#!/bin/sh\nexec postgres\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        path.write_bytes(open(postgres_file(), "rb").read(5000))
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    return path


@pytest.mark.parametrize("kind, words", [
    ("script", "not an ELF file"), ("empty", "not an ELF file"), ("truncated", "not a recognised database server"),
    ("folder", "directory"), ("fifo", "not a regular file"), ("absent", "No such file")])
def test_file_that_is_no_server(tmp_path, kind, words):
    path = make_file(tmp_path, kind)
    found = doctor(path, status=1)
    assert len(found["obstacles"]) == 1 and words in found["obstacles"][0]["text"], found
    assert found["obstacles"][0]["about"] == str(path) and found["servers"] == []


def test_program_with_other_probes(tmp_path):
    path = "/usr/bin/python3"
    names = {site[:2] for site in Oracle(path).sites()} if os.path.exists(path) else ()
    if not names:
        pytest.skip("no python3 with USDT probes")
    found = doctor(path, status=1)["obstacles"][0]
    assert f"it has {len(names)} USDT probe" in found["text"]
    assert f"dbslower list {path}" in found["remedy"] and "--start" in found["remedy"]


def test_damaged_files(tmp_path):
    """Any bytes: a JSON object, an exit status, no crash."""
    data = open(postgres_file(), "rb").read()
    path = tmp_path / "postgres"
    rng = random.Random(1)
    for _ in range(30):
        damaged = bytearray(data[:rng.choice((64, 4096, len(data)))])
        for _ in range(rng.choice((1, 20, 1000))):
            at = rng.randrange(min(len(damaged), rng.choice((64, 4096, len(damaged)))))
            damaged[at] = rng.randrange(256)
        path.write_bytes(damaged)
        doctor(path)


def test_foreign_name(tmp_path):
    path = tmp_path / "a\x1b[31m\nb"
    path.write_text("x")
    done = run("doctor", "-v", path)
    assert done.returncode == 1 and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout), repr(done.stdout)
    assert doctor(path)["obstacles"][0]["about"] == str(path)


FAKE = """
int pgstat_report_activity(int a, const char *b) { return a + !b; }
int EndCommand(const void *a) { return !a; }
int GetCommandTagName(int a) { return a; }
int AbortCurrentTransaction(void) { return 1; }
int main(void) { return 0; }
"""


def test_what_is_absent(tmp_path):
    """A server without a variable: doctor says so, and -v of the tracing commands says the same, once."""
    need_root()
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    path = tmp_path / "postgres"
    subprocess.run(["gcc", "-rdynamic", "-x", "c", "-o", path, "-"], input=FAKE, text=True, check=True)
    server = only_server(doctor(path, status=0))
    site = next(site for site in server["sites"] if site["probe"] == "EndCommand")
    why = {arg["name"]: arg["absent"] for arg in site["args"] if "absent" in arg}
    assert why["client"] == "the file does not export MyProcPort"
    assert why["server"] == "the file does not export PostmasterPid"
    said = run("-v", "-x", path, "-d", "0.2").stderr
    lines = [line for line in said.splitlines() if line.startswith("dbslower: cannot be read: ")]
    assert len(lines) == 1, said
    for name, reason in why.items():
        # User, database and client are read from process titles instead.
        assert lines[0].count(f" {name} ({reason})") == (name not in ("user", "database", "host")), said
    assert "cannot be read" not in run("-x", path, "-d", "0.2").stderr


@pytest.mark.parametrize("hidden, damaged, why", [
    (["thd_current_db"], [], r"the file does not export thd_current_db or _Z20thd_binlog_filter_okPK3THD"),
    ([], ["thd_current_db"], r"the code of thd_current_db is not understood"),
    # Two rows need the same symbol, which is named once.
    (["_ZN16Diagnostics_area13set_ok_statusEyyPKc"], [], r"the file does not export _ZN16Diagnostics_area13set_ok_statusEyyPKc"),
])
def test_alternatives(tmp_path, hidden, damaged, why):
    """An argument with rows for several products: what MariaDB has but is not understood is named, not what MySQL has."""
    if not maria_server():
        pytest.skip("no MariaDB server")
    oracle = Oracle(maria_server())
    with open(maria_server(), "rb") as f:
        content = bytearray(f.read())
    for name in hidden:
        at = content.index(b"\0" + name.encode() + b"\0")
        content[at + 1] ^= 1
    for name in damaged:
        ((value, size),) = oracle.symbols(["--dyn-syms"])[0][name]
        content[oracle.offset(value):oracle.offset(value) + size] = b"\xf4" * size
    path = tmp_path / "mariadbd"
    path.write_bytes(content)
    name = "affected" if "status" in why else "database"
    absent = {arg.get("absent") for site in only_server(doctor(path, status=0))["sites"] for arg in site["args"] if arg["name"] == name}
    assert absent == {why}, absent


# --- this host

def kernel_has(symbol):
    with open("/proc/kallsyms") as f:
        return re.search(rf" [tTdD] {symbol}\b", f.read()) is not None


def test_features():
    need_root()
    found = doctor()
    has = {feature["name"]: feature["has"] for feature in found["features"]}
    assert has == {
        "BPF ring buffer": kernel_has("ringbuf_map_alloc"),
        "uprobe PMU": os.path.exists("/sys/bus/event_source/devices/uprobe/type"),
        "uprobe_multi link": kernel_has("bpf_uprobe_multi_link_attach"),
        "allocation in tracing programs": kernel_has("user_ringbuf_map_push_elem")
        or kernel_has("bpf_user_ringbuf_drain"),
        "probe_read_user": kernel_has("bpf_probe_read_user"),
        "get_ns_current_pid_tgid": kernel_has("bpf_get_ns_current_pid_tgid"),
        "loops in programs": kernel_has("(__)?mark_chain_precision"),	# of the same series
        "semaphores counted by the kernel":
            os.path.exists("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset"),
        "types of the kernel (BTF)": os.path.exists("/sys/kernel/btf/vmlinux"),
        "task_pt_regs": kernel_has("bpf_task_pt_regs"),
    }
    assert "(null)" not in run("doctor", "-v").stdout
    assert found["way"] == ("uprobe_multi" if has["uprobe_multi link"] else "perf uprobe")


def test_host():
    need_root()
    host = doctor()["host"]
    assert (host["release"], host["machine"]) == (os.uname().release, os.uname().machine)
    status = open("/proc/self/status").read()
    effective = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
    bits = {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_SYS_ADMIN": 21, "CAP_SYS_PTRACE": 19, "CAP_SYS_RESOURCE": 24,
            "CAP_CHECKPOINT_RESTORE": 40, "CAP_DAC_READ_SEARCH": 2, "CAP_DAC_OVERRIDE": 1, "CAP_IPC_LOCK": 14}
    assert set(host["capabilities"]) == {name for name, bit in bits.items() if effective >> bit & 1}
    assert host["uid"] == os.geteuid() and host["seccomp"] == int(re.search(r"Seccomp:\s*(\d)", status)[1])
    for name, value in host["sysctls"].items():
        assert int(open("/proc/sys/" + name.replace(".", "/")).read()) == value
    try:
        lockdown = re.search(r"\[(\w+)\]", open("/sys/kernel/security/lockdown").read())[1]
    except OSError:
        lockdown = None
    if lockdown or os.path.ismount("/sys/kernel/security"):
        assert host.get("lockdown") == lockdown
    if "lockdown" not in host:
        assert "lockdown: unknown" in run("doctor", "-v").stdout


def test_fine_takes_one_line():
    need_root()
    host = run("doctor", "-v").stdout.split("Servers\n")[0].splitlines()[1:]
    for line, following in zip(host, host[1:] + ["  ok"]):
        assert not line.startswith("  ok") or re.match(r"  (ok|note|obstacle) ", following + " "), following


SUBJECTS = ["kernel", "features", "attach method", "rights", "limits", "sandbox"]


def test_takes_ten_lines():
    """One line for each question; -v has every line of the short form but that of the features, and more."""
    need_root()
    short = run("doctor").stdout.split("Servers\n")[0].splitlines()
    subjects = [re.match(r"  (?:ok|note) +([^:]+):", line)[1] for line in short[1:] if not line.startswith("   ")]
    # What is not fine has a line of its own.
    assert [one for one in subjects if one in SUBJECTS] == SUBJECTS and len(short) <= 11, short
    rest = run("doctor", "-v").stdout.splitlines()
    assert [line for line in short if line not in rest and " features: " not in line] == []
    names = [one["name"] for one in doctor()["features"]]
    assert all(any(f" {name}: " in line for line in rest) for name in names)


def test_missing_features_take_two_lines():
    """The names of those that are missing, and what prints the consequences."""
    need_root()
    if doctor()["way"] != "uprobe_multi":
        pytest.skip("no uprobe_multi here")
    out = run("doctor", preexec_fn=deny((bpf_objects.SYS_BPF, EPERM, BPF_LINK_CREATE))).stdout
    note = re.search(rf"^  note +features: (\d+) of {len(features())}; missing: (.*)\n +(.*)", out, re.M)
    assert note and "uprobe_multi link" in note[2] and "doctor -v" in note[3], out
    assert out.count("uprobe_multi link") == 1, out


def setpriv(dropped):
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (package util-linux)")
    return ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", DBSLOWER, "doctor", "--json"]


@pytest.mark.parametrize("dropped, about, words", [
    ("-sys_admin,-bpf,-perfmon", "rights", "CAP_BPF, CAP_PERFMON"),
    ("-sys_admin,-bpf", "rights", "CAP_BPF"), ("-sys_admin,-perfmon", "rights", "CAP_PERFMON"),
    ("-sys_ptrace", "CAP_SYS_PTRACE", "other users")])
def test_missing_capability(dropped, about, words):
    need_root()
    found = checked(run_other(setpriv(dropped)), 1)
    obstacle = {one["about"]: one for one in found["obstacles"]}[about]
    assert re.search(words + r"\b", obstacle["text"]) and obstacle["remedy"], obstacle
    if about == "rights":
        assert not any("has" in one and not one["has"] for one in found["features"]), "not known is not no"


def test_sys_admin_is_enough():
    need_root()
    assert not checked(run_other(setpriv("-bpf,-perfmon")))["obstacles"]


def test_as_nobody(public_tool):
    need_root()
    found = checked(run_other([public_tool, "doctor", "--json"], **NOBODY), 1)
    assert {"rights", "CAP_SYS_PTRACE"} <= {one["about"] for one in found["obstacles"]}
    assert all(one["remedy"] for one in found["obstacles"])
    assert found["host"]["uid"] == 65534 and found["host"]["capabilities"] == []


SYS_PERF = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
EPERM, EACCES, ENOSYS = 1, 13, 38
BPF_LINK_CREATE = 28


def no_bpf(error):
    if bpf_objects.SYS_BPF is None:
        pytest.skip(f"the number of bpf(2) on {platform.machine()} is not known here")
    return deny(bpf_objects.SYS_BPF, error)


@pytest.mark.parametrize("error, words", [(EPERM, "seccomp"), (ENOSYS, "no bpf(2), which a seccomp filter may hide")])
def test_no_bpf(error, words):
    need_root()
    found = doctor(status=1, preexec_fn=no_bpf(error))
    assert words in found["obstacles"][0]["text"] and found["host"]["seccomp"] == 2
    assert "seccomp=unconfined" in found["obstacles"][0]["remedy"] and "CONFIG" not in found["obstacles"][0]["remedy"]
    assert found["host"]["no_new_privs"]


def one_line(*args, **keywords):
    """The message of a tracing command, which must be one line."""
    done = run(*args, "-d", "0.1", **keywords)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done
    return done.stderr


def test_no_bpf_when_tracing():
    need_root()
    said = one_line("-x", postgres_file(), preexec_fn=no_bpf(ENOSYS))
    assert "refused by the kernel: no bpf(2); a seccomp filter may hide it" in said and "MEMLOCK" not in said, said


@pytest.mark.parametrize("error, words, remedy", [
    (EPERM, "perf_event_open(2) is refused: Operation not permitted", "seccomp=unconfined"),
    (ENOSYS, "perf_event_open(2) is refused: no such system call", "seccomp=unconfined"),
    (EACCES, "perf_event_open(2) is refused: Permission denied", "seccomp=unconfined")])
def test_no_perf_event_open(error, words, remedy):
    """An obstacle where probes are attached by it, as before Linux 6.6: links cannot be created here."""
    need_root()
    if SYS_PERF is None or not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
        pytest.skip("no uprobe PMU, or the number of perf_event_open(2) is not known")
    no_link = (bpf_objects.SYS_BPF, EPERM, BPF_LINK_CREATE)
    assert doctor(preexec_fn=deny(no_link))["way"] == "perf uprobe"
    found = doctor(status=1, preexec_fn=deny(no_link, (SYS_PERF, error)))
    obstacle = {one["about"]: one for one in found["obstacles"]}["attach method"]
    assert words in obstacle["text"] and remedy in obstacle["remedy"], obstacle
    said = one_line("-x", postgres_file(), preexec_fn=deny(no_link, (SYS_PERF, error)))
    first = "event buffer" if lacks([], (5, 8)) else "cannot attach"
    assert first in said and "seccomp" in said and "no bpf" not in said, said


def limited(which, number, *command):
    return [sys.executable, "-c", "import os, resource as r, sys; r.setrlimit(getattr(r, sys.argv[1]), 2 * (int(sys.argv[2]),)); "
            "os.execvp(sys.argv[3], sys.argv[3:])", which, str(number), *command]


@pytest.mark.parametrize("number", [4, 8, 20])
def test_few_descriptors(number):
    need_root()
    found = checked(run_other(limited("RLIMIT_NOFILE", number, DBSLOWER, "doctor", "--json")), 1)
    assert [one["about"] for one in found["obstacles"]] == ["RLIMIT_NOFILE"] and found["host"]["nofile"] == number
    assert f"{number} file descriptors" in found["obstacles"][0]["text"]
    assert "ulimit -n" in found["obstacles"][0]["remedy"]
    # Unknown is not absent.
    complete = {one["name"]: one["has"] for one in doctor()["features"]}
    assert all(one["has"] == complete[one["name"]] for one in found["features"] if "has" in one), found["features"]
    assert any("not searched" in one["text"] for one in found["notes"]) == (number < 16)
    done = run_other(limited("RLIMIT_NOFILE", number, DBSLOWER, "-d", "0.1"))
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "open files is too low: ulimit -n" in done.stderr, done


@pytest.fixture
def little_for_perf():
    """Users without CAP_IPC_LOCK may have almost no perf buffers beyond RLIMIT_MEMLOCK."""
    need_root()
    paths = [pathlib.Path("/proc/sys/kernel", name) for name in ("perf_event_mlock_kb", "perf_event_paranoid")]
    before = [path.read_text() for path in paths]
    for path, value in zip(paths, ("4", "2")):
        path.write_text(value)
    yield
    for path, value in zip(paths, before):
        path.write_text(value)


@pytest.mark.alone
def test_little_locked_memory(public_tool, little_for_perf):
    """Perf buffers are charged; they are a fallback, so it is no obstacle where there are ring buffers."""
    capabilities = "-all,+bpf,+perfmon,+sys_ptrace,+sys_admin"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}",
              f"--ambient-caps={capabilities}", f"--bounding-set={capabilities}", "--"]
    small = limited("RLIMIT_MEMLOCK", 0, *nobody, public_tool)
    done = run_other([*small, "-x", postgres_file(), "--force=perfbuf", "-d", "0.1"])
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "event buffer: cannot be mapped: Operation not permitted; RLIMIT_MEMLOCK is too small" in done.stderr, done
    found = checked(run_other([*small, "doctor", "--json"]), 0)
    assert found["host"]["memlock_bytes"] == 0
    if next(one["has"] for one in found["features"] if one["name"] == "BPF ring buffer"):
        steps = checked(run_other([*small, "doctor", "--self-test", "--json"]), 0)["self_test"]
        assert [(one["way"], one["instead"]) for one in steps if not one["ok"]] == [("perf buffers", "uprobe_multi")]


@contextlib.contextmanager
def small_group(mib):
    """A command that executes dbslower in a control group with so much memory."""
    need_root()
    for base, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = os.path.join(base, f"doctor-{os.getpid()}")
        try:
            os.mkdir(group)
            with open(os.path.join(group, limit), "r+", encoding="ascii") as f:
                f.write(str(mib << 20))
            break
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    else:
        pytest.skip("no memory control group can be made here")
    try:
        yield ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(group, "cgroup.procs"), DBSLOWER]
    finally:
        with control_group(group, base):	# removes it
            pass


def about_memory(found, kind):
    return {one["about"]: one for one in found[kind]}.get("memory limit")


def test_small_control_group():
    with small_group(4) as inside:
        found = checked(run_other([*inside, "doctor", "--json"]), 1)
        done = run_other([*inside, "-x", postgres_file(), "-d", "0.1"])
    obstacle = about_memory(found, "obstacles")
    assert re.match(r"[1-4] MiB are left .* statements and locks \(23\); .*record --why", obstacle["text"]), obstacle
    assert "memory.max" in obstacle["remedy"], obstacle
    assert found["host"]["memory_limit_bytes"] == 4 << 20 > found["host"]["memory_left_bytes"] > 1 << 20
    assert doctor()["host"].get("memory_limit_bytes", 0) < 1 << 60, "no limit is none of 8 EiB"
    assert done.returncode == 1 and "memory.max" in done.stderr and "MEMLOCK" not in done.stderr, done


def test_control_group_for_some():
    """What suffices for some commands is no obstacle: a note says for which it does not."""
    with small_group(40) as inside:
        found = checked(run_other([*inside, "doctor", "--json"]))
    note = about_memory(found, "notes")
    assert re.search(r"programs of record \(46\); record --why \(58\)$", note["text"]), note
    assert not about_memory(found, "obstacles")


@pytest.mark.alone
@pytest.mark.parametrize("server", ["postgres", "mariadb"])
@pytest.mark.parametrize("args, mib", [("slow", 24), ("stat", 24), ("locks", 24), ("slow --why --use --phases", 32), ("transactions", 32),
                                       ("record /dev/null", 48), ("record /dev/null --why --use", 60)])
def test_memory_suffices(args, mib, server):
    """With the memory that loading is said to take, the kernel ends nothing; with less, nothing is loaded."""
    path = postgres_file() if server == "postgres" else maria_server()
    if not path:
        pytest.skip(f"no {server}")
    for limit in (mib, mib - 2):
        with small_group(limit) as inside:
            done = run_other([*inside, *args.split(), "-x", path, "-d", "0.1"])
            if limit == mib:
                assert done.returncode == 0, done
            else:
                (left,) = re.findall(r"^dbslower: memory: (\d+) MiB are left to the control group", done.stderr)
                assert done.returncode == 1 and limit - 2 <= int(left) < limit, done
                forced = run_other([*inside, *args.split(), "-x", path, "-d", "0.1", "--force=little-memory"])
                assert "are left" not in forced.stderr, forced


def unshare(script, *options):
    command = ["unshare", "--mount", *options, "--propagation", "private", "sh", "-c", script, "sh", DBSLOWER]
    if subprocess.run([*command[:-5], "sh", "-c", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here")
    return run_other(command)


def test_hidepid():
    """A proc mount of its own: a remount would change everybody's."""
    need_root()
    mount = "mount -t proc -o hidepid=2 proc /proc && "
    found = checked(unshare(mount + 'exec "$1" doctor --json'), 0)
    assert found["host"]["hidepid"] in ("2", "invisible")
    drop = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
    found = checked(unshare(f'{mount} exec {drop} "$1" doctor --json'), 1)
    proc = {one["about"]: one for one in found["obstacles"]}["/proc"]
    assert "hidepid" in proc["text"] and "hidepid=0" in proc["remedy"]
    assert "hidepid" not in doctor()["host"] or "hidepid" in open("/proc/mounts").read()


def test_without_sys():
    need_root()
    found = checked(unshare('umount -l /sys && exec "$1" doctor --json'))
    assert not found["host"]["sys"] and any(one["about"] == "/sys" for one in found["notes"])


def test_without_proc():
    need_root()
    found = checked(unshare('mount -t tmpfs tmpfs /proc && exec "$1" doctor --json'), 1)
    assert not found["host"]["proc"] and any("mount -t proc" in one.get("remedy", "") for one in found["obstacles"])
    # What can be known is known: the capabilities, by system calls. Nothing else is an obstacle, nor claimed.
    host, whole = found["host"], doctor()["host"]
    same = ("uid", "capabilities", "seccomp", "no_new_privs")
    assert {key: host[key] for key in same} == {key: whole[key] for key in same} and "user_namespace" not in host
    assert [one["about"] for one in found["obstacles"]] == ["/proc"] and "root" not in str(found["obstacles"])
    assert not any("no supported" in one["text"] for one in found["notes"])
    assert any(one["text"] == "not searched: /proc is not mounted" for one in found["notes"]), found["notes"]
    listed = unshare('mount -t tmpfs tmpfs /proc && exec "$1" list')
    assert listed.stderr.startswith("dbslower: /proc: cannot be read") and listed.stderr.count("\n") == 1, listed


@pytest.mark.parametrize("options", [[], ["--mount-proc"]], ids=" ".join)
def test_user_and_pid_namespace(public_tool, options):
    need_root()
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", *options, public_tool]
    if run_other([*inside[:-1], "true"]).returncode:
        pytest.skip("no user namespaces here")
    found = checked(run_other([*inside, "doctor", "--json"]), 1)
    assert [one["about"] for one in found["obstacles"]] == ["rights"] and found["host"]["user_namespace"] == "other"
    assert "user namespace" in found["obstacles"][0]["text"] and "on the host" in found["obstacles"][0]["remedy"]
    assert any(one["about"] == "CAP_SYS_PTRACE" and "outside it" in one["text"] for one in found["notes"])
    for args in (["-d", "0.1"], ["doctor", "--self-test", "--json"]):
        done = run_other([*inside, *args])
        said = done.stderr or str(parsed([done.stdout])[0]["obstacles"])
        assert done.returncode == 1 and "user namespace" in said and "5.7" not in said, said


def test_pid_namespace():
    need_root()
    found = checked(unshare('mount -t proc proc /proc && exec "$1" doctor --json', "--pid", "--fork"), 0)
    assert found["host"]["pid_namespace"] == "other" and found["servers"] == []
    assert any(one["about"] == "PID namespace" and one["remedy"] for one in found["notes"])


# --- servers that run

def running(found, pid):
    return [server for server in found["servers"] if pid in server["pids"]]


def test_running_server(postgres):
    need_root()
    server, = running(doctor(), postgres.pid)
    assert server["path"] == postgres.postgres and server["traced"]
    assert server["sites"] == only_server(doctor(postgres.postgres))["sites"]
    text = run("doctor").stdout
    assert re.search(rf"ok +{re.escape(postgres.postgres)}: PostgreSQL .*pid .*\b{postgres.pid}\b.*uprobe", text), text


def test_deleted_and_renamed_server(clusters, server_copy):
    need_root()
    name = os.path.join(os.path.dirname(server_copy), "database")
    os.rename(server_copy, name)
    cluster = clusters(postgres=name, name="deleted")
    os.unlink(name)
    server, = running(doctor(), cluster.pid)
    assert server["engine"] == "postgresql" and server["path"].startswith(name) and server["traced"]


def test_nothing_is_attached(clusters, server_copy):
    """Its file has breakpoints in memory while it is traced, and none for the doctor."""
    need_root()
    from elffile import Memory
    cluster = clusters(postgres=server_copy, name="untouched")
    memory = Memory(cluster.pid, server_copy)
    assert running(doctor(), cluster.pid)
    assert not memory.breakpoints() and not memory.semaphores()


def test_servers_that_end_meanwhile(tmp_path):
    """Between the search and the report: no obstacle. Fakes of files of their own, each for 20 ms."""
    need_root()
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    code = FAKE.replace("{ return 0; }", "{ usleep(20000); return 0; }")
    subprocess.run(["gcc", "-w", "-rdynamic", "-x", "c", "-o", tmp_path / "postgres", "-"], input=code, text=True, check=True)
    for n in range(8):
        (tmp_path / str(n)).mkdir()
        shutil.copy(tmp_path / "postgres", tmp_path / str(n) / "postgres")
    loops = [subprocess.Popen(["sh", "-c", f"while :; do {tmp_path}/{n}/postgres; done"]) for n in range(8)]
    try:
        for _ in range(3):
            found = doctor()
            assert not [one for one in found["obstacles"] if str(tmp_path) in one["about"]], found["obstacles"]
            assert not [line for line in run("list").stderr.splitlines() if str(tmp_path) in line and "cannot open" in line]
    finally:
        for one in loops:
            one.kill()
            one.wait()


# --- the self-test

STEPS = ["loading and attaching", "semaphores", "argument reading", "waking up", "counting what is lost", "detaching"]


def test_own_probes():
    notes = readelf("-n", DBSLOWER)
    assert re.findall(r"Provider: (\S+)\s+Name: (\S+)", notes) == [("dbslower", "self__start"),
                                                                  ("dbslower", "self__done")]
    assert all(semaphore for _, _, semaphore in usdt_probes(DBSLOWER))
    arguments = re.findall(r"Arguments: (.*)", notes)
    assert len(arguments[0].split()) == 3, arguments
    sections = readelf("-S", DBSLOWER)
    start, size = (int(x, 16) for x in re.search(r" \.probes +PROGBITS +(\w+) \w+ (\w+)", sections).groups())
    assert all(start <= semaphore < start + size for _, _, semaphore in usdt_probes(DBSLOWER))


def test_self_test():
    need_root()
    begun = time.monotonic()
    found = doctor("--self-test", status=0)
    took = (time.monotonic() - begun) * 1000
    steps = found["self_test"]
    assert all(step["ok"] and 0 < step["duration_ms"] < took for step in steps), steps
    assert sum(step["duration_ms"] for step in steps) < took, (steps, took)
    assert all(step["duration_ms"] >= 8 for step in steps if step["step"] == "argument reading"), "8 statements of 1 ms"
    ways = ["uprobe_multi", "perf uprobe", "preallocated maps", "perf buffers"]
    assert [step["way"] for step in steps if step["step"] == "detaching"] == ways
    assert [step["step"] for step in steps if step["way"] == "uprobe_multi"] == STEPS
    burst, = [step["found"] for step in steps if step["step"] == "counting what is lost"]
    fired, came, damaged, lost = map(int, re.findall(r"\d+", burst))
    assert came + lost == fired and lost and came and not damaged


def test_self_test_text():
    need_root()
    done = run("doctor", "--self-test")
    assert done.returncode == 0 and done.stdout.endswith("No obstacles found.\n"), done
    assert len(re.findall(r"^  ok +\S.*, \d+\.\d{3} ms$", done.stdout, re.M)) == 4 * len(STEPS) - 3, done.stdout


def test_two_self_tests_at_once():
    """They are on one inode, and each sees its own hits alone."""
    need_root()
    both = [subprocess.Popen([DBSLOWER, "doctor", "--self-test"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        out, _ = one.communicate(timeout=60)
        assert one.returncode == 0, out


def test_another_sees_the_self_test(tool):
    """The same probes by the way that users have; the self-test does not mind."""
    with tool("-x", DBSLOWER, "--start", "dbslower:self__start", "--done", "dbslower:self__done", "-m", "0.5", "--json") as traced:
        doctor("--self-test", status=0)
        traced.wait_for(lambda t: len(t.statements) >= 32, what="the statements")
        assert traced.stop() == 0
    texts = [one["query"] for one in traced.statements]
    pid = traced.statements[0]["pid"]
    assert [t for t in texts if "statement" in t] == [f"self-test {pid}, statement {n}" for n in range(8)] * 4
    assert all(one["duration_ms"] >= 1 for one in traced.statements if "statement" in one["query"])


def test_self_test_as_nobody(public_tool):
    need_root()
    done = run_other([public_tool, "doctor", "--self-test"], **NOBODY)
    assert done.returncode == 1 and re.search(r"obstacle .*attaching: .*not permitted", done.stdout), done
    assert "CAP_BPF" in done.stdout
    assert not checked(run_other([public_tool, "doctor", "--json", "--self-test"], **NOBODY), 1)["self_test"][0]["ok"]


@pytest.mark.parametrize("error", [EPERM, ENOSYS])
def test_self_test_where_a_fallback_is_refused(error):
    """Tracing does not use it."""
    need_root()
    if SYS_PERF is None or doctor()["way"] != "uprobe_multi":
        pytest.skip("no uprobe_multi, or the number of perf_event_open(2) is not known")
    found = doctor("--self-test", status=0, preexec_fn=deny(SYS_PERF, error))
    bad = [step for step in found["self_test"] if not step["ok"]]
    assert [(step["way"], step["step"], step["instead"]) for step in bad] == [
        (way, "loading and attaching", "uprobe_multi") for way in ("perf uprobe", "perf buffers")]
    assert all("tracing on this host uses uprobe_multi" in one["remedy"] for one in found["notes"])


def test_self_test_fails_where_the_way_does():
    need_root()
    if SYS_PERF is None or not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
        pytest.skip("no uprobe PMU, or the number of perf_event_open(2) is not known")
    found = doctor("--self-test", status=1, preexec_fn=deny((bpf_objects.SYS_BPF, EPERM, BPF_LINK_CREATE), (SYS_PERF, EPERM)))
    bad = [step for step in found["self_test"] if not step["ok"]]
    assert [(step["way"], step["step"]) for step in bad] == [("perf uprobe", "loading and attaching")]
    assert "instead" not in bad[0] and "seccomp" in found["obstacles"][0]["remedy"]


def test_self_test_with_the_documented_rights(public_tool):
    """Section PRIVILEGES of the man page."""
    need_root()
    if doctor()["way"] != "uprobe_multi":
        pytest.skip("no uprobe_multi")
    capabilities = "-all,+bpf,+perfmon,+sys_ptrace"
    found = checked(run_other(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}",
                               f"--ambient-caps={capabilities}", f"--bounding-set={capabilities}", "--", public_tool, "doctor",
                               "--json", "--self-test"]), 0)
    assert {step["way"] for step in found["self_test"] if not step["ok"]} <= {"perf uprobe"}
    assert [step["step"] for step in found["self_test"] if step["way"] == "uprobe_multi"] == STEPS
    assert [step["way"] for step in found["self_test"]].count("perf buffers") == len(STEPS) - 1


def test_self_test_in_a_pid_namespace():
    need_root()
    found = checked(unshare('mount -t proc proc /proc && exec "$1" doctor --json --self-test', "--pid", "--fork"), 0)
    assert all(step["ok"] for step in found["self_test"])
    # and below the namespace whose /proc it has
    found = checked(unshare('exec "$1" doctor --json --self-test', "--pid", "--fork"), 0)
    assert all(step["ok"] for step in found["self_test"])


# --- the command line

@pytest.mark.parametrize("args", [["--nonsense"], ["-p", "1"], ["--self-test=1"], ["-x", "/a"], [""]])
def test_usage(args):
    done = run("doctor", *args)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("dbslower: "), done


def test_unknown_word():
    found = doctor("no-such-program", status=1)
    assert "'/'" in found["obstacles"][0]["remedy"]


def test_full_disk():
    with open("/dev/full", "wb") as full:
        done = run("doctor", "/bin/sh", stdout=full)
    assert done.returncode == 1 and "No space left" in done.stderr, done
