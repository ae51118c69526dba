// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONVERSIONS	"%d %u %x %o %p %c and %s"
#define TOO_MANY	"too many values (maximum 12; a precision and comm count as one more)"
#define VARIABLES	"arg1 to arg12, retval, pid, tid, uid, comm"

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
		[EXPRESSION_NO_VALUE] = "value missing; expected " VARIABLES ", a number, 'c' or "
					"\"text\"",
		[EXPRESSION_NO_OPERATOR] = "not an operator, or bracket or comma missing",
		[EXPRESSION_UNKNOWN_NAME] = "unknown value; expected " VARIABLES,
		[EXPRESSION_BAD_NUMBER] = "not a 64-bit number",
		[EXPRESSION_BAD_STRING] = "string or character without an end, or with an "
					  "unknown escape",
		[EXPRESSION_LONG_STRING] = "string too long (maximum 63 bytes)",
		[EXPRESSION_LONG_COMM] = "string too long: comm has at most 15 bytes",
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

/* How a value is converted: by a format, or by what follows its ':'. */
struct conversion {
	char letter;
	unsigned int bits;
	char flags[8];
	long precision;			/* or PRECISION_… */
	size_t at;			/* offset in ->format */
};

#define PRECISION_NONE	(-1L)
#define PRECISION_VALUE	(-2L)		/* '*': the value before */

/* Read a precision. Only strings have one. */
static int read_precision(struct reader *r, struct conversion *c)
{
	const char *start = r->p;
	size_t digits;

	c->precision = PRECISION_NONE;
	if (*r->p != '.')
		return 0;
	r->p++;
	digits = strspn(r->p, "0123456789");
	if (digits > 7)
		return fail_at(r, start, "precision too large (maximum 9999999)");
	c->precision = *r->p == '*' ? PRECISION_VALUE : (long)strtoull(r->p, NULL, 10);
	r->p += *r->p == '*' ? 1 : digits;
	if (*r->p != 's')
		return fail_at(r, start, "a precision requires a string: %.32s, %.*s, :.32s or "
					 ":.*s");
	return 0;
}

/* Add @field. */
static int add_field(struct reader *r, struct trace_spec *spec, const struct trace_field *field,
		     size_t at)
{
	unsigned int n = spec->request.nfields;

	if (n == REQUEST_FIELDS)
		return fail_at(r, field->name, TOO_MANY);
	spec->fields[n] = *field;
	spec->piece[n + 1] = at;
	spec->request.nfields++;
	return 0;
}

/* Add the field that limits the length of @field, if @c has a precision. */
static int add_length(struct reader *r, struct trace_spec *spec, const struct trace_field *field,
		      const struct conversion *c)
{
	struct trace_field length = { .name = field->name, .conversion = TRACE_LENGTH };
	struct trace_field *before = spec->fields + spec->request.nfields - 1;

	if (c->precision >= 0) {
		expression_set_number(&length.value, (uint32_t)c->precision);
		return add_field(r, spec, &length, c->at);
	}
	if (c->precision == PRECISION_NONE)
		return 0;
	if (!spec->request.nfields || (before->conversion && before->conversion != TRACE_LENGTH))
		return fail_at(r, field->name, "'*', the length of a string, is the value before "
					       "it, which must be a number");
	before->conversion = TRACE_LENGTH;
	return 0;
}

/* Read an expression and its text; and the conversion after a ':', if any, to @c. */
static int read_field(struct reader *r, struct trace_field *field, struct conversion *c)
{
	int err;

	*c = (struct conversion){ .precision = PRECISION_NONE };
	blanks(r);
	*field = (struct trace_field){ .name = r->p };
	err = read_expression(r, &field->value);
	if (err)
		return err;
	field->name_len = (size_t)(r->p - field->name);
	while (field->name_len && strchr(" \t\n", field->name[field->name_len - 1]))
		field->name_len--;
	if (*r->p != ':')
		return 0;
	r->p++;
	err = read_precision(r, c);
	if (err)
		return err;
	if (!*r->p || !strchr("duxocps", *r->p))
		return fail_at(r, r->p, "':' must be followed by d, u, x, o, c, p or s");
	c->letter = *r->p++;
	blanks(r);
	return 0;
}

