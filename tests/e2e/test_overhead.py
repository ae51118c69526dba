# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--max-overhead: what is left out above the limit, in which order, how it comes back, and that it is counted."""

import datetime
import json
import os
import re
import shutil
import time

import pytest

from backends import Backends, build
from commanded import USER, as_user, reveal
from mariadb import Maria
from fallbacks import OLD
from oracle import STAMP_MS
from recording import Recording
from requirements import need_maria
from tool import FORCE, Stat, refused, run

LIMIT = "0.1%/1"		# far below what a loop takes
HEAD = "select 1"


def events(tool):
    return [one for one in tool.objects() if one["type"] == "overhead"]


def steps(tool):
    return [one["traced"] for one in events(tool)]


def ended(one):
    """When a step was, or a statement ended: seconds since 1970."""
    return datetime.datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp() + one.get("duration_ms", 0) / 1000


def load(server, until, ms=100):
    """Run statements as fast as possible until the condition is true. Return [(when that ended, how many, how many of them began with a probe)]."""
    parts, end = [], time.monotonic() + 60
    while not until():
        assert time.monotonic() < end, "no step was taken"
        said = server.do(f"pace {ms} 0")
        ran, probed = re.match(r"ran (\d+) \d+ (\d+)$", said[0]).groups()
        parts.append((time.time(), int(ran), int(probed)))
    return parts


