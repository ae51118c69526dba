# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The documents: every message is explained, and each recipe does what it states."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from functools import partial
from xml.etree import ElementTree

import pytest

from cluster import Cluster, children, server_bindir, wait_for
from containers import control_group, make_control_group
from messages import messages
from requirements import need_root, need_server
from tool import DBSLOWER, ROOT

DOCS = os.path.join(ROOT, "docs")
INSERTED = r"\b(?:FILE|PID|NAME|REASON|N|PROBE)\b"


def page(name):
    with open(os.path.join(DOCS, name), encoding="utf-8") as f:
        return f.read()


def words(message):
    """A message without what is inserted."""
    return re.sub(INSERTED, "…", re.sub(r"\s+", " ", message)).replace("; ", ", ")


def pieces(message):
    """The parts of a message between what is inserted, if they are words."""
    return [one for one in re.split("… ?|: ", words(message)) if len(re.findall("[a-z]{2,}", one)) > 1]


def quoted(pattern):
    """The code in the parts of the page of messages that match."""
    return [one for part in re.findall(pattern, page("troubleshooting.md"), re.M | re.S) for one in re.findall(r"`([^`]+)`", part)]


def test_every_message_is_explained():
    """Each message that the sources have is in docs/troubleshooting.md, and each one there is one of the sources."""
    found = messages()
    shown = [words(one) for one in quoted(".*")]
    missing = [one for one in found if not any(all(piece in code for piece in pieces(one)) for code in shown)]
    assert not missing, "not explained: " + "\n".join(sorted(missing))
    known = [words(one) for one in found]
    # A heading, and the code with which an item of a list begins, without the remedy.
    heads = [one.split("; ")[0] for one in quoted(r"^### [^\n]*$") + quoted(r"^- `[^`]+`")]
    assert len(heads) > 100
    unknown = [one for one in heads if not all(any(piece.strip(" ,()") in text for text in known) for piece in pieces(one))]
    assert not unknown, "no message: " + "\n".join(unknown)


def anchor(heading):
    """The fragment that the web sites of repositories give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links():
    """Files and headings that the documents refer to exist."""
    wrong = []
    for path in ("README.md", *(os.path.join("docs", one) for one in os.listdir(DOCS) if one.endswith(".md"))):
        text = page(os.path.join(ROOT, path))
        for link in re.findall(r"\]\((?!https?:)([^)\s]*)\)", text):
            file, _, fragment = link.partition("#")
            target = os.path.normpath(os.path.join(ROOT, os.path.dirname(path), file)) if file else os.path.join(ROOT, path)
            if not os.path.exists(target) or fragment and fragment not in map(anchor, re.findall(r"^#+ (.*)$", page(target), re.M)):
                wrong.append(f"{path}: {link}")
    assert not wrong, "\n".join(wrong)


# --- pictures

def test_pictures(tmp_path):
    """They are drawn from the records beside them, are small, and each is used by a document."""
    subprocess.run([os.path.join(ROOT, "ci", "pictures"), "draw", tmp_path], check=True)
    names = sorted(os.listdir(tmp_path))
    assert names == sorted(one for one in os.listdir(os.path.join(DOCS, "pictures")) if one.endswith(".svg"))
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        texts = f.read() + "".join(page(one) for one in os.listdir(DOCS) if one.endswith(".md"))
    for name in names:
        drawn = (tmp_path / name).read_text()
        assert drawn == page(os.path.join("pictures", name)), f"{name}: run ci/pictures draw"
        assert ElementTree.fromstring(drawn).find("{http://www.w3.org/2000/svg}title").text and len(drawn) < 40 << 10
        assert f"pictures/{name})" in texts, f"{name} is not used"


# --- recipes: each command of docs/recipes.md, all of them beside each other on one server

# What each one prints.
EXPECTED = {
    "The slow statements of one database": r"^\d\d:\d\d:\d\d\S* +app +\[local\] +\d+\.\d+ ok +select pg_sleep",
    "Why a statement was slow": r"update account set .*\n +(?:.*, )?lock \d+\.\d+",
    "What held the lock": r"update account set balance = 2",
    "Who waits for whom at this moment": r"update account set balance = 2",
    "The statements that take the most time": r"select pg_sleep\(\?\)",
    "Which statements changed after a deployment": r"^[\d.]+ times select pg_sleep\(\?\)",
    "Latencies by command": r"update",
    "Alert on a slow statement": r"app +\d+\.\d+ select pg_sleep\(\?\)",
    "Failed statements": r"error +22012 +app +select 1/0",
    "Transactions that were idle": r"^ *\d+\.\d+ +[1-9]\d\d+\.\d+ commit +app +\S",
    "One connection": r"1 ok +select 'of one connection'",
    "The statements of one container": r"^[0-9a-f]{12} +\d+\.\d+ select pg_sleep",
    "The argument of a function": r"select 'of one connection'",
    "The time that a library function takes": r"latency",
    "A log in JSON with rotation": r'"query":"select pg_sleep\(0\.15\)"',
    "A recording that can be shared": r"select pg_sleep\(\?\)",
    "Without root": r"select pg_sleep\(0\.15\)",
    "From a rescue environment": r"select pg_sleep\(0\.15\)",
}
AT_END = ("The statements that take the most time", "Which statements changed after a deployment", "Latencies by command",
          "The time that a library function takes")
REQUIRED = {"Which statements changed after a deployment": "jq", "A log in JSON with rotation": "logrotate",
            "Without root": "setcap"}
CONTAINER = "d0c5" + "ab" * 30


def recipes():
    """{title: ([command], {example output or file})} of those with a command."""
    found = {}
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page("recipes.md"), re.M | re.S):
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
        commands = [body for kind, body in blocks if kind == "sh"]
        if commands:
            found[title] = commands, [body for kind, body in blocks if kind == "text"]
    return found


def tools_of(pid):
    """The processes of dbslower that a shell runs, or that it has become. Others may end meanwhile."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return [pid] if f.read() == "dbslower\n" else [tool for child in children(pid) for tool in tools_of(child)]
    except OSError:
        return []


