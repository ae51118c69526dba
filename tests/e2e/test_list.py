# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dbslower list, compared with readelf on the same files."""

import contextlib
import fnmatch
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from cluster import wait_for
from elf_oracle import Oracle
from requirements import need_root
from tool import DBSLOWER, parsed, refused, run

FILES = {
    "postgres": "/usr/lib/postgresql/*/bin/postgres",
    "libstdc++": "/usr/lib/*-linux-*/libstdc++.so.6",
    "libc": "/usr/lib/*-linux-*/libc.so.6",
    "ld.so": "/usr/lib/*-linux-*/ld-linux-*.so.*",
    "python3": "/usr/bin/python3",
    "libpython3": "/usr/lib/*-linux-*/libpython3.*.so.1.0",
    "php": "/usr/bin/php8*",
    "libruby": "/usr/lib/*-linux-*/libruby*.so.*",
    "libjvm": "/usr/lib/jvm/*/lib/server/libjvm.so",
}
# Debian builds these without probes.
PROBED = [name for name in FILES if name not in ("libc", "ld.so")]


def found(name):
    paths = sorted(glob.glob(FILES[name]))
    if not paths:
        pytest.skip(f"no {name} ({FILES[name]}) here")
    return paths[-1]


def with_probes(name):
    path = found(name)
    if not list(Oracle(path).sites()):
        pytest.skip(f"{path} has no USDT probes")
    return path


def oracle_probes(path):
    """{(provider, name): [(address, offset, semaphore, spec)]} in readelf's order."""
    probes = {}
    for provider, name, vaddr, offset, semaphore, args in Oracle(path).sites():
        probes.setdefault((provider, name), []).append((vaddr, offset, semaphore, args))
    return probes


def listed(*args, **keywords):
    done = run("list", *args, **keywords)
    assert done.returncode == 0 and done.stderr == "", f"exit {done.returncode}: {done.stderr}"
    return done.stdout


def listed_json(*args):
    return parsed(listed("--json", *args).splitlines())


# --- files, against readelf

@pytest.mark.parametrize("name", FILES)
def test_plain(name):
    path = found(name)
    expected = [f"{path} {provider}:{probe}" for provider, probe in oracle_probes(path)]
    if not expected:
        refused(run("list", path), re.escape(path), "no USDT probes")
        return
    assert listed(path).splitlines() == expected
    assert listed("-l", path).splitlines() == expected


@pytest.mark.parametrize("name", PROBED)
def test_json(name):
    path = with_probes(name)
    probes = listed_json(path)
    assert {(p["provider"], p["name"]): [(s["address"], s["offset"], s.get("semaphore", 0), s["spec"])
                                         for s in p["sites"]] for p in probes} == oracle_probes(path)
    for probe in probes:
        assert probe["type"] == "probe" and probe["path"] == path
        assert probe["semaphore"] == probe["sites"][0].get("semaphore", 0)
        for site in probe["sites"]:
            assert ("semaphore" in site) == ("semaphore_offset" in site)
            assert len(site["args"]) == count_args(site["spec"])
            for arg, spec in zip(site["args"], split_spec(site["spec"])):
                assert arg["size_bytes"] == abs(int(re.match(r"(-?\d+)f?@", spec)[1])), spec
                assert arg["type"] == ("signed" if spec.startswith("-") else "float" if "f@" in spec else "unsigned")
                assert ("place" in arg) != ("unavailable" in arg)


def split_spec(spec):
    """Arguments start with their size, and nothing else in a spec does."""
    return re.findall(r"(?:^|(?<= ))-?\d+f?@.*?(?=$| -?\d+f?@)", spec)


def count_args(spec):
    return len(split_spec(spec))


@pytest.mark.parametrize("name", PROBED)
def test_verbose(name):
    path = with_probes(name)
    expected = []
    for (provider, probe), sites in oracle_probes(path).items():
        semaphores = [sites[0][2]]
        for site in sites:
            if site[2] != semaphores[-1]:
                semaphores.append(site[2])
        expected += [f"{path} {provider}:{probe} [sema {', '.join(f'0x{s:x}' for s in semaphores)}]",
                     f"  {len(sites)} location(s)", f"  {count_args(sites[0][3])} argument(s)"]
    assert listed("-v", path).splitlines() == expected


