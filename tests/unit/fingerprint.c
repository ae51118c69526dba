// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sql/fingerprint.c and redact.c: tables, and properties of random statements and bytes. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "sql/fingerprint.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define MYSQL FINGERPRINT_MYSQL
#define POSTGRES FINGERPRINT_POSTGRES
#define SOUP_ROUNDS 200000
#define BYTE_ROUNDS 200000
#define LONG_TEXT (1 << 20)

struct result {
	uint64_t hash;
	size_t len;
	char text[4096];
};

/* Return the length of the fingerprint, and its hash in *@hash. */
static size_t normalize(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			char *out, size_t size, uint64_t *hash)
{
	struct fingerprint fingerprint = fingerprint_make(dialect, text, len, cut, out, size);

	*hash = fingerprint.hash;
	return fingerprint.len;
}

static const char *make(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			struct result *result)
{
	result->len = normalize(dialect, text, len, cut, result->text,
				sizeof(result->text), &result->hash);
	return result->text;
}

struct row {
	const char *text, *expected;
};

static void check_rows(enum fingerprint_dialect dialect, const struct row *rows, size_t count)
{
	struct result result, again;

	for (size_t i = 0; i < count; i++) {
		make(dialect, rows[i].text, strlen(rows[i].text), false, &result);
		CHECK(!strcmp(result.text, rows[i].expected), "%s\n#   got  %s\n#   want %s",
		      rows[i].text, result.text, rows[i].expected);
		CHECK(result.len == strlen(result.text), "%zu: %s", result.len, result.text);
		make(dialect, result.text, result.len, false, &again);
		CHECK(!strcmp(result.text, again.text) && result.hash == again.hash,
		      "%s\n#   became %s", result.text, again.text);
	}
}

/* Rules of both dialects. */
static const struct row both[] = {
	{ "", "" },
	{ " \t\r\n ", "" },
	{ "-- nothing", "" },
	{ ";;", "" },
	{ "SELECT 1", "select ?" },
	{ "select  1 ;  ", "select ?" },
	{ "select 1;; ;select\n2;", "select ?; select ?" },
	{ "select 'a', 'it''s', '', N'n', b'01', x'FF', 'a' 'b'", "select ?, ?, ?, ?, ?, ?, ?" },
	{ "select 1, 1.5, .5, 1., 1e3, 1.5e-3, 1E+3, 0xFF, 0b01",
	  "select ?, ?, ?, ?, ?, ?, ?, ?, ?" },
	{ "select -1, - 1, +1, - -1, -/* */1", "select ?, ?, ?, ?, ?" },
	{ "select a-1,a - 1,a- -1,(a)-1,2-1", "select a - ?, a - ?, a - ?, (a) - ?, ? - ?" },
	{ "select -a, -(1)", "select - a, - (?)" },
	{ "where a=-1 and b<-1 or c between -1 and -2",
	  "where a = ? and b < ? or c between ? and ?" },
	{ "where a=$1 and b=? and c=:name and d= %s", "where a = ? and b = ? and c = ? and d = ?" },
	{ "select a %s, a %s from t", "select a % s, a % s from t" },
	{ "select t1.a2, b_3 from t1", "select t1.a2, b_3 from t1" },
	{ "select count( * ) , T . * from T", "select count(*), t.* from t" },
	{ "where a in (1)", "where a in(?+)" },
	{ "where a IN(1,2 , 'x',-3,?)", "where a in(?+)" },
	{ "where a not in (1,2)and b", "where a not in(?+) and b" },
	{ "where (a,b) in ((1,2),(3,4))", "where (a, b) in(?+)" },
	{ "where a in (1,b)", "where a in (?, b)" },
	{ "where a in (select 1)", "where a in (select ?)" },
	{ "where a in (select b from t where c in (1,2)) and d in (3)",
	  "where a in (select b from t where c in(?+)) and d in(?+)" },
	{ "where a in (1,(2,f(3)))", "where a in (?, (?, f(?)))" },
	{ "where a in(?+) and b", "where a in(?+) and b" },
	{ "insert into T (A,b) values (1,'x')", "insert into t(a, b) values(?+)" },
	{ "insert into t values(1),(2) ,\n(3)", "insert into t values(?+)" },
	{ "insert into t values (1),(f(2)) returning a", "insert into t values(?+) returning a" },
	{ "insert into t values (1,f(2,(3))),(4,f(5,(6))),(7)",
	  "insert into t values (?, f(?, (?)))" },
	{ "insert into t values (1, (select 2)), (3, (values (4), (5)))",
	  "insert into t values (?, (select ?))" },
	{ "insert into t select 1,2", "insert into t select ?, ?" },
	{ "order by a ASC, b desc, c asc nulls first", "order by a, b desc, c nulls first" },
	{ "select a as asc from t", "select a as asc from t" },
	{ "a/**/b/* x */c/* 'it''s */d", "a b c d" },
	{ "select 1 -- it's\n, 2 -- 3", "select ?, ?" },
	{ "select 1 /* unterminated 'x'", "select ?" },
	{ "select 'unterminated -- /* ", "select ?" },
	{ "call getproduct(97)", "call getproduct(?)" },
	{ "select \xc3\x84\xc3\x96 from \xff", "select \xc3\x84\xc3\x96 from \xff" },
	{ "a<>b and c!=d and e<=f and g>=h and i||j",
	  "a <> b and c != d and e <= f and g >= h and i || j" },
	{ "a ... b", "a ... b" },
};

