/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines. Input: a byte that selects the command, then the words, each with a NUL. */
#include <errno.h>

#include "cli/option/option.h"
#include "db/discover/user_engine.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"

#define WORDS	100

/* An error is one line with the common prefix, and input in it is escaped. */
static void check_refusal(const struct output *err)
{
	REQUIRE(err->len > 10 && !memcmp(err->buf, "dbslower: ", 10), "%.*s", (int)err->len,
		err->buf);
	REQUIRE(err->buf[err->len - 1] == '\n' && is_harmless(err->buf, err->len - 1), "%.*s",
		(int)err->len, err->buf);
}

static void check_options(const struct options *opts)
{
	static struct user_engine user_engine;

	REQUIRE(opts->threshold_ns <= INT64_MAX && opts->duration_ns <= INT64_MAX &&
		opts->interval_ns <= INT64_MAX);
	REQUIRE(opts->pid_count <= SERVER_PIDS && opts->path_count <= OPTION_PATHS_MAX &&
		opts->word_count <= OPTION_WORDS);
	REQUIRE(opts->help || opts->version || opts->columns.count);
	REQUIRE(opts->columns.count <= FIELD_LIST_MAX);
	REQUIRE(opts->text_bytes >= OPTION_TEXT_MIN && opts->text_bytes <= OPTION_TEXT_MAX);
	REQUIRE(opts->text_arg <= 12);
	for (unsigned int i = 0; i < opts->pid_count; i++)
		REQUIRE(opts->pids[i] > 0 && opts->pids[i] <= 4194304);
	if (opts->start && opts->done && !opts->help && !opts->version)
		REQUIRE(!user_engine_init(&user_engine, opts->start, opts->done, opts->text_arg));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct options opts;
	static struct output err;
	struct input in = { data, size };
	const struct command *const *command = command_table;
	char *argv[WORDS + 1] = { input_until(&in, '\0') };
	int argc = 1, taken = -1, ret;

	if (size > OUTPUT_SIZE / 16)
		in.left = 0;
	while (in.left && argc < WORDS)
		argv[argc++] = input_until(&in, '\0');
	REQUIRE(command_choose(argc, argv, &taken) && taken >= 0 && taken <= argc);
	for (int i = argv[0][0] & 7; i && command[1]; i--)
		command++;
	output_init(&err, -1);
	ret = option_parse(*command, argc, argv, &opts, &err);
	REQUIRE(ret == 0 || ret == -EINVAL, "%d", ret);
	if (ret)
		check_refusal(&err);
	else
		REQUIRE(!err.len, "%.*s", (int)err.len, err.buf);
	if (!ret)
		check_options(&opts);
	while (argc)
		free(argv[--argc]);
	return 0;
}
