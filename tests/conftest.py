# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures, the unit programs' TAP lines as items, and the result line that ci/test prints."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
pytest.register_assert_rewrite("backends", "elf_oracle", "elffile", "fuzzing", "soak", "statements", "tool")

import background	# noqa: E402
import lanes	# noqa: E402
from forced import not_under_force	# noqa: E402
from cluster import Cluster, children, running, server_bindir	# noqa: E402
from complaints import DurationsOff	# noqa: E402
from mysql_fixture import SERVERS	# noqa: E402
from requirements import need_root, need_server	# noqa: E402
from tap import limit_output, parse_tap, plan_fault	# noqa: E402
from tool import BUILD, DBSLOWER, FIXTURES, Tool	# noqa: E402

UNIT_TIMEOUT = 300
STRICT_SKIPS = bool(os.environ.get("STRICT_SKIPS"))	# a skip is a failure: on a machine with everything installed


def interrupt(*_):
    """End the tests, once: nothing interrupts what their fixtures remove."""
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda *_: None)
    raise KeyboardInterrupt


def pytest_configure(config):
    """
    Undo signals that are ignored since the start (nohup, a background job of a script): the programs under test
    would inherit that. A handler is not inherited, so SIGHUP does not end the tests.
    """
    for sig, handler in ((signal.SIGHUP, lambda *_: None), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, handler)
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, interrupt)
    if os.environ.get("DBSLOWER_PARENT"):
        background.end_with_parent(signal.SIGTERM)
        if os.getppid() != int(os.environ["DBSLOWER_PARENT"]):
            pytest.exit("ci/test has ended")
    config.addinivalue_line("markers", "alone: it concerns all of the host, so it runs beside no other, see lanes.py")
    config.addinivalue_line("markers", "calm: it compares durations, so it runs after all others and their jobs, and once "
                            "more at the end if nothing but these was off")


# --- the order: the largest files first; what compares durations runs when nothing else does, see background.py

def pytest_collection_modifyitems(config, items):
    out = [item for item in items if not_under_force(item) or not lanes.wants(rank(item) > 0)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]
    items.sort(key=lambda item: (rank(item), -item.path.stat().st_size, item.path))


def rank(item):
    return 3 if item.get_closest_marker("calm") else 2 if background.has_jobs(item) else bool(item.get_closest_marker("alone"))


