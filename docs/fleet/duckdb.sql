-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- The statements in logs of dbslower.service, one directory per host: duckdb fleet.db -c ".read duckdb.sql".
-- "$logs" is a list of files or patterns, e.g. SET VARIABLE logs = ['/srv/logs/*/statements.json*'].
CREATE OR REPLACE TABLE statements AS
SELECT split_part(filename, '/', -2) AS host,
       CAST(time AS TIMESTAMPTZ) AS time,
       server.engine AS engine, server.version AS version, server.path AS server_path, server.container AS container,
       "user", "database", client, pid, duration_ms, "rows", status, sqlstate, errno,
       why_ms, phases_ms, query
FROM read_json(getvariable('logs'), format = 'newline_delimited', filename = true, columns = {
       type: 'VARCHAR', time: 'VARCHAR',
       server: 'STRUCT(engine VARCHAR, version VARCHAR, pid UINTEGER, path VARCHAR, container VARCHAR)',
       pid: 'UINTEGER', duration_ms: 'DOUBLE', "user": 'VARCHAR', "database": 'VARCHAR', client: 'VARCHAR',
       "rows": 'UBIGINT', status: 'VARCHAR', sqlstate: 'VARCHAR', errno: 'UINTEGER',
       why_ms: 'MAP(VARCHAR, DOUBLE)', phases_ms: 'MAP(VARCHAR, DOUBLE)', query: 'VARCHAR'})
WHERE type = 'statement';
