// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Symbolic execution of a function's body: the value of each register is
 * expressed in terms of the function's arguments, and every path is followed.
 * The architecture's accessor_*.c decodes the instructions.
 */
#include "usdt/accessor.h"

#include <elf.h>
#include <errno.h>

#include "usdt/accessor_op.h"
#include "usdt/accessor_value.h"
#include "usdt/arch.h"
#include "usdt/byte_pattern.h"
#include "usdt/elf_symbol.h"

#define BODY_MAX	256	/* bytes; the longest accessor seen has 60 */
#define BODY_WORK	(1 << 15)	/* equivalent in bytes read of executing all paths */
#define OFFSET_MAX	(1 << 20)
#define STEPS_MAX	64	/* instructions of a path */
#define TESTS_MAX	4	/* for NULL, on a path */
#define FORKS_MAX	8	/* on a path; at most 4 were seen */

/* How a path ends. */
enum end_kind { END_RETURN, END_CALL };

/*
 * The member to find: returned, set, compared with a constant, of which bits are set, or passed by
 * address to a call;
 * FIND_GIVEN: passed as it is;
 * FIND_THIRD: set to the third argument;
 * FIND_COPIED: stored at agreed->at of where the third argument points;
 * FIND_GLOBAL: returned, of the object that a variable of the file points to.
 */
enum purpose {
	FIND_RESULT, FIND_SET, FIND_COMPARED, FIND_FLAG, FIND_PASSED, FIND_THIRD, FIND_COPIED,
	FIND_GLOBAL, FIND_GIVEN
};

/* What all paths so far agree on, and 4-byte members that are set to the second argument. */
struct agreed {
	struct value member;		/* returned, set, compared, copied */
	int64_t at;			/* FIND_COPIED: where to */
	struct value half;		/* the first one .. */
	bool halves;			/* .. of several */
};

/* Execution of one path. */
struct state {
	const struct arch_code *arch;
	const unsigned char *code;
	size_t size, pos;
	unsigned int steps, tests;	/* executed so far */
	struct value regs[UOP_REGS];
	struct value flags;		/* VALUE_EQUALS or unknown */
	bool is_null;			/* this path is taken if a tested pointer is NULL */
	bool null_is_zero;		/* all such paths returned 0 */
	struct value stored;		/* through the second argument */
	struct value set, added;	/* members set to, or increased by, the second argument */
	enum purpose purpose;
	struct agreed *agreed;		/* NULL: FIND_RESULT */
	enum end_kind end;
};

static struct value state_get(const struct state *state, unsigned int reg)
{
	if (reg == state->arch->zero_reg)
		return (struct value){ .kind = VALUE_NUMBER, .size = 8 };
	return state->regs[reg];
}

static void state_put(struct state *state, unsigned int reg, struct value value)
{
	if (reg != UOP_NO_REG)
		state->regs[reg] = value;
}

/* Record @value as the member found. Return false if another path found a different one. */
static bool state_agree(const struct state *state, const struct value *value)
{
	if (!state->agreed->member.kind)
		state->agreed->member = *value;
	return value_same(&state->agreed->member, value);
}

/* Only members behind a pointer are compared; tests for NULL are of the pointer itself. */
static bool state_compare(struct state *state, const struct uop *op)
{
	struct value value = state_get(state, op->reg);
	struct value other = { .kind = VALUE_NUMBER, .number = op->number };

	state->flags = (struct value){ 0 };
	if (op->index != UOP_NO_REG)
		other = state_get(state, op->index);
	if (value.kind == VALUE_NUMBER) {
		struct value number = value;

		value = other;
		other = number;
	}
	if (value.kind == VALUE_MEMBER && other.kind == VALUE_NUMBER &&
	    (!op->size || value.size == op->size)) {
		state->flags = value;
		state->flags.kind = VALUE_EQUALS;
		state->flags.number = other.number;
	}
	return state->purpose != FIND_COMPARED || state->flags.kind != VALUE_EQUALS ||
	       state->flags.loads < LOADS_MAX || state_agree(state, &state->flags);
}

/* Store to where the second argument points: an output parameter. */
static bool state_store_result(struct state *state, const struct uop *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_plus(state_get(state, op->base), op->number);

	if (!value_is_argument(&where, 1) || what.kind != VALUE_MEMBER || op->size != 8 ||
	    state->is_null || state->stored.kind)
		return false;
	state->stored = what;
	return true;
}

