# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sql/fingerprint and redaction, compared with the servers' own parsers and pt-fingerprint."""

import os
import random
import re
import shutil
import subprocess

import psycopg
import pytest

import hostile_sql
from cluster import server_bindir
from mariadb import Maria, maria_server
from tool import BUILD

FINGERPRINT = os.path.join(BUILD, "tests", "lib", "fingerprint")
VARIANTS = 12

SCHEMA = """
    create table t (id int primary key, a int, b text, c numeric, d timestamp, e boolean, j jsonb, "Q r" int, v int[]);
    create table u (id int, a int, b text);
    create function f(int) returns int language sql as 'select $1';
"""

# @i an integer, @n another number, @s a string, @d a time, a blank is any white space, ~ white space or none.
# Beyond names and quotes, letters are of any case.
POSTGRES = """
select @i
select @i~,~@s
select a from t
select a~,~b from t
select t~.~c from t
select a from u
select * from t where id~=~@i
select * from t where id~=~-@i
select * from t where id~<~@i
select * from t where id~<>~@i
select * from t where id~=~@i and b~=~@s
select * from t where id~=~@i or b~=~@s
select * from t where b~=~@s
select * from t where b like @s
select * from t where b not like @s
select * from t where b ilike @s
select * from t where not e
select * from t where c~>~@n and c~<=~@n
select * from t where c between @n and @n
select * from t where a in~(@i~,~@i~,~@i)
select * from t where a not in~(@i~,~@i~,~@i)
select * from t where a in~(select a from u where u.id~=~@i)
select * from t where exists~(select a from u where u.id~=~t.id)
select * from t where a is null
select * from t where a is not null
select * from t where e is true
select * from t where e is not true
select * from t where a is distinct from @i
select a~-~@i from t
select a~+~@i from t
select a~*~@i~-~@i from t
select -~a from t
select a~- -@i from t
select (~a~-~@i~)~*~@i from t
select f(~@i~)
select count(~*~)~from t group by a having count(~*~)~>~@i
select count(~distinct a~)~from t
select a from t order by a
select a from t order by a asc
select a from t order by a desc
select a from t order by a~,~b
select a from t order by a limit @i
select a from t order by a limit @i offset @i
select a from t union select a from u
select a from t union all select a from u
select case when a~=~@i then @s else @s end from t
select coalesce(~b~,~@s~)~from t
select b~||~@s from t
select @s::text
select d::date from t
select cast(~d as date~)~from t where a~=~@i
select d~+~interval @d from t where d~>~date '2020-01-01'
select j~->~'k' from t
select j~->>~'k' from t
select j~#>~'{k}' from t
select * from t where j~?~@s
select * from t where j~@>~'{}'
select v[~@i~] from t
select v[~@i~:~@i~] from t
select "Q r" from t where "Q r"~=~@i
select t.a~,~u.b from t join u on t.id~=~u.id where u.a~=~@i
select t.a~,~u.b from t left join u on t.id~=~u.id where u.a~=~@i
select t.a~,~u.b from t right join u using~(~id~)~where u.a~=~@i
with x as~(select a from t where id~=~@i~)~select a from x
select row_number(~)~over~(~order by a~)~from t
insert into t~(~id~,~a~,~b~)~values~(~@i~,~@i~,~@s~)
insert into t~(~id~,~a~)~values~(~@i~,~@i~)
insert into t~(~id~,~a~)~values~(~@i~,~@i~)~returning id
insert into t~(~id~,~a~)~values~(~@i~,~f(~@i~)~)
insert into t~(~id~,~a~)~select id~,~a from u where id~=~@i
update t set a~=~@i where id~=~@i
update t set a~=~a~+~@i where id~=~@i
update t set a~=~null where id~=~@i
update t set b~=~@s~,~a~=~@i where id~=~@i
delete from t where id~=~@i
delete from t where id~=~@i and a~<~@i
select substring(~b from @i for @i~)~from t
""".strip().splitlines()


