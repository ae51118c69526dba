/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operands of architectures whose memory operands have the form D(BASE).
 * Internal to usdt/arch_*.c.
 */
#ifndef USDT_ARCH_DFORM_H
#define USDT_ARCH_DFORM_H

#include "usdt/arch.h"

/* An arch->operand(): an immediate, a register, D(BASE) or D(INDEX,BASE). */
enum spec_reason arch_dform_operand(const struct arch *arch, struct scan *s, struct spec *spec);

/* Parse a register, perhaps behind the sigil. */
enum spec_reason arch_dform_register(const struct arch *arch, struct scan *s, struct spec *spec);

/* Parse all of the operand as an immediate. Return false if it is not one. */
bool arch_dform_immediate(const struct arch *arch, struct scan s, struct spec *spec);

#endif
