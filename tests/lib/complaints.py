# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the oracles complain about, and what a test makes of it."""

RUNS = 4	# of a comparison whose tracers lost records


class Off(str):
    """A complaint about durations."""


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
    """A tracer got no CPU for so long that it had to drop records, and has counted them."""


def repeated(run):
    """Return the complaints of run(), which is called again after records were lost."""
    complaints = []
    for _ in range(RUNS):
        try:
            return run()
        except RingFull as why:
            complaints = [f"records were lost: {why}"]
            print(*complaints)
    return complaints