def is_possible(title):
    return shutil.which(REQUIRED.get(title, "sh"))


class Recipe:
    """A command while it runs, in a folder of its own."""

    def __init__(self, command, folder, words):
        self.command = command
        for word, value in words.items():
            command = re.sub(rf"\b{word}\b", value, command)
        # Other servers may run.
        command = re.sub(r"(dbslower(?: (?:top|stat|ps|locks|transactions))?)(?= [->]| 100\b)((?: 100)?)(?!.* -p )",
                         rf"\1\2 -p {words['PID']}", command, flags=re.M)
        self.path = os.path.join(folder, "output")
        with open(self.path, "ab") as out:
            self.process = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, start_new_session=True,
                                            env={**os.environ, "PATH": f"{os.path.dirname(DBSLOWER)}:{os.environ['PATH']}"})

    def output(self):
        """What it printed and wrote."""
        text = ""
        for name in ("output", "slow.jsonl"):
            path = os.path.join(os.path.dirname(self.path), name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:	# a part of a character may be written
                    text += f.read()
        return text

    def wait_for(self, pattern):
        try:
            wait_for(lambda: re.search(pattern, self.output(), re.M) or self.process.poll() is not None, 60, pattern)
        except TimeoutError:
            pass
        assert re.search(pattern, self.output(), re.M), f"{self.command}: not {pattern}:\n{self.output()}"

    def stop(self):
        if self.process.poll() is None:
            for pid in tools_of(self.process.pid):
                os.kill(pid, signal.SIGINT)
        self.end()

    def end(self):
        """Waits for its end."""
        assert self.process.wait(60) == 0, f"{self.command}: exit {self.process.returncode}:\n{self.output()}"


def test_recipes_have_expectations():
    """Each recipe is expected to print something, and its example shows that."""
    found = recipes()
    assert found.keys() == EXPECTED.keys()
    wrong = [title for title, (_, shown) in found.items() if not re.search(EXPECTED[title], shown[-1], re.M)]
    assert not wrong, f"the examples lack what is expected: {wrong}"


@pytest.fixture(scope="module")
def container(folder):
    """Moves a process to a control group that has the name of a container's; None if there are none here."""
    try:
        group, base = make_control_group(f"docker-{CONTAINER}.scope")
    except pytest.skip.Exception:
        yield None
        return

    with control_group(group, base) as move:
        yield move


@pytest.fixture(scope="module")
def server(folder, container):
    need_root()
    need_server()
    program = shutil.copy(os.path.join(server_bindir(), "postgres"), folder)
    with Cluster(postgres=program).init() as cluster:
        cluster.start()
        if container:
            container(cluster.pid)
        cluster.psql("create role app login", "create database shop owner app")
        cluster.psql("create table account as select n as id, 0 as balance from generate_series(1, 1000) n", PGDATABASE="shop",
                     PGUSER="app")
        yield cluster


def workload(server, backend, begun):
    """Run statements that are slow, wait, fail, or leave a transaction idle. Call begun() while one waits for a lock."""
    def connect():
        return server.connect(user="app", dbname="shop")

    def wait_for_row():
        waiter.execute("update account set balance = 2 where id = 1")

    with connect() as holder, connect() as waiter, connect() as other:
        holder.execute("begin")
        holder.execute("update account set balance = 1 where id = 1")
        thread = threading.Thread(target=wait_for_row)
        thread.start()
        server.wait_blocked(waiter.info.backend_pid)
        begun()
        holder.execute("select pg_sleep(0.15)")
        holder.execute("commit")
        thread.join()
        other.execute("begin")
        other.execute("select 'first'")
        time.sleep(0.15)
        other.execute("commit")
        with pytest.raises(Exception, match="division by zero"):
            other.execute("select 1/0")
        backend.execute("select 'of one connection'")
        for connection in (holder, waiter, other, backend):	# its statement before has ended when this is answered
            connection.execute("select 1")


def run_recipes(server, backend, start):
    """Return {title: why it failed}. The commands that trace run beside each other, and the others after them."""
    found, wrong = recipes(), {}

    def judge(title, *steps):
        try:
            for step in steps:
                step()
        except (AssertionError, subprocess.TimeoutExpired) as why:
            wrong.setdefault(title, str(why))

    running = {title: [start(title, one) for one in commands if "dbslower" in one and "ps --tree" not in one]
               for title, (commands, _) in found.items() if is_possible(title)}
    for title, tools in running.items():
        for one in tools:
            judge(title, partial(one.wait_for, "dbslower: tracing "))

    def look():
        title = "Who waits for whom at this moment"
        one = start(title, found[title][0][0])
        judge(title, one.end, partial(one.wait_for, EXPECTED[title]))
    workload(server, backend, look)
    for title, tools in running.items():
        for one in tools:
            judge(title, *([] if title in AT_END else [partial(one.wait_for, EXPECTED[title])]), one.stop)
        for command in found[title][0]:
            if "dbslower" not in command:
                one = start(title, command)
                judge(title, one.end, partial(one.wait_for, EXPECTED[title]))
            elif title in AT_END and len(found[title][0]) == 1:
                judge(title, partial(tools[0].wait_for, EXPECTED[title]))
    return wrong


@pytest.fixture(scope="module")
def ran(server, folder):
    """{title: why it failed} of all recipes."""
    backend = server.connect(user="app", dbname="shop")
    words = {"PID": str(server.pid), "BACKEND": str(backend.info.backend_pid), "CONTAINER": CONTAINER[:12]}
    started = []

    def start(title, command):
        place = os.path.join(folder, re.sub(r"\W", "", title))
        os.makedirs(place, exist_ok=True)
        started.append(Recipe(command, place, words))
        return started[-1]
    try:
        yield run_recipes(server, backend, start)
    finally:
        for one in started:
            if one.process.poll() is None:
                os.killpg(one.process.pid, signal.SIGKILL)
                one.process.wait()
        backend.close()


@pytest.mark.parametrize("title", EXPECTED)
def test_recipe(ran, container, title):
    if not is_possible(title):
        pytest.skip(f"{REQUIRED[title]} is not installed")
    if "container" in title and not container:
        pytest.skip("no control groups can be made here")
    assert title not in ran, ran[title]
