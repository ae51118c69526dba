// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/attacher.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/child.h"
#include "loader/sandbox.h"

#define PATH_SIZE	32
#define FDS		2	/* descriptors in one message at most */
#define PAUSE_MS	5	/* between two calls of ->pause */
#define CLOSERS		32	/* processes that close links at once */

/* A message to the child, which answers with an int. */
struct request {
	enum { ATTACH, DETACH, CONFINE } kind;
	/*
	 * ATTACH: number of sites. Sent with the descriptors of program and file, and followed by
	 * the offsets, the offsets of the semaphores and the cookies. The answer is -errno, or the
	 * child's descriptor of the link, with which the link is sent.
	 * DETACH: number of the child's descriptors, which follow. CONFINE: what is needed.
	 */
	uint32_t number;
	uint32_t on_return;
};

/*
 * Below, system calls are made directly where the C library's functions are longer: they emulate
 * flags on kernels before 2.6.27 and clear the padding of structures, which is zero here.
 */

/* Room for the descriptors of a message. */
union message_fds {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(FDS * sizeof(int))];
};

/* Send @data with descriptors. Return whether all of it was sent. */
static bool message_send(int socket, void *data, size_t size, const int *fds, size_t nfds)
{
	union message_fds room = { .bytes = { 0 } };
	struct iovec vector = { data, size };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };

	if (nfds) {
		message.msg_control = &room;
		message.msg_controllen = (socklen_t)CMSG_SPACE(nfds * sizeof(int));
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = (socklen_t)CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&room.head), fds, nfds * sizeof(int));
	}
	return syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL) == (long)size;
}

/* Receive @size bytes. Store the descriptors, -1 for each that is missing. Return success. */
static bool message_receive(int socket, void *data, size_t size, int *fds, size_t nfds)
{
	union message_fds room = { .bytes = { 0 } };
	struct iovec vector = { data, size };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &room,
				  .msg_controllen = sizeof(room) };
	const struct cmsghdr *head;
	long n = syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);

	for (size_t i = 0; i < nfds; i++)
		fds[i] = -1;
	head = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(nfds * sizeof(int)))
		memcpy(fds, CMSG_DATA(head), nfds * sizeof(int));
	return n == (long)size;
}

/* The path of an open file is valid in any mount namespace, and if it was deleted. */
static void file_path(int fd, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "/proc/self/fd/%d", fd);
}

/* Attach as requested. Return the link or -errno. */
static int child_attach(const struct attacher *attacher, const struct request *request,
			const int *fds)
{
	size_t count = request->number;
	uint64_t *room = calloc(count, 3 * sizeof(*room));
	char path[PATH_SIZE];
	struct uprobe_sites sites = { .path = path, .count = request->number,
				      .on_return = request->on_return };
	int link, n = -EMFILE;

	if (!room || !child_read(attacher->socket, room, 3 * count * sizeof(*room)))
		_exit(1);
	file_path(fds[1], path);
	sites.offsets = (const unsigned long *)room;
	sites.ref_ctr_offsets = (const unsigned long *)(room + count);
	sites.cookies = room + 2 * count;
	if (fds[0] >= 0 && fds[1] >= 0)
		n = attach_uprobes(attacher->features, attacher->method, fds[0], &sites, &link);
	free(room);
	return n < 0 ? n : link;
}

/*
 * Close the @n descriptors @links, or all below @n if that is NULL. For each link the kernel waits
 * until no CPU runs the program, for many at once as long as for one: several processes close them,
 * which share this one's descriptors.
 */
static void child_detach(const struct attacher *attacher, const int *links, uint32_t n)
{
	uint32_t parts = n < CLOSERS ? n : CLOSERS;
	const long flags = CLONE_FILES | SIGCHLD;

	for (uint32_t part = parts; part--; ) {
		long child = part ? syscall(SYS_clone, flags, NULL, NULL, NULL, NULL) : -1;

		if (child > 0)
			continue;
		for (uint32_t i = part; i < n; i += parts) {
			int fd = links ? links[i] : (int)i;

			if (fd != attacher->socket)
				close(fd);
		}
		if (!child)
			_exit(0);
	}
	for (int i = 0; i < 2 * CLOSERS; i++)
		if (syscall(SYS_wait4, -1, NULL, 0, NULL) < 0 && errno == ECHILD)
			break;
}

/* Close the @count descriptors that follow. Return whether they were received. */
static bool child_detach_some(struct attacher *attacher, uint32_t count)
{
	int *links = calloc(count, sizeof(*links));

	if (!links || !child_read(attacher->socket, links, count * sizeof(*links)))
		return false;
	child_detach(attacher, links, count);
	attacher->held -= count;
	free(links);
	return true;
}

