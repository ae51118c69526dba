# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What older kernels are traced with, forced on this one; test_oracle.py has their statements."""

import re
import time

from cluster import wait_for
from test_postgres import only, stopped, text_of, with_tag
from test_stat import Stat
from tool import run


# --- perf buffers

def test_perfbuf_wakes(postgres, tool):
    """A tool that has gone to sleep shows the next statement at once, and costs nothing until then."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--force-perfbuf")

    def switches():
        with open(f"/proc/{traced.pid}/status") as f:
            return int(f.read().split("voluntary_ctxt_switches:")[1].split()[0])
    with postgres.connect() as connection:
        for n in range(4):
            time.sleep(1.0)
            before = switches()
            time.sleep(1.0)
            assert switches() - before < 20, "it does not sleep"
            begin = time.monotonic()
            connection.execute(f"select 1 /* wake {n} */")
            wait_for(lambda: with_tag(traced, f"wake {n}"), 30, "the statement", every=0.005)
            assert time.monotonic() - begin < 1, "it was not woken"
    stopped(traced)


def test_perfbuf_longest_text(postgres, tool):
    """A record of perf has at most 64 KiB: what does not fit is marked."""
    traced = tool("postgres", "-m", "0", "--json", "--text", "1024k", "-p", postgres.pid, "--force-perfbuf")
    fits, cut = text_of(64744, "fits"), text_of(64745, "cut")
    postgres.psql(fits, cut)
    traced.stop()
    assert only(traced, "fits")["query"] == fits and not only(traced, "fits")["truncated"]
    one = only(traced, "cut")
    assert one["query"] == cut[:64744] and one["truncated"] and one["query_bytes"] == 64745
    assert not traced.lost(), traced.said()


def test_perfbuf_stat(postgres, tool):
    """What is counted in the kernel needs no buffer; that a program was executed is still told."""
    traced = tool("stat", "postgres", "-m", "0", "--json", "-p", postgres.pid, "--force-perfbuf",
                  kind=Stat)
    postgres.psql(*["select 1"] * 10)
    assert traced.stop() == 0, traced.said()
    assert sum(one["count"] for one in traced.histograms) == 10 and not traced.lost(), traced.said()


# --- reading memory

def helpers(*args):
    """The names and numbers of what the programs call, as -v has them; of all programs that a server takes."""
    done = run("postgres", "-v", "-d", "0.1", *args)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"call (\w+#\d+)", done.stderr))


def test_probe_read_calls_no_newer_helper(postgres):
    """The numbers are those of enum bpf_func_id: 112 and 114, 4 and 45."""
    newer, older = {"probe_read_user#112", "probe_read_user_str#114"}, {"probe_read#4", "probe_read_str#45"}
    assert newer <= helpers("-p", postgres.pid) and not older & helpers("-p", postgres.pid)
    forced = helpers("-p", postgres.pid, "--force-probe-read")
    assert older <= forced and not newer & forced