@pytest.mark.parametrize("name", PROBED)
def test_very_verbose(name):
    path = with_probes(name)
    seen, probe, site = {}, None, None
    for line in listed("-vv", path).splitlines():
        if match := re.fullmatch(rf"{re.escape(path)} (\S+?):(\S+) \[sema 0x[0-9a-fx, ]+\]", line):
            probe = seen.setdefault((match[1], match[2]), [])
        elif match := re.fullmatch(rf"  location #(\d+) {re.escape(path)} 0x([0-9a-f]+)", line):
            assert int(match[1]) == len(probe) + 1
            site = [int(match[2], 16), 0, ""]
            probe.append(site)
        elif match := re.fullmatch(r"    argument #(\d+) [1248] (unsigned|signed  |float   ) bytes @ (.+)", line):
            site[1] += 1
            assert int(match[1]) == site[1]
        else:
            match = re.fullmatch(r"    spec (.+)", line)
            assert match, line
            site[2] = match[1]
    assert {key: [(at, spec) for at, _, spec in sites] for key, sites in seen.items()} == {
        key: [(at, spec) for at, _, _, spec in sites] for key, sites in oracle_probes(path).items()}
    assert all(count == count_args(spec) for sites in seen.values() for _, count, spec in sites)


def test_the_machine_has_something_to_list():
    assert any(list(Oracle(path).sites()) for name in ("postgres", "libstdc++", "python3")
               for path in glob.glob(FILES[name])), "none of these has probes: nothing was tested"


# --- a program with probes of all kinds

PROGRAM = r"""
#include <sys/sdt.h>
#include <unistd.h>
__extension__ unsigned short app_one_semaphore __attribute__((section(".probes")));
volatile long number = 42;
#define TWO DTRACE_PROBE2(app, twice, number, (short)number)
int main(int argc, char **argv)
{
	int on_stack = argc;
	DTRACE_PROBE(app, none);
	TWO;
	number += argc;
	TWO;
	DTRACE_PROBE12(app, many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, argc);
	DTRACE_PROBE1(app, text, argv[0]);
	DTRACE_PROBE1(other, twice, &on_stack);
	if (argc > 1)
		pause();
	return on_stack == 77;
}
"""


