# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: many connections, and many probe sites."""

import glob
import os
import re
import subprocess
import tempfile
import time

from backends import Backends
from benching import BPFTRACE, Tracer, compile_fixture, end, figure, heading, lost_statements, only, peak_kib, settled, \
    summary_of, table, turns
from cluster import wait_for
from elffile import Memory
from tool import DBSLOWER

CONNECTIONS = 10000
SITES = 500
FEWER = 25		# for bpftrace: each goes by itself, which waits for a grace period of the kernel's


def scale(args):
    connections(args)
    sites(args)


# --- connections

def memory_of(pid):
    """(KiB of memory of its own, KiB of all its maps as the kernel counts them)."""
    with open(f"/proc/{pid}/status") as f:
        anonymous = int(re.search(r"RssAnon:\s+(\d+)", f.read())[1])
    maps = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with open(path) as f:
            said = dict(re.findall(r"^(\w+):\s+(\S+)$", f.read(), re.M))
        if "map_type" in said:
            maps[said["map_id"]] = int(said["memlock"])
    return anonymous, sum(maps.values()) / 1024


def printed(path):
    with open(path, "rb") as f:
        return sum(line.startswith(b'{"type":"statement"') for line in f)


def lost(path):
    """{words: number lost} so far."""
    with open(path, errors="replace") as f:
        _, lost = summary_of(f.read()) or (0, {})
    return lost


def connections_once(program, folder, options):
    """
    Memory with no connection, with all of them, and when they are gone; and what was lost. A statement that was lost and
    counted is done with, too.
    """
    path, messages = os.path.join(folder, "out"), os.path.join(folder, "messages")
    with Backends(program) as server, open(path, "wb") as out, open(messages, "wb") as err:
        process = Tracer("", [DBSLOWER, "postgres", "-p", str(server.pid), "-m", "0", "--json", *options]).start(out, err)
        memory = Memory(server.pid, program)
        try:
            settled(memory, process, lambda: open(messages, errors="replace").read())
            found = [memory_of(process.pid)]
            server.do(f"threads {CONNECTIONS} select 1")
            wait_for(lambda: printed(path) + lost_statements(lost(messages)) >= CONNECTIONS, 60,
                     f"{CONNECTIONS} statements to be printed, or counted as lost")
            found.append(memory_of(process.pid))
            server.do("leave 0 -")
            # The tool hears of each end.
            wait_for(lambda: memory_of(process.pid)[1] <= found[0][1] + 1, 60, "the sessions to be gone")
            found.append(memory_of(process.pid))
        except TimeoutError as why:
            raise TimeoutError(f"{why}; {printed(path)} printed, lost: {lost(messages)}") from None
        finally:
            end(process, memory)
    return found, lost(messages)


def connections(args):
    ways = {"dbslower -m 0 --json": [], "… --text 256": ["--text", "256"]}
    found, losses = {name: [] for name in ways}, []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_fixture("backends.c", os.path.join(folder, "postgres"), "-pthread")
        for _ in range(args.rounds):
            for name, options in ways.items():
                memory, lost_ = connections_once(program, folder, options)
                found[name].append(memory)
                losses.append((name, lost_))
    heading(f"{CONNECTIONS} connections of a make-believe server, each of which has run a statement, "
            f"{len(next(iter(found.values())))} rounds")
    rows = [["", "the tool, KiB", "with them", "when they are gone", "maps, KiB", "with them", "a connection: the tool's bytes",
             "the maps'"]]
    for name, all_ in found.items():
        cells = [figure([one[n][which] for one in all_], "{:.0f}") for which, n in
                 ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))]
        cells += [figure([(one[1][which] - one[0][which]) * 1024 / CONNECTIONS for one in all_], "{:.0f}") for which in (0, 1)]
        rows.append([name, *cells])
    table(rows)
    for name, lost_ in losses:
        if lost_:
            print(f"\n{name} lost " + ", ".join(f"{number} {words}" for words, number in lost_.items()) + ".")


# --- probe sites

def many(folder):
    """A program with so many USDT probes, whose arguments are in various places; it hits each once for a line."""
    source, path = os.path.join(folder, "many.c"), os.path.join(folder, "many")
    with open(source, "w") as f:
        f.write("#include <stdio.h>\n#include <sys/sdt.h>\n")
        for n in range(SITES):
            first = ("a", "v[0]", f"{n}")[n % 3]
            f.write(f"static __attribute__((noinline)) void f{n}(long a, short b, const char *c)\n"
                    f"{{\n\tvolatile long v[{n % 7 + 1}] = {{ a }};\n\tSTAP_PROBE3(many, p{n}, {first}, b, c);\n}}\n")
        f.write("int main(void)\n{\n\tputs(\"ready\");\n\tfflush(stdout);\n\twhile (getchar() != EOF) {\n")
        f.writelines(f"\t\tf{n}({n}, {n % 100}, \"text\");\n" for n in range(SITES))
        f.write("\t\tputs(\"done\");\n\t\tfflush(stdout);\n\t}\n\treturn 0;\n}\n")
    subprocess.run(["gcc", "-O1", "-o", path, source], check=True)
    return path


def sites_once(path, tracer, times, out):
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        memory = Memory(program.pid, path)
        out.seek(0)
        out.truncate()
        begin = time.monotonic()
        process = tracer.start(out)
        try:
            wait_for(lambda: process.poll() is not None or len(memory.breakpoints()) == tracer.wanted, 120,
                     f"{tracer.name} to attach", every=0)
            times["attach"].append((time.monotonic() - begin) * 1000)
            time.sleep(0.3)
            program.stdin.write("\n")
            program.stdin.flush()
            program.stdout.readline()
            time.sleep(0.3)
            times["peak"].append(peak_kib(process.pid))
            begin = end(process)
            wait_for(lambda: not memory.breakpoints(), 120, "the breakpoints to be gone", every=0)
            times["detach"].append((time.monotonic() - begin) * 1000)
        finally:
            end(process)
            program.stdin.close()
    out.seek(0)
    times["hits"].append(tracer.count(out.read().decode(errors="replace")))


def sites(args):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        path = many(folder)
        trace = [DBSLOWER, "trace", path, "many:*", "--json"]
        all_ = [Tracer(f"dbslower trace, on {SITES}", trace)]
        all_[0].wanted = SITES
        all_[0].count = lambda said: said.count('{"type":"hit"')
        if BPFTRACE:
            probes = ",".join(f"usdt:{path}:many:p{n}" for n in range(FEWER))
            all_.append(Tracer(f"bpftrace, on {FEWER}", [BPFTRACE, "-e", f"{probes} {{ printf(\"%s %d\\n\", probe, arg1); }}"]))
            all_[-1].wanted = FEWER
            all_[-1].count = lambda said: len(re.findall(r"^usdt:", said, re.M))
        all_ = only(all_, args.only)
        times = {one.name: {"attach": [], "detach": [], "peak": [], "hits": []} for one in all_}
        for number in range(args.rounds):
            for one in turns(all_, number):
                sites_once(path, one, times[one.name], out)
    heading(f"{SITES} USDT probes of a program that runs, each hit once, {args.rounds} rounds")
    table([["", "exec to attached, ms", "SIGINT to detached, ms", "peak memory, KiB", "hits shown"]] + [
        [name, *(figure(of[key], "{:.0f}") for key in ("attach", "detach", "peak", "hits"))]
        for name, of in times.items()])
