# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Errors: one message and the documented exit status. The help, the man page and the completion agree."""

import errno
import os
import platform
import re
import shutil
import struct
import subprocess

import pytest

import bpf_objects
from cluster import server_bindir, wait_for
from requirements import need_root
from seccomp import deny
from tool import COMPLETION, DBSLOWER, ROOT, refused, run, run_other

MAN = os.path.join(ROOT, "cli", "dbslower.8")


USAGE = [
    ["--nonsense"], ["-Z"], ["oracle"], ["postgres", "fast"], ["postgres", "-1"], ["-m"], ["-m", ""], ["-m", "1x"],
    ["-m", "1e3"], ["-m", "nan"], ["-m", "99999999999999999999"], ["postgres", "30", "-m", "30"], ["-p"], ["-p", "0"],
    ["-p", "x"], ["-p", "-5"], ["-p", "1,,2"], ["-p", "4194305"], ["-d", "0"], ["-d", "x"], ["-n", "0"], ["-n", "-1"],
    ["-n", "1.5"], ["-o", ""], ["-o", "nothing"], ["-o", "pid,,ms"], ["-o", "pid", "--json"], ["--text", "0"],
    ["--text", "x"], ["--text", "2000000"], ["--json=yes"], ["-x", ""], ["postgres", "mysql"], ["postgres", "1", "2"],
    ["-p", "188", "322"], ["5", "ms"], ["tpo"], ["help", "tpo"],
]


@pytest.mark.parametrize("args", USAGE, ids=lambda args: " ".join(args))
def test_usage(args):
    refused(run(*args), status=2)


def test_usage_never_shows_control_characters():
    done = run("--x\x1b[31m\n")
    assert done.returncode == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr), repr(done.stderr)


# --- files and processes

@pytest.mark.parametrize("name, words", [
    ("absent", [r"no such file"]), ("text", [r"\bELF\b"]), ("empty", [r"\bELF\b"]), ("truncated", []),
    ("folder", []), ("other", [])])
def test_file_that_is_no_server(tmp_path, name, words):
    need_root()
    path = tmp_path / name
    if name == "text":
        path.write_text("#!/bin/sh\n" * 100)
    elif name == "empty":
        path.write_bytes(b"")
    elif name == "truncated":
        with open(server_file(), "rb") as f:
            path.write_bytes(f.read(5000))
    elif name == "folder":
        path.mkdir()
    elif name == "other":
        path = "/bin/true"
    refused(run("postgres", "-x", path), re.escape(str(path)), *words)


def server_file():
    if not server_bindir():
        pytest.skip("no PostgreSQL server is installed")
    return os.path.join(server_bindir(), "postgres")


def test_server_that_lost_its_section_headers(tmp_path):
    """A server without any usable probe: e_shoff points behind the file."""
    need_root()
    path = tmp_path / "postgres"
    data = bytearray(open(server_file(), "rb").read())
    data[0x28:0x30] = struct.pack("<Q", 1 << 60)
    path.write_bytes(data)
    path.chmod(0o755)
    done = run("postgres", "-x", path, "-d", "0.2")
    assert done.returncode in (0, 1) and done.stderr.count("dbslower: ") >= 1, f"{done}"
    if done.returncode == 1:
        refused(done, re.escape(str(path)))


def test_process_that_is_not_there():
    need_root()
    pid = next(n for n in range(4194303, 1, -1) if not os.path.exists(f"/proc/{n}"))
    refused(run("postgres", "-p", pid), str(pid))


def test_process_that_is_no_server():
    need_root()
    refused(run("postgres", "-p", os.getpid()), str(os.getpid()))


@pytest.mark.parametrize("args", [["mysql", "-p", "PID"], ["--engine", "mysql", "-x", "PATH"]], ids=["pid", "path"])
def test_server_of_another_kind(postgres, args):
    """-p and -x with the database of another server."""
    path = os.readlink(f"/proc/{postgres.pid}/exe")
    args = [{"PID": str(postgres.pid), "PATH": path}.get(word, word) for word in args]
    refused(run(*args), re.escape(f"{path}: a server of another kind (postgres); "), status=1)