static const struct row mysql[] = {
	{ "select \"a\", \"a\"\"b\", \"it's\", 'a\\'b', \"a\\\"b\", 'a\\\\'",
	  "select ?, ?, ?, ?, ?, ?" },
	{ "select `A`.`b c`, `d``e` from `F`", "select `A`.`b c`, `d``e` from `F`" },
	{ "select 1 # it's\n, 2", "select ?, ?" },
	{ "select 5--3, 5-- 3\n", "select ? - ?, ?" },
	{ "select /*!50000 straight_join */ /*! a */ b", "select straight_join a b" },
	/* Not executed by all servers; without a quote or comment, its end is certain. */
	{ "select /*!50501 a */ /*!500001 b */ /*M!100100 c 'd' */ e /*M! it's */ f", "select e" },
	{ "select /*!1234 */ a", "select ? a" },
	{ "select /*! a /* b */ c */ d*/e", "select a c d * / e" },
	{ "select /*+ MAX_EXECUTION_TIME(1) */ a", "select a" },
	{ "/* a /* b */ c", "c" },
	{ "select null, true, false, a is null, a is not null",
	  "select ?, true, false, a is ?, a is not ?" },
	{ "limit 1", "limit ?" },
	{ "limit 1,2", "limit ?" },
	{ "limit 1 offset 2", "limit ?" },
	{ "limit ?, ? for update", "limit ? for update" },
	{ "set @a := 1, @@SESSION.b=2, @`C d` = 3", "set @a := ?, @@session.b = ?, @ `C d` = ?" },
	{ "select a from 2020_log, db.2020_log, 1e5x", "select a from ?, db.2020_log, ?" },
	{ "select _utf8mb4'x', date '2020-01-01', interval -1 day",
	  "select _utf8mb4 ?, date ?, interval ? day" },
	{ "insert into t values (1) on duplicate key update a=values(a),b=values( b )",
	  "insert into t values(?+) on duplicate key update a = values (a), b = values (b)" },
	{ "insert into t value (1),(2)", "insert into t value(?+)" },
	{ "select value - 1, value from t where value in (1)",
	  "select value - ?, value from t where value in(?+)" },
	{ "a<=>b and c->'$.x' and d->>'$.y' and e&&f and !g",
	  "a <=> b and c -> ? and d ->> ? and e && f and ! g" },
	{ "select a from t where b = \"unterminated", "select a from t where b = ?" },
	{ "select `unterminated 'x'", "select ?" },
};

static const struct row postgres[] = {
	{ "select \"A\", \"b\"\"c\".\"D e\", U&\"f\"",
	  "select \"A\", \"b\"\"c\".\"D e\", U&\"f\"" },
	{ "select 'a\\', E'b', e'\\\\', U&'x'", "select ?, ?, ?, ?" },
	{ "select E'a' -- b\n'c\\' 1\\' d', 2", "select ?, ?" },
	/* Balanced with standard_conforming_strings on and off: literals of both. */
	{ "select 'a\\', E'a\\'b', 2", "select ?, ?" },
	{ "select 'a\\', b, 'c' from t -- it's", "select ?" },
	{ "select 'a\\', b, 'c\\' from t", "select ?, b, ? from t" },
	{ "select $$it's$$, $a$ $$ $b$ $a$, $\xc3\xa4$ x $\xc3\xa4$", "select ?, ?, ?" },
	{ "select $a$ unterminated $b$", "select ?" },
	{ "select a$1, a$b$c, $12", "select a$1, a$b$c, ?" },
	{ "select $a", "select $ a" },
	{ "/* a /* b */ 'c */ d", "d" },
	{ "select 5--3\n-2", "select ? - ?" },
	{ "select a#b, a#>'{x}'", "select a # b, a #> ?" },
	{ "select a::int, '1'::text, (a)::int[] , a :: numeric(10,2)",
	  "select a::int, ?::text, (a)::int[], a::numeric(?, ?)" },
	{ "select null, true, a is null, b is not null, c is true, d is not false, not true",
	  "select ?, ?, a is null, b is not null, c is true, d is not false, not ?" },
	{ "a text not null default null", "a text not null default ?" },
	{ "limit 1 offset 2", "limit ? offset ?" },
	{ "select a[1], a[1:2], array[1,2,3], array[1,b], '{1}'::int[]",
	  "select a[?], a[? : ?], array[?+], array[?, b], ?::int[]" },
	{ "where a = any(array[1, 2])", "where a = any(array[?+])" },
	{ "where a ? 'b' and a ?| array['c'] and a @? '$.d' and a->'e' and a->>'f'",
	  "where a ? ? and a ?| array[?+] and a @? ? and a -> ? and a ->> ?" },
	{ "a<-1 and b@-1 and c=? and d!~*'x'", "a < ? and b @- ? and c = ? and d !~* ?" },
	{ "select 1and 2", "select ? and ?" },
	{ "select date '2020-01-01' - 1, interval '1 day'", "select date ? - ?, interval ?" },
	{ "f(a := 1, b => 2)", "f(a := ?, b => ?)" },
	{ "select \"unterminated 'x'", "select ?" },
	{ "insert into t value (1),(2)", "insert into t value (?), (?)" },
};

