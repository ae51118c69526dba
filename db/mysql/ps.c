// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sessions of a server are objects of class THD. Offsets in them are decoded from exported
 * accessors.
 *
 * MariaDB from 10.5 on has them in the list server_threads (sql/sql_class.h). Its elements begin
 * with struct ilink (sql/sql_list.h): the vtable, a pointer to the pointer to this element, and one
 * to the next element.
 *
 * MySQL has them in the partitions of its Global_THD_manager (sql/mysqld_thd_manager.h), each a
 * Prealloced_array (include/prealloced_array.h): a key of 32 bits; the number of elements, or -1;
 * and the elements, or the address of an array, its size and its capacity.
 */
#include "db/mysql/ps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/mysql/locks.h"
#include "db/mysql/names.h"
#include "db/mysql/object.h"
#include "db/mysql/options.h"
#include "db/mysql/stage.h"
#include "host/clock.h"
#include "host/process_memory.h"
#include "usdt/accessor.h"

#define VTABLE_HEAD	16		/* of a vtable, before the functions (Itanium C++ ABI) */
#define LIST_WORDS	8		/* of server_threads that may point to its first element */
#define LINK_PREVIOUS	1
#define LINK_NEXT	2
#define LINK_WORDS	3
#define MANAGER_WORDS	640		/* of a Global_THD_manager that are searched */
#define MANAGER_TRIES	20		/* it is not one list, and its count is elsewhere */
#define INLINE_MAX	60		/* elements of a partition that are in it */
#define WALK_TRIES	5		/* the list can change while it is read */
#define WALK_MAX	(2u * PS_SESSIONS)	/* elements in all tries */
#define LOCK_READS	(1u << 18)	/* of memory, for the locks of a session */
#define LOCKS_KNOWN	64		/* whose holders are read once */
#define LOCK_TEXT	64		/* bytes of a holder's statement, which is not shown */
#define SAMPLE_WALK_MAX	32768		/* the same for one sample */
#define DEADLINE_STEP	64		/* sessions between two looks at the clock */
#define LIST_NS		100000000u	/* after which the THDs that are sampled are listed again */
#define LEARN_FROM	16		/* sessions, and .. */
#define LEARN_NS	50000000u	/* .. how long they have run a statement at least */

struct mysql_ps {
	uint64_t class;			/* first word of a THD, as linked */
	uint64_t threads;		/* variable: the list, as linked; 0: MySQL */
	uint64_t manager, count;	/* MySQL's variables, as linked */
	int64_t times, options;		/* offsets in a THD; -1: unknown */
	struct mysql_locks locks;
	struct mysql_stages stages;
	bool (*is_program)(const char *name);	/* for process_read() */
};

/* The holders of a lock, and those that wait for it. */
struct known_lock {
	struct known_holder {
		uint64_t connection;
		bool queued;
	} holders[LOCK_HOLDERS_KEPT];
	unsigned int count, more;	/* ->more: that were not kept */
};

struct known_locks {
	uint64_t addresses[LOCKS_KNOWN];
	struct known_lock locks[LOCKS_KNOWN + 1];
};

struct reader {
	const struct mysql_ps *ps;
	const struct ps_query *query;
	struct process_memory memory;
	struct object_owner owner;
	uint64_t class;
	struct lock_reader *locks;
	struct known_locks *known;	/* its metadata locks */
	unsigned int *elements;		/* of the list that may still be read */
	int64_t *own_context;		/* see object_context() */
	int64_t here_ns, ahead_ns;	/* clock_ahead() of this process and of the server */
	uint64_t wall_ns;		/* clock_wall_offset() */
};

/* A THD that is sampled. */
struct mysql_session {
	uint64_t thd;			/* its address */
	uint64_t start;			/* THD::start_utime; see reader_start() */
	bool active;
	struct who *who;		/* owned; NULL: not known yet */
	struct sampled *sampled;
};

/* A server that is sampled. */
struct mysql_server {
	struct process_memory memory;	/* open if ->thds is not NULL */
	uint64_t *thds;			/* room for PS_SESSIONS; owned */
	struct mysql_session *session;	/* by address, room for as many; owned */
	size_t n, next;			/* ->next: the one that is looked at first */
	uint64_t listed_ns;		/* CLOCK_MONOTONIC, when the THDs were last listed .. */
	uint64_t words[MANAGER_WORDS];	/* .. and what the list was then, see server_words() */
	int64_t own_context;		/* see object_context(); -1: unknown */
	int64_t here_ns, ahead_ns;	/* as in struct reader */
};