def test_kernel_thread():
    need_root()
    if not os.path.exists("/proc/2") or open("/proc/2/comm").read() != "kthreadd\n":
        pytest.skip("no kernel threads to be seen here")
    refused(run("postgres", "-p", 2), r"\b2\b")


# --- rights

def test_nobody(postgres, public_tool):
    need_root()
    refused(run_other([public_tool, "postgres"], user="nobody", group="nogroup", extra_groups=[]), r"root|CAP_BPF")


def test_nobody_with_pid(postgres, public_tool):
    need_root()
    refused(run_other([public_tool, "postgres", "-p", str(postgres.pid)], user="nobody", group="nogroup",
                      extra_groups=[]), r"root|CAP_")


def test_root_without_capabilities(postgres, public_tool):
    need_root()
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (package util-linux)")
    dropped = "-sys_admin,-bpf,-perfmon"
    done = run_other(["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", public_tool, "postgres",
                      "-p", str(postgres.pid)])
    if "setpriv:" in done.stderr:
        pytest.skip(f"cannot drop capabilities: {done.stderr}")
    refused(done, "CAP_BPF|CAP_SYS_ADMIN|CAP_PERFMON")


@pytest.mark.parametrize("error, words", [("ENOSYS", "bpf"), ("EPERM", "bpf")])
def test_no_bpf(postgres, tool, error, words):
    """A kernel without bpf(2), and one that forbids it also to root, as lockdown does."""
    if bpf_objects.SYS_BPF is None:
        pytest.skip(f"the number of bpf(2) on {platform.machine()} is not known here")
    number = {"ENOSYS": 38, "EPERM": 1}[error]
    done = run("postgres", "-p", postgres.pid, preexec_fn=deny(bpf_objects.SYS_BPF, number))
    assert done.returncode != 99, "the filter could not be set"
    refused(done, words)


def test_kernel_is_too_old():
    """What bpf(2) answers where it knows no tracing programs, so that loops cannot be asked for; the release says why."""
    if bpf_objects.SYS_BPF is None:
        pytest.skip(f"the number of bpf(2) on {platform.machine()} is not known here")
    done = run_other(["setarch", "--uname-2.6", DBSLOWER, "postgres", "-p", str(os.getpid())],
                     preexec_fn=deny(bpf_objects.SYS_BPF, errno.EINVAL))
    refused(done, "Linux 5.3 or later is required; this is 2.6.")


def test_no_perf_event_open(postgres, tool):
    number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    if number is None:
        pytest.skip(f"the number of perf_event_open(2) on {platform.machine()} is not known here")
    done = run("postgres", "-p", postgres.pid, "-d", "0.2", preexec_fn=deny(number, 1))
    if done.returncode == 0:
        return		# uprobe_multi needs it not
    refused(done, "perf_event")


# --- output that fails

def test_full_disk(postgres, tool):
    with open("/dev/full", "wb") as full:
        done = run("postgres", "-m", "0", "-p", postgres.pid, "-d", "5", stdout=full)
    assert done.returncode == 1, f"exit {done.returncode}: {done.stderr}"
    assert "No space left" in done.stderr, done.stderr


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_full_disk_of_help(option):
    with open("/dev/full", "wb") as full:
        done = run(option, stdout=full)
    assert done.returncode == 1 and "No space left" in done.stderr, f"exit {done.returncode}: {done.stderr}"


