/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Describe a server's file: its version and brand, and the sites that its probes were bound to, for
 * output by cli/. Texts taken from the file are foreign bytes.
 */
#ifndef DB_DISCOVER_DESCRIBE_H
#define DB_DISCOVER_DESCRIBE_H

#include "db/discover/bind.h"
#include "db/event.h"

/* An argument that a program uses at a site. */
struct target_arg {
	const char *name;		/* "text" */
	char spec[256];			/* its location, see usdt/spec.h; "" if absent */
	char absent[256];		/* the reason */
	bool replaced;			/* if absent: others provide the same */
};

#define TARGET_ARGS	64

/* A probe site. */
struct target_site {
	const struct engine_probe *probe;
	uint64_t vaddr, semaphore_vaddr;	/* as linked; semaphore 0: none */
	const struct target_arg *args;
	size_t nargs;
};

/* Call @each for every site of @bind with the arguments that its program uses. */
void describe_sites(const struct bind *bind,
		    void (*each)(void *arg, const struct target_site *site), void *arg);

/*
 * Read the version that follows engine->version_words in .rodata, as "15.14 (Debian
 * 15.14-0+deb12u1)". @version of @size bytes must be zeroed and stays "" if it is not found.
 */
void describe_version(const struct elf *elf, const struct engine *engine, char *version,
		      size_t size);

/* Return the address of engine->version_symbol as linked, or 0. */
uint64_t describe_version_vaddr(const struct elf *elf, const struct engine *engine);

/* Return the brand that @version names, static, or NULL if there is only one or it is unknown. */
const struct engine_brand *describe_brand(const struct engine *engine, const char *version);

/* Return the name of the product of @version, static: that of its brand if it is known. */
const char *describe_title(const struct engine *engine, const char *version);

/* Set the names of the product by the engine and the version of @server. */
void describe_product(struct server *server);

/* Fill @server with what is known of a file of @engine; @path and @version are cut if longer. */
void describe_server(struct server *server, const struct engine *engine, const char *version,
		     const char *path);

#endif
