# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A temporary MariaDB server: Debian's, in a directory of its own.

Debian's packages mariadb-server-core and mariadb-client-core are enough: they bring no
service, no user and no database of the system's.
"""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from cluster import copy_template, free_port, log_path, own_copy, running, threads_that_run, wait_for
from fetched import fetched
from mariadb_client import Client

SERVER = "/usr/sbin/mariadbd"
INSTALL = "/usr/bin/mariadb-install-db"
CLIENT = "/usr/bin/mariadb"

# Everything goes to the slow log; mariadb_oracle.py reads it.
SETTINGS = {
    "slow_query_log": "ON",
    "log_output": "FILE",
    "long_query_time": "0",
    "log_slow_admin_statements": "ON",
    "log_slow_slave_statements": "ON",
    "log_slow_rate_limit": "1",
    "min_examined_row_limit": "0",
    "log_slow_verbosity": "query_plan",
    "event_scheduler": "OFF",
    "max_connections": "100",
    "max_allowed_packet": "16M",
    "character_set_server": "utf8mb4",
    "skip_name_resolve": "ON",
    "innodb_buffer_pool_size": "32M",
    "innodb_log_file_size": "16M",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_flush_method": "nosync",
    "innodb_fast_shutdown": "2",
    "sync_frm": "OFF",
    "key_buffer_size": "1M",
    "aria_pagecache_buffer_size": "1M",
    "performance_schema": "OFF",
}


def maria_server():
    """Debian's server, or None."""
    found = [os.access(path, os.X_OK) for path in (SERVER, INSTALL, CLIENT)]
    return SERVER if all(found) else None


def server_user():
    """The server refuses to run as root."""
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("no user mysql or nobody")


def run_as():
    if os.geteuid() != 0:
        return {}
    user = server_user()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def give_to_server(folder):
    if os.geteuid() == 0:
        user = server_user()
        os.chown(folder, user.pw_uid, user.pw_gid)


def init_template(folder):
    give_to_server(folder)
    done = subprocess.run(
        [INSTALL, "--no-defaults", f"--datadir={folder}/data", "--auth-root-authentication-method=normal",
         "--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M", "--innodb-flush-method=nosync",
         "--innodb-use-native-aio=0", f"--tmpdir={folder}"],	# of which a machine has only so many
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **run_as())
    if done.returncode:
        raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}")


class Maria:
    """init() makes it, start() and stop() run it, remove() leaves nothing behind."""
    TEMPLATE = staticmethod(init_template)	# makes a data directory
    RUN_AS = staticmethod(run_as)

    def __init__(self, server=None, command=None, **settings):
        self.server = server or own_copy(SERVER)
        self.command = command or [self.server]	# how it is run: [ld.so, server], …
        self.settings = {**SETTINGS, "basedir": "/usr", **settings}
        self.dir = tempfile.mkdtemp(prefix="dbslower-my-")
        self.data = os.path.join(self.dir, "data")
        self.socket = os.path.join(self.dir, "s")
        self.log = os.path.join(self.dir, "log")
        self.slow_log = log_path(self.dir, "slow.log")
        self.port = free_port()
        self.process = None

    @property
    def pid(self):
        return self.process.pid if self.process else None

    def init(self):
        os.chmod(self.dir, 0o755)
        give_to_server(self.dir)
        copy_template(self.data, self.TEMPLATE)
        return self

    def start(self):
        settings = {
            "datadir": self.data,
            "socket": self.socket,
            "port": self.port,
            "bind_address": "127.0.0.1",
            "pid_file": os.path.join(self.dir, "pid"),
            "slow_query_log_file": self.slow_log,
            "tmpdir": self.dir,
            **self.settings,
        }
        options = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "--no-defaults", *options], cwd=self.dir, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, env={"PATH": os.environ["PATH"]}, **self.RUN_AS())
        wait_for(self.answers, 60, f"the server to answer; its log is {self.log}")
        running.add(self)
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server exited with {self.process.returncode}:\n{self.log_tail()}")
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def bring_plugin(self, name):
        """Before start(): what Debian has in the package with the service, which is not installed; of the very release, or it is not loaded."""
        debarch, release = (subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for command in (
            ["dpkg", "--print-architecture"], ["dpkg-query", "-W", "-f", "${Version}", "mariadb-server-core"]))
        folder = fetched("programs", "bookworm bookworm-security", debarch, folder=f"mariadb-server-{release}", more=[f"mariadb-server={release}"])
        shutil.copy(os.path.join(folder, "usr/lib/mysql/plugin", name), self.dir)
        self.settings["plugin_dir"] = self.dir
        return self

    def stop(self):
        """A shutdown of this server."""
        if not self.process:
            return
        for sig in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(sig)
            try:
                self.process.wait(60)
                break
            except subprocess.TimeoutExpired:
                continue
        self.process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        if os.path.exists(self.slow_log):
            os.unlink(self.slow_log)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.remove()

    # clients

    def connect(self, user="root", database="", tcp=False, **keywords):
        """A connection of mariadb_client, over the unix socket or 127.0.0.1."""
        where = ("127.0.0.1", self.port) if tcp else self.socket
        return Client(where, user, database, **keywords)

    def query(self, *texts, **keywords):
        """Each text is one packet of a new connection. Returns the last one's results."""
        with self.connect(**keywords) as client:
            return [client.query(text) for text in texts][-1]

    def cli(self, *arguments, stdin=None, check=True):
        """Debian's mariadb program. Returns the CompletedProcess."""
        done = subprocess.run([CLIENT, "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch",
                               "--skip-column-names", *arguments],
                              input=stdin, capture_output=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError(f"mariadb {arguments}: {done.stderr.decode(errors='replace')}")
        return done

    def clients(self):
        """Connection ids of all clients but this one."""
        with self.connect() as client:
            rows = client.rows("select id from information_schema.processlist where user not in "
                               "('system user', 'event_scheduler') and id <> connection_id()")
        return [int(row[0]) for row in rows]

    def disconnect_all(self):
        """End the connections that a failed test left open."""
        for number in self.clients():
            self.cli("-e", f"kill {number}", check=False)

    def rest(self, timeout=60):
        """
        Wait until each thread that runs now has been seen asleep. A client is answered before the server's function
        returns, which is the end of the statement. A thread that waits for a disk (D) on its way there runs.
        """
        busy = threads_that_run(self.pid)
        end = time.monotonic() + timeout
        while busy and time.monotonic() < end:
            time.sleep(0.002)
            busy &= threads_that_run(self.pid)

    def threads(self):
        """The server's threads."""
        return {int(os.path.basename(path)) for path in glob.glob(f"/proc/{self.pid}/task/*")}

    # the logs

    def log_size(self):
        return os.stat(self.slow_log).st_size if os.path.exists(self.slow_log) else 0

    def read_log(self, offset=0):
        with open(self.slow_log, "rb") as f:
            f.seek(offset)
            return f.read()

    def log_tail(self, size=2000):
        with open(self.log, "rb") as f:
            return f.read()[-size:].decode(errors="replace")

    def settle(self):
        """Waits until no client is connected any more: then the slow log is complete."""
        wait_for(lambda: not self.clients(), 60, "the clients' connections to end")
