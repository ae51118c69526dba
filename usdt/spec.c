/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/scan.h"
#include "usdt/arch.h"

/* Parse %arg0 to %arg5, %ret, %ip, or the architecture's own name of a whole register. */
static enum spec_reason portable_reg(const struct arch *arch, struct scan *s, struct spec *spec)
{
	uint8_t word = spec->reg_bits;
	struct arch_reg reg = { .slot = SPEC_NO_REG, .bits = word };
	const char *name;
	size_t len;

	if (!scan_char(s, '%') || !(len = scan_name(s, &name)))
		return SPEC_BAD_OPERAND;
	if (len == 4 && !memcmp(name, "arg", 3) && name[3] >= '0' &&
	    name[3] < '0' + ARCH_ARGS_MAX)
		reg.slot = arch->args[name[3] - '0'];
	else if (len == 3 && !memcmp(name, "ret", 3))
		reg.slot = arch->ret;
	else if (len == 2 && !memcmp(name, "ip", 2))
		reg.slot = arch->pc;
	else if (arch->reg(arch, name, len, &reg) != SPEC_OK || reg.zero || reg.bits != word)
		return SPEC_BAD_REGISTER;
	spec->base = reg.slot;
	return reg.slot == SPEC_NO_REG ? SPEC_BAD_REGISTER : SPEC_OK;
}

/* Parse the architecture-independent grammar: REG, D(REG), D(D(REG)), SYM(%ip), D(SYM(%ip)), … */
static enum spec_reason parse_portable(const struct arch *arch, struct scan *s, struct spec *spec)
{
	int64_t outer[SPEC_DEREF_MAX];	/* as written: the last is applied first */
	enum spec_reason reason;
	unsigned int n = 0;

	spec->kind = SPEC_REG;
	spec->address = scan_char(s, '&');
	while (!scan_peek(s, '%')) {
		if (spec->kind == SPEC_MEM) {
			if (spec->symbol)
				return SPEC_BAD_OPERAND;
			if (n == SPEC_DEREF_MAX)
				return SPEC_TOO_LONG;
			outer[n++] = spec->value;
			spec->value = 0;
		}
		reason = arch_parse_displacement(s, spec);
		if (reason != SPEC_OK || !scan_char(s, '('))
			return SPEC_BAD_OPERAND;
		spec->kind = SPEC_MEM;
	}
	reason = portable_reg(arch, s, spec);
	if (reason == SPEC_OK && spec->address && spec->kind != SPEC_MEM)
		reason = SPEC_BAD_OPERAND;
	if (reason != SPEC_OK)
		return reason;
	if (spec->symbol && spec->base == arch->pc) {
		spec->pc_relative = true;
		spec->base = SPEC_NO_REG;
	}
	for (unsigned int i = 0; i < n + (spec->kind == SPEC_MEM); i++)
		if (!scan_char(s, ')'))
			return SPEC_BAD_OPERAND;
	spec->nderef = n;
	for (unsigned int i = 0; i < n; i++)
		spec->deref[i] = outer[n - 1 - i];
	return SPEC_OK;
}

/* Reset @spec except for its text, size and type. */
static void clear_operand(struct spec *spec, bool is64)
{
	struct spec clear = {
		.size = spec->size, .is_signed = spec->is_signed, .is_float = spec->is_float,
		.text = spec->text, .text_len = spec->text_len,
		.scale = 1, .base = SPEC_NO_REG, .index = SPEC_NO_REG,
		.reg_bits = is64 ? 64 : 32,
	};

	*spec = clear;
}

typedef enum spec_reason grammar_fn(const struct arch *, struct scan *, struct spec *);

static enum spec_reason parse_as(grammar_fn *grammar, const struct arch *arch, struct scan s,
				 bool is64, struct spec *spec)
{
	enum spec_reason reason;

	clear_operand(spec, is64);
	reason = grammar(arch, &s, spec);
	return reason == SPEC_OK && s.p != s.end ? SPEC_BAD_OPERAND : reason;
}

static enum spec_reason parse_operand(const struct arch *arch, struct scan s, bool is64,
				      struct spec *spec)
{
	enum spec_reason native, portable;