def spelled(template, rng):
    """The template as someone else would write it."""
    number = ["0", "1", "42", "1000000000"]
    other = ["1.5", ".25", "7e-3", "2.5e+3", "100000.001"]
    string = ["'x'", "''", "'it''s'", "E'a\\'b'", "$$it's$$", "$q$ $$ $q$", "'-- no'", "'/* no'", "'(1, 2), ('"]
    time = ["'1 day'", "'2 h'"]
    blank = [" ", "  ", "\n", "\t", " /* it's */ ", " -- it's\n", "/* /* \" */ */"]
    # A literal keeps its type: the server's classes differ by that too.
    out, quote = [], None
    for piece in re.findall(r"@[insd]|::|.", template):
        if quote or piece in "'\"":
            quote = None if piece == quote else quote or piece
            out.append(piece)
        elif piece == "~":
            # Before an operator's neighbour or a comment's beginning: never an operator of both.
            out.append(rng.choice(blank + [" "] * 6) if rng.random() < 0.5 else rng.choice(["", "", " "]))
        elif piece == " ":
            out.append(rng.choice(blank + [" "] * 6))
        elif re.fullmatch("@[insd]", piece):
            out.append(rng.choice({"i": number, "n": other, "s": string, "d": time}[piece[1]]))
        else:
            out.append(piece.upper() if rng.random() < 0.3 else piece)
    return "".join(out) + rng.choice(["", ";", " ; ", " -- end", "/* app:web */"])


def fingerprints(engine, statements):
    """(hash, text) of each."""
    done = subprocess.run([FINGERPRINT, engine], input=b"".join(s.encode() + b"\0" for s in statements),
                          capture_output=True, timeout=60, check=True)
    rows = [line.split(" ", 1) for line in done.stdout.decode().split("\0")[:-1]]
    assert len(rows) == len(statements)
    return [tuple(row) for row in rows]


@pytest.fixture(scope="module")
def database():
    """A server with pg_stat_statements and the tables."""
    from cluster import Cluster
    folder = server_bindir()
    if not folder:
        pytest.skip("no PostgreSQL server under /usr/lib/postgresql (package postgresql-15)")
    if not os.path.exists(os.path.join(os.path.dirname(folder), "lib", "pg_stat_statements.so")):
        pytest.skip("no pg_stat_statements (package postgresql-15)")
    with Cluster(name="fingerprint", shared_preload_libraries="'pg_stat_statements'",
                 compute_query_id="on").init() as cluster:
        cluster.start()
        cluster.psql(SCHEMA, "create extension pg_stat_statements")
        yield cluster


def plain(template):
    return spelled(template, Fixed())


class Fixed:
    """Chooses the plainest."""

    def choice(self, of):
        return of[0]

    def random(self):
        return 1


def query_ids(cluster, statements):
    ids = []
    with cluster.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                plan = cursor.execute("explain (verbose, format json) " + statement).fetchone()[0]
            except Exception as why:
                raise AssertionError(f"{statement!r}: {why}") from None
            ids.append(plan[0]["Query Identifier"])
    return ids


def test_the_servers_classes(database):
    """Two statements have one fingerprint where they have one query identifier, and only there."""
    rng = random.Random(1)
    statements = [s for t in POSTGRES for s in [plain(t)] + [spelled(t, rng) for _ in range(VARIANTS)]]
    ids = query_ids(database, statements)
    ours = fingerprints("postgresql", statements)
    by_id, by_hash, wrong = {}, {}, []
    for statement, query_id, (value, text) in zip(statements, ids, ours):
        first = by_id.setdefault(query_id, (statement, text))
        if first[1] != text:
            wrong.append(f"one identifier, but\n  {first[0]!r}: {first[1]}\n  {statement!r}: {text}")
        other = by_hash.setdefault(value, (query_id, statement))
        if other[0] != query_id:
            wrong.append(f"{text}, but two identifiers:\n  {other[1]!r}\n  {statement!r}")
    assert len(by_id) > 60, len(by_id)
    assert not wrong, "\n".join(wrong[:10]) + f"\n{len(wrong)} in all"


def test_the_servers_literals(database):
    """As many constants are replaced as by pg_stat_statements, and none is left."""
    statements = [plain(t) for t in POSTGRES]
    ids = query_ids(database, statements)
    wrong = []
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select pg_stat_statements_reset()")
        for statement in statements:
            cursor.execute("begin")
            cursor.execute(statement)
            cursor.execute("rollback")
        texts = dict(cursor.execute("select queryid, query from pg_stat_statements").fetchall())
    for statement, query_id, (value, text) in zip(statements, ids, fingerprints("postgresql", statements)):
        theirs = texts[query_id]
        (again, shown), = fingerprints("postgresql", [theirs])
        count = len(re.findall(r"\$\d", theirs))
        operators = statement.count("?")	# jsonb's
        lists = "(?+)" in text
        if again != value or (not lists and text.count("?") - operators != count):
            wrong.append(f"{statement!r}\n  theirs {theirs}\n  ours   {text}\n  of it  {shown}")
    assert not wrong, "\n".join(wrong)


