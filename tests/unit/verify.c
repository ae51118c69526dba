/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's verifier must accept whatever spec_emit() makes for this host's architecture. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/unit/check.h"
#include "tests/unit/corpus.h"
#include "tests/unit/genspec.h"
#include "usdt/emit.h"

#if defined(__x86_64__)
#define HOST_MACHINE	EM_X86_64
#define HOST_CORPUS	"x86_64"
#elif defined(__aarch64__)
#define HOST_MACHINE	EM_AARCH64
#define HOST_CORPUS	"aarch64"
#else
#define HOST_MACHINE	EM_NONE
#define HOST_CORPUS	""
#endif

#define RANDOM_SPECS	500
#define MAIN_INSNS	2

static char verifier_log[16384];

static uint32_t kernel_version(void)
{
	unsigned int a = 0, b = 0, c = 0;
	struct utsname uts;

	uname(&uts);
	sscanf(uts.release, "%u.%u.%u", &a, &b, &c);
	return a << 16 | b << 8 | (c > 255 ? 255 : c);
}

/* Loads @n instructions at @insns with the log, if wanted. 0 or a negative errno. */
static int load(const struct bpf_insn *insns, int n, bool log)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = n;
	attr.license = (uintptr_t)"GPL";
	attr.kern_version = kernel_version();
	if (log) {
		*verifier_log = '\0';
		attr.log_buf = (uintptr_t)verifier_log;
		attr.log_size = sizeof(verifier_log);
		attr.log_level = 1;
	}
	fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

/* Why programs cannot be loaded here, or NULL. */
static const char *cannot_load(void)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT },
	};

	if (HOST_MACHINE == EM_NONE)
		return "no emitter for this host's architecture";
	switch (load(nothing, 2, false)) {
	case 0:
		return NULL;
	case -EPERM:
	case -EACCES:
		return "bpf() is not permitted (EPERM)";
	case -ENOSYS:
		return "no bpf() in this kernel (ENOSYS)";
	default:
		return "bpf() loads no kprobe program here";
	}
}

static int any_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	(void)arg;
	*vaddr = gen_mix(len) >> 17;
	return name ? 0 : -ENOENT;
}

/* Emits @text behind a main function that calls it, and loads both. */
static void load_spec(const char *text, void *arg)
{
	struct bpf_insn insns[MAIN_INSNS + EMIT_INSNS_MAX] = {
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct emit_target target = {
		.machine = HOST_MACHINE, .site_vaddr = GEN_SITE,
		.read_helper = BPF_FUNC_probe_read_user, .symbol = any_symbol,
	};
	enum spec_reason reason;
	struct spec spec;
	int n, err;

	spec_parse(HOST_MACHINE, true, text, strlen(text), &spec);
	n = spec_emit(&spec, &target, insns + MAIN_INSNS, EMIT_INSNS_MAX, &reason);
	if (n == -ENOTSUP && reason == SPEC_PARTIAL_SYMBOL)
		return;
	CHECK(n > 0, "%s: %d, %s", text, n, spec_reason(reason));
	if (n <= 0)
		return;
	err = load(insns, MAIN_INSNS + n, false);
	if (err)
		load(insns, MAIN_INSNS + n, true);
	CHECK(!err, "%s: error %d\n%s", text, -err, verifier_log);
	++*(int *)arg;
}

static void verifier_accepts_corpus(void)
{
	const char *why = cannot_load();
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(corpus_each(HOST_CORPUS, load_spec, &loaded) > 0, "in %s", corpus_dir);
	CHECK(loaded > 100, "%d", loaded);
}

static void verifier_accepts_random(void)
{
	const char *why = cannot_load();
	uint64_t seed = 4;
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	for (int i = 0; i < RANDOM_SPECS && check_failures < 3; i++) {
		struct gen_spec g;

		gen_spec(&seed, HOST_MACHINE, &g);
		load_spec(g.text, &loaded);
	}
	CHECK(loaded == RANDOM_SPECS, "%d", loaded);
}

/* The verifier is not deaf: it refuses a function that reads past ctx. */
static void verifier_refuses(void)
{
	static const struct bpf_insn bad[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = BPF_REG_1, .off = 4096 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const char *why = cannot_load();

	if (why)
		SKIP(why);
	else
		CHECK(load(bad, 2, false) < 0);
}

int main(int argc, char **argv)
{
	corpus_init(argc, argv);
	RUN(verifier_refuses);
	RUN(verifier_accepts_corpus);
	RUN(verifier_accepts_random);
	return check_done();
}