static int mysql_find(void *state, const struct elf *elf, bool (*is_program)(const char *name))
{
	struct mysql_ps *ps = state;
	struct object_places object;
	struct accessor locked;

	ps->class = elf_symbol_value(elf, "_ZTV3THD");
	ps->threads = elf_symbol_value(elf, "server_threads");
	ps->manager = elf_symbol_value(elf, "_ZN18Global_THD_manager11thd_managerE");
	ps->count = elf_symbol_value(elf, "_ZN18Global_THD_manager23atomic_global_thd_countE");
	ps->options = mysql_options_find(elf);
	mysql_stages_find(&ps->stages, elf);
	mysql_locks_find(elf, &ps->locks);
	/*
	 * THD::start_utime is before the member to which this function adds: MariaDB's
	 * utime_after_lock, MySQL's m_lock_usec.
	 */
	ps->times = accessor_read_setter(elf, ps->threads ? "thd_storage_lock_wait" :
						"_ZN3THD13inc_lock_usecEy", &locked) ?
		    -1 : locked.offset - 8;
	mysql_object_find(elf, &object);
	ps->is_program = is_program;
	if (!ps->class || !(ps->threads || (ps->manager && ps->count)))
		return -ENOENT;
	return object.user.at >= 0 && object.connection >= 0 ? 0 : -ENOENT;
}

static bool reader_bytes(const struct reader *r, uint64_t address, void *buf, size_t size)
{
	return address >= 4096 && !(address & (size < 8 ? 3 : 7)) &&
	       process_memory_read(&r->memory, address, buf, size) == (ssize_t)size;
}

/*
 * Return the CLOCK_REALTIME at which the statement began, in ns, or 0. @times: of THD::start_utime,
 * as THD::start_time is what SET TIMESTAMP, replication and mysqlbinlog say that it is, and behind
 * it MariaDB's utime_after_lock. It is in us, MariaDB's of CLOCK_MONOTONIC, MySQL's of
 * CLOCK_REALTIME.
 */
static uint64_t times_start(const struct reader *r, const uint64_t times[2])
{
	uint64_t now_ns = clock_kernel_ns(r->here_ns);

	if (r->ps->manager)
		return times[0] < r->wall_ns / 1000 || times[0] > (now_ns + r->wall_ns) / 1000 ?
		       0 : times[0] * 1000;
	if (times[0] > times[1] || times[0] > (now_ns + (uint64_t)r->ahead_ns) / 1000)
		return 0;
	return times[0] * 1000 - (uint64_t)r->ahead_ns + r->wall_ns;
}

static uint64_t reader_start(const struct reader *r, uint64_t thd)
{
	uint64_t times[2];

	return r->ps->times >= 0 &&
	       reader_bytes(r, thd + (uint64_t)r->ps->times, times, sizeof(times)) ?
	       times_start(r, times) : 0;
}

static void reader_statement(const struct reader *r, uint64_t thd, struct ps_session *session)
{
	size_t size = r->query->text_bytes, len = 0;
	int n;

	session->text = malloc(size);
	n = session->text ? object_query(&r->owner, thd, &r->query->places->object, session->text,
					 size, &len) : -ENOMEM;
	if (n <= 0) {
		free(session->text);
		session->text = NULL;
		return;
	}
	session->state = PS_ACTIVE;
	session->len = (size_t)n;
	session->cut = len > (size_t)n;
	session->statement_ns = reader_start(r, thd);
}

/* Read the stage of an active session, which SHOW PROCESSLIST prints unless it uses the network. */
static void reader_stage(const struct reader *r, uint64_t thd, struct ps_session *session)
{
	int64_t offset = r->ps->stages.offset;
	uint64_t address;

	if (offset >= 0 && reader_bytes(r, thd + (uint64_t)offset, &address, sizeof(address)))
		process_memory_string(&r->memory, address, session->stage, PS_STAGE);
}