def filtered(pid):
    """Whether it has its filter of system calls, which it has from the end of attaching."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return "\nSeccomp:\t2\n" in f.read()


def test_closed_standard_streams(postgres, tool):
    """With descriptors 0 to 2 closed, they are /dev/null, and not descriptors of probes or maps."""
    process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" postgres -m 0 -p "$1" <&- >&- 2>&-', DBSLOWER,
                                str(postgres.pid)])
    wait_for(lambda: len(bpf_objects.objects(process.pid)["maps"]) > 3, 60, "the tool to trace")
    assert [os.readlink(f"/proc/{process.pid}/fd/{n}") for n in range(3)] == ["/dev/null"] * 3
    wait_for(lambda: filtered(process.pid), 60, "it to have attached")
    process.terminate()
    assert process.wait(60) == 0


# --- help, man page, completion

def version():
    with open(os.path.join(ROOT, "Makefile")) as f:
        return re.search(r"^VERSION\s*:?=\s*(\S+)", f.read(), re.M)[1]


def test_version():
    done = run("--version")
    assert done.returncode == 0 and done.stderr == ""
    assert re.match(rf"dbslower {re.escape(version())}\b.*\b([0-9a-f]{{12}}|unknown)\b", done.stdout), done.stdout
    assert run("-V").stdout == done.stdout


def help_text(*command):
    done = run(*command, "--help")
    assert done.returncode == 0 and done.stderr == "", done
    assert run(*command, "-h").stdout == done.stdout
    return done.stdout


def commands():
    """The names that --help lists; the default one is among them."""
    section = re.search(r"^Commands.*:\n((?:  .*\n)+)", help_text(), re.M)[1]
    names = re.findall(r"^  (\w+) ", section, re.M)
    assert "slow" in names and "list" in names
    return names


def test_help_of_the_default_command():
    assert help_text("slow") == help_text()


def test_help_command():
    assert run("help").stdout == help_text()
    for command in commands():
        assert run("help", command).stdout == help_text(command)


def test_program_in_path(tmp_path):
    """-x NAME is the one that a shell finds; without one it is a file of the directory."""
    need_root()
    server = os.path.join(server_bindir(), "postgres")
    env = {"PATH": f":relative:/nonexistent:{tmp_path}:{os.path.dirname(server)}"}
    (tmp_path / "postgres").mkdir()
    found = subprocess.run([DBSLOWER, "-x", "postgres", "-d", "0.01"], env=env, cwd="/", capture_output=True, text=True)
    assert (found.returncode, server in found.stderr) == (0, True), found.stderr
    env = {"PATH": "/nonexistent"}
    refused(subprocess.run([DBSLOWER, "-x", "postgres"], env=env, cwd="/", capture_output=True, text=True), status=1)
    os.rmdir(tmp_path / "postgres")
    os.symlink(server, tmp_path / "postgres")
    here = subprocess.run([DBSLOWER, "-x", "postgres", "-d", "0.01"], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert here.returncode == 0, here.stderr


def test_help_fits_a_terminal():
    for command in commands():
        long = [line for line in help_text(command).splitlines() if len(line) > 80]
        assert not long, f"wider than 80: {long}"


def test_version_of_commands():
    for command in commands():
        assert run(command, "--version").stdout == run("-V").stdout


def test_man_page_has_every_command():
    with open(MAN) as f:
        man = f.read()
    for command in commands():
        assert f".It Cm {command}\n" in man, f"{command} is not in the man page"


def complete(*words):
    """Return what the program lists for the last of @words, without the descriptions."""
    done = run("--complete", "dbslower", *words)
    assert done.returncode == 0 and done.stderr == "", done
    return [word for line in done.stdout.splitlines() for word in line.split("\t")[0].split()]


def test_completion_has_every_command():
    with open(MAN) as f:
        engines = re.search(r"^\.Op Cm (.*)$", f.read(), re.M)[1].split(" | ")
    assert {"mysql", "postgres"} <= set(engines)
    assert set(commands()) | set(engines) == set(complete("")), "not what is completed"
    assert set(complete("slow", "")) == set(complete("mysql", "")) == set(engines)


def help_options():
    """{(long option, letter or '')} of all commands."""
    return {(long, letter) for command in commands()
            for letter, long in re.findall(r"^ +(?:-(\w), )? *--([a-z-]+)", help_text(command), re.M)}


def man_options():
    with open(MAN) as f:
        text = f.read()
    options = set()
    for item in re.findall(r"^\.It (Fl .*)$", text, re.M):
        letter = re.search(r"\bFl (\w)\b", item)
        long = re.search(r"\bFl -([a-z-]+)", item)
        assert long, f"an option without a long name: {item}"
        options.add((long[1], letter[1] if letter else ""))
    return options


def test_help_and_man_page_list_the_same_options():
    assert help_options() == man_options() - {("force", "")}  # for tests: not in --help
    assert len(help_options()) > 8, help_options()


# Those that select servers and sessions alike.
FILTERED = ("slow", "stat", "top", "locks", "ps", "transactions")


def test_synopsis_has_every_option():
    with open(MAN) as f:
        synopsis = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", f.read(), re.M | re.S)[1]
    parts = [part for part in synopsis.split(".Nm dbslower\n") if part]
    for command in FILTERED:
        part, = [one for one in parts if one.startswith(f".Cm {command}\n")] or parts[:1]
        words = re.findall(r"\bFl (-[a-z-]+|[a-zA-Z]+)", part)
        names = {name for word in words for name in ([word[1:]] if word[0] == "-" else word)}
        help_ = re.findall(r"^ +(?:-(\w), )? *--([a-z-]+)", help_text(command), re.M)
        wanted = {letter or long for letter, long in help_} - {"h", "V", "keep-privileges"}
        assert names == wanted, f"{command}: {names ^ wanted}"


def test_the_same_filters_everywhere():
    """With the same help; -x, which also selects, too."""
    names = ("user", "db", "client", "app", "container", "match", "engine", "pid", "path")
    found = {name: {re.search(rf"^ .*--{name}\b.*", help_text(command), re.M)[0] for command in FILTERED}
             for name in names}
    assert all(len(lines) == 1 for lines in found.values()), found


def test_completion_lists_the_same_options():
    for command in commands():
        help_ = re.findall(r"^ +((?:-\w, )?) *(--[a-z-]+)", help_text(command), re.M)
        assert complete(command, "-") == [word for letter, long in help_ for word in (letter.strip(", "), long) if word]


def test_completion_of_arguments():
    assert complete("-x", "") == complete("slow", "--otlp", "=", "/") == complete("doctor", "") == [":files"]
    assert complete("stat", "--by", "") == complete("stat", "--by", "=") == ["command", "status", "db", "user"]
    listed, pids, names = complete("top", "-p", "1,")
    assert (listed, pids) == (":list", ":pids") and {"postgres", "mysqld", "mariadbd"} <= set(names.split("|"))
    assert complete("slow", "-d", "") == []
    columns, of_ps = complete("-o", "time,"), complete("ps", "-o", "")
    assert columns[0] == of_ps[0] == ":list" and {"time,", "query"} <= set(columns) and {"id,", "query"} <= set(of_ps)
    assert {"total", "lock"} <= set(complete("top", "--sort", "")) and "fdatasync" in complete("stat", "--wait", "")
    assert complete("trace", "/bin/sh", "") == [":probes"]
    assert not complete("--force", ""), "for tests: not completed"


def test_completion_is_good_bash():
    done = subprocess.run(["bash", "-n", COMPLETION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_and_man_page_list_the_same_columns():
    with open(MAN) as f:
        man = f.read()
    section = man[man.index(".Sh COLUMNS"):man.index(".Sh JSON")]
    in_man = [name for names in re.findall(r"^\.It Cm ([\w.]+(?: , \w+)*)$", section, re.M) for name in names.split(" , ")]
    refused_ = run("-o", "nothing").stderr
    known = re.search(r"the columns are ([\w., ]+)", refused_)[1].strip().split(", ")
    assert in_man == known
    text = help_text()
    assert all(re.search(rf"^ +{name} ", text, re.M) for name in known), text


def test_man_page_lint():
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc (package mandoc)")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", MAN], capture_output=True, text=True)
    faults = [line for line in done.stdout.splitlines() if "referenced manual not found" not in line]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("command, letter, name, rest", [
    ("stat", "-i", "--interval", ["0"]), ("list", "-l", "--lib", ["nosuch"]), ("trace", "-n", "--max", ["0", "./x", "y"]),
    ("stat", "-u", "--microseconds", ["-p", "4194303"])])
def test_long_names_are_the_letters(command, letter, name, rest):
    short, long = run(command, letter, *rest), run(command, name, *rest)
    assert short.returncode == long.returncode != 0 and "unknown option" not in long.stderr
    assert long.stderr.replace(name, letter) == short.stderr.replace(name, letter), (short.stderr, long.stderr)
