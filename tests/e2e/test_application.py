# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The name of a statement's application. The judge is the server's log (%a)."""

import itertools
import random
import re

import pytest

import wire
from statements import only, stopped, with_tag

UNKNOWN = "[unknown]"	# the log has this for ""
NAMES = ["psql", "a b", "x" * 63, "x" * 80, "é ü", "it''s", "", "ünïcödé " * 9, "a,b|c", "[local]", "%a %s"]
SETUP = ["""create or replace procedure rename_twice(a text, b text) language plpgsql as $$ begin
            perform set_config('application_name', a, false); commit;
            perform set_config('application_name', b, true); rollback; perform 1; end $$""",
         """create or replace procedure rename_and_fail(a text, b text) language plpgsql as $$ begin
            perform set_config('application_name', a, false); commit;
            perform set_config('application_name', b, false); rollback; perform 1 / 0; end $$""",
         """create or replace procedure rename_last(a text) language plpgsql as $$ begin
            rollback; perform set_config('application_name', a, false); end $$""",
         "create or replace function renamed() returns text language sql set application_name = 'inside' as "
         "$$ select current_setting('application_name') $$",
         """create or replace function rename_caught(a text) returns int language plpgsql as $$ begin
            perform set_config('application_name', a, false); return 1 / 0; exception when others then return 2; end $$"""]


@pytest.fixture(scope="module")
def numbers():
    return itertools.count(1)


def logged(cluster, offset):
    """The name in the log's last line about each tag, an error's included."""
    lines = cluster.read_log(offset).decode().split("\n")
    return {tag: re.match(r"(?:[^|]*\|){9}(.*?)\| (?:LOG:  duration|STATEMENT):", line)[1]
            for line in lines for tag in re.findall(r"/\* (n\d+) \*/", line)
            if re.match(r"(?:[^|]*\|){9}.*?\| (?:LOG:  duration|STATEMENT):", line)}


def seen(traced):
    return {re.search(r"/\* (n\d+) \*/", one["query"])[1]: one.get("application", UNKNOWN) for one in with_tag(traced, "/* n")}


class Client:
    """Sends statements with a tag each."""

    def __init__(self, cluster, numbers, **keywords):
        self.connection = cluster.connect(**keywords)
        self.numbers = numbers

    def tagged(self, text):
        return f"{text} /* n{next(self.numbers)} */"

    def send(self, *texts):
        for text in texts:
            self.connection.pgconn.exec_(self.tagged(text).encode())

    def extended(self, *texts):
        for text in texts:
            self.connection.pgconn.exec_params(self.tagged(text).encode(), [])


def step_set(client, name, other):
    client.send(f"set application_name = '{name}'", "select 1")
    client.extended(f"set session application_name = '{other}'", "select 2")


def step_reset(client, name, other):
    client.send(f"select set_config('application_name', '{name}', false)", "reset application_name", "select 1")
    client.extended("reset application_name", "select 1")


def step_local(client, name, other):
    for end in ("commit", "rollback"):
        client.send("begin", f"set local application_name = '{name}'", "select 1")
        client.extended(f"select set_config('application_name', '{other}', true)", "select 1")
        client.send(end, "select 2")
        client.extended("begin", f"set application_name = '{other}'", "select 1", end, "select 2")


def step_alone(client, name, other):
    """Outside of a block, and so until the commit of the statement itself, which is later in the extended protocol."""
    client.send(f"select set_config('application_name', '{name}', true)", "select 1", f"set local application_name = '{name}'")
    client.extended(f"select set_config('application_name', '{other}', true)", f"select set_config('application_name', '{name}', true)",
                    "select 1", f"set local application_name = '{other}'")
    client.send("select 2")


def step_failures(client, name, other):
    client.send(f"set application_name = '{name}'; select 1 / 0", "select 1", f"select set_config('application_name', '{name}', true), 1 / 0",
                "begin", f"set application_name = '{other}'", "select 1 / 0", "select 'is aborted'", "rollback", "select 1")
    client.extended("begin", f"set local application_name = '{other}'", "select 1 / 0", "select 'is aborted'", "commit", "select 1",
                    f"select set_config('application_name', '{name}', false), 1 / (random() * 0)::int", "select 1")


def step_savepoints(client, name, other):
    client.send("begin", f"set application_name = '{name}'", "savepoint a", f"set application_name = '{other}'", "savepoint b",
                "set application_name = 'inner'", "select 1 / 0", "rollback to b", "select 1", "select 1 / 0", "select 2", "rollback to a",
                "select 1", random.choice(["commit", "rollback"]), "select 1")


def step_procedures(client, name, other):
    for send in (client.send, client.extended):
        send(f"call rename_twice('{name}', '{other}')", "select 1", f"call rename_last('{other}')", "select 1",
             f"call rename_and_fail('{name}', '{other}')", "select 1", "select renamed()", "select 1",
             f"select rename_caught('{other}')", "select 1")


def step_text(client, name, other):
    client.send(f"begin; set local application_name = '{name}'; select 1; commit; select 2",
                f"set application_name = '{other}'; begin; set application_name = '{name}'; rollback", "select 1", "discard all", "select 1")


