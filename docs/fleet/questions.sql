-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Ten questions to the table "statements" of duckdb.sql. docs/fleet.md lists what ClickHouse writes differently.

-- 1. Which statements take most of the time?
SELECT query, count(*) AS calls, sum(duration_ms) AS total_ms, max(duration_ms) AS max_ms
FROM statements GROUP BY query ORDER BY total_ms DESC, query LIMIT 20;

-- 2. How long do they take in each database?
SELECT host, "database", count(*) AS calls, quantile_disc(duration_ms, 0.5) AS p50_ms,
       quantile_disc(duration_ms, 0.99) AS p99_ms
FROM statements GROUP BY host, "database" ORDER BY p99_ms DESC, host, "database";

-- 3. When are there many?
SELECT date_trunc('hour', time) AS hour, count(*) AS calls, sum(duration_ms) AS total_ms
FROM statements GROUP BY hour ORDER BY hour;

-- 4. Which errors occur, and in which statements?
SELECT sqlstate, errno, count(*) AS errors, count(DISTINCT query) AS queries, min(query) AS example
FROM statements WHERE status = 'error' GROUP BY sqlstate, errno ORDER BY errors DESC, sqlstate, errno;

-- 5. Who causes the load?
SELECT "user", client, count(*) AS calls, sum(duration_ms) AS total_ms
FROM statements GROUP BY "user", client ORDER BY total_ms DESC, "user", client;

-- 6. Which servers spend most time, and which release are they?
SELECT host, engine, version, server_path, sum(duration_ms) / 1000 AS seconds
FROM statements GROUP BY host, engine, version, server_path ORDER BY seconds DESC, host;

-- 7. Which statements are slow on one host only: twice the mean of the others?
WITH by_host AS (SELECT query, host, count(*) AS calls, sum(duration_ms) AS total_ms
                 FROM statements GROUP BY query, host),
     by_query AS (SELECT query, sum(calls) AS calls, sum(total_ms) AS total_ms FROM by_host GROUP BY query)
SELECT h.query, h.host, h.total_ms / h.calls AS mean_ms, (q.total_ms - h.total_ms) / (q.calls - h.calls) AS others_ms
FROM by_host h JOIN by_query q ON q.query = h.query
WHERE q.calls > h.calls AND h.total_ms / h.calls > 2 * (q.total_ms - h.total_ms) / (q.calls - h.calls)
ORDER BY mean_ms DESC, h.query, h.host;

-- 8. Where does the time go? (--why)
SELECT part, sum(ms) AS total_ms
FROM (SELECT unnest(map_keys(why_ms)) AS part, unnest(map_values(why_ms)) AS ms FROM statements)
GROUP BY part ORDER BY total_ms DESC, part;

-- 9. Which statements wait most for locks? (--why)
SELECT query, count(*) AS calls, sum(why_ms['lock']) AS lock_ms, sum(why_ms['lock']) / sum(duration_ms) AS share
FROM statements WHERE why_ms['lock'] > 0 GROUP BY query ORDER BY lock_ms DESC, query LIMIT 20;

-- 10. Which statements are new in the last hour of the log?
SELECT query, min(time) AS first, count(*) AS calls, sum(duration_ms) AS total_ms
FROM statements GROUP BY query
HAVING min(time) > (SELECT max(time) FROM statements) - INTERVAL 1 HOUR
ORDER BY total_ms DESC, query;