/* Return the state of a session that runs no statement. */
static enum ps_state reader_idle(const struct reader *r, uint64_t thd)
{
	uint64_t options;

	if (r->ps->options < 0 ||
	    !reader_bytes(r, thd + (uint64_t)r->ps->options, &options, sizeof(options)))
		return PS_UNKNOWN;
	if (options & OPTION_BEGIN)
		return PS_IN_TRANSACTION;
	/* Without autocommit a transaction may have begun by itself. */
	return options & OPTION_NOT_AUTOCOMMIT ? PS_UNKNOWN : PS_IDLE;
}

/* Return the holders of the lock in @info, which were read for it or before. */
static const struct known_lock *reader_known(const struct reader *r, const struct lock_info *info)
{
	size_t at = 0;
	struct known_lock *lock;

	while (at < r->locks->nknown && r->known->addresses[at] != info->lock)
		at++;
	lock = &r->known->locks[at];
	if (at < r->locks->nknown)
		return lock;
	/* Of a row's lock those that block differ by who waits; the last place is not kept. */
	if (info->event.kind != LOCK_WAITS_FIRST && info->nholders > 1 && at < LOCKS_KNOWN) {
		r->known->addresses[at] = info->lock;
		r->locks->nknown++;
	}
	*lock = (struct known_lock){ .count = info->nholders, .more = info->more };
	for (unsigned int i = 0; i < info->nholders; i++)
		lock->holders[i] = (struct known_holder){ info->holders[i].connection,
							  info->holders[i].queued };
	return lock;
}

/* Add those of @lock that hold it, or those that wait for it, too, unless it is the session. */
static void reader_blockers(const struct known_lock *lock, bool queued, struct ps_session *session)
{
	for (unsigned int i = 0; i < lock->count && session->nblockers < PS_BLOCKERS; i++) {
		const struct known_holder *holder = &lock->holders[i];

		if (holder->connection && holder->queued == queued &&
		    holder->connection != session->who.connection)
			session->blockers[session->nblockers++] = holder->connection;
	}
}

/*
 * Find the lock that an active session waits for, and those that block it. Those that wait, too,
 * may be behind it in the queue: they count only if there are no others.
 */
static void reader_wait(const struct reader *r, uint64_t thd, struct ps_session *session)
{
	const struct known_lock *lock;
	struct lock_info info;

	*r->locks->reads = LOCK_READS;
	if (!mysql_locks_session(r->locks, thd, false, &info)) {
		snprintf(session->wait, sizeof(session->wait), "Lock:%s",
			 mysql_lock_kind(&info.event));
		lock = reader_known(r, &info);
		reader_blockers(lock, false, session);
		if (!session->nblockers && !lock->more)
			reader_blockers(lock, true, session);
	}
	lock_info_clear(&info);
}

/*
 * Learn where transactions are from those that have run a statement for the longest time: most
 * probably they wait. It may take a quarter of the time that is left.
 */
static void reader_learn(const struct reader *r, const uint64_t *thds, size_t n)
{
	uint64_t oldest[LEARN_FROM], starts[LEARN_FROM], now_ns = clock_kernel_ns(r->here_ns);
	struct lock_info info;
	uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC), end_ns = r->query->deadline_ns;
	size_t count = 0, len;
	char text;

	if (end_ns > begun_ns)
		end_ns = begun_ns + (end_ns - begun_ns) / 4;
	for (size_t i = 0; i < n; i++) {
		uint64_t start = reader_start(r, thds[i]);
		size_t at = count < LEARN_FROM ? count : LEARN_FROM - 1;

		if (start + LEARN_NS > now_ns + r->wall_ns ||
		    (count == LEARN_FROM && start >= starts[at]) ||
		    object_query(&r->owner, thds[i], &r->query->places->object, &text, 1,
				 &len) <= 0)
			continue;
		for (; at && starts[at - 1] > start; at--) {
			starts[at] = starts[at - 1];
			oldest[at] = oldest[at - 1];
		}
		starts[at] = start;
		oldest[at] = thds[i];
		count += count < LEARN_FROM;
	}
	r->locks->places->failures = 0;
	for (size_t i = 0; i < count && !r->locks->places->trx_valid &&
			   clock_ns(CLOCK_MONOTONIC) < end_ns; i++) {
		*r->locks->reads = LOCK_READS;
		if (!mysql_locks_session(r->locks, oldest[i], true, &info))
			reader_known(r, &info);
		lock_info_clear(&info);
	}
}

