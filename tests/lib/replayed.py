# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What replay prints of a recording that a test has made."""

import subprocess
import tempfile

from tool import DBSLOWER, Tool


class Lines:
    """Of a stream that has ended."""

    def __init__(self, data):
        self.data = data
        self.lines = data.splitlines(keepends=True)
        self.text = data.decode(errors="replace")


class Replayed(Tool):
    """A command on a recording, which has ended well, with what a live one has. @made: of recording_maker."""

    def __init__(self, made, *args, **keywords):	# pylint: disable=super-init-not-called
        self.args, self.valid = ["replay", *map(str, args)], 0
        with tempfile.NamedTemporaryFile(suffix=".rec") as file:
            made.save(file.name)
            self.process = subprocess.run([DBSLOWER, "replay", file.name, *map(str, args)], stdin=subprocess.DEVNULL,
                                          capture_output=True, timeout=60, check=False, **keywords)
        self.status = self.process.returncode
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        assert self.status == 0, self.said()

    def said(self):
        return f"--- {self}: exit {self.status}\n{self.stdout[-3000:]}\n--- standard error:\n{self.stderr[-3000:]}"

    @property
    def waits(self):
        """The lock waits that have ended."""
        return [one for one in self.of("lock_wait") if one["outcome"] != "waiting"]

    def of(self, *kinds):
        """The objects of these types."""
        return [one for one in self.objects() if one["type"] in kinds]
