// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/backend_state.h"

#include <errno.h>
#include <string.h>

#include "usdt/accessor.h"

#define EPOCH_2000_NS	946684800000000000u	/* epoch of PostgreSQL's timestamps */
#define CENTURY_US	3155760000000000u

void backend_find(const struct elf *elf, const struct engine *engine,
		  struct backend_places *places)
{
	const struct engine_activity *activity = engine->activity_variables;

	*places = (struct backend_places){ .text = 0 };
	object_places_none(&places->object);
	if (engine->find_object)
		engine->find_object(elf, &places->object);
	if (activity)
		places->application = elf_symbol_value(elf, activity->application);
	if (!activity || accessor_read_global(elf, activity->begun, &places->begun))
		return;
	places->text = elf_symbol_value(elf, activity->text);
	places->client = elf_symbol_value(elf, activity->client);
	places->replication = elf_symbol_value(elf, activity->replication);
	if (!places->text || !places->client || !places->replication)
		places->text = 0;
	places->transaction = elf_symbol_value(elf, activity->transaction);
	if (accessor_read_global(elf, activity->transaction_begun, &places->transaction_begun))
		places->transaction_begun = 0;
}

/* Values that differ between one statement and the next. */
struct backend_mark {
	uint64_t text;		/* its address */
	uint64_t begun;
};

/* Return 0; -ENOENT if the process runs no client's statement; or -errno. */
static int mark_read(const struct process_memory *memory, const struct backend_places *places,
		     struct backend_mark *mark)
{
	uint64_t client;
	uint8_t replication;
	int err = process_memory_variable(memory, places->text, &mark->text, sizeof(mark->text));

	err = err ? err : process_memory_variable(memory, places->begun, &mark->begun,
						  sizeof(mark->begun));
	err = err ? err : process_memory_variable(memory, places->client, &client, sizeof(client));
	err = err ? err : process_memory_variable(memory, places->replication, &replication,
						  sizeof(replication));
	if (err)
		return err;
	return mark->text && client && !replication && mark->begun < CENTURY_US ? 0 : -ENOENT;
}

static int text_read(const struct process_memory *memory, uint64_t address, char *text,
		     size_t size, struct backend_statement *statement)
{
	ssize_t n = process_memory_read(memory, address, text, size);

	if (n < 0)
		return (int)n;
	statement->len = strnlen(text, (size_t)n);
	statement->cut = statement->len == (size_t)n;
	return 0;
}

int backend_read(const struct process *process, uint64_t lowest,
		 const struct backend_places *places, char *text, size_t size,
		 struct backend_statement *statement)
{
	struct backend_mark mark, again;
	struct process_memory memory;
	int err;

	if (!places->text)
		return -ENOENT;
	err = process_memory_open_program(process, lowest, &memory);
	if (err)
		return err;
	err = mark_read(&memory, places, &mark);
	err = err ? err : text_read(&memory, mark.text, text, size, statement);
	err = err ? err : mark_read(&memory, places, &again);
	if (!err && (again.text != mark.text || again.begun != mark.begun))
		err = -EAGAIN;
	if (!err)
		statement->begun_ns = EPOCH_2000_NS + mark.begun * 1000;
	process_memory_close(&memory);
	return err;
}

int backend_transaction(const struct process *process, uint64_t lowest,
			const struct backend_places *places, uint64_t *begun_ns)
{
	const uint64_t variables[] = { places->transaction, places->transaction_begun,
				       places->client, places->transaction };
	uint64_t values[4] = { 0 };
	struct process_memory memory;
	uint8_t replication = 0;
	int err;

	if (!places->text || !places->transaction || !places->transaction_begun)
		return -ENOENT;
	err = process_memory_open_program(process, lowest, &memory);
	if (err)
		return err;
	for (size_t i = 0; !err && i < 4; i++)
		err = process_memory_variable(&memory, variables[i], &values[i], sizeof(*values));
	err = err ? err : process_memory_variable(&memory, places->replication, &replication,
						  sizeof(replication));
	process_memory_close(&memory);
	if (err)
		return err;
	if (!values[0] || !values[1] || values[1] >= CENTURY_US || !values[2] || !values[3] ||
	    replication)
		return -ENOENT;
	*begun_ns = EPOCH_2000_NS + values[1] * 1000;
	return 0;
}

void backend_application(const struct process_memory *memory,
			 const struct backend_places *places, char name[64])
{
	uint64_t address;

	if (!places->application ||
	    process_memory_variable(memory, places->application, &address, sizeof(address)) ||
	    !address || process_memory_read(memory, address, name, 64) != 64 ||
	    !memchr(name, '\0', 64))
		*name = '\0';
}