PERCONA = r"""
select a, b from t where c = 1
SELECT  A ,B   FROM t WHERE c = 'x'
select a from t where b = 'it\'s' and c = "d"
select a from t where b = -5 and c = 1.5 and d = 0xff and e = 1.5e-3
select a from t where b in (1, 2, 3)
select a from t where b in ('x','y') and c not in ( 1 ,2 ) and d = 3
select a from t where b in (select c from u where d = 1)
select a from t where b in (1, c)
select a from t where b is null and c is not null and d = null
select a from t where b = true and c = false
select a from t limit 1
select a from t limit 1, 2
select a from t limit 1 offset 2
select a from t order by a asc, b desc
select /* why */ a from t -- what
select a /* x */ from t # what
insert into t (a, b) values (1, 'x')
insert into t (a, b) values (1, 'x'), (2, 'y'), (3, 'z')
insert into t values (1, 2) on duplicate key update a = 3
insert into t (a, b) values (1, now()), (2, now())
insert ignore into t (a) values (1), (2)
replace into t (a) values (1), (2)
update t set a = 1, b = 'x' where c = 2
update t set a = a * 2 where b = 1
delete from t where a = 1 and b like '%x%'
select `a`.`b` from `a` where `c` = 1
select count(*) from t group by a having count(*) > 10
select t.a from t join u on t.id = u.id where u.b between 1 and 10
select distinct a from t where b <= 1 and c >= 2 and d <> 3 and e != 4
select case when a = 1 then 'x' else 'y' end from t
select concat('a', b, "c") from t
select a from t where b = ? and c in (?, ?, ?)
show tables like 'x%'
select a from t where b > date_sub(now(), interval 1 day)
set names utf8
commit
""".strip().splitlines()


def test_as_percona():
    """The texts of Percona's own tool but for blanks, and for case in quoted names."""
    if not shutil.which("pt-fingerprint"):
        pytest.skip("no pt-fingerprint (package percona-toolkit, with libdbd-mysql-perl)")
    wrong = []
    for statement, (_, text) in zip(PERCONA, fingerprints("mysql", PERCONA)):
        # Its exit status is 1 whatever it did.
        done = subprocess.run(["pt-fingerprint", "--match-embedded-numbers", "--query", statement], text=True,
                              capture_output=True, timeout=60)
        assert done.stdout and not done.stderr, done.stderr
        if re.sub(r"\s+", "", text.lower()) != re.sub(r"\s+", "", done.stdout):
            wrong.append(f"{statement!r}\n  theirs {done.stdout}  ours   {text}")
    assert not wrong, "\n".join(wrong)


def test_no_literal_is_left(database):
    """What PostgreSQL reads as literal or comment, with either setting for backslashes; `make soak` has 10^6."""
    judge = hostile_sql.PostgresJudge(database)
    wrong = hostile_sql.report(judge, hostile_sql.postgres_settings(), 2000, seed=1)
    assert not wrong, "\n".join(wrong[:5])


def test_no_literal_of_pg_stat_statements_is_left(database):
    wrong, gone, rng = [], 0, random.Random(2)
    with database.connect(autocommit=True) as connection:
        for settings in hostile_sql.postgres_settings():
            connection.execute(settings.sql)
            for _ in range(60):
                statement = hostile_sql.Postgres(rng, settings)
                text = statement.text()
                connection.execute("select pg_stat_statements_reset()")
                try:
                    connection.execute(text)
                except psycopg.Error:
                    continue
                theirs = connection.execute("select query from pg_stat_statements where query !~ 'pg_stat'").fetchone()
                numbers = [n for n in statement.numbers if theirs and n.decode() not in theirs[0]]
                gone += len(numbers)
                wrong += hostile_sql.leaks(settings, [text], [numbers], rng)
    assert gone > 100 and not wrong, (gone, wrong[:5])


def test_no_literal_of_mariadb_is_left():
    """What MariaDB's digests hide, for each sql_mode and character set that decide it."""
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with Maria(**hostile_sql.MARIA_SETTINGS).init() as server:
        server.start()
        judge = hostile_sql.MariaJudge(server)
        wrong = hostile_sql.report(judge, hostile_sql.maria_settings(), 1200, seed=1)
    assert not wrong, "\n".join(wrong[:5])