static void table_both(void)
{
	check_rows(MYSQL, both, ARRAY_SIZE(both));
	check_rows(POSTGRES, both, ARRAY_SIZE(both));
}

static void table_mysql(void)
{
	check_rows(MYSQL, mysql, ARRAY_SIZE(mysql));
}

static void table_postgres(void)
{
	check_rows(POSTGRES, postgres, ARRAY_SIZE(postgres));
}

static void cut_texts(void)
{
	static const struct row rows[] = {
		{ "sel", "..." },
		{ "select a, bcd", "select a, ..." },
		{ "select a, `b", "select a, ..." },
		{ "select a, 'bcd", "select a, ? ..." },
		{ "select a, 12", "select a, ? ..." },
		{ "select a /* bcd", "select a ..." },
		{ "select a <", "select a ..." },
		{ "where a in (1, 2", "where a in(?+) ..." },
		{ "where a in (1, b, 2", "where a in (?, b, ? ..." },
		{ "values (1, 2), (3", "values(?+) ..." },
		{ "values (1, f(2)), (3, f(", "values (?, f(?)) ..." },
		{ "values (1, 2),", "values(?+) ..." },
		{ "values (1, nul", "values(?+) ..." },
	};
	struct result result;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make(MYSQL, rows[i].text, strlen(rows[i].text), true, &result);
		CHECK(!strcmp(result.text, rows[i].expected), "%s: %s", rows[i].text, result.text);
	}
	make(POSTGRES, "select 1, $ta", 13, true, &result);
	CHECK(!strcmp(result.text, "select ?, ? ..."), "%s", result.text);
	make(POSTGRES, "select 1, $ta$ x $t", 19, true, &result);
	CHECK(!strcmp(result.text, "select ?, ? ..."), "%s", result.text);
}

/* A long INSERT has one fingerprint, whatever the position of the cut within its rows. */
static void cut_anywhere(void)
{
	static const char text[] = "insert into t(a, b) values (1,'it''s'), (-2.5e-3,null) , "
				   "(3, 'x, (y)'),(4,'12'), (x'00',5) /* c */ , (6 , 7)";
	struct result result;

	for (size_t len = strlen("insert into t(a, b) values ("); len <= strlen(text); len++) {
		make(MYSQL, text, len, true, &result);
		CHECK(!strcmp(result.text, "insert into t(a, b) values(?+) ..."), "%zu: %s", len,
		      result.text);
	}
}

static void classes(void)
{
	static const struct row different[] = {
		{ "select a from t", "select b from t" },
		{ "select a from t", "select a from u" },
		{ "select a from t", "select a from t where a = 1" },
		{ "select a + 1", "select a - 1" },
		{ "select a", "select - a" },
		{ "where a in (1)", "where a not in (1)" },
		{ "where a in (1)", "where a = 1" },
		{ "where a is null", "where a is not null" },
		{ "select `a`", "select `A`" },
		{ "order by a", "order by a desc" },
		{ "select 1; select 1", "select 1" },
	};
	struct result a, b;

	for (size_t i = 0; i < ARRAY_SIZE(different); i++) {
		make(MYSQL, different[i].text, strlen(different[i].text), false, &a);
		make(MYSQL, different[i].expected, strlen(different[i].expected), false, &b);
		CHECK(a.hash != b.hash, "%s and %s", different[i].text, different[i].expected);
	}
}

