# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: replay of many statements, beside a decompressor that only reads the same data."""

import contextlib
import functools
import os
import subprocess
import tempfile
import time

import recording
from benching import TRACER_CPU, figure, heading, peak_kib, pin, table
from cluster import Cluster, wait_for
from tool import DBSLOWER

STATEMENTS = 10_000_000
TRANSACTIONS = 100_000		# of each client of the run that is recorded


def number(value):
    """As docs/recording.md encodes it."""
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


@functools.cache
def pairs():
    """CRC32C of two bytes."""
    one = recording.TABLE
    return [one[one[n & 0xff] & 0xff ^ n >> 8] ^ one[n & 0xff] >> 8 for n in range(65536)]


def crc32c(data):
    value, both = 0xffffffff, pairs()
    even = len(data) & ~1
    for pair in memoryview(data)[:even].cast("H"):
        value = value >> 16 ^ both[(value ^ pair) & 0xffff]
    for byte in data[even:]:
        value = value >> 8 ^ recording.TABLE[(value ^ byte) & 0xff]
    return value ^ 0xffffffff


def later(events, ns):
    """The events of a block, @ns later: only the first statement or lock wait has a time that is not relative."""
    cursor = recording.Cursor(events)
    while cursor.at < cursor.end:
        at, kind, length = cursor.at, cursor.number(), cursor.number()
        begin = cursor.at
        body = recording.Cursor(events, begin, begin + length)
        cursor.at = body.end
        if kind in (6, 7):
            body.number()
        elif kind == 8:
            break
        else:
            continue
        first, start = body.at, body.difference(0) + ns
        moved = events[begin:first] + number(2 * start) + events[body.at:body.end]
        return events[:at] + number(kind) + number(len(moved)) + moved + events[cursor.at:]
    return events


def repeated(path, out, statements):
    """A recording of so many statements: the blocks of @path again and again, each time later."""
    found = recording.read(path)
    blocks = [one for one in found.blocks if one.kind == recording.EVENTS]
    span = max(one.end_ns for one in blocks) - min(one.begin_ns for one in blocks) + 10 ** 9
    sequence = count = 0

    def put(kind, begin, end, number_of, events):
        nonlocal sequence
        head = recording.HEAD.pack(recording.MAGIC, 0, recording.VERSION, kind, found.blocks[0].id, sequence, begin, end, number_of,
                                   found.blocks[0].layout, len(events), crc32c(events))
        out.write(head[:8] + recording.crc32c(head[12:]).to_bytes(4, "little") + head[12:] + events)
        sequence += 1

    put(recording.START, 0, 0, 0, bytes(found.blocks[0].events))
    for turn in range(1 << 30):
        for block in blocks:
            if count >= statements:
                put(recording.END, 0, 0, 0, b"")
                return count
            shift = turn * span
            put(recording.EVENTS, block.begin_ns + shift, block.end_ns + shift, block.statements, later(bytes(block.events), shift))
            count += block.statements
    return count


def record(path):
    """pgbench -S, recorded at threshold 0."""
    with Cluster(name="replayed", log_min_duration_statement="-1", autovacuum="off").init() as cluster:
        cluster.start()
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True)
        with tempfile.TemporaryFile() as said:
            recorder = subprocess.Popen([DBSLOWER, "record", path, "0", "-p", str(cluster.pid)], stderr=said, stdin=subprocess.DEVNULL)
            wait_for(lambda: os.pread(said.fileno(), 4096, 0), 60, "the recorder")
            subprocess.run(["pgbench", "-n", "-S", "-c", "2", "-t", str(TRANSACTIONS)], env=cluster.env(), check=True, capture_output=True)
            recorder.terminate()
            assert recorder.wait() == 0, os.pread(said.fileno(), 4096, 0)


def timed(command):
    """Seconds, those of the CPU, and peak memory in MiB of a command. Those of a pipeline are the shell's memory."""
    begin, peak = time.monotonic(), 0
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: pin(0, TRACER_CPU))
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with contextlib.suppress(TypeError):	# it has just ended
            peak = peak_kib(process.pid) / 1024
        time.sleep(0.01)
    taken = time.monotonic() - begin
    _, process.returncode, used = os.wait4(process.pid, 0)
    assert process.returncode == 0, command
    return taken, used.ru_utime + used.ru_stime, peak


def replay(args):
    with tempfile.TemporaryDirectory() as folder:
        run, path, packed, lines = (os.path.join(folder, name) for name in ("run", "many", "many.zst", "lines.zst"))
        record(run)
        with open(path, "wb") as out:
            count = repeated(run, out, STATEMENTS)
        subprocess.run(["zstd", "-q", "-3", path, "-o", packed], check=True)
        subprocess.run(["sh", "-c", f"'{DBSLOWER}' replay '{path}' 0 --json 2>/dev/null | zstd -q -3 -o '{lines}'"], check=True)
        rows = [(f"replay FILE top, {os.path.getsize(path) >> 20} MiB", (DBSLOWER, "replay", path, "top")),
                (f"zstd -d | wc of FILE, {os.path.getsize(packed) >> 20} MiB", ("sh", "-c", f"zstd -qdc {packed} | wc")),
                (f"zstd -d | wc of the JSON, {os.path.getsize(lines) >> 20} MiB", ("sh", "-c", f"zstd -qdc {lines} | wc"))]
        taken = {name: [] for name, _ in rows}
        for _ in range(args.rounds):
            for name, command in rows:
                taken[name].append(timed(command))
    heading(f"{count} statements of pgbench -S, recorded at threshold 0, {args.rounds} rounds on one CPU")
    table([["", "s", "CPU s", "peak MiB"]] +
          [[name, *(figure([one[n] for one in taken[name]], form) if n < 2 or command[0] == DBSLOWER else "-"
                    for n, form in enumerate(("{:.2f}", "{:.2f}", "{:.1f}")))] for name, command in rows])
