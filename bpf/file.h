/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a file descriptor is in the kernel: the type of its file and, of a socket, whether the
 * process has opened it to reach another server. All of it is unknown without BTF.
 */
#ifndef BPF_FILE_H
#define BPF_FILE_H

#include "bpf/record.h"

#define S_IFMT		0170000
#define S_IFIFO		0010000
#define S_IFBLK		0060000
#define S_IFREG		0100000
#define S_IFSOCK	0140000
#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define SOCK_STREAM	1
#define SOCK_DGRAM	2
#define EPOLL_FILES	3

/* Offsets of members. Of 0, they are not known: these .. */
CONSTANT(task_files);
CONSTANT(files_table);
CONSTANT(table_size);
CONSTANT(table_files);
CONSTANT(file_inode);
CONSTANT(file_flags);
CONSTANT(inode_mode);
/* .. and these, all but sock_path if socket_sock is 0. */
CONSTANT(file_private);		/* of a socket: struct socket; of an epoll: struct eventpoll */
CONSTANT(socket_type);
CONSTANT(socket_sock);
CONSTANT(sock_family);
CONSTANT(sock_port);		/* struct inet_bind_bucket: its local port */
CONSTANT(port_reuse);
CONSTANT(sock_path);		/* struct unix_address: its local name */
CONSTANT(epoll_files);		/* root of a tree of struct epitem, which begins with its node .. */
CONSTANT(epoll_file);		/* .. and the offset of the file in it */
CONSTANT(node_right);
CONSTANT(node_left);

/* Return the struct file of descriptor @fd of @task; 0: there is none, or it is unknown. */
INLINE __u64 file_of(__u64 task, __u32 fd)
{
	__u64 table;

	if (!VALUE(task_files))
		return 0;
	table = kernel_word(kernel_word(task + VALUE(task_files)) + VALUE(files_table));
	if (fd >= (__u32)kernel_word(table + VALUE(table_size)))
		return 0;
	return kernel_word(kernel_word(table + VALUE(table_files)) + fd * 8ULL);
}

/* Return the type of @file, S_IFREG or another. */
INLINE __u32 file_type(__u64 file)
{
	return kernel_word(kernel_word(file + VALUE(file_inode)) + VALUE(inode_mode)) & S_IFMT;
}

/*
 * Return whether @file is a socket that its process has connected. That of a client was accepted
 * and has the listener's local name: a path, or a port that no connect() has chosen, which sets
 * inet_bind_bucket.fastreuse to -1 (__inet_hash_connect()). A socket that was bound before it was
 * connected is taken for a client's.
 */
static __attribute__((noinline)) int file_is_remote(__u64 file)
{
	__u64 socket, sock, port;
	signed char reuse = 0;
	__u16 family, type;

	if (file_type(file) != S_IFSOCK)
		return 0;
	socket = kernel_word(file + VALUE(file_private));
	sock = kernel_word(socket + VALUE(socket_sock));
	family = (__u16)kernel_word(sock + VALUE(sock_family));
	type = (__u16)kernel_word(socket + VALUE(socket_type));
	if ((family != AF_UNIX && family != AF_INET && family != AF_INET6) ||
	    (type != SOCK_STREAM && type != SOCK_DGRAM))
		return 0;
	/* That of a name service or of syslog. */
	if (type == SOCK_DGRAM)
		return 1;
	if (family == AF_UNIX)
		return VALUE(sock_path) && !kernel_word(sock + VALUE(sock_path));
	port = kernel_word(sock + VALUE(sock_port));
	if (port)
		bpf_probe_read_kernel(&reuse, sizeof(reuse),
				      (const void *)(port + VALUE(port_reuse)));
	return reuse < 0;
}

/*
 * Return whether one of the files of epoll @file is such a socket. The first three nodes of the
 * tree suffice: a server that waits for others adds at most two files that are none, a signal and
 * the end of its parent.
 */
static __attribute__((noinline)) int file_polls_remote(__u64 file)
{
	__u64 node = kernel_word(kernel_word(file + VALUE(file_private)) + VALUE(epoll_files));
	__u64 nodes[EPOLL_FILES] = { node };

	if (!node)
		return 0;
	nodes[1] = kernel_word(node + VALUE(node_left));
	nodes[2] = kernel_word(node + VALUE(node_right));
	for (int i = 0; i < EPOLL_FILES; i++)
		if (nodes[i] && file_is_remote(kernel_word(nodes[i] + VALUE(epoll_file))))
			return 1;
	return 0;
}

#endif