/* Store to a member of the object. Other stores do not matter to a setter. */
static bool state_store_member(struct state *state, const struct uop *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_plus(state_get(state, op->base), op->number);
	struct value *member;

	state->flags = (struct value){ 0 };	/* an addition to memory sets them */
	if (where.kind != VALUE_MEMBER || where.argument || where.loads || op->size < 4)
		return true;
	if (op->size == 4 && value_is_low_argument(&what, 1, 4)) {
		where = value_load(where, 0, 4);
		if (!state->agreed->half.kind)
			state->agreed->half = where;
		state->agreed->halves |= !value_same(&state->agreed->half, &where);
		return true;
	}
	if (value_is_argument(&what, 1))
		member = &state->set;
	else if (what.kind == VALUE_SUM && op->size == 8 && what.offset[0] == where.offset[0])
		member = &state->added;
	else
		return true;
	where = value_load(where, 0, op->size);
	if (member->kind)
		return value_same(member, &where);
	*member = where;
	return true;
}

/* Set bits of a member of the object. Other stores do not matter. */
static bool state_store_flag(struct state *state, const struct uop *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_load(state_get(state, op->base), op->number, op->size);

	state->flags = (struct value){ 0 };
	where = value_or(where, what.number, op->size);
	return !value_same(&what, &where) || state_agree(state, &what);
}

/* Store a member through the third argument. Other stores do not matter. */
static bool state_store_copy(struct state *state, const struct uop *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_plus(state_get(state, op->base),
					op->number - state->agreed->at);

	state->flags = (struct value){ 0 };
	return !value_is_argument(&where, 2) || !value_is_member(&what) || what.size != 8 ||
	       op->size != 8 || state_agree(state, &what);
}

/* Store the third argument in a member. Other stores do not matter. */
static bool state_store_third(struct state *state, const struct uop *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_load(state_get(state, op->base), op->number, op->size);

	state->flags = (struct value){ 0 };
	return !value_is_argument(&what, 2) || !value_is_member(&where) || op->size != 8 ||
	       state_agree(state, &where);
}

/* End a path. All paths of a setter that set a member must set the same one. */
static bool state_end(const struct state *state)
{
	const struct value *member = state->set.kind ? &state->set : &state->added;

	return state->purpose != FIND_SET || !member->kind || state_agree(state, member);
}

/* A call preserves the registers that the ABI says are callee-saved. */
static bool state_call(struct state *state)
{
	for (unsigned int i = 0; i < UOP_REGS; i++)
		if (i >= UOP_NO_REG || !(state->arch->preserved >> i & 1))
			state->regs[i] = (struct value){ 0 };
	state->flags = (struct value){ 0 };
	return state->purpose != FIND_RESULT;
}

static int state_run(struct state *state);

/* Continue at byte @target. Return false if it is outside the body. */
static bool state_goto(struct state *state, int64_t target)
{
	if (target < 0 || (uint64_t)target >= state->size)
		return false;
	state->pos = (size_t)target;
	return true;
}

/* Run the path taken if the value just compared with 0 is 0, which starts at @target. */
static bool state_run_null(struct state *state, int64_t target)
{
	struct state null = *state;
	struct value tested = state->flags;
	const struct value *result = &null.regs[state->arch->returns[0]];

	tested.kind = VALUE_MEMBER;
	for (unsigned int i = 0; i < UOP_REGS; i++)
		if (value_same(&null.regs[i], &tested))
			null.regs[i] = (struct value){ .kind = VALUE_NUMBER, .size = 8 };
	null.flags = (struct value){ 0 };
	null.is_null = true;
	if (!state_goto(&null, target) || state_run(&null) || null.end != END_RETURN)
		return false;
	state->steps = null.steps;
	state->null_is_zero &= null.null_is_zero && result->kind == VALUE_NUMBER &&
			       !result->number;
	return true;
}

/* Run the path that starts at the target of @op, to its end. */
static bool state_fork(struct state *state, const struct uop *op)
{
	struct state other = *state;

	if (state->purpose == FIND_PASSED)
		return true;
	if (state->purpose == FIND_RESULT || ++state->tests > FORKS_MAX)
		return false;
	other.tests = state->tests;
	return state_goto(&other, op->target) && !state_run(&other);
}

