// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Detection, engines by name, titles of PostgreSQL, and filters. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/event.h"
#include "db/discover/detect.h"
#include "db/discover/user_engine.h"
#include "db/engines.h"
#include "db/filter.h"
#include "db/postgres/probes.h"
#include "db/session/identity.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

static void titles(void)
{
	static const struct {
		const char *title, *user, *database, *client;
	} cases[] = {
		{ "postgres: alice shop [local] idle", "alice", "shop", "[local]" },
		{ "postgres: 15/main: alice shop 10.0.0.7(4711) SELECT", "alice", "shop",
		  "10.0.0.7(4711)" },
		{ "postgres: alice shop ::1(4711) idle in transaction", "alice", "shop",
		  "::1(4711)" },
		{ "postgres: a name shop [local] idle", "", "", "" },
		{ "postgres: walsender alice [local] streaming 0/1", "", "", "" },
		{ "postgres: checkpointer ", "", "", "" },
		{ "postgres: autovacuum worker shop", "", "", "" },
		{ "postgres: ", "", "", "" },
		{ "postgres: x: ", "", "", "" },
		{ "/usr/lib/postgresql/15/bin/postgres -D data", "", "", "" },
		{ "", "", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct who who;

		postgres_identify(cases[i].title, strlen(cases[i].title), &who);
		CHECK(!strcmp(who.user, cases[i].user) &&
		      !strcmp(who.database, cases[i].database) &&
		      !strcmp(who.client, cases[i].client), "%s: %s, %s, %s", cases[i].title,
		      who.user, who.database, who.client);
	}
}

static void engine_words(void)
{
	static const char *const cases[][2] = {
		{ "postgres", "postgresql" }, { "postgresql", "postgresql" },
		{ "pg", "postgresql" },
		{ "mysql", "mysql" }, { "mariadb", "mysql" }, { "mysqld", NULL }, { "", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct engine *engine = engines_by_word(cases[i][0]);

		CHECK(cases[i][1] ? engine && !strcmp(engine->name, cases[i][1]) : !engine, "%s",
		      cases[i][0]);
	}
	for (size_t i = 0; engine_table[i]; i++)
		CHECK(engines_by_name(engine_table[i]->name) == engine_table[i], "%s",
		      engine_table[i]->name);
	CHECK(!engines_by_name("mysql2") && !engines_by_file("postgre"));
	CHECK(!strcmp(engines_by_file("mariadbd")->name, "mysql"));
}

/* A user-defined engine has the dialect of the known one with its name, or an unknown one. */
static void user_engines(void)
{
	struct user_engine user;

	CHECK(!user_engine_init(&user, "mysql:query__start", "mysql:query__done", 1));
	CHECK(user.engine.dialect == FINGERPRINT_MYSQL &&
	      !strcmp(user.engine.otel_system, "mysql"));
	CHECK(!user_engine_init(&user, "app:start", "other:done", 2));
	CHECK(user.engine.dialect == FINGERPRINT_UNKNOWN &&
	      !strcmp(user.engine.otel_system, "other_sql") && !strcmp(user.engine.name, "app"));
	CHECK(user_engine_init(&user, "app", "app:done", 1) == -EINVAL);
	CHECK(user_engine_init(&user, "app:", "app:done", 1) == -EINVAL);
	CHECK(user_engine_init(&user, ":start", "app:done", 1) == -EINVAL);
}

/* Random titles: each member is a terminated string. For use with sanitizers. */
static void random_titles(void)
{
	static const char piece[] = "postgres: /lxc/[local](1) 0a\n/machine.slice/machine-";

	for (int i = 0; i < 20000; i++) {
		char text[96];
		size_t len = random_below(sizeof(text));
		struct who who;

		for (size_t at = 0; at < len; at++)
			text[at] = piece[random_below(sizeof(piece))];
		if (i % 2 && len > 10)
			memcpy(text, "postgres: ", 10);
		postgres_identify(text, len, &who);
		CHECK(memchr(who.user, 0, sizeof(who.user)) &&
		      memchr(who.database, 0, sizeof(who.database)) &&
		      memchr(who.client, 0, sizeof(who.client)), "%.*s", (int)len, text);
	}
}

/* A result is remembered for the file that was read: exec may replace a program at any time. */
static void detection(void)
{
	struct detect detect = { .files = NULL };
	struct process process, other;

	/* Not our own process: a user-mode emulator hides that it is what we execute. */
	CHECK(!process_read((uint32_t)getppid(), NULL, &process));
	other = process;
	other.file.ino++;
	CHECK(!detect_process(&detect, &other) && !detect.nfiles, "the program was replaced");
	CHECK(!detect_process(&detect, &process) && detect.nfiles == 1);
	CHECK(!detect_process(&detect, &process) && detect.nfiles == 1, "remembered");

	/* A name is rejected for the file that was examined, and for no other engine or file. */
	strcpy(process.exe, "/attacker/mysqld");
	CHECK(detect_process(&detect, &process) == engines_by_name("mysql"));
	CHECK(!detect_is_rejected(&detect, &process));
	detect_reject(&detect, &process);
	CHECK(!detect_process(&detect, &process) && detect_is_rejected(&detect, &process));
	/* A file that has changed is examined again. */
	other = process;
	other.file.ctime.tv_nsec ^= 1;
	CHECK(!detect_is_rejected(&detect, &other));
	other = process;
	other.file.dev++;
	CHECK(!detect_is_rejected(&detect, &other));
	strcpy(process.exe, "/attacker/postgres");
	CHECK(detect_process(&detect, &process) == engines_by_name("postgresql"));
	strcpy(other.exe, "/usr/sbin/mysqld");
	CHECK(detect_process(&detect, &other) == engines_by_name("mysql"));
	detect_clear(&detect);
}

/* Of an ID twelve digits are kept, and the first ones are enough; a name must be the same. */
static void containers(void)
{
	static const struct {
		const char *wanted, *container;
		bool same;
	} cases[] = {
		{ "0123456789ab", "0123456789ab", true }, { "0", "0123456789ab", true },
		{ "0123456789abcdef", "0123456789ab", true }, { "1", "0123456789ab", false },
		{ "0123456789acdef", "0123456789ab", false },
		{ "0123456789ab-x", "0123456789ab", false },
		{ "web", "web", true }, { "we", "web", false }, { "web1", "web", false },
		{ "cafe", "cafe1", false }, { "cafe1", "cafe", false }, { "web", "", false },
		{ NULL, "", true }, { NULL, "web", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct filter filter = { .container = cases[i].wanted };
		const struct who who = { .user = "" };
		struct server server;

		strcpy(server.container, cases[i].container);
		CHECK(filter_selects(&filter, &server, &who, NULL, 0) == cases[i].same,
		      "%s in %s", cases[i].wanted ? cases[i].wanted : "any", server.container);
	}
}

/* Return the name that the client had as it sent @statement. */
static const char *application_of(struct identity_table *table,
				  const struct event_statement *statement)
{
	static const struct engine engine = { .name = "app" };
	struct identity_entry *entry = identity_of(table, &engine, statement->tid);

	identity_settle(entry, statement);
	return entry->who.application;
}

/* The name of a statement is that when it completed or failed. */
static void application_names(void)
{
	static const struct {
		const char *name;	/* a record with this, or a statement that has it: */
		bool ends, failed;
		uint64_t start;
	} steps[] = {
		{ .name = "first" }, { "first", true, .start = 1 },
		{ .name = "set" }, { "set", true, .start = 2 },
		/* after the completion */
		{ .name = "local" }, { "set", .start = 3 }, { "local", true, .start = 3 },
		{ "set", true, .start = 4 },
		/* .. of a statement that was not sent, twice */
		{ "one", .start = 5 }, { "two", .start = 6 }, { "one", true, .start = 6 },
		{ "two", true, .start = 7 },
		/* after a failure, real or not */
		{ "old", .failed = true, .start = 8 }, { "two", true, true, .start = 8 },
		{ "new", .failed = true, .start = 9 }, { "new", true, .start = 9 },
		{ "inner", .failed = true, .start = 10 }, { "outer", .start = 10 },
		{ "inner", true, .start = 10 }, { "outer", true, true, .start = 11 },
		{ "reset", .failed = true, .start = 12 }, { .name = "now" },
		{ "now", true, true, .start = 12 },
		{ .name = "" }, { "", true, .start = 13 },
	};
	static struct identity_table table;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct event_statement statement = {
			.tid = 7, .start_ns = steps[i].start,
			.flags = steps[i].failed ? STATEMENT_ERROR : 0,
		};
		struct event_application event = {
			.session.tid = 7, .start_ns = steps[i].start, .failed = steps[i].failed,
		};

		memcpy(event.name, steps[i].name, strlen(steps[i].name));
		if (!steps[i].ends)
			identity_rename(&table, &event);
		else
			CHECK(!strcmp(application_of(&table, &statement), steps[i].name),
			      "%zu", i);
	}
	identity_rename(&table, &(struct event_application){ .session.tid = 8 });
	CHECK(!*application_of(&table, &(struct event_statement){ .tid = 8 }));
	identity_clear(&table);
}

int main(void)
{
	RUN(containers);
	RUN(titles);
	RUN(detection);
	RUN(engine_words);
	RUN(user_engines);
	RUN(random_titles);
	RUN(application_names);
	return check_done();
}
