# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Invocations that cannot be meant: one line with subject, cause and remedy, and nothing else. Nothing is attached."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from mysql_fixture import DISPATCH, END
from requirements import need_root
from tool import DBSLOWER, run, run_other

ONE_LINE = re.compile(r"dbslower: [^\n]+?: [^\n]+; [^\n]+\n")

# Options that take a value: none, an empty one, one of another kind, and numbers out of range.
VALUES = {
    "": ["-p", "-p ''", "-p 0", "-p -1", "-p 1.5", "-p x", "-p 1,", "-p 1,,2", "-p ' 1'", "-p +1", "-p 4194305", "-p=5",
         "--pid=", "-m", "-m ''", "-m -5", "-m x", "-m 5q", "-m 1e3", "-m ' 5'", "-m 99999999999999999999", "-d", "-d ''",
         "-d 0", "-d -1", "-d 1y", "-d 1h30m", "-d 99999999999999999", "-n", "-n 0", "-n -1", "-n 1.5", "-n x", "-n +5",
         "-n 99999999999999999999999", "-x", "-x ''", "-o", "-o ''", "-o nosuch", "-o time,,ms", "--text", "--text ''",
         "--text 0", "--text -1", "--text 15", "--text 2m", "--text 1q", "--user", "--db", "--client", "--client ''",
         "--container", "--container ''", "--match", "--match ''", "--match '/(/'", "--match //", "--engine", "--engine x", "--engine ''",
         "--otlp", "--otlp ''", "--otlp-text", "--otlp-text full", "--format", "--format ''", "--format csv", "--force", "--force ''", "--force nosuch", "--start",
         "--start a", "--start '' --done ''", "--text-arg", "--text-arg 0", "--text-arg x", "--json=1", "--json=", "--why=cpu",
         "--redact=yes", "--help=1", "--version=2"],
    "stat": ["--by", "--by ''", "--by nosuch", "--wait", "--wait ''", "--wait nosuch", "-i", "-i ''", "-i 0", "-i -1", "-i x",
             "--openmetrics", "--openmetrics ''", "--otlp-metrics", "--otlp-metrics ''", "--heatmap=1"],
    "top": ["--sort", "--sort ''", "--sort nosuch", "--lines", "--lines 0", "--lines -1", "--lines x", "-i 0", "--batch=1"],
    "locks": ["--dot", "--dot ''", "--stat=1", "-m x"],
    "ps": ["-o", "-o ''", "-o nosuch", "-o ms", "-i 0", "-i x", "--tree=1"],
    "plan": ["''", "5 -i 0", "5 -i x", "5 -n x", "5 --json=1", "18446744073709551616", "5x", "0"],
    "trace": ["", "''", "-p", "-p x c:getpid", "-d x c:getpid", "-n 0 c:getpid", "--hist", "--hist '' c:getpid",
              "--text 0 c:getpid", "--json=1 c:getpid"],
    "list": ["-p", "-p x", "-p 0", "-l", "-l ''", "''", "--json=1"],
    "doctor": ["''", "--self-test=1", "--json=x", "-v=1"],
    "record": ["''", "x -m", "x -m y", "--max-size x", "--max-size 0 x", "--max-size 1k x", "--max-size '' x", "--max-size -1 x",
               "--max-size 99999999999999999999 x", "--memory x-%t", "--memory 0 x-%t", "--memory 1.5 x-%t",
               "--memory 8M --on-slow 0 x-%t", "--memory 8M --on-lock -1 x-%t", "--memory 8M --on-error-rate 0 x-%t",
               "--memory 8M --after y x-%t", "--memory 8M --max-files 0 x-%t", "--memory 8M --max-files 1001 x-%t"],
    "replay": ["''", "x --since", "x --since ''", "x --since y", "x --since 25:00", "x --since 12:60", "x --since 1:2:3:4",
               "x --until 2026-02-29T00:00:00Z", "x --until -5", "x -o nosuch", "x -m y", "x top --sort nosuch", "x stat --by nosuch"],
    "report": ["''", "x --since", "x --until y", "x -m", "x -m y", "x --redact=1"],
    "transactions": ["-o ''", "-o nosuch", "-o rows", "-m x", "-n 0", "-d x"],
}

