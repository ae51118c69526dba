# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--otlp and --dot in directories that other users can change. The kernel's fs.protected_* settings may be off."""

import os
import shutil
import subprocess
import threading

import pytest

from requirements import need_root
from tool import FIXTURES, VICTIM, run
from user_engine import PROBES

OTHER = 1001


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A file that locks can trace, and that no process runs."""
    need_root()
    path = tmp_path_factory.mktemp("server") / "postgres"
    subprocess.run(["gcc", "-O2", "-rdynamic", "-o", path, os.path.join(FIXTURES, "hostilelocks.c")], check=True)
    return path


@pytest.fixture(params=["--otlp", "--dot"])
def output(request, server):
    """output(path) runs the command with this file."""
    def call(path, **keywords):
        args = ("-x", VICTIM, *PROBES) if request.param == "--otlp" else ("locks", "-x", server)
        return run(*args, "-d", "0.1", request.param, path, timeout=100, **keywords)
    call.writes = request.param == "--dot"	# without a statement
    return call


@pytest.fixture(params=["sticky", "shared", "group", "foreign"])
def folder(request, tmp_path):
    """A directory that the user 1001 can change."""
    path = tmp_path / "folder"
    path.mkdir()
    if request.param == "foreign":
        os.chown(path, OTHER, OTHER)
    elif request.param == "group":
        os.chown(path, 0, OTHER)
    path.chmod({"sticky": 0o1777, "shared": 0o777, "group": 0o770, "foreign": 0o755}[request.param])
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        if str(parent) != "/tmp":
            parent.chmod(0o755)
    return path


def as_other(folder, *command):
    """Runs it as the attacker."""
    subprocess.run(command, user=OTHER, group=OTHER, extra_groups=[], cwd=folder, check=True)


def refused(done, path, why):
    assert done.returncode == 1 and f"{path}: cannot open for writing: {why}" in done.stderr, done


def test_link_to_a_file(output, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("intact")
    as_other(folder, "ln", "-s", secret, "out")
    done = output(folder / "out")
    assert secret.read_text() == "intact"
    refused(done, folder / "out", "symbolic link of another user")


def test_link_to_nothing(output, folder, tmp_path):
    as_other(folder, "ln", "-s", tmp_path / "new", "out")
    done = output(folder / "out")
    assert not (tmp_path / "new").exists()
    refused(done, folder / "out", "symbolic link of another user")


def test_link_to_a_directory(output, folder, tmp_path):
    (tmp_path / "out").write_text("intact")
    as_other(folder, "ln", "-s", tmp_path, "way")
    done = output(folder / "way" / "out")
    assert (tmp_path / "out").read_text() == "intact"
    refused(done, folder / "way" / "out", "symbolic link of another user")


def test_file_of_another(output, folder):
    as_other(folder, "sh", "-c", "echo mine > out; chmod 666 out")
    done = output(folder / "out")
    if folder.stat().st_uid == OTHER and not folder.stat().st_mode & 0o022:
        assert done.returncode == 0, done	# the user who asks for that knows whose directory it is
    else:
        refused(done, folder / "out", "file of another user")
        assert (folder / "out").read_text() == "mine\n"


def test_fifo(output, folder):
    """Nobody reads it, now or ever."""
    as_other(folder, "mkfifo", "-m", "666", "out")
    refused(output(folder / "out"), folder / "out", "")


def test_own_fifo(output, tmp_path):
    os.mkfifo(tmp_path / "out")
    refused(output(tmp_path / "out"), tmp_path / "out", "FIFO without a reader")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "out").read_text()))
    reader.start()
    for _ in range(100):
        done = output(tmp_path / "out")
        if done.returncode == 0:	# the reader has it open
            break
    reader.join(60)
    assert done.returncode == 0 and read[0].startswith("digraph" if output.writes else ""), (done, read)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"])
def test_devices(output, name):
    done = output(name)
    assert done.returncode == 0 and (not output.writes or name == "/dev/null" or "digraph" in done.stdout), done


def test_standard_output_that_is_a_file(output, tmp_path):
    with open(tmp_path / "out", "w") as out:
        assert output("/dev/stdout", stdout=out).returncode == 0
    assert "digraph" in (tmp_path / "out").read_text() or not output.writes


def test_own_files(output, folder, tmp_path):
    """Those of root are written, also by a link, and new ones are for root only."""
    (tmp_path / "target").write_text("")
    (folder / "link").symlink_to("../target")
    for path in (folder / "link", folder / "new", folder / "new"):
        assert output(path).returncode == 0
    assert (folder / "new").stat().st_mode & 0o7777 == 0o600 and (folder / "new").stat().st_uid == 0
    assert not output.writes or "digraph" in (tmp_path / "target").read_text()
    if shutil.which("dot") and output.writes:
        subprocess.run(["dot", "-Tsvg", folder / "new"], stdout=subprocess.DEVNULL, check=True)


def test_metrics(folder, tmp_path):
    """The file is replaced, not written: no link leads elsewhere, and what is no file stays."""
    need_root()
    secret = tmp_path / "secret"
    secret.write_text("intact")
    as_other(folder, "ln", "-s", secret, "out")
    as_other(folder, "ln", "-s", tmp_path, "way")
    for path, why in ((folder / "out", "not a regular file"), (folder / "way" / "secret", "symbolic link of another user")):
        refused(run("stat", "-x", VICTIM, *PROBES, "-d", "0.1", "--openmetrics", path, timeout=100), path, why)
    assert secret.read_text() == "intact"
    as_other(folder, "sh", "-c", "echo mine > mine; ln mine .other.new")
    done = run("stat", "-x", VICTIM, *PROBES, "-d", "0.1", "--openmetrics", folder / "other", timeout=100)
    assert done.returncode == 0 and (folder / "mine").read_text() == "mine\n" and (folder / "other").stat().st_uid == 0, done
    as_other(folder, "mkdir", ".blocked.new")
    done = run("stat", "-x", VICTIM, *PROBES, "-d", "0.1", "--openmetrics", folder / "blocked", timeout=100)
    assert done.returncode == 0 and (folder / "blocked").is_file(), done
    assert {one.name for one in folder.iterdir() if one.name.startswith(".")} == {".blocked.new"}
