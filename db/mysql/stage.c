// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/stage.h"

#include <elf.h>

#include "usdt/accessor.h"
#include "usdt/elf_symbol.h"

void mysql_stages_find(struct mysql_stages *stages, const struct elf *elf)
{
	struct elf_loads loads;
	struct accessor stage;

	stages->offset = accessor_read_copied(elf, STAGE_SET, STAGE_NAME_AT, &stage) &&
			 accessor_read_copied(elf, STAGE_ENTER, STAGE_NAME_AT, &stage) ?
			 -1 : stage.offset;
	stages->from = elf_symbol_value(elf, STAGE_FROM);
	elf_loads(elf, &loads);
	stages->constants.count = 0;
	for (uint32_t i = 0; i < loads.count; i++)
		if (!(loads.segment[i].flags & PF_W))
			stages->constants.segment[stages->constants.count++] = loads.segment[i];
}

const char *mysql_stage_known(const struct mysql_stages *stages, uint32_t event)
{
	for (unsigned int i = 0; i < STAGES_KNOWN; i++)
		if (stages->known[i].event == event)
			return stages->known[i].name;
	return NULL;
}

static bool stage_is_constant(const struct mysql_stages *stages, uint64_t vaddr)
{
	for (uint32_t i = 0; i < stages->constants.count; i++) {
		const struct elf_segment *segment = &stages->constants.segment[i];

		if (vaddr - segment->vaddr < segment->filesz)
			return true;
	}
	return false;
}

void mysql_stage_learn(struct mysql_stages *stages, const struct process_memory *memory,
		       uint32_t event)
{
	struct stage_name *known = &stages->known[stages->next++ % STAGES_KNOWN];
	uint64_t vaddr = stages->from + (uint64_t)(int32_t)event;

	known->event = event;
	*known->name = '\0';
	if (stage_is_constant(stages, vaddr))
		process_memory_string(memory, vaddr + memory->slide, known->name, PS_STAGE);
}
