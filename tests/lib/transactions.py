# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command transactions while it runs."""

import datetime

from tool import Tool


class Transactions(Tool):
    def ready(self):
        return any(line.startswith((b"dbslower: tracing", b"Tracing database transactions")) for line in self.err.lines + self.out.lines)

    def ended(self, **members):
        """Those that have ended and have these members."""
        return [one for one in self.objects() if one["type"] == "transaction" and members.items() <= one.items()]

    def nth(self, number, **members):
        """Wait for a number of those; return the last one."""
        return self.wait_for(lambda tool: tool.ended(**members)[number - 1:], what=f"{number} transactions of {members}")[0]

    @property
    def open(self):
        """The last state of those that have not ended, by PID."""
        return {one["pid"]: one for one in self.objects() if one["type"] == "open"}

    def complete(self):
        assert self.stop() == 0 and "nothing lost" in self.stderr, self.said()


def seconds(stamp):
    """RFC 3339 with nanoseconds, in seconds since 1970."""
    whole, fraction = stamp.rstrip("Z").split(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + fraction)
