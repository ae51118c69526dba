# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Recordings that someone has made to harm who reads them: bytes that a terminal or a parser takes for its own, and files that
take long. Every command and format prints them.
"""

import json
import os
import re
import resource
import signal
import subprocess
import time

import pytest

import recording
import recording_maker
from cluster import wait_for
from recording_maker import Made, counted, hostile, number, numbers
from tool import DBSLOWER, parsed, run

CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
TEXTS = (
    ("slow", "-m", "0"), ("slow", "-m", "0", "-t", "--why", "--use", "--phases", "--prepares"),
    ("slow", "-m", "0", "-o", "pid,user,db,client,app,container,status,sqlstate,engine,query"),
    ("top", "--lines", "100"), ("top", "--batch", "-i", "1"), ("stat",), ("stat", "--by", "user"), ("stat", "--by", "db"),
    ("stat", "--by", "command"), ("stat", "--by", "status"), ("stat", "--heatmap", "-i", "1"), ("transactions", "-m", "0"),
    ("locks", "-m", "0"), ("locks", "--stat"), ("top", "--openmetrics", "-"), ("stat", "--openmetrics", "-"))
LOGS = (("slow", "-m", "0", "--format", "pgbadger"), ("slow", "-m", "0", "--format", "slowlog"))
OBJECTS = (
    ("slow", "-m", "0", "--json", "--why", "--use", "--phases", "--prepares"), ("top", "--json"), ("stat", "--json"),
    ("stat", "--by", "user", "--json"), ("stat", "--by", "command", "--json"), ("transactions", "-m", "0", "--json"),
    ("locks", "-m", "0", "--json"), ("locks", "--stat", "--json"))
REQUESTS = (("slow", "-m", "0", "--why", "--otlp", "-"), ("slow", "-m", "0", "--otlp", "-", "--otlp-text", "raw"),
            ("top", "--otlp-metrics", "-"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "hostile.rec"
    hostile().save(path)
    return path


def shown(path, *form, program="replay"):
    done = subprocess.run([DBSLOWER, program, path, *form], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.decode(), done.stderr.decode()	# UTF-8
    assert not re.search(CONTROL, err) and "\t" not in err, err
    assert out
    return out


@pytest.mark.parametrize("form", TEXTS, ids=" ".join)
def test_text(path, form):
    out = shown(path, *form)
    assert not re.search(CONTROL, out)
    assert "\t" not in out.replace("\n\t", "\n")


def test_graph(path, tmp_path):
    shown(path, "locks", "--dot", tmp_path / "waits.dot")
    assert not re.search(CONTROL, (tmp_path / "waits.dot").read_text().replace("\n\t", "\n"))


@pytest.mark.parametrize("form", LOGS, ids=" ".join)
def test_log(path, form):
    out = shown(path, *form)
    assert not re.search(CONTROL, out)
    beginning = r"\d{4}-\d\d-\d\d \d\d:|\t" if "pgbadger" in form else r"# |use |SET timestamp=|\t"
    assert all(re.match(beginning, line) for line in out.splitlines()), out


@pytest.mark.parametrize("form", OBJECTS, ids=" ".join)
def test_json(path, form):
    out = shown(path, *form)
    assert not re.search(CONTROL, out.replace("\u202e", "")), out
    found = parsed(out.splitlines())
    assert {one["sqlstate"] for one in found if "sqlstate" in one} <= {"22012"}


def integers(value):
    """All int64 of a request."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("intValue", "asInt"):
                yield int(one)
            yield from integers(one)
    elif isinstance(value, list):
        for one in value:
            yield from integers(one)


@pytest.mark.parametrize("form", REQUESTS, ids=" ".join)
def test_otlp(path, form):
    found = [json.loads(line) for line in shown(path, *form).splitlines() if line.startswith('{"resource')]
    assert found and all(-2 ** 63 <= value < 2 ** 63 for one in found for value in integers(one))
    for one in found:
        for span in (span for of in one.get("resourceSpans", ()) for scope in of["scopeSpans"] for span in scope["spans"]):
            assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
            assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16)), span


def test_page(path):
    out = shown(path, program="report")
    assert not re.search(CONTROL, out.replace("\t", ""))
    assert "</script>\u009b" not in out and "[31m</script>" not in out


def test_reader_takes_any_bytes(path):
    """The one that is written from docs/recording.md."""
    read = recording.read(path)
    assert read.options()["host"].startswith('a"') and len(list(read.events())) > 30


