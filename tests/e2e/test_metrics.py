# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
stat and top --openmetrics: read by the parser of python3-prometheus-client, by node_exporter, Prometheus and VictoriaMetrics,
and compared with what stat --json prints of the same run. --otlp-metrics; --heatmap.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys

import pytest

from cluster import wait_for
from recording_maker import Made, hostile
from replayed import Replayed
from requirements import need_promtool, need_root
from test_otlp import MESSAGES, check, integer, one_of, once, text
from tool import CACHE, TESTS, Stat, run

READERS = os.path.join(TESTS, "lib", "metric_readers.py")
PROGRAMS = ("prometheus", "prometheus-node-exporter", "victoria-metrics")
SLOT = 1 / 32		# a percentile of stat is the middle of a slot, 16 to a power of 2
QUICK, SLOW = 5, 25
DATABASE = 'data"base\\n\\'
USER = "user\nof \u00e4"
SHOWN = {"database": "data?base?n?", "user": "user?of \u00e4"}
DURATION = "dbslower_statement_duration_seconds"


def parse(exposition):
    """{name: Metric}, by a parser that is not ours."""
    parser = pytest.importorskip("prometheus_client.parser", reason="python3-prometheus-client is not installed")
    return {family.name: family for family in parser.text_string_to_metric_families(exposition)}


def values(families, family, sample=None, **labels):
    """The samples called @sample with these labels."""
    return [one for one in families[family].samples
            if one.name == (sample or family) and labels.items() <= one.labels.items()]


def total(families, family, sample=None, **labels):
    return sum(one.value for one in values(families, family, sample, **labels))


def only(traced, kind):
    (one,) = [one for one in traced.objects() if one["type"] == kind]
    return one


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def measured(postgres, tmp_path_factory):
    """A run of stat: its JSON, and the folder of its metrics."""
    need_root()
    folder = tmp_path_factory.mktemp("metrics")
    path = folder / "dbslower.prom"
    postgres.psql(f"create database {quoted(DATABASE)}", f"create role {quoted(USER)} superuser login")
    with Stat("stat", "-p", postgres.pid, "--json", "--why", "--openmetrics", path, "--otlp-metrics",
              folder / "metrics.otlp") as traced:
        wait_for(path.exists, what="the first exposition")
        with postgres.connect(dbname=DATABASE, user=USER) as connection:
            for n in range(QUICK):
                connection.pgconn.exec_(f"select {n}".encode())
            for _ in range(SLOW):
                connection.pgconn.exec_(b"/* first */ (select pg_sleep(0.03))")
            connection.pgconn.exec_(b"create temporary table t as select generate_series(1, 7)")
            connection.pgconn.exec_(b"selekt 1")
            connection.pgconn.exec_(b"select nosuch")
        assert traced.stop() == 0, traced.said()
    yield traced, folder
    postgres.psql(f"drop database {quoted(DATABASE)} with (force)", f"drop role {quoted(USER)}")


def test_openmetrics(measured, postgres):
    traced, folder = measured
    (path,) = folder.glob("*.prom")
    assert path.stat().st_mode & 0o777 == 0o644 and not list(folder.glob(".*"))
    families = parse(path.read_bytes().decode())
    seen, summary = only(traced, "histogram"), only(traced, "summary")
    commands = {"select": QUICK + SLOW + 1, "create": 1, "other": 1}
    assert sum(commands.values()) == seen["count"]
    for command, count in commands.items():
        (one,) = values(families, DURATION, f"{DURATION}_count", command=command)
        assert one.value == count == total(families, DURATION, f"{DURATION}_bucket", command=command, le="+Inf")
        assert one.labels["engine"] == "postgresql" and SHOWN.items() <= one.labels.items()
        assert one.labels["server"].startswith("/") and one.labels["uid"] == str(os.stat(f"/proc/{postgres.pid}").st_uid)
    assert total(families, "dbslower_statement_errors", "dbslower_statement_errors_total") == 2
    assert total(families, "dbslower_statement_rows", "dbslower_statement_rows_total", command="create") == 7
    parts = total(families, "dbslower_statement_part_seconds", "dbslower_statement_part_seconds_total")
    assert math.isclose(parts, total(families, DURATION, f"{DURATION}_sum"), rel_tol=1e-6)
    losses = {one.labels["cause"]: one.value for one in families["dbslower_losses"].samples}
    assert losses == summary["lost"]
    assert total(families, "dbslower_events", "dbslower_events_total") == summary["statements"]
    assert total(families, "dbslower_label_sets") == len(commands)
    assert total(families, "dbslower_cpu_seconds", "dbslower_cpu_seconds_total") > 0
    (build,) = families["dbslower_build_info"].samples
    assert build.labels == {"file": str(path), "version": run("--version").stdout.split()[1]} and build.value == 1