# Options and words of other commands, unknown ones, and those that exclude or require each other.
MIXED = {
    "": ["--nonsense", "-Z", "--top", "-i 1", "--sort time", "--by user", "--tree", "--dot x", "-l c", "--self-test", "oracle",
         "postgress", "nosuchcommand", "TOP", "-", "''", "' '", "'5 '", "+5", "-5", "-- -5", "5 6", "5 ms", "5parsecs", "1,5", "0x10",
         "5.", "nan", f"-p {','.join(map(str, range(1, 66)))}",
         "-x /bin/sh " * 17, "-o " + ",".join(["ms"] * 33), "postgres mysql", "postgres stat", "-m 5 6", "-p 1 2", "--json -o ms", "--otlp - --json",
         "--format slowlog --json", "--format pgbadger -o ms", "--format pgbadger --otlp -",
         "--otlp-text raw", "--start a:b", "--done a:b", "--start a:b --done c:d", "--text-arg 2",
         "postgres --start a:b --done c:d -x /bin/sh"],
    "stat": ["-o ms", "-n 5", "--sort x", "-t", "--text 5", "--stat", "postgres mysql", "--wait cpu --by status", "--why", "--heatmap",
             "--heatmap -i 1 --json", "--openmetrics - --json", "--openmetrics - --otlp-metrics -", "--otlp-metrics - --heatmap -i 1"],
    "top": ["-o ms", "--by user", "--wait cpu", "--tree", "foo", "5 5"],
    "locks": ["--sort ms", "--why", "-o ms", "--by x", "foo"],
    "ps": ["--json -o pid", "-o " + ",".join(["pid"] * 33), "-n 5", "-d 5", "--why", "--sort x", "foo"],
    "plan": ["", "5 6", "oracle", "5 postgres mysql", "5 -o pid", "5 -n 5", "5 --tree", "5 -m 5"],
    "trace": ["-m 5 c:getpid", "-o ms c:getpid", "--why c:getpid", "-p 1", "c:getpid --count --hist arg1"],
    "list": ["-d 5", "-o x", "-m 1", "--nonsense"],
    "doctor": ["-p 1", "-x /a", "-d 1", "-o x", "-l", "--nonsense"],
    "record": ["", "x y", "x 5 6", "x postgres mysql", "--json x", "-o ms x", "--on-slow 1s x", "--max-files 5 x", "--memory 8M x"],
    "replay": ["", "x nosuch", "x slow stat", "x list", "x record", "x trace", "x -p 1", "x -x /bin/sh"],
    "report": ["", "x y", "x slow", "x --json", "x -o ms"],
    "transactions": ["--why", "--by user", "--sort x", "-i 1", "foo", "postgres mysql", "--format slowlog", "5 6"],
    "help": ["nosuch", "''", "tpo", "--help", "record x", "top --help", "record ''"],
}

# What does not exist or is of another kind, which is a failure and no usage error.
FAILURES = ["-x /nonexistent", "-x nosuchprogram", "-x /", "-x .", "-x SCRIPT", "-x EMPTY", "-x /dev/null", "-x /bin/sh", "-p GONE",
            "-p SELF", "--otlp /nonexistent/x", "--otlp /", "--start a:b --done c:d -x /bin/sh", "stat -p GONE",
            "stat -x /bin/sh", "stat --openmetrics /nonexistent/x", "stat --openmetrics /", "stat --openmetrics /dev/null",
            "top --openmetrics .", "top --otlp-metrics /nonexistent/x", "top -p GONE", "top -x SCRIPT", "locks -p GONE", "locks --dot /", "locks --dot /nonexistent/x",
            "plan 5 -p GONE", "plan 5 -x /bin/sh", "ps -p GONE", "ps -p SELF", "ps -x /nonexistent", "ps -x /bin/sh", "ps -x SCRIPT", "ps -x NAMED",
            "trace /nonexistent:f",
            "trace SCRIPT:f", "trace c:nosuchfunction", "trace u:c:nosuch:nosuch", "trace -p GONE c:getpid", "list /nonexistent",
            "record /", "record .", "record /nonexistent/x", "replay /nonexistent", "replay .", "replay SCRIPT", "replay EMPTY",
            "replay /dev/null", "report /nonexistent", "report .", "report SCRIPT", "report EMPTY", "list SCRIPT", "list EMPTY", "list /", "list -p GONE", "list -l nosuchlib"]


def judge(done, status):
    said = f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return None if done.returncode == status and not done.stdout and ONE_LINE.fullmatch(done.stderr) else said