/*
 * Add the session of the THD at @thd, unless it is gone. If it is not known whether it is a thread
 * of the server itself, one without a user is. Return as ->add().
 */
static bool reader_session(const struct reader *r, uint64_t thd)
{
	struct ps_session session = {
		.who = { .pid = r->query->process->pid },
	};
	uint64_t class;

	session.background = mysql_who_read(&r->ps->locks.kinds, &r->memory,
					    &r->query->places->object, thd, r->own_context,
					    &session.who) ||
			     (!*session.who.backend && !*session.who.user);
	if (r->query->session && session.who.connection != r->query->session)
		return true;
	reader_statement(r, thd, &session);
	if (session.state == PS_ACTIVE) {
		reader_stage(r, thd, &session);
		reader_wait(r, thd, &session);
	} else {
		session.state = reader_idle(r, thd);
	}
	if (reader_bytes(r, thd, &class, sizeof(class)) && class == r->class)
		return r->query->add(r->query->arg, &session, r->query->process->pid);
	free(session.text);
	return true;
}

/*
 * Collect the THDs of the list that begins with @link, the address of its first pointer, to @thds.
 * Return their number, or 0: the list has changed meanwhile.
 */
static size_t reader_walk(const struct reader *r, uint64_t link, uint64_t *thds)
{
	uint64_t words[LINK_WORDS] = { 0 }, at;
	size_t n = 0;

	while (*r->elements && --*r->elements && reader_bytes(r, link, &at, sizeof(at)) &&
	       reader_bytes(r, at, words, sizeof(words)) && words[LINK_PREVIOUS] == link) {
		/* The last element is in the list itself, and not a THD. */
		if (words[0] != r->class || n == PS_SESSIONS)
			return n;
		thds[n++] = at;
		link = at + LINK_NEXT * 8;
	}
	return 0;
}

/* Copy those of the @n @pointers that point to THDs to @thds. Return whether all do. */
static bool reader_are_thds(const struct reader *r, const uint64_t *pointers, size_t n,
			    uint64_t *thds)
{
	uint64_t class;

	for (size_t i = 0; i < n; i++) {
		if (!*r->elements || !--*r->elements ||
		    !reader_bytes(r, pointers[i], &class, sizeof(class)) || class != r->class)
			return false;
		thds[i] = pointers[i];
	}
	return true;
}

/* Read the partition at the first of @left @words, if it is one. Return how many THDs it has. */
static size_t reader_partition(const struct reader *r, const uint64_t *words, size_t left,
			       uint64_t *thds, size_t room)
{
	uint32_t inside = (uint32_t)(words[0] >> 32);
	uint64_t *array;
	size_t n = 0;

	if (inside <= INLINE_MAX && inside < left && inside <= room)
		return reader_are_thds(r, words + 1, inside, thds) ? inside : 0;
	if (inside != UINT32_MAX || left < 4 || words[2] > words[3] || words[2] > room ||
	    words[2] > *r->elements)
		return 0;
	*r->elements -= (unsigned int)words[2];
	array = malloc(words[2] * sizeof(*array) + 1);
	if (array && reader_bytes(r, words[1], array, words[2] * sizeof(*array)) &&
	    reader_are_thds(r, array, words[2], thds))
		n = words[2];
	free(array);
	return n;
}

/*
 * Collect the *@n THDs of the Global_THD_manager to @thds. Return -EAGAIN if they are not as many
 * as the server counts: they change, or it has another layout.
 */
static int reader_manager(const struct reader *r, uint64_t *thds, size_t *n)
{
	uint64_t words[MANAGER_WORDS], manager;
	uint32_t count;

	*n = 0;
	if (process_memory_variable(&r->memory, r->ps->manager, &manager, sizeof(manager)) ||
	    process_memory_variable(&r->memory, r->ps->count, &count, sizeof(count)) ||
	    !reader_bytes(r, manager, words, sizeof(words)))
		return -EAGAIN;
	for (size_t i = 0; i < MANAGER_WORDS; i++)
		*n += reader_partition(r, words + i, MANAGER_WORDS - i, thds + *n,
				       PS_SESSIONS - *n);
	return *n == count ? 0 : -EAGAIN;
}

