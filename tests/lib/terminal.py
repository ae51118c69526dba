# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dbslower on a pseudo terminal, whose screen is emulated by pyte."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from tool import DBSLOWER, Reader


class Terminal:
    """The tool as the leader of a session of its own. With reading=False nothing reads what it writes."""

    def __init__(self, *args, width=80, height=24, term="xterm", env=None):
        self.width, self.height = width, height
        self.written = b""			# by the tool
        self.master, self.slave = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([DBSLOWER, *map(str, args)], stdin=self.slave, stdout=self.slave,
                                        stderr=subprocess.PIPE, env={**os.environ, **(env or {}), "TERM": term},
                                        start_new_session=True, preexec_fn=self.control)
        self.err = Reader(self.process.stderr)

    def control(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, width, height):
        self.width, self.height = width, height
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def send(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds=0.02):
        """Reads what the tool has written until it has been silent for that long. Returns False if it did not become silent."""
        end = time.monotonic() + 1
        while select.select([self.master], [], [], seconds)[0]:
            self.written += os.read(self.master, 65536)
            if time.monotonic() > end:
                return False
        return True

    def read_all(self):
        """Reads the rest of what the tool has written, once it has ended."""
        while not self.read(0):
            pass

    def screen(self):
        """The emulated screen: the lines as they are after all that was read."""
        import pyte
        screen = pyte.Screen(self.width, self.height)
        # pyte has no alternate screen, and would let the lines of a size before wrap.
        pyte.ByteStream(screen).feed(self.written[self.written.rfind(b"\x1b[2J"):])
        return screen.display

    def until(self, found, what, timeout=60):
        """Reads until found() is true; returns its value."""
        end = time.monotonic() + timeout
        while True:
            status = self.process.poll()	# before what it has written is read: an ended one writes no more
            self.read()
            value = found()
            if value:
                return value
            assert time.monotonic() < end and status is None, \
                f"no {what}, exit {status}:\n" + "\n".join(self.screen()) + f"\n{self.err.text}"

    def wait_for(self, text, timeout=60):
        """Reads until a line of the screen has this text; returns the lines."""
        def found():
            lines = self.screen()
            return any(re.search(text, line) for line in lines) and lines
        return self.until(found, f"{text!r} on the screen", timeout)

    def attached(self):
        """Waits until it says so, as it does without a screen."""
        self.until(lambda: b"tracing" in b"".join(self.err.lines), "message of the probes")

    def lines(self, start=0):
        """The lines of all frames from byte start on: each begins with the position of the cursor."""
        for piece in re.split(rb"\x1b\[\d+;1H\x1b\[K", self.written[start:])[1:]:
            piece = piece.split(b"\x1b[2J")[0].split(b"\x1b[0m\x1b[")[0]
            yield re.sub(rb"\x1b\[[0-9;]*m|\x1b\[\?\d+[hl]", b"", piece).decode()

    def stop(self, sig=None):
        """Ends it, by a signal or as it was asked to; returns exit status and standard error."""
        if sig:
            self.process.send_signal(sig)
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        return self.end(1)

    def end(self, timeout=60):
        """Waits for its end without reading what it writes; returns the same."""
        status = self.process.wait(timeout)
        self.read_all()
        self.err.join(60)
        return status, self.err.text

    def is_restored(self):
        """Whether the modes are those of before, and the last thing sent is to leave the alternate screen."""
        return (termios.tcgetattr(self.slave) == self.before and
                self.written.rfind(b"\x1b[?1049l") > self.written.rfind(b"\x1b[?1049h") and
                self.written.rfind(b"\x1b[?7h") > self.written.rfind(b"\x1b[?7l") and
                self.written.rfind(b"\x1b[?25h") > self.written.rfind(b"\x1b[?25l"))

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.restored = self.is_restored()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.err.join(60)
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)