def compiled(folder, name, *flags):
    source, out = folder / "program.c", folder / name
    source.write_text(PROGRAM)
    if not os.path.exists("/usr/include/sys/sdt.h") and \
            not glob.glob("/usr/include/*-linux-*/sys/sdt.h"):
        pytest.skip("no sys/sdt.h (package systemtap-sdt-dev)")
    done = subprocess.run(["gcc", "-O1", "-o", str(out), str(source), *flags], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc {' '.join(flags)}: {done.stderr[-300:]}")
    return str(out)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    for parent in (folder, folder.parent, folder.parent.parent):
        if parent.stat().st_uid == os.geteuid() and str(parent) != "/tmp":
            parent.chmod(0o755)
    return compiled(folder, "program")


@pytest.fixture(scope="module")
def public_tool(program):
    """A copy beside the program, that other users can run."""
    path = os.path.join(os.path.dirname(program), "dbslower")
    shutil.copy(DBSLOWER, path)
    os.chmod(path, 0o755)
    return path


NAMES = ["app:none", "app:twice", "app:many", "app:text", "other:twice"]


@pytest.mark.parametrize("flags", [[], ["-no-pie"], ["-static"], ["-s"], ["-O0"], ["-fuse-ld=gold"]],
                         ids=" ".join)
def test_compiled(tmp_path, flags):
    path = compiled(tmp_path, "program", *flags)
    assert [name for name in listed(path).split() if name != path and ":" in name and
            name.split(":")[0] in ("app", "other")] == NAMES
    probes = {(p["provider"], p["name"]): p for p in listed_json(path)}
    assert {key: [(s["address"], s["offset"], s.get("semaphore", 0), s["spec"]) for s in p["sites"]]
            for key, p in probes.items()} == oracle_probes(path)
    assert len(probes["app", "twice"]["sites"]) == 2
    assert [len(s["args"]) for s in probes["app", "many"]["sites"]] == [12]
    assert [a["size_bytes"] for a in probes["app", "twice"]["sites"][0]["args"]][1] == 2
    assert probes["app", "none"]["sites"][0]["args"] == []


# --- filters

@pytest.mark.parametrize("filters, expected", [
    (["twice"], ["app:twice", "other:twice"]), (["app:t"], ["app:twice", "app:text"]),
    (["app:*"], NAMES[:4]), (["*:twice"], ["app:twice", "other:twice"]),
    (["t*"], ["app:twice", "app:text", "other:twice"]), (["*:t?xt"], ["app:text"]),
    (["[m-n]*"], ["app:none", "app:many"]), (["many", "none"], ["app:none", "app:many"]),
    (["other"], ["other:twice"]), (["--", "other:"], ["other:twice"])], ids=" ".join)
def test_filters(program, filters, expected):
    assert listed(program, *filters).splitlines() == [f"{program} {name}" for name in expected]
    assert [f"{p['provider']}:{p['name']}" for p in listed_json(program, *filters)] == expected


@pytest.mark.parametrize("word", ["nothing", "*nothing*", "app:tw?", "\x1b[31m", "TWICE"])
def test_filter_that_matches_nothing(program, word):
    done = run("list", program, word)
    refused(done, "none of 5 probes", "glob")
    assert "\x1b" not in done.stderr


# --- names

def machine_of(path):
    """Return the class, byte order and machine of an ELF file."""
    with open(path, "rb") as f:
        head = f.read(20)
    return head[4:6] + head[18:20]


@pytest.mark.parametrize("name", ["stdc++", "libstdc++", "libstdc++.so", "libstdc++.so.6"])
def test_short_names(name):
    found("libstdc++")
    cached = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    paths = re.findall(r"libstdc\+\+\.so\.6 \(libc6[^)]*\) => (\S+)", cached)
    # Others are for 32-bit programs and for the x32 ABI.
    paths = [path for path in paths if machine_of(path) == machine_of("/proc/self/exe")]
    if not paths:
        pytest.skip("ldconfig knows no libstdc++.so.6")
    expected = [f"{paths[0]} {provider}:{probe}" for provider, probe in oracle_probes(paths[0])]
    assert listed("-l", name).splitlines() == expected


@pytest.mark.parametrize("name", ["c", "m", "stdc++", "gcc_s", "z"])
def test_short_names_are_the_loaders(name):
    """ctypes asks the same question by other means."""
    import ctypes.util
    file = ctypes.util.find_library(name)
    if not file:
        pytest.skip(f"no lib{name} here")
    done = run("list", "-l", name)
    said = done.stdout.split(" ")[0] if done.stdout else done.stderr.split()[1].rstrip(":")
    assert os.path.basename(said) == file, f"{said}, not {file}"


def test_without_a_cache(tmp_path):
    """In a mount namespace without /etc/ld.so.cache, the standard folders."""
    need_root()
    found("libstdc++")
    script = 'mount --bind /dev/null /etc/ld.so.cache && exec "$0" list -l stdc++ throw'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, DBSLOWER], capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespaces: {done.stderr}")
    assert re.match(r"/\S+/libstdc\+\+\.so\.6\S* libstdcxx:throw\n", done.stdout), done


def test_program_in_path(program):
    env = {**os.environ, "PATH": os.path.dirname(program)}
    assert listed("-l", "program", env=env).splitlines() == [f"{program} {name}" for name in NAMES]
    assert listed("-l", "program", env={}, cwd=os.path.dirname(program)).startswith("./program app:none\n")


def test_script_in_path_is_no_program(tmp_path):
    (tmp_path / "starter").write_text("#!/bin/sh\n")
    (tmp_path / "starter").chmod(0o755)
    refused(run("list", "-l", "starter", env={"PATH": str(tmp_path)}), "starter", "path")


def test_unknown_library():
    refused(run("list", "-l", "nosuchlibrary"), "nosuchlibrary", "libc.so.6")