static bool state_branch(struct state *state, const struct uop *op)
{
	int64_t next = (int64_t)state->pos;
	bool if_not = op->number;

	if (state->purpose != FIND_RESULT)
		return state_fork(state, op);

	if (state->flags.kind != VALUE_EQUALS || state->flags.size != 8 || state->flags.number ||
	    ++state->tests > TESTS_MAX)
		return false;
	return state_run_null(state, if_not ? next : op->target) &&
	       state_goto(state, if_not ? op->target : next);
}

static bool state_op(struct state *state, const struct uop *op)
{
	struct value base = state_get(state, op->base);

	switch (op->kind) {
	case UOP_LOAD:
		state_put(state, op->reg, value_load(base, op->number, op->size));
		return true;
	case UOP_STORE:
		return state->purpose == FIND_RESULT ? state_store_result(state, op) :
		       state->purpose == FIND_FLAG ? state_store_flag(state, op) :
		       state->purpose == FIND_THIRD ? state_store_third(state, op) :
		       state->purpose == FIND_COPIED ? state_store_copy(state, op) :
						     state_store_member(state, op);
	case UOP_ADD_NUMBER:
		state_put(state, op->reg, value_plus(base, op->number));
		return true;
	case UOP_ADD:
		state_put(state, op->reg, value_sum(base, state_get(state, op->index)));
		return true;
	case UOP_OR_NUMBER:
		state_put(state, op->reg,
			  value_or(state_get(state, op->reg), op->number, op->size));
		return true;
	case UOP_MOVE:
		state_put(state, op->reg, op->size < 8 ? value_narrow(base, op->size) : base);
		return true;
	case UOP_NUMBER:
		state_put(state, op->reg,
			  (struct value){ .kind = VALUE_NUMBER, .size = 8, .number = op->number });
		return true;
	case UOP_FORGET:
		state_put(state, op->reg, (struct value){ 0 });
		return true;
	case UOP_COMPARE:
		return state_compare(state, op);
	case UOP_SET_EQUAL:
		state_put(state, op->reg, state->flags);
		return true;
	case UOP_BRANCH:
		return state_branch(state, op);
	case UOP_FORK:
		return state_fork(state, op);
	case UOP_CALL:
		return state_call(state);
	case UOP_CLOBBER_FLAGS:
		state->flags = (struct value){ 0 };
		return true;
	case UOP_JUMP:
	case UOP_LEAVE:
	case UOP_RETURN:
		break;
	}
	return false;
}

/* End a path that calls a function: it may pass a member as the first argument. */
static int state_give(const struct state *state)
{
	const struct value *value = &state->regs[state->arch->args[0]];

	return !value_is_member(value) || value->size != 8 || state_agree(state, value) ? 1 :
											  -EINVAL;
}

/* Execute one instruction. Return 0, 1 at the end of the path, or -EINVAL. */
static int state_step(struct state *state)
{
	struct cursor code = cursor_over(state->code, state->size, false);
	struct uop_list list = { .count = 0 };
	const struct uop *last;
	bool supported;

	cursor_seek(&code, state->pos);
	supported = state->arch->decode(&code, &list);
	if (code.bad)
		return -EINVAL;
	if (!supported)
		return state->purpose == FIND_RESULT ? -EINVAL : 1;
	state->pos = code.pos;
	last = list.count ? &list.ops[list.count - 1] : NULL;
	if (last && last->kind == UOP_JUMP && state_goto(state, last->target))
		return 0;
	if (last && last->kind == UOP_CALL && state->purpose == FIND_PASSED)
		return state_agree(state, &state->regs[state->arch->args[0]]) ? 1 : -EINVAL;
	if (last && state->purpose == FIND_GIVEN &&
	    (last->kind == UOP_JUMP || last->kind == UOP_LEAVE || last->kind == UOP_CALL))
		return state_give(state);
	if (last && (last->kind == UOP_JUMP || last->kind == UOP_LEAVE ||
		     last->kind == UOP_RETURN)) {
		state->end = last->kind == UOP_RETURN ? END_RETURN : END_CALL;
		return 1;
	}
	for (unsigned int i = 0; i < list.count; i++)
		if (!state_op(state, &list.ops[i]))
			return -EINVAL;
	return 0;
}

/* Run a path to its end. Return 0 or -EINVAL. */
static int state_run(struct state *state)
{
	int err = 0;

	while (!err && state->steps++ < STEPS_MAX)
		err = state_step(state);
	return err == 1 && state_end(state) ? 0 : -EINVAL;
}

