// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONVERSIONS	"%d %u %x %o %p %c and %s"
#define TOO_MANY	"too many values (maximum 12)"

struct reader {
	const char *word, *p;
	struct trace_error *error;
};

static int fail_at(struct reader *r, const char *at, const char *why)
{
	*r->error = (struct trace_error){ why, (size_t)(at - r->word) };
	return -EINVAL;
}

static void blanks(struct reader *r)
{
	while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n')
		r->p++;
}

static int read_expression(struct reader *r, struct expression *e)
{
	static const char *const reasons[] = {
		[EXPRESSION_OK] = "",
		[EXPRESSION_NO_VALUE] = "value missing; expected arg1 to arg12, retval, pid, tid, "
					"a number, 'c' or \"text\"",
		[EXPRESSION_NO_OPERATOR] = "not an operator, or bracket or comma missing",
		[EXPRESSION_UNKNOWN_NAME] = "unknown value; expected arg1 to arg12, retval, pid or "
					    "tid",
		[EXPRESSION_BAD_NUMBER] = "not a 64-bit number",
		[EXPRESSION_BAD_STRING] = "string or character without an end, or with an "
					  "unknown escape",
		[EXPRESSION_LONG_STRING] = "string too long (maximum 63 bytes)",
		[EXPRESSION_STRING_OPERATOR] = "a string can only be compared with a value, by == "
					       "or !=",
		[EXPRESSION_TOO_LONG] = "expression too long",
	};
	size_t end;
	enum expression_reason reason = expression_parse(e, r->p, &end);

	if (reason != EXPRESSION_OK)
		return fail_at(r, r->p + end, reasons[reason]);
	r->p += end;
	return 0;
}

/* Read an expression, its text, and its conversion after a ':', if any. */
static int read_field(struct reader *r, struct trace_field *field)
{
	int err;

	blanks(r);
	field->name = r->p;
	err = read_expression(r, &field->value);
	if (err)
		return err;
	field->name_len = (size_t)(r->p - field->name);
	while (field->name_len && strchr(" \t\n", field->name[field->name_len - 1]))
		field->name_len--;
	if (*r->p != ':')
		return 0;
	r->p++;
	if (!*r->p || !strchr("duxocps", *r->p))
		return fail_at(r, r->p, "':' must be followed by d, u, x, o, c, p or s");
	field->conversion = *r->p++;
	blanks(r);
	return 0;
}

/* Read values separated by commas up to the end of the word. */
static int read_fields(struct reader *r, struct trace_spec *spec)
{
	unsigned int n = spec->request.nfields;
	int err;

	for (;;) {
		if (n == REQUEST_FIELDS)
			return fail_at(r, r->p, TOO_MANY);
		err = read_field(r, &spec->fields[n]);
		if (err)
			return err;
		n++;
		if (!*r->p)
			break;
		if (*r->p != ',')
			return fail_at(r, r->p, "not an operator, or comma missing");
		r->p++;
	}
	trace_spec_fields(spec, n);
	return 0;
}

/* Read a conversion after its '%': ->flags, ->bits and ->conversion of @field. */
static int read_conversion(struct reader *r, struct trace_field *field)
{
	size_t n = strspn(r->p, "-0# +"), digits = strspn(r->p + n, "0123456789");
	const char *start = r->p;

	if (n + digits >= sizeof(field->flags) || digits > 3)
		return fail_at(r, start, "width too large (maximum 999)");
	memcpy(field->flags, r->p, n + digits);
	field->flags[n + digits] = '\0';
	r->p += n + digits;
	field->bits = 32;
	for (; *r->p && strchr("hlzjtq", *r->p); r->p++)
		field->bits = *r->p != 'h' ? 64 : field->bits == 16 ? 8 : 16;
	if (!*r->p || !strchr("diuxXopcs", *r->p))
		return fail_at(r, r->p,
			     "unknown conversion; one of " CONVERSIONS ", with h, l, ll, z and "
			       "a width, and %%");
	field->conversion = *r->p == 'i' ? 'd' : *r->p;
	r->p++;
	return 0;
}

/* Read a character of a format and undo its escape. */
static char read_character(struct reader *r)
{
	static const char from[] = "ntr\\\"", to[] = "\n\t\r\\\"";
	const char *at = r->p[0] == '\\' && r->p[1] ? strchr(from, r->p[1]) : NULL;

	r->p += at ? 2 : 1;
	return at ? to[at - from] : r->p[-1];
}

/* Read a format after its '"', up to the '"' that ends it. Return its number of conversions. */
static int read_pieces(struct reader *r, struct trace_spec *spec,
		       struct trace_field conversions[REQUEST_FIELDS])
{
	const char *start = r->p - 1;
	size_t len = 0;
	int n = 0, err;

	while (*r->p != '"') {
		if (!*r->p)
			return fail_at(r, start, "format without an end");
		if (len == TRACE_FORMAT)
			return fail_at(r, r->p, "format too long (maximum 512 bytes)");
		if (r->p[0] != '%' || r->p[1] == '%') {
			r->p += r->p[0] == '%';
			spec->format[len++] = read_character(r);
			continue;
		}
		r->p++;
		if (n == REQUEST_FIELDS)
			return fail_at(r, r->p - 1, TOO_MANY);
		err = read_conversion(r, &conversions[n]);
		if (err)
			return err;
		spec->piece[++n] = len;
	}
	r->p++;
	spec->piece[n + 1] = len;
	return n;
}

