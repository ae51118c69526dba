# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The mixed workload of the oracle test. A comment in each text names the part that it belongs to.

application_name tells the oracle what the log does not: "pipeline" where a named
Parse is not followed by a Sync, "tight" where clients send a statement's messages
in one go and its commit writes nothing.
"""

import os
import subprocess
import threading
import time

import wire
from cluster import wait_for

PROTOCOLS = ("simple", "extended", "prepared")
TRANSACTIONS = 5000	# of one client, by each protocol
READ = "\\set aid random(1, 100000)\nselect abalance from pgbench_accounts where aid = :aid /* pgbench read */;\n"
SETUP = """
create table item (id int primary key, name text, parent int references item deferrable initially deferred);
create table big as select g as id, md5(g::text) as t from generate_series(1, 60000) g;
create table sink (n int);
create function slow(s float) returns int language plpgsql as $$ begin perform pg_sleep(s); return 1; end $$;
create function swallow() returns text language plpgsql as
  $$ begin perform 1/0; return 'no'; exception when division_by_zero then return 'caught'; end $$;
create function bad_parallel(int) returns int language plpgsql parallel safe as
  $$ begin return 1 / ($1 - 59999); end $$;
create function noisy() returns int language plpgsql as
  $$ begin raise notice 'a notice'; raise warning 'a warning'; raise info 'an info'; return 1; end $$;
create procedure commits() language plpgsql as
  $$ begin for i in 1..4 loop insert into sink values (i); if i % 2 = 0 then commit; else rollback; end if;
     end loop; end $$;