/* Collect the THDs of the list server_threads to @thds. Return their number. */
static size_t reader_list(const struct reader *r, uint64_t *thds)
{
	uint64_t list = r->ps->threads + r->memory.slide;
	size_t n = 0;

	for (uint64_t word = 0; !n && word < LIST_WORDS; word++)
		n = reader_walk(r, list + word * 8, thds);
	return n;
}

static bool mysql_event(const void *state, uint32_t server, uint32_t event, char to[WAIT_EVENT])
{
	const struct mysql_ps *ps = state;
	const char *name = mysql_stage_known(&ps->stages, event);

	(void)server;
	snprintf(to, WAIT_EVENT, "%s", name ? name : "");
	return name != NULL;
}

static void mysql_learn(void *state, const struct process_memory *memory, uint32_t server,
			uint32_t event)
{
	struct mysql_ps *ps = state;

	(void)server;
	mysql_stage_learn(&ps->stages, memory, event);
}

static int mysql_read(void *state, const struct ps_query *query)
{
	struct mysql_ps *ps = state;
	unsigned int elements = WALK_MAX, reads;
	int64_t own_context = -1;
	struct known_locks known = { .addresses = { 0 } };
	struct lock_reader locks = { .places = &ps->locks, .backend = query->places,
				     .reads = &reads, .size = LOCK_TEXT,
				     .known = known.addresses };
	struct reader r = { .ps = ps, .query = query, .elements = &elements,
			    .own_context = &own_context, .locks = &locks, .known = &known,
			    .here_ns = clock_ahead(0), .ahead_ns = clock_ahead(query->process->pid),
			    .owner = { query->process->pid, &query->process->file,
				       ps->is_program } };
	uint64_t *thds = malloc(PS_SESSIONS * sizeof(*thds));
	size_t n = 0;
	int err = thds ? process_memory_open_program(query->process, query->lowest, &r.memory) :
			 -ENOMEM;

	if (err)
		goto cleanup;
	r.class = ps->class + VTABLE_HEAD + r.memory.slide;
	r.wall_ns = clock_wall_offset(r.here_ns);
	for (int i = 0; ps->threads && !n && i < WALK_TRIES; i++)
		n = reader_list(&r, thds);
	err = ps->threads ? 0 : -EAGAIN;
	for (int i = 0; err && i < MANAGER_TRIES; i++)
		err = reader_manager(&r, thds, &n);
	n = err ? 0 : n;
	for (size_t i = 0; i < n && own_context < 0; i++)
		object_context(&r.memory, &query->places->object, thds[i], &own_context);
	locks.memory = r.memory;
	locks.owner = r.owner;
	locks.session_class = r.class;
	if (!ps->locks.trx_valid)
		reader_learn(&r, thds, n);
	for (size_t i = 0; i < n && reader_session(&r, thds[i]); i++)
		if (clock_ns(CLOCK_MONOTONIC) >= query->deadline_ns) {
			*query->more += n - i - 1;
			break;
		}
	process_memory_close(&r.memory);
cleanup:
	free(thds);
	return err;
}

static int server_open(struct mysql_server *server, const struct sample_query *query)
{
	int err;

	if (server->thds)
		return 0;
	err = process_memory_open_program(query->process, query->lowest, &server->memory);
	if (err)
		return err;
	server->own_context = -1;
	server->here_ns = clock_ahead(0);
	server->ahead_ns = clock_ahead(query->process->pid);
	server->thds = malloc(PS_SESSIONS * sizeof(*server->thds));
	server->session = malloc(PS_SESSIONS * sizeof(*server->session));
	if (server->thds && server->session)
		return 0;
	free(server->thds);
	free(server->session);
	server->thds = NULL;
	process_memory_close(&server->memory);
	return -ENOMEM;
}