def judged(lines, status, **words):
    """The lines that were not refused as they must be, with what was said."""
    wrong = {}
    for line in lines:
        said = judge(run(*(words.get(word, word) for word in shlex.split(line)), timeout=60), status)
        if said:
            wrong[line] = said
    assert not wrong, "\n".join(f"{line}: {said}" for line, said in wrong.items())


def test_function_of_a_library_beside_a_process():
    """Without -p, c:fsync is a function; with it, another kind of probe."""
    done = run("trace", "--hist", "latency", "c:fsync", "-p", os.getpid())
    assert done.returncode == 2 and "this is a USDT probe; p: before it makes it a function of a library" in done.stderr, done.stderr
    done = run("trace", "--hist", "latency", "p:c:fsync", "-p", os.getpid(), "-d", "0.1")
    assert done.returncode == 0 and "tracing 1 probe" in done.stderr, done.stderr


@pytest.mark.parametrize("form", [["-l", "z", "deflate"], ["p:z:deflate"], ["-l", "/lib/x86_64-linux-gnu/libz.so.1", "deflate"]], ids=" ".join)
def test_library_that_the_process_does_not_map(form):
    if not os.path.exists("/lib/x86_64-linux-gnu/libz.so.1"):
        form = [word.replace("x86_64", os.uname().machine) for word in form]
    with subprocess.Popen(["sleep", "60"]) as process:
        done = run("trace", "-p", process.pid, *form, "-d", "0.1")
        other = run("trace", "-p", process.pid, "-l", "c", "fopen", "-d", "0.1")
        process.kill()
    assert done.returncode == other.returncode == 0, done.stderr
    assert re.match(r"dbslower: \S*/libz\.so\S*: no process of -p maps it; hits are shown once one has loaded it\n", done.stderr), done.stderr
    assert "maps it" not in other.stderr


def test_embedded_server(tmp_path):
    """By the name of the library: Debian has no program with it."""
    library = tmp_path / "libmariadbd.so.19"
    shutil.copy(os.path.realpath(f"/lib/{os.uname().machine}-linux-gnu/libz.so.1"), library)
    source = f"import ctypes, sys; ctypes.CDLL({str(library)!r}); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for form in (["-p", process.pid], ["ps", "-p", process.pid], ["-x", library]):
            done = run(*form)
            assert done.returncode == 1 and ONE_LINE.fullmatch(done.stderr), done.stderr
            assert f"the embedded server is not supported{f' (process {process.pid})' if '-p' in form else ''}; " in done.stderr
        process.stdin.close()


def compiled(path, source, *options):
    path.parent.mkdir(exist_ok=True)
    subprocess.run(["gcc", "-O2", "-o", path, "-x", "c", "-", "-x", "none", *options], input=source, text=True, check=True)
    return path


def test_program_that_is_linked_with_the_embedded_server(tmp_path):
    """What the linker wrote is enough: it need not run."""
    library = compiled(tmp_path / "libmysqld.so.18", "int mysql_real_query(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libmysqld.so.18")
    source = "int mysql_real_query(void); int main(void) { return mysql_real_query(); }"
    program = compiled(tmp_path / "kiosk", source, library)
    assert "Shared library: [libmysqld.so.18]" in subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    for words in (["-x"], ["mysql", "-x"], ["postgres", "-x"], ["top", "-x"], ["ps", "-x"], ["doctor"]):
        done = run(*words, program)
        assert done.returncode == 1 and "the embedded server is not supported" in done.stderr + done.stdout, (words, done)
    done = run("-x", compiled(tmp_path / "other", "int main(void) { return 0; }", "-lm"))
    assert "not a supported database server" in done.stderr, done


MARIADB_DISPATCH = "_Z16dispatch_command19enum_server_commandP3THDPcjb"
# What dispatches commands, what ends a statement.
BODY = """__attribute__((noinline, noclone)) void %s(void *thd) { __asm__ volatile("" :: "r"(thd)); }
__attribute__((noinline, noclone)) int %s(void *thd) { %s; return !thd; }
int main(void) { return %s(0) != 1; }"""


