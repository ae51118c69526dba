/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of C++ functions as people write them. Source: the Itanium C++ ABI, 5.1 Mangling. */
#ifndef USDT_MANGLED_H
#define USDT_MANGLED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Return whether @symbol is the mangled name of a function @name, as "dispatch_command" or
 * "THD::raise_condition": with any arguments, also an instance of a template, but not a part of one
 * that the compiler has split off, nor one in an anonymous namespace.
 */
bool mangled_is(const char *symbol, const char *name);

/*
 * Return the name in @symbol, the mangled name of a function that is not a member, borrowed and
 * *@len bytes long; else @symbol. All before its end is the same whatever the arguments are.
 */
const char *mangled_name(const char *symbol, size_t *len);

#endif
