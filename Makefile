# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make, make demo, test, fuzz, dist; V=1 shows the commands; make help. README.md says what is where.

VERSION	:= 0.1.0
# Archived sources have them in a file; a git repository around these is not theirs.
COMMIT	?= $(or $(firstword $(shell cat .commit 2>/dev/null || git rev-parse --short=12 HEAD 2>/dev/null)),unknown)
SOURCE_DATE_EPOCH ?= $(shell sed 's/.* //' .commit 2>/dev/null || git log -1 --format=%ct 2>/dev/null)

# What is downloaded and not installed, for other architectures and for the kernels of the tests.
CACHE	?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dbslower
MACHINE	:= $(shell uname -m)
ARCH	?= $(MACHINE)
CLANG	?= clang

# Another architecture than this machine's: clang, with musl and headers from a folder of its own.
ifneq ($(ARCH),$(MACHINE))
ifneq ($(ARCH),aarch64)
$(error ARCH=$(ARCH): only aarch64 can be built for on other machines)
endif
SYSROOT	?= $(CACHE)/sysroot-$(ARCH)
TRIPLET	:= $(ARCH)-linux-gnu
MUSL	:= $(SYSROOT)/usr/lib/$(ARCH)-linux-musl
BUILD	?= build/$(ARCH)
override CC := $(if $(filter default,$(origin CC)),$(CLANG),$(CC)) --target=$(TRIPLET) \
	   --sysroot=$(SYSROOT) -isystem $(SYSROOT)/usr/include/$(ARCH)-linux-musl -mno-outline-atomics
# The linker's share; -B is where crt1.o is found.
CROSS_LDFLAGS := -B$(MUSL) -L$(MUSL)
STRIP	?= $(TRIPLET)-strip
endif

BUILD	?= build
DIST	?= $(BUILD)/dist
CC	:= $(if $(filter default,$(origin CC)),musl-gcc,$(CC))
STRIP	?= strip
PYTHON	?= /usr/bin/python3

PREFIX		?= /usr/local
SBINDIR		?= $(PREFIX)/sbin
MANDIR		?= $(PREFIX)/share/man
BASHCOMPDIR	?= $(PREFIX)/share/bash-completion/completions
DESTDIR		?=

ifneq ($(V),1)
Q	:= @
say	= @printf '  %-8s%s\n' '$(1)' '$(2)';
endif

# musl-gcc sees its own headers only; the kernel's come behind them.
MULTIARCH := $(shell gcc -print-multiarch 2>/dev/null)
UAPI	:= $(if $(CROSS_LDFLAGS),,$(if $(findstring musl,$(CC)),-idirafter /usr/include \
	   -idirafter /usr/include/$(MULTIARCH)))
WARN	:= -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror
CFLAGS	?= -Os -g
# The path of every statement; the rest runs once and is kept small.
CFLAGS_cli/escape := -O2
CFLAGS_sql/fingerprint := -O2
CFLAGS_cli/output := -O2
CFLAGS_loader/stream := -O2
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(UAPI) $(WARN) $(CFLAGS) -fno-pie -ffunction-sections \
	     -fdata-sections -fno-asynchronous-unwind-tables '-ffile-prefix-map=$(CURDIR)=.'