/* Answer @request. @fds came with it. Return whether that was possible. */
static bool child_answer(struct attacher *attacher, const struct request *request,
			 const int *fds)
{
	struct sandbox sandbox;
	int answer = 0;

	switch (request->kind) {
	case ATTACH:
		answer = child_attach(attacher, request, fds);
		close(fds[0]);
		close(fds[1]);
		if (answer >= attacher->end)
			attacher->end = answer + 1;
		attacher->held += answer >= 0;
		return message_send(attacher->socket, &answer, sizeof(answer), &answer,
				    answer >= 0);
	case DETACH:
		if (!child_detach_some(attacher, request->number))
			return false;
		break;
	case CONFINE:
		sandbox_enter(request->number, &sandbox);
		break;
	}
	return child_write(attacher->socket, &answer, sizeof(answer));
}

/* The child: handle requests until the other end of the socket is closed. */
static void child_run(void *arg, int socket)
{
	struct attacher *attacher = arg;
	struct request request = { 0 };
	int fds[FDS];

	attacher->socket = socket;
	while (message_receive(socket, &request, sizeof(request), fds, FDS) &&
	       child_answer(attacher, &request, fds))
		;
	if (attacher->held)
		child_detach(attacher, NULL, (uint32_t)attacher->end);
}

void attacher_start(struct attacher *attacher, struct features *features,
		    enum attach_method method)
{
	*attacher = (struct attacher){ .features = features, .method = method };
	if (method != ATTACH_NONE)
		attacher->child = child_start("uprobe-attacher", child_run, attacher,
					      &attacher->socket);
}

/*
 * Wait for the child's answer. The kernel needs time for each mapping of the file, of which a user
 * can have millions.
 */
static void attacher_wait(const struct attacher *attacher)
{
	struct pollfd answer = { .fd = attacher->socket, .events = POLLIN };

	while (attacher->pause.pause && !poll(&answer, 1, PAUSE_MS))
		attacher->pause.pause(attacher->pause.arg);
}

/* Have the child attach @prog to @sites by one link. Return 0 or -errno. */
static int attacher_link(struct attacher *attacher, int prog, int file,
			 const struct uprobe_sites *sites, struct attacher_link *link)
{
	struct request request = { ATTACH, sites->count, sites->on_return };
	size_t size = sites->count * sizeof(uint64_t);
	int socket = attacher->socket;

	if (!message_send(socket, &request, sizeof(request), (const int[]){ prog, file }, FDS) ||
	    !child_write(socket, sites->offsets, size) ||
	    !child_write(socket, sites->ref_ctr_offsets, size) ||
	    !child_write(socket, sites->cookies, size))
		return -ECHILD;
	attacher_wait(attacher);
	if (!message_receive(socket, &link->held, sizeof(link->held), &link->fd, 1))
		return -ECHILD;
	if (link->held < 0)
		return link->held;
	if (link->fd >= 0)
		return 0;
	/* This process has no number free for it. */
	attacher_detach(attacher, link, 1);
	return -EMFILE;
}

int attacher_attach(struct attacher *attacher, int prog, int file,
		    const struct uprobe_sites *sites, struct attacher_link *links)
{
	uint32_t step = attacher->method == ATTACH_MULTI ? sites->count : 1;
	struct uprobe_sites some = *sites;
	char path[PATH_SIZE];
	uint32_t n = 0;
	int err = 0;

	file_path(file, path);
	some.path = path;
	for (uint32_t at = 0; !err && at < sites->count; at += step) {
		some.offsets = sites->offsets + at;
		some.ref_ctr_offsets = sites->ref_ctr_offsets + at;
		some.cookies = sites->cookies + at;
		some.count = step;
		links[n].held = -1;
		if (attacher->child) {
			err = attacher_link(attacher, prog, file, &some, &links[n]);
		} else {
			err = attach_uprobes(attacher->features, attacher->method, prog, &some,
					     &links[n].fd);
			err = err < 0 ? err : 0;
		}
		n += !err;
	}
	if (!err)
		return (int)n;
	attacher_detach(attacher, links, n);
	return err;
}

void attacher_detach(struct attacher *attacher, const struct attacher_link *links, uint32_t count)
{
	struct request request = { DETACH, count, 0 };
	int done;

	if (!count)
		return;
	/* If the child has another descriptor of each, this takes no time. */
	for (uint32_t i = 0; i < count; i++)
		if (links[i].fd >= 0)
			close(links[i].fd);
	if (!attacher->child)
		return;
	if (!child_write(attacher->socket, &request, sizeof(request)))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (!child_write(attacher->socket, &links[i].held, sizeof(links[i].held)))
			return;
	attacher_wait(attacher);
	child_read(attacher->socket, &done, sizeof(done));
}

void attacher_confine(const struct attacher *attacher, unsigned int needs)
{
	struct request request = { CONFINE, needs, 0 };
	int done;

	if (attacher->child && child_write(attacher->socket, &request, sizeof(request)))
		child_read(attacher->socket, &done, sizeof(done));
}

void attacher_stop(struct attacher *attacher)
{
	if (!attacher->child)
		return;
	close(attacher->socket);
	waitpid(attacher->child, NULL, 0);
	attacher->child = 0;
}
