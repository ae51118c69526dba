// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/lockdown.h"
#include "host/mount.h"
#include "usdt/fmt.h"
#include "usdt/text.h"

#define GROUP		"dbslower_"
#define EVENTS		"uprobe_events"
#define EVENT_SIZE	80	/* the kernel limits names to 64 bytes */
#define TRIES		3
#define LOCK_TRIES	20
#define LOCK_NS		10000000	/* between two of them */
#define RECORD_MAX	8192	/* PERF_MAX_TRACE_SIZE of the kernel, or less */
#define RECORD_HIDDEN	8	/* not readable by programs: the kernel keeps a pointer there */

bool tracefs_parse(const char *line, char *event, size_t size)
{
	size_t len;

	if ((*line != 'p' && *line != 'r') || line[1] != ':')
		return false;
	line += 2;
	len = strcspn(line, " \n");
	if (strncmp(line, GROUP, strlen(GROUP)) || !memchr(line, '/', len) || len >= size)
		return false;
	memcpy(event, line, len);
	event[len] = '\0';
	return true;
}

/* Write one command, by a single write(2) as the kernel requires. Return 0 or -errno. */
static int tracefs_write(struct tracefs *tracefs, const char *command, size_t len)
{
	int fd = openat(tracefs->dir, EVENTS, O_WRONLY | O_APPEND | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, command, len) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void tracefs_remove(struct tracefs *tracefs, const char *event)
{
	char command[EVENT_SIZE + 4];
	int n = fmt_text(command, sizeof(command), "-:%s\n", event);

	if (n > 0 && (size_t)n < sizeof(command))
		tracefs_write(tracefs, command, (size_t)n);
}

/* Return the contents of a file, which the caller frees; or NULL with errno set. */
static char *tracefs_text(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : sys_read_text(fd);

	if (fd >= 0)
		close(fd);
	return text;
}

/*
 * Lock the events as @how says, LOCK_SH or LOCK_EX, without waiting. Return a descriptor that holds
 * the lock, or -errno.
 */
static int tracefs_lock(const struct tracefs *tracefs, int how)
{
	int fd = openat(tracefs->dir, EVENTS, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (!flock(fd, how | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void tracefs_sweep(struct tracefs *tracefs)
{
	/* Another process of this program may be about to use its event. */
	int lock = tracefs_lock(tracefs, LOCK_EX);
	/* Read all lines first: removing events shifts the ones that are read next. */
	char event[EVENT_SIZE], *lines = tracefs_text(tracefs->dir, EVENTS);
	size_t len = strlen(tracefs->group);

	for (const char *line = lines; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (tracefs_parse(line, event, sizeof(event)) &&
		    (lock >= 0 || (!strncmp(event, tracefs->group, len) && event[len] == '/')))
			tracefs_remove(tracefs, event);
	}
	free(lines);
	if (lock >= 0)
		close(lock);
}

/*
 * Open the root directory. Under lockdown tracefs is useless, and unmounting one triggers a kernel
 * BUG on Linux 7.3, in tracefs_destroy_inode().
 */
static int tracefs_root(void)
{
	char lockdown[24];

	lockdown_read(lockdown, sizeof(lockdown));
	return strcmp(lockdown, "confidentiality") ? mount_open(MOUNT_TRACEFS) : -EOPNOTSUPP;
}

int tracefs_open(struct tracefs *tracefs)
{
	uint32_t chance = 0;
	int dir = tracefs_root(), err;

	if (dir < 0)
		return dir;
	*tracefs = (struct tracefs){ .open = true, .dir = dir };
	if (syscall(SYS_faccessat, dir, EVENTS, W_OK)) {
		err = errno == EACCES ? -EACCES : -EOPNOTSUPP;
		close(dir);
		tracefs->open = false;
		return err;
	}
	/* Another PID namespace may have the same PID. */
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = 0;
	fmt_text(tracefs->group, sizeof(tracefs->group), GROUP "%ld_%08x", (long)getpid(), chance);
	tracefs_sweep(tracefs);
	return 0;
}

/* Create the event of a site with the name @event. */
static int tracefs_make(struct tracefs *tracefs, const struct uprobe_sites *sites, uint32_t index,
			const char *event)
{
	unsigned long semaphore = sites->ref_ctr_offsets[index];
	char command[512], counter[32] = "";
	int n;

	/* 1cc33161a83d (Linux 4.20) */
	if (semaphore)
		fmt_text(counter, sizeof(counter), "(0x%lx)", semaphore);
	n = fmt_text(command, sizeof(command), "%c:%s %s:0x%lx%s\n", sites->on_return ? 'r' : 'p',
		     event, sites->path, sites->offsets[index], counter);
	if (n < 0 || (size_t)n >= sizeof(command))
		return -ENAMETOOLONG;
	return tracefs_write(tracefs, command, (size_t)n);
}

static int tracefs_id(struct tracefs *tracefs, const char *event)
{
	char path[EVENT_SIZE + 16], *text;
	int id;

	fmt_text(path, sizeof(path), "events/%s/id", event);
	text = tracefs_text(tracefs->dir, path);
	id = text ? (int)text_number(text, NULL, 10) : -errno;
	free(text);
	return id;
}

/* Keep others from sweeping. Return a descriptor, or -errno: one that sweeps may be stopped. */
static int tracefs_keep(const struct tracefs *tracefs)
{
	const struct timespec pause = { .tv_nsec = LOCK_NS };
	int fd = tracefs_lock(tracefs, LOCK_SH);

	for (int i = 0; fd == -EWOULDBLOCK && i < LOCK_TRIES; i++) {
		nanosleep(&pause, NULL);
		fd = tracefs_lock(tracefs, LOCK_SH);
	}
	return fd;
}

int tracefs_attach(struct tracefs *tracefs, int prog, const struct uprobe_sites *sites,
		   uint32_t index)
{
	char event[EVENT_SIZE];
	int fd = -ENOENT, lock = tracefs_keep(tracefs);

	/* Without the lock, the event may be swept before it is in use. */
	for (int i = 0; i < TRIES && (fd == -ENOENT || fd == -EINVAL); i++) {
		fmt_text(event, sizeof(event), "%s/site%u", tracefs->group, tracefs->created++);
		fd = tracefs_make(tracefs, sites, index, event);
		if (fd)
			continue;
		fd = tracefs_id(tracefs, event);
		if (fd >= 0)
			fd = sys_event(prog, fd);
		if (fd < 0)
			tracefs_remove(tracefs, event);
	}
	if (lock >= 0)
		close(lock);
	return fd;
}

/* Return the number after @key in a line; 0 if there is none. */
static unsigned long format_number(const char *line, const char *key)
{
	const char *at = memmem(line, strcspn(line, "\n"), key, strlen(key));

	return at ? text_number(at + strlen(key), NULL, 10) : 0;
}

int tracefs_format(const char *format, const char *field, uint64_t *offset)
{
	size_t n = strlen(field);
	unsigned long id = 0, size;

	for (const char *line = format; line; line = strchr(line, '\n')) {
		size_t len;

		line += *line == '\n';
		len = strcspn(line, ";\n");
		if (!strncmp(line, "ID: ", 4))
			id = format_number(line, "ID: ");
		if (strncmp(line, "\tfield:", 7) || len <= n || line[len - n - 1] != ' ' ||
		    memcmp(line + len - n, field, n))
			continue;
		*offset = format_number(line, "\toffset:");
		size = format_number(line, "\tsize:");
		return id && id <= INT_MAX && (size == 4 || size == 8) &&
		       *offset >= RECORD_HIDDEN && *offset <= RECORD_MAX - size ? (int)id : -EINVAL;
	}
	return -ENOENT;
}

int tracefs_field(const char *event, const char *field, uint64_t *offset)
{
	char path[EVENT_SIZE], *text;
	int dir = tracefs_root(), id;

	if (dir < 0)
		return dir;
	fmt_text(path, sizeof(path), "events/sched/%s/format", event);
	text = tracefs_text(dir, path);
	id = text ? tracefs_format(text, field, offset) : -errno;
	free(text);
	close(dir);
	return id;
}

void tracefs_close(struct tracefs *tracefs)
{
	if (!tracefs->open)
		return;
	if (tracefs->created)
		tracefs_sweep(tracefs);
	close(tracefs->dir);
	tracefs->open = false;
}