static void small_buffers(void)
{
	static const char text[] = "select \xc3\xa4\xc3\xa4\xc3\xa4, b from t "
				   "where c in (1, 2, 3) and d = 'x'";
	struct result whole, small;

	make(MYSQL, text, strlen(text), false, &whole);
	for (size_t size = 0; size < whole.len + 3; size++) {
		memset(small.text, 0x55, sizeof(small.text));
		small.len = normalize(MYSQL, text, strlen(text), false, small.text, size,
				      &small.hash);
		CHECK(small.len == whole.len && small.hash == whole.hash, "%zu", size);
		for (size_t i = size; i < size + 64; i++)
			CHECK(small.text[i] == 0x55, "%zu: %zu", size, i);
		if (size > whole.len) {
			CHECK(!strcmp(small.text, whole.text), "%zu: %s", size, small.text);
		} else if (size > 4) {
			size_t n = strlen(small.text);

			CHECK(n < size && n + 4 >= size && !strcmp(small.text + n - 3, "..."),
			      "%zu: %s", size, small.text);
			CHECK(!memcmp(small.text, whole.text, n - 3), "%zu: %s", size, small.text);
			CHECK(((unsigned char)whole.text[n - 3] & 0xc0) != 0x80, "%zu", size);
		} else if (size) {
			CHECK(strlen(small.text) < size, "%zu", size);
		}
	}
}

/* Endless continuation bytes are cut at any position, not dropped. */
static void cut_no_character(void)
{
	static const char text[] = "select a\xa3\xa3\xa3\xa3\xa3\xa3\xa3\xa3\xa3\xa3\xa3\xa3";
	struct result small;

	small.len = normalize(MYSQL, text, strlen(text), false, small.text, 18, &small.hash);
	CHECK(!strcmp(small.text, "select a\xa3\xa3\xa3\xa3\xa3\xa3..."), "%s", small.text);
}

/* Append a random literal of @dialect that contains the word "secret" or the digits 7 and 9. */
static size_t random_literal(enum fingerprint_dialect dialect, char *to)
{
	static const char *const common[] = {
		"'secret'", "'it''s secret'", "'a -- secret'", "'/* secret'", "'secret (7, 9), ('",
		"79", "7.9", ".79", "7e9", "7.9e-79", "-79", "- 79", "+7", "0x79", "x'79'",
		"N'secret'", "b'01'", "NULL", "?", "$79",
	};
	static const char *const of_mysql[] = {
		"\"secret\"", "\"it's secret\"", "'\\'secret'", "'secret\\\\'", "\"a\\\"secret\"",
		"\"\"",
	};
	static const char *const of_postgres[] = {
		"$$secret$$", "$a$it's $$ secret$a$", "E'\\'secret'", "'secret\\'", "true",
		"$_7$secret$_7$",
	};
	const char *literal;

	if (random_below(3))
		literal = common[random_below(ARRAY_SIZE(common))];
	else if (dialect == MYSQL)
		literal = of_mysql[random_below(ARRAY_SIZE(of_mysql))];
	else
		literal = of_postgres[random_below(ARRAY_SIZE(of_postgres))];
	strcpy(to, literal);
	return strlen(to);
}

/* Append a random blank or comment; @may_be_none: or nothing. */
static size_t random_blank(char *to, bool may_be_none)
{
	static const char *const blanks[] = {
		" ", "\n", "\t \r\n", " /* it's 79 */ ", "/**/", " -- secret's\n", " /* \" */\n",
	};

	strcpy(to, may_be_none && random_below(2) ? "" : blanks[random_below(ARRAY_SIZE(blanks))]);
	return strlen(to);
}

/*
 * Write a random statement from the template @from: @ becomes a literal, # a list of literals, a
 * blank any white space, and ~ optional white space. Return its length.
 */
static size_t random_statement(enum fingerprint_dialect dialect, const char *from, char *to)
{
	size_t len = 0;

	for (; *from; from++) {
		if (*from == '@') {
			len += random_literal(dialect, to + len);
		} else if (*from == '#') {
			for (size_t n = 1 + random_below(5); n; n--) {
				len += random_literal(dialect, to + len);
				len += random_blank(to + len, true);
				if (n > 1)
					to[len++] = ',';
			}
		} else if (*from == ' ' || *from == '~') {
			len += random_blank(to + len, *from == '~');
		} else {
			bool upper = random_below(2) && *from >= 'a' && *from <= 'z';

			to[len++] = upper ? (char)(*from - 'a' + 'A') : *from;
		}
	}
	return len;
}

/* Return whether the settings decide where a string of @text ends; then more can be hidden. */
static bool has_escape(const char *text, size_t len)
{
	return memmem(text, len, "\\'", 2) || memmem(text, len, "\\\"", 2);
}