@pytest.mark.parametrize("name, dispatch, end, called, options, words", [
    ("mysqld", "dispatch", "ended", True, ["-static", "-s"], "its functions have no symbols (MySQL or MariaDB)"),
    ("mariadbd", MARIADB_DISPATCH, END, True, ["-s"], "its functions have no symbols (MySQL or MariaDB)"),
    ("postgres", "EndCommand", "pgstat_report_activity", True, ["-s"], "its functions have no symbols (PostgreSQL)"),
    ("postgres", "exec_simple_query", "pgstat_report_activity", True, ["-rdynamic", "-s"], "it lacks EndCommand"),
    ("mysqld", "main_loop", "ended", True, ["-rdynamic", "-s"], "it lacks dispatch_command"),
    ("mysqld", DISPATCH, "ended", True, ["-rdynamic", "-s"], "it lacks log_slow_statement"),
    ("mariadbd", MARIADB_DISPATCH, "ended", True, ["-rdynamic", "-s"], "it lacks log_slow_statement"),
    # As in Facebook's MySQL 5.6.
    ("mysqld", DISPATCH, END + "P17system_status_var", True, ["-rdynamic", "-s"], "it lacks a known call of log_slow_statement"),
    ("mariadbd", MARIADB_DISPATCH, END, False, ["-rdynamic", "-s"], "it lacks a known call of log_slow_statement"),
    ("mysqld", DISPATCH + "i", END, True, ["-rdynamic", "-s"], "it lacks a known form of dispatch_command"),
    ("mysqld", DISPATCH, END, True, ["-rdynamic", "-s"], "it lacks a known place of the statement's text"),
    ("renamed", MARIADB_DISPATCH, END, True, ["-rdynamic", "-s"], "it lacks a known place of the statement's text"),
    ("renamed", "dispatch", "ended", True, ["-static", "-s"], None),
])
def test_builds_that_are_not_supported(tmp_path, name, dispatch, end, called, options, words):
    """They are named as what they are; neither product's symbols are named for the other, and with none no other engine's."""
    source = BODY % (end, dispatch, f"{end}(thd); __asm__ volatile(\"\" ::: \"memory\")" if called else "", dispatch)
    program = compiled(tmp_path / "bin" / name, source, *options)
    listed = subprocess.run(["nm", "-D", "--defined-only", program], capture_output=True, text=True, check=False).stdout
    assert (f" T {dispatch}\n" in listed) == ("-rdynamic" in options), listed
    said = f"cannot be traced, {words}; " if words else "not a supported database server; "
    engine = "postgres" if name == "postgres" else "mysql"
    for args in ["-x", program], [engine, "-x", program], ["stat", engine, "-x", program]:
        done = run(*args)
        named = args[0] != "-x" and not words
        assert done.returncode == 1 and ONE_LINE.fullmatch(done.stderr) and "_Z" not in done.stderr, done.stderr
        assert named or f"{program}: {said}" in done.stderr, done.stderr
    if words:
        assert f"{program}: {said.split(';')[0]}" in run("doctor", program).stdout


@pytest.mark.parametrize("table", [VALUES, MIXED], ids=["values", "mixed"])
def test_usage(table):
    judged([f"{command} {args}" for command, lines in table.items() for args in lines], 2)


@pytest.fixture
def gone():
    """The ID of a process that has ended, and has not been collected, so that no other has it."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


def test_failures(tmp_path, gone):
    need_root()
    script, empty = tmp_path / "script", tmp_path / "empty"
    script.write_text("#!/bin/sh\n")
    empty.touch()
    # A server by its name, which no process runs.
    named = shutil.copy("/bin/true", tmp_path / "mariadbd")
    judged(FAILURES, 1, GONE=str(gone), SELF=str(os.getpid()), SCRIPT=str(script), EMPTY=str(empty), NAMED=str(named))


@pytest.mark.parametrize("command", ["", "stat", "top", "locks", "trace c:getpid"])
def test_nobody(public_tool, command):
    need_root()
    done = run_other([public_tool, *command.split()], user="nobody", group="nogroup", extra_groups=[])
    assert not judge(done, 1), done


@pytest.mark.parametrize("args", ["--help", "--version", "help top", "list /usr/bin/python3 --json", "doctor /bin/sh"])
def test_full_disk(args):
    with open("/dev/full", "wb") as full:
        done = run(*args.split(), stdout=full)
    assert done.returncode == 1 and re.fullmatch("dbslower: output: cannot write: No space left on device; .+\n", done.stderr), done


def test_closed_descriptors():
    """Nothing is written to a file that takes the number of a descriptor that is closed."""
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"exec {DBSLOWER} --nonsense {closing}"], capture_output=True, timeout=60)
        assert done.returncode == 2 and not done.stdout, done
