// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/btf.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "host/mount.h"

#define BTF_BYTES_MAX	(64u << 20)
#define NESTING_MAX	16

/* A type. The data specific to its kind are at the cursor. */
struct type {
	uint32_t name, kind, vlen, size;	/* ->size: of some kinds, the ID of a type */
	bool bit_fields;
	struct cursor c;
};

int btf_open(struct btf *btf, const void *data, size_t size)
{
	struct cursor c = cursor_over(data, size, false);
	uint32_t head, types, strings;

	*btf = (struct btf){ .types = NULL };
	if (cursor_uint(&c, 2) != BTF_MAGIC)
		return -EINVAL;
	cursor_seek(&c, 4);
	head = (uint32_t)cursor_uint(&c, 4);
	types = (uint32_t)cursor_uint(&c, 4);
	btf->types_size = cursor_uint(&c, 4);
	strings = (uint32_t)cursor_uint(&c, 4);
	btf->strings_size = cursor_uint(&c, 4);
	cursor_seek(&c, (uint64_t)head + types);
	btf->types = cursor_bytes(&c, btf->types_size);
	cursor_seek(&c, (uint64_t)head + strings);
	btf->strings = cursor_bytes(&c, btf->strings_size);
	return c.bad ? -EINVAL : 0;
}

/* Read @size bytes; read(2) of a sysfs file may return less. Return 0 or -errno. */
static int btf_read(int fd, unsigned char *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = read(fd, data + at, size - at);

		if (n <= 0)
			return n ? -errno : -EINVAL;
		at += (size_t)n;
	}
	return 0;
}

int btf_load(struct btf *btf)
{
	unsigned char *data = NULL;
	struct stat st;
	int fd = mount_open_file(MOUNT_SYSFS, "kernel/btf/vmlinux"), err;

	*btf = (struct btf){ .types = NULL };
	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (st.st_size <= 0 || st.st_size > BTF_BYTES_MAX))
		err = -EINVAL;
	if (!err) {
		data = malloc((size_t)st.st_size);
		err = data ? btf_read(fd, data, (size_t)st.st_size) : -ENOMEM;
	}
	if (!err)
		err = btf_open(btf, data, (size_t)st.st_size);
	btf->data = data;
	close(fd);
	if (err)
		btf_close(btf);
	return err;
}

void btf_close(struct btf *btf)
{
	free(btf->data);
	*btf = (struct btf){ .types = NULL };
}

/* Return the number of bytes that follow the head of a type. */
static size_t type_tail(const struct type *type)
{
	switch (type->kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return type->vlen * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return type->vlen * 8;
	}
	return 0;
}

/* Read the type at the cursor and advance. Return false at the end. */
static bool type_next(struct cursor *c, struct type *type)
{
	uint32_t info;

	if (!cursor_left(c))
		return false;
	type->name = (uint32_t)cursor_uint(c, 4);
	info = (uint32_t)cursor_uint(c, 4);
	type->size = (uint32_t)cursor_uint(c, 4);
	type->kind = BTF_INFO_KIND(info);
	type->vlen = BTF_INFO_VLEN(info);
	type->bit_fields = BTF_INFO_KFLAG(info);
	type->c = *c;
	return cursor_bytes(c, type_tail(type)) || !type_tail(type);
}

/* Return whether the string at @at equals the @len bytes of @name. */
static bool btf_is(const struct btf *btf, uint32_t at, const char *name, size_t len)
{
	return at < btf->strings_size && btf->strings_size - at > len &&
	       !memcmp(btf->strings + at, name, len) && !btf->strings[at + len];
}

static bool type_has_members(const struct type *type)
{
	return type->kind == BTF_KIND_STRUCT || type->kind == BTF_KIND_UNION;
}

/* Find the structure or union @name. Return as btf_member(). */
static int type_named(const struct btf *btf, const char *name, struct type *type)
{
	struct cursor c = cursor_over(btf->types, btf->types_size, false);

	while (type_next(&c, type))
		if (type_has_members(type) && btf_is(btf, type->name, name, strlen(name)))
			return 0;
	return c.bad ? -EINVAL : -ENOENT;
}

/* Find the structure or union with ID @number, through typedefs and qualifiers. */
static int type_numbered(const struct btf *btf, uint32_t number, struct type *type)
{
	for (int i = 0; i < NESTING_MAX; i++) {
		struct cursor c = cursor_over(btf->types, btf->types_size, false);
		uint32_t at = 0;

		do {
			if (!type_next(&c, type))
				return c.bad ? -EINVAL : -ENOENT;
		} while (++at < number);
		if (type_has_members(type))
			return 0;
		if (type->kind != BTF_KIND_TYPEDEF && type->kind != BTF_KIND_CONST &&
		    type->kind != BTF_KIND_VOLATILE)
			return -ENOENT;
		number = type->size;
	}
	return -EINVAL;
}

/* Add the offset of @path in @type to @member. @depth: levels of nesting so far. */
static int type_member(const struct btf *btf, struct type *type, const char *path, int depth,
		       struct btf_place *member)
{
	size_t len = strcspn(path, ".");

	for (uint32_t i = 0; i < type->vlen; i++) {
		uint32_t name = (uint32_t)cursor_uint(&type->c, 4);
		uint32_t number = (uint32_t)cursor_uint(&type->c, 4);
		uint32_t bits = (uint32_t)cursor_uint(&type->c, 4);
		struct btf_place at = *member;
		struct type inner;
		bool found = btf_is(btf, name, path, len);
		int err;

		if (type->c.bad)
			return -EINVAL;
		if (type->bit_fields)
			bits = BTF_MEMBER_BIT_OFFSET(bits);
		at.offset += bits / 8;
		at.bit = bits % 8;
		if (found && !path[len]) {
			*member = at;
			return 0;
		}
		/* Members of an anonymous structure are members of the enclosing one. */
		if ((!found && !btf_is(btf, name, "", 0)) || depth == NESTING_MAX)
			continue;
		err = type_numbered(btf, number, &inner);
		if (!err)
			err = type_member(btf, &inner, found ? path + len + 1 : path, depth + 1,
					  &at);
		if (!err)
			*member = at;
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

int btf_member(const struct btf *btf, const char *name, const char *path,
	       struct btf_place *member)
{
	struct type type;
	int err = type_named(btf, name, &type);

	*member = (struct btf_place){ 0 };
	return err ? err : type_member(btf, &type, path, 0, member);
}

int btf_size(const struct btf *btf, const char *name, uint32_t *size)
{
	struct type type;
	int err = type_named(btf, name, &type);

	*size = err ? 0 : type.size;
	return err;
}
