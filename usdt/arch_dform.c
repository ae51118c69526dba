// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/arch_dform.h"

#include <string.h>

/* %lo(sym)(REG): only a part of an address. */
static bool is_partial(const struct scan *s)
{
	size_t len = s->end - s->p;

	return (len > 4 && (!memcmp(s->p, "%lo(", 4) || !memcmp(s->p, "%hi(", 4))) ||
	       (len > 5 && !memcmp(s->p, "%got", 4)) || (len > 7 && !memcmp(s->p, "%pcrel_", 7)) ||
	       (len > 7 && !memcmp(s->p, "%tprel_", 7));
}

/* Parse D(BASE) or D(INDEX,BASE). sym@l and sym@toc@l are only a part of an address. */
static enum spec_reason parse_memory(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason = arch_parse_displacement(s, spec);
	struct arch_reg reg;

	spec->kind = SPEC_MEM;
	if (reason != SPEC_OK)
		return reason;
	if (spec->symbol && memchr(spec->symbol, '@', spec->symbol_len))
		return SPEC_PARTIAL_SYMBOL;
	if (!scan_char(s, '('))
		return SPEC_BAD_OPERAND;
	for (int i = 0; i < 2; i++) {
		if (arch->sigil)
			scan_char(s, arch->sigil);
		reason = arch_parse_reg(arch, s, spec, &reg);
		if (reason != SPEC_OK)
			return reason;
		spec->index = spec->base;
		spec->base = reg.slot;
		if (!scan_char(s, ','))
			break;
	}
	return scan_char(s, ')') ? SPEC_OK : SPEC_BAD_OPERAND;
}

bool arch_dform_immediate(const struct arch *arch, struct scan s, struct spec *spec)
{
	spec->kind = SPEC_CONST;
	if (arch->constant && !scan_char(&s, arch->constant))
		return false;
	return scan_number(&s, &spec->value) && s.p == s.end;
}

enum spec_reason arch_dform_register(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason;
	struct arch_reg reg;

	if (arch->sigil)
		scan_char(s, arch->sigil);
	reason = arch_parse_reg(arch, s, spec, &reg);
	if (reason == SPEC_OK)
		arch_set_reg(spec, &reg);
	return reason;
}

enum spec_reason arch_dform_operand(const struct arch *arch, struct scan *s, struct spec *spec)
{
	size_t len = s->end - s->p;

	if (is_partial(s))
		return SPEC_PARTIAL_SYMBOL;
	if (arch_dform_immediate(arch, *s, spec)) {
		s->p = s->end;
		return SPEC_OK;
	}
	spec->value = 0;
	if (memchr(s->p, '(', len) || memchr(s->p, '@', len))
		return parse_memory(arch, s, spec);
	return arch_dform_register(arch, s, spec);
}
