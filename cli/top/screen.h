/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A terminal as a screen of lines and a source of keys, by the control sequences of ECMA-48 and the
 * private modes of VT terminals: 7 (wrap), 25 (cursor) and 1049 (alternate screen). Terminals
 * ignore those that they do not have.
 *
 * Nothing blocks: what the terminal does not take stays in a buffer, and lines that do not fit are
 * written with the next frame.
 */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#define SCREEN_ROWS	300
#define SCREEN_COLUMNS	1000
#define SCREEN_PENDING	65536

/* Keys that are not a byte. */
enum screen_key {
	SCREEN_NO_KEY = -1,
	SCREEN_UP = 256, SCREEN_DOWN, SCREEN_PAGE_UP, SCREEN_PAGE_DOWN, SCREEN_HOME, SCREEN_END,
	SCREEN_F6, SCREEN_ESCAPE,
};

/* The decoder of keys: the state between two bytes of a sequence. All zero: between two keys. */
struct screen_input {
	enum { INPUT_PLAIN, INPUT_ESCAPE, INPUT_CSI, INPUT_SS3 } state;
	unsigned int number;		/* the first parameter of a control sequence */
	bool more;			/* it has ended */
};

struct screen {
	int fd;				/* the terminal, non-blocking; owned. -1: closed */
	int stop, cont;			/* signalfd(2) of SIGTSTP and SIGCONT; owned */
	struct termios saved;		/* modes before screen_enter() */
	bool entered;
	unsigned int width, height;	/* of the terminal */
	int error;			/* 0, or the first error of the terminal, -errno */
	/* The frame being drawn. */
	unsigned int row;
	bool partial;			/* a line was left out */
	uint64_t shown[SCREEN_ROWS];	/* hashes of the lines that were written; 0: unknown */
	size_t len, sent;		/* of ->pending; how much of it the terminal has */
	char pending[SCREEN_PENDING];
	/* Keys. */
	struct screen_input input;
	uint64_t escape_ns;		/* when an ESC was read that may be a key */
	unsigned char bytes[64];
	size_t nbytes, byte;
};

/*
 * Return whether the standard input and output are terminals that understand the sequences: TERM is
 * set, and not "dumb".
 */
bool screen_is_possible(void);

/* Open the terminal. Return 0 or -errno with nothing open. screen_close() ends it. */
int screen_open(struct screen *screen);

/*
 * Switch to the alternate screen and to single keys without echo. SIGTSTP is blocked from then on,
 * see screen_update().
 */
void screen_enter(struct screen *screen);

/* Undo screen_enter(). Wait for a terminal that does not read for at most a second. */
void screen_leave(struct screen *screen);

/*
 * Write what is pending, stop this process if SIGTSTP was received, and read the size. Return true
 * if a frame must be drawn: after a change of the size, SIGCONT, or an incomplete frame.
 */
bool screen_update(struct screen *screen);

/* Return whether the terminal has taken the last frame. */
bool screen_is_idle(const struct screen *screen);

/*
 * Draw a frame: screen_begin(), screen_line() for each line from the top, screen_update(). Lines
 * that did not change are not written.
 */
void screen_begin(struct screen *screen);
void screen_line(void *screen, const char *text, size_t len);

/* Forget what the terminal shows, so that the next frame is written completely. */
void screen_redraw(struct screen *screen);

/* Return the next key, a byte or an enum screen_key, at @now_ns of CLOCK_MONOTONIC. */
int screen_key(struct screen *screen, uint64_t now_ns);

/* Pass one byte to the decoder. Return a key, or SCREEN_NO_KEY within a sequence. */
int screen_decode(struct screen_input *input, unsigned char byte);

/* Leave and close the terminal. Does nothing if it is closed. */
void screen_close(struct screen *screen);

#endif