def test_called_tplist(tmp_path, program):
    link = tmp_path / "tplist"
    link.symlink_to(DBSLOWER)
    done = subprocess.run([link, "-l", program, "app:m*"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{program} app:many\n", "")
    done = subprocess.run([link, "--help"], capture_output=True, text=True, timeout=60)
    assert done.stdout == run("list", "--help").stdout


def as_bcc(path, verbose, filters):
    """Its lines, from readelf's notes: bcc's print_usdt_details() and USDTProbe.__str__()."""
    lines = []
    for (provider, probe), sites in oracle_probes(path).items():
        if not any(fnmatch.fnmatchcase(f"{provider}:{probe}", one) for one in filters):
            continue
        lines.append(f"{provider}:{probe} [sema 0x{sites[0][2]:x}]" if verbose else f"{path} {provider}:{probe}")
        if verbose == 1:
            lines += [f"  {len(sites)} location(s)", f"  {count_args(sites[0][3])} argument(s)"]
        for number, (address, _, _, spec) in enumerate(sites if verbose == 2 else [], 1):
            lines.append(f"  location #{number} {path} 0x{address:x}")
            lines += [f"    argument #{n} {abs(size)} {'signed  ' if size < 0 else 'unsigned'} bytes @ "
                      for n, size in enumerate((int(one.split("@")[0]) for one in split_spec(spec)), 1)]
    return lines


@pytest.mark.parametrize("options", [[], ["-v"], ["-vv"]], ids=" ".join)
@pytest.mark.parametrize("filter_", ["app:twice", "*:t*", "app:*", "app:tw", "[!a]*:*", "*"])
def test_tplist_is_bccs(tmp_path, program, options, filter_):
    link = tmp_path / "tplist"
    link.symlink_to(DBSLOWER)
    done = subprocess.run([link, "-l", program, *options, filter_], capture_output=True, text=True, timeout=60)
    expected = as_bcc(program, sum(option.count("v") for option in options), [filter_])
    got = [re.sub(r"( bytes @ ).*", r"\1", line) for line in done.stdout.splitlines()]
    assert got == expected and done.returncode == (0 if expected else 1), done
    assert bool(done.stderr) == (not expected) and done.stderr.count("\n") <= 1
    bcc = shutil.which("tplist-bpfcc")
    if bcc and expected:
        theirs = subprocess.run([bcc, "-l", program, *options, filter_], capture_output=True, text=True, timeout=60).stdout
        assert [line for line in done.stdout.splitlines() if "&" not in line] == \
            [line for line in theirs.splitlines() if "&" not in line and "unrecognized" not in line]


SERVER = """
#include <unistd.h>
int pgstat_report_activity(int a, const char *b) { return a + !b; }
int EndCommand(const void *a) { return !a; }
int GetCommandTagName(int a) { return a; }
int AbortCurrentTransaction(void) { return 1; }
int main(void) { pause(); return 0; }
"""


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return f.read()


def test_server_without_probes(tmp_path):
    """It is traced by its symbols; its libraries may have probes."""
    path = tmp_path / "postgres"
    done = subprocess.run(["gcc", "-rdynamic", "-x", "c", "-o", path, "-"], input=SERVER, text=True, capture_output=True)
    if done.returncode:
        pytest.skip(done.stderr[-300:])
    file = run("list", path)
    assert file.returncode == 1 and f"{path}: no USDT probes; it is traced by its symbols" in file.stderr, file
    with subprocess.Popen([path]) as server:
        wait_for(lambda: "libc.so" in maps_of(server.pid), what="the program and its library")
        process, library = run("list", "-p", server.pid), run("list", "-p", server.pid, "-l", "c")
        server.kill()
    assert process.stderr == f"dbslower: process {server.pid}: its program has no USDT probes; it is traced by its symbols, " \
        "which dbslower doctor -v prints\n", process
    assert "its program" not in library.stderr


def test_several_files(program):
    other = with_probes("libstdc++")
    out = listed(program, other)
    assert out == listed(program) + listed(other)
    done = run("list", program, "/bin/true", other)
    assert done.returncode == 1 and done.stdout == out and "/bin/true: no USDT probes" in done.stderr


@pytest.mark.parametrize("args", [["-m", "1"], ["-l"], ["-l", ""], ["-p", "0"], ["-x", "/a"], ["postgres", ""],
                                  ["--json=1"], ["-Z"]], ids=" ".join)
def test_usage(args):
    refused(run("list", *args), status=2)


# --- processes

def sleeps(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


@contextlib.contextmanager
def running(path, *args, **keywords):
    process = subprocess.Popen([path, *(args or ("stay",))], **keywords)
    try:
        wait_for(lambda: "libc" in open(f"/proc/{process.pid}/maps").read() and sleeps(process.pid), what="it to have started")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def mapped_probes(pid):
    """Return the probes of the files that the process maps executable, by readelf, in their order."""
    paths = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            field = line.rstrip("\n").split(maxsplit=5)
            if len(field) == 6 and field[5].startswith("/") and "x" in field[1] and field[5] not in paths:
                paths.append(field[5])
    return [f"{path} {provider}:{probe}" for path in paths for provider, probe in oracle_probes(path)]


def test_process(program):
    with running(program) as pid:
        expected = mapped_probes(pid)
        assert f"{program} app:none" in expected
        assert listed("-p", pid).splitlines() == expected


def test_process_with_libraries():
    found("libstdc++")
    code = "import ctypes, time; ctypes.CDLL('libstdc++.so.6'); print('up', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"up\n"
            expected = mapped_probes(process.pid)
            assert any("libstdcxx:throw" in line for line in expected)
            assert listed("-p", process.pid).splitlines() == expected
            only = [line for line in expected if "libstdc++" in line]
            assert listed("-p", process.pid, "-l", "stdc++").splitlines() == only
            assert listed("-p", process.pid, "-l", only[0].split()[0]).splitlines() == only
            refused(run("list", "-p", process.pid, "-l", "nosuch"), str(process.pid), "maps none")
        finally:
            process.kill()


def test_two_processes_show_a_file_once(program):
    with running(program) as one, running(program) as two:
        assert listed("-p", f"{one},{two}") == listed("-p", one)


@pytest.fixture
def moving(tmp_path, program):
    """A copy that a test may remove."""
    path = tmp_path / "moving program"
    shutil.copy(program, path)
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    return str(path)


def test_deleted_program(moving):
    need_root()
    with running(moving) as pid:
        os.remove(moving)
        assert [line for line in listed("-p", pid).splitlines() if line.startswith(moving)] == [
            f"{moving} {name}" for name in NAMES]


def test_other_mount_namespace(moving, tmp_path):
    """A file that no path of ours leads to."""
    need_root()
    inside = "/mnt/inside"
    script = f'mount -t tmpfs none /mnt && cp "$0" {inside} && exec {inside} stay'
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("no mount namespaces")
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", script, moving])
    try:
        wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe") == inside and sleeps(process.pid), what="it to have started")
        assert not os.path.exists(inside)
        assert listed("-p", process.pid, "app:", "other:").splitlines() == [f"{inside} {name}" for name in NAMES]
    finally:
        process.kill()
        process.wait()


def test_kernel_thread():
    if not os.path.exists("/proc/2") or open("/proc/2/comm").read() != "kthreadd\n":
        pytest.skip("no kernel threads to be seen here")
    need_root()
    refused(run("list", "-p", 2), r"\b2\b", "kernel thread")


def test_process_that_is_not_there():
    pid = next(n for n in range(4194303, 1, -1) if not os.path.exists(f"/proc/{n}"))
    refused(run("list", "-p", pid), str(pid))


def test_servers(postgres):
    need_root()
    path = postgres.postgres
    expected = [f"{path} {provider}:{probe}" for provider, probe in oracle_probes(path)]
    if not expected:
        pytest.skip("this PostgreSQL has no USDT probes")
    done = run("list")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith(path + " ")] == expected
    assert f"{path} postgresql:query__start" in run("list", "query__s").stdout.splitlines()


def test_server_of_an_unknown_name(clusters, server_copy):
    """Found by what it exports, as those that are traced are."""
    need_root()
    renamed = os.path.join(os.path.dirname(server_copy), "appdb")
    shutil.move(server_copy, renamed)
    expected = [f"{renamed} {provider}:{probe}" for provider, probe in oracle_probes(renamed)]
    if not expected:
        pytest.skip("this PostgreSQL has no USDT probes")
    clusters(name="renamed", postgres=renamed)
    done = run("list")
    assert [line for line in done.stdout.splitlines() if line.startswith(renamed + " ")] == expected, done.stderr


# --- without privileges

def as_nobody(*command):
    need_root()
    return subprocess.run(command, user="nobody", group="nogroup", extra_groups=[], capture_output=True, text=True,
                          timeout=60, cwd="/")


def test_unprivileged_file(public_tool, program):
    done = as_nobody(public_tool, "list", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, listed(program), "")
    path = with_probes("libstdc++")
    assert as_nobody(public_tool, "list", "-vv", path).stdout == listed("-vv", path)


def test_unprivileged_process(public_tool, program):
    need_root()
    with running(program, user="nobody", group="nogroup", extra_groups=[], cwd="/") as pid:
        done = as_nobody(public_tool, "list", "-p", str(pid))
        assert (done.returncode, done.stdout, done.stderr) == (0, listed("-p", pid), "")


def test_unprivileged_deleted_program(public_tool, moving):
    need_root()
    with running(moving, user="nobody", group="nogroup", extra_groups=[], cwd="/") as pid:
        os.remove(moving)
        done = as_nobody(public_tool, "list", "-p", str(pid), "app:")
        assert done.stdout.splitlines() == [f"{moving} {name}" for name in NAMES[:4]], done


def proc_hides():
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == "/proc" and "hidepid=" in line for line in mounts)


def test_unprivileged_others_process(public_tool, program):
    need_root()
    with running(program) as pid:
        cause = "hidden.*hidepid" if proc_hides() else "permission denied"
        refused(as_nobody(public_tool, "list", "-p", str(pid)), str(pid), cause, "CAP_SYS_PTRACE")


def test_unreadable_file(public_tool, tmp_path):
    need_root()
    path = os.path.join(os.path.dirname(public_tool), "secret")
    shutil.copy("/bin/true", path)
    os.chmod(path, 0o600)
    refused(as_nobody(public_tool, "list", path), re.escape(path), "permission denied")


# --- files that are broken or foreign

ARGS = {
    # machine, 64 bits, big-endian: (spec, what is shown)
    "x86-64": (62, True, False, "8@%rdi -4@-20(%rbp)", ["8 unsigned bytes @ di", "4 signed   bytes @ *(bp - 20)"]),
    "i386": (3, False, False, "4@%eax -1@8(%esp)", ["4 unsigned bytes @ ax", "1 signed   bytes @ *(sp + 8)"]),
    "aarch64": (183, True, False, "8@x0 -4@[sp, 12]", ["8 unsigned bytes @ x0", "4 signed   bytes @ *(sp + 12)"]),
    "s390x": (22, True, True, "8@%r2 -4@160(%r15)", ["8 unsigned bytes @ ", "4 signed   bytes @ *("]),
    "ppc64": (21, True, True, "8@3 -4@112(1) 4@9,10", ["8 unsigned bytes @ ", "4 signed   bytes @ *(",
                                                       "4 unsigned bytes @ *(r9 + 0 + r10)"]),
    "loongarch64": (258, True, False, "8@$r4 -4@$r22,-20", ["8 unsigned bytes @ $r4", "4 signed   bytes @ *($r22 - 20)"]),
    "x31": (183, True, False, "8@x31 8@[x31, 8]", ["8 unsigned bytes @ x31 (the stack pointer or the zero register)",
                                                   "8 unsigned bytes @ *(sp + 8)"]),
    "thread-local": (62, True, False, "-4@%fs:x@tpoff", ["4 signed   bytes @ %fs:x@tpoff (a thread-local variable)"]),
    "mips": (8, False, True, "4@$4", ["4 unsigned bytes @ "]),
    "unknown": (0x4242, True, False, "8@anything", ["8 unsigned bytes @ ?"]),
}


def make_elf(notes, machine=62, is64=True, big=False, segments=1):
    """A file with these notes' descriptions, and one segment that has 0x1000 to 0x2000."""
    order = ">" if big else "<"
    word = "Q" if is64 else "I"
    owner = b"stapsdt\0"
    body = b"".join(struct.pack(order + "III", 8, len(desc), 3) + owner + desc + b"\0" * (-len(desc) % 4)
                    for desc in notes)
    names = b"\0.note.stapsdt\0.shstrtab\0"
    header_size, segment_size, section_size = (64, 56, 64) if is64 else (52, 32, 40)
    loads = b""
    for n in range(segments):
        at = 0x1000 if n == 0 else 0x10000000 + n * 16
        loads += struct.pack(order + "IIQQQQQQ", 1, 5, 0, at, at, 4096, 4096, 1) if is64 else \
            struct.pack(order + "IIIIIIII", 1, 0, at, at, 4096, 4096, 5, 1)
    note_at = header_size + len(loads)
    names_at = note_at + len(body)
    sections_at = names_at + len(names)

    def section(name, kind, offset, size):
        return struct.pack(order + "II" + 4 * word + "II" + 2 * word, name, kind, 0, 0, offset, size, 0, 0, 1, 0)
    header = b"\x7fELF" + bytes([1 + is64, 1 + big, 1]) + bytes(9) + struct.pack(
        order + "HHI" + 3 * word + "IHHHHHH", 3, machine, 1, 0, header_size, sections_at, 0, header_size,
        segment_size, segments, section_size, 3, 2)
    return (header + loads + body + names + section(0, 0, 0, 0) + section(1, 7, note_at, len(body)) +
            section(15, 3, names_at, len(names))).ljust(8192, b"\0")


def desc(provider, name, args, address=0x1010, semaphore=0, is64=True, big=False):
    numbers = struct.pack((">" if big else "<") + ("QQQ" if is64 else "III"), address, 0, semaphore)
    return numbers + provider + b"\0" + name + b"\0" + args + b"\0"


@pytest.mark.parametrize("kind", ARGS)
def test_every_architecture(tmp_path, kind):
    machine, is64, big, spec, shown = ARGS[kind]
    path = tmp_path / kind
    path.write_bytes(make_elf([desc(b"p", b"n", spec.encode(), 0x1010, 0x1020, is64, big)], machine, is64, big))
    lines = listed("-vv", path).splitlines()
    assert lines[:2] == [f"{path} p:n [sema 0x1020]", f"  location #1 {path} 0x1010"]
    assert lines[-1] == f"    spec {spec}"
    assert len(lines) == 3 + len(shown)
    for number, (line, want) in enumerate(zip(lines[2:], shown), 1):
        assert line.startswith(f"    argument #{number} {want}"), line
    assert listed_json(path)[0]["sites"][0]["offset"] == 16
    if kind != "unknown":
        assert list(oracle_probes(str(path))) == [("p", "n")]


def test_several_sites_and_semaphores(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(make_elf([desc(b"b", b"x", b"", 0x1001, 0x1100), desc(b"a", b"y", b"8@%rax", 0x1002),
                               desc(b"b", b"x", b"", 0x1003, 0x1102), desc(b"b", b"x", b"", 0x1004, 0x1102)]))
    assert listed("-v", path).splitlines() == [
        f"{path} b:x [sema 0x1100, 0x1102]", "  3 location(s)", "  0 argument(s)",
        f"{path} a:y [sema 0x0]", "  1 location(s)", "  1 argument(s)"]
    assert [[s["semaphore"] for s in p["sites"] if "semaphore" in s] for p in listed_json(path)] == [
        [0x1100, 0x1102, 0x1102], []]


def test_foreign_bytes(tmp_path):
    path = tmp_path / "evil\x1b[2J\n"
    path.write_bytes(make_elf([desc(b"p\x1b[31m", b"n\xff\n\"\\", b"8@\x1b\x07%rax \xe2\x80\xae 8@%rax")]))
    for args in (["-vv"], ["-v"], []):
        out = listed(*args, path)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", out), repr(out)
        assert out.splitlines()[0].startswith(str(tmp_path) + r"/evil\x1b[2J  p\x1b[31m:n\xff ")
    probe = listed_json(path)[0]
    assert probe["provider"] == "p\x1b[31m" and probe["path"] == str(path) and probe["name"] == "n\ufffd\n\"\\"


def test_damaged_notes_are_told(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(make_elf([desc(b"p", b"n", b""), b"short", desc(b"p", b"gone", b"", 0x999999)]))
    done = run("list", path)
    assert done.returncode == 1 and done.stdout == f"{path} p:n\n"
    assert "2 of its USDT notes" in done.stderr


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF" + b"\xff" * 100])
def test_no_elf_file(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    refused(run("list", path), re.escape(str(path)), r"not an ELF file")


def test_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    refused(run("list", tmp_path / "fifo"), "fifo", "regular")
    refused(run("list", str(tmp_path) + "/"), "directory")
    refused(run("list", "/dev/null"), "regular")
    refused(run("list", tmp_path / "absent"), "absent", "no such file")


def test_cut_files(program, tmp_path):
    """Each is answered by something or a sentence, never by a crash."""
    with open(program, "rb") as f:
        whole = f.read()
    path = tmp_path / "cut"
    for size in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:size])
        done = run("list", "-vv", path)
        assert done.returncode in (0, 1), f"{size} bytes: {done}"
        assert done.stdout or done.stderr.startswith("dbslower: "), f"{size} bytes"


def test_separate_debug_file(program, tmp_path):
    """It has the notes, and segments for code that it does not have."""
    path = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, path], check=True)
    assert "stapsdt" in subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    refused(run("list", path), "a separate debug file, without code; specify the program")


