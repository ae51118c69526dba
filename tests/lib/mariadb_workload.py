# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The mixed workload of MariaDB's oracle test. A text has /* fails ERRNO */ if it must fail."""

import subprocess
import threading

from cluster import wait_for
from mariadb_client import ServerError

SETUP = [
    "create database d; use d; create user app; grant all on d.* to app",
    "create table item (id int primary key, name text); create table sink (n int, t mediumtext); "
    "create table audited (n int); insert into item values (1, 'one'), (2, 'two'), (3, 'three')",
    "create trigger audit after insert on audited for each row insert into sink values (new.n, 'audited')",
    "create function twice(n int) returns int modifies sql data "
    "begin insert into sink values (n, 'twice'); select count(*) into @n from sink; return 2 * n; end",
    "create procedure several() begin insert into sink values (1, 'several'); select * from item; "
    "select sleep(0.01); delete from sink; end",
    "create procedure dynamic() begin prepare s from 'select count(*) from item'; execute s; execute s; "
    "deallocate prepare s; execute immediate 'select 1'; end",
    "create procedure swallows() begin declare continue handler for sqlexception set @failed = 1; "
    "select * from nosuch; select 'after'; end",
    "create procedure fails() begin select 1; select * from nosuch; select 2; end",
    "create procedure nested(n int) begin set max_sp_recursion_depth = 10; "
    "if n > 0 then call nested(n - 1); end if; select twice(n); end",
]
PLAIN = [
    "select 1 /* plain */",
    "select 1; select /* parts */ 2; select sleep(0.01); select 3",
    "select 1; set @a = 1; insert into sink values (1, 'mixed'); select 2;",
    "begin; insert into sink values (2, 'block'); commit",
    "select * from item",
    "insert into sink select id, name from item",
    "update sink set n = n + 1",
    "delete from sink",
    "insert into audited values (1), (2), (3) /* trigger */",
    "select twice(3), twice(4) /* functions */",
    "call several()",
    "call dynamic()",
    "call swallows()",
    "call nested(3)",
    "call several(); call dynamic(); select twice(1)",
    "begin not atomic select 1; select twice(2); end",
    "create temporary table tt (n int); insert into tt values (1), (2); drop table tt",
    "prepare p from 'select ? + 1 /* sql prepare */'; set @v = 4",
    "execute p using @v",
    "deallocate prepare p",
    "show tables; show variables like 'port'; explain select * from item",
    "analyze table item; check table item",
    "set statement max_statement_time = 100 for select 1",
    "set names utf8mb4",
    "use d",
    "/* only a comment */",
    "select 'Grüße, мир, 世界, 🐘' /* utf-8 */",
    "select 'it''s', \"x\", '\\\\', '\\n' /* quotes */",
    b"select 'control \x01\x02\x1b[31m\x7f\t'",
    b"select 'nul \0 in the middle' /* nul */",
    "select /* lines */\n\t1,\r\n\n\t\t2\r\n-- the end\n",
    " \n select 1 /* blanks around */ \n ;\n ",
    "select 1 as `# User@Host: `",
]
FAILING = [
    "selec 1 /* fails 1064 */",
    "select 'unterminated /* fails 1064 */",
    "select * from nosuch /* fails 1146 */",
    "select nosuch from item /* fails 1054 */",
    "insert into item values (1, 'again') /* fails 1062 */",
    "call nosuch() /* fails 1305 */",
    "call fails() /* fails 1146 */",
    "signal sqlstate '45000' /* fails 1644 */",
    "insert into sink values (1, 'kept'); insert into item values (1, 'x') /* fails 1062 */; select 'never'",
    "select 1; selec /* fails 1064 */; select 'never'",
    "set statement max_statement_time = 0.05 for select sleep(20) /* fails 1969 */",
    "select 1 from item where id = (select id from item) /* fails 1242 */",
    "use nosuch /* fails perhaps */",
    "", ";", "  ",
]


