// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/version.h"

const char version_text[] = VERSION " (commit " COMMIT ")";
