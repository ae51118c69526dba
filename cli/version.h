/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

/* "0.1.0 (commit 0123456789ab)": the version and the commit it was built from. */
extern const char version_text[];

#endif
