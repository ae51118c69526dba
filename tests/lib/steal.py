# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The CPU time that a hypervisor gives to other guests, and which durations that are off it explains.

The kernel cannot attribute this time to a statement. It reports it for each CPU, so a comparison of durations is
judged by all of its run: one that is off while time was stolen is repeated. If each of RUNS runs was disturbed, it
must be off by no more than was stolen. A run without such time is calm, and its complaints are final.
"""

import os
import time

STEAL_SHARE = 0.01	# of a run's time; with less it is calm
RUNS = 4


class Off(str):
    """
    A complaint about durations: @share of them are outside of the tolerance, of which @usual may be; or about one that is
    off by @ms.
    """

    def __new__(cls, text, ms=None, share=0.0, usual=0.0):
        self = super().__new__(cls, text)
        self.ms, self.share, self.usual = ms, share, usual
        return self


class Steal:
    """The CPU time that the hypervisor gave to other guests in the body of a with statement, which is what is timed."""

    def __init__(self, path="/proc/stat"):
        self.path = path
        self.tick_ms = 1000 / os.sysconf("SC_CLK_TCK")	# a time is known no better

    def __enter__(self):
        self.before, self.start = self.read(), time.monotonic()
        return self

    def __exit__(self, *why):
        self.elapsed_ms = (time.monotonic() - self.start) * 1000
        self.cpus_ms = [ms - self.before.get(cpu, ms) for cpu, ms in self.read().items()]

    def read(self):
        """Return {CPU: ms stolen since the start}."""
        with open(self.path) as stat:
            lines = [line.split() for line in stat if line.startswith("cpu")]
        return {line[0]: int(line[8]) * self.tick_ms for line in lines if line[0] != "cpu"}

    @property
    def ms(self):
        """The time of all CPUs."""
        return sum(self.cpus_ms)

    @property
    def share(self):
        """
        The share of the run that was stolen from the CPU that lost most. A statement runs on one CPU at a time, so no
        larger share of them can have been disturbed, wherever they ran.
        """
        return min(max(self.cpus_ms) / self.elapsed_ms, 1.0)

    def explains(self, complaints):
        """Return whether the complaints are about durations alone, and the run was disturbed: it is to be repeated."""
        return only_off(complaints) and all(self.ms >= self.least(one) for one in complaints)

    def least(self, one):
        """Return the least time that may explain the complaint."""
        share = STEAL_SHARE * self.elapsed_ms
        return share if one.ms is None else min(share, one.ms - self.tick_ms)

    def excuses(self, complaints):
        """Return whether the run was disturbed, and no more is off than what is usual and what was stolen."""
        return self.explains(complaints) and all(
            one.share <= one.usual + self.share if one.ms is None else one.ms - self.tick_ms <= self.ms for one in complaints)


def only_off(complaints):
    return bool(complaints) and all(isinstance(one, Off) for one in complaints)


class DurationsOff(AssertionError):
    """Durations alone are off. It is what a test with the marker calm is repeated for, see conftest.py; no other failure is."""


def report(complaints):
    """Fail unless there are none."""
    if complaints:
        raise (DurationsOff if only_off(complaints) else AssertionError)(
            f"{len(complaints)} complaints:\n" + "\n".join(complaints[:40]))


class RingFull(Exception):
    """A tool had to drop records, and has counted them."""


def repeated(run, steal=Steal):
    """
    Call run(STEAL) for its complaints, again after a run in which the machine disturbed what it did with the Steal. Return
    the last ones; none if each run was disturbed, and one was off by no more than that.
    """
    excused = False
    for _ in range(RUNS):
        stolen = steal()
        try:
            complaints = run(stolen)
        except RingFull as why:
            complaints = [f"records were lost: {why}"]
            print(*complaints)
            continue
        if not stolen.explains(complaints):
            return complaints
        excused |= stolen.excuses(complaints)
        print(f"{len(complaints)} complaints, but the hypervisor took {stolen.ms:.0f} of {stolen.elapsed_ms:.0f} ms, "
              f"{stolen.share:.1%} of a CPU:", *complaints, sep="\n")
    return [] if excused else [*complaints, Off(f"{RUNS} runs, each disturbed")]
