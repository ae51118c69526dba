/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stage of a session: what SHOW PROCESSLIST has as its State. A THD has the address of the
 * stage's name, which is a constant of the program or of a plugin, or text that the server writes.
 */
#ifndef DB_MYSQL_STAGE_H
#define DB_MYSQL_STAGE_H

#include "db/ps/session.h"
#include "host/process_memory.h"
#include "usdt/elf.h"

/*
 * Functions that copy the address to PSI_stage_info::m_name, at 8 (mysql/psi/psi_stage.h), of their
 * third argument: MariaDB's, and MySQL's from 8.0 on.
 */
#define STAGE_SET	"set_thd_stage_info"
#define STAGE_ENTER	"_ZN3THD11enter_stageEPK17PSI_stage_info_v1PS0_PKcS5_j"
#define STAGE_NAME_AT	8
#define STAGE_FROM	"_ZTV3THD"	/* event_breakdown.stage_from: the vtable of THD */

/* Names that waits have had; of more, the one that was read first is read again. */
#define STAGES_KNOWN	64

struct mysql_stages {
	int64_t offset;			/* of the address in a THD; -1: unknown */
	uint64_t from;			/* address of STAGE_FROM, as linked */
	struct elf_loads constants;	/* the program's, as linked */
	struct stage_name {
		uint32_t event;		/* breakdown_wait.event; 0: none */
		char name[PS_STAGE];	/* "": it is not a constant of the program */
	} known[STAGES_KNOWN];
	unsigned int next;
};

/* Find the offset and the constants in @elf. */
void mysql_stages_find(struct mysql_stages *stages, const struct elf *elf);

/* Return the name of breakdown_wait.event @event, or NULL: it was not read. */
const char *mysql_stage_known(const struct mysql_stages *stages, uint32_t event);

/*
 * Read the name of @event from @memory, opened for variables. Only a constant of the program is the
 * same now as it was when the session waited.
 */
void mysql_stage_learn(struct mysql_stages *stages, const struct process_memory *memory,
		       uint32_t event);

#endif
