// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define GRACE_MS	1000
#define ESCAPE_NS	50000000	/* after which an ESC is a key of its own */
#define LINE_HEAD	32		/* bytes of sequences around a line, at most */

/* Set the modes by ioctl(2), which the seccomp filter permits; tcsetattr() would be the same. */
static void screen_modes(const struct screen *screen, const struct termios *modes)
{
	tcsetattr(screen->fd, TCSANOW, modes);
}

/* Return a descriptor that reports @sig while it is blocked. */
static int screen_signalfd(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Block or unblock the signals of job control. A pending SIGTSTP stops the process at once. */
static void screen_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigprocmask(how, &set, NULL);
}

bool screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

int screen_open(struct screen *screen)
{
	/* A description of its own: the one of the standard output is shared with the shell. */
	screen->fd = open("/proc/self/fd/1", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (screen->fd < 0)
		return -errno;
	screen->stop = screen_signalfd(SIGTSTP);
	screen->cont = screen_signalfd(SIGCONT);
	if (screen->stop >= 0 && screen->cont >= 0 && !tcgetattr(screen->fd, &screen->saved))
		return 0;
	screen->error = -errno;
	screen_close(screen);
	return screen->error;
}

static void screen_put(struct screen *screen, const char *text, size_t len)
{
	memcpy(screen->pending + screen->len, text, len);
	screen->len += len;
}

/* Write what is pending, as far as the terminal takes it. */
static void screen_flush(struct screen *screen)
{
	while (screen->sent < screen->len && !screen->error) {
		ssize_t n = write(screen->fd, screen->pending + screen->sent,
				  screen->len - screen->sent);

		if (n > 0)
			screen->sent += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n == 0 || errno != EINTR)
			screen->error = n ? -errno : -EIO;
	}
	screen->sent = screen->len = 0;
}

bool screen_is_idle(const struct screen *screen)
{
	return !screen->len;
}

/* Set the size of the terminal; a terminal without one is 80 by 24. Return whether it changed. */
static bool screen_size(struct screen *screen)
{
	unsigned int width = screen->width, height = screen->height;
	struct winsize size = { 0 };

	ioctl(screen->fd, TIOCGWINSZ, &size);
	screen->width = !size.ws_col ? 80 : size.ws_col < SCREEN_COLUMNS ? size.ws_col :
									   SCREEN_COLUMNS;
	screen->height = !size.ws_row ? 24 : size.ws_row < SCREEN_ROWS ? size.ws_row : SCREEN_ROWS;
	return width != screen->width || height != screen->height;
}

/* The modes of screen_enter(); also after SIGCONT, as the shell may have changed them. */
static void screen_raw(struct screen *screen)
{
	static const char on[] = "\033[?7l\033[?25l\033[0m\033[2J";
	struct termios raw = screen->saved;

	raw.c_iflag &= ~(tcflag_t)IXON;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VQUIT] = _POSIX_VDISABLE;
	screen_modes(screen, &raw);
	screen_put(screen, on, sizeof(on) - 1);
	screen_redraw(screen);
}

void screen_enter(struct screen *screen)
{
	static const char on[] = "\033[?1049h";

	screen_signals(SIG_BLOCK);
	screen->entered = true;
	screen_size(screen);
	screen->sent = screen->len = 0;
	screen_put(screen, on, sizeof(on) - 1);
	screen_raw(screen);
}

void screen_leave(struct screen *screen)
{
	struct pollfd terminal = { .fd = screen->fd, .events = POLLOUT };
	char off[64];
	size_t len;

	if (!screen->entered)
		return;
	screen->entered = false;
	/* An incomplete sequence ends with the next ESC. */
	screen->sent = screen->len = 0;
	/* Without an alternate screen, the shell continues below the last frame. */
	len = (size_t)snprintf(off, sizeof(off), "\033[0m\033[%u;1H\r\n"
			       "\033[?25h\033[?7h\033[?1049l", screen->height);
	screen_put(screen, off, len);
	do
		screen_flush(screen);
	while (screen->len && !screen->error && poll(&terminal, 1, GRACE_MS) > 0);
	screen_modes(screen, &screen->saved);
	screen_signals(SIG_UNBLOCK);
}

bool screen_update(struct screen *screen)
{
	struct pollfd stop = { .fd = screen->stop, .events = POLLIN };
	struct signalfd_siginfo info;
	bool draw = screen->partial;

	if (poll(&stop, 1, 0) > 0) {
		/* The pending signal stops the process in screen_leave(), once it is unblocked. */
		screen_leave(screen);
		screen_enter(screen);
		draw = true;
	}
	if (read(screen->cont, &info, sizeof(info)) > 0) {
		screen->sent = screen->len = 0;
		screen_raw(screen);
		draw = true;
	}
	if (screen_size(screen)) {
		screen_redraw(screen);
		draw = true;
	}
	screen_flush(screen);
	return draw;
}