/* Run all paths of a body. @agreed is all zero at first; NULL for FIND_RESULT. */
static int state_execute(struct state *state, uint16_t machine, const void *code, size_t size,
			 enum purpose purpose, struct agreed *agreed)
{
	const struct arch_code *arch = arch_code_of(machine);
	unsigned int arguments = purpose == FIND_COPIED || purpose == FIND_THIRD ? 3 : 2;

	if (!arch)
		return -EINVAL;
	*state = (struct state){ .arch = arch, .code = code, .size = size,
				 .null_is_zero = true, .purpose = purpose, .agreed = agreed };
	if (purpose == FIND_GLOBAL) {
		state->purpose = FIND_RESULT;
		state->regs[UOP_GLOBAL] = (struct value){ .kind = VALUE_MEMBER, .size = 8 };
	}
	for (unsigned int i = 0; i < arguments && purpose != FIND_GLOBAL; i++)
		state->regs[arch->args[i]] =
			(struct value){ .kind = VALUE_MEMBER, .size = 8, .argument = (uint8_t)i };
	return state_run(state);
}

/* Return the value that the function returns, and in *@second the other half of a pair. */
static struct value state_result(const struct state *state, struct value *second)
{
	struct value nothing = { 0 }, result = state->regs[state->arch->returns[0]];

	*second = nothing;
	if (state->stored.kind)
		return state->end == END_RETURN && result.kind == VALUE_NUMBER ? state->stored
									       : nothing;
	if (state->end == END_CALL) {
		result = state->regs[state->arch->args[1]];
		return value_is_member(&result) ? result : nothing;
	}
	*second = state->regs[state->arch->returns[1]];
	return state->null_is_zero ? result : nothing;
}

static bool offset_is_sane(int64_t offset)
{
	return offset >= 0 && offset < OFFSET_MAX;
}

/* Describe @value as an accessor without a second member. Return 0 or -EINVAL. */
static int value_describe(const struct value *value, struct accessor *out)
{
	static const enum accessor_kind kinds[] = {
		ACCESSOR_ADDRESS, ACCESSOR_VALUE, ACCESSOR_POINTER
	};
	bool equals = value->kind == VALUE_EQUALS, inner = value->loads == LOADS_MAX;

	if (!(equals ? inner : value->kind == VALUE_MEMBER) || value->argument ||
	    (value->loads && value->offset[value->loads]) || !offset_is_sane(value->offset[0]) ||
	    (inner && !offset_is_sane(value->offset[1])))
		return -EINVAL;
	*out = (struct accessor){
		.kind = equals ? ACCESSOR_EQUALS : kinds[value->loads],
		.offset = value->offset[0],
		.inner = inner ? value->offset[1] : 0,
		.expected = equals ? value->number : 0,
		.second = -1,
		.size = value->size,
	};
	return 0;
}

int accessor_body(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	struct state state;
	struct value value, second;

	if (state_execute(&state, machine, code, size, FIND_RESULT, NULL))
		return -EINVAL;
	value = state_result(&state, &second);
	if (value_describe(&value, out))
		return -EINVAL;
	if (value_is_member(&value) && value_is_member(&second) && offset_is_sane(second.offset[0]))
		out->second = second.offset[0];
	return 0;
}

int accessor_body_global(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	struct state state;
	struct value value, second;

	if (state_execute(&state, machine, code, size, FIND_GLOBAL, NULL))
		return -EINVAL;
	value = state_result(&state, &second);
	value.offset[0] = 0;
	if (value_describe(&value, out) || out->kind != ACCESSOR_POINTER)
		return -EINVAL;
	return 0;
}

static int body_agreed(uint16_t machine, const void *code, size_t size, enum purpose purpose,
		       struct accessor *out)
{
	struct state state;
	struct agreed agreed = { .halves = false };

	if (state_execute(&state, machine, code, size, purpose, &agreed))
		return -EINVAL;
	if (purpose == FIND_SET && !agreed.member.kind && !agreed.halves)
		agreed.member = agreed.half;
	return value_describe(&agreed.member, out);
}

int accessor_body_setter(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_SET, out);
}

int accessor_body_third(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_THIRD, out);
}

int accessor_body_compared(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_COMPARED, out);
}