/* Read a format after its '"', and its values. */
static int read_format(struct reader *r, struct trace_spec *spec)
{
	struct trace_field conversions[REQUEST_FIELDS] = { 0 };
	int err, n = read_pieces(r, spec, conversions);
	const char *comma;

	if (n < 0)
		return n;
	spec->has_format = true;
	blanks(r);
	comma = r->p;
	if (*r->p == ',') {
		r->p++;
		err = read_fields(r, spec);
		if (err)
			return err;
	} else if (*r->p) {
		return fail_at(r, r->p, "comma missing before the values of the format");
	}
	if (spec->request.nfields != (unsigned int)n)
		return fail_at(r, comma, (unsigned int)n > spec->request.nfields ?
					 "the format has more conversions than values" :
					 "the format has fewer conversions than values");
	for (int i = 0; i < n; i++) {
		spec->fields[i].conversion = conversions[i].conversion;
		spec->fields[i].bits = conversions[i].bits;
		memcpy(spec->fields[i].flags, conversions[i].flags, sizeof(conversions[i].flags));
	}
	trace_spec_fields(spec, (unsigned int)n);
	spec->request.all = false;
	return 0;
}

void trace_spec_fields(struct trace_spec *spec, unsigned int count)
{
	spec->request.nfields = count;
	spec->request.all = !count;
	spec->request.texts = 0;
	for (unsigned int i = 0; i < count; i++) {
		spec->request.fields[i] = &spec->fields[i].value;
		spec->request.texts |= (uint32_t)(spec->fields[i].conversion == 's') << i;
	}
}

/* Cut @head at its colons. Return the number of pieces, at most @max + 1. */
static unsigned int cut_head(char *head, const char **piece, unsigned int max)
{
	unsigned int n = 0;

	while (n <= max) {
		char *colon = strchr(head, ':');

		piece[n++] = head;
		if (!colon)
			break;
		*colon = '\0';
		head = colon + 1;
	}
	return n;
}

/* Return the kind that the first piece denotes; REQUEST_ANY: it is not a kind. */
static enum probe_request_kind kind_of(const char *piece)
{
	if (!piece[0] || piece[1])
		return REQUEST_ANY;
	return *piece == 'u' ? REQUEST_USDT : *piece == 'p' ? REQUEST_FUNCTION :
	       *piece == 'r' ? REQUEST_RETURN : REQUEST_ANY;
}

/* Find the kind, the file, the provider and the name among the pieces of the head. */
static int read_head(struct reader *r, struct trace_spec *spec, bool files)
{
	const char *piece[5], **at = piece;
	unsigned int n = cut_head(spec->head, piece, 4);
	struct probe_request *request = &spec->request;

	if (n > 1) {
		request->kind = kind_of(piece[0]);
		at += request->kind != REQUEST_ANY;
		n -= request->kind != REQUEST_ANY;
	}
	request->name = at[n - 1];
	if (n > 3 || (n == 3 && request->kind > REQUEST_USDT))
		return fail_at(r, r->word,
			     "too many colons; expected FILE:PROVIDER:PROBE or FILE:FUNCTION");
	if (n == 3) {
		request->kind = REQUEST_USDT;
		spec->file = at[0];
		request->provider = at[1];
	} else if (n == 2 && (request->kind != REQUEST_ANY || strchr(at[0], '/') || !files)) {
		/* A file and a function, as in bcc's trace. */
		request->kind = request->kind == REQUEST_ANY ? REQUEST_FUNCTION : request->kind;
		spec->file = at[0];
	} else if (n == 2) {
		request->kind = REQUEST_USDT;
		request->provider = at[0];
	}
	if (spec->file && !*spec->file)
		spec->file = NULL;
	if (request->provider && !*request->provider)
		request->provider = NULL;
	if (!*request->name)
		return fail_at(r, r->p, "name of a probe or function missing");
	if (!spec->file && !files)
		return fail_at(r, r->word, "no file specified; use PATH, -l LIB, -p PID or "
					 "FILE:PROVIDER:PROBE");
	return 0;
}

/*
 * Return whether the bracket at the beginning of @text encloses a filter, as opposed to a cast or
 * the first operand of a value.
 */
static bool is_filter(const char *text)
{
	struct expression e;
	size_t end;

	if (expression_parse(&e, text + 1, &end) || text[1 + end] != ')')
		return expression_parse(&e, text, &end) != EXPRESSION_OK;
	text += end + 2;
	text += strspn(text, " \t\n");
	return !*text || !strchr("=!<>+-*&|^:", *text);
}

int trace_spec_parse(struct trace_spec *spec, const char *word, bool files,
		     struct trace_error *error)
{
	struct reader r = { .word = word, .p = word, .error = error };
	size_t len = strcspn(word, " \t\n(\"");
	int err;

	*spec = (struct trace_spec){ .request = { .all = true } };
	spec->head = strndup(word, len);
	if (!spec->head)
		return -ENOMEM;
	r.p += len;
	err = read_head(&r, spec, files);
	if (err)
		return err;
	blanks(&r);
	if (*r.p == '(' && is_filter(r.p)) {
		r.p++;
		err = read_expression(&r, &spec->filter);
		if (err)
			return err;
		if (*r.p != ')')
			return fail_at(&r, r.p, "not an operator, or bracket missing");
		r.p++;
		spec->request.filter = &spec->filter;
		blanks(&r);
	}
	if (*r.p == '"') {
		r.p++;
		return read_format(&r, spec);
	}
	return *r.p ? read_fields(&r, spec) : 0;
}

int trace_field_parse(struct trace_field *field, const char *text, struct trace_error *error)
{
	struct reader r = { .word = text, .p = text, .error = error };
	int err;

	*field = (struct trace_field){ .name = text };
	err = read_field(&r, field);
	return !err && *r.p ? fail_at(&r, r.p, "not an operator") : err;
}

void trace_spec_free(struct trace_spec *spec)
{
	free(spec->head);
	spec->head = NULL;
}