static void no_literal_survives(void)
{
	static const struct row templates[] = {
		{ "select a~,~@ from t where b~=~@ and c~>~@ or d like @ limit @",
		  "select a, ? from t where b = ? and c > ? or d like ? limit ?" },
		{ "select~(@)~from t where a in~(~#~) and b not in~(#)",
		  "select (?) from t where a in(?+) and b not in(?+)" },
		{ "insert into t~(~a~,~b~)~values~(#)~,~(#)~,~(#)~;~",
		  "insert into t(a, b) values(?+)" },
		{ "insert into t values~(#,f(@))~,~(#)", NULL },
		{ "update t set a~=~@~,~b~=~b * @ where c between @ and @",
		  "update t set a = ?, b = b * ? where c between ? and ?" },
		{ "select case when a~=~@ then @ else @ end~,~f(@,~@)~from t",
		  "select case when a = ? then ? else ? end, f(?, ?) from t" },
	};
	char text[4096];
	struct result result;

	for (int round = 0; round < 20000; round++) {
		enum fingerprint_dialect dialect = round & 1 ? MYSQL : POSTGRES;
		const struct row *row = &templates[random_below(ARRAY_SIZE(templates))];
		size_t len = random_statement(dialect, row->text, text);

		make(dialect, text, len, false, &result);
		CHECK(!row->expected || has_escape(text, len) ||
		      !strcmp(result.text, row->expected), "%.*s\n#   %s",
		      (int)len, text, result.text);
		CHECK(!strpbrk(result.text, "0123456789'") && !strstr(result.text, "secret"),
		      "%.*s\n#   %s", (int)len, text, result.text);
		if (check_failures > 5)
			return;
	}
}

static const char *const pieces[] = {
	"select", "from", "where", "a", "b1", "T", "in", "values", "value", "array", "limit",
	"offset", "is", "not", "null", "true", "as", "asc", "and", "e", "x", "u", "n", "1", "2.5",
	".5", "1e", "0x", "'s'", "'", "\"q\"", "\"", "`b`", "`", "$1", "$", "$$", "$t$", "?", ":n",
	":", "::", ":=", "%s", "%", "@", "@@", "@v", "(", ")", "[", "]", ",", ".", "..", "...", ";",
	"+", "-", "--", "*", "/", "/*", "*/", "/*!", "/*M!", "50000", "#", "=", "<", ">", "!", "~",
	"|", "&", "^", "\\", "{", "}", "(?+)", "[?+]", "?+", "\n", "\t", "\xc3\xa4", "\xff", "\1",
	"u&", "N'", "E'", "\\'", "row", "union", "interval", "date", "7",
};

/* Fill @text with random pieces of SQL. Return the length. */
static size_t random_soup(char *text, size_t size)
{
	size_t len = 0, count = random_below(24);

	while (count--) {
		const char *piece = pieces[random_below(ARRAY_SIZE(pieces))];
		size_t n = strlen(piece);

		if (len + n + 1 >= size)
			break;
		memcpy(text + len, piece, n);
		len += n;
		if (random_below(2))
			text[len++] = ' ';
	}
	return len;
}

static void idempotent(void)
{
	char text[512];
	struct result once, twice;

	for (int round = 0; round < SOUP_ROUNDS; round++) {
		enum fingerprint_dialect dialect = round & 1 ? MYSQL : POSTGRES;
		size_t len = random_soup(text, sizeof(text));
		bool cut = !random_below(4);

		make(dialect, text, len, cut, &once);
		make(dialect, once.text, once.len, false, &twice);
		CHECK(!strcmp(once.text, twice.text) && once.hash == twice.hash,
		      "%s %s%.*s\n#   once  %s\n#   twice %s",
		      dialect == MYSQL ? "mysql" : "postgres", cut ? "cut " : "", (int)len, text,
		      once.text, twice.text);
		if (check_failures > 5)
			return;
	}
}

/* Return the redacted text. */
static const char *redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut)
{
	static char out[8192];

	memset(out, '#', sizeof(out));
	out[fingerprint_redact(dialect, text, len, cut, out)] = '\0';
	return out;
}

static void check_redacted(enum fingerprint_dialect dialect, bool cut, const struct row *rows,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = rows[i].text, *seen = redact(dialect, text, strlen(text), cut);

		CHECK(!strcmp(seen, rows[i].expected), "%s\n#   %s\n#   %s", text, seen,
		      rows[i].expected);
	}
}