/* Read a value, and add it with the fields that its conversion requires; NULL: its own one. */
static int read_value(struct reader *r, struct trace_spec *spec, const struct conversion *c)
{
	struct trace_field field, rest = { .conversion = TRACE_REST };
	struct conversion own;
	int err = read_field(r, &field, &own);
	bool comm;

	if (err)
		return err;
	comm = expression_plain(&field.value) == EXPRESSION_COMM;
	c = c ? c : &own;
	if (comm && c->letter && c->letter != 's')
		return fail_at(r, field.name, "comm is a string: %s or :s");
	field.conversion = comm ? 's' : c->letter;
	field.bits = c->bits;
	memcpy(field.flags, c->flags, sizeof(field.flags));
	err = add_length(r, spec, &field, c);
	if (!err)
		err = add_field(r, spec, &field, c->at);
	if (err || !comm)
		return err;
	rest.name = field.name;
	expression_set_plain(&rest.value, EXPRESSION_COMM + 1);
	return add_field(r, spec, &rest, c->at);
}

/*
 * Read values separated by commas up to the end of the word. The first @count have conversions.
 * Return the number of values or -EINVAL.
 */
static int read_values(struct reader *r, struct trace_spec *spec, const struct conversion *c,
		       int count)
{
	for (int n = 0;;) {
		int err = read_value(r, spec, n < count ? &c[n] : NULL);

		if (err)
			return err;
		n++;
		if (!*r->p)
			return n;
		if (*r->p != ',')
			return fail_at(r, r->p, "not an operator, or comma missing");
		r->p++;
	}
}

