# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--otlp: spans. What a line may hold is checked by the messages of OpenTelemetry's trace.proto, in protobuf's JSON mapping as
OTLP has it: ids in hexadecimal, enumerations as numbers. What it says is checked against the clock and what the server says.
"""

import json
import os
import re
import signal
import stat
import time
import uuid

import pytest

from backends import Backends, build
from cluster import wait_for
from commanded import as_user, reveal
from mariadb import Maria, maria_server
from recording_maker import HOST, Made
from replayed import Replayed
from statements import stopped
from tool import Tool, run

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
COMMENT = f"/*action='%2Fcart',traceparent='00-{TRACE}-{SPAN}-01'*/"


def text(value):
    assert isinstance(value, str)
    value.encode()              # no half of a pair of surrogates


def integer(bits, is_unsigned=False):
    """Numbers of 64 bits are strings, as JSON readers may lose digits."""
    def check_integer(value):
        assert isinstance(value, str if bits == 64 else int) and not isinstance(value, bool), value
        assert re.fullmatch(r"0|-?[1-9]\d*", str(value)) and low <= int(value) <= high, value
    low, high = (0, 2**bits - 1) if is_unsigned else (-2**(bits - 1), 2**(bits - 1) - 1)
    return check_integer


def identifier(digits):
    def check_identifier(value):
        assert re.fullmatch(f"[0-9a-f]{{{digits}}}", value) and set(value) != {"0"}, value
    return check_identifier


def one_of(*values):
    def check_value(value):
        assert type(value) in map(type, values) and value in values, value
    return check_value


MESSAGES = {
    "ExportTraceServiceRequest": {"resourceSpans": ["ResourceSpans"]},
    "ResourceSpans": {"resource": "Resource", "scopeSpans": ["ScopeSpans"], "schemaUrl": text},
    "Resource": {"attributes": ["KeyValue"], "droppedAttributesCount": integer(32, True)},
    "ScopeSpans": {"scope": "InstrumentationScope", "spans": ["Span"], "schemaUrl": text},
    "InstrumentationScope": {"name": text, "version": text, "attributes": ["KeyValue"]},
    "Span": {"traceId": identifier(32), "spanId": identifier(16), "parentSpanId": identifier(16), "traceState": text,
             "flags": integer(32, True), "name": text, "kind": one_of(1, 2, 3, 4, 5), "startTimeUnixNano": integer(64, True),
             "endTimeUnixNano": integer(64, True), "attributes": ["KeyValue"], "status": "Status"},
    "Status": {"message": text, "code": one_of(0, 1, 2)},
    "KeyValue": {"key": text, "value": "AnyValue"},
    "AnyValue": {"stringValue": text, "boolValue": one_of(True, False), "intValue": integer(64)},
}


def check(kind, value):
    if isinstance(kind, list):
        assert isinstance(value, list), value
        for one in value:
            check(kind[0], one)
        if kind[0] == "KeyValue":
            assert len({one["key"] for one in value}) == len(value), value
    elif callable(kind):
        kind(value)
    else:
        assert isinstance(value, dict) and set(value) <= set(MESSAGES[kind]), (kind, value)
        for key, one in value.items():
            check(MESSAGES[kind][key], one)
        assert kind != "AnyValue" or len(value) == 1, value


def once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class Span:
    """The only one of a line."""

    def __init__(self, line):
        request = json.loads(line, object_pairs_hook=once)
        check("ExportTraceServiceRequest", request)
        (resource,) = request["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        (self.span,) = scope["spans"]
        self.resource = self.values(resource["resource"]["attributes"])
        self.attributes = self.values(self.span["attributes"])
        self.start, self.end = int(self.span["startTimeUnixNano"]), int(self.span["endTimeUnixNano"])
        assert scope["scope"]["name"] == "dbslower" and self.span["name"] and self.span["kind"] == 2
        assert self.end >= self.start
        assert self.resource["service.name"] and self.resource["host.name"] in (os.uname().nodename, HOST)

    @staticmethod
    def values(attributes):
        return {one["key"]: int(value) if kind == "intValue" else value
                for one in attributes for kind, value in one["value"].items()}

    @property
    def query(self):
        return self.attributes.get("db.query.text", "")


def spans(data):
    data = data.encode() if isinstance(data, str) else data
    assert not data or data.endswith(b"\n")
    return [Span(line.decode()) for line in data.splitlines()]


def tagged(found, tag):
    (one,) = [span for span in found if tag in span.query]
    return one


class Alone(Tool):
    """Spans on the standard output."""

    def ready(self):
        return any(line.startswith(b"dbslower: tracing") for line in self.err.lines)


def test_file(postgres, tool, tmp_path):
    path = tmp_path / "spans.jsonl"
    traced = tool("-p", postgres.pid, "-m", "0", "--why", "--otlp", path, "--otlp-text", "raw")
    before = time.time_ns()
    with postgres.connect(host="127.0.0.1") as connection:
        pid = connection.info.backend_pid
        port = connection.execute("select inet_client_port() /* port */").fetchone()[0]
        version = connection.execute("show server_version").fetchone()[0]
        connection.execute(f"select pg_sleep(0.2) {COMMENT}")
        after = time.time_ns()
        for n, parent in enumerate([f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", "garbage"]):
            connection.execute(f"select {n} /*traceparent='{parent}'*/")
        connection.execute("select 'said in a string: " + COMMENT.replace("'", "''") + "'")
        connection.pgconn.exec_(b'  /* first */ update missing set a = \'"\\\t\'')
    postgres.psql("select 1 /* by a socket */")
    stopped(traced)
    found = spans(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"{len(found)} shown" in traced.stderr, traced.said()
    child = tagged(found, "pg_sleep")
    assert (child.span["traceId"], child.span["parentSpanId"], child.span["flags"] & 255) == (TRACE, SPAN, 1)
    assert before <= child.start and child.end <= after and child.end - child.start >= 200e6
    assert child.attributes.items() >= {
        "db.system.name": "postgresql", "db.namespace": "postgres", "dbslower.user": "postgres", "client.address": "127.0.0.1",
        "client.port": port, "process.pid": pid, "dbslower.rows": 1,
        "db.query.text": f"select pg_sleep(0.2) {COMMENT}"}.items()
    assert child.resource.items() >= {"service.name": "postgresql", "service.version": version}.items()
    assert uuid.UUID(child.resource["service.instance.id"]).version == 5
    assert child.span["name"] == "SELECT postgres" and "status" not in child.span
    assert sum(value for key, value in child.attributes.items() if key.startswith("dbslower.why_ns.")) == child.end - child.start
    # It sleeps until a moment: what it waits for a CPU before, it does not sleep.
    assert child.attributes["dbslower.why_ns.sleep"] >= 195e6 - child.attributes.get("dbslower.why_ns.runqueue", 0)
    failed = tagged(found, "missing")
    assert failed.span["status"] == {"code": 2}
    assert failed.attributes["db.response.status_code"] == failed.attributes["error.type"] == "42P01"
    assert failed.span["name"] == "UPDATE postgres" and failed.query.endswith("'\"\\\t'")
    local = tagged(found, "by a socket").attributes
    assert local["network.transport"] == "unix" and "client.address" not in local
    roots = [one.span for one in found if one is not child]
    assert len(roots) >= 6 and not any("parentSpanId" in span for span in roots)
    assert len({span["traceId"] for span in roots} | {TRACE}) == len(found)
    assert len({one.span["spanId"] for one in found}) == len(found)


def test_added(tmp_path):
    """To what is there, of which the last line may lack its end; its mode stays."""
    path = tmp_path / "spans.jsonl"
    path.write_text('{"resourceSpans":[]}\n{"resourceSp')
    path.chmod(0o640)
    for tag in ("first", "second"):
        made = Made()
        made.statement(made.session(made.server()), f"select 1 /* {tag} */")
        traced = Replayed(made, "-m", "0", "--json", "--otlp", path, "--otlp-text", "raw")
        assert len([one for one in traced.statements if tag in one["query"]]) == 1, traced.said()
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[:2] == [b'{"resourceSpans":[]}\n', b'{"resourceSp\n'] and stat.S_IMODE(path.stat().st_mode) == 0o640
    found = spans(b"".join(lines[2:]))
    assert found.index(tagged(found, "first")) < found.index(tagged(found, "second"))


def test_standard_output():
    """Nothing else is on it, nor what still runs; the parent is known though the comment is redacted."""
    made = Made()
    session, length = made.session(made.server()), len("select 'secret' as wanted_long") + 300 + len(COMMENT)
    made.statement(session, f"select 'secret' as wanted {COMMENT}")
    made.statement(session, "select 'secret' as other")
    made.statement(session, "select 'secret' as wanted_long" + " " * 170, length=length)
    made.statement(session, "select pg_sleep(600) as wanted_never", kind="running", ms=2000)
    traced = Replayed(made, "-m", "0", "--redact", "--match", "wanted", "--otlp", "-")
    found = spans(traced.out.data)
    assert [span.query.strip() for span in found] == ["select ? as wanted /*?*/", "select ? as wanted_long"], traced.said()
    assert found[0].span["parentSpanId"] == SPAN and "parentSpanId" not in found[1].span
    assert found[1].attributes["dbslower.query.truncated"] is True
    assert found[1].attributes["dbslower.query.bytes"] == length


@pytest.mark.parametrize("command, form", [("slow", "--otlp"), ("stat", "--otlp-metrics"), ("top", "--otlp-metrics")])
def test_host_of_a_recording(command, form):
    """Not the one on which it is replayed."""
    for host in ("db2\"\n", ""):
        made = Made(host=host)
        made.statement(made.session(made.server()), "select 1")
        for line in Replayed(made, command, "-m", "0", form, "-").stdout.splitlines():
            (resource,) = next(iter(json.loads(line).values()))
            names = [one["value"]["stringValue"] for one in resource["resource"]["attributes"] if one["key"] == "host.name"]
            assert names == [host] * bool(host), line


def test_signal(postgres, tool):
    """SIGUSR1 adds nothing to spans on the standard output; the recorded text is cut before it is redacted."""
    traced = tool("-p", postgres.pid, "-m", "0", "--redact", "--match", "wanted", "--text", 200, "--otlp", "-", kind=Alone)
    with postgres.connect() as connection, postgres.connect() as other:
        connection.execute("select 'secret' as wanted_long" + " " * 300 + COMMENT)
        connection.pgconn.send_query(b"select pg_sleep(600) as wanted_never")
        wait_for(lambda: other.execute("select 1 from pg_stat_activity where state = 'active' and query like "
                                       "'%%pg_sleep(600) as wanted%%' and pid <> pg_backend_pid()").fetchone(), 60, "it to run")
        traced.process.send_signal(signal.SIGUSR1)
        status = traced.stop()
        connection.cancel()
        while connection.pgconn.get_result():
            pass
    assert status == 0, traced.said()
    (one,) = [span for span in spans(b"".join(traced.out.lines)) if "pg_stat" not in span.query]
    assert one.query.strip() == "select ? as wanted_long" and "parentSpanId" not in one.span and one.attributes["dbslower.query.truncated"]


def test_sanitized(tmp_path):
    """What the conventions recommend is the default; elsewhere the text is shown as ever."""
    path, made = tmp_path / "spans.jsonl", Made()
    session = made.session(made.server())
    number = "4711" * 6		# so long that no time or identifier has it by chance
    made.statement(session, f"select 'secret' as shown, {number} /* secret */")
    made.statement(session, f"select $$secret$$ from nowhere where n = -{number}.5e3", error="42P01")
    traced = Replayed(made, "-m", "0", "--json", "--otlp", path)
    assert [one["query"].count("secret") for one in traced.statements] == [2, 1], traced.said()
    found = spans(path.read_bytes())
    assert [span.query for span in found] == ["select ? as shown, ? /*?*/", "select ? from nowhere where n = -?"]
    assert b"secret" not in path.read_bytes() and number.encode() not in path.read_bytes()
    assert not any("db.user" in span.attributes for span in found)
    assert [span.attributes["dbslower.user"] for span in found] == ["postgres"] * 2


def test_servers(tool, tmp_path):
    """Each server is a resource, also if several run the same file: the same one after a restart."""
    path, found = build(tmp_path), []
    spans_path = tmp_path / "spans.jsonl"
    traced = tool("-x", path, "-m", "0", "--json", "--otlp", spans_path, "--otlp-text", "raw")
    for number, folder in enumerate(("one", "two", "one")):
        (tmp_path / folder).mkdir(exist_ok=True)
        with Backends(path, cwd=tmp_path / folder) as server:
            server.do(f"run 1 select {number}")
            server.do(f"exit 1 select {number} /* of a backend */")
            traced.wait_for(lambda tool: len(tool.statements) == 2 * number + 2, what="the statements")
    traced.stop()
    for number in range(3):
        one, backend = (span for span in spans(spans_path.read_bytes()) if f"select {number}" in span.query)
        assert one.resource["service.name"] == backend.resource["service.name"] == "postgresql"
        found.append(one.resource["service.instance.id"])
        # It may have ended before it was looked at.
        assert backend.resource.get("service.instance.id", found[-1]) == found[-1]
        assert uuid.UUID(found[-1]).version == 5
    assert found[0] == found[2] != found[1]


def test_server_of_another_user(tool, tmp_path):
    """Statements of processes that have ended, with their main process, are not of another user's server."""
    path, spans_path = build(tmp_path), tmp_path / "spans.jsonl"
    reveal(path)
    with Backends(path, cwd=tmp_path) as server, Backends(path, **as_user()) as other:
        traced = tool("-x", path, "-m", "0", "--json", "--otlp", spans_path, "--otlp-text", "raw")
        server.do("run 1 select 'of the server'")
        traced.wait_for(lambda tool: len(tool.statements) == 1, what="the statement")
        traced.pause()
        other.do("exit 3 select 'of another user'")
        other.end()
        os.kill(traced.pid, signal.SIGCONT)
        traced.wait_for(lambda tool: len(tool.statements) == 4, what="the other user's statements")
        server.do("exit 1 select 'of a backend'")
        traced.wait_for(lambda tool: len(tool.statements) == 5, what="the backend's statement")
        traced.stop()
    found = {query: {span.resource.get("service.instance.id") for span in spans(spans_path.read_bytes()) if query in span.query}
             for query in ("of the server", "of another user", "of a backend")}
    assert found["of another user"] == {None} and None not in found["of the server"], found
    assert found["of a backend"] <= {None, *found["of the server"]}, found


