# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
plan: what a backend executes, compared with EXPLAIN of the same statement in the same session.

A BPF program of bpftrace stops a backend where a statement has been planned, and is about to be executed.
"""

import contextlib
import glob
import itertools
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading

import pytest

import postgres_releases
from cluster import Cluster, children, state, title, wait_for
from requirements import need_root
from tool import DBSLOWER, ROOT, refused, run, sessions

# What EXPLAIN says that does not depend on expressions.
MEMBERS = ("Node Type", "Strategy", "Partial Mode", "Operation", "Parent Relationship", "Subplan Name", "Custom Plan Provider",
           "Parallel Aware", "Async Capable", "Scan Direction", "Index Name", "Relation Name", "CTE Name", "Schema", "Alias",
           "Join Type", "Command", "Startup Cost", "Total Cost", "Plan Rows", "Plan Width", "Workers Planned", "Disabled")

SETUP = """
create table small as select i as id, i % 7 as k, 'row ' || i as t from generate_series(1, 100) i;
create table large as select i as id, i % 100 as k, repeat('x', 100) as p from generate_series(1, 60000) i;
alter table large add primary key (id);
create index large_k on large (k);
create table parts (id int, k int) partition by range (id);
create table parts_1 partition of parts for values from (0) to (1000);
create table parts_2 partition of parts for values from (1000) to (2000);
create table parts_3 partition of parts for values from (2000) to (3000);
insert into parts select i, i % 10 from generate_series(0, 2999) i;
create table parent (id int, t text);
create table child_a () inherits (parent);
create table child_b () inherits (parent);
insert into child_a select i, 'a' from generate_series(1, 50) i;
create table "Odd name" as select 1 as id;
create schema other;
create table other.small as select 1 as id;
create view seen as select id, k from large where k < 50;
create temp table scratch as select i as id from generate_series(1, 10) i;
vacuum analyze;
checkpoint
"""	# names of schemas are read from files

QUIET = "set enable_hashjoin = off; set enable_mergejoin = off"
PARALLEL = "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set min_parallel_index_scan_size = 0"
# (least release, settings, statement)
STATEMENTS = [
    (10, "", "select 1"),
    (10, "", "select * from small"),
    (10, "", "select * from public.small s where id < 5 order by t desc limit 3"),
    (10, "", 'select * from "Odd name" "My Alias"'),
    (10, "", "select * from scratch, other.small"),
    (10, "", "select * from large where id = 4711"),
    (10, "", "select id from large where id between 5 and 50 order by id desc"),
    (10, "", "select count(*) from large where k = 5 or k = 7"),
    (10, "", "select count(*) from large where k = 5 and id < 9000"),
    (10, "", "select * from small where ctid = '(0,1)'"),
    (14, "", "select * from small where ctid > '(0,1)' and ctid < '(0,50)'"),
    (10, "", "select count(*) from large tablesample system (50)"),
    (10, "", "select a.k, count(*) from large a join small b on a.id = b.id group by a.k"),
    (10, "set enable_hashjoin = off", "select * from large a join large b on a.id = b.k"),
    (10, QUIET, "select * from small a join large b on a.id = b.id where a.k = 3"),
    (10, "set enable_hashjoin = off; set enable_nestloop = off", "select * from small a full join small b on a.id = b.k"),
    (10, "", "select * from small a left join large b on a.k = b.k"),
    (10, "", "select * from large a right join small b on a.id = b.k and b.id > 5"),
    (10, "", "select * from small a where exists (select 1 from large b where a.id = b.k)"),
    (10, "", "select * from small a where not exists (select 1 from large b where a.id = b.k)"),
    (10, "", "select * from small a where id not in (select k from large)"),
    (10, "", "select (select max(id) from large b where b.k = a.k) from small a"),
    (10, "", "select (select max(id) from large), (select min(k) from small), * from small"),
    (10, "", "select k, count(*), grouping(k, id) from small group by rollup (k, id)"),
    (10, "set enable_hashagg = off", "select k, count(distinct id) from small group by k"),
    (10, "", "select distinct k from large"),
    (10, "", "select id, row_number() over (partition by k order by id) from small"),
    (10, "", "with w as (select 1 as x), v as (select * from small) select * from w, v a, v b"),
    (10, "", "with recursive r (n) as (select 1 union all select n + 1 from r where n < 20) select * from r, small"),
    (10, "", "select id from small union select id from large where k = 1"),
    (10, "", "select id from small union all select id from large where k = 1"),
    (10, "", "select id from small intersect select id from large"),
    (10, "set enable_hashagg = off", "select id from small except all select id from large"),
    (10, "", "select * from (select * from small offset 0) q where q.id > 3"),
    (10, "", "select * from (select * from seen where id < 9 limit 5) q, seen"),
    (10, "", "select * from generate_series(1, 5) g, unnest(array[1, 2]) with ordinality u (a, b)"),
    (10, "", "select generate_series(1, 3), * from small"),
    (10, "", "values (1, 'a'), (2, 'b')"),
    (10, "", "select * from (values (1), (2)) v (x) join small on x = id"),
    (10, "", "select * from xmltable('/r/x' passing '<r><x>1</x></r>' columns x int path '.') x"),
    (10, "", "select * from parts"),
    (10, "", "select * from parts p join parts q using (id) where p.id < 1500"),
    (10, "", "select * from parts order by id"),
    (13, "", "select * from (select * from large order by k) q order by k, id limit 7"),
    (14, QUIET, "select * from large a join small b on a.k = b.id"),
    (10, "", "select * from parent"),
    (10, "", "select * from parent a, parent b where a.id = b.id"),
    (10, "set enable_seqscan = off", "select * from small"),
    (10, PARALLEL, "select count(*) from large"),
    (10, PARALLEL, "select * from large a join large b using (id) where a.k = 1"),
    (10, PARALLEL, "select k, count(*) from large group by k order by k"),
    (11, PARALLEL + "; set enable_partitionwise_join = on", "select count(*) from parts"),
    (10, "", "select * from small for update"),
    (10, "", "insert into small values (1, 2, 'x')"),
    (10, "", "insert into small select id, k, p from large where k = 3"),
    (10, "", "insert into large select id, k, t from small on conflict (id) do update set k = excluded.k"),
    (10, "", "insert into parts values (5, 5)"),
    (10, "", "update small set k = k + 1 where id < 9"),
    (10, "", "update parts set k = 5 where id in (5, 1500)"),
    (10, "", "update parent a set t = 'b' from small s where a.id = s.id"),
    (10, "", "update other.small set id = 2 returning (select max(id) from large)"),
    (10, "", "delete from small where id in (select k from large)"),
    (10, "", "delete from parent where id = 3"),
    (10, "", "with d as (delete from scratch returning id) insert into other.small select id from d"),
    (15, "", "merge into small s using large l on s.id = l.id when matched then update set k = l.k"),
    (15, "", "merge into parts p using small s on p.id = s.id when matched then delete"),
    (10, "", "create table copied as select * from large where k < 3"),
    (10, "", "declare c cursor for select * from large"),
]


@contextlib.contextmanager
def stopper(server):
    """Stops the server's processes where they begin to execute a plan, until they are continued."""
    if not shutil.which("bpftrace"):
        pytest.skip("bpftrace is not installed")
    program = os.path.realpath(f"/proc/{server.pid}/exe")
    with subprocess.Popen(["bpftrace", "--unsafe", "-e", f"uprobe:{program}:standard_ExecutorRun {{ signal(19); }} BEGIN {{ printf(\"ready\\n\"); }}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: "ready" in (process.stdout.readline() or pytest.fail(process.stderr.read())), what="bpftrace")
            yield
        finally:
            process.terminate()


def resume_stopped(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if state(pid) == "T":
            os.kill(pid, signal.SIGCONT)


class Session:
    """A connection whose statements run in a thread."""

    def __init__(self, server):
        self.server, self.connection = server, server.connect()
        self.pid = self.connection.info.backend_pid

    def do(self, sql):
        return self.connection.pgconn.exec_(sql.encode())

    def value(self, sql):
        result = self.do(sql)
        assert result.status in (1, 2), result.error_message.decode()
        return "\n".join(result.get_value(i, 0).decode() for i in range(result.ntuples))

    @contextlib.contextmanager
    def stopped(self, sql):
        """While it is stopped before it executes @sql's plan."""
        done = []
        thread = threading.Thread(target=lambda: done.append(self.do(sql)))
        thread.start()
        try:
            wait_for(lambda: done or state(self.pid) == "T", what=f"the backend to execute {sql}")
            assert not done, (sql, done[0].error_message)
            yield
        finally:
            while thread.is_alive():
                for pid in children(self.server.pid):
                    resume_stopped(pid)
                thread.join(0.005)


def plans(pid, *args):
    done = run("plan", str(pid), "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shape(plan):
    """What both say of a node, and of those below it."""
    found = {name: plan[name] for name in MEMBERS if name in plan}
    if "Function" in found["Node Type"]:
        found.pop("Schema", None)	# of the function
    if "Schema" in found:
        found["Schema"] = re.sub(r"^pg_temp_\d+", "pg_temp", found["Schema"])	# up to 14
    return found | {"Plans": [shape(below) for below in plan.get("Plans", [])]}


def nodes(plan):
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def lines(text):
    """Those of nodes and subplans, without the schema and name of a function, and without what a server has beside its width."""
    text = re.sub(r" pg_temp_\d+\.", " pg_temp.", text)
    kept = [line.rstrip() for line in text.splitlines() if "(cost=" in line or re.match(r" +(InitPlan|SubPlan|CTE) ", line)]
    return [re.sub(r'((?:Table )?Function Scan on) (?:\w+\.)?"?\w+"? (?=\S+  )', r"\1 ", line) for line in kept]


def explained(session, statement):
    """The plan as JSON and as text. EXPLAIN has no cursors, and the cost of one is that of another plan."""
    text = statement.removeprefix("declare c cursor for ")
    cursor = "declare" in statement
    if cursor:
        session.do("set cursor_tuple_fraction = 1")
    (found,) = json.loads(session.value(f"explain (verbose, format json) {text}"))
    return found["Plan"], session.value(f"explain (verbose) {text}")


@pytest.fixture(scope="module", params=[10, 13, 15, 18])
def planned(request):
    """(server, release), whose statements are stopped."""
    need_root()
    settings = {"autovacuum": "off", "jit": "off", "max_parallel_workers_per_gather": "2", "name": "plan"}
    if request.param == 10:
        del settings["jit"]
    release = request.param
    made = Cluster(**settings) if release == 15 else postgres_releases.Release(release, **{k: v for k, v in settings.items() if k != "name"})
    with made.init() as server, server.start():
        yield server, release


def compared(server, release, wrong):
    session = Session(server)
    for part in SETUP.split(";"):
        session.value(part)
    with stopper(server):
        for least, settings, statement in STATEMENTS:
            if release < least:
                continue
            session.value(f"begin; {settings}")
            plan, text = explained(session, statement)
            if "declare" in statement:
                session.value(statement)
                statement, executed = "fetch 5 from c", statement
            else:
                executed = statement
            with session.stopped(statement):
                found = plans(session.pid)
                printed = run("plan", str(session.pid)).stdout
            session.value("rollback")
            if [one["Query Text"] for one in found] != [executed] or shape(found[0]["Plan"]) != shape(plan):
                wrong.append((statement, found, plan))
            elif lines(printed) != ["  " + line for line in lines(text)]:
                wrong.append((statement, printed, text))


def test_as_explain(planned):
    """Nodes, relations, indexes, costs, rows and widths, of each kind of statement and node."""
    wrong = []
    compared(*planned, wrong)
    assert not wrong, f"{len(wrong)} of {len(STATEMENTS)}:\n" + "\n".join(f"{one[0]}\n{one[1]}\n{one[2]}" for one in wrong[:5])


@pytest.fixture(scope="module")
def server():
    need_root()
    with Cluster(name="plans", autovacuum="off", jit="off").init() as cluster, cluster.start():
        cluster.psql("create table big as select i as id, i % 100 as k, repeat('x', 100) as p from generate_series(1, 200000) i",
                     "create index big_id on big (id)", """
            create function loops(n int) returns int language plpgsql as $$
            declare r record; begin for r in select * from big where k = n loop perform pg_sleep(600); end loop; return 1; end $$""", """
            create function spins() returns void language plpgsql as $$ declare n bigint; begin loop
                select count(*) into n from only_a where id < 3;
                select count(*) into n from only_b x join only_c y using (id);
                execute 'select sum(id) from only_d where id = 1' into n;
            end loop; end $$""", *(f"create table only_{x} as select i as id from generate_series(1, 5) i" for x in "abcd"),
                     "vacuum analyze")
        yield cluster


@contextlib.contextmanager
def running(server, statement, *before, wait="Timeout:PgSleep"):
    """A session that executes @statement, until it is cancelled; it waits for @wait."""
    session = Session(server)
    for each in before:
        session.value(each)
    thread = threading.Thread(target=session.do, args=(statement,))
    thread.start()
    try:
        wait_for(lambda: any(one["pid"] == session.pid and one["state"] == "active" and (not wait or one.get("wait") == wait)
                             for one in sessions("-p", str(server.pid))), what=f"the session to wait for {wait}")
        if not wait:
            wait_for(lambda: plans(session.pid), what="its plan, which is made at first")
        yield session
    finally:
        with server.connect() as other:
            other.execute("select pg_cancel_backend(%s)", (session.pid,))
        thread.join()


def test_calls_and_cursors(server):
    """The statement, what a function executes in it, and the cursors that are open meanwhile."""
    statement = "select loops(k) from big where id = 4 union all select 1"
    with running(server, statement, "begin", "declare mine cursor for select id from big", "fetch 7 from mine") as session:
        found = plans(session.pid)
        printed = run("plan", str(session.pid)).stdout
        assert [(one["Query Text"], one["Level"], one.get("Cursor")) for one in found] == [
            (statement, 0, None), ("SELECT pg_sleep(600)", 1, None), ("select * from big where k = n", 1, "<unnamed portal 1>"),
            ("declare mine cursor for select id from big", 1, "mine")]
        assert found[3]["Rows Processed"] == 7 and found[2]["Rows Processed"] == 10, found
        done = found[2]["Plan"]
        assert done["Node Type"] == "Seq Scan" and 0 < done["Blocks Done"] < done["Blocks Total"], done
        assert done["Blocks Total"] == int(session.server.psql("select pg_relation_size('big') / 8192").stdout)
        assert re.search(r'^  open cursor mine: declare .*\(rows so far: 7\)$', printed, re.M), printed
        assert re.search(r'^      Blocks: \d+ of \d+  \[\.{20}\] 0 %$', printed, re.M), printed


def only(found):
    (one,) = found
    return one


def test_cursor_that_was_closed(server):
    """Its portal is in memory still, and its context that of another statement."""
    with running(server, "select pg_sleep(600), 'after'", "begin", "declare c2 cursor for select 1", "fetch 1 from c2", "close c2") as session:
        assert "Cursor" not in only(plans(session.pid))


def test_large_bitmap(server):
    """It is one chunk of the statement's memory, behind which its nodes are."""
    with running(server, "select pg_sleep(600) from big where id < 199000", "set enable_seqscan = off", "set enable_indexscan = off") as session:
        (scan,) = [one for one in nodes(only(plans(session.pid))["Plan"]) if one["Node Type"] == "Bitmap Heap Scan"]
        assert scan["Exact Heap Blocks"] >= 1 and scan["Lossy Heap Blocks"] == 0, scan


def test_copy(server):
    """It changes the session's entry for each row."""
    with running(server, "copy (select a.id from big a, big b) to '/dev/null'", wait=None) as session:
        for _ in range(20):
            assert only(plans(session.pid))["Plan"]["Node Type"] == "Nested Loop"


def test_scan_that_has_ended(server):
    """The server forgets where it was: that is not known."""
    with running(server, "select pg_sleep(600) from (select * from big order by p, id offset 0) q", "set max_parallel_workers_per_gather = 0") as session:
        (scan,) = [one for one in nodes(only(plans(session.pid))["Plan"]) if one["Node Type"] == "Seq Scan"]
        assert "Blocks Done" not in scan and "Blocks Total" not in scan, scan


def test_portal_at_its_end(server):
    """The extended protocol keeps it until the transaction ends."""
    session = Session(server)
    session.value("begin")
    session.connection.pgconn.exec_params(b"select id from big where id < $1", [b"100"])
    assert plans(session.pid) == []


def test_parallel_worker_has_the_plan_of_its_leader(server):
    settings = ["set parallel_setup_cost = 0", "set parallel_tuple_cost = 0", "set min_parallel_table_scan_size = 0"]
    statement = "select count(*) from big where pg_sleep(600) is not null"
    with running(server, statement, *settings, "alter function pg_sleep parallel safe", wait=None) as session:
        wait_for(lambda: sum(b"parallel worker" in title(pid) for pid in children(server.pid)) == 2, what="its workers")
        worker = next(pid for pid in children(server.pid) if b"parallel worker" in title(pid))
        own, its = plans(session.pid), plans(worker)
        assert own == its and [one["Query Text"] for one in own] == [statement], (own, its)
        gather = own[0]["Plan"]["Plans"][0]
        assert gather["Node Type"] == "Gather" and gather["Workers Planned"] == gather["Workers Launched"] == 2, gather
    server.psql("alter function pg_sleep parallel restricted")


def test_progress(server):
    """Hashes, sorts and groups, while the statement waits above them."""
    settings = ["set max_parallel_workers_per_gather = 0", "set work_mem = '64MB'"]
    joined = "select count(pg_sleep(600)) from big a join big b using (id)"
    with running(server, joined, *settings, "set enable_mergejoin = off", "set enable_nestloop = off") as session:
        (hashed,) = [one for one in nodes(plans(session.pid)[0]["Plan"]) if one["Node Type"] == "Hash"]
        assert hashed["Hash Tuples"] == 200000 and hashed["Hash Batches"] == hashed["Current Hash Batch"] == 1, hashed
        assert hashed["Hash Buckets"] == 262144 and 5000 < hashed["Peak Memory Usage"] < 65536, hashed
    for limit, method, kind in (("", "quicksort", "Memory"), ("limit 10", "top-N heapsort", "Memory")):
        with running(server, f"select pg_sleep(600) from (select * from big order by p, id {limit}) q", *settings) as session:
            (ordered,) = [one for one in nodes(plans(session.pid)[0]["Plan"]) if one["Node Type"] == "Sort"]
            assert (ordered["Sort Method"], ordered["Sort Space Type"]) == (method, kind) and ordered["Sort Space Used"] > 0, ordered
            assert ordered["Sort Tuples"] == (10 if limit else 200000), ordered
    with running(server, "select pg_sleep(600) from (select * from big order by p, id offset 0) q", settings[0], "set work_mem = '1MB'") as session:
        (ordered,) = [one for one in nodes(plans(session.pid)[0]["Plan"]) if one["Node Type"] == "Sort"]
        assert (ordered["Sort Method"], ordered["Sort Space Type"]) == ("external merge", "Disk"), ordered
        assert ordered["Sort Space Used"] > 10000, ordered
    with running(server, "select k, pg_sleep(600) from (select k, count(*) from big group by k offset 0) q", *settings) as session:
        (grouped,) = [one for one in nodes(plans(session.pid)[0]["Plan"]) if one["Node Type"] == "Aggregate"]
        assert grouped["Groups"] == 100, grouped


def test_plans_are_of_their_own_texts(server):
    """Of statements that follow each other within microseconds, at the same addresses."""
    snapshots = statements = 0
    with contextlib.ExitStack() as stack:
        spinning = [stack.enter_context(running(server, "select spins()", wait=None)) for _ in range(4)]
        for session, _ in itertools.product(spinning, range(8)):
            done = run("plan", str(session.pid), "--json", "-i", "10ms", "-n", "25")
            assert done.returncode == 0, done.stderr
            for line in done.stdout.splitlines():
                snapshots += 1
                assert json.loads(line)[0].get("Query Text") == "select spins()", line
                for one in json.loads(line):
                    if "Not Read" in one:
                        continue
                    names = {node["Relation Name"] for node in nodes(one["Plan"]) if "Relation Name" in node}
                    assert names == set(re.findall(r"\bonly_\w", one["Query Text"])), one
                    statements += one["Level"] > 0
    assert snapshots == 800 and statements > 100, statements


def test_nothing_is_executed(server):
    session = Session(server)
    session.value("select 'private'")
    done = run("plan", str(session.pid))
    assert done.returncode == 0 and done.stdout.endswith("select 'private'\nno statement with a plan is executed\n"), done
    assert plans(session.pid) == []
    assert run("plan", str(session.pid), "--redact").stdout.endswith("select ?\nno statement with a plan is executed\n")


def test_redact(server):
    with running(server, "select pg_sleep(600), 'private' from big where id < 12345") as session:
        for form in ([], ["--json"]):
            said = run("plan", str(session.pid), "--redact", *form).stdout
            assert "big" in said and "pg_sleep(?)" in said and "private" not in said and "12345" not in said, said


def test_refused(server):
    refused(run("plan"), "requires the ID of a session", status=2)
    refused(run("plan", "0"), "not the ID of a session", status=2)
    refused(run("plan", "5", "6"), "second session", status=2)
    refused(run("plan", "oracle"), "neither a database nor the ID of a session", status=2)
    refused(run("plan", "4194304", "-p", str(server.pid)), "it does not exist, or has ended")


def test_repeats_on_a_terminal(server):
    """Each plan is drawn over the one before."""
    reader, writer = pty.openpty()
    with running(server, "select pg_sleep(600)") as session, os.fdopen(reader, "rb", 0) as terminal:
        with subprocess.Popen([DBSLOWER, "plan", str(session.pid), "-i", "0.1", "-n", "3"], stdout=writer) as process:
            os.close(writer)
            said = b""
            with contextlib.suppress(OSError):
                while part := terminal.read(65536):
                    said += part
        assert process.returncode == 0 and said.count(b"\x1b[H\x1b[2J") == said.count(b"Result  (cost=") == 3, said


# --- the reader alone, which tests/fixtures/plans.c calls

SOURCES = ("tests/fixtures/plans.c", "db/plan/*.c", "db/postgres/plan.c", "db/postgres/plan_table.c", "db/postgres/executor.c",
           "db/postgres/catalog.c", "cli/format/plan_print.c", "cli/format/escape.c", "cli/format/width.c", "cli/output.c", "sql/*.c",
           "base/*.c", *(f"host/{name}.c" for name in ("process", "process_memory", "fuse", "open", "mount")))


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("plans") / "plans")
    files = sorted(file for source in SOURCES for file in glob.glob(os.path.join(ROOT, source)))
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wl,--wrap=pread",
                    "-I", ROOT, "-o", path, *files], check=True)
    return path


def top_context(pid):
    """The address of a backend's TopMemoryContext, by nm."""
    program = os.path.realpath(f"/proc/{pid}/exe")
    names = subprocess.run(["nm", "-D", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        start = int(f.readline().split("-")[0], 16)
    return start + int(re.search(r"^(\w+) . TopMemoryContext$", names, re.M)[1], 16)


def read_by(reader, pids, rounds, mutated, seed):
    done = subprocess.run([reader, "15", f"{top_context(pids[0]):x}", str(rounds), str(mutated), str(seed), *map(str, pids)],
                          capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-4000:]
    for line in done.stderr.splitlines():
        if line.startswith("["):
            json.loads(line)
    return map(int, done.stdout.split())


def test_memory_that_lies(server, reader):
    """Words of the memory of a real backend are replaced while it is read: no crash, no endless loop, and JSON that can be read."""
    with running(server, "select loops(k) from big where id = 4 union all (select count(*) from big a join big b using (id))") as session:
        for seed, mutated in enumerate((0, 100, 1000, 10000, 100000)):
            snapshots, statements, _ = read_by(reader, [session.pid], 200, mutated, seed)
            assert snapshots == 200 and (statements == 600 if not mutated else True), (mutated, statements)


def test_statements_that_follow_each_other(server, reader):
    """The same as above, of more sessions, which alternate prepared statements or loop, without the time that a process takes."""
    def alternates(session):
        while not stop:
            session.do("execute a; execute bc")
    stop, threads = [], []
    with contextlib.ExitStack() as stack:
        looping = [stack.enter_context(running(server, "select spins()", wait=None)) for _ in range(4)]
        others = [Session(server) for _ in range(4)]
        for session in others:
            session.value("prepare a as select count(*) from only_a where id < 3")
            session.value("prepare bc as select count(*) from only_b x join only_c y using (id)")
            threads.append(threading.Thread(target=alternates, args=(session,)))
            threads[-1].start()
        try:
            snapshots, statements, foreign = read_by(reader, [one.pid for one in looping + others], 2000, 0, 0)
        finally:
            stop.append(True)
            for thread in threads:
                thread.join()
    assert (snapshots, foreign) == (2000, 0) and statements > 500, (snapshots, statements, foreign)
