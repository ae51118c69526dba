# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/fleet: the services under their restrictions, rotation, alert rules, dashboard, and questions to DuckDB."""

import collections
import datetime
import json
import math
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from cluster import wait_for
from requirements import need_promtool, need_root
from tool import CACHE, DBSLOWER, ROOT, TESTS, Tool

FLEET = os.path.join(ROOT, "docs/fleet")
MODULES = os.path.join(CACHE, "duckdb", "node_modules")
UNITS = ("dbslower.service", "dbslower-metrics.service")
# At least so many are asked about.
STATEMENTS = int(os.environ.get("STATEMENTS", 1000000))


def need(program, package):
    if not shutil.which(program):
        pytest.skip(f"no {program} (package {package})")


def read(name):
    with open(os.path.join(FLEET, name)) as f:
        return f.read()


def run(*command, **keywords):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, **keywords)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


# --- the services

def settings(unit):
    """{key: [values]} of a unit."""
    found = collections.defaultdict(list)
    for key, value in re.findall(r"^(\w+)=(.*)$", read(unit), re.M):
        found[key].append(value)
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_exposure(unit, tmp_path):
    """systemd knows each setting, and its score is the one that docs/fleet.md states."""
    need("systemd-analyze", "systemd")
    shutil.copy(os.path.join(FLEET, unit), tmp_path)
    text = re.sub("ExecStart=/usr/sbin/dbslower", f"ExecStart={DBSLOWER}", read(unit))
    (tmp_path / unit).write_text(text)
    said = run("systemd-analyze", "verify", "--man=no", tmp_path / unit)
    assert not [line for line in said.splitlines() if unit in line], said
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", tmp_path / unit)
    score = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1]
    with open(os.path.join(ROOT, "docs/fleet.md")) as f:
        assert f"`{unit}` has an exposure of {score}" in f.read(), said


# UNIT_SYSCALLS COMMAND...: fail all system calls that are not among UNIT_SYSCALLS with EPERM, and execute. Behind
# lib/seccomp.py, which can be below /home.
CONFINED = """
import os, re, sys
allowed = set(sys.argv[1].split())
with open("/usr/include/asm-generic/unistd.h") if os.uname().machine != "x86_64" else \\
        open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") as f:
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\\w+) (\\d+)", f.read())}
deny(*[(number, 1) for name, number in numbers.items() if name not in allowed])()
os.execv(sys.argv[2], sys.argv[2:])
"""


def permitted_calls(filters):
    """The system calls that SystemCallFilter= permits, by systemd's sets."""
    sets, name = collections.defaultdict(set), None
    for line in run("systemd-analyze", "syscall-filter", "--no-pager").splitlines():
        if line.startswith("@"):
            name = line.strip()
        elif line.strip() and not line.strip().startswith("#"):
            sets[name].add(line.strip())

    def members(word):
        return set().union(*(members(one) for one in sets[word])) if word.startswith("@") else {word}

    calls = members("@default")
    for words in filters:
        for word in words.lstrip("~").split():
            calls = calls - (members(word) - members("@default")) if words[0] == "~" else calls | members(word)
    return calls


# What ProtectSystem, ProtectKernelTunables, ProtectHome and PrivateTmp do, in a mount namespace. The rest of /run is
# visible to the service, too.
MOUNTS = """
set -e
mount --make-rprivate /
[ -z "$2" ] || mount --bind "$2" "$2"
mount -o remount,bind,ro /
mount -o remount,bind,ro /sys
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t tmpfs -o ro none /home
shift 2
exec "$@"
"""


def wrap(unit, program, directory):
    """The command before the arguments of @program that confines it as @unit does, as far as it can be done by hand."""
    unit = settings(unit)
    caps = {one.lower().removeprefix("cap_") for one in unit["AmbientCapabilities"][0].split()}
    assert unit["CapabilityBoundingSet"] == unit["AmbientCapabilities"] and unit["DynamicUser"] == ["yes"]
    assert unit["PrivateNetwork"] == unit["ProtectKernelTunables"] == unit["ProtectHome"] == ["yes"]
    with open(os.path.join(TESTS, "lib", "seccomp.py")) as f:
        seccomp = f.read()
    caps = ",".join(["-all", *(f"+{one}" for one in sorted(caps))])
    return ["unshare", "-mn", "sh", "-c", MOUNTS, "sh", "-", directory,
            "setpriv", "--reuid=61184", "--regid=61184", "--clear-groups", "--no-new-privs", f"--inh-caps={caps}",
            f"--ambient-caps={caps}", f"--bounding-set={caps}",
            "/usr/bin/python3", "-c", seccomp + CONFINED,
            " ".join(sorted(permitted_calls(unit["SystemCallFilter"]))), program]


