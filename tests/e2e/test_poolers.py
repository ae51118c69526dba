# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Clients behind poolers and proxies: what the server knows of them is what dbslower shows. pg_stat_activity and the process list
are the oracle.
"""

import os
import socket
import subprocess

import psycopg
import pytest

from cluster import Cluster, free_port, wait_for
from mariadb import Maria
from mariadb_client import Client
from releases import Maria11
from requirements import need_maria, need_root
from statements import only, stopped, with_tag
from tool import CACHE, sessions

POOLER = os.path.join(CACHE, "poolers", "usr", "sbin", "pgbouncer")
LIBRARIES = os.path.join(CACHE, "poolers", "usr", "lib", f"{os.uname().machine}-linux-gnu")
SETTINGS = """
[databases]
* = host={socket_dir} port={port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
application_name_add_host = {add_host}
"""


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=[0, 1], ids=["names", "names and hosts"])
def pooled(request, tmp_path_factory):
    """(server, port of PgBouncer, whether it adds the client's address to the name of the application)"""
    if not os.path.exists(POOLER):
        pytest.skip("no PgBouncer: ci/dependencies test")
    need_root()
    with Cluster().init() as server:
        server.start()
        folder = tmp_path_factory.mktemp("pgbouncer")
        settings, port = folder / "pgbouncer.ini", free_port()
        settings.write_text(SETTINGS.format(socket_dir=server.socket_dir, port=server.port, listen=port, add_host=request.param))
        for path in (folder.parent, folder, settings):
            path.chmod(0o755)
        with open(folder / "log", "wb") as log, subprocess.Popen(
                [POOLER, "-u", "postgres", str(settings)], stdout=log, stderr=log, env={"LD_LIBRARY_PATH": LIBRARIES}) as pooler:
            try:
                wait_for(lambda: answers(port), what="PgBouncer")
                yield server, port, request.param
            finally:
                pooler.terminate()


def test_pgbouncer(pooled, tool):
    """Two clients share one connection to the server: each statement has the name of its own application."""
    server, port, add_host = pooled
    traced = tool("-p", server.pid, "-m", "0", "--json")
    names, known = ["shop", "report"], {}
    clients = [psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", application_name=name, autocommit=True)
               for name in names]
    for number in range(10):
        for client in clients:
            tag = f"/* {client.info.get_parameters()['application_name']} {number} */"
            row = client.execute("select application_name, coalesce(host(client_addr), '[local]'), pid from pg_stat_activity "
                                 f"where pid = pg_backend_pid() {tag}", prepare=False).fetchone()
            known[tag] = row
    for client in clients:
        client.close()
    stopped(traced)
    assert len({pid for _, _, pid in known.values()}) == 1 and len(known) == 20, known
    for tag, (application, address, pid) in known.items():
        one = only(traced, tag)
        assert (one["application"], one["client"], one["pid"]) == (application, address, pid), (one, known[tag])
        assert application.startswith(tag.split()[1]) and (" - 127.0.0.1:" in application) == bool(add_host), application


class Proxied(Client):
    """A client of which a proxy says where it is."""

    def shake_hands(self, user, database, flags):
        self.socket.sendall(b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 3306\r\n")
        super().shake_hands(user, database, flags)


@pytest.mark.parametrize("kind", [Maria, Maria11], ids=["MariaDB 10.11", "MariaDB 11.8"])
def test_proxy_protocol(kind, tool):
    """MariaDB takes the client's address from the proxy's header."""
    need_root()
    need_maria()
    with kind(proxy_protocol_networks="*").init() as server:
        server.start()
        server.query("create user proxied@'192.0.2.7' identified by ''")
        traced = tool("-p", server.pid, "-m", "0", "--json")
        with Proxied(("127.0.0.1", server.port), user="proxied") as client:
            client.query("select 1 /* proxied */")
            host = server.connect().rows(f"select host from information_schema.processlist where id = {client.id}")[0][0].decode()
            listed = [one for one in sessions("-p", server.pid) if one.get("connection_id") == client.id]
    stopped(traced)
    assert host == "192.0.2.7:4711"
    assert [one["client"] for one in with_tag(traced, "/* proxied */") + listed] == ["192.0.2.7"] * 2, (traced.statements, listed)
