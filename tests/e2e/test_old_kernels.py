# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Every command under what answers bpf(2) as Linux 5.4 and 5.8 do (tests/lib/oldkernel.c), without --force: features are asked
for, and each program must follow the rules of the verifier of that release. test_gate.py has older ones.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import mariadb
from cluster import Cluster, server_bindir
from fallbacks import LARGEST
from requirements import need_root, need_server
from tool import BUILD, DBSLOWER, Locks, Stat, Tool
from transactions import Transactions

OLDKERNEL = os.path.join(BUILD, "tests", "lib", "oldkernel")
RELEASES = {	# what is missing, of the features that each command asks for
    "5.4": {"BPF ring buffer", "uprobe_multi link", "allocation in tracing programs", "probe_read_user"},
    "5.8": {"uprobe_multi link", "allocation in tracing programs"},
}


@pytest.fixture(scope="module")
def server():
    need_root()
    need_server()
    with Cluster(name="old").init() as cluster:
        yield cluster.start()


PROBES = {"program probe", "map probe", "link"}	# of features
QUERIES = ["select 1", "select pg_sleep(0.01)", "begin; select 2; commit"]
COMMANDS = {
    "slow": (["slow", "-p", "{pid}", "-m", "0", "--why", "--use", "--phases"], {}),
    "limit": (["slow", "-p", "{pid}", "-m", "0", "--why", "--use", "--phases", "--max-overhead", "100000%"], {}),
    "cpu": (["stat", "-p", "{pid}", "--wait", "cpu", "--by", "command"], {"kind": Stat}),
    "stat": (["stat", "-p", "{pid}", "--by", "command"], {"kind": Stat}),
    "transactions": (["transactions", "-p", "{pid}", "-m", "0"], {"kind": Transactions}),
    "locks": (["locks", "-p", "{pid}"], {"kind": Locks}),
    "trace": (["trace", "-U", "{file}", "query__start (arg1 != 0) arg1:s"], {}),		# of the file: -p lacks later children without BTF
}


@pytest.mark.parametrize("release", list(RELEASES))
def test_commands(server, tool, tmp_path, release):
    refused = tmp_path / "refused"
    # Before 5.8 the programs and the buffers are other ones.
    traced = {name: tool(*(arg.format(pid=server.pid, file=server.postgres) for arg in args), "--json", "-v", wrap=(OLDKERNEL, release, str(refused)), attached=False, **keywords)
              for name, (args, keywords) in COMMANDS.items() if release != "5.8" or name == "slow"}
    for one in traced.values():
        one.wait_for(Tool.is_attached)
    missing = re.search("; missing: (.*)", traced["slow"].stderr)[1].split(", ")
    assert RELEASES[release] <= set(missing), traced["slow"].said()
    server.psql(*QUERIES)
    traced["slow"].wait_for(lambda slow: len(slow.statements) >= 3)
    server.settle()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert set(pool.map(Tool.stop, traced.values())) == {0}
    assert not any(sum(one.summary["lost"].values()) for one in traced.values()), [one.said() for one in traced.values()]
    assert {line.split(":")[0] for line in refused.read_text().splitlines()} <= PROBES
    assert [one["query"] for one in traced["slow"].statements] == QUERIES
    assert all({"why_ms", "use"} <= set(one) for one in traced["slow"].statements)
    if release == "5.8":
        return
    assert [one["query"] for one in traced["limit"].statements if {"why_ms", "use"} <= set(one)] == QUERIES
    assert {one["command"]: one["count"] for one in traced["stat"].histograms} == {"select": 3}
    assert {one["command"]: one["count"] for one in traced["cpu"].histograms}["select"] >= 2
    assert [one["args"] for one in traced["trace"].objects() if one["type"] == "hit"] == [[one] for one in QUERIES]
    assert len([one for one in traced["transactions"].objects() if one.get("state") == "commit"]) == 3


LOADED = ["slow --why --use --phases", "slow --prepares --db x --app x", "stat --by db", "stat --by user --wait lock", "top --why --use",
          "transactions", "locks", "record recording", "record nested --nested --why", *LARGEST]
SERVERS = {"postgres": lambda: os.path.join(server_bindir(), "postgres"), "mysql": lambda: mariadb.SERVER}


@pytest.mark.parametrize("engine", list(SERVERS))
def test_programs(tmp_path, engine):
    """Every program of a server's that the commands load, under the strictest verifier of those that are supported."""
    need_root()
    if not os.path.exists(SERVERS[engine]()):
        pytest.skip(f"no {SERVERS[engine]()}")
    path = shutil.copy(SERVERS[engine](), tmp_path)

    def load(line):
        number = str(LOADED.index(line))
        (tmp_path / number).mkdir()
        return subprocess.run([OLDKERNEL, "5.4", tmp_path / f"{number}.log", DBSLOWER, *line.split(), engine, "-x", path, "-d", "0.1"],
                              capture_output=True, text=True, timeout=60, cwd=tmp_path / number)
    with concurrent.futures.ThreadPoolExecutor(len(LOADED)) as pool:
        for number, done in enumerate(pool.map(load, LOADED)):
            log = (tmp_path / f"{number}.log").read_text()
            assert not done.returncode and "nothing lost" in done.stderr, (done, log)
            assert {line.split(":")[0] for line in log.splitlines()} <= PROBES, log


# Calls bpf(2) with a command, a size and 32-bit words at offsets. Prints the errors, 0 for success.
CALLS = """
import ctypes, errno, json, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
for command, size, words in json.loads(sys.argv[1]):
    attr = bytearray(size)
    for at, value in words.items():
        struct.pack_into("=I", attr, int(at), value)
    fd = libc.syscall(280 if platform.machine() == "aarch64" else 321, command, (ctypes.c_char * size).from_buffer(attr), size)
    print(errno.errorcode[ctypes.get_errno()] if fd < 0 else 0)
print(errno.errorcode[ctypes.get_errno()] if libc.syscall(434, 1, 0) < 0 else 0)
"""
HASH = {"0": 1, "4": 4, "8": 4, "12": 1}	# a map: type, sizes of key and value, number of entries


@pytest.mark.parametrize("release, errors", [
    ("5.4", [0, "EINVAL", "EINVAL", "EINVAL", "E2BIG", "EINVAL", "EINVAL", 0]),
    ("5.8", [0, 0, "EINVAL", 0, 0, "EINVAL", "EBADF", 0])], ids=["5.4", "5.8"])
def test_attributes(tmp_path, release, errors):
    """It is refused for the reason that it is to be refused for; the same is accepted where the kernel has it."""
    need_root()
    calls = [(0, 72, HASH),
             (0, 72, {"0": 27, "12": 4096}),		# a ring buffer
             (0, 72, {**HASH, "0": 31}),		# a ring buffer of user space
             (0, 72, {**HASH, "0": 2, "16": 1024}),	# BPF_F_MMAPABLE
             (5, 120, {"116": 1}) if release == "5.4" else (0, 72, HASH),	# a member after its union bpf_attr
             (0, 72, {**HASH, "64": 1}),		# a member that the command does not know
             (28, 16, {"0": 0xffffffff})]		# BPF_LINK_CREATE
    done = subprocess.run([OLDKERNEL, release, tmp_path / "log", sys.executable, "-c", CALLS, json.dumps(calls)],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [str(error) for error in errors], done
