# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Exceptions that pass a function whose return is traced end the program, which is said."""

import re
import shutil
import signal
import subprocess

import pytest

from requirements import need_root
from tool import Tool

SOURCE = """
#include <cstdio>
extern "C" __attribute__((noinline)) int inner(int i)
{
	if (i & 1)
		throw i;
	return i;
}
extern "C" __attribute__((noinline)) int outer(int i) { return inner(i) + 1; }
int main()
{
	for (int c; puts("ready"), fflush(stdout), (c = getchar()) != EOF;) {
		try {
			outer(c);
		} catch (int) {
		}
	}
}
"""
WORDS = "an exception that passes a function whose return is traced ends the program; trace entries, unless nothing throws through"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    need_root()
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("throws")
    (folder / "throws.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O1", "-o", folder / "throws", folder / "throws.cpp"], check=True)
    return str(folder / "throws")


@pytest.mark.parametrize("probe, latency, says", [("p:{}:outer", (), False), ("r:{}:outer", (), True),
                                                  ("{}:outer", ("--latency",), True), ("r:c:fsync", (), False)],
                         ids=["entry", "return", "latency", "C"])
def test_throws(program, tool, probe, latency, says):
    """Of a C++ program's returns it is said once, of its entries and of C's not. The program shows whether it is true."""
    traced = tool("trace", *latency, probe.format(program), kind=Tool, attached=False)
    traced.wait_for(lambda tool: "dbslower: tracing" in tool.stderr, what="its start")
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out, _ = process.communicate(b"@@A@", timeout=60)
    assert traced.stop() == 0, traced.said()
    assert len(re.findall(re.escape(f"dbslower: {program}: {WORDS}"), traced.stderr)) == int(says), traced.said()
    ends = says and process.returncode == -signal.SIGABRT
    assert ends or (process.returncode == 0 and out.count(b"ready") == 5), (process.returncode, out)
    assert ends or not says, "exceptions pass returns now: the message is not needed any more"