/* All other text is kept, including case and white space. */
static void redacts(void)
{
	static const struct row any[] = {
		{ "", "" }, { "SELECT  1 ;\n", "SELECT  ? ;\n" },
		{ "select A , b FROM T1", "select A , b FROM T1" },
		{ "select 'a', 'it''s', '', N'n', x'FF', B'01'", "select ?, ?, ?, ?, ?, ?" },
		{ "Where a=-1 AND b>1.5e-3 or c = 0xFF", "Where a=-? AND b>? or c = ?" },
		{ "select 1 -- it's me\n, 2", "select ? -- ?\n, ?" },
		{ "a/**/b/* x */c/* 'it''s */d/*", "a/**/b/*?*/c/*?*/d/*" },
		{ "select 1 /* open", "select ? /*?" }, { "-- ", "-- " }, { "--", "--" },
		{ "where a in (1,2 , 'x')", "where a in (?,? , ?)" },
		{ "values (1, 'x'), (2, 'y')", "values (?, ?), (?, ?)" },
		{ "limit 10 offset 20", "limit ? offset ?" },
		{ "select null, a is NULL", "select null, a is NULL" },
		{ "where a=? and b = :name", "where a=? and b = :name" },
		{ "select 'first', 'not ended", "select ?" },
		{ "select col_1, 'p\xc3\xa4ss', \xc3\xa4", "select col_1, ?, \xc3\xa4" },
	}, postgres_rows[] = {
		{ "select $1, $2 + 3", "select $1, $2 + ?" },
		{ "select $$it's$$, $a$ $$ 'x' $a$, $a$open", "select ?, ?, ?" },
		{ "select E'it\\'s', U&'d\\0061' uescape '!', 'C:\\'", "select ?, ? uescape ?, ?" },
		/* A string that continues on another line has escapes as well. */
		{ "select E'a'\n'b\\' secret\\' c', 'd\\', 1", "select ?\n, ?, ?" },
		{ "select e'a' --b\n'c'\n'\\' secret\\' d'", "select ? --?\n\n" },
		{ "select \"Name 1\", u&\"n\", 'a'\n'b'", "select \"Name 1\", u&\"n\", ?\n" },
		{ "/* a /* b */ c */ select true--x", "/*?*/ select ?--?" },
		{ "alter role a password 'secret'", "alter role a password ?" },
		{ "select a->>'k', b::text, c #> '{1}'", "select a->>?, b::text, c #> ?" },
		/* standard_conforming_strings=off */
		{ "select 'it\\'s', 'secret'", "select ?, ?" },
		{ "select 'a\\', b, 'c\\', d", "select ?, b, ?, d" },
		{ "select 'a\\', secret, 'c', d -- it's\n, e", "select ?\n, e" },
		/* A prefix has its own rule, a string on the same line as well. */
		{ "select x'\\', B'\\', U&'\\', a", "select ?, ?, ?, a" },
		{ "do language E'a' 'b\\', 'c'", "do language ? , ?" },
		{ "select 0x_1f, 0b_1, 1_000", "select ?, ?, ?" },
	}, mysql_rows[] = {
		{ "select \"a\", 'it\\'s', `b 1`, @v, true", "select ?, ?, `b 1`, @v, true" },
		{ "select 1 # it's\n, 2 #\n#x", "select ? #?\n, ? #\n#?" },
		{ "select 1 # a\rsecret\n, 2 -- b\rsecret", "select ? #?\n, ? -- ?" },
		{ "/*!50001 select 1 */ /*+ hint */ a", "/*!50001 select ? */ /*?*/ a" },
		/* Executed by some servers, a comment for others. */
		{ "/*M!100100 a */ /*!99999 b 'c' */ d", "/*?*/ /*?*/ d" },
		{ "select /*!99999 it's */ 'a', b /*!1 */", "select /*?*/" },
		{ "select /*!500001 1 */ a /*!1234 */", "select /*?*/ a /*!? */" },
		{ "/*! a /*M! b */ c */*/ secret -- */ d", "/*! a /*?" },
		{ "as $$secret$$ b", "as ? b" }, { "as $1$ it's $1$, secret", "as ?" },
		{ "select a$$b$$, $c", "select a$$b$$, $c" },
		{ "select a --\x7f it's\n, 'b'", "select a --?\n, ?" },
		{ "select a --\xa0secret\nb", "select a --?b" },
		/* 0xa0 is a blank in latin1; bytes of UTF-8 are not. */
		{ "select 1 limit\xa0""5, \xc3\xa4""5, \xa0.5e3", "select ? ?, \xc3\xa4""5, ??" },
		{ "select a mod .5e3, t.5e3", "select a mod ?, t.5e3" },
		{ "create user 'a'@'%' identified by 'secret'", "create user ?@? identified by ?" },
		{ "select _utf8'a', 1-- 2\n--3", "select _utf8?, ?-- ?\n--?" },
		{ "limit 5, 10", "limit ?, ?" },
		/* NO_BACKSLASH_ESCAPES */
		{ "select 'a\\', 'secret'", "select ?, ?" },
		{ "select 1, 'a\\','secret','b\\'", "select ?, ?,?,?" },
		/* Balanced with and without. */
		{ "select 'a\\', secret, 'b' # it's\n, c", "select ?\n, c" },
		{ "select 'a\\', b, 'c\\', d", "select ?, b, ?, d" },
		{ "select 'a\\n', 'b\\\\', c", "select ?, ?, c" },
		/* ANSI_QUOTES: a name has no escapes. */
		{ "select \"a\\\", secret, \"b\" # \"\n, c", "select ?\n, c" },
		/* The second byte of a character of sjis, gbk; of gbk only; of big5, not gbk. */
		{ "select '\x95\\', 'secret'", "select ?, ?" },
		{ "select '\xfe\xfe\xfe\\', secret, 'b\\'' # it's\n, c", "select ?\n, c" },
		{ "select '\xa1\x80\\', secret, 'b\\'' # it's\n, c", "select ?\n, c" },
		{ "select `\x83`it's`, 'secret'", "select `\x83`it's`, ?" },
		{ "select \x83`, secret, 'it''s `', 'b'", "select \x83`, secret, ?, ?" },
		{ "select \x83`, secret, 'b' # `\n, c", "select \x83`, secret, ? ?\n, c" },
	}, cut_both[] = {
		{ "select 'a', 'not ended", "select ?, ?" }, { "select 12", "select ?" },
		{ "select a, 'secret'", "select a, ?" }, { "select 1 /* secr", "select ? /*?" },
		{ "select nam", "select nam" },
	}, cut_postgres[] = {
		{ "select $a$secr", "select ?" }, { "select $a", "select ?" },
		{ "select \"na", "select \"na" },
		{ "select E'it\\'s', 'secr", "select ?, ?" },
		{ "select 1, 'a\\', 'secr", "select ?, ?" },
		{ "select 1, 'a\\', secr", "select ?, ?" },
		{ "select tru", "select ?" }, { "select f", "select ?" },
	}, cut_mysql[] = {
		{ "select \"secr", "select ?" }, { "select `na", "select `na" },
		{ "select a, 'b', 'it\\'s', 'secr", "select a, ?, ?" },
		{ "select a, 'b\\", "select a, ?" }, { "select 'a\\', 'b', secr", "select ?" },
		{ "/*!500", "/*?" }, { "select '\x95", "select ?" },
		{ "select 'a\\\\', 'b'", "select ?, ?" },
	};

	check_redacted(POSTGRES, false, any, ARRAY_SIZE(any));
	check_redacted(MYSQL, false, any, ARRAY_SIZE(any));
	check_redacted(POSTGRES, false, postgres_rows, ARRAY_SIZE(postgres_rows));
	check_redacted(MYSQL, false, mysql_rows, ARRAY_SIZE(mysql_rows));
	check_redacted(POSTGRES, true, cut_both, ARRAY_SIZE(cut_both));
	check_redacted(MYSQL, true, cut_both, ARRAY_SIZE(cut_both));
	check_redacted(POSTGRES, true, cut_postgres, ARRAY_SIZE(cut_postgres));
	check_redacted(MYSQL, true, cut_mysql, ARRAY_SIZE(cut_mysql));
}

