# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make, make check, demo, dist; V=1 shows the commands; make help. README.md says what is where.

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
CFLAGS_sql/lexer := -O2
CFLAGS_sql/printer := -O2
CFLAGS_sql/token := -O2
CFLAGS_cli/output := -O2
CFLAGS_loader/ringbuf := -O2
CFLAGS_loader/perfbuf := -O2
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(UAPI) $(WARN) $(CFLAGS) -fno-pie -ffunction-sections \
	     -fdata-sections -fno-asynchronous-unwind-tables '-ffile-prefix-map=$(CURDIR)=.'
ALL_LDFLAGS = $(CROSS_LDFLAGS) -static -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro $(LDFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v2 -O2 -std=gnu11 -I. -idirafter /usr/include/$(MULTIARCH) \
	     $(filter-out -Wmissing-prototypes,$(WARN))

DIRS	:= usdt host loader sql probe db db/postgres db/mysql cli
SOURCES	:= $(foreach dir,$(DIRS),$(sort $(wildcard $(dir)/*.c)))
OBJECTS	:= $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/bpf/embed.o
PROGRAMS := $(sort $(wildcard bpf/*.bpf.c))

.PHONY: all help demo install uninstall clean dist tools-build
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/dbslower

help::
	@echo 'make                  builds $(BUILD)/dbslower'
	@echo 'make ARCH=aarch64     builds build/aarch64/dbslower, on any machine'
	@echo 'make demo             installs what is needed, shows the slow statements of a PostgreSQL'
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

demo:
	@ci/dependencies build demo
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) ci/demo

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

# Tests, fuzzing, measurements and analyses. An archive of the sources comes without them.
-include tests/Makefile.inc

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
