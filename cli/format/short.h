/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers with three significant digits, for columns that are narrow. Not rounded but cut. */
#ifndef CLI_FORMAT_SHORT_H
#define CLI_FORMAT_SHORT_H

#include <stdint.h>

#define SHORT_TEXT	24	/* bytes, with the NUL; below a million hours at most 6 are used */

/* Write @ns with its unit to @buf: "0", "123ns", "1.23ms", "59.9s", "1.50h". Return @buf. */
const char *short_duration(char buf[SHORT_TEXT], uint64_t ns);

/* Write @thousandths / 1000 to @buf: "0", "0.05", "12.3", "1.23k", "45.6M". Return @buf. */
const char *short_number(char buf[SHORT_TEXT], uint64_t thousandths);

/* Write @count to @buf, as it is below a million: "0", "123", "999999", "1.23M". Return @buf. */
const char *short_count(char buf[SHORT_TEXT], uint64_t count);

#endif