/* A literal or comment of any dialect is redacted. */
static void redacts_unknown(void)
{
	static const struct row rows[] = {
		{ "SELECT a , b FROM t WHERE c = 'x' AND d > 1.5",
		  "SELECT a , b FROM t WHERE c = ? AND d > ?" },
		{ "select \"a\", `b`, true, $$c$$, e'd', /* f */ g",
		  "select ?, `b`, ?, ?, ?, /*?*/ g" },
		{ "select a #> b\n, c --d\n", "select a ?\n, c ?\n" },
		{ "select 'a' # it's\n, secret, 'b' -- it's", "select ? ?" },
	};

	check_redacted(FINGERPRINT_UNKNOWN, false, rows, ARRAY_SIZE(rows));
}

/* No literal remains after a cut at any position, and without one the fingerprint is the same. */
static void no_literal_survives_redacting(void)
{
	static const char *const templates[] = {
		"select a~,~@ from t where b~=~@ and c~>~@ or d like @ limit @",
		"insert into t~(~a~,~b~)~values~(#)~,~(#)~,~(#)~;~",
		"update t set a~=~@~,~b~=~b * @ where c between @ and @",
	};
	static const char digits[] = "0123456789";
	char text[4096];
	struct result of_text, of_redacted;

	for (int round = 0; round < 10000; round++) {
		enum fingerprint_dialect dialect = round & 1 ? MYSQL : POSTGRES;
		const char *template = templates[random_below(ARRAY_SIZE(templates))];
		size_t len = random_statement(dialect, template, text);
		bool cut = random_below(2);
		const char *seen;

		len = cut ? random_below((unsigned int)len + 1) : len;
		seen = redact(dialect, text, len, cut);
		CHECK(!strstr(seen, "secr") && !strpbrk(seen, "'\\"), "%.*s\n#   %s", (int)len,
		      text, seen);
		for (const char *at = seen; (at = strpbrk(at, digits)); at += strspn(at, digits))
			CHECK(at > seen && at[-1] == '$', "%.*s\n#   %s", (int)len, text, seen);
		if (!cut && !has_escape(text, len)) {
			make(dialect, text, len, false, &of_text);
			make(dialect, seen, strlen(seen), false, &of_redacted);
			CHECK(of_text.hash == of_redacted.hash,
			      "%.*s\n#   %s\n#   %s\n#   %s", (int)len, text, seen, of_text.text,
			      of_redacted.text);
		}
		if (check_failures > 5)
			return;
	}
}