def test_many_files(program, tmp_path):
    """As many as a shell gives for /usr/bin/*."""
    paths = [tmp_path / f"program{i}" for i in range(1000)]
    for path in paths:
        os.link(program, path) if os.stat(program).st_dev == os.stat(tmp_path).st_dev else os.symlink(program, path)
    one, all_ = run("list", program), run("list", *paths)
    assert one.returncode == all_.returncode == 0
    assert all_.stdout.splitlines() == [line.replace(str(program), str(path)) for path in paths for line in one.stdout.splitlines()]


def test_flipped_bytes(program, tmp_path):
    import random
    pick = random.Random(7)
    with open(program, "rb") as f:
        whole = f.read()
    places = [*range(64), *range(64, 64 + 13 * 56), *range(len(whole) - 40 * 64, len(whole))]
    notes = Oracle(program).sections[".note.stapsdt"]
    places += range(notes[1], notes[1] + notes[2])
    path = tmp_path / "flipped"
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(pick.randrange(1, 12)):
            data[pick.choice(places)] = pick.choice([0, 1, 0x7f, 0x80, 0xff, pick.randrange(256)])
        path.write_bytes(data)
        done = run("list", "--json", path)
        assert done.returncode in (0, 1), f"{done}"
        parsed(done.stdout.splitlines())