# --- files that take long

class Repeated(Made):
    """@count statements of a long text, which is in a block once: each is the first one with @change of its last bytes."""

    def __init__(self, base, count, change):
        super().__init__()
        self.base = base
        session = self.session(self.server())
        for i in range(count):
            self.statement(session, change(i))

    def text(self, text, length=None):
        block = self.blocks[-1]
        if not hasattr(block, "has_text"):
            block.has_text = True
            return {"text": number(0) + counted(self.base), "whole": True}
        return {"text": numbers(1, 1, len(self.base) - len(text), len(text), len(text)) + text, "whole": True}


def long_text(length, end):
    return b"select " + b"a, " * ((length - 20) // 3) + b"b = " + end


def seconds(*args):
    """Of CPU. How much of it was in the kernel is an estimate, of some milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(*args)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("command", [("replay", "top"), ("report",)], ids=" ".join)
def test_long_text_again_and_again(tmp_path, command):
    """Is normalized once: 200 times as long a text, and the same time."""
    took = []
    for name, length in ("long", 16000), ("short", 80):
        Repeated(long_text(length, b"1234567"), 40_000, lambda i: b"%07d" % i).save(tmp_path / name)
        took.append(min(seconds(command[0], tmp_path / name, *command[1:]) for _ in range(3)))
    assert took[0] < 10 * took[1], took


def blocks_sigint(process):
    """Whether it reads the signal by a descriptor, or has ended."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        return process.poll() is not None or int(re.search(r"^SigBlk:\t(\w+)$", f.read(), re.M)[1], 16) >> signal.SIGINT - 1 & 1


def stopped(signals, *args, folder, after=1):
    """Sends @signals to the tool once it is at it. Return its exit status, how long it took to end, and standard error."""
    with open(folder / "out", "wb") as out, subprocess.Popen([DBSLOWER, *map(str, args)], stdout=out, stderr=subprocess.PIPE,
                                                             text=True) as process:
        if args[0] == "replay":
            wait_for(lambda: blocks_sigint(process), what="the signal to be blocked")
        time.sleep(after)
        assert not after or process.poll() is None, process.stderr.read()
        sent = time.monotonic()
        process.send_signal(signals)
        err = process.communicate(timeout=60)[1]
        return process.returncode, time.monotonic() - sent, err


@pytest.mark.parametrize("command", [("replay", "top"), ("replay", "-m", "0", "--redact"), ("report",)], ids=" ".join)
def test_is_stopped(tmp_path, command):
    """A GB of text in 3 MB, each statement a new one."""
    Repeated(long_text(16000, b"'1234'"), 120_000, lambda i: b"'%04d'" % (i % 10000)).save(tmp_path / "slow.rec")
    status, _, err = stopped(signal.SIGINT, command[0], tmp_path / "slow.rec", *command[1:], folder=tmp_path)
    if command[0] == "report":
        assert status == -signal.SIGINT
        return
    assert status == 0 and int(re.search(r"(\d+) statements, ", err)[1]) < 100_000, err


def test_many_names(tmp_path):
    """Of system calls that do not exist, in 1 MB: of each event nothing is printed."""
    made = Made()
    block = made.block()
    block.events += [recording_maker.event(4, recording_maker.string(""))] * 300_000
    made.statement(made.session(made.server()), "select 1", ms=7)
    path = made.save(tmp_path / "names.rec")
    assert "select 1" in shown(path, "-m", "0")
    assert stopped(signal.SIGINT, "replay", path, "stat", folder=tmp_path, after=0)[0] in (0, 1)


@pytest.mark.parametrize("where", ["before", "behind"])
def test_hole(tmp_path, where):
    """Of a TB, without which the file is a sound one."""
    data = recording_maker.Made()
    data.statement(data.session(data.server()), "select 1", ms=7)
    with open(tmp_path / "sparse.rec", "wb") as f:
        f.write(b"no head")
        try:
            f.seek(1 << 40 if where == "before" else 0)
            f.write(data.bytes())
            f.truncate(1 << 41)
        except OSError as error:
            pytest.skip(f"no sparse files of this size here: {error}")
    assert os.stat(tmp_path / "sparse.rec").st_blocks < 10000
    assert "select 1" in shown(tmp_path / "sparse.rec", "-m", "0")
    assert "select 1" in shown(tmp_path / "sparse.rec", program="report")
