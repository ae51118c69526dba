/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All architectures that usdt/ knows, by their place in ARCHS(). */
#ifndef TESTS_UNIT_MACHINES_H
#define TESTS_UNIT_MACHINES_H

#include <elf.h>

#include "usdt/arch.h"

#define MACHINE_OF(name)	&arch_##name,
static const struct arch *const machines[] = { ARCHS(MACHINE_OF) };
#undef MACHINE_OF

#define MACHINES	(sizeof(machines) / sizeof(*machines))

/* Return e_machine of one for each @i: those in their order, EM_NONE, and again from the first. */
static inline uint16_t machine_at(size_t i)
{
	i %= MACHINES + 1;
	return i < MACHINES ? machines[i]->machine : EM_NONE;
}

#endif
