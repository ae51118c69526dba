# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make help lists the targets; V=1 shows the commands. docs/architecture.md describes the directories.

VERSION	:= 0.1.0
# An archive of the sources has both in .commit; it may be inside the git repository of something else.
COMMIT	?= $(or $(firstword $(shell cat .commit 2>/dev/null || git rev-parse --short=12 HEAD 2>/dev/null)),unknown)
SOURCE_DATE_EPOCH ?= $(shell sed 's/.* //' .commit 2>/dev/null || git log -1 --format=%ct 2>/dev/null)

# Downloads that are not installed: for other architectures, and kernels for the tests.
CACHE	?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dbslower
MACHINE	:= $(shell uname -m)
ARCH	?= $(MACHINE)
CLANG	?= clang

# Architectures: the files of usdt/ with the descriptor, those that decode instructions, and options of a cross build.
ARCHS	:= x86_64 aarch64 riscv64
DESCRIPTOR_x86_64 := arch_x86
CODE_x86_64 := accessor_x86 code_x86 x86_length
DESCRIPTOR_aarch64 := arch_arm
CODE_aarch64 := accessor_arm
CROSS_CFLAGS_aarch64 := -mno-outline-atomics
DESCRIPTOR_riscv64 := arch_riscv
CODE_riscv64 := accessor_riscv riscv_compressed

# Cross build: clang, with musl and the kernel headers of a sysroot.
ifneq ($(ARCH),$(MACHINE))
ifeq ($(filter $(ARCH),$(filter-out x86_64,$(ARCHS))),)
$(error ARCH=$(ARCH): no cross build for this architecture; must be one of $(filter-out x86_64,$(ARCHS)))
endif
SYSROOT	?= $(CACHE)/sysroot-$(ARCH)
TRIPLET	:= $(ARCH)-linux-gnu
MUSL	:= $(SYSROOT)/usr/lib/$(ARCH)-linux-musl
BUILD	?= build/$(ARCH)
override CC := $(if $(filter default,$(origin CC)),$(CLANG),$(CC)) --target=$(TRIPLET) \
	   --sysroot=$(SYSROOT) -isystem $(SYSROOT)/usr/include/$(ARCH)-linux-musl \
	   -idirafter $(SYSROOT)/usr/include/$(TRIPLET) $(CROSS_CFLAGS_$(ARCH))
# For the linker; -B is the directory of crt1.o.
CROSS_LDFLAGS := -B$(MUSL) -L$(MUSL)
STRIP	?= $(TRIPLET)-strip
endif

BUILD	?= build
DIST	?= $(BUILD)/dist
CC	:= $(if $(filter default,$(origin CC)),musl-gcc,$(CC))
STRIP	?= strip
PYTHON	?= /usr/bin/python3
# Of the packages, and the supplier in the SBOM.
MAINTAINER ?= The dbslower authors <dbslower@localhost>

PREFIX		?= /usr/local
SBINDIR		?= $(PREFIX)/sbin
MANDIR		?= $(PREFIX)/share/man
BASHCOMPDIR	?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR	?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR	?= $(PREFIX)/share/fish/vendor_completions.d
DESTDIR		?=

ifneq ($(V),1)
Q	:= @
say	= @printf '  %-8s%s\n' '$(1)' '$(2)';
endif

# musl-gcc searches only its own headers; the kernel's are searched after them.
MULTIARCH := $(shell gcc -print-multiarch 2>/dev/null)
UAPI	:= $(if $(CROSS_LDFLAGS),,$(if $(findstring musl,$(CC)),-idirafter /usr/include \
	   -idirafter /usr/include/$(MULTIARCH)))
# WERROR=-Werror makes warnings errors; make check sets it.
WERROR	?=
WARN	:= -Wall -Wextra -Wshadow -Wmissing-prototypes
# No constant array is compared by its address. -malign-data: only gcc for x86-64 aligns arrays for speed.
CFLAGS	?= -Oz -g -fmerge-all-constants -fomit-frame-pointer $(ALIGN)
ALIGN	:= $(shell $(CC) -malign-data=abi -E -x c /dev/null >/dev/null 2>&1 && echo -malign-data=abi)
# Code that runs for every statement is compiled for speed, the rest for size.
CFLAGS_cli/format/escape := -O2
CFLAGS_cli/format/field_json := -O2
CFLAGS_cli/output := -O2
CFLAGS_loader/ringbuf := -O2
CFLAGS_loader/perfbuf := -O2
CFLAGS_sql/fingerprint := -O2
CFLAGS_sql/lexer := -O2
CFLAGS_sql/printer := -O2
CFLAGS_sql/token := -O2
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(UAPI) $(WARN) $(WERROR) $(CPPFLAGS) $(CFLAGS) -fno-pie -ffunction-sections \
	     -fdata-sections -fno-asynchronous-unwind-tables '-ffile-prefix-map=$(CURDIR)=.'
