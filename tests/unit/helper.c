// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* For how long a user whose memory does not answer is waited for, and left out. */
#include "db/sample/helper.h"

#include "base/base.h"
#include "tests/unit/check.h"

static uint64_t stall(struct helper_user *user, uint64_t now_ns)
{
	helper_user_stalls(user, 1, true, now_ns);
	return user->stalled ? (user->until_ns - now_ns) / NS_PER_S : 0;
}

static void one_who_never_answers_is_left_out_for_twice_as_long(void)
{
	static const uint64_t expected_s[] = { 0, 10, 20, 40, 80 };
	struct helper_user user = { .uid = 1 };
	uint64_t now_ns = NS_PER_S, s;

	for (size_t i = 0; i < sizeof(expected_s) / sizeof(*expected_s); i++) {
		s = stall(&user, now_ns);
		CHECK(s == expected_s[i], "%zu: %llu s", i, (unsigned long long)s);
		now_ns = i ? user.until_ns : now_ns + 1;
	}
}

static void one_who_has_answered_is_not_left_out_for_longer(void)
{
	struct helper_user user = { .uid = 1 };
	uint64_t now_ns = NS_PER_S, s;

	for (int i = 0; i < 4; i++) {
		stall(&user, now_ns);
		now_ns = user.until_ns;
	}
	/* 40 s ago */
	s = stall(&user, user.until_ns + 41 * (uint64_t)NS_PER_S);
	CHECK(s == 40, "%llu s", (unsigned long long)s);
	s = stall(&user, user.until_ns + 100000 * (uint64_t)NS_PER_S);
	CHECK(s == 20, "%llu s", (unsigned long long)s);
	s = stall(&user, user.until_ns + 19 * (uint64_t)NS_PER_S);
	CHECK(s == 40, "%llu s", (unsigned long long)s);
	helper_user_stalls(&user, 1, false, user.until_ns + 100000 * (uint64_t)NS_PER_S);
	CHECK(user.stalled && user.until_ns == UINT64_MAX, "it still waits");
}

static void the_second_wait_is_long_unless_many_are_left_out(void)
{
	static struct helper_shared shared = { .uid = 1, .nusers = 20, .users[19].uid = 1 };
	static const uint64_t expected_ms[] = { 100, 1000, 100 };
	uint64_t ms;

	for (unsigned int i = 0; i < 3; i++) {
		shared.users[19].stalls = i;
		ms = helper_wait_ns(&shared) / NS_PER_MS;
		CHECK(ms == expected_ms[i], "%u: %llu ms", i, (unsigned long long)ms);
	}
	shared.users[19].stalls = 1;
	for (int i = 0; i < 19; i++) {
		shared.users[i].uid = (uint32_t)i + 2;
		shared.users[i].stalled = true;
		ms = helper_wait_ns(&shared) / NS_PER_MS;
		CHECK(ms == (i < 9 ? 1000u / ((unsigned int)i + 2) : 100u), "%d: %llu ms", i,
		      (unsigned long long)ms);
	}
}

int main(void)
{
	RUN(one_who_never_answers_is_left_out_for_twice_as_long);
	RUN(one_who_has_answered_is_not_left_out_for_longer);
	RUN(the_second_wait_is_long_unless_many_are_left_out);
	return check_done();
}
