// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/literals.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/command.h"
#include "loader/lzma.h"

/* Of the linker: the pages of the literals, and their contents as an .lzma file. */
extern char literals_start[], literals_limit[];
extern const unsigned char literals_packed[], literals_packed_end[];

/* A section of its own keeps it out of the literals, to which the compiler may add arrays. */
__attribute__((section(".rodata.literals_message")))
static const char message[] = "dbslower: out of memory\n";

void literals_unpack(void)
{
	size_t size = (size_t)(literals_packed_end - literals_packed);
	void *out;

	if (lzma_decode(literals_packed, size, &out, &size))
		goto fail;
	memcpy(literals_start, out, size);
	free(out);
	if (!mprotect(literals_start, (size_t)(literals_limit - literals_start), PROT_READ))
		return;
fail:
	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(EXIT_FAILED);
}