def pytest_runtestloop(session):
    """With other processes, run those tests that no other one runs."""
    if not lanes.FOLDER or session.config.option.collectonly:
        return None
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    lanes.wait()
    taken = filter(lanes.takes, session.items)
    item = next(taken, None)
    while item:
        following = next(taken, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def pytest_collection_finish(session):
    if not session.config.option.collectonly:
        background.start_all(session.items)


def pytest_unconfigure(config):
    background.end()


# --- the unit programs: tests/unit/NAME.c is $BUILD/tests/unit/NAME

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.parent.name == "unit" and is_program(file_path):
        program = TapProgram.from_parent(parent, path=file_path)
        program.start()
        return program
    return None


def is_program(path):
    return re.search(r"^int\s+main\(|^main\(", path.read_text(errors="replace"), re.M) is not None


class TapProgram(pytest.File):
    """A program whose output is TAP; it runs at collection, one on each CPU, and each line becomes an item."""

    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def start(self):
        self.program = os.path.join(BUILD, "tests", "unit", self.path.stem)
        self.run = self.pool.submit(run_program, self.program)

    def collect(self):
        if not os.access(self.program, os.X_OK):
            yield TapItem.from_parent(self, name="built", ok=False, why=f"{self.program} is not there: run make first")
            return
        out, status = self.run.result()
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


def run_program(program):
    try:
        done = subprocess.run([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=UNIT_TIMEOUT, preexec_fn=limit_output)
    except subprocess.TimeoutExpired as why:
        return (why.stdout or b"").decode(errors="replace"), f"no end within {UNIT_TIMEOUT} s"
    return done.stdout.decode(errors="replace"), done.returncode




# --- the result: N passed, N failed, N skipped, and what is to be repeated

outcomes = {}
durations_off = set()	# calm tests of which nothing but durations was off


def pytest_runtest_logreport(report):
    """The worst of an item's phases counts. An expected failure is a failure."""
    rank = {"passed": 0, "skipped": 1, "failed": 2}
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "failed"
    if outcome == "skipped" and STRICT_SKIPS:
        outcome = "failed"
    if report.when == "call" or outcome != "passed":
        before = outcomes.get(report.nodeid, "passed")
        outcomes[report.nodeid] = max(before, outcome, key=rank.get)
    if getattr(report, "durations_off", False):
        durations_off.add(report.nodeid)
    elif outcome == "failed":
        durations_off.discard(report.nodeid)	# its teardown has failed, too


def pytest_collectreport(report):
    if report.failed:
        outcomes[report.nodeid] = "failed"
    elif report.skipped:
        outcomes[report.nodeid] = "failed" if STRICT_SKIPS else "skipped"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    counts = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED) and not counts["failed"]:
        counts["failed"] += 1		# it did not run to its end
    if counts["failed"] and exitstatus == 0:
        session.exitstatus = 1
    if os.environ.get("DBSLOWER_RESULT"):
        with open(os.environ["DBSLOWER_RESULT"], "w") as f:
            f.write("{passed} {failed} {skipped}\n".format(**counts))
            f.writelines(f"{name}\n" for name in sorted(durations_off))


# --- fixtures

@pytest.fixture(scope="session")
def postgres():
    """The cluster that most tests share, running."""
    need_server()
    with Cluster(name="shared").init() as cluster:
        yield cluster.start()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed
    report.durations_off = (report.when == "call" and report.failed and item.get_closest_marker("calm") is not None
                            and call.excinfo.errisinstance(DurationsOff))


@pytest.fixture(autouse=True)
def shared_runs(request):
    """A test that fails leaves no connection, no process and no stopped server to the next one."""
    before = set(children(os.getpid()))
    yield
    if getattr(request.node, "failed", False):
        for server in list(running):
            if server.process is not None and server.process.poll() is None:
                server.disconnect_all()
        servers = {server.process.pid for server in running if server.process is not None}
        for pid in set(children(os.getpid())) - before - servers:
            os.kill(pid, signal.SIGKILL)
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


@pytest.fixture(scope="module")
def folder():
    """A folder that other users can read."""
    path = tempfile.mkdtemp(prefix="dbslower-folder-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def public_tool(tmp_path_factory):
    """A copy that another user can run."""
    if not os.access(DBSLOWER, os.X_OK):
        pytest.fail(f"{DBSLOWER} is not there: run make first")
    folder = tmp_path_factory.mktemp("public")
    path = folder / "dbslower"
    shutil.copy(DBSLOWER, path)
    for parent in (folder, folder.parent, folder.parent.parent):
        if parent.stat().st_uid == os.geteuid() and str(parent) != "/tmp":
            parent.chmod(0o755)
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="session")
def mysql_program(tmp_path_factory):
    """mysql_program(NAME) compiles a server; returns its path, whose last part is mysqld."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    made = {}

    def build(name):
        if name not in made:
            source, options = SERVERS[name]
            if "usdt" in source and not os.path.exists("/usr/include/x86_64-linux-gnu/sys/sdt.h") \
                    and not os.path.exists("/usr/include/sys/sdt.h"):
                pytest.skip("no sys/sdt.h (package systemtap-sdt-dev)")
            path = str(tmp_path_factory.mktemp(name) / "mysqld")
            done = subprocess.run(
                ["gcc", *options, "-Wall", "-Wextra", "-o", path,
                 os.path.join(FIXTURES, source), "-Wl,--export-dynamic"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0, done.stdout
            made[name] = path
        return made[name]

    return build
