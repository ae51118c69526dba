################################################################################
#
# dbslower
#
################################################################################
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

DBSLOWER_VERSION = 0.1.0
DBSLOWER_SOURCE = dbslower-$(DBSLOWER_VERSION).tar.gz
DBSLOWER_SITE = $(call qstrip,$(BR2_PACKAGE_DBSLOWER_SITE))
DBSLOWER_LICENSE = GPL-2.0 or BSD-2-Clause
DBSLOWER_LICENSE_FILES = LICENSE LICENSES/GPL-2.0-only.txt LICENSES/BSD-2-Clause.txt

DBSLOWER_CLANG = clang
ifeq ($(BR2_PACKAGE_LLVM_BPF),y)
DBSLOWER_DEPENDENCIES = host-clang
DBSLOWER_CLANG = $(HOST_DIR)/bin/clang
endif

# The toolchain provides the kernel headers; UAPI would refer to those of the build machine.
DBSLOWER_MAKE_OPTS = \
	ARCH=$(BR2_ARCH) \
	BUILD=build \
	CC="$(TARGET_CC)" \
	CLANG="$(DBSLOWER_CLANG) -isystem $(STAGING_DIR)/usr/include" \
	STRIP="$(TARGET_STRIP)" \
	CFLAGS="$(TARGET_CFLAGS)" \
	LDFLAGS="$(TARGET_LDFLAGS)" \
	UAPI=

define DBSLOWER_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) $(DBSLOWER_MAKE_OPTS) all
endef

define DBSLOWER_INSTALL_TARGET_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) $(DBSLOWER_MAKE_OPTS) \
		PREFIX=/usr DESTDIR=$(TARGET_DIR) install
endef

define DBSLOWER_LINUX_CONFIG_FIXUPS
	$(call KCONFIG_ENABLE_OPT,CONFIG_BPF_SYSCALL)
	$(call KCONFIG_ENABLE_OPT,CONFIG_BPF_JIT)
	$(call KCONFIG_ENABLE_OPT,CONFIG_PERF_EVENTS)
	$(call KCONFIG_ENABLE_OPT,CONFIG_FTRACE)
	$(call KCONFIG_ENABLE_OPT,CONFIG_UPROBE_EVENTS)
endef

$(eval $(generic-package))