def links(pid, tracepoint):
    """The number of links of a process to a raw tracepoint."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
                count += f"tp_name:\t{tracepoint}\n" in f.read()
        except OSError:
            pass
    return count


@pytest.fixture
def path(tmp_path):
    path = build(tmp_path)
    reveal(path)
    return path


@pytest.fixture
def server(path):
    with Backends(path) as server:
        yield server


@pytest.mark.parametrize("args", [[], OLD], ids=lambda args: " ".join(args) or "default")
def test_what_is_not_traced_is_counted(server, tool, args):
    """The fixture counts its statements: all but those run without probes were seen; those before that are told apart by text."""
    one = tool("-x", server.path, "-m", "1000", "--json", "--max-overhead", LIMIT, *args)
    with Backends(server.path) as killed:
        killed.do("begin select open")
        parts = load(server, lambda: "nothing" in steps(one))
    server.do(f"run 1000 {HEAD}")
    assert steps(one) == ["no_text", "nothing"]
    one.wait_for(lambda _: steps(one)[-1] == "no_text", 120)
    one.wait_for(lambda _: steps(one)[-1] == "all", 120)
    seen = 10
    server.do(f"run {seen} {HEAD}")
    one.stop()
    assert steps(one) == ["no_text", "nothing", "no_text", "all"], one.said()
    summary = one.summary
    # It ended without probes, so its duration is unknown; as is that of the other one, if it was in a statement then.
    assert not one.statements and summary["lost"]["start_without_end"] in (1, 2), one.said()
    # Those of before and after the pause are of one file.
    (row,) = summary["lost_by_server"]
    assert row["server"]["path"] == server.path and row["start_without_end"] == summary["lost"]["start_without_end"]
    found = events(one)
    # The step's time is when the removal of the probes begins. Those of its part are counted until a probe is gone.
    step = ended(found[1])
    whole, probed = sum(ran for end, ran, _ in parts if end < step), sum(probed for *_, probed in parts)
    assert whole > 1000 and all(ran == probed for end, ran, probed in parts if end < step), parts
    assert whole + seen - 1 <= summary["statements"] <= probed + seen, (parts, one.said())
    assert all(event["uid"] == os.geteuid() and event["server"]["path"] == server.path for event in found)
    assert all(event["limit_ms"] == 1 for event in found) and min(event["cost_ms"] for event in found[:2]) > 1
    assert found[1]["pause_ms"] == 3000
    # The step is reported after the file was attached to.
    assert 3000 <= found[2]["untraced_ms"] <= (ended(found[2]) - ended(found[1])) * 1000 + 1
    assert summary["untraced_ms"] == found[2]["untraced_ms"]
    assert f"{int(summary['untraced_ms'])} ms without probes (overhead limit)" in one.stderr
    assert one.stderr.count(f"dbslower: {server.path} of user ID {os.geteuid()}: the probes take") == 3


def test_pause_doubles(server, tool):
    """While the load lasts, the probes are tried again for a short time, after twice the pause."""
    one = tool("-x", server.path, "-m", "1000", "--json", "--max-overhead", LIMIT, "--strict")
    load(server, lambda: steps(one).count("nothing") == 2)
    found = events(one)
    assert [event["traced"] for event in found] == ["no_text", "nothing", "no_text", "nothing"]
    assert found[3]["pause_ms"] == 2 * found[1]["pause_ms"]
    one.process.terminate()
    assert one.wait() == 1, "time without probes is a loss"
    assert one.summary["untraced_ms"] >= found[2]["untraced_ms"]


@pytest.mark.parametrize("args", [[], OLD], ids=["default", "linux-5.4"])
def test_steps_of_a_server(clusters, server_copy, tool, args):
    """PostgreSQL: each step leaves out what it says, in the log are the statements that were not seen, and all comes back."""
    cluster = clusters(postgres=server_copy)
    one = tool("-p", cluster.pid, "-m", "0", "--json", "--why", "--max-overhead", LIMIT, *args)
    old = bool(args or FORCE)
    assert old or links(one.pid, "sched_switch") == 1
    offset = cluster.log_size()
    with cluster.connect(prepare_threshold=None) as connection:
        end = time.monotonic() + 60
        while "nothing" not in steps(one):
            assert time.monotonic() < end, one.said()
            for _ in range(100):
                connection.execute("select 1")
        assert old or links(one.pid, "sched_switch") == 0
        for _ in range(100):
            connection.execute("select 2")
        one.wait_for(lambda _: steps(one)[-1] == "all", 120)
        for _ in range(10):
            connection.execute("select 3")
    assert old or links(one.pid, "sched_switch") == 1
    cluster.settle()
    one.stop()
    assert steps(one) == ["no_why", "no_text", "nothing", "no_text", "no_why", "all"], one.said()
    no_why, no_text, nothing, again, text, everything = [ended(event) for event in events(one)]
    shown = one.statements
    logged = [(float(end), text) for end, text in re.findall(rb"(?m)^([\d.]+)\|.* statement: (select \d)$", cluster.read_log(offset))]
    before, after = [s for s in shown if ended(s) <= nothing], [s for s in shown if ended(s) > nothing]
    assert [s["query"] for s in after] == ["select 3"] * 10 and all("why_ms" in s for s in after)
    seen = [end for end, text in logged if text == b"select 1" and end <= nothing]
    doubtful = sum(end > nothing - STAMP_MS / 1000 for end in seen)
    assert len(seen) - doubtful <= len(before) <= len(seen) and len(seen) > 1000 > doubtful
    assert sum(text == b"select 2" and nothing < end < again for end, text in logged) == 100
    for s in before:
        start = ended(s) - s["duration_ms"] / 1000
        if start > no_text:
            assert "query" not in s
        elif ended(s) < no_why - 1:
            assert s["query"] == "select 1" and "why_ms" in s
        if start > no_why:
            assert "why_ms" not in s
    lost = one.summary["lost"]
    assert lost["text_dropped"] == sum("query" not in s for s in shown)
    assert lost["why_dropped"] == sum("why_ms" not in s for s in shown)


def test_sessions_of_mariadb(tool):
    """Its sessions are objects, in which connections go on or end without probes: afterwards each has its own statements."""
    need_maria()
    with Maria(slow_query_log="OFF").init() as maria:
        maria.start()
        one = tool("mysql", "-p", maria.pid, "-m", "0", "--json", "--max-overhead", LIMIT)
        with maria.connect() as kept:
            end = time.monotonic() + 60
            with maria.connect() as left:
                while "nothing" not in steps(one):
                    assert time.monotonic() < end, one.said()
                    for client in (kept, left) * 50:
                        client.query("select 1")
            kept.query("select 2")
            one.wait_for(lambda _: steps(one)[-1] == "all", 120)
            with maria.connect() as new:
                for client in (kept, new) * 5:
                    client.query("select 3")
                    client.ping()
        one.stop()
        nothing = ended(events(one)[1])
        after = [s for s in one.statements if ended(s) > nothing]
        assert [s["query"] for s in after] == ["select 3"] * 10 and max(s["duration_ms"] for s in one.statements) < 1000
        assert steps(one) == ["no_text", "nothing", "no_text", "all"] and not one.lost(), one.said()


def test_load_of_another_user(path, tool):
    """A user who runs the same file is limited alone, and can have the probes removed only once no other server has them."""
    one = tool("-x", path, "-m", "0", "--match", "quiet", "--json", "--max-overhead", LIMIT)
    with Backends(path, **as_user()) as noisy:
        with Backends(path) as quiet:
            load(noisy, lambda: any("refused" in event for event in events(one)))
            quiet.do("run 20 select quiet")
            load(noisy, lambda: len(one.statements) == 20)
        assert [(event["uid"], event["traced"], "refused" in event) for event in events(one)] == \
            [(USER, "no_text", False), (USER, "no_text", True)]
        assert [s["query"] for s in one.statements] == ["select quiet"] * 20
        load(noisy, lambda: "nothing" in steps(one))
    assert "they stay, as another user's server of this file is below it" in one.stderr
    one.stop()
    assert one.summary["lost"]["text_dropped"] == 0, "of statements that are printed"


def test_server_that_drops_root(path, tool):
    """As mysqld --user does, after the exec that is reported: it is limited as that user's."""
    one = tool("-x", path, "-m", "1000", "--json", "--max-overhead", LIMIT)
    with Backends(path) as server:
        server.do(f"become {USER} -")
        load(server, lambda: events(one))
    assert (events(one)[0]["uid"], events(one)[0]["traced"]) == (USER, "no_text"), one.said()


