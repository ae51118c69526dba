# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs of tests that only need CPU time: builds, emulators.

A module lists them in background_jobs(NAMES), for the names of its tests that are to run: (FUNCTION, ARGS...), where
FUNCTION is at the top of a module and is called with a folder of its own before ARGS. The jobs begin with the first test
and run in other processes, at a low priority: any other test comes first, and an emulator still gets a CPU before what it
emulates gives up waiting. Tests of such modules come after the others. What a job returns or raises is what result()
does, in either order.
"""

import concurrent.futures
import ctypes
import multiprocessing
import os
import shutil
import signal
import tempfile

import pytest

PR_SET_PDEATHSIG = 1
NICE = 10


class Jobs:
    """start() and result() of jobs, in the order of start(), one on each CPU; end() leaves nothing behind."""

    def __init__(self):
        self.pool = self.folder = None
        self.futures = {}

    def start(self, *job):
        if job in self.futures:
            return
        if not self.pool:
            self.folder = tempfile.mkdtemp(prefix="dbslower-background-")
            self.pool = concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), be_nice)
        function, *args = job
        place = os.path.join(self.folder, str(len(self.futures)))
        os.mkdir(place)
        self.futures[job] = self.pool.submit(attempt, function, place, *args)

    def result(self, *job):
        """Return what the job does. From now on it is waited for, so that it no longer leaves the CPU to others."""
        self.start(*job)
        while not self.futures[job].done():
            self.hurry()
            concurrent.futures.wait([self.futures[job]], 1)
        value, skipped = self.futures[job].result()
        if skipped is not None:
            pytest.skip(skipped)
        return value

    def hurry(self):
        """A child that is forked meanwhile is found the next time."""
        for thread in self.threads():
            try:
                os.setpriority(os.PRIO_PROCESS, thread, 0)
            except OSError:
                continue	# it has ended, or this is not root

    def threads(self):
        """Those of the jobs; each process of the pool leads a group."""
        groups = set(self.pool._processes)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getpgid(int(pid)) in groups:
                    yield from map(int, os.listdir(f"/proc/{pid}/task"))
            except OSError:
                continue

    def end(self):
        if not self.pool:
            return
        groups = list(self.pool._processes)
        unfinished = not all(one.done() for one in self.futures.values())
        self.pool.shutdown(wait=not unfinished, cancel_futures=True)
        for group in groups if unfinished else []:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
        self.__init__()


def attempt(function, *args):
    """What the function returns, and why it skips, which as an exception another process could not be told."""
    try:
        return function(*args), None
    except pytest.skip.Exception as why:
        return None, str(why)


def end_with_parent(sig=signal.SIGKILL):
    """Signal this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sig)


def be_nice():
    """In a process of the pool: it and what it starts leave the CPUs to others, and end with the tests."""
    os.setpgid(0, 0)
    os.nice(NICE)
    end_with_parent()


jobs = Jobs()
start, result, end = jobs.start, jobs.result, jobs.end


def start_all(items):
    """Start the jobs of the modules of these tests."""
    modules = {}
    for item in items:
        if has_jobs(item):
            modules.setdefault(item.module, set()).add(item.name)
    for module, names in modules.items():
        for job in module.background_jobs(names):
            start(*job)


def has_jobs(item):
    return hasattr(getattr(item, "module", None), "background_jobs")
