# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Benchmarks: the cost of tracing, with dbslower and with other tools.

Servers and clients run on one CPU, the tracer on another: unpinned, one client mostly
measures how long an idle CPU takes to wake up. All tracers take turns in every round, the
order changes by round, and each figure is a median with (min-max).

Attached means: the breakpoints are in the server's memory, read there, for all alike.
Peak memory is VmHWM at the end; wait4's ru_maxrss would count this Python before exec.
"""

import argparse
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import bench_alternatives	# noqa: E402
import bench_commands	# noqa: E402
import bench_probes	# noqa: E402
import bench_rate	# noqa: E402
import bench_replay	# noqa: E402
import bench_scale	# noqa: E402
import bench_sample	# noqa: E402
import bench_servers	# noqa: E402
import bench_start	# noqa: E402
from benching import ALL_CPUS, EMPTY, machine, pin	# noqa: E402
from cluster import server_bindir	# noqa: E402

# name: (what it measures, function)
PARTS = {
    "victim": ("a statement of three probe hits, of a program that does nothing else", bench_probes.victim),
    "probes": ("each kind of probe hit, on each kind of instruction", bench_probes.probes),
    "pgbench": ("PostgreSQL's throughput and CPU time", bench_servers.pgbench),
    "maria": ("MariaDB's throughput and CPU time", bench_servers.maria),
    "alternatives": ("the servers' own logs and counters, beside tracers", bench_alternatives.alternatives),
    "start": ("exec to attached and to the first event, memory, size, system calls", bench_start.start),
    "commands": ("the self-test, and lists of probes", bench_commands.commands),
    "rate": ("the highest rate without a loss, and what is lost beyond it", bench_rate.rate),
    "replay": ("ten million recorded statements, printed by top", bench_replay.replay),
    "sample": ("--sample, by sessions and interval", bench_sample.sample),
    "scale": ("10,000 connections; 500 probe sites", bench_scale.scale),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawTextHelpFormatter,
                                     epilog="\n".join(f"{name:12} {what}" for name, (what, _) in PARTS.items()))
    parser.add_argument("parts", nargs="*", help="names separated by commas; all if none is given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=1, help="of each run of pgbench or sysbench")
    parser.add_argument("--only", action="append", help="only tracers with this in their names, and none")
    args = parser.parse_args()
    args.parts = [part for word in args.parts for part in word.split(",") if part] or list(PARTS)
    for part in args.parts:
        if part not in PARTS:
            parser.error(f"no part is called {part}; there are {', '.join(PARTS)}")
    return args


def main():
    args = arguments()
    if os.geteuid() != 0 or not server_bindir():
        sys.exit("bench: needs root and a PostgreSQL server (postgresql-15)")
    if not os.access(EMPTY, os.X_OK):
        sys.exit(f"bench: no {EMPTY}: run make tests")
    # A script's background job has it ignored, and so would all tracers until they ask for it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(machine(), flush=True)
    for part in args.parts:
        begin = time.monotonic()
        try:
            PARTS[part][1](args)
        finally:
            pin(0, *ALL_CPUS)
        sys.stdout.flush()
        print(f"bench: {part} took {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