	native = parse_as(arch->operand, arch, s, is64, spec);
	if (native != SPEC_BAD_OPERAND && native != SPEC_BAD_REGISTER)
		return native;
	portable = parse_as(parse_portable, arch, s, is64, spec);
	return portable == SPEC_BAD_OPERAND ? native : portable;
}

/* The length of the "-4@" or "8f@" that @s starts with, 0 if there is none. */
static size_t size_length(struct scan s)
{
	const char *start = s.p;
	unsigned int digits = 0;

	scan_char(&s, '-');
	for (; digits < 3 && s.p < s.end && scan_is_digit(*s.p); s.p++)
		digits++;
	scan_char(&s, 'f');
	return digits && scan_char(&s, '@') ? s.p - start : 0;
}

static enum spec_reason parse_size(struct scan *s, bool is64, struct spec *spec)
{
	size_t len = size_length(*s);
	int64_t size = 0;

	if (!len) {
		spec->size = is64 ? 8 : 4;	/* the first sys/sdt.h has no sizes */
		return scan_peek(s, '@') ? SPEC_BAD_SIZE : SPEC_OK;
	}
	spec->is_signed = scan_char(s, '-');
	scan_number(s, &size);
	spec->is_float = scan_char(s, 'f');
	scan_char(s, '@');
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return SPEC_BAD_SIZE;
	spec->size = size;
	return SPEC_OK;
}

enum spec_reason spec_parse(uint16_t machine, bool is64, const char *text, size_t len,
			    struct spec *spec)
{
	const struct arch *arch = arch_of(machine);
	struct scan s = { text, text + len };
	enum spec_reason reason;

	*spec = (struct spec){ .text = text, .text_len = len };
	reason = parse_size(&s, is64, spec);
	if (reason == SPEC_OK)
		reason = arch ? parse_operand(arch, s, is64, spec) : SPEC_BAD_OPERAND;
	if (reason != SPEC_OK) {
		clear_operand(spec, is64);
		spec->kind = SPEC_UNAVAILABLE;
		spec->reason = reason;
	}
	return reason;
}

/*
 * The length of the spec that @args starts with. A blank inside brackets is part
 * of it, unless the next spec follows: then a bracket was not closed.
 */
static size_t spec_length(struct scan args)
{
	const char *start = args.p;
	size_t depth = 0;

	for (; args.p < args.end; args.p++) {
		char c = *args.p;

		if (scan_is_blank(c)) {
			struct scan next = { args.p + 1, args.end };

			if (!depth || size_length(next))
				break;
		} else if (c == '(' || c == '[') {
			depth++;
		} else if ((c == ')' || c == ']') && depth) {
			depth--;
		}
	}
	return args.p - start;
}

size_t spec_parse_all(uint16_t machine, bool is64, const char *args, struct spec *specs,
		      size_t max)
{
	struct scan s = { args, args ? args + strlen(args) : args };
	size_t n = 0;

	for (scan_blanks(&s); s.p < s.end; scan_blanks(&s)) {
		size_t len = spec_length(s);

		if (n < max)
			spec_parse(machine, is64, s.p, len, &specs[n]);
		s.p += len;
		n++;
	}
	return n;
}

const char *spec_reason(enum spec_reason reason)
{
	static const char *const words[] = {
		[SPEC_OK] = "available",
		[SPEC_BAD_SIZE] = "a size other than 1, 2, 4 or 8 bytes",
		[SPEC_BAD_OPERAND] = "an operand of unknown form",
		[SPEC_BAD_REGISTER] = "no such register",
		[SPEC_AMBIGUOUS] = "the stack pointer or the zero register",
		[SPEC_NO_PT_REGS] = "a register that the kernel does not save",
		[SPEC_TLS] = "a thread-local variable",
		[SPEC_PARTIAL_SYMBOL] = "only a part of a variable's address",
		[SPEC_NO_SYMBOL] = "a variable that the file's symbol table does not name",
		[SPEC_TOO_LONG] = "too many pointers to follow",
		[SPEC_NO_EMITTER] = "an architecture that can only be listed",
	};

	return (size_t)reason < sizeof(words) / sizeof(*words) ? words[reason] : "unknown";
}

