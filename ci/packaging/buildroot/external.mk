# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
include $(BR2_EXTERNAL_DBSLOWER_PATH)/dbslower/dbslower.mk