class Workload:
    """setup() before the tool is attached, run() while it is."""

    def __init__(self, server, events):
        self.server = server
        self.events = events		# of each sysbench run
        self.failures = []

    def setup(self):
        with self.server.connect() as client:
            for text in SETUP:
                client.query(text)
        self.sysbench("oltp_read_write", "prepare", "--table-size=1000")
        self.uses = 0			# commands that have no text and are in no log
        self.before = self.server.connect(database="d")
        self.prepared_before = self.before.prepare("select name from item where id = ? /* prepared before */")

    def run(self):
        """Everything, most of it side by side. Raises what a part raised."""
        parts = (self.texts, self.prepared, self.interrupted, self.dropped, self.connected_before, self.short,
                 self.programs)
        threads = [threading.Thread(target=self.guard, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.guard(self.benches)
        if self.failures:
            raise self.failures[0]
        self.server.settle()

    def guard(self, part):
        try:
            part()
        except BaseException as why:	# shown by run()
            self.failures.append(why)

    def connect(self, **keywords):
        return self.server.connect(**{"database": "d", **keywords})

    # text

    def texts(self):
        for keywords in ({}, {"user": "app", "tcp": True}, {"user": "app"}):
            with self.connect(**keywords) as client:
                for text in PLAIN:
                    client.query(text)
                for text in FAILING:
                    client.failing(text)
        with self.connect(database="") as client:
            client.query("select 1 /* no database */; use d; select 2; use mysql; select 3")
            client.use("d")
            self.uses += 1
            client.query("select 4 /* init db */")
            client.change_user("app", "d")
            client.query("select 5 /* changed user */")
        with self.connect() as client:
            for size in (4090, 4095, 4096, 4097, 5000, 100_000, 1_000_000):
                client.query(long_text(size))
                client.query(f"select 1; {long_text(size)}; select 2")
                client.query(long_text(size, "é"))
            client.failing(long_text(9000) + " from /* fails 1064 */")
            client.query("set names latin1")
            client.query(b"select 'caf\xe9 \xff\xfe\x80'")
            client.query(b"select '" + b"\xe9" * 5000 + b"'")

    # the binary protocol

    def prepared(self):
        with self.connect() as client:
            insert = client.prepare("insert into sink values (?, ?)")
            select = client.prepare("select name from item where id = ?")
            duplicate = client.prepare("insert into item values (?, 'again') /* fails 1062 */")
            call = client.prepare("call several()")
            dynamic = client.prepare("call dynamic()")
            for n in range(50):
                insert.execute(n, f"text {n}")
                insert.execute(n, None)
                select.execute(n % 4)
            for n in range(5):
                insert.bulk((n, "bulk"), (n, "é"), (n, b"\xf0\x9f\x90\x98"))
                fails(duplicate, 1)
                call.execute()
                dynamic.execute()
            insert.execute(1, "x" * 5000)
            insert.execute(1, "世" * 3000)
            select.reset()
            select.execute(2)
            long = client.prepare("select length(?)")
            long.long_data(0, "y" * 70_000)
            long.execute_long()
            long.close()
            try:
                client.prepare("selec ? /* a bad PREPARE is no statement */")
            except ServerError:
                pass
            client.query("select 1 /* text between */")
            client.ping()
            select.execute(3)

    def connected_before(self):
        for n in range(20):
            self.prepared_before.execute(n % 4)
            self.before.query("select 1 /* connected before */")
        self.before.close()

    # ends

    def interrupted(self):
        self.kill("query", "select sleep(60) /* fails 1317 */")
        self.kill("query", "select sleep(60) /* fails 1317 */; select 'never'")
        self.kill("connection", "select sleep(60) /* fails perhaps */")
        with self.connect() as holder, self.connect() as waiter:
            holder.query("begin; update item set name = 'locked' where id = 1")
            waiter.failing("select * from item where id = 1 for update nowait /* fails 1205 */")
            waiter.query("begin; update item set name = 'locked' where id = 2")
            holder.query("rollback")
            waiter.query("rollback")

    def kill(self, what, text):
        with self.connect() as victim, self.connect() as killer:
            def run():
                try:
                    victim.query(text)
                except (ServerError, ConnectionError):
                    pass
            thread = threading.Thread(target=run)
            thread.start()
            self.wait_sleeping(killer, victim.id)
            killer.query(f"kill {what} {victim.id}")
            thread.join()

    def wait_sleeping(self, client, number, state="User sleep"):
        query = f"select 1 from information_schema.processlist where id = {number} and state = '{state}'"
        wait_for(lambda: client.rows(query), 60, f"connection {number} to sleep")

    def dropped(self):
        """Connections that end while a statement runs."""
        with self.connect() as watcher:
            for text in ("select get_lock('dropped', 600) /* fails perhaps */",
                         "select get_lock('dropped', 600) /* fails perhaps */; select 1 /* fails perhaps */"):
                watcher.query("do get_lock('dropped', 600)")
                victim = self.connect()
                victim.send(3, text.encode())
                self.wait_sleeping(watcher, victim.id, "User lock")
                victim.drop()
                watcher.query("do release_lock('dropped')")

    def short(self):
        for n in range(50):
            with self.connect(tcp=n % 2 == 0, user="app") as client:
                client.query(f"select {n} /* short */")

    # programs

    def programs(self):
        self.server.cli("-D", "d", "--comments", "--delimiter=//", "-e",
                        "select 1 /* one packet */; select 2; call several()//\nselect 3//")
        self.server.cli("-D", "d", "--force", "--comments", check=False,
                        stdin=b"select 1;\nselec /* fails 1064 */;\nselect * from item;\n")

    def benches(self):
        for mode in ("disable", "auto"):
            for script in ("oltp_read_only", "oltp_read_write"):
                self.bench(script, mode, 1, self.events)
                self.bench(script, mode, 4, self.events // 20)

    def bench(self, script, mode, threads, events):
        self.sysbench(script, "run", f"--db-ps-mode={mode}", f"--events={events}", "--time=0", f"--threads={threads}")

    def sysbench(self, script, command, *options):
        done = subprocess.run(
            ["sysbench", script, "--db-driver=mysql", f"--mysql-socket={self.server.socket}", "--mysql-user=root",
             "--mysql-db=d", "--tables=1", "--table-size=1000", "--mysql-ignore-errors=all", *options, command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"sysbench {script} {command}:\n{done.stdout[-2000:]}")


def long_text(size, letter="x"):
    """A text of about @size bytes; exactly so with a letter of one byte."""
    return "select '" + letter * ((size - 9) // len(letter.encode())) + "'"


def fails(prepared, *values):
    """The errno of an execution that must fail."""
    try:
        prepared.execute(*values)
    except ServerError as error:
        return error.number
    raise AssertionError("it did not fail")
