/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_world.h - the engine without a kernel: tests script the socket's events, set the networks and move the clock
 *
 * said() returns the engine's actions as words: "syn 1 data", "connect 2", "end", "take 8" …
 */
#ifndef TESTS_UNIT_ENGINE_WORLD_H
#define TESTS_UNIT_ENGINE_WORLD_H

#include "client/notes.h"
#include "convert/convert.h"
#include "engine/dial.h"

#include <check.h>
#include <linux/tcp.h>

#define MS CLOCK_NS_PER_MS
#define S CLOCK_NS_PER_S
#define TAKEN (TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS)

extern struct settings settings;
extern char lines[2048]; /* the log */

/* The kernel of the script. */
extern struct kernel {
	int64_t now, wake_at;
	int64_t look_takes;     /* for how long the process isn't scheduled after it has read TCP_INFO */
	struct tcp_info info;
	int error;              /* SO_ERROR */
	bool fell_back, shut;   /* shut: the peer's end of the stream is there */
	uint8_t stream[CONVERT_MESSAGE_MAX];
	size_t len, shown;      /* bytes that are there, and that MSG_PEEK shows at first; 0: all */
	int read_error;
	ssize_t takes;          /* how much output is taken at once; or -errno */
	ssize_t syn_takes;      /* likewise, with a SYN */
	int connects, fits, binds; /* 0 or -errno */
	int holds;              /* what ops->defer() returns */
	bool no_mptcp, several, blind, unprobed, lost_bytes;
	bool only_tcp;          /* no socket can be made a Multipath TCP one */
	const struct convert_withholding *offers; /* what a converter offers; NULL: as answer() says */
	struct convert_request request; /* the last one */
	uint8_t message[CONVERT_MESSAGE_MAX + DIAL_EARLY_MAX];
	size_t message_len;
	unsigned int watched, begun;
	struct note note;       /* the last one that was left for "convertize status" */
	const char *direct_reason; /* likewise, of note_direct() */
	char done[512];
} kernel;

/* The networks, likewise. */
extern struct networks {
	enum paths_do what;     /* of the next look */
	enum paths_do leave;    /* of survey_leave() */
	bool begins, forbidden, refuses, trial_over, trial_works;
	int elsewhere, chosen;  /* paths of @list; -1: none */
	int missed;
	const char *policy_breach; /* why Multipath TCP would break the user's policy; NULL: it wouldn't */
	struct path_list list;
	bool meanwhile;         /* the SYN+ACK comes while the probes are looked at */
	bool unasked;           /* no probe of a trial, or of a silent connection, can be sent */
	enum survey_answer answer;
	enum cache_path refused; /* what path_list_refused() was told, */
	uint32_t tried;         /* and which converters not to list */
	unsigned int open, looks;
	enum survey_syn syn;
	unsigned int waiting;   /* what survey_look() was told */
	enum paths_do left;     /* and survey_leave() */
	void (*meanwhile_elsewhere)(void); /* what other threads do while this one begins a survey or looks for a trial's end */
} nets;

extern const struct dial_ops ops;

/* The dial of a test, and how it has ended. */
extern struct dial dial;
extern struct dial_end end;

/* A converter's answers. */
enum answer { WHOLE, SUPPORTED, SILENCE, GARBAGE, REFUSED, NOT_AUTHORIZED, COOKIE, OPTION, FULL, HOLDING };

/* Makes a list of one other network, wlan0 with this last byte of its address, which leads to converter 1. */
void list_of(unsigned int source);

/* Returns what the engine has done since the last call. */
const char *said(void);

/* Is the text in the log of this dial? */
bool is_logged(const char *text);

/* Before each test. */
void setup(void);

/* Likewise, with a cache that other processes share; and after each such test. */
void setup_cached(void);
void teardown_cached(void);

/* Likewise, with a converter whose name is to be resolved. */
void setup_named(void);

/* The program calls connect(). */
enum dial_state dial_begin(bool holds);

/* Takes a step, after an event. */
enum dial_state step(void);

/* The SYN+ACK comes, with these tcpi_options. said() forgets what was done before. */
void synack(uint8_t options);

/* Puts this answer into the stream. */
void answer(enum answer what);

/* Takes a step as a signal handler on a stack of its own does. */
enum dial_state step_on_small_stack(void);

/* Makes a connection that succeeds, from which the engine knows the converter. */
void learn(enum answer what);

#define expect_said(text) ck_assert_str_eq(said(), (text))
#define expect_on(state) ck_assert_int_eq((state), DIAL_IN_PROGRESS)

#endif