analyze;
"""

# The texts of one psql each: every -c is one message.
PLAIN = [
    "select 1 /* plain */",
    "select /* several */ 1; select 2; select 3",
    "create temp table t (n int); insert into t select generate_series(1, 10); select /* ddl */ count(*) from t",
    "begin; insert into sink values (1); commit /* block in one message */",
    "do $$ begin perform pg_sleep(0.01); end $$ /* do */",
    "select slow(0.02) /* function */",
    "select swallow() /* an error that was caught */",
    "select noisy() /* notices */",
    "call commits() /* commits */",
    "copy (select * from big limit 1000) to stdout /* copy out */",
    "explain analyze select /* explain */ count(*) from big",
    "select /* utf-8 */ 'Grüße, мир, 世界, 🐘'",
    "select /* quotes */ 'it''s', \"x\", '\\', E'\\n\\t\\\\' from (select 1 as \"x\") s",
    "select /* control \x01\x02\x1b[31m\x7f\t */ 1",
    "select /* lines */\n\t1,\n\n\t\t2\r\n-- the end\n",
    " \n select 1 /* blanks around */ \n ",
    "listen channel; notify channel, 'x' /* notify */",
    "set work_mem = '8MB'; show work_mem /* set */",
    "vacuum sink /* vacuum */",
]
FAILING = [
    "select 1/0 /* division */",
    "selec 1 /* syntax */",
    "select nothing from nowhere /* relation */",
    "select 1; select 1/0; select 3 /* in the middle */",
    "select 'unterminated /* lexer */",
    "insert into item values (1, 'x'), (1, 'y') /* unique */",
    "begin; insert into item values (50, 'x', 51); commit /* deferred, in one message */",
    "do $$ begin raise exception 'mine'; end $$ /* raised */",
    "call nothing() /* call */",
    "set statement_timeout = 50; select pg_sleep(20) /* timeout */",
    "select /* utf-8 fails */ 'é' || 1/0 || '世界'",
]
SESSIONS = [
    ["begin", "insert into sink values (2) /* in a block */", "commit"],
    ["begin", "select 1/0 /* fails in a block */", "select 1 /* in an aborted block */",
     "commit /* of an aborted block */"],
    ["begin", "insert into item values (60, 'x', 61) /* deferred */", "commit /* deferred fails */"],
    ["begin", "savepoint s", "select 1/0 /* fails after a savepoint */", "rollback to s", "select 2", "rollback"],
    ["begin", "declare c cursor for select * from big", "fetch 10 from c", "fetch 100 from c /* fetch */",
     "close c", "end"],
    ["prepare p as select $1::int /* sql prepare */", "execute p(1)", "execute p(2)", "execute p('x')",
     "deallocate p"],
    ["set statement_timeout = 30", "select pg_sleep(20) /* statement_timeout */", "reset statement_timeout",
     "select 1 /* after the timeout */"],
    ["set lock_timeout = 30", "select 1 /* lock_timeout */"],
]
PARALLEL = [
    "set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; "
    "select /* parallel */ count(*), max(t) from big",
    "set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; "
    "select /* parallel fails */ sum(bad_parallel(id)) from big",
]


class Workload:
    """setup() before the tool is attached, run() while it is."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.folder = str(folder)
        self.failures = []

    def setup(self):
        self.cluster.psql(SETUP)
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=self.cluster.env(), check=True, capture_output=True)
        self.cluster.psql("vacuum analyze")
        self.cluster.settle()

    def run(self):
        """Everything; what lasts, beside the rest. Raises what a part raised."""
        threads = [threading.Thread(target=self.guard, args=(part,))
                   for part in (self.texts, self.interrupted, self.pipelines, self.orders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.pgbench()
        if self.failures:
            raise self.failures[0]
        self.cluster.settle()

    def guard(self, part):
        try:
            part()
        except Exception as why:	# shown by run()
            self.failures.append(why)

    # psql

    def texts(self):
        for text in PLAIN + PARALLEL:
            self.cluster.psql(text, check=False, PGAPPNAME="psql")
        for text in FAILING:
            self.cluster.psql(text, check=False, PGAPPNAME="psql-failing")
        for texts in SESSIONS:
            self.cluster.psql(*texts, check=False, PGAPPNAME="psql-session")
        self.cluster.psql(stdin=b"copy sink from stdin /* copy in */;\n1\n2\n\\.\n"
                                b"copy sink from stdin /* copy in fails */;\n1\nx\n\\.\n", check=False)
        self.cluster.psql(stdin=long_text(100_000).encode() + b";\n")
        self.cluster.psql(stdin=long_text(4090).encode() + b";\n" + long_text(4096).encode() + b";\n"
                          + long_text(4097).encode() + b";\n")
        with self.cluster.connect(application_name="empty") as connection:
            for text in ("", ";", "  ", "-- only a comment"):
                connection.pgconn.exec_(text.encode())

    # what another session ends

    def interrupted(self):
        self.interrupt("select pg_sleep(60) /* cancelled */", "pg_cancel_backend")
        self.interrupt("select pg_sleep(60) /* terminated */", "pg_terminate_backend")
        self.lock_wait()
        for _ in range(5):
            self.cluster.psql("select 1 /* short */", PGAPPNAME="short")

    def interrupt(self, text, function):
        connection = self.cluster.connect(application_name="victim")
        pid = connection.info.backend_pid
        thread = threading.Thread(target=lambda: connection.pgconn.exec_(text.encode()))
        thread.start()
        self.wait_active(pid)
        self.cluster.psql(f"select {function}({pid})")
        thread.join()
        connection.close()

    def wait_active(self, pid):
        query = f"select state = 'active' and wait_event is not null from pg_stat_activity where pid = {pid}"
        wait_for(lambda: self.cluster.psql(query).stdout == b"t\n", 60, f"backend {pid} to wait")

    def lock_wait(self):
        with self.cluster.connect(application_name="holder") as holder:
            holder.execute("begin")
            holder.execute("lock table sink in access exclusive mode")
            self.cluster.psql("set lock_timeout = 40", "insert into sink values (9) /* waits for a lock */",
                              check=False, PGAPPNAME="waiter")
            holder.execute("rollback")

    # psycopg

    def pipelines(self):
        import psycopg
        with self.cluster.connect(application_name="psycopg") as one:
            for n in range(20):
                one.execute("select %s::int /* psycopg */", (n,))	# prepared by itself after the fifth
            one.execute("insert into sink values (%s) /* psycopg insert */", (1,))
            for bad in ("select 1 / %s::int /* psycopg fails at execute */", "selec %s /* psycopg fails at parse */",
                        "select %s::int + 'x'::int /* psycopg fails */"):
                try:
                    one.execute(bad, (0,))
                except psycopg.Error:
                    pass
            one.pgconn.exec_(b"select 1 /* simple between */")
        with self.cluster.connect(application_name="pipeline") as one:
            for n in range(20):
                with one.pipeline():
                    for part in range(5):
                        one.execute("select %s::int /* pipeline */", (part,), prepare=False)
                    one.execute("insert into sink values (%s) /* pipeline insert */", (n,), prepare=n % 2 == 0)
            for _ in range(5):
                self.pipeline_with_error(one)

    def pipeline_with_error(self, connection):
        import psycopg
        try:
            with connection.pipeline():
                connection.execute("select %s::int /* before the error */", (1,), prepare=False)
                connection.execute("select 1 / %s::int /* the error */", (0,), prepare=False)
                connection.execute("select %s::int /* after the error */", (2,), prepare=False)
        except psycopg.Error:
            pass
        connection.execute("select 3 /* after the pipeline */", prepare=False)

    # the protocol by hand

    def orders(self):
        w = wire.Wire(self.cluster, "pipeline by hand")
        one = "select generate_series(1, 30) /* by hand */"
        for _ in range(10):
            w.ask(wire.parse(one), wire.bind(), wire.execute())
        w.ask(wire.parse(one), wire.bind(), wire.execute(rows=10), wire.execute(rows=10), wire.execute())
        w.ask(wire.parse("insert into item values (70, 'x', 71) /* deferred fails at Sync */"), wire.bind(),
              wire.execute())
        w.ask(wire.parse("select 1 /* fine again */"), wire.bind(), wire.execute())
        w.ask(wire.bind("unknown"), wire.execute())		# fails before any activity
        w.ask(wire.parse("select $1::int /* fails at bind */"), wire.bind(values=["x"]), wire.execute())
        w.send(wire.parse("select 1 /* with flush */"), wire.FLUSH)
        w.until(b"1")
        time.sleep(0.01)
        w.send(wire.bind(), wire.FLUSH)
        w.until(b"2")
        w.ask(wire.execute())
        w.send(wire.simple("select 1 /* simple by hand */"))
        w.until(b"Z")
        w.close()
        w = wire.Wire(self.cluster, "by hand")
        w.ask(wire.parse("select 1 /* parse alone */", "named"))
        w.ask(wire.bind("named"), wire.execute())
        w.ask(wire.bind("named"), wire.execute())
        w.ask(wire.parse("selec 1 /* parse alone fails */", "bad"))
        w.close()

    # pgbench

    def pgbench(self):
        read = self.script("read", READ)
        write = self.script("write", "\\set aid random(1, 100000)\nbegin;\n"
                            "update pgbench_accounts set abalance = abalance + 1 where aid = :aid /* pgbench write */;\n"
                            "select abalance from pgbench_accounts where aid = :aid;\nend;\n"
                            "insert into sink values (:client_id) /* pgbench autocommit */;\n")
        self.one_client()
        for protocol in PROTOCOLS:
            self.bench(f"pgbench {protocol}", "-M", protocol, "-c", "4", "-j", "2", "-t", "120", "-f", write)
            self.bench(f"pgbench {protocol} busy", "-M", protocol, "-c", "4", "-j", "2", "-t", "500", "-f", read)
        self.bench("pgbench -C", "-C", "-c", "4", "-j", "2", "-t", "25", "-f", read)

    def one_client(self, transactions=TRANSACTIONS, wrap=()):
        """One client, which sends each message of a statement at once."""
        read = self.script("read", READ)
        for protocol in PROTOCOLS:
            self.bench(f"tight pgbench {protocol}", "-M", protocol, "-c", "1", "-t", str(transactions), "-f", read, wrap=wrap)

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def bench(self, name, *args, wrap=()):
        done = subprocess.run([*wrap, "pgbench", "-n", *args], env=self.cluster.env(PGAPPNAME=name),
                              capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")


def long_text(size):
    """A query of @size bytes, without its semicolon."""
    head = f"select length('{size}"
    return head + "x" * (size - len(head) - 2) + "')"
