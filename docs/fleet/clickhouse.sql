-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- The same table as in duckdb.sql, for ClickHouse 23.1 or later. A collector inserts the lines of type "statement" and
-- adds the host:
--   INSERT INTO statements FORMAT JSONEachRow {"host":"db1","type":"statement","time":"2026-01-31T23:59:59.123456789Z",...}
-- with the settings input_format_skip_unknown_fields = 1 and date_time_input_format = 'best_effort'. For a cluster add
-- ON CLUSTER, and a Distributed table over it.
CREATE TABLE statements
(
    host        LowCardinality(String),
    time        DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    server      Tuple(engine String, version String, pid UInt32, path String, container String),
    engine      String ALIAS server.engine,
    version     String ALIAS server.version,
    server_path String ALIAS server.path,
    container   String ALIAS server.container,
    user        LowCardinality(String),
    database    LowCardinality(String),
    client      LowCardinality(String),
    pid         UInt32,
    duration_ms Float64,
    rows        Nullable(UInt64),
    status      LowCardinality(String),
    sqlstate    LowCardinality(String),
    errno       UInt32,
    why_ms      Map(LowCardinality(String), Float64),
    phases_ms   Map(LowCardinality(String), Float64),
    query       String CODEC(ZSTD(3))
)
ENGINE = MergeTree
PARTITION BY toDate(time)
ORDER BY (host, database, time)
TTL toDateTime(time) + INTERVAL 30 DAY;
