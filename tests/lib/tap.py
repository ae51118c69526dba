# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parse the output of the unit programs: TAP, the Test Anything Protocol."""

import re
import resource

OUTPUT_LIMIT = 256 << 20
RESULT = re.compile(r"(not )?ok\b\s*(\d*)\s*-?\s*([^#]*?)\s*(?:#\s*skip\b\s*(.*))?", re.I)


def limit_output():
    """A loop that writes without end fails its test and not the machine."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_LIMIT, OUTPUT_LIMIT))


def parse_tap(out):
    """Yields (name, ok, reason of a skip or None, the lines before it) of each result line."""
    notes = []
    for line in out.splitlines():
        match = RESULT.fullmatch(line)
        if match:
            yield match[3] or f"test {match[2]}", not match[1], match[4], "\n".join(notes) or line
            notes = []
        else:
            notes.append(line)


def plan_fault(out, status):
    """Why the program's run as a whole is no good, or ''. A crash must not look like an end."""
    results = [match for match in map(RESULT.fullmatch, out.splitlines()) if match]
    plans = re.findall(r"^1\.\.(\d+)\s*$", out, re.M)
    bad = any(match[1] for match in results)
    tail = "\n" + out[-2000:]
    if plans != [str(len(results))]:
        return f"{len(results)} results, plan {plans}, exit {status}:{tail}"
    if not results:
        return "it has no test"
    if status != (1 if bad else 0):
        return f"exit {status} with {'failed' if bad else 'only good'} results:{tail}"
    return ""
