# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
How many instructions the kernel's verifier follows in each program. It takes about a second for a million of them, and then
refuses the program.
"""

import subprocess

import pytest

import bpf_objects
from cluster import wait_for
from mariadb import Maria
from requirements import need_maria, need_root
from tool import Announced

MOST = 110_000

# Whatever could be read or not, arguments in memory are not followed in each combination.
TWELVE = """
#include <stdio.h>
#include <sys/sdt.h>

int main(void)
{
	static volatile long p[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	volatile long *q = p;

	for (;;) {
		__asm__ volatile("" : "+r"(q));
		STAP_PROBE12(probed, twelve, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8], q[9], q[10], q[11]);
		STAP_PROBE(probed, other);
		if (getchar() == EOF)
			return 0;
	}
}
"""


def verified(traced):
    """{name: instructions} of a tool's programs, the most of those of one name."""
    numbers = wait_for(lambda: bpf_objects.objects(traced.pid)["programs"], what="programs")
    found = dict(sorted(map(bpf_objects.verified, numbers)))
    if not all(found.values()):
        pytest.skip("the kernel tells it from Linux 5.16 on")
    print(found)
    return found


COMMANDS = [
    ("slow", "-m", "1000", "--why", "--use", "--phases"), ("record", "FILE"), ("record", "FILE", "--max-overhead", "1%"),
    ("record", "FILE", "--nested"), ("transactions", "1000"), ("locks", "-m", "1000"), ("top", "--why", "--openmetrics", "FILE"), ("stat", "--by", "user"),
    ("stat", "--by", "command"), ("stat", "--by", "command", "--wait", "cpu"), ("stat", "--by", "command", "--wait", "pread64"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_servers(postgres, tool, tmp_path, command):
    need_maria()
    with Maria().init() as maria:
        maria.start()
        traced = tool(*(str(tmp_path / "file") if one == "FILE" else one for one in command), "-p", f"{postgres.pid},{maria.pid}", kind=Announced)
        found = verified(traced)
    assert {"postgresql", "mysql"} <= found.keys() and max(found.values()) < MOST, found


@pytest.mark.parametrize("how", [("--json",), ("-U",), ("--latency", "probed:other"), ("--count",)], ids=" ".join)
def test_twelve_arguments_in_memory(tool, tmp_path, how):
    need_root()
    (tmp_path / "twelve.c").write_text(TWELVE)
    subprocess.run(["gcc", "-O1", "-o", "twelve", "twelve.c"], check=True, cwd=tmp_path)
    with subprocess.Popen([tmp_path / "twelve"], stdin=subprocess.PIPE) as traced_one:
        traced = tool("trace", "-p", traced_one.pid, "probed:*", *how, kind=Announced)
        assert max(verified(traced).values()) < 10_000
        traced_one.stdin.write(b"\n\n")
        traced_one.stdin.close()
    if how == ("--json",):
        traced.wait_for(lambda _: len(traced.objects()) >= 5, what="the hits")
        hit = next(one for one in traced.objects() if one.get("probe") == "twelve")
        assert hit["args"] == list(range(1, 13)), hit
    assert traced.stop() == 0
