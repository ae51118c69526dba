# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The memory of a traced process: breakpoints in its text, counts in its semaphores.

Independent of the tool: the places come from readelf, the bytes from /proc/PID/mem.
"""

import os
import re
import subprocess

from cluster import title, wait_for

PAGE = 4096


def readelf(*args):
    return subprocess.run(["readelf", "-W", *args], capture_output=True, text=True, check=True).stdout


def usdt_probes(path):
    """[(name, site's address, semaphore's address)] of the file's stapsdt notes."""
    notes = readelf("-n", path)
    return [(name, int(site, 16), int(semaphore, 16)) for name, site, semaphore in re.findall(
        r"Name: (\S+)\s+Location: 0x(\w+), Base: 0x\w+, Semaphore: 0x(\w+)", notes)]


def text_segments(path):
    """[(file offset, address, size)] of the executable segments."""
    return [(int(offset, 16), int(address, 16), int(size, 16)) for offset, address, size in re.findall(
        r"^\s+LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", readelf("-l", path), re.M)]


class Memory:
    """A process's memory, by the addresses of the file that it runs."""

    def __init__(self, pid, path):
        self.pid, self.path = pid, path
        # execve(2) closes the descriptors that its caller waits for before it maps the program, and sets the title after that.
        wait_for(lambda: title(pid) and self.mapped_at() is not None, what=f"process {pid} to map {path}")
        self.base = self.mapped_at()

    def mapped_at(self):
        """Return the address of the beginning of the file, or None."""
        inode = os.stat(self.path).st_ino
        with open(f"/proc/{self.pid}/maps") as maps:
            for entry in maps:
                field = entry.split()
                if len(field) > 5 and int(field[4]) == inode and int(field[2], 16) == 0:
                    return int(field[0].split("-")[0], 16)
        return None

    def read(self, address, size):
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as mem:
            mem.seek(self.base + address)
            return mem.read(size)

    def breakpoints(self):
        """Addresses where the text differs from the file."""
        found = []
        with open(self.path, "rb") as f:
            for offset, address, size in text_segments(self.path):
                f.seek(offset)
                disk, here = f.read(size), self.read(address, size)
                for page in range(0, size, PAGE):
                    if disk[page:page + PAGE] != here[page:page + PAGE]:
                        found += [address + n for n in range(page, min(page + PAGE, size)) if disk[n] != here[n]]
        return found

    def semaphores(self):
        """{probe's name: its semaphore's value} of those that are not 0."""
        values = {name: int.from_bytes(self.read(semaphore, 2), "little")
                  for name, _, semaphore in usdt_probes(self.path) if semaphore}
        return {name: value for name, value in values.items() if value}