int accessor_body_flag(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	struct state state;
	struct agreed agreed = { .halves = false };
	int64_t bits;

	if (state_execute(&state, machine, code, size, FIND_FLAG, &agreed) || !agreed.member.kind)
		return -EINVAL;
	bits = agreed.member.number;
	agreed.member.kind = VALUE_MEMBER;
	if (value_describe(&agreed.member, out))
		return -EINVAL;
	out->kind = ACCESSOR_FLAG;
	out->expected = bits;
	return 0;
}

int accessor_body_passed(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	int err = body_agreed(machine, code, size, FIND_PASSED, out);

	return err ? err : out->kind == ACCESSOR_ADDRESS && out->offset ? 0 : -EINVAL;
}

int accessor_body_given(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_GIVEN, out);
}

int accessor_body_copied(uint16_t machine, const void *code, size_t size, int64_t at,
			 struct accessor *out)
{
	struct state state;
	struct agreed agreed = { .at = at };

	return state_execute(&state, machine, code, size, FIND_COPIED, &agreed) ?
	       -EINVAL : value_describe(&agreed.member, out);
}

/*
 * Find function @symbol. Return its first @max bytes at most, borrowed from
 * @elf, and their number in *@size, or NULL if there is no such function.
 */
static const unsigned char *function_find(const struct elf *elf, const char *symbol, size_t max,
					  struct elf_symbol *found, size_t *size)
{
	struct cursor file = cursor_over(elf->data, elf->size, elf->big_endian);
	uint64_t offset;

	if (!elf_spend(elf, BODY_WORK) || elf_symbol_find(elf, symbol, found) ||
	    found->type != STT_FUNC ||
	    !elf_vaddr_has_flags(elf, found->value, PF_X) ||
	    elf_vaddr_to_offset(elf, found->value, &offset))
		return NULL;
	cursor_seek(&file, offset);
	*size = cursor_left(&file);
	if (*size > max)
		*size = max;
	if (found->size && *size > found->size)
		*size = (size_t)found->size;
	return cursor_bytes(&file, *size);
}

static const unsigned char *body_find(const struct elf *elf, const char *symbol, size_t max,
				      size_t *size)
{
	struct elf_symbol found;

	return function_find(elf, symbol, max, &found, size);
}

/* Read the body of function @symbol by @read. */
static __attribute__((noinline)) int body_read(const struct elf *elf, const char *symbol,
					       struct accessor *out,
					       int (*read)(uint16_t machine, const void *code,
							   size_t size, struct accessor *out))
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, BODY_MAX, &size);

	return code ? read(elf->machine, code, size, out) : -ENOENT;
}

int accessor_read_copied(const struct elf *elf, const char *symbol, int64_t at,
			 struct accessor *out)
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, BODY_MAX, &size);

	return code ? accessor_body_copied(elf->machine, code, size, at, out) : -ENOENT;
}

int accessor_read(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body);
}

int accessor_read_member(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_global);
}

int accessor_read_setter(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_setter);
}

int accessor_read_third(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_third);
}

int accessor_read_compared(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_compared);
}

int accessor_read_flag(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_flag);
}

int accessor_read_passed(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_passed);
}

int accessor_read_given(const struct elf *elf, const char *symbol, struct accessor *out)
{
	return body_read(elf, symbol, out, accessor_body_given);
}

int accessor_read_global(const struct elf *elf, const char *symbol, uint64_t *vaddr)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	struct elf_symbol found;
	size_t size;
	const unsigned char *code = function_find(elf, symbol, BODY_MAX, &found, &size);

	if (!code)
		return -ENOENT;
	return arch ? arch->global(code, size, found.value, vaddr) : -EINVAL;
}

int accessor_body_element(uint16_t machine, const void *code, size_t size, uint64_t vaddr,
			  struct accessor_element *out)
{
	const struct arch_code *arch = arch_code_of(machine);

	return arch ? arch->element(code, size, vaddr, out) : -EINVAL;
}

int accessor_read_element(const struct elf *elf, const char *symbol, struct accessor_element *out)
{
	struct elf_symbol found;
	size_t size;
	const unsigned char *code = function_find(elf, symbol, BODY_MAX, &found, &size);

	return code ? accessor_body_element(elf->machine, code, size, found.value, out) : -ENOENT;
}

int accessor_match(const struct elf *elf, const char *symbol, const char *pattern,
		   int64_t *offset)
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, ACCESSOR_MATCH, &size);

	return code ? byte_pattern_find(code, size, pattern, offset) : -ENOENT;
}