def test_cannot_write(postgres, tool, tmp_path):
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--otlp", "/dev/full")
    postgres.psql("select 1")
    assert traced.wait() == 1 and "/dev/full: cannot write: No space left on device; " in traced.stderr, traced.said()
    done = run("-p", postgres.pid, "-d", "30", "--otlp", tmp_path / "missing" / "spans")
    assert done.returncode == 1 and "cannot open" in done.stderr and "missing/spans" in done.stderr, done
    assert "tracing" not in done.stderr


@pytest.mark.parametrize("args, about", [
    (["--otlp", "-", "--json"], "--otlp -"), (["--otlp", "-", "-o", "ms"], "--otlp -"),
    (["--otlp-text", "raw"], "--otlp-text raw"), (["--otlp", "-", "--otlp-text", "raw", "--redact"], "--otlp-text raw"),
    (["--otlp", "-", "--otlp-text", "all"], "sanitized or raw")])
def test_refused(args, about):
    done = run(*args)
    assert done.returncode == 2 and about in done.stderr, done


@pytest.fixture(scope="module")
def maria():
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with Maria(slow_query_log="OFF").init() as server:
        yield server.start()


def test_versions_of_one_file(maria, tool, tmp_path):
    """Two servers run the same file; an option sets the version that one of them reports."""
    path = tmp_path / "spans.jsonl"
    version = "10.11.99-MariaDB-custom"
    with Maria(slow_query_log="OFF", version=version).init() as other:
        other.start()
        traced = tool("-p", maria.pid, "-p", other.pid, "-m", "0", "--json", "--otlp", path, "--otlp-text", "raw")
        for server in (maria, other):
            with server.connect() as client:
                client.query("select 'of', @@version, @@pid_file")
        said = {one.pid: one.connect().rows("select @@version")[0][0].decode() for one in (maria, other)}
        assert said[other.pid].startswith(version) and said[maria.pid] != said[other.pid]
        # The client is answered before the server's function ends.
        traced.wait_for(lambda tool: len(tool.statements) == 4, what="the statements")
        stopped(traced)
    lines = [line for line in traced.stderr.splitlines() if line.startswith("dbslower: tracing")]
    assert {line.partition(", /")[0] for line in lines} == {
        f"dbslower: tracing MariaDB {text}, pid {pid}" for pid, text in said.items()}
    found = [span for span in spans(path.read_bytes()) if "'of'" in span.query]
    assert {span.attributes["process.pid"]: span.resource["service.version"] for span in found} == said
    assert len({span.resource["service.instance.id"] for span in found}) == 2