STEPS = [step_set, step_reset, step_local, step_alone, step_failures, step_savepoints, step_procedures, step_text]


@pytest.mark.parametrize("force", ["", "perfbuf"], ids=["default", "perf buffers"])
def test_as_the_log(postgres, tool, numbers, force):
    """Several sessions, by turns; each statement has the name that its line in the log has."""
    choice = random.Random(7)
    for text in SETUP:
        postgres.psql(text)
    before = Client(postgres, numbers, application_name="before")
    before.send("select 1")
    before.send("set application_name = 'renamed before'")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *([f"--force={force}"] if force else []))
    offset = postgres.log_size()
    clients = [before, *(Client(postgres, numbers, application_name=name.replace("''", "'")) for name in NAMES[:4])]
    for client in clients:
        client.send("select 'first'")
    for _ in range(3):
        for step in STEPS:
            for client in clients:
                step(client, choice.choice(NAMES), choice.choice(NAMES))
    for client in clients:
        client.connection.close()
    postgres.settle()
    stopped(traced, idle=True)
    log, found = logged(postgres, offset), seen(traced)
    assert len(set(log.values())) > 8 and len(log) > 1000 and set(log) == set(found)
    assert {tag: name for tag, name in found.items() if name != log[tag]} == {}, {
        tag: (only(traced, f"/* {tag} */")["query"], log[tag]) for tag, name in found.items() if name != log[tag]}


def test_pipelines(postgres, tool, numbers):
    """Of messages that one Sync ends, a change may come with the Sync, after the answers."""
    by_hand, traced = wire.Wire(postgres, "by hand"), tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    offset = postgres.log_size()

    def steps(*texts):
        by_hand.ask(*(part for text in texts for part in (wire.parse(f"{text} /* n{next(numbers)} */"), wire.bind(), wire.execute())))

    for _ in range(5):
        steps("set local application_name = 'one'", "select 1", "set local application_name = 'two'", "select 2")
        steps("select 3")
        steps("set application_name = 'lasts'", "select 1 / 0", "select 'is skipped'")
        steps("select set_config('application_name', 'three', true)")
        steps("begin", "set local application_name = 'four'", "commit", "select 4")
        steps("set application_name = 'five'", "select 5")
        steps("reset application_name", "select 6")
    by_hand.close()
    postgres.settle()
    stopped(traced, idle=True)
    log, found = logged(postgres, offset), seen(traced)
    assert len(log) == 5 * 16 and found == log, traced.said()


def test_filter(postgres, tool, numbers):
    """Statements, groups and counts of one application, also below the threshold in between."""
    slow = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--app", "wanted")
    top = tool("top", "-p", postgres.pid, "--json", "--app", "wanted")
    stat = tool("stat", "-p", postgres.pid, "--json", "--app", "wanted", attached=False)
    stat.wait_for(lambda tool: "dbslower: tracing" in tool.stderr)
    with postgres.connect(application_name="other") as one, postgres.connect(application_name="wanted") as two:
        for n in range(20):
            one.pgconn.exec_(b"set application_name = '%s'" % (b"other", b"wanted")[n % 2])
            one.pgconn.exec_(b"select %d as t_%d" % (n, n % 2))
            two.pgconn.exec_(b"select %d as t_two" % n)
    for each in (slow, top, stat):
        stopped(each)
    texts = [one["query"] for one in slow.statements]
    assert len(texts) == 40 and all("t_0" not in text for text in texts) and {one["application"] for one in slow.statements} == {"wanted"}
    assert sum(one["calls"] for one in top.objects() if one["type"] == "group") == 40
    assert sum(one["count"] for one in stat.objects() if one["type"] == "histogram") == 40


def test_threshold(postgres, tool, numbers):
    """Changes by statements that are not shown count for those that are."""
    traced = tool("postgres", "50", "-o", "app,query", "-p", postgres.pid)
    client = Client(postgres, numbers, application_name="at first")
    client.send("select pg_sleep(0.06)", "set application_name = 'quiet'", "select 1", "select pg_sleep(0.06)")
    client.extended("select set_config('application_name', 'gone', true)")
    client.send("select pg_sleep(0.06)", "begin", "set application_name = 'fails'", "select 1 / 0", "rollback", "select pg_sleep(0.06)")
    client.connection.close()
    stopped(traced)
    names = [line[:12].strip() for line in traced.stdout.splitlines() if "pg_sleep" in line]
    assert names == ["at first", "quiet", "quiet", "quiet"], traced.said()


def test_running_and_transactions(postgres, tool, numbers):
    with postgres.connect(application_name="first") as one:
        traced = tool("transactions", "-m", "0", "--json", "-p", postgres.pid)
        for text in (b"begin", b"select 1 as t_changes", b"set application_name = 'second'", b"commit", b"select 1 as t_after"):
            one.pgconn.exec_(text)
    assert traced.stop() == 0
    found = [one.get("application") for one in traced.objects() if one["type"] == "transaction"]
    assert found == ["second"] * 2, traced.said()