def cpu_seconds():
    """Return the CPU time of the programs that have ended, which does not depend on the machine's load."""
    spent = os.times()
    return spent.children_user + spent.children_system


def test_addresses_that_no_segment_has(tmp_path):
    """As many look-ups as possible through as many segments as possible."""
    path = tmp_path / "file"
    path.write_bytes(make_elf([desc(b"p", b"n", b"", 0x999999, 0x999999, is64=False)] * 150000, 3, is64=False,
                              segments=2000))
    before = cpu_seconds()
    refused(run("list", path), "150000 of its USDT notes")
    assert cpu_seconds() - before < 10


@pytest.mark.parametrize("kind", ["names", "one name", "segments", "arguments"])
def test_hostile_sizes_take_no_time(tmp_path, kind):
    path = tmp_path / "file"
    if kind == "arguments":
        path.write_bytes(make_elf([desc(b"p", b"n", b"8@((%rax " * 700000)]))
    else:
        notes = [desc(b"p", b"n" if kind == "one name" else b"%d" % n, b"8@%rax", 0x1000 + n % 4096, 0x1000)
                 for n in range(100000)]
        path.write_bytes(make_elf(notes, segments=1000 if kind == "segments" else 1))
    before = cpu_seconds()
    out = listed(path)
    assert cpu_seconds() - before < 10
    assert len(out.splitlines()) == (1 if kind in ("one name", "arguments") else 100000)


# --- output

def test_closed_pipe(program):
    done = subprocess.run(f"'{DBSLOWER}' list -vv '{program}' | head -n 1", shell=True, capture_output=True, text=True)
    assert done.stdout == f"{program} app:none [sema 0x0]\n" and done.stderr == ""


def test_full_disk(program):
    with open("/dev/full", "wb") as full:
        done = run("list", program, stdout=full)
    assert done.returncode == 1 and "No space left" in done.stderr, done