def test_mariadb(maria, tool, tmp_path):
    path = tmp_path / "spans.jsonl"
    traced = tool("-p", maria.pid, "-m", "0", "--json", "--otlp", path, "--otlp-text", "raw")
    with maria.connect() as client:
        number = int(client.rows("select connection_id() /* number */")[0][0])
        client.query(f"select 'it\\'s /*' as a {COMMENT}")
        error = client.failing("select * from mysql.missing /* fails */")
        client.query(b"select '\xff' as bytes")
        client.ping()
    stopped(traced)
    found = spans(path.read_bytes())
    child, failed = tagged(found, "cart"), tagged(found, "fails")
    assert tagged(found, "as bytes").query == "select '\ufffd' as bytes"
    assert (child.span["traceId"], child.span["parentSpanId"]) == (TRACE, SPAN)
    assert child.attributes["db.system.name"] == "mariadb" and child.attributes["dbslower.connection_id"] == number
    assert child.attributes["process.pid"] == maria.pid != child.attributes["thread.id"]
    assert failed.attributes["db.response.status_code"] == failed.attributes["error.type"] == str(error)
    assert failed.attributes["dbslower.sqlstate"] == "42S02"
    assert child.resource["service.name"] == "mariadb"


# --- phases of PostgreSQL

HARD = "select count(*) from " + ", ".join(f"pg_class c{n}" for n in range(9)) + " where " + " and ".join(
    f"c{n}.oid = c{n + 1}.oid" for n in range(8))