static void session_close(const struct sample_query *query, struct mysql_session *session)
{
	query->gone(query->arg, &session->sampled);
	free(session->who);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Make ->session those of the @n THDs, which are sorted: add new ones, and drop what is gone. */
static void server_merge(struct mysql_server *server, const struct sample_query *query, size_t n)
{
	size_t kept = 0, old = 0, added;

	for (size_t i = 0; i < server->n; i++) {
		struct mysql_session *session = &server->session[i];

		while (old < n && server->thds[old] < session->thd)
			old++;
		if (old < n && server->thds[old] == session->thd)
			server->session[kept++] = *session;
		else
			session_close(query, session);
	}
	added = n - kept;
	/* From the end, so that each moves once. */
	for (size_t i = n; i-- && added; ) {
		if (kept && server->session[kept - 1].thd == server->thds[i]) {
			server->session[i] = server->session[--kept];
			continue;
		}
		server->session[i] = (struct mysql_session){ .thd = server->thds[i] };
		added--;
	}
	server->n = n;
}

/*
 * Read what tells whether THDs were added to the list: of server_threads the first and the last
 * one, of a Global_THD_manager what is in it. Return 0 or -ESRCH.
 */
static int server_words(const struct reader *r, uint64_t words[MANAGER_WORDS])
{
	uint64_t manager;

	memset(words, 0, MANAGER_WORDS * sizeof(*words));
	if (r->ps->threads)
		return process_memory_variable(&r->memory, r->ps->threads, words,
					       LIST_WORDS * sizeof(*words)) ? -ESRCH : 0;
	if (process_memory_variable(&r->memory, r->ps->manager, &manager, sizeof(manager)))
		return -ESRCH;
	reader_bytes(r, manager, words, MANAGER_WORDS * sizeof(*words));
	return 0;
}

/* Return whether the list server_threads, which is @words, points to itself. */
static bool server_is_empty(const struct reader *r, const uint64_t *words)
{
	uint64_t list = r->ps->threads + r->memory.slide;

	for (size_t i = 0; i < LIST_WORDS; i++)
		if (words[i] - list < LIST_WORDS * sizeof(*words))
			return true;
	return false;
}

/*
 * List the THDs if some may have been added, and otherwise now and then. Return 0; -EAGAIN: they
 * change too fast, those that are known may be there; or -ESRCH: the server has ended.
 */
static int server_list(struct mysql_server *server, const struct reader *r,
		       const struct sample_query *query)
{
	uint64_t words[MANAGER_WORDS];
	size_t n = 0, unique = 0;
	int err = server_words(r, words);

	if (err || (query->now_ns < server->listed_ns + LIST_NS &&
		    !memcmp(words, server->words, sizeof(words))))
		return err;
	for (int i = 0; r->ps->threads && !n && i < WALK_TRIES; i++)
		n = reader_list(r, server->thds);
	for (int i = 0; !r->ps->threads && i < MANAGER_TRIES; i++) {
		err = reader_manager(r, server->thds, &n);
		if (!err)
			break;
	}
	server->listed_ns = query->now_ns;
	if (err)
		return err;
	if (!n && r->ps->threads && !server_is_empty(r, words))
		return -EAGAIN;
	qsort(server->thds, n, sizeof(*server->thds), compare_addresses);
	for (size_t i = 0; i < n; i++)
		if (!i || server->thds[i] != server->thds[i - 1])
			server->thds[unique++] = server->thds[i];
	n = unique;
	*query->sessions -= server->n;
	if (*query->sessions + n > query->most)
		n = query->most > *query->sessions ? query->most - *query->sessions : 0;
	*query->sessions += n;
	server_merge(server, query, n);
	memcpy(server->words, words, sizeof(words));
	return 0;
}

/* Return the CLOCK_REALTIME of THD::utime_after_query, which MariaDB has behind ->times; or 0. */
static uint64_t reader_end(const struct reader *r, const uint64_t times[3])
{
	if (r->ps->manager || !times[2])
		return 0;
	return times[2] * 1000 - (uint64_t)r->ahead_ns + r->wall_ns;
}

/* Read the text at @text, and whom the session is of. */
static void session_text(const struct reader *r, struct mysql_server *server,
			 const struct sample_query *query, struct mysql_session *session,
			 const uint64_t text[2], struct sample *sample)
{
	size_t size = text[1] < query->text_bytes ? text[1] : query->text_bytes;
	ssize_t n = process_memory_read(&r->memory, text[0], query->text, size);

	if (session->who) {
		session->who->pid = query->process->pid;
		mysql_who_read(&r->ps->locks.kinds, &r->memory, &query->places->object,
			       session->thd, &server->own_context, session->who);
	}
	sample->text = n > 0 ? query->text : NULL;
	sample->len = n > 0 ? (size_t)n : 0;
	sample->cut = text[1] > sample->len;
}

/*
 * Read what a session does, if that has changed since the last sample. Return 0; -ENOENT: it has
 * not, or its text will follow; or -EAGAIN: it has meanwhile.
 */
static int session_read(const struct reader *r, struct mysql_server *server,
			const struct sample_query *query, struct mysql_session *session,
			struct sample *sample)
{
	uint64_t at = session->thd + (uint64_t)r->ps->times, times[3], text[2] = { 0 }, again;

	if (!reader_bytes(r, at, times, sizeof(times)) ||
	    (times[0] == session->start && !session->active) ||
	    !reader_bytes(r, session->thd + (uint64_t)query->places->object.text, text,
			  sizeof(text)))
		return -ENOENT;
	sample->active = text[0];
	if (sample->active ? times[0] == session->start : !session->active)
		return -ENOENT;
	sample->key = times[0];
	sample->begin_ns = times_start(r, times);
	sample->end_ns = reader_end(r, times);
	if (sample->active)
		session_text(r, server, query, session, text, sample);
	return reader_bytes(r, at, &again, sizeof(again)) && again == times[0] ? 0 : -EAGAIN;
}

/* Compare a session with the last sample. */
static void session_sample(const struct reader *r, struct mysql_server *server,
			   const struct sample_query *query, struct mysql_session *session)
{
	struct sample sample;
	int err = -EAGAIN;

	if (!session->who)
		session->who = calloc(1, sizeof(*session->who));
	for (int i = 0; err == -EAGAIN && i < WALK_TRIES; i++) {
		sample = (struct sample){ .who = session->who };
		err = session_read(r, server, query, session, &sample);
	}
	/* If that is not known, threads of the server itself are those without a user. */
	if (err || !session->who || (!*session->who->backend && !*session->who->user))
		return;
	session->start = sample.key;
	session->active = sample.active;
	query->changed(query->arg, &session->sampled, &sample);
}

static int mysql_sample(void *state, void *of, const struct sample_query *query)
{
	struct mysql_server *server = of;
	const struct mysql_ps *ps = state;
	unsigned int elements = SAMPLE_WALK_MAX;
	struct reader r = { .ps = ps, .elements = &elements };
	size_t done;
	int err;

	if (ps->times < 0 || query->places->object.text < 0)
		return -ENOTSUP;
	if (!query->wants(query->arg, query->process->pid))
		return 0;
	err = server_open(server, query);
	if (err)
		return err;
	r.memory = server->memory;
	r.here_ns = server->here_ns;
	r.ahead_ns = server->ahead_ns;
	r.class = ps->class + VTABLE_HEAD + r.memory.slide;
	r.wall_ns = clock_wall_offset(r.here_ns);
	err = server_list(server, &r, query);
	if (err && err != -EAGAIN)
		return err;
	for (done = 0; done < server->n; done++) {
		if (done % DEADLINE_STEP == DEADLINE_STEP - 1 &&
		    clock_ns(CLOCK_MONOTONIC) >= query->deadline_ns)
			break;
		session_sample(&r, server, query,
			       &server->session[(server->next + done) % server->n]);
	}
	server->next = server->n ? (server->next + done) % server->n : 0;
	return 0;
}

static void mysql_forget(void *of, const struct sample_query *query)
{
	struct mysql_server *server = of;

	if (!server->thds)
		return;
	for (size_t i = 0; i < server->n; i++)
		session_close(query, &server->session[i]);
	*query->sessions -= server->n;
	free(server->session);
	free(server->thds);
	process_memory_close(&server->memory);
}

const struct ps_ops mysql_ps_ops = {
	.state = { .bytes = sizeof(struct mysql_ps), .find = mysql_find },
	.event = mysql_event, .learn = mysql_learn, .read = mysql_read,
	.server_bytes = sizeof(struct mysql_server), .sample = mysql_sample,
	.forget = mysql_forget,
};