/* Nothing is read or written out of bounds, and the hash does not depend on the buffer. */
static void random_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len, size, n;
	char *map = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The text and the buffer end where an inaccessible page begins. */
	char *text_end = map + page, *out_end = map + 3 * page;
	uint64_t hash, whole;

	CHECK(map != MAP_FAILED);
	if (map == MAP_FAILED || mprotect(map, page, PROT_READ | PROT_WRITE) ||
	    mprotect(map + 2 * page, page, PROT_READ | PROT_WRITE))
		return;
	for (int round = 0; round < BYTE_ROUNDS; round++) {
		enum fingerprint_dialect dialect = round & 1 ? MYSQL : POSTGRES;
		char text[512];

		if (round & 2) {
			len = random_soup(text, sizeof(text));
		} else {
			len = random_below(64);
			for (size_t i = 0; i < len; i++)
				text[i] = (char)random_next();
		}
		len -= len ? random_below(len < 4 ? len : 4) : 0;
		memcpy(text_end - len, text, len);
		size = random_below(200);
		n = normalize(dialect, text_end - len, len, round & 4, out_end - size, size,
			      &hash);
		CHECK(n <= 2 * len + 8, "%zu of %zu", n, len);
		CHECK(!size || strlen(out_end - size) == (n < size ? n : strlen(out_end - size)),
		      "%zu", size);
		CHECK(!size || memchr(out_end - size, 0, size), "no end in %zu", size);
		normalize(dialect, text_end - len, len, round & 4, NULL, 0, &whole);
		CHECK(hash == whole, "%zu", size);
		if (check_failures > 5)
			break;
	}
	munmap(map, 4 * page);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Long repetitions of pieces for which a parser might scan far ahead. */
/* Redact @first, LONG_TEXT bytes of @piece and "'secret'" to @out. Return the length. */
static size_t redact_long(const char *first, const char *piece, bool cut, char *out)
{
	size_t len = strlen(first);

	memcpy(out, first, len);
	while (len + strlen(piece) < LONG_TEXT - 10) {
		memcpy(out + len, piece, strlen(piece));
		len += strlen(piece);
	}
	memcpy(out + len, "'secret'", 8);
	return fingerprint_redact(MYSQL, out, len + 8, cut, out);
}

/* A long text that settings split differently throughout is not read to its end. */
static void doubtful_long(void)
{
	static const char *const doubtful[] = { "a \xe4\\' \"b\" ", "`\x95` \"", "--\n\"\\'\xe4`" };
	char *out = malloc(LONG_TEXT);
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++)
		for (int cut = 0; cut < 2; cut++) {
			len = redact_long("select 1 ", doubtful[i], cut, out);
			CHECK(len < LONG_TEXT / 2 && !strncmp(out, "select ? ", 9),
			      "%zu %d: %zu", i, cut, len);
			CHECK(!memmem(out, len, "secret", 6), "%zu %d", i, cut);
		}
	/* Others are, if there is a doubt as well. */
	len = redact_long("a = 'it\\'s' ", "a = 'b' ", false, out);
	CHECK(len > LONG_TEXT / 2 && !memmem(out, len, "secret", 6), "%zu", len);
	free(out);
}

static void linear_time(void)
{
	static const char *const evil[] = {
		"$a", "$a$", "$a$$b$", "$aaaaaaaa$aaaaaaa", "/*", "/*/", "*/", "/*!", "'", "''",
		"\\'", "\"", "`", "(", "in(", "in(1,", "values(", "values(1),", "(values(1),", ",(",
		"- ", "-", "+-", "...", ".", "::", "[", "array[", "?", "limit 1,", "1e", "0x", "@",
		"#", "--", "e'", "u&\"", "?+)", "(?+)", "in(?+)", "a", "<=", "\xff", ";",
		"values(f(1)),(f(2)),",
	};
	static char text[LONG_TEXT];
	uint64_t hash;

	for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
		size_t n = strlen(evil[i]);
		double start = seconds(), took;

		for (size_t at = 0; at < sizeof(text); at++)
			text[at] = evil[i][at % n];
		for (int round = 0; round < 4; round++)
			normalize(round & 1 ? MYSQL : POSTGRES, text, sizeof(text),
				  round & 2, NULL, 0, &hash);
		took = (seconds() - start) / 4;
		CHECK(took < 2, "%s: %.3f s", evil[i], took);
	}
}

int main(void)
{
	RUN(table_both);
	RUN(table_mysql);
	RUN(table_postgres);
	RUN(cut_texts);
	RUN(cut_anywhere);
	RUN(classes);
	RUN(small_buffers);
	RUN(cut_no_character);
	RUN(no_literal_survives);
	RUN(redacts);
	RUN(redacts_unknown);
	RUN(no_literal_survives_redacting);
	RUN_LONG(idempotent);
	RUN_LONG(random_bytes);
	RUN(doubtful_long);
	RUN_LONG(linear_time);
	return check_done();
}