struct out {
	char *buf;
	size_t size, len;
};

__attribute__((format(printf, 2, 3)))
static void out_add(struct out *out, const char *format, ...)
{
	size_t at = out->len < out->size ? out->len : out->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out->size ? out->buf + at : NULL, out->size - at, format, args);
	va_end(args);
	if (n > 0)
		out->len += n;
}

static void out_reg(struct out *out, const struct arch *arch, int number)
{
	const char *word = arch->names;

	if (number < arch->numbered) {
		out_add(out, "%s%d", arch->prefix, number);
		return;
	}
	for (int i = arch->numbered; i < number && *word; i++) {
		word += strcspn(word, " ");
		word += *word == ' ';
	}
	out_add(out, "%.*s", (int)strcspn(word, " "), word);
}

/* " + 8", " - 8" */
static void out_offset(struct out *out, int64_t value)
{
	out_add(out, " %c %llu", value < 0 ? '-' : '+',
		(unsigned long long)(value < 0 ? -(uint64_t)value : (uint64_t)value));
}

/* The terms of the address: the symbol, base or index, the offset, and the other terms. */
static void out_address(struct out *out, const struct arch *arch, const struct spec *spec)
{
	bool first = true;

	if (spec->symbol) {
		out_add(out, "&%.*s", (int)spec->symbol_len, spec->symbol);
		out_offset(out, spec->value);
		first = false;
	}
	if (spec->base != SPEC_NO_REG) {
		out_add(out, first ? "" : " + ");
		out_reg(out, arch, spec->base);
		if (first)
			out_offset(out, spec->value);
		first = false;
	}
	if (spec->index != SPEC_NO_REG) {
		out_add(out, first ? "" : " + ");
		out_reg(out, arch, spec->index);
		if (spec->scale != 1)
			out_add(out, " * %d", spec->scale);
		if (first)
			out_offset(out, spec->value);
		first = false;
	}
	if (first)
		out_add(out, "0x%llx", (unsigned long long)spec->value);
}

static void out_memory(struct out *out, const struct arch *arch, const struct spec *spec)
{
	for (int i = spec->address; i <= spec->nderef; i++)
		out_add(out, "*(");
	out_address(out, arch, spec);
	for (int i = 0; i < spec->nderef; i++) {
		out_add(out, ")");
		if (spec->deref[i])
			out_offset(out, spec->deref[i]);
	}
	if (!spec->address)
		out_add(out, ")");
}

/* The operand as written if it is valid, else "?", and the reason. */
static void out_unavailable(struct out *out, const struct spec *spec)
{
	const char *operand = memchr(spec->text, '@', spec->text_len);
	size_t len;

	operand = operand ? operand + 1 : spec->text;
	len = (size_t)(spec->text + spec->text_len - operand);
	if (spec->reason < SPEC_AMBIGUOUS || spec->reason > SPEC_PARTIAL_SYMBOL || len > 64)
		out_add(out, "? (%s)", spec_reason(spec->reason));
	else
		out_add(out, "%.*s (%s)", (int)len, operand, spec_reason(spec->reason));
}

static void out_operand(struct out *out, const struct arch *arch, const struct spec *spec)
{
	size_t start = out->len;

	switch (arch ? spec->kind : SPEC_UNAVAILABLE) {
	case SPEC_CONST:
		out_add(out, "%lld", (long long)spec->value);
		return;
	case SPEC_REG:
		out_reg(out, arch, spec->base);
		if (spec->reg_shift && start + 1 < out->size && out->len < out->size)
			out->buf[start + 1] = 'h';	/* ax: ah */
		return;
	case SPEC_MEM:
		out_memory(out, arch, spec);
		return;
	case SPEC_UNAVAILABLE:
		break;
	}
	out_unavailable(out, spec);
}

int spec_format(uint16_t machine, const struct spec *spec, char *buf, size_t size)
{
	struct out out = { .buf = buf, .size = size };
	const char *type = spec->is_float ? "float" : spec->is_signed ? "signed" : "unsigned";

	if (spec->size)
		out_add(&out, "%d %-8s bytes @ ", spec->size, type);
	out_operand(&out, arch_of(machine), spec);
	return (int)out.len;
}