def test_end_of_one_of_two_servers(path, tool):
    """The file has probes again for the server that still runs, if not for the one that caused the step, even if its path has another file now."""
    one = tool("-x", path, "-m", "1000", "--json", "--max-overhead", LIMIT)
    servers = {os.geteuid(): Backends(path), USER: Backends(path, **as_user())}
    try:
        end = time.monotonic() + 60
        while "nothing" not in steps(one):
            assert time.monotonic() < end, one.said()
            for server in servers.values():
                server.begin("pace 100 0")
            for server in servers.values():
                server.finish()
        servers.pop(events(one)[-1]["uid"]).end()
        shutil.copy(path, f"{path}.new")
        os.replace(f"{path}.new", path)
        at = steps(one).index("nothing")
        one.wait_for(lambda _: steps(one)[-1] != "nothing", 120)
        back = events(one)[at + 1]
        assert (back["uid"], back["traced"]) == (*servers, "no_text")
        one.stop()
    finally:
        for server in servers.values():
            server.end()
    assert one.summary["untraced_ms"] == back["untraced_ms"], one.said()


def test_new_server_without_probes(server, tool):
    """A user cannot cause another one's new server to be missed for long: it ends the pause."""
    one = tool("-x", server.path, "-m", "1000", "--json", "--max-overhead", "0.1%/3")
    load(server, lambda: "nothing" in steps(one))
    with Backends(server.path, **as_user()):
        one.wait_for(lambda _: steps(one)[-1] != "nothing", 120)
    at = steps(one).index("nothing")
    pause, back = events(one)[at:at + 2]
    assert back["untraced_ms"] < pause["pause_ms"] == 9000, one.said()


