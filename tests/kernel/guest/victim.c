// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * victim: a server with the USDT probes memsqld:query__start(number, text) and
 * memsqld:query__done(), for kernel tests in which nothing else runs. Its sites differ in the
 * location of the text, and are executed only while they are traced. It answers each line on
 * standard input with lines that end in "end":
 *
 *  run		runs statements and prints "expect MS TEXT" for each
 *  burst N	runs N statements with long texts, as fast as possible
 *  state	"state N N SAME": its semaphores, and whether its code is unchanged since the start
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__riscv) && defined(__clang__)
#define STAP_SDT_ARG_CONSTRAINT nmr	/* clang 14 crashes at the default, "nor" */
#endif
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* Weak, or the compiler inlines it into its only caller. */
#define NOINLINE __attribute__((noinline, weak))
#define SEMAPHORE __attribute__((section(".probes"), used))
#define BURST_TEXT 4000

SEMAPHORE volatile unsigned short memsqld_query__start_semaphore;
SEMAPHORE volatile unsigned short memsqld_query__done_semaphore;

extern const unsigned char __executable_start[], etext[];

struct request {
	unsigned int padding[5], ms;
	const char *text;
};

static const char *global_text;
static char burst_text[BURST_TEXT + 1];

void done(void);
void work(unsigned int ms);
void in_register(const char *text, unsigned int ms);
void on_stack(const char *text, unsigned int ms);
void in_request(const struct request *request);
void in_variable(const char *text, unsigned int ms);

NOINLINE void done(void)
{
	if (memsqld_query__done_semaphore)
		STAP_PROBE(memsqld, query__done);
}

NOINLINE void work(unsigned int ms)
{
	if (ms)
		usleep(ms * 1000);
}

/* The text is in a register; clang would prefer memory. */
NOINLINE void in_register(const char *text, unsigned int ms)
{
	long number = ms;

	if (memsqld_query__start_semaphore)
		__asm__ volatile(STAP_PROBE_ASM(memsqld, query__start, -8@%[number] 8@%[text])
				 :: [number] "r"(number), [text] "r"(text));
	work(ms);
	done();
}

/* The text is on the stack, at an offset from the stack or frame pointer. */
NOINLINE void on_stack(const char *text, unsigned int ms)
{
	const char *volatile kept = text;
	volatile short number = -3;

	if (memsqld_query__start_semaphore)
		__asm__ volatile(STAP_PROBE_ASM(memsqld, query__start,
						STAP_PROBE_ASM_TEMPLATE(2))
				 :: STAP_PROBE_ASM_OPERANDS(2, number, kept));
	work(ms);
	done();
}

/* The text is a member behind a pointer. */
NOINLINE void in_request(const struct request *request)
{
	if (memsqld_query__start_semaphore)
		STAP_PROBE2(memsqld, query__start, -7, request->text);
	work(request->ms);
	/* A second site of the same probe. */
	if (memsqld_query__done_semaphore)
		STAP_PROBE(memsqld, query__done);
}

/* The text is in a variable, which a spec on x86 names by its symbol. */
NOINLINE void in_variable(const char *text, unsigned int ms)
{
	global_text = text;
	if (memsqld_query__start_semaphore) {
		__asm__ volatile("" ::: "memory");
		STAP_PROBE2(memsqld, query__start, (unsigned char)ms, global_text);
	}
	work(ms);
	done();
}

static void run(void)
{
	static struct request request = { { 0 }, 5, "select 3 /* in a request */" };

	for (int i = 0; i < 3; i++) {
		printf("expect 20 select 1 /* in a register */\n");
		in_register("select 1 /* in a register */", 20);
		printf("expect 10 select 2 /* on the stack */\n");
		on_stack("select 2 /* on the stack */", 10);
		printf("expect 5 %s\n", request.text);
		in_request(&request);
		printf("expect 0 update t set n = 4 /* in a variable */\n");
		in_variable("update t set n = 4 /* in a variable */", 0);
	}
}

static void burst(long count)
{
	memset(burst_text, 'x', BURST_TEXT);
	while (count-- > 0)
		in_register(burst_text, 0);
}

static uint64_t code_sum(void)
{
	const volatile unsigned char *p = __executable_start;
	uint64_t sum = 0;

	for (; p < etext; p++)
		sum = sum * 31 + *p;
	return sum;
}

int main(void)
{
	uint64_t sum = code_sum();
	char line[80];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("end\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "run\n"))
			run();
		else if (!strncmp(line, "burst ", 6))
			burst(strtol(line + 6, NULL, 10));
		else if (!strcmp(line, "state\n"))
			printf("state %u %u %s\n", memsqld_query__start_semaphore,
			       memsqld_query__done_semaphore,
			       code_sum() == sum ? "same" : "changed");
		printf("end\n");
	}
	return 0;
}
