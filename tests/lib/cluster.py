# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A temporary PostgreSQL cluster: Debian's server in a directory of its own."""

import atexit
import contextlib
import glob
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref

import lanes

# %n epoch.ms, %p pid, %c session, %l line, %b backend type, %u user, %d database,
# %v virtual transaction, %e SQLSTATE, %a application name. oracle.py reads it.
LOG_LINE_PREFIX = "%n|%p|%c|%l|%b|%u|%d|%v|%e|%a| "

SETTINGS = {
    "log_min_duration_statement": "0",
    "log_line_prefix": f"'{LOG_LINE_PREFIX}'",
    "log_destination": "stderr",
    "logging_collector": "off",
    "lc_messages": "C",
    "max_connections": "100",
    "max_prepared_transactions": "4",
    "autovacuum": "off",		# its statements are in test_without_clients.py
    "autovacuum_naptime": "1s",
    "min_parallel_table_scan_size": "64kB",
}


MEMORY = "/dev/shm"
PORTS = range(12000 + lanes.NUMBER, 32000, len(lanes.NAMES))	# below net.ipv4.ip_local_port_range
ports = set()		# that were given to a server

running = weakref.WeakSet()	# servers that a test has started, of any kind


def server_bindir():
    """Debian's newest server with initdb beside it, or None."""
    found = []
    for path in glob.glob("/usr/lib/postgresql/*/bin/postgres"):
        folder = os.path.dirname(path)
        version = re.search(r"/postgresql/(\d+)/", path)
        if version and os.access(os.path.join(folder, "initdb"), os.X_OK):
            found.append((int(version[1]), folder))
    return max(found)[1] if found else None


def wait_for(condition, timeout=60, what="the condition", every=0.02):
    """Waits until condition() is true; returns its value. Fails with @what after @timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout} s for {what}; last seen: {value!r}")
        time.sleep(every)


def free_port():
    """A port that no server has. The kernel gives none of these to a client before the server starts, or starts again."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.add(port)
            return port


copies = {}	# of programs


def own_copy(program):
    """
    A copy that no other process of the tests runs, nor a server of the host, and that stays when its package is upgraded. It
    finds the rest in Debian's places.
    """
    if program not in copies:
        folder = tempfile.mkdtemp(prefix="dbslower-program-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        copies[program] = shutil.copy(program, folder)
    return copies[program]


templates = {}	# of data directories: the folder that has it, by the program that made it


def copy_template(data, make):
    """
    Make a data directory as make(folder) does, which runs once for all servers of a program: it takes seconds,
    and a copy does not.
    """
    if make not in templates:
        templates[make] = tempfile.mkdtemp(prefix="dbslower-template-")
        atexit.register(shutil.rmtree, templates[make], ignore_errors=True)
        try:
            make(templates[make])
        except BaseException:
            del templates[make]
            raise
    subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(templates[make], "data"), data], check=True)


