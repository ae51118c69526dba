# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A text is read from the memory of the process that runs the statement, and of no other one."""

import os
import signal
import subprocess

import pytest

import intruder
from intruder import Intruder
from requirements import need_root

pytestmark = pytest.mark.alone

SECRET = "the-password-of-another-user"
QUERY = 0x58		# offset of the text in the intruder's session object
VICTIM = r"""
#include <unistd.h>
__attribute__((used)) struct { const char *text; unsigned long length; } secret = { "%s", %d };
int main(void) { for (;;) pause(); }
"""


@pytest.fixture
def victim(tmp_path):
    """A program that has a secret at a known address: (path, address)."""
    path = tmp_path / "victim"
    (tmp_path / "victim.c").write_text(VICTIM % (SECRET, len(SECRET)))
    subprocess.run(["gcc", "-no-pie", "-o", path, tmp_path / "victim.c"], check=True)
    os.chmod(path, 0o755)
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return path, int(next(line for line in symbols.splitlines() if line.endswith(" D secret")).split()[0], 16)


def started_as(pid, path):
    """Start the program as another user with this PID. Return None if another process has taken it."""
    for _ in range(20):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
            f.write(str(pid - 1))
        process = subprocess.Popen([path], user=1002, group=1002, extra_groups=[], cwd="/")
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return None


def test_pid_was_reused(tmp_path, tool, victim):
    """A statement that its process left open, with the address of a session object in another program."""
    need_root()
    path, address = victim
    program = intruder.build(tmp_path)
    traced = tool("-x", program, "-m", "0", "--json")
    for _ in range(20):
        with Intruder(program) as other:
            other.do(f"begin {address - QUERY:x} 1")
        process = started_as(other.pid, path)
        if process:
            break
    else:
        pytest.skip("the PIDs are in use")
    try:
        traced.process.send_signal(signal.SIGUSR1)
        traced.stop()
        assert traced.process.returncode == 0
        assert SECRET not in traced.stdout, "it shows the memory of another user's process"
    finally:
        process.kill()
        process.wait()