def test_estimate(server, tool):
    """A loop over the probes does nothing else: what they take is its CPU time, as the kernel counts that."""
    def spent():
        with open(f"/proc/{server.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def at(when):
        """The CPU time by then."""
        before = max((sample for sample in samples if sample[0] <= when), default=samples[0])
        after = min((sample for sample in samples if sample[0] > when), default=samples[-1])
        share = (when - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
        return before[1] + (after[1] - before[1]) * share

    one = tool("-x", server.path, "-m", "1000", "--json", "--max-overhead", "1%/2")
    samples = []
    load(server, lambda: samples.append((time.time(), spent())) or events(one), ms=20)
    # Of the same two seconds: how much of a CPU the loop gets changes with what else runs.
    (first, *_) = events(one)
    share = (at(ended(first)) - at(ended(first) - 2)) / 2
    assert 0.4 < first["cost_ms"] / 1000 / share < 1.6, (share, one.said())


@pytest.mark.parametrize("value, why", [
    ("0", "not from 0.01% to 100000%"), ("0.001%", "not from 0.01% to 100000%"), ("100001", "not from 0.01% to 100000%"),
    ("x", "not a percentage"), ("1%x", "not a percentage"), ("-1%", "not a percentage"), ("", "not a percentage"),
    ("1%/0.5", "not from 1 to 3600 seconds"), ("1%/", "not a number"), ("1%/2h", "not from 1 to 3600 seconds"),
])
def test_values_that_are_refused(value, why):
    refused(run("--max-overhead", value), "--max-overhead", why, "expected a percentage of one CPU", status=2)


def test_metrics(server, tool, tmp_path):
    """Both exporters have the time without probes, and what was left out by cause."""
    prom, otlp = tmp_path / "x.prom", tmp_path / "x.otlp"
    one = tool("stat", "-x", server.path, "-m", "1000", f"--openmetrics={prom}", f"--otlp-metrics={otlp}", "-i", "60",
               "--max-overhead", LIMIT, kind=Stat)
    load(server, lambda: "not traced for" in one.stderr)
    assert one.stop() == 0, one.said()
    seconds = float(re.search(r"^dbslower_untraced_seconds_total\{.*?\} (\S+)$", prom.read_text(), re.M)[1])
    said = int(re.search(r"(\d+) ms without probes", one.stderr)[1]) / 1000
    assert said - 1 < seconds <= said + 1 and seconds > 0
    metrics = {metric["name"]: metric for metric in
               json.loads(otlp.read_text().splitlines()[-1])["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
    assert metrics["dbslower.untraced.time"]["sum"]["dataPoints"][0]["asDouble"] == pytest.approx(seconds, abs=0.1)
    for cause in ("text_dropped", "why_dropped"):
        assert re.search(rf'^dbslower_losses_total\{{.*cause="{cause}"\}} 0$', prom.read_text(), re.M)


def test_top_and_transactions(postgres, tool):
    """They have the option, and say what they trace."""
    for command in ("top", "transactions"):
        with postgres.connect(prepare_threshold=None) as connection:
            one = tool(command, "-p", postgres.pid, "-m", "0", "--max-overhead", LIMIT, *(["--batch"] if command == "top" else []), attached=False)
            end = time.monotonic() + 60
            while "not traced for 3.0 s" not in one.stderr:
                assert time.monotonic() < end, one.said()
                for _ in range(100):
                    connection.execute("select 1")
            one.stop()
            assert "; traced without texts" in one.stderr and "without time breakdowns" not in one.stderr
            assert re.search(r"lost: .*\d+ ms without probes", one.stderr), one.said()


def test_record(postgres, tool, tmp_path):
    """A recording has what was left out, as the reader of docs/recording.md finds, and replay reports it."""
    path = tmp_path / "x.rec"
    one = tool("record", path, "-p", postgres.pid, "-m", "0", "--why", "--max-overhead", LIMIT, attached=False)
    one.wait_for(lambda _: "dbslower: tracing" in one.stderr)
    with postgres.connect(prepare_threshold=None) as connection:
        end = time.monotonic() + 60
        while "not traced for" not in one.stderr:
            assert time.monotonic() < end, one.said()
            for _ in range(100):
                connection.execute("select 1")
    assert one.stop() == 0, one.said()
    last = [event for event in Recording(path.read_bytes()).events() if event["type"] == "status"][-1]["statements"]
    lost = last["lost"]
    assert lost["text_dropped"] > 0 and lost["why_dropped"] > lost["text_dropped"] and last["untraced_ns"] > 0
    replayed = run("replay", path, "top", "--batch")
    losses = re.search(r"; (lost: .*)", replayed.stderr)[1]
    assert f"{lost['text_dropped']} texts (overhead limit), {lost['why_dropped']} time breakdowns" in losses
    assert f"{last['untraced_ns'] // 1000000} ms without probes (overhead limit)" in losses