/* Read a conversion after its '%'. */
static int read_conversion(struct reader *r, struct conversion *c)
{
	size_t n = strspn(r->p, "-0# +"), digits = strspn(r->p + n, "0123456789");
	const char *start = r->p;
	int err;

	if (n + digits >= sizeof(c->flags) || digits > 3)
		return fail_at(r, start, "width too large (maximum 999)");
	memcpy(c->flags, r->p, n + digits);
	c->flags[n + digits] = '\0';
	r->p += n + digits;
	err = read_precision(r, c);
	if (err)
		return err;
	c->bits = 32;
	for (; *r->p && strchr("hlzjtq", *r->p); r->p++)
		c->bits = *r->p != 'h' ? 64 : c->bits == 16 ? 8 : 16;
	if (!*r->p || !strchr("diuxXopcs", *r->p))
		return fail_at(r, r->p,
			       "unknown conversion; one of " CONVERSIONS ", with h, l, ll, z, "
			       "a width, for %s a precision, and %%");
	c->letter = *r->p == 'i' ? 'd' : *r->p;
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

/*
 * Read a format after its '"', up to the '"' that ends it. Each value has a conversion; that of a
 * length is TRACE_LENGTH. Return their number or -EINVAL.
 */
static int read_pieces(struct reader *r, struct trace_spec *spec,
		       struct conversion conversions[REQUEST_FIELDS], size_t *len)
{
	const char *start = r->p - 1;
	int n = 0, err;

	for (*len = 0; *r->p != '"';) {
		struct conversion c = { .at = *len };

		if (!*r->p)
			return fail_at(r, start, "format without an end");
		if (*len == TRACE_FORMAT)
			return fail_at(r, r->p, "format too long (maximum 512 bytes)");
		if (r->p[0] != '%' || r->p[1] == '%') {
			r->p += r->p[0] == '%';
			spec->format[(*len)++] = read_character(r);
			continue;
		}
		r->p++;
		err = read_conversion(r, &c);
		if (err)
			return err;
		if (n + (c.precision == PRECISION_VALUE) >= REQUEST_FIELDS)
			return fail_at(r, r->p - 1, TOO_MANY);
		if (c.precision == PRECISION_VALUE)
			conversions[n++] = (struct conversion){
				.letter = TRACE_LENGTH, .precision = PRECISION_NONE, .at = *len };
		conversions[n++] = c;
	}
	r->p++;
	return n;
}

/* Read a format after its '"', and its values. */
static int read_format(struct reader *r, struct trace_spec *spec)
{
	struct conversion conversions[REQUEST_FIELDS] = { 0 };
	size_t len;
	int values = 0, n = read_pieces(r, spec, conversions, &len);
	const char *comma;

	if (n < 0)
		return n;
	spec->has_format = true;
	blanks(r);
	comma = r->p;
	if (*r->p == ',') {
		r->p++;
		values = read_values(r, spec, conversions, n);
		if (values < 0)
			return values;
	} else if (*r->p) {
		return fail_at(r, r->p, "comma missing before the values of the format");
	}
	if (values != n)
		return fail_at(r, comma, n > values ?
					 "the format has more conversions than values" :
					 "the format has fewer conversions than values");
	spec->piece[spec->request.nfields + 1] = len;
	return 0;
}

/* Derive the fields of the request from ->fields. */
static void set_request_fields(struct trace_spec *spec)
{
	struct probe_request *request = &spec->request;

	request->all = !request->nfields && !spec->has_format;
	request->texts = request->lengths = 0;
	for (unsigned int i = 0; i < request->nfields; i++) {
		const struct trace_field *field = &spec->fields[i];
		bool text = field->conversion == 's' &&
			    expression_plain(&field->value) != EXPRESSION_COMM;

		request->fields[i] = &field->value;
		request->texts |= (uint32_t)text << i;
		request->lengths |= (uint32_t)(i && field[-1].conversion == TRACE_LENGTH) << i;
	}
}

/*
 * Return the first colon of @head; not those of "THD::raise_condition", a name, if @functions.
 * NULL: there is none.
 */
static char *find_colon(char *head, bool functions)
{
	char *colon = strchr(head, ':');

	while (functions && colon && colon != head && colon[1] == ':')
		colon = strchr(colon + 2, ':');
	return colon;
}

/*
 * Cut @head at its colons, but not the @path bytes from byte @begin on. Return the number of
 * pieces, at most @max + 1.
 */
static unsigned int cut_head(char *head, size_t begin, size_t path, const char **piece,
			     unsigned int max)
{
	bool functions = !strncmp(head, "p:", 2) || !strncmp(head, "r:", 2) ||
			 !strncmp(head, "uprobe:", 7) || !strncmp(head, "uretprobe:", 10);
	unsigned int n = 0;

	if (path && begin) {
		head[begin - 1] = '\0';
		piece[n++] = head;
	}
	if (path) {
		head += begin;
		head[path] = '\0';
		piece[n++] = head;
		head += path + 1;
	}
	while (n <= max) {
		char *colon = find_colon(head, functions && n);

		piece[n++] = head;
		if (!colon)
			break;
		*colon = '\0';
		head = colon + 1;
	}
	return n;
}

#define NOT_SUPPORTED	" not supported; programs and libraries are traced, by u:, p: and r:"

enum { FOREIGN_NONE, FOREIGN_FUNCTION, FOREIGN_TRACEPOINT, FOREIGN_TIMER, FOREIGN_COUNTER };

/* The kinds of probes of dbslower and bcc, then those of bpftrace. */
static const struct {
	char word[14];
	uint8_t kind;			/* enum probe_request_kind */
	uint8_t foreign;		/* FOREIGN_…: the reason why it cannot be traced */
} kinds[] = {
	{ "u", REQUEST_USDT, 0 }, { "p", REQUEST_FUNCTION, 0 }, { "r", REQUEST_RETURN, 0 },
	{ "usdt", REQUEST_USDT, 0 }, { "uprobe", REQUEST_FUNCTION, 0 },
	{ "uretprobe", REQUEST_RETURN, 0 }, { "ur", REQUEST_RETURN, 0 },
	{ "kprobe", 0, FOREIGN_FUNCTION }, { "kretprobe", 0, FOREIGN_FUNCTION },
	{ "fentry", 0, FOREIGN_FUNCTION }, { "fexit", 0, FOREIGN_FUNCTION },
	{ "kfunc", 0, FOREIGN_FUNCTION }, { "kretfunc", 0, FOREIGN_FUNCTION },
	{ "t", 0, FOREIGN_TRACEPOINT }, { "tracepoint", 0, FOREIGN_TRACEPOINT },
	{ "rawtracepoint", 0, FOREIGN_TRACEPOINT },
	{ "profile", 0, FOREIGN_TIMER }, { "interval", 0, FOREIGN_TIMER },
	{ "software", 0, FOREIGN_COUNTER }, { "hardware", 0, FOREIGN_COUNTER },
};

/*
 * Store the kind that the first of @count pieces denotes; REQUEST_ANY: it is not a kind. Return
 * NULL, or the reason why such probes cannot be traced. Except for kernel functions, bpftrace's
 * words are followed by two pieces: "profile:start" is a provider and its probe.
 */
static const char *kind_of(const char *piece, unsigned int count, enum probe_request_kind *kind)
{
	static const char *const reasons[] = {
		[FOREIGN_NONE] = NULL,
		[FOREIGN_FUNCTION] = "kernel functions are" NOT_SUPPORTED,
		[FOREIGN_TRACEPOINT] = "kernel tracepoints are" NOT_SUPPORTED,
		[FOREIGN_TIMER] = "timers are" NOT_SUPPORTED,
		[FOREIGN_COUNTER] = "kernel and CPU counters are" NOT_SUPPORTED,
	};
	size_t i = 0, n = sizeof(kinds) / sizeof(kinds[0]);

	while (i < n && strcmp(kinds[i].word, piece))
		i++;
	if (count == 2 && i < n && kinds[i].word[1] && kinds[i].foreign != FOREIGN_FUNCTION)
		i = n;
	*kind = i < n ? kinds[i].kind : REQUEST_ANY;
	return i < n ? reasons[kinds[i].foreign] : NULL;
}

/* Find the kind, the file, the provider and the name among the pieces of the head. */
static int read_head(struct reader *r, struct trace_spec *spec, size_t begin, size_t path,
		     bool files)
{
	const char *piece[5], **at = piece;
	unsigned int n = cut_head(spec->head, begin, path, piece, 4);
	struct probe_request *request = &spec->request;
	const char *why;

	if (n > 1) {
		why = kind_of(piece[0], n, &request->kind);
		if (why)
			return fail_at(r, r->word, why);
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
	return !*text || !strchr("=!<>+-*/%&|^:", *text);
}

int trace_spec_parse(struct trace_spec *spec, const char *word, size_t begin, size_t path,
		     bool files, struct trace_error *error)
{
	struct reader r = { .word = word, .p = word, .error = error };
	size_t len = begin + path;
	int err;

	len += strcspn(word + len, " \t\n(\"");
	*spec = (struct trace_spec){ .request = { .all = true } };
	spec->head = strndup(word, len);
	if (!spec->head)
		return -ENOMEM;
	r.p += len;
	err = read_head(&r, spec, begin, path, files);
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
		if (expression_plain(&spec->filter) == EXPRESSION_COMM)
			return fail_at(&r, r.p, "comm is a string: == or != \"text\" missing");
		r.p++;
		spec->request.filter = &spec->filter;
		blanks(&r);
	}
	if (*r.p == '"') {
		r.p++;
		err = read_format(&r, spec);
	} else if (*r.p) {
		err = read_values(&r, spec, NULL, 0);
	}
	if (err < 0)
		return err;
	set_request_fields(spec);
	return 0;
}

int trace_spec_countable(const struct trace_spec *spec, const char *word,
			 struct trace_error *error)
{
	struct reader r = { .word = word, .error = error };
	unsigned int texts = 0;

	for (unsigned int i = 0; i < spec->request.nfields; i++) {
		const char *name = spec->fields[i].name;

		texts += spec->request.texts >> i & 1;
		if (i >= PROBE_HIT_VALUES - 1)
			return fail_at(&r, name, "too many values to count by (maximum 6; a "
						 "precision and comm count as one more)");
		if (texts > PROBE_HIT_TEXTS)
			return fail_at(&r, name, "too many strings to count by (maximum 2)");
	}
	return 0;
}

static void insert_first(struct trace_spec *spec, const struct trace_field *field)
{
	memmove(spec->fields + 1, spec->fields, spec->request.nfields * sizeof(*field));
	memmove(spec->piece + 1, spec->piece, (REQUEST_FIELDS + 1) * sizeof(spec->piece[0]));
	spec->fields[0] = *field;
	spec->request.nfields++;
	set_request_fields(spec);
}

int trace_spec_histogram(struct trace_spec *spec, const char *text, struct trace_error *error)
{
	struct reader r = { .word = text, .p = text, .error = error };
	struct trace_field field;
	struct conversion c;
	int err = read_field(&r, &field, &c);

	if (err)
		return err;
	if (*r.p)
		return fail_at(&r, r.p, "not an operator");
	if (c.letter == 's' || expression_plain(&field.value) == EXPRESSION_COMM)
		return fail_at(&r, text, "a histogram requires a number, not a string");
	field.conversion = c.letter;
	insert_first(spec, &field);
	return 0;
}

void trace_spec_latency(struct trace_spec *spec)
{
	static const char title[] = "latency (us)";
	struct trace_field field = { .name = title, .name_len = sizeof(title) - 1 };

	expression_set_number(&field.value, 0);
	insert_first(spec, &field);
}

void trace_spec_free(struct trace_spec *spec)
{
	free(spec->head);
	spec->head = NULL;
}
