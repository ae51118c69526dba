# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
top on a terminal: numbers compared with pg_stat_statements, widths with wcwidth, and what is left of the terminal
afterwards with stty and tmux.
"""

import ctypes
import locale
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from cluster import wait_for
from recording_maker import Made
from requirements import need_terminal
from terminal import Terminal
from tool import DBSLOWER

WIDE = "select '\u4e2d\u6587\u5b57\u7b26\u4e2d\u6587' as \"caf\u00e9 e\u0301\u0302 \U0001f600 \u0e01\u0e33 \u1100\u1161 \x1b[31mred \u202e\u200b\x07\x9b\" /* {} */"
LIBC = ctypes.CDLL(None)
MS = {"0": 1, "ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}


@pytest.fixture(autouse=True)
def terminal_tools(request):
    need_terminal()
    postgres = request.getfixturevalue("postgres") if "postgres" in request.fixturenames else None
    yield
    if postgres and postgres.pid:
        postgres.disconnect_all()


def width(text):
    """By the C library, whose table is not ours."""
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    return sum(max(0, LIBC.wcwidth(ord(c))) for c in text)


def is_plain(text):
    return all(c.isprintable() or c == " " for c in text)


@pytest.fixture
def wide(tmp_path):
    """A recording of statements whose texts are hard to measure."""
    made = Made()
    session = made.session(made.server())
    for n in range(40):
        made.statement(session, WIDE.format(n), ms=0.5 + n / 7, rows=1, why={"lock": 0.25})
        made.statement(session, f"select pg_sleep(0.002), {n}", ms=2 + n / 11, rows=1, why={"sleep": 1.75}, use={"minor_faults": n})
        made.statement(session, f"select {n}, '{'x' * 300}'", ms=n + 0.123456, why={})
        made.statement(session, f"select 1 / ({n} - {n})", ms=0.25, error="22012", why={})
    return made.save(tmp_path / "wide.rec")


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_rows_fit(wide, columns):
    """Tables on a terminal without the sequences: no row is wider than it, and none contains a control character."""
    with Terminal("replay", wide, "top", "--why", "--use", width=columns, term="dumb") as terminal:
        assert terminal.stop()[0] == 0
    lines = terminal.written.decode().split("\r\n")
    assert any("CALLS" in line for line in lines) and b"\x1b" not in terminal.written, terminal.written
    assert all(width(line) <= columns and is_plain(line) for line in lines), lines
    assert max(width(line) for line in lines) > min(columns, 140) - 3, "the width is used"


def load(postgres, stop):
    with postgres.connect() as connection:
        n = 0
        while not stop.is_set():
            n += 1
            connection.execute(WIDE.format(n), prepare=False)
            connection.pgconn.exec_(b"select pg_sleep(0.002), %d" % n)
            connection.pgconn.exec_(b"select 1 / (%d - %d)" % (n, n))


# Each key, and what appears when it has been handled: another key behind an ESC would be one sequence with it.
KEYS = [("\r", "^Statement:"), ("Gq", "Enter details"), ("?", "Ctrl-L"), ("q", "Enter details"), ("\x1b[17~", "^p95 "),
        ("q", "Enter details"), ("/sleep\r", "filter: sleep"), ("\x1b", "since the start *$")]


def test_frames(wide):
    """All frames at four sizes: no line is wider than the terminal by the widths of another table."""
    with Terminal("replay", wide, "top", "-i", "0.1", "--why", width=200, height=20) as terminal:
        terminal.wait_for("TIME")
        for rows, columns in enumerate((200, 120, 80, 40), 21):
            terminal.resize(columns, rows)
            # Its first frame has the first line at this row, behind all lines of the other size.
            last = f"\x1b[{rows};1H".encode()
            terminal.until(lambda last=last: last in terminal.written, f"frame of {rows} lines")
            start = terminal.written.index(last)
            terminal.wait_for("select .*pg_sleep")
            for keys, text in KEYS:
                terminal.send(keys)
                terminal.wait_for(text)
            terminal.wait_for("select '?")
            frames = list(terminal.lines(start))
            assert len(frames) > 20 and all(is_plain(line) for line in frames), frames
            assert max(width(line) for line in frames) <= columns, max(frames, key=width)
        terminal.send("q")
        status, said = terminal.stop()
        assert status == 0 and "statements" in said, said
        assert terminal.is_restored()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, "q", "-d", "-n"])
def test_restored(postgres, end):
    """Whatever ends it: the modes of the terminal are as before, and the table and the summary follow."""
    args = {"-d": ["-d", "1"], "-n": ["-i", "0.5", "-n", "2"]}.get(end, [])
    with postgres.connect() as connection, Terminal("top", "-p", postgres.pid, *args) as terminal:
        terminal.wait_for("since the start")
        connection.pgconn.exec_(b"select 'restored'")
        if end == "q":
            terminal.send("q")
        status, said = terminal.stop(end if isinstance(end, signal.Signals) else None)
    # The time of -d or -n may have ended before the statement.
    counted = re.match(r"dbslower: ([01]) statements, \1 shown", said.splitlines()[-1])
    assert status == 0 and counted and (counted[1] == "1" or args), (status, said)
    assert terminal.restored, terminal.written[-300:]
    after = terminal.written[terminal.written.rfind(b"\x1b[?1049l"):].decode()
    assert "CALLS" in after and (counted[1] == "0" or re.search(r"1 +\d+\.\d{3} .* select \?", after)), after


def test_terminal_that_does_not_read(postgres):
    """Records are drained while nothing takes the frames; a signal still ends it, with what was counted."""
    with Terminal("top", "-p", postgres.pid, "-i", "0.01", width=200, height=60) as terminal:
        terminal.wait_for("since the start")
        with postgres.connect() as connection:
            for n in range(3000):
                connection.pgconn.exec_(b"select 1 as name%d" % n)
        before = len(terminal.written)
        terminal.process.send_signal(signal.SIGTERM)
        status, said = terminal.end()
        assert len(terminal.written) - before < 100000, "the frames were not kept"
    assert status in (0, 1) and "3000 statements, 3000 shown, nothing lost" in said, (status, said)


@pytest.mark.parametrize("args", [["top", "--batch", "-i", "0.01"], ["-m", "0"]], ids=["top", "slow"])
def test_output_to_a_terminal_that_does_not_read(postgres, args):
    """A full terminal, as after Ctrl-S, does not keep a signal from ending the tool. The last table alone fills it."""
    with Terminal(*args, "-p", postgres.pid, width=200, height=300) as terminal:
        terminal.attached()
        with postgres.connect() as connection:
            for n in range(2000):
                connection.pgconn.exec_(b"select 1 as name%d" % n)
        terminal.process.send_signal(signal.SIGTERM)
        status, said = terminal.end()
        assert status == 1 and "stalled" in said, (status, said)


class Tmux:
    """A tmux server with one shell in a window for each size."""

    def __init__(self, path):
        self.path = str(path)
        self.commands = 0

    def __call__(self, *args):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.path, *map(str, args)], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout

    def start(self, name, columns, term):
        self("new-session", "-d", "-s", name, "-x", columns, "-y", 30, f"env TERM={term} PS1='$ ' bash --norc --noprofile")

    def screen(self, name):
        return self("capture-pane", "-p", "-t", name)

    def keys(self, name, *keys):
        self("send-keys", "-t", name, *keys)

    def wait_for(self, name, text, timeout=60):
        """Returns the first screen that has the text: the next one may not have it any more."""
        def found():
            screen = self.screen(name)
            return re.search(text, screen, re.M) and screen
        return wait_for(found, timeout, f"{text!r} on the screen of {name}", every=0.1)

    def run(self, name, command):
        """Returns the screen after the command. Leaving the alternate screen shows what former ones have printed."""
        self.commands += 1
        self.keys(name, f"clear; {command}; echo end-{self.commands}", "Enter")
        return self.wait_for(name, rf"^end-{self.commands}$")


@pytest.fixture
def tmux(tmp_path):
    server = Tmux(tmp_path / "tmux")
    yield server
    server("kill-server")


SIZES = {"xterm": 200, "screen": 120, "vt100": 80, "linux": 40}


def shown(screen):
    """{text: {header: value}} of the rows."""
    lines = screen.splitlines()
    head = next((i for i, line in enumerate(lines) if "QUERY" in line), None)
    if head is None:
        return {}
    names = lines[head].split()
    rows = {}
    for line in lines[head + 1:]:
        text = line[lines[head].index("QUERY"):]
        values = line[:lines[head].index("QUERY")].replace("#", "").split()
        if values and re.match(r"[\d.]+", values[-1]):
            rows[text] = dict(zip(names, values))
    return rows


def one_row(screen):
    """The only row of a list that is filtered, and how long the tool has run; None if the list, or a part of it, is not there."""
    rows, up = shown(screen), re.search(r" up (\d+):(\d\d):(\d\d)", screen)
    ((text, row),) = rows.items() if len(rows) == 1 else [("", {})]
    if not up or "pg_sleep" not in text or "Enter details" not in screen:
        return None
    return row, int(up[1]) * 3600 + int(up[2]) * 60 + int(up[3])


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(\D*)", text).groups()
    return float(number) * MS[unit or "0"]


def test_numbers_and_job_control(clusters, tmux):
    """
    Four terminals at once, with 4,000 other groups: calls per second and mean times as in pg_stat_statements and as
    the client's, and after a stop, and after the end, the screen and the modes of before.
    """
    cluster = clusters(name="toptmux", shared_preload_libraries="'pg_stat_statements'", **{"pg_stat_statements.max": "10000"})
    cluster.psql("create extension pg_stat_statements")
    before = {}
    for term, columns in SIZES.items():
        tmux.start(term, columns, term)
        before[term] = modes(tmux, term)
        tmux.keys(term, f"{DBSLOWER} top -p {cluster.pid} --sort calls -i 1", "Enter")
    for term in SIZES:
        tmux.wait_for(term, "CALLS/s")
    began, asleep, sent = time.monotonic(), 0, 0
    with cluster.connect() as connection:
        for n in range(4000):
            connection.pgconn.exec_(b"select 1 as other%d" % n)
            if n % 50 == 0:
                sent = time.monotonic()
                connection.pgconn.exec_(b"select pg_sleep(0.01)")
                asleep += time.monotonic() - sent
        rows = connection.execute("select query, calls, mean_exec_time from pg_stat_statements where calls = 80").fetchall()
    ((_, calls, mean),) = rows
    for term in SIZES:
        tmux.keys(term, "/")
        tmux.keys(term, "-l", "pg_sleep(?)")
        tmux.keys(term, "Enter")
    for term in SIZES:
        # There are no details of a statement of the first interval, which has not ended.
        wait_for(lambda term=term: one_row(tmux.screen(term)), what=f"one row on {term}")
        tmux.keys(term, "Enter")
        tmux.wait_for(term, rf"^calls +{calls}$")
        tmux.keys(term, "q")
        row, seconds = wait_for(lambda term=term: one_row(tmux.screen(term)), what=f"one row on {term}")
        # Between the time that the server and that the client has measured, but for the digits that are not shown.
        assert mean * 0.98 <= milliseconds(row["MEAN"]) <= asleep * 1000 / calls * 1.02, (row, mean, asleep)
        # The interval of the last statement may end before its client goes on.
        assert calls / (seconds + 2) * 0.98 <= float(row["CALLS/s"]) <= calls / (sent - began) * 1.02, (row, seconds, sent - began)
    tmux.keys("vt100", "C-z")
    stopped = tmux.wait_for("vt100", "Stopped")
    assert "CALLS/s" not in stopped.splitlines()[-1]
    assert modes(tmux, "vt100") == before["vt100"]
    tmux.keys("vt100", "fg", "Enter")
    tmux.wait_for("vt100", r"pg_sleep\(\?\)")
    for term in SIZES:
        tmux.keys(term, "q")
    for term in SIZES:
        tmux.wait_for(term, "statements, ")
        assert modes(tmux, term) == before[term]
        assert tmux("display-message", "-p", "-t", term, "#{alternate_on} #{wrap_flag} #{cursor_flag}").strip() == "0 1 1"


def modes(tmux, term):
    """All modes and control characters of the terminal, while the shell runs a command."""
    screen = tmux.run(term, "stty -g")
    return re.search(r"^[0-9a-f]+:[0-9a-f:\n]{60,}", screen, re.M)[0].replace("\n", "")


@pytest.mark.alone
def test_overhead(postgres):
    """With the kernel's BPF statistics the overhead is that of the programs, which fdinfo has."""
    path = "/proc/sys/kernel/bpf_stats_enabled"
    if not os.path.exists(path):
        pytest.skip("this kernel has no BPF statistics")
    with open(path, encoding="utf-8") as f:
        was = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write("1")
    try:
        with Terminal("top", "-p", postgres.pid, "-i", "0.5", width=120) as terminal:
            terminal.wait_for("% BPF")
            stop = threading.Event()
            thread = threading.Thread(target=load, args=(postgres, stop))
            thread.start()
            try:
                lines = terminal.wait_for(r"\+ (0\.[1-9]|0\.0[1-9]|[1-9])\d*% BPF")
            finally:
                stop.set()
                thread.join()
            assert any("% CPU" in line for line in lines)
            terminal.send("q")
            assert terminal.stop()[0] == 0
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(was)