def agree(families, quantile, seconds, percentile_ms):
    """A consumer's quantile is in the bucket of stat's percentile, whose slot is a part of its value wide."""
    bounds = sorted({float(one.labels["le"]) for one in values(families, DURATION, f"{DURATION}_bucket")})
    low, high = max((b for b in [0.0, *bounds] if b < seconds * (1 - 1e-9)), default=0), min(
        b for b in bounds if b >= seconds * (1 - 1e-9))
    assert low * (1 - SLOT) <= percentile_ms / 1000 <= high * (1 + SLOT), (quantile, seconds, percentile_ms)


def test_consumers(measured):
    """Prometheus and VictoriaMetrics agree with stat, whether they read the file or node_exporter does."""
    programs = os.path.join(CACHE, "monitoring", "usr", "bin")
    if not os.path.exists(programs) and all(shutil.which(one) for one in PROGRAMS):
        programs = ""
    if programs and not all(os.access(os.path.join(programs, one), os.X_OK) for one in PROGRAMS):
        pytest.skip("no packages prometheus, prometheus-node-exporter, victoria-metrics, which ci/dependencies test unpacks")
    traced, folder = measured
    (path,) = folder.glob("*.prom")
    families, seen = parse(path.read_bytes().decode()), only(traced, "histogram")
    quantiles = {f"histogram_quantile({q}, sum by (le, job) ({DURATION}_bucket))": (q, seen[f"p{int(q * 100)}_ms"])
                 for q in (0.5, 0.95)}
    labels = f"{DURATION}_count{{command='create'}}"
    errors = "sum by (job) (dbslower_statement_errors_total)"
    done = subprocess.run(["unshare", "--net", sys.executable, READERS, programs, folder, *quantiles, labels, errors],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name, answers in json.loads(done.stdout).items():
        for query, (q, percentile) in quantiles.items():
            for one in answers[query]:
                agree(families, (name, one["labels"], q), one["value"], percentile)
        for one in answers[labels]:
            assert one["value"] == 1 and SHOWN.items() <= one["labels"].items(), (name, one)
        assert {one["value"] for one in answers[errors]} == {2.0}, (name, answers)


def number(value):
    assert isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0, value


MESSAGES.update({
    "ExportMetricsServiceRequest": {"resourceMetrics": ["ResourceMetrics"]},
    "ResourceMetrics": {"resource": "Resource", "scopeMetrics": ["ScopeMetrics"], "schemaUrl": text},
    "ScopeMetrics": {"scope": "InstrumentationScope", "metrics": ["Metric"], "schemaUrl": text},
    "Metric": {"name": text, "description": text, "unit": text, "sum": "Sum", "histogram": "Histogram"},
    "Sum": {"dataPoints": ["NumberDataPoint"], "aggregationTemporality": one_of(1, 2), "isMonotonic": one_of(True)},
    "Histogram": {"dataPoints": ["HistogramDataPoint"], "aggregationTemporality": one_of(1, 2)},
    "NumberDataPoint": {"attributes": ["KeyValue"], "startTimeUnixNano": integer(64, True),
                        "timeUnixNano": integer(64, True), "asDouble": number, "asInt": integer(64)},
    "HistogramDataPoint": {"attributes": ["KeyValue"], "startTimeUnixNano": integer(64, True),
                           "timeUnixNano": integer(64, True), "count": integer(64, True), "sum": number,
                           "bucketCounts": [integer(64, True)], "explicitBounds": [number]},
})


def points(request):
    """{metric: [(attributes, point)]}"""
    (resource,) = request["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    assert scope["scope"]["name"] == "dbslower"
    return {metric["name"]: [({pair["key"]: pair["value"]["stringValue"] for pair in point["attributes"]}, point)
                             for point in metric.get("sum", metric.get("histogram"))["dataPoints"]]
            for metric in scope["metrics"]}


def test_otlp_metrics(measured):
    """The same counts as in the other format, in messages of metrics.proto."""
    traced, folder = measured
    families = parse((folder / "dbslower.prom").read_bytes().decode())
    requests = [json.loads(line, object_pairs_hook=once) for line in (folder / "metrics.otlp").read_text().splitlines()]
    for request in requests:
        check("ExportMetricsServiceRequest", request)
    first, last = points(requests[0]), {}
    assert len(requests) > 1 and first["dbslower.events"][0][1]["asInt"] == "0"
    for request in requests:		# a cumulative point is valid until the next one of these attributes
        for name, found in points(request).items():
            last.setdefault(name, {}).update({tuple(attributes.items()): (attributes, point) for attributes, point in found})
    last = {name: list(found.values()) for name, found in last.items()}
    for attributes, point in last["dbslower.statement.duration"]:
        command = attributes["db.operation.name"].lower()
        assert attributes["db.namespace"] == SHOWN["database"] and attributes["db.system.name"] == "postgresql"
        buckets = values(families, DURATION, f"{DURATION}_bucket", command=command)
        counts = [int(count) for count in point["bucketCounts"]]
        assert [sum(counts[:n + 1]) for n in range(len(counts))] == [one.value for one in buckets]
        assert point["explicitBounds"] == [float(one.labels["le"]) for one in buckets[:-1]]
        assert int(point["count"]) == sum(counts)
        assert point["sum"] == total(families, DURATION, f"{DURATION}_sum", command=command)
        assert int(point["startTimeUnixNano"]) < int(point["timeUnixNano"])
    assert len(last["dbslower.statement.duration"]) == 3
    assert sum(int(point["asInt"]) for _, point in last["dbslower.statement.errors"]) == 2
    assert math.isclose(sum(point["asDouble"] for _, point in last["dbslower.statement.part"]),
                        total(families, DURATION, f"{DURATION}_sum"), rel_tol=1e-6)
    assert {attributes["dbslower.cause"]: int(point["asInt"]) for attributes, point in last["dbslower.losses"]
            } == only(traced, "summary")["lost"]


def test_top_by_fingerprint():
    """One exposition on the standard output, and nothing else."""
    made = Made()
    session = made.session(made.server(directory="/srv/pg"), uid=4711)
    for n in range(3):
        made.statement(session, f"select {n}, 'a\\b\"' ", ms=n + 1, rows=1)
    made.statement(session, b'select "no\\\nsuch" from pg_class', error="42703")
    families = parse(Replayed(made, "top", "--openmetrics", "-").stdout)
    texts = {one.labels["text"]: one.labels["fingerprint"] for one in families["dbslower_fingerprint_info"].samples}
    quick, failed = texts["select ?, ?"], texts['select "no\\\nsuch" from pg_class']
    count, errors = "dbslower_fingerprint_duration_seconds", "dbslower_fingerprint_errors"
    assert total(families, count, f"{count}_count", fingerprint=quick) == 3
    assert total(families, count, f"{count}_sum", fingerprint=quick) == 0.006
    assert total(families, errors, f"{errors}_total", fingerprint=quick) == 0
    assert total(families, errors, f"{errors}_total", fingerprint=failed) == 1
    assert total(families, "dbslower_fingerprint_rows", "dbslower_fingerprint_rows_total", fingerprint=quick) == 3
    (one,) = values(families, count, f"{count}_count", fingerprint=quick)
    assert one.labels["server"] == "/srv/pg" and one.labels["uid"] == "4711", one


def test_promtool():
    """Finds nothing to complain about: each family has its type, its text and a name by the rules."""
    promtool = need_promtool()
    for form in (("stat", "--why"), ("top",)):
        done = subprocess.run([promtool, "check", "metrics"], input=Replayed(hostile(), *form, "--openmetrics", "-").stdout,
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), form


def test_two_files_of_one_server(tmp_path):
    """No series is in both: else a collector of the directory would refuse them."""
    found = []
    for name in ("one.prom", "two.prom"):
        Replayed(hostile(), "stat", "--why", "--openmetrics", tmp_path / name)
        found.append({(one.name, *sorted(one.labels.items())) for family in parse((tmp_path / name).read_text()).values()
                      for one in family.samples})
    assert len(found[0]) == len(found[1]) > 100 and not found[0] & found[1]


def test_interval_ends_it(postgres):
    """With -i, the exposition on the standard output is that of the first interval."""
    for command in ("stat", "top"):
        done = run(command, "-p", postgres.pid, "--openmetrics", "-", "-i", "0.1")
        assert done.returncode == 0 and "dbslower_build_info" in parse(done.stdout), done


def test_counters_grow(postgres, tool, tmp_path):
    """Each exposition is complete, and no counter of it is less than in the one before; JSON is as without."""
    path = tmp_path / "m.prom"
    traced = tool("stat", "-p", postgres.pid, "--json", "-i", "0.05", "--openmetrics", path, kind=Stat)
    wait_for(path.exists, what="the first exposition")
    before = {}
    with postgres.connect() as connection:
        for n in range(5):
            connection.pgconn.exec_(b"select 1")
            def seen():
                families = parse(path.read_bytes().decode())
                now = {(one.name, *sorted(one.labels.items())): one.value for family in families.values()
                       if family.type in ("counter", "histogram") for one in family.samples}
                assert all(now[key] >= value for key, value in before.items() if not key[0].endswith("_created"))
                before.update(now)
                return total(families, DURATION, f"{DURATION}_count") == n + 1
            wait_for(seen, what=f"statement {n} in the file")
    assert traced.stop() == 0 and sum(one["count"] for one in traced.histograms) == 5, traced.said()


def block(path):
    """Replaces a file by a directory, though the tool may create it again in between."""
    while not path.is_dir():
        path.unlink(missing_ok=True)
        try:
            path.mkdir()
        except FileExistsError:
            pass


def test_file_that_cannot_be_written(postgres, tool, tmp_path):
    """A failure after a success is reported once and tried again; only at the end does it matter."""
    path, otlp = tmp_path / "m.prom", tmp_path / "full"
    otlp.symlink_to("/dev/full")
    refused = run("stat", "-p", postgres.pid, "-i", "0.1", "--otlp-metrics", otlp)
    assert refused.returncode == 1 and f"dbslower: {otlp}: cannot write: No space left on device; free space" in refused.stderr, refused
    traced = tool("stat", "-p", postgres.pid, "-i", "0.05", "--openmetrics", path)
    wait_for(path.exists, what="the first exposition")
    said = f"dbslower: {path}: cannot write: "
    block(path)
    traced.wait_for(lambda tool: re.search(re.escape(said) + ".*; specify another file\n", tool.err.text))
    path.rmdir()
    with postgres.connect() as connection:
        connection.execute("select 'again'")
    wait_for(lambda: path.is_file() and 'command="select"' in path.read_text(), what="metrics after the failure")
    assert traced.stderr.count(said) == 1, traced.said()
    block(path)
    assert traced.stop() == 1 and traced.stderr.count(said) >= 2, traced.said()


def test_heatmap():
    """Shades of text, as the output is no terminal: each statement is in a line's number, and at its place."""
    made = Made()
    session = made.session(made.server())
    for at, ms in ((10, 0.02), (210, 20), (231, 0.2), (240, 21)):
        made.statement(session, "select 1", at=at, ms=ms)
    traced = Replayed(made, "stat", "--heatmap", "-i", "0.1")
    lines = re.findall(r"^\d\d:\d\d:\d\d (.{54}) (\d+)$", traced.stdout, re.M)
    assert [int(count) for _, count in lines][:3] == [1, 0, 3] and "\033" not in traced.stdout, traced.said()
    axis = next(line for line in traced.stdout.splitlines() if "100us" in line)
    decade = {text: axis.index(text) - len("00:00:00 ") for text in ("10us", "100us", "10ms", "100ms")}
    for cells, count in lines:
        assert set(cells) <= set(" .:-=+*#%@") and (cells.strip() == "") == (count == "0")
    def places(n):
        return [at for at, cell in enumerate(lines[n][0]) if cell != " "]
    (first,), (quick, *slow) = places(0), places(2)
    assert decade["10us"] < first < decade["100us"] < quick < decade["10ms"], traced.said()
    assert slow and all(decade["10ms"] < at < decade["100ms"] for at in slow), traced.said()
