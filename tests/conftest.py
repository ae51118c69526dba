# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures, the unit programs' TAP lines as items, and the result line that ci/test prints."""

import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import Cluster, server_bindir, title	# noqa: E402
from tool import BUILD, DBSLOWER, Tool	# noqa: E402

UNIT_TIMEOUT = 300
OUTPUT_LIMIT = 256 << 20


# --- the unit programs: tests/unit/NAME.c is $BUILD/tests/unit/NAME

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.parent.name == "unit" and is_program(file_path):
        return TapProgram.from_parent(parent, path=file_path)
    return None


def is_program(path):
    return re.search(r"^int\s+main\(|^main\(", path.read_text(errors="replace"), re.M) is not None


class TapProgram(pytest.File):
    """A program whose output is TAP; it runs at collection, each line becomes an item."""

    def collect(self):
        program = os.path.join(BUILD, "tests", "unit", self.path.stem)
        if not os.access(program, os.X_OK):
            yield TapItem.from_parent(self, name="built", ok=False, why=f"{program} is not there: run make first")
            return
        out, status = run_program(program)
        names = {}
        for name, ok, skip, why in parse_tap(out):
            names[name] = names.get(name, 0) + 1
            unique = name if names[name] == 1 else f"{name}#{names[name]}"
            yield TapItem.from_parent(self, name=unique, ok=ok, skip=skip, why=why)
        fault = plan_fault(out, status)
        yield TapItem.from_parent(self, name="ran to its end", ok=not fault, why=fault)


class TapItem(pytest.Item):
    def __init__(self, *, ok, skip=None, why="", **keywords):
        super().__init__(**keywords)
        self.ok, self.skip, self.why = ok, skip, why

    def runtest(self):
        if self.skip is not None:
            pytest.skip(self.skip or "no reason given")
        if not self.ok:
            raise TapFailure(self.why)

    def repr_failure(self, excinfo):
        return str(excinfo.value) if excinfo.errisinstance(TapFailure) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, 0, f"{self.path.stem}: {self.name}"


class TapFailure(Exception):
    """A line that says "not ok"."""


def limit_output():
    """A loop that writes without end fails its test and not the machine."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_LIMIT, OUTPUT_LIMIT))


def run_program(program):
    try:
        done = subprocess.run([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=UNIT_TIMEOUT, preexec_fn=limit_output)
    except subprocess.TimeoutExpired as why:
        return (why.stdout or b"").decode(errors="replace"), f"no end within {UNIT_TIMEOUT} s"
    return done.stdout.decode(errors="replace"), done.returncode


RESULT = re.compile(r"(not )?ok\b\s*(\d*)\s*-?\s*([^#]*?)\s*(?:#\s*skip\b\s*(.*))?", re.I)


def parse_tap(out):
    """Yields (name, ok, reason of a skip or None, the lines before it) of each result line."""
    notes = []
    for line in out.splitlines():
        match = RESULT.fullmatch(line)
        if match:
            yield match[3] or f"test {match[2]}", not match[1], match[4], "\n".join(notes) or line
            notes = []
        else:
            notes.append(line)


def plan_fault(out, status):
    """Why the program's run as a whole is no good, or ''. A crash must not look like an end."""
    results = [match for match in map(RESULT.fullmatch, out.splitlines()) if match]
    plans = re.findall(r"^1\.\.(\d+)\s*$", out, re.M)
    bad = any(match[1] for match in results)
    tail = "\n" + out[-2000:]
    if plans != [str(len(results))]:
        return f"{len(results)} results, plan {plans}, exit {status}:{tail}"
    if not results:
        return "it has no test"
    if status != (1 if bad else 0):
        return f"exit {status} with {'failed' if bad else 'only good'} results:{tail}"
    return ""


# --- the result: N passed, N failed, N skipped

outcomes = {}


def pytest_runtest_logreport(report):
    """The worst of an item's phases counts. An expected failure is a failure."""
    rank = {"passed": 0, "skipped": 1, "failed": 2}
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "failed"
    if report.when == "call" or outcome != "passed":
        before = outcomes.get(report.nodeid, "passed")
        outcomes[report.nodeid] = max(before, outcome, key=rank.get)


def pytest_collectreport(report):
    if report.failed:
        outcomes[report.nodeid] = "failed"
    elif report.skipped:
        outcomes[report.nodeid] = "skipped"


def pytest_sessionfinish(session, exitstatus):
    counts = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    if counts["passed"] + counts["failed"] == 0 or (exitstatus not in (0, 1) and not counts["failed"]):
        counts["failed"] += 1		# nothing ran, or it did not run to its end
    if counts["failed"] and exitstatus == 0:
        session.exitstatus = 1
    if os.environ.get("DBSLOWER_RESULT"):
        with open(os.environ["DBSLOWER_RESULT"], "w") as f:
            f.write("{passed} passed, {failed} failed, {skipped} skipped\n".format(**counts))


# --- fixtures

def need_server():
    if not server_bindir():
        pytest.skip("no PostgreSQL server under /usr/lib/postgresql (package postgresql-15)")


def need_root():
    if os.geteuid() != 0:
        pytest.skip("tracing needs root")


@pytest.fixture(scope="session")
def postgres():
    """The cluster that most tests share, running."""
    need_server()
    with Cluster(name="shared").init() as cluster:
        yield cluster.start()


@pytest.fixture(autouse=True)
def shared_runs(request):
    """A test that stopped the shared cluster may fail; the next one finds it running."""
    yield
    if "postgres" in request.fixturenames:
        cluster = request.getfixturevalue("postgres")
        if cluster.process is None or cluster.process.poll() is not None:
            cluster.stop()
            cluster.start()


@pytest.fixture
def clusters():
    """clusters(postgres=PATH, name=…, setting=…) makes another cluster and starts it."""
    need_server()
    made = []

    def make(start=True, **keywords):
        cluster = Cluster(**keywords)
        made.append(cluster)
        cluster.init()
        return cluster.start() if start else cluster

    yield make
    for cluster in made:
        cluster.remove()


@pytest.fixture
def server_copy(tmp_path):
    """A copy of the server's program, an inode of its own. The rest it finds in Debian's places."""
    need_server()
    folder = tmp_path / "copy"
    folder.mkdir()
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and str(parent).startswith("/tmp/") and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o055)
    path = folder / "postgres"
    shutil.copy(os.path.join(server_bindir(), "postgres"), path)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tool():
    """tool(ARGS…) runs dbslower, attached, as a Tool or kind; what still runs at the end is killed."""
    need_root()
    if not os.access(DBSLOWER, os.X_OK):
        pytest.fail(f"{DBSLOWER} is not there: run make first")
    running = []

    def start(*args, kind=Tool, **keywords):
        running.append(kind(*args, **keywords))
        return running[-1]

    yield start
    for one in running:
        if one.status is None:
            one.kill()


def other_servers(*known):
    """PIDs of PostgreSQL servers that no test started."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and re.match(rb"\S*/(postgres|postmaster) -D ", title(name)):
            if int(name) not in known:
                found.append(int(name))
    return found