def test_keys(postgres):
    """Keys that read like those of htop and pg_activity."""
    with Terminal("top", "-p", postgres.pid, "-i", "0.2", width=120, env={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for("by total, since the start")
        postgres.psql(*(f"select {n} as a" for n in range(5)), "select count(*) from pg_class", "select 1 / 0", check=False)
        terminal.wait_for("select count")
        for keys, text in (("c", "by calls"), (">", "by mean"), ("f", "by errors"), ("d", r"last \d"), ("d", "since the start"),
                           (" ", "PAUSED"), ("w", "start with --why"), ("?", "Ctrl-L"), ("q", "select count"),
                           ("e", "engine: postgresql"), ("e", "since the start  PAUSED *$"),
                           ("/count\r", "filter: count"), ("\r", "Statement:"), ("\x1b", "Enter details"),
                           ("\x1b", "PAUSED *$"), ("\x1b[17~", "^p95 "), ("\x1b[A\r", "by rows")):
            terminal.send(keys)
            terminal.wait_for(text)
        postgres.psql("select 'while paused'::text as b")
        terminal.read(0.5)
        assert not any("text as b" in line for line in terminal.screen())
        terminal.send(" ")
        terminal.wait_for("text as b")
        assert not re.search(rb"\x1b\[[0-9;]*[34]\d[;m]", terminal.written), "no colours"
        terminal.send("q")
        assert terminal.stop()[0] == 0