ALL_LDFLAGS = $(CROSS_LDFLAGS) -static -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro $(LDFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v2 -O2 -std=gnu11 -I. -idirafter /usr/include/$(MULTIARCH) \
	     $(filter-out -Wmissing-prototypes,$(WARN))

DIRS	:= usdt host loader sql probe db db/postgres db/mysql cli
SOURCES	:= $(foreach dir,$(DIRS),$(sort $(wildcard $(dir)/*.c)))
OBJECTS	:= $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/bpf/embed.o
LIBRARY	:= $(filter-out $(BUILD)/cli/main.o,$(OBJECTS))
PROGRAMS := $(sort $(wildcard bpf/*.bpf.c))
UNIT	:= $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(sort $(wildcard tests/unit/*.c)))
TOOLS	:= $(patsubst tests/tools/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/tools/*.c)))
GUEST	:= $(patsubst tests/guest/%.c,$(BUILD)/tests/guest/%,$(sort $(wildcard tests/guest/*.c)))

FUZZERS	:= $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))

.PHONY: all help tests guest others fuzzers demo test kernels fuzz soak bench analyze coverage \
	install uninstall clean dist tools-build
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/dbslower

help:
	@echo 'make                  builds $(BUILD)/dbslower'
	@echo 'make ARCH=aarch64     builds build/aarch64/dbslower, on any machine'
	@echo 'make demo             installs what is needed, shows the slow statements of a PostgreSQL'
	@echo 'make test             installs what is needed, runs all tests; T= names some, or pytest options'
	@echo 'make kernels          boots other kernels and tests under them; KERNELS=x86_64-5.10,... selects'
	@echo 'make soak             full speed and churn for SECONDS=180, then every fault: do the books balance?'
	@echo 'make bench            measures what tracing costs; B= names parts: victim,hits,pgbench,maria,start,rate,scale'
	@echo 'make analyze          reads the C with four tools; A= names some: gcc clang cppcheck tidy'
	@echo 'make coverage         runs the tests, or those of T=, and tells how much of each room they ran'
	@echo 'make install          to PREFIX ($(PREFIX)); DESTDIR too. make uninstall takes it away'
	@echo 'make dist             packs the sources. make clean removes $(BUILD)'

# What the build needs, named with the package that has it (apt, dnf, apk).
need = $(if $(shell command -v $(1) 2>/dev/null),,$(error $(1) is missing: apt-get install $(2), \
	dnf install $(3), or apk add $(4)))
tools-build:
	$(call need,$(firstword $(CC)),musl-tools,musl-gcc,gcc musl-dev)
	$(call need,$(firstword $(CLANG)),clang,clang,clang)
	$(call need,gcc,gcc,gcc,gcc)
	$(if $(wildcard /usr/include/linux/bpf.h),,$(error linux/bpf.h is missing: \
		apt-get install linux-libc-dev, dnf install kernel-headers, or apk add linux-headers))
ifneq ($(ARCH),$(MACHINE))
	$(call need,$(STRIP),binutils-$(ARCH)-linux-gnu,binutils-$(ARCH)-linux-gnu,binutils-$(ARCH))
	$(if $(wildcard $(SYSROOT)/usr/include/linux/bpf.h),,$(error no musl for $(ARCH) in $(SYSROOT): \
		run ci/dependencies $(ARCH), or name its folder as SYSROOT))
endif

$(BUILD)/dbslower: $(BUILD)/dbslower.debug
	$(call say,STRIP,$@)$(STRIP) -s -R .comment -o $@ $<

$(BUILD)/dbslower.debug: $(OBJECTS)
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -Wl,-Map=$(BUILD)/dbslower.map -o $@ $(OBJECTS)

$(BUILD)/%.o: %.c | tools-build
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(CFLAGS_$*) -MMD -MP -c -o $@ $<

# Labels of jumps become local ones, as newer clangs have them: in the object each is a symbol.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | tools-build
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) $(BPF_CFLAGS) -fno-addrsig -MMD -MP -MT $@ -S -o $(@:.o=.s) $<
	$(Q)sed -i 's/\bLBB/.LBB/g' $(@:.o=.s)
	$(Q)$(CLANG) -target bpf -mcpu=v2 -c -o $@ $(@:.o=.s)

$(BUILD)/bpf/embed.o: bpf/embed.S $(PROGRAMS:%.c=$(BUILD)/%.o)
	$(call say,EMBED,$<)$(CC) $(ALL_CFLAGS) -I$(BUILD) -c -o $@ $<

# Only the file that says so knows version and commit: a commit rebuilds one file.
CFLAGS_cli/version = -DVERSION='"$(VERSION)"' -DCOMMIT='"$(COMMIT)"'
$(BUILD)/cli/version.o: $(BUILD)/version.stamp
$(BUILD)/version.stamp: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION) $(COMMIT)' | cmp -s - $@ || echo '$(VERSION) $(COMMIT)' >$@
FORCE:

# Unit tests and the tests' own tools: with the ordinary compiler, not stripped.
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(LIBRARY)
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^
$(BUILD)/tests/%: $(BUILD)/tests/tools/%.o $(LIBRARY)
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

tests: all $(UNIT) $(TOOLS)

# Fuzz targets: all of the sources once more, watched by sanitizers, with clang's libFuzzer.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARN) -O1 -g -fno-omit-frame-pointer $(SANITIZE)
$(BUILD)/fuzz/obj/%.o: %.c | tools-build
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link \
		$(filter -D%,$(CFLAGS_$*)) -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/obj/cli/version.o: $(BUILD)/version.stamp
$(BUILD)/fuzz/library.a: $(LIBRARY:$(BUILD)/%.o=$(BUILD)/fuzz/obj/%.o)
	$(call say,AR,$@)rm -f $@ && ar rc $@ $^
$(BUILD)/fuzz/obj/bpf/embed.o: $(BUILD)/bpf/embed.o
	@mkdir -p $(@D)
	@cp $< $@
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $(BUILD)/fuzz/library.a
	$(call say,LINK,$@)$(CLANG) $(SANITIZE) -fsanitize=fuzzer -o $@ $^

fuzzers: $(FUZZERS)

# What runs under the other kernels: an init and a program to be traced. They need sys/sdt.h.
guest: $(GUEST)
$(BUILD)/tests/guest/%: $(BUILD)/tests/guest/%.o
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

demo:
	@ci/dependencies build demo
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) ci/demo

# The same for aarch64, where ci/dependencies could get what it needs.
others:
	@[ ! -e $(CACHE)/sysroot-aarch64/usr/include/linux/bpf.h ] || [ $(MACHINE) = aarch64 ] || \
		$(MAKE) -s --no-print-directory ARCH=aarch64 BUILD=$(BUILD)/aarch64 CC=$(CLANG) all tests guest

# What the last ones need can be large; without it their tests are skipped.
test:
	@ci/dependencies build test
	@CACHE=$(CACHE) ci/dependencies dist aarch64 kernels || echo 'make test: some tests will be skipped' >&2
	@$(MAKE) -s --no-print-directory -j$$(nproc) all tests guest fuzzers
	@$(MAKE) -s --no-print-directory -j$$(nproc) others
	@BUILD=$(BUILD) CACHE=$(CACHE) ci/test $(T)

# Each fuzz target, or those that FUZZ names, for so many seconds; what is found stays in $(BUILD)/fuzz.
SECONDS	?= 60
fuzz:
	@ci/dependencies build fuzz
	@$(MAKE) -s --no-print-directory all fuzzers
	@BUILD=$(BUILD) $(PYTHON) tests/fuzzing.py --seconds $(SECONDS) $(FUZZ)

# Full speed for so many seconds, then so many backends that die, about 3000 a second; then each fault.
DEATHS	?= 1000000
soak: SECONDS = 180
soak:
	@ci/dependencies build test
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/soak.py --seconds $(SECONDS) --deaths $(DEATHS)
	@BUILD=$(BUILD) FAULTS=all ci/test tests/test_faults.py

# All of them, or those that KERNELS names; make test has the oldest and the newest.
KERNELS	?= all
kernels:
	@CACHE=$(CACHE) ci/dependencies build test aarch64 kernels
	@$(MAKE) -s --no-print-directory all guest
	@$(MAKE) -s --no-print-directory -j$$(nproc) others
	@BUILD=$(BUILD) CACHE=$(CACHE) KERNELS='$(KERNELS)' ci/test tests/test_kernels.py $(T)

# All parts, or those that B names; B=--help tells of them. No figure is a test.
bench:
	@ci/dependencies build test bench
	@$(MAKE) -s --no-print-directory all tests
	@BUILD=$(BUILD) $(PYTHON) tests/bench.py $(B)

# What the compilers do not say: minutes. A= names tools.
analyze:
	@ci/dependencies build analyze
	@ci/analyze $(A)

# Lines of each room that the tests run, or those that T names. With gcc and glibc, in a folder of its
# own: the sources are the same. A test that looks at the binary itself may fail there, which is no matter.
COVERAGE := $(abspath $(BUILD))/coverage
coverage:
	@ci/dependencies build test
	@$(MAKE) -s --no-print-directory -j$$(nproc) BUILD=$(COVERAGE) CC=gcc CFLAGS='-O0 -g --coverage' all tests guest
	@find $(COVERAGE) -name '*.gcda' -delete
	@BUILD=$(COVERAGE) GCOV_ERROR_FILE=/dev/null CACHE=$(CACHE) ci/test $(T) || true
	@ci/coverage $(COVERAGE)

# The names that choose a command, see cli/command.c.
ALIASES	:= dbstat tplist
install: all
	install -D -m 755 $(BUILD)/dbslower $(DESTDIR)$(SBINDIR)/dbslower
	install -D -m 644 cli/dbslower.8 $(DESTDIR)$(MANDIR)/man8/dbslower.8
	install -D -m 644 cli/completion.bash $(DESTDIR)$(BASHCOMPDIR)/dbslower
	for name in $(ALIASES); do \
		ln -sf dbslower $(DESTDIR)$(SBINDIR)/$$name && \
		ln -sf dbslower.8 $(DESTDIR)$(MANDIR)/man8/$$name.8 && \
		ln -sf dbslower $(DESTDIR)$(BASHCOMPDIR)/$$name || exit 1; \
	done

uninstall:
	for name in dbslower $(ALIASES); do \
		rm -f $(DESTDIR)$(SBINDIR)/$$name $(DESTDIR)$(MANDIR)/man8/$$name.8 \
			$(DESTDIR)$(BASHCOMPDIR)/$$name || exit 1; \
	done

# The files of a release, in DIST; ci/dist tells which.
dist:
	@ci/dependencies build dist
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) DIST=$(DIST) ARCH=$(ARCH) VERSION=$(VERSION) COMMIT=$(COMMIT) \
		SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) MAKE='$(MAKE)' ci/dist

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
