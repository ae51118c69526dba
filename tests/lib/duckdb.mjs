// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// node duckdb.mjs MODULES SQL...: run each SQL in one DuckDB; print the rows of each as a line of JSON. MODULES is the
// node_modules directory with @duckdb/node-api.
import { createRequire } from "node:module";

const [modules, ...texts] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(`${modules}/`)("@duckdb/node-api");
const connection = await (await DuckDBInstance.create(":memory:")).connect();
for (const text of texts) {
	const reader = await connection.runAndReadAll(text);
	console.log(JSON.stringify(reader.getRowsJson()));
}
