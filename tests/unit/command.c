// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of sql/command: which statement a text is about. */
#include <string.h>

#include "sql/command.h"
#include "tests/unit/check.h"

static void runs(void)
{
	static const struct {
		const char *text;
		enum command_runs want;
	} table[] = {
		{ "execute q(1)", COMMAND_EXECUTE }, { "EXECUTE q", COMMAND_EXECUTE },
		{ " \n\t/* a */ -- b\nExecute q", COMMAND_EXECUTE },
		{ "begin; execute q; commit", COMMAND_EXECUTE },
		{ "set work_mem = 1; execute q", COMMAND_EXECUTE },
		{ "fetch 10 from c", COMMAND_FETCH }, { "Move 5 in c", COMMAND_FETCH },
		{ "/**/fetch/**/next c", COMMAND_FETCH },
		{ "", COMMAND_OWN }, { "select 1", COMMAND_OWN }, { "executes q", COMMAND_OWN },
		{ "select 'execute q'", COMMAND_OWN }, { "/* execute q */", COMMAND_OWN },
		{ "explain execute q", COMMAND_OWN }, { "fetchall", COMMAND_OWN },
		{ "\"execute\" q", COMMAND_OWN }, { "select 1; execute q", COMMAND_OWN },
		{ "prepare q as select 1; execute q", COMMAND_OWN },
		{ "/* begin; */ execute", COMMAND_EXECUTE }, { "execute1", COMMAND_OWN },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		CHECK(command_runs(table[i].text, strlen(table[i].text)) == table[i].want, "%s",
		      table[i].text);
}

static void named(void)
{
	static const struct {
		const char *text, *want;	/* NULL: none */
	} table[] = {
		{ "prepare q as select 1", "select 1" },
		{ "PREPARE q(int, numeric(10,2)) AS\n/* c */ select $1", "select $1" },
		{ "prepare \"as\" as values (1)", "values (1)" },
		{ "prepare \"a \"\" as\"(text[]) as select 1", "select 1" },
		{ "declare c cursor for select 1", "select 1" },
		{ "DECLARE \"for\" BINARY INSENSITIVE NO SCROLL CURSOR WITH HOLD FOR select 2",
		  "select 2" },
		{ "begin; declare c cursor for table t; fetch c", "table t; fetch c" },
		{ "/* x */ prepare q as select 1", "select 1" },
		{ "prepare q", NULL }, { "prepare q as", NULL }, { "prepare", NULL },
		{ "declare c cursor", NULL }, { "declare c cursor for", NULL },
		{ "select 1 for update", NULL }, { "", NULL },
		{ "create table t as select 1", NULL },
		{ "prepare q(\"as\") select 1", NULL }, { "declare \"c", NULL },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const char *text = table[i].text, *want = table[i].want;
		size_t at = command_named(text, strlen(text));

		CHECK(want ? at && !strcmp(text + at, want) : !at, "%s: %zu", text, at);
	}
}

/* A text that is cut, at each byte, has the same statement or none. */
static void cuts(void)
{
	static const char text[] = "declare c no scroll cursor for select 1";
	size_t at = command_named(text, strlen(text));

	CHECK(at == (size_t)(strstr(text, "select") - text));
	for (size_t len = 0; len < sizeof(text); len++)
		CHECK(command_named(text, len) == (len > at ? at : 0), "%zu", len);
}

int main(void)
{
	RUN(runs);
	RUN(named);
	RUN(cuts);
	return check_done();
}