@pytest.fixture
def program():
    """A copy of the tool that any user may execute, outside /home and /tmp."""
    path = f"/usr/local/sbin/dbslower-test-{os.getpid()}"
    shutil.copy(DBSLOWER, path)
    yield path
    os.unlink(path)


def test_service_under_its_restrictions(postgres, program, tmp_path):
    """The command of dbslower.service logs statements with the service's user, capabilities and system calls only."""
    need_root()
    need("systemd-analyze", "systemd")
    unit = "dbslower.service"
    command = settings(unit)["ExecStart"][0].split()
    assert command == ["/usr/sbin/dbslower", "$DBSLOWER_OPTIONS", "--json"]
    log, said = tmp_path / "statements.json", tmp_path / "said"
    with open(log, "a") as out, open(said, "w") as err:
        process = subprocess.Popen([*wrap(unit, program, ""), "0", "--redact", "-p", str(postgres.pid), "--json"],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    try:
        wait_for(lambda: "dbslower: tracing" in said.read_text() or process.poll() is not None, 60, "it to attach")
        assert process.poll() is None, said.read_text()
        with postgres.connect() as connection:
            connection.execute("select 'confined', 42")
        wait_for(lambda: "select ?, ?" in log.read_text(), 60, "the statement")
    finally:
        process.terminate()
        process.wait(60)
    line = next(json.loads(line) for line in log.read_text().splitlines() if "select ?, ?" in line)
    assert (line["database"], line["user"], line["status"]) == ("postgres", "postgres", "ok")
    assert process.returncode == 0, said.read_text()


def test_metrics_service_under_its_restrictions(postgres, program, tmp_path):
    """The command of dbslower-metrics.service replaces its file in the directory that systemd gives to it."""
    need_root()
    need("systemd-analyze", "systemd")
    unit = "dbslower-metrics.service"
    command = settings(unit)["ExecStart"][0].split()
    assert command[1:4] == ["stat", "$DBSLOWER_OPTIONS", "--openmetrics"]
    directory, said = tempfile.mkdtemp(dir="/run"), tmp_path / "said"
    given = settings(unit)["RuntimeDirectory"]
    assert given == [os.path.basename(os.path.dirname(command[4]))]
    metrics = os.path.join(directory, os.path.basename(command[4]))
    os.chown(directory, 61184, 61184)

    def has(text):
        with open(metrics) if os.path.exists(metrics) else open(os.devnull) as f:
            return text in f.read()

    with open(said, "w") as err:
        process = subprocess.Popen([*wrap(unit, program, directory), "stat", "-i", "100ms", "--why", "--openmetrics",
                                    metrics, "-p", str(postgres.pid)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        wait_for(lambda: has("dbslower_build_info") or process.poll() is not None, 60, "metrics")
        assert process.poll() is None, said.read_text()
        with postgres.connect() as connection:
            connection.execute("select 'confined', 42")
        wait_for(lambda: has('command="select"'), 60, "the statement")
        with open(metrics) as f:
            exposition = f.read()
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(directory)
    written = set(re.findall(r"^\w+", exposition, re.M))
    (counted,) = re.findall(r'^dbslower_statement_duration_seconds_count\{(.*command="select".*)\} ', exposition, re.M)
    assert 'server="/' in counted and f'uid="{os.stat(f"/proc/{postgres.pid}").st_uid}"' in counted, counted
    asked = set(re.findall(r"(?<![:\w])dbslower_\w+", read("rules.yml") + read("dashboard.json")))
    assert len(asked) > 7 and asked <= written, asked - written


def test_rotation(postgres, tmp_path):
    """logrotate's copytruncate, with the settings of the packages: no line is lost, and none is written twice."""
    need_root()
    need("logrotate", "logrotate")
    log, said, config = (tmp_path / name for name in ("statements.json", "said", "logrotate.conf"))
    config.write_text(read("dbslower.logrotate").replace("/var/log/dbslower/statements.json", str(log)))
    os.chmod(config, 0o644)
    os.chmod(tmp_path, 0o755)
    with open(log, "a") as out, open(said, "w") as err:
        process = subprocess.Popen([DBSLOWER, "0", "-p", str(postgres.pid), "--json"], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err)
    try:
        wait_for(lambda: "dbslower: tracing" in said.read_text(), 60, "it to attach")
        with postgres.connect() as connection:
            for text in ("before", "after"):
                connection.execute(f"select '{text}'")
                wait_for(lambda: re.search(f"'{text}'.*\n", log.read_text()), 60, "the statement")
                if text == "before":
                    run("logrotate", "--force", "--state", tmp_path / "state", config)
    finally:
        process.terminate()
        process.wait(60)
    rotated = (tmp_path / "statements.json.1").read_text()
    now = log.read_text()
    assert ("'before'" in rotated, "'after'" in rotated) == (True, False) and "'before'" not in now
    assert [json.loads(line)["query"] for line in now.splitlines() if '"query"' in line] == ["select 'after'"]


# --- Prometheus

def test_rules():
    promtool = need_promtool()
    assert "SUCCESS" in run(promtool, "check", "rules", "rules.yml", cwd=FLEET)
    assert "SUCCESS" in run(promtool, "test", "rules", "rules_test.yml", cwd=FLEET)
    alerts = set(re.findall(r"- alert: (\w+)", read("rules.yml")))
    assert alerts == set(re.findall(r"alertname: (\w+)", read("rules_test.yml"))), "each alert is tested"


def test_dashboard(tmp_path):
    """Each expression is one of PromQL, once Grafana's variables have values."""
    promtool = need_promtool()
    dashboard = json.loads(read("dashboard.json"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {one["name"] for one in dashboard["templating"]["list"]}
    rules = []
    for n, expression in enumerate(expressions):
        assert set(re.findall(r"\$(\w+)", expression)) <= names | {"__rate_interval", "__range"}, expression
        expression = re.sub(r"\$__\w+", "5m", expression)
        rules.append({"record": f"expression:{n}", "expr": re.sub(r"\$\w+", ".*", expression)})
    assert len(rules) > 10 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in run(promtool, "check", "rules", tmp_path / "rules.json")


# --- DuckDB

def traced_lines(postgres):
    """Lines of the tool about statements of several kinds."""
    with Tool("0", "-p", postgres.pid, "--json", "--why", "--redact") as traced:
        with postgres.connect() as connection:
            for n in range(5):
                connection.execute(f"select {n}, 'text'")
                connection.execute("select count(*) from pg_class")
            with pytest.raises(Exception, match="division by zero"):
                connection.execute("select 1 / 0")
            connection.execute("select pg_sleep(0.01), 'last'")
        traced.wait_for(lambda tool: "pg_sleep" in tool.out.text)
        traced.stop()
    return [json.loads(line) for line in traced.out.text.splitlines() if '"type":"statement"' in line]


def moment(line):
    return datetime.datetime.fromisoformat(line["time"][:26] + "+00:00")


def hosts(lines):
    """{host: lines}: a has all; b has most, two hours before, of which one is slower and waits for a lock."""
    others = []
    for line in json.loads(json.dumps(lines)):
        line["time"] = (moment(line) - datetime.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        if "pg_class" in line["query"]:
            line["duration_ms"] *= 1000
            line["why_ms"]["lock"] = line["duration_ms"]
        if "pg_sleep" not in line["query"]:
            others.append(line)
    return {"a": lines, "b": others}


def ask(logs):
    """The rows of the ten questions, by DuckDB."""
    if not os.path.exists(MODULES) or not shutil.which("node"):
        pytest.skip("no DuckDB for Node.js (ci/dependencies duckdb)")
    questions = re.findall(r"^-- (\d+)\. .*\n((?:[^-\n].*\n)+)", read("questions.sql"), re.M)
    assert [int(number) for number, _ in questions] == list(range(1, 11))
    out = run("node", os.path.join(TESTS, "lib/duckdb.mjs"), MODULES, "SET TimeZone = 'UTC'",
              f"SET VARIABLE logs = ['{logs}/*/statements.json*']", read("duckdb.sql"), *(sql for _, sql in questions))
    return [json.loads(line) for line in out.splitlines()][3:]


def grouped(rows, *keys):
    """{keys: [number, sum of durations, list of (duration, number)]} of (line, host, number)."""
    found = {}
    for line, host, number in rows:
        entry = found.setdefault(tuple(key(line, host) for key in keys), [0, 0, []])
        entry[0] += number
        entry[1] += number * line["duration_ms"]
        entry[2].append((line["duration_ms"], number))
    return found


def quantile(durations, q):
    """The smallest value that at least the share q of the values does not exceed."""
    rank, seen = math.ceil(q * sum(number for _, number in durations)), 0
    for value, number in sorted(durations):
        seen += number
        if seen >= rank:
            return value
    return None


def close(value):
    return pytest.approx(value, rel=1e-9)


def test_ten_questions(postgres, tmp_path):
    """DuckDB's answers about many statements, which are copies of some, are what the copied lines say."""
    need_root()
    by_host = hosts(traced_lines(postgres))
    copies = STATEMENTS // sum(len(lines) for lines in by_host.values()) + 1
    for host, lines in by_host.items():
        os.mkdir(tmp_path / host)
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with open(tmp_path / host / "statements.json", "wb") as f:
            f.write(b'{"type":"start","schema":1}\n')
            for _ in range(copies):
                f.write(text)
    answers = ask(tmp_path)
    for host in by_host:
        shutil.rmtree(tmp_path / host)
    rows = [(line, host, copies) for host, lines in by_host.items() for line in lines]

    def query(line, _):
        return line["query"]

    def of_host(_, host):
        return host

    assert sum(int(row[2]) for row in answers[1]) == sum(number for _, _, number in rows) >= STATEMENTS
    by_query = grouped(rows, query)
    assert {row[0]: [int(row[1]), row[2]] for row in answers[0]} == {
        key[0]: [entry[0], close(entry[1])] for key, entry in by_query.items()}
    totals = [row[2] for row in answers[0]]
    assert totals == sorted(totals, reverse=True)

    by_database = grouped(rows, of_host, lambda line, _: line["database"])
    assert {tuple(row[:2]): [int(row[2]), row[3], row[4]] for row in answers[1]} == {
        key: [entry[0], quantile(entry[2], 0.5), quantile(entry[2], 0.99)] for key, entry in by_database.items()}

    by_hour = grouped(rows, lambda line, _: moment(line).strftime("%Y-%m-%d %H:00:00+00"))
    assert [[row[0], int(row[1])] for row in answers[2]] == [[key[0], by_hour[key][0]] for key in sorted(by_hour)]

    assert [[row[0], row[1], int(row[2]), int(row[3])] for row in answers[3]] == [["22012", None, 2 * copies, 1]]

    by_user = grouped(rows, lambda line, _: line["user"], lambda line, _: line.get("client"))
    assert {tuple(row[:2]): [int(row[2]), row[3]] for row in answers[4]} == {
        key: [entry[0], close(entry[1])] for key, entry in by_user.items()}

    by_server = grouped(rows, of_host, *(lambda line, _, key=key: line["server"].get(key)
                                         for key in ("engine", "version", "path")))
    assert {tuple(row[:4]): row[4] for row in answers[5]} == {
        key: close(entry[1] / 1000) for key, entry in by_server.items()}

    means = {key: entry[1] / entry[0] for key, entry in grouped(rows, query, of_host).items()}
    slower = {key: mean for key, mean in means.items()
              for other in [means.get((key[0], "b" if key[1] == "a" else "a"))] if other and mean > 2 * other}
    assert {tuple(row[:2]): row[2] for row in answers[6]} == {key: close(mean) for key, mean in slower.items()}
    assert any("pg_class" in key[0] and key[1] == "b" for key in slower)

    parts = collections.Counter()
    for line, _, number in rows:
        parts.update({part: number * ms for part, ms in line["why_ms"].items()})
    assert {row[0]: row[1] for row in answers[7]} == {part: close(ms) for part, ms in parts.items()}

    locked = [(line, host, number) for line, host, number in rows if line["why_ms"]["lock"] > 0]
    assert {row[0]: int(row[1]) for row in answers[8]} == {
        key[0]: entry[0] for key, entry in grouped(locked, query).items()} != {}

    new = {line["query"] for line in by_host["a"]} - {line["query"] for line in by_host["b"]}
    assert {row[0] for row in answers[9]} == new != set()