# noseparate-code: without it x86-64 pads each segment to a page of the file, 8 KiB. common-page-size:
# the data follow the code in the file, without padding to a page; their addresses are a page apart.
ALL_LDFLAGS = $(CROSS_LDFLAGS) -static -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noexecstack \
	      -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,-z,common-page-size=64 $(LDFLAGS)
BPF_CFLAGS = -target bpf -mcpu=v2 -O2 -std=gnu11 -I. -idirafter /usr/include/$(MULTIARCH) \
	     $(filter-out -Wmissing-prototypes,$(WARN)) $(WERROR)

# The commands to link, in the order of --help; the first is the default. An appliance image may
# need fewer: make COMMANDS='slow list doctor'. Each is cli/cmd_NAME.c.
EVERY_COMMAND := slow list stat top locks ps plan transactions trace record replay report doctor
COMMANDS ?= $(EVERY_COMMAND)
$(foreach name,$(COMMANDS),$(if $(wildcard cli/cmd_$(name).c),,$(error COMMANDS: unknown command \
	$(name); must be of $(EVERY_COMMAND))))

DIRS	:= base usdt host loader sql probe $(foreach room,db cli,$(room) $(patsubst %/,%,$(wildcard $(room)/*/)))
SOURCES	:= $(foreach dir,$(DIRS),$(sort $(wildcard $(dir)/*.c)))
OBJECTS	:= $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/commands.o $(BUILD)/cli/report/assets.o $(BUILD)/bpf/embed.o
# Files of other architectures are only listed, for which no instruction is decoded.
FOREIGN	:= $(foreach arch,$(filter-out $(ARCH),$(ARCHS)),$(CODE_$(arch)) \
	   $(if $(filter list,$(COMMANDS)),,$(DESCRIPTOR_$(arch)))) $(if $(filter list,$(COMMANDS)),,arch_other)
LINKED	:= $(filter-out $(FOREIGN:%=$(BUILD)/usdt/%.o),$(OBJECTS))
PROGRAMS := $(sort $(wildcard bpf/*.bpf.c))

.PHONY: all help demo pictures install uninstall clean dist sign tools-build
.DELETE_ON_ERROR:
# Kept for the tests; only pattern rules name them.
.SECONDARY: $(PROGRAMS:%.c=$(BUILD)/%.o)

all: $(BUILD)/dbslower

help::
	@echo 'make                  builds $(BUILD)/dbslower'
	@echo "make COMMANDS='slow list doctor'  links only these commands"
	@echo 'make ARCH=aarch64     builds build/aarch64/dbslower, on any machine; also ARCH=riscv64'
	@echo 'make demo             installs the dependencies, then traces a throwaway PostgreSQL'
	@echo 'make pictures         records and draws docs/pictures again, as root'
	@echo 'make install          installs to PREFIX ($(PREFIX)) below DESTDIR; make uninstall removes it'
	@echo 'make dist             builds the files of a release in DIST ($(DIST))'
	@echo 'make sign             signs SHA256SUMS in DIST by gpg, with its default key or KEY'
	@echo 'make clean            removes $(BUILD)'

# Requirements of the build, with the package of each (apt, dnf, apk).
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

$(BUILD)/dbslower.debug: $(LINKED)
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -Wl,-Map=$(BUILD)/dbslower.map -o $@ $(LINKED) $(LDLIBS)

$(BUILD)/%.o: %.c | tools-build
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(CFLAGS_$*) -MMD -MP -c -o $@ $<

# Make the labels of jumps local, as newer versions of clang do: else each becomes a symbol.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | tools-build
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) $(BPF_CFLAGS) -fno-addrsig -MMD -MP -MT $@ -S -o $(@:.o=.s) $<
	$(Q)sed -i 's/\bLBB/.LBB/g' $(@:.o=.s)
	$(Q)$(CLANG) -target bpf -mcpu=v2 -c -o $@ $(@:.o=.s)

$(BUILD)/bpf/embed.o: bpf/embed.S $(PROGRAMS:%.c=$(BUILD)/%.o)
	$(call say,EMBED,$<)$(CC) $(ALL_CFLAGS) -I$(BUILD) -c -o $@ $<

# The table of commands. What none of them refers to, the linker drops.
$(BUILD)/commands.c: FORCE
	@mkdir -p $(@D)
	@{ echo '#include "cli/command.h"'; \
	   printf 'extern const struct command command_%s;\n' $(COMMANDS); \
	   echo 'const struct command *const command_table[] = {'; \
	   printf '	&command_%s,\n' $(COMMANDS); \
	   echo '	(const struct command *)0'; \
	   echo '};'; \
	   echo 'const char command_others[] = " $(filter-out $(COMMANDS),$(EVERY_COMMAND)) ";'; } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/commands.o: $(BUILD)/commands.c | tools-build
	$(call say,CC,commands.c)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Style and script of the report, without comment lines and indentation, the style also without
# blanks beside punctuation, as string literals; and the policy of the page, which permits these two
# by their hashes and nothing else.
css_blanks = -e 's/ *\([{},;]\) */\1/g' -e 's/: \([^ ]\)/:\1/g' -e 's/;}/}/'
$(BUILD)/cli/report/report.css $(BUILD)/cli/report/report.js: $(BUILD)/%: %
	@mkdir -p $(@D)
	$(Q)sed -e 's/^[ 	]*//' -e '/^$$/d' -e '/^\/\//d' -e '/^\/\*.*\*\/$$/d' \
		$(if $(filter %.css,$@),$(css_blanks)) $< >$@
c_string = sed -e 's/[\\"]/\\&/g' -e 's/.*/	"&\\n"/' $(1)
base64_hash = $$(env printf "$$(sha256sum $(1) | sed -e 's/ .*//' -e 's/../\\x&/g')" | base64)
$(BUILD)/cli/report/assets.c: $(BUILD)/cli/report/report.css $(BUILD)/cli/report/report.js
	$(Q){ echo '#include "cli/report/page.h"'; \
	   echo 'const char *const report_css ='; $(call c_string,$(BUILD)/cli/report/report.css); echo ';'; \
	   echo 'const char *const report_js ='; $(call c_string,$(BUILD)/cli/report/report.js); echo ';'; \
	   echo 'const char *const report_policy = "default-src '"'none'; base-uri 'none'; form-action 'none';"'"'; \
	   echo '	"'" style-src 'sha256-$(call base64_hash,$(BUILD)/cli/report/report.css)';"'"'; \
	   echo '	"'" script-src 'sha256-$(call base64_hash,$(BUILD)/cli/report/report.js)'"'";'; } >$@
$(BUILD)/cli/report/assets.o: $(BUILD)/cli/report/assets.c | tools-build
	$(call say,CC,cli/report/assets.c)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Version and commit are known to one file only, so that a commit rebuilds no other.
CFLAGS_cli/version = -DVERSION='"$(VERSION)"' -DCOMMIT='"$(COMMIT)"'
$(BUILD)/cli/version.o: $(BUILD)/version.stamp
$(BUILD)/version.stamp: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION) $(COMMIT)' | cmp -s - $@ || echo '$(VERSION) $(COMMIT)' >$@
.PHONY: FORCE
FORCE:

demo:
	@ci/dependencies build demo
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) ci/demo

pictures: all
	@BUILD=$(BUILD) ci/pictures record
	@ci/pictures draw

# Names that select a command, see the alias of struct command.
ALIASES	:= $(if $(filter stat,$(COMMANDS)),dbstat) $(if $(filter list,$(COMMANDS)),tplist)
install: all
	install -D -m 755 $(BUILD)/dbslower $(DESTDIR)$(SBINDIR)/dbslower
	install -D -m 644 cli/dbslower.8 $(DESTDIR)$(MANDIR)/man8/dbslower.8
	install -D -m 644 cli/completion.bash $(DESTDIR)$(BASHCOMPDIR)/dbslower
	install -D -m 644 cli/completion.zsh $(DESTDIR)$(ZSHCOMPDIR)/_dbslower
	install -D -m 644 cli/completion.fish $(DESTDIR)$(FISHCOMPDIR)/dbslower.fish
	for name in $(ALIASES); do \
		ln -sf dbslower $(DESTDIR)$(SBINDIR)/$$name && \
		ln -sf dbslower.8 $(DESTDIR)$(MANDIR)/man8/$$name.8 && \
		ln -sf dbslower $(DESTDIR)$(BASHCOMPDIR)/$$name && \
		ln -sf dbslower.fish $(DESTDIR)$(FISHCOMPDIR)/$$name.fish || exit 1; \
	done

uninstall:
	rm -f $(DESTDIR)$(ZSHCOMPDIR)/_dbslower
	for name in dbslower $(ALIASES); do \
		rm -f $(DESTDIR)$(SBINDIR)/$$name $(DESTDIR)$(MANDIR)/man8/$$name.8 \
			$(DESTDIR)$(BASHCOMPDIR)/$$name $(DESTDIR)$(FISHCOMPDIR)/$$name.fish || exit 1; \
	done

# The files of a release, in DIST; see ci/dist.
dist:
	@ci/dependencies build dist
	@$(MAKE) -s --no-print-directory all
	@BUILD=$(BUILD) DIST=$(DIST) ARCH=$(ARCH) VERSION=$(VERSION) COMMIT=$(COMMIT) \
		SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) MAINTAINER='$(MAINTAINER)' MAKE='$(MAKE)' ci/dist

# The detached signature of what make dist created: SHA256SUMS.asc.
sign:
	@gpg --armor --yes $(if $(KEY),--local-user '$(KEY)') --output $(DIST)/SHA256SUMS.asc \
		--detach-sign $(DIST)/SHA256SUMS

clean:
	rm -rf $(BUILD)

# Tests, fuzzing, measurements and analyses. An archive of the sources comes without them.
-include tests/Makefile.inc

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