void screen_redraw(struct screen *screen)
{
	memset(screen->shown, 0, sizeof(screen->shown));
}

void screen_begin(struct screen *screen)
{
	screen->row = 0;
	screen->partial = false;
}

/* Return the FNV-1a hash of @text, and never 0. */
static uint64_t screen_hash(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash | 1;
}

void screen_line(void *arg, const char *text, size_t len)
{
	struct screen *screen = arg;
	uint64_t hash = screen_hash(text, len);
	unsigned int row = screen->row++;
	char head[LINE_HEAD];

	if (row >= SCREEN_ROWS || screen->shown[row] == hash)
		return;
	if (len + LINE_HEAD > sizeof(screen->pending) - screen->len) {
		screen->partial = true;
		return;
	}
	screen->shown[row] = hash;
	screen_put(screen, head, (size_t)snprintf(head, sizeof(head), "\033[%u;1H\033[K", row + 1));
	screen_put(screen, text, len);
}

/* Keys */

/* Return the key of a control sequence that ends in @byte. */
static int input_control(const struct screen_input *input, unsigned char byte)
{
	static const struct {
		uint8_t byte, number;
		uint16_t key;
	} keys[] = {
		{ 'A', 0, SCREEN_UP }, { 'B', 0, SCREEN_DOWN }, { 'H', 0, SCREEN_HOME },
		{ 'F', 0, SCREEN_END }, { '~', 1, SCREEN_HOME }, { '~', 4, SCREEN_END },
		{ '~', 5, SCREEN_PAGE_UP }, { '~', 6, SCREEN_PAGE_DOWN }, { '~', 7, SCREEN_HOME },
		{ '~', 8, SCREEN_END }, { '~', 17, SCREEN_F6 },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].byte == byte &&
		    (byte == '~' ? keys[i].number == input->number : input->number < 2))
			return keys[i].key;
	return SCREEN_NO_KEY;
}

int screen_decode(struct screen_input *input, unsigned char byte)
{
	/* An ESC begins a sequence in any state; the one before it was a key. */
	if (byte == '\033') {
		int key = input->state == INPUT_ESCAPE ? SCREEN_ESCAPE : SCREEN_NO_KEY;

		*input = (struct screen_input){ .state = INPUT_ESCAPE };
		return key;
	}
	switch (input->state) {
	case INPUT_PLAIN:
		return byte;
	case INPUT_ESCAPE:
		input->state = byte == '[' ? INPUT_CSI : byte == 'O' ? INPUT_SS3 : INPUT_PLAIN;
		return SCREEN_NO_KEY;
	case INPUT_CSI:
		input->more = input->more || byte < '0' || byte > '9';
		if (!input->more && input->number < 1000)
			input->number = input->number * 10 + byte - '0';
		/* The kernel's console sends ESC [ [ A for F1, not for Up. */
		if (byte == '[')
			input->number = 1000;
		if (byte < 0x40 || byte == '[')
			return SCREEN_NO_KEY;
		break;
	case INPUT_SS3:
		break;
	}
	input->state = INPUT_PLAIN;
	return input_control(input, byte);
}

int screen_key(struct screen *screen, uint64_t now_ns)
{
	struct screen_input *input = &screen->input;
	int key = SCREEN_NO_KEY;
	ssize_t n;

	while (key == SCREEN_NO_KEY) {
		if (screen->byte == screen->nbytes) {
			n = read(screen->fd, screen->bytes, sizeof(screen->bytes));
			screen->byte = 0;
			screen->nbytes = n > 0 ? (size_t)n : 0;
		}
		if (screen->byte == screen->nbytes)
			break;
		key = screen_decode(input, screen->bytes[screen->byte++]);
		screen->escape_ns = now_ns;
	}
	if (key != SCREEN_NO_KEY || input->state != INPUT_ESCAPE ||
	    now_ns - screen->escape_ns < ESCAPE_NS)
		return key;
	input->state = INPUT_PLAIN;
	return SCREEN_ESCAPE;
}

void screen_close(struct screen *screen)
{
	const int fds[] = { screen->fd, screen->stop, screen->cont };

	if (screen->fd < 0)
		return;
	screen_leave(screen);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	screen->fd = -1;
}
