# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dbslower, interrupted while it attaches to a file that many idle processes map."""

import os
import re
import shutil
import signal
import subprocess
import time

from cluster import children
from elffile import readelf

PROBES = 40

SOURCE = """
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <unistd.h>

#define SEMAPHORE(n) unsigned short idle_probe##n##_semaphore __attribute__((section(".probes"), used));
#define PROBE(n) STAP_PROBE1(idle, probe##n, argc);
ALL(SEMAPHORE)

int main(int argc, char *argv[])
{
	if (argc > 2) {
		ALL(PROBE)
	}
	for (int i = atoi(argv[1]); i; i--) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, 9);
		pause();
		_exit(0);
	}
	puts("ready");
	fflush(stdout);
	pause();
}
"""


def build(folder):
    """The program, with PROBES probes that have a semaphore each."""
    path = os.path.join(folder, "idle")
    source = f"#define ALL(X) {' '.join(f'X({n})' for n in range(PROBES))}\n" + SOURCE
    subprocess.run(["gcc", "-O1", "-no-pie", "-x", "c", "-o", path, "-"], input=source, text=True, check=True)
    return path


def section(path, name):
    """Address, offset and size."""
    row = re.search(rf" {re.escape(name)} +\w+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", readelf("-SW", path))
    return [int(value, 16) for value in row.groups()]


class Idle:
    """Processes of a copy of the program, which nothing else traces."""

    def __init__(self, program, count, number=0):
        self.path = f"{program}.{number}"
        shutil.copy(program, self.path)
        self.process = subprocess.Popen([self.path, str(count)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pids = [self.process.pid, *children(self.process.pid)]
        assert len(self.pids) == count + 1
        self.text, self.semaphores = section(program, ".text"), section(program, ".probes")
        with open(program, "rb") as f:
            self.code = f.read()[self.text[1]:self.text[1] + self.text[2]]

    def breakpoints(self, pid):
        """The number of bytes that are not those of the file."""
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.text[0])
            code = memory.read(self.text[2])
        return sum(a != b for a, b in zip(code, self.code)) if code != self.code else 0

    def raised(self, pid):
        """The number of semaphores that are not zero."""
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.semaphores[0])
            counters = memory.read(self.semaphores[2])
        return sum(any(counters[i:i + 2]) for i in range(0, len(counters), 2))

    def left(self):
        """How many breakpoints and raised semaphores there are, over all processes."""
        return sum(map(self.breakpoints, self.pids)), sum(map(self.raised, self.pids))

    def left_after(self, seconds):
        """The same once nothing is left, or after that time."""
        end = time.monotonic() + seconds
        while True:
            left = self.left()
            if left == (0, 0) or time.monotonic() > end:
                return left
            time.sleep(0.02)

    def end(self):
        for pid in reversed(self.pids):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        os.unlink(self.path)


def start(tool, idle, *args, probes=("idle:*",), **keywords):
    """The tool on the probes of the processes."""
    return subprocess.Popen([tool, "trace", *args, idle.path, *probes], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)


def wait_attaching(process, idle, sites=1, seconds=60):
    """Wait until the first of the processes has a breakpoint at so many sites: the rest is still to come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if idle.breakpoints(idle.pids[0]) >= sites:
            return
    raise AssertionError("it was not seen attaching")


def wait_detaching(idle, seconds=60):
    """Wait until the first of the processes has lost a breakpoint: the rest is still to be removed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if idle.breakpoints(idle.pids[0]) < PROBES:
            return
    raise AssertionError("it was not seen detaching")


def strace(pid, *options):
    """
    Return strace on a process and those that it starts, from its next system call on. TracerPid is its PID before: when
    the process is seized, which is then still to be stopped.
    """
    process = subprocess.Popen(["strace", "-f", *options, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    said = process.stderr.readline()
    assert f"Process {pid} attached" in said, said
    return process


def leaks(*names):
    """How many uprobes the kernel logged as leaked by processes of these names."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    return len(re.findall(rf"uprobe: (?:{'|'.join(names)}):\d+ failed to unregister", log))