def init_template(folder):
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    done = subprocess.run(
        [os.path.join(server_bindir(), "initdb"), "-D", os.path.join(folder, "data"), "-U", "postgres", "-A", "trust",
         "-N", "-E", "UTF8", "--locale=C.UTF-8"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **run_as())
    if done.returncode:
        raise RuntimeError(f"initdb failed:\n{done.stdout}")


def run_as():
    """Keyword arguments for Popen: the server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def log_path(folder, name):
    """The path of a log of the server in @folder: in memory, if there is a file system for that."""
    return os.path.join(MEMORY, f"{os.path.basename(folder)}.{name}") if os.path.isdir(MEMORY) else os.path.join(folder, name)


class Cluster:
    """init() makes it, start() and stop() run it, remove() leaves nothing behind."""
    loader, environment, template = (), {}, staticmethod(init_template)		# of a release of its own

    def __init__(self, postgres=None, name="", wrap=(), **settings):
        self.bindir = server_bindir()
        self.postgres = postgres or own_copy(os.path.join(self.bindir, "postgres"))
        self.name = name
        self.wrap = wrap                # a command that runs the server as its only child
        self.settings = {**SETTINGS, **settings}
        self.dir = tempfile.mkdtemp(prefix="dbslower-pg-")
        self.data = os.path.join(self.dir, "data")
        self.socket_dir = os.path.join(self.dir, "s")
        self.log = log_path(self.dir, "log")
        self.port = free_port()
        self.process = None

    @property
    def pid(self):
        """The postmaster's, as seen from here."""
        if not self.process:
            return None
        return wait_for(lambda: children(self.process.pid), what="the server")[0] if self.wrap else self.process.pid

    def init(self):
        os.mkdir(self.socket_dir)
        os.chmod(self.dir, 0o755)
        os.chmod(self.socket_dir, 0o777)
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        copy_template(self.data, self.template)
        settings = {
            "port": self.port,
            "listen_addresses": "'127.0.0.1'",
            "unix_socket_directories": f"'{self.socket_dir}'",
            "cluster_name": f"'{self.name}'",
            **self.settings,
        }
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in settings.items())
        return self

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*(part.format(dir=self.dir) for part in self.wrap), *self.loader, self.postgres, "-D", self.data], cwd=self.dir, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **self.environment}, **({} if self.wrap else run_as()))
        wait_for(self.answers, 60, f"the server to answer; its log ends:\n{self.log_tail()}")
        self.settle()		# the connection that asked goes on after its client
        running.add(self)
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server exited with {self.process.returncode}:\n{self.log_tail()}")
        return subprocess.run(["pg_isready", "-q"], env=self.env()).returncode == 0

    def stop(self):
        """A fast shutdown of this postmaster and with it of its own children."""
        if not self.process:
            return
        for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self.process.poll() is None:
                send(sig, *children(self.process.pid) if self.wrap else [self.process.pid])
            try:
                self.process.wait(60)
                break
            except subprocess.TimeoutExpired:
                continue
        self.process = None

    def restart(self):
        self.stop()
        self.start()

    def remove(self):
        self.stop()
        if os.path.exists(self.log):
            os.remove(self.log)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.remove()

    # clients

    def env(self, **more):
        """Environment of a libpq program that connects here."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        env.update(PGHOST=self.socket_dir, PGPORT=str(self.port), PGUSER="postgres",
                   PGDATABASE="postgres", LC_ALL="C.UTF-8", PGCONNECT_TIMEOUT="30")
        env.update({key: str(value) for key, value in more.items()})
        return env

    def psql(self, *sql, stdin=None, check=True, **env):
        """Each text of @sql is one message to the server. Returns the CompletedProcess."""
        command = ["psql", "-X", "-q", "-A", "-t"]
        for text in sql:
            command += ["-c", text]
        done = subprocess.run(command, env=self.env(**env), input=stdin, capture_output=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError(f"psql {sql}: {done.stderr.decode(errors='replace')}")
        return done

    def connect(self, **keywords):
        """A psycopg connection, autocommit unless told otherwise."""
        import psycopg
        keywords = {"host": self.socket_dir, "port": self.port, "user": "postgres", "dbname": "postgres",
                    "autocommit": True, **keywords}
        return psycopg.connect(**keywords)

    def backends(self):
        """PIDs of this postmaster's children."""
        out = []
        for stat in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(stat, errors="replace") as f:
                    pid, rest = f.read().split(" ", 1)
            except OSError:
                continue
            if int(rest.rsplit(")", 1)[1].split()[1]) == self.pid:
                out.append(int(pid))
        return sorted(out)

    def client_backends(self):
        """PIDs of the processes that serve a client, by their title."""
        return [pid for pid in self.backends() if re.search(rb" (\[local\]|127\.0\.0\.1\(\d+\)) ", title(pid))]

    def wait_blocked(self, pid):
        """Wait until a backend has left its CPU for a lock of another one. It says that it waits before it does."""
        query = f"select 1 from pg_stat_activity where pid = {pid} and wait_event_type = 'Lock'"
        wait_for(lambda: self.psql(query).stdout and has_left_cpu(pid), what=f"backend {pid} to wait for a lock")

    def disconnect_all(self):
        """End the connections that a failed test left open."""
        self.psql("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' "
                  "and pid <> pg_backend_pid()", check=False)
        self.settle()

    # the log

    def log_size(self):
        return os.stat(self.log).st_size

    def read_log(self, offset=0):
        with open(self.log, "rb") as f:
            f.seek(offset)
            return f.read()

    def log_tail(self, size=2000):
        return self.read_log()[-size:].decode(errors="replace") if os.path.exists(self.log) else ""

    def settle(self):
        """Waits until no client is connected any more: then the log is complete."""
        wait_for(lambda: not self.client_backends(), 60, "the clients' backends to end")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def send(sig, *pids):
    """Signal processes; a child of another one may have ended and be reaped meanwhile."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


def state(pid):
    """The letter of the process's state: S is asleep, T stopped."""
    with open(f"/proc/{pid}/status") as f:
        return re.search(r"^State:\s+(\w)", f.read(), re.M)[1]


def threads_that_run(pid):
    """The TIDs of the process's threads that run, or would, or wait for a disk."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        try:
            with open(path, "rb") as f:
                status = f.read()
        except OSError:
            continue	# it has ended
        if re.search(rb"^State:\s+[RD]", status, re.M):
            found.add(path.split("/")[4])
    return found


def has_left_cpu(pid):
    """
    Return whether the process sleeps or is stopped, and another one has its CPU. Its state says so before, and so does a
    server of a session that is about to wait.
    """
    with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
        return not f.read().startswith("running")


def scheduled(pid):
    """The nanoseconds that the kernel counted of a process or thread on a CPU, and waiting for one."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return [int(word) for word in f.read().split()[:2]]


def sleeps(pid):
    """Whether it sleeps for a while: it has done what there was to do."""
    if not has_left_cpu(pid):
        return False
    before = scheduled(pid)
    time.sleep(0.03)
    return scheduled(pid) == before and has_left_cpu(pid)


def title(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ")
    except OSError:
        return b""


def other_servers(*known):
    """PIDs of PostgreSQL servers that no test started."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and re.match(rb"\S*/(postgres|postmaster) -D ", title(name)):
            if int(name) not in known:
                found.append(int(name))
    return found
