/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_private.h - what the parts of check_converters() share: the paths to a converter, and what was seen on them
 *
 * First everything is asked and measured, then it is said, since what is wrong on one path means
 * something else if it is so on all of them.
 */
#ifndef CONVERTIZE_CHECK_PRIVATE_H
#define CONVERTIZE_CHECK_PRIVATE_H

#include "client/cache.h"
#include "client/cache_place.h"
#include "convertize/check.h"
#include "convertize/network.h"
#include "convertize/probe.h"
#include "convertize/report.h"
#include "convertize/routes.h"

#define CHECK_ADDRESSES_MAX 32 /* as many as libconvert.so knows */
#define CHECK_PATHS_MAX 32

/* What becomes of full segments. */
enum check_size {
	CHECK_SIZE_UNKNOWN, /* not asked */
	CHECK_SIZE_CARRIED,
	CHECK_SIZE_LOST_THERE, /* they don't arrive at the converter */
	CHECK_SIZE_LOST_BACK,
};

/* A way from here to an address of a converter. */
struct check_path {
	union sockaddr_ip from;               /* AF_UNSPEC: as the kernel chooses */
	const char *device;                   /* its sockets are bound to that; NULL: to none */
	const struct network_interface *home; /* the device that it leaves by; NULL: not known */
	bool endpoint;                        /* subflows use it */
	struct probe_result probe;            /* a request like those of programs, or the next best */
	bool connected;                       /* one kind of connection is answered, at least */
	enum probe_syn_data syn_data;
	size_t syn_passed, syn_lost;          /* bytes in SYNs: the most that was taken, the fewest that */
					      /* were lost, time and again; 0: none */
	enum probe_mptcp mptcp;
	bool mptcp_dropped;  /* SYNs that offer it get no answer, others do */
	bool host_answers;   /* nothing comes back from the port, but from the host over the same path */
	enum check_size size;
	bool both_ways;      /* the way back was measured as well */
	unsigned int mtu;    /* the largest packets that are carried; 0: not even the smallest were */
	size_t carried;      /* bytes of the transfer, each way */
	double transfer_ms;
};

/* Which cookie is the converter's, if it has refused? */
enum check_cookie {
	CHECK_COOKIE_UNKNOWN,    /* without it, it refuses as well */
	CHECK_COOKIE_CLIENT,     /* none was sent */
	CHECK_COOKIE_WRONG,      /* without, it asks for one */
	CHECK_COOKIE_NOT_NEEDED, /* without, it answers; or it gives one to those who have none */
};

/* One address of a converter. */
struct check_candidate {
	union sockaddr_ip address;
	char about[SOCKADDR_STRLEN + SETTINGS_NAME_MAX + 4]; /* "192.0.2.1:1234 (name)" */
	struct check_path first; /* that connections take */
	struct check_path paths[CHECK_PATHS_MAX]; /* the others, if they were looked at */
	size_t path_count;
	uint8_t cookie[CONVERT_TLV_VALUE_MAX];
	size_t cookie_len;
	bool cookie_learned; /* it asked for it, and gave it */
	enum check_cookie refused;
};

struct check_converters {
	struct report *report;
	const struct settings *settings;
	const struct network *network;
	struct routes routes;
	struct cache cache; /* what programs have learned */
	struct cache_place place;
	struct check_candidate candidates[CHECK_ADDRESSES_MAX];
	size_t count;
	bool any; /* some address serves */
};

/* --- check_ask.c ---------------------------------------------------------------------- */

/* A probe of this path, as yet without any of what may be tried on it. */
struct probe_request check_request(const struct check_converters *converters,
				   const struct check_candidate *candidate,
				   const struct check_path *path);

/* Asks the converter over a path, and finds out which part of a request doesn't get through. */
void check_ask(const struct check_converters *converters, struct check_candidate *candidate,
	       struct check_path *path);

/* Likewise over the first path; deals with cookies. */
void check_ask_first(const struct check_converters *converters,
		     struct check_candidate *candidate);

/* Does this address serve? */
bool check_serves(const struct check_candidate *candidate);

/* --- check_measure.c -------------------------------------------------------------------- */

/* A short transfer each way over a path that the converter answers on. */
void check_measure(const struct check_converters *converters,
		   const struct check_candidate *candidate, struct check_path *path);

/* And over all of them at once; false: not all came back. */
bool check_measure_all(const struct check_converters *converters,
		       const struct check_candidate *candidate, unsigned int subflows,
		       struct probe_result *out);

/* --- check_paths.c ---------------------------------------------------------------------- */

/* What to call it: the name of its device. */
const char *check_path_name(const struct check_path *path);

/* Finds the other paths of a candidate that serves, asks and measures. */
void check_paths_look(const struct check_converters *converters, struct check_candidate *candidate);

/* Of a candidate that doesn't answer: another path over which it does, or NULL. */
const struct check_path *check_paths_elsewhere(const struct check_converters *converters,
					       struct check_candidate *candidate);

/* Adds the command that makes connections to the converter go over this path; false: there is none. */
bool check_paths_prefer(const struct check_candidate *candidate, const struct check_path *path,
			struct fact *fact);

/* What was measured on a path; the first one as well. */
void check_paths_report_size(const struct check_converters *converters,
			     const struct check_candidate *candidate,
			     const struct check_path *path);

/* What is so on the others, and over all of them. */
void check_paths_report(const struct check_converters *converters,
			const struct check_candidate *candidate);

#endif