def server_statistics(log, phase):
    """Elapsed nanoseconds of each step that the server says it took."""
    return [float(seconds) * 1e9 for seconds in re.findall(
        rf"LOG:  {phase} STATISTICS\n.*DETAIL:  ! system usage stats:\n\s*!.*, (\S+) s elapsed\n", log)]


def test_phases(postgres, tool, tmp_path):
    """The server's own stopwatch is the judge: log_planner_stats and its like."""
    path = tmp_path / "spans.jsonl"
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--phases", "--otlp", path, "--otlp-text", "raw")
    with postgres.connect() as connection:
        for name in ("parser", "planner", "executor"):
            connection.execute(f"set log_{name}_stats = on")
        connection.execute("set from_collapse_limit = 20; set join_collapse_limit = 20")
        start = postgres.log_size()
        connection.execute(HARD + f" {COMMENT}")
        connection.execute("select pg_sleep(0.1) /* executes */")
        connection.pgconn.exec_(b"select 1 / 0 /* fails */")
        connection.pgconn.exec_(b"select from /* no statement */")
    postgres.psql("select 1 /* no stopwatch */")
    stopped(traced)
    log = postgres.read_log(start).decode(errors="replace")
    one = {tag: next(one for one in traced.statements if tag in one["query"])
           for tag in ("cart", "executes", "fails", "no statement")}
    phases = {tag: {phase: round(ms * 1e6) for phase, ms in found["phases_ms"].items()} for tag, found in one.items()}
    assert set(phases["cart"]) == set(phases["executes"]) == {"parse", "rewrite", "plan", "execute"}
    planned, executed = server_statistics(log, "PLANNER"), server_statistics(log, "EXECUTOR")
    assert planned and executed, log
    assert planned[0] >= 5e6, planned
    # The server measures inside of the phase, by a clock that NTP adjusts; the sum is bounded below.
    for tag, number in (("cart", 0), ("executes", 1)):
        inside = {"plan": planned[number] * 0.999 - 2000, "execute": executed[number] * 0.999 - 2000}
        assert all(phases[tag][phase] >= ns for phase, ns in inside.items()), (phases, planned, executed)
    assert set(phases["no statement"]) == {"parse"}, phases
    for tag, found in phases.items():
        assert sum(found.values()) <= one[tag]["duration_ms"] * 1e6 + 1000, (tag, one[tag])
    requests = [json.loads(line) for line in path.read_bytes().splitlines()]
    for request in requests:
        check("ExportTraceServiceRequest", request)
    (whole, *steps) = next(request["resourceSpans"][0]["scopeSpans"][0]["spans"] for request in requests if "cart" in str(request))
    assert whole["parentSpanId"] == SPAN and [step["name"] for step in steps] == ["parse", "rewrite", "plan", "execute"]
    for step, ns in zip(steps, phases["cart"].values()):
        assert (step["traceId"], step["parentSpanId"], step["kind"]) == (TRACE, whole["spanId"], 1)
        assert int(step["endTimeUnixNano"]) - int(step["startTimeUnixNano"]) == ns
        assert int(whole["startTimeUnixNano"]) <= int(step["startTimeUnixNano"])
        assert int(step["endTimeUnixNano"]) <= int(whole["endTimeUnixNano"]) + 1000
    assert len({step["spanId"] for step in [whole, *steps]}) == 5


def test_phases_unknown(maria, tool):
    """Only PostgreSQL's probes tell of them, and that is said."""
    traced = tool("-p", maria.pid, "-m", "0", "--phases")
    with maria.connect() as client:
        client.query("select 1 /* none */")
        client.ping()
    stopped(traced)
    assert "no USDT probes for phases" in traced.stderr and "none" in traced.stdout, traced.said()
    assert " parse " not in traced.stdout


def test_phases_for_people():
    made = Made()
    session = made.session(made.server())
    made.statement(session, "select pg_sleep(0.05)", ms=55, why={"sleep": 50},
                   phases={"parse": 0.25, "rewrite": 0.5, "plan": 1.0624, "execute": 52.123456})
    made.statement(session, "selekt", ms=1, error="42601", why={}, phases={"parse": 0.125})
    assert Replayed(made, "-m", "0", "--phases").stdout.splitlines()[2:] == [
        "0.001000       101       55.000 select pg_sleep(0.05)", "    sleep 50.000, cpu 5.000",
        "    parse 0.250, rewrite 0.500, plan 1.062, execute 52.123",
        "0.057000       101        1.000 selekt", "    cpu 1.000", "    parse 0.125"]
