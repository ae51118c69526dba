// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/arch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct arch *const archs[] = {
#define ARCH_ROW(name) &arch_##name,
	ARCHS(ARCH_ROW)
#undef ARCH_ROW
};

const struct arch *arch_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
		if (archs[i] && archs[i]->machine == machine)
			return archs[i];
	return NULL;
}

const struct arch_code *arch_code_of(uint16_t machine)
{
	const struct arch *arch = arch_of(machine);

	return arch ? arch->code : NULL;
}

void arch_reg_name(const struct arch *arch, unsigned int reg, char name[ARCH_REG_NAME])
{
	if (arch->code->reg_names)
		memcpy(name, arch->code->reg_names[reg], ARCH_REG_NAME);
	else
		snprintf(name, ARCH_REG_NAME, "%s%u", arch->prefix, reg);
}

int arch_arg_name(uint16_t machine, unsigned int n, char name[ARCH_REG_NAME])
{
	const struct arch *arch = arch_of(machine);

	if (!arch || !arch->code || n >= ARCH_ARGS_MAX)
		return -EINVAL;
	arch_reg_name(arch, arch->code->args[n], name);
	return 0;
}

static bool word_is(const char *name, size_t len, const char *word, size_t word_len)
{
	return len == word_len && !memcmp(name, word, len);
}

/* The number that @name consists of, 0 to 99, or -1 if it is not one. */
static int name_number(const char *name, size_t len)
{
	if (!len || len > 2 || !scan_is_digit(name[0]) || (len == 2 && name[0] == '0'))
		return -1;
	if (len == 1)
		return name[0] - '0';
	return scan_is_digit(name[1]) ? (name[0] - '0') * 10 + name[1] - '0' : -1;
}

static int plain_slot(const struct arch *arch, const char *name, size_t len)
{
	size_t prefix = strlen(arch->prefix);
	const char *word = arch->names;

	if (len > prefix && !memcmp(name, arch->prefix, prefix)) {
		int number = name_number(name + prefix, len - prefix);

		if (number >= 0 && number < arch->numbered)
			return number;
	}
	for (int slot = arch->numbered; *word; slot++) {
		size_t n = strcspn(word, " ");

		if (word_is(name, len, word, n))
			return slot;
		word += n + (word[n] == ' ');
	}
	for (const struct arch_alias *a = arch->aliases; a && *a->name; a++)
		if (word_is(name, len, a->name, strlen(a->name)))
			return a->slot;
	return SPEC_NO_REG;
}

enum spec_reason arch_plain_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg)
{
	reg->slot = plain_slot(arch, name, len);
	return reg->slot == SPEC_NO_REG ? SPEC_BAD_REGISTER : SPEC_OK;
}

void arch_set_reg(struct spec *spec, const struct arch_reg *reg)
{
	spec->kind = reg->zero ? SPEC_CONST : SPEC_REG;
	spec->base = reg->zero ? SPEC_NO_REG : reg->slot;
	spec->reg_bits = reg->bits;
	spec->reg_shift = reg->shift;
}

enum spec_reason arch_parse_reg(const struct arch *arch, struct scan *s, const struct spec *spec,
				struct arch_reg *reg)
{
	const char *name;
	size_t len;

	*reg = (struct arch_reg){ .slot = SPEC_NO_REG, .bits = spec->reg_bits };
	len = scan_name(s, &name);
	return len ? arch->reg(arch, name, len, reg) : SPEC_BAD_OPERAND;
}

/* A number or the symbol. */
static bool parse_term(struct scan *s, struct spec *spec)
{
	struct scan start = *s;
	int64_t n;

	if (scan_number(s, &n)) {
		spec->value = (int64_t)((uint64_t)spec->value + (uint64_t)n);
		return true;
	}
	*s = start;
	scan_char(s, '+');
	if (spec->symbol)
		return false;
	spec->symbol_len = scan_symbol(s, &spec->symbol);
	return spec->symbol_len;
}

enum spec_reason arch_parse_displacement(struct scan *s, struct spec *spec)
{
	if (s->p == s->end || *s->p == '(')
		return SPEC_OK;
	do {
		if (!parse_term(s, spec))
			return SPEC_BAD_OPERAND;
	} while (scan_peek(s, '+') || scan_peek(s, '-'));
	return SPEC_OK;
}
