/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h - the settings that a Convert client reads from its environment, constant afterwards */
#ifndef CLIENT_SETTINGS_H
#define CLIENT_SETTINGS_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the networks on which connections begin (CONVERT_PATHS) --- */

#define PATH_PREFERENCES_MAX 8 /* that the user may name */
#define PATH_EXCLUSIONS_MAX 24 /* that the path service publishes (host/host_model.h) */
#define PATH_PREFERENCE_NONE 255 /* of a network that isn't named */

enum path_use {
	PATH_USE_ORDERED, /* in the order of the list, before those that aren't named */
	PATH_USE_BACKUP,  /* carries only what would fail otherwise */
	PATH_USE_NEVER,   /* carries nothing */
	PATH_USE_COUNT
};

struct path_wish {
	char device[IF_NAMESIZE]; /* empty if it is an address */
	struct in6_addr address;  /* IPv4 as v4-mapped */
	enum path_use use;
};

struct path_preferences {
	struct path_wish wishes[PATH_PREFERENCES_MAX + PATH_EXCLUSIONS_MAX]; /* the user's, then those of host_preferences() */
	size_t count; /* 0: the user has said nothing */
};

/*
 * path_preferences_add() - read one element of the list: DEVICE or ADDRESS, followed by =backup, =never or nothing
 * Returns NULL, or words about the error that complete "X …".
 */
const char *path_preferences_add(struct path_preferences *out, const char *text);

/* Writes the network that an element names, as it was read: a device's name, or an address. Returns @buf. */
const char *path_wish_format(const struct path_wish *wish, char buf[static SOCKADDR_STRLEN]);

/* Returns the name of the use: "backup", "never", or "" for the order. */
const char *path_use_name(enum path_use use);

/* Is there a network on which the user wants no connection to begin? */
bool path_preferences_forbid(const struct path_preferences *wanted);

/* Is there a network that is to carry nothing, or nothing while others work (=never, =backup)? */
bool path_preferences_restrict(const struct path_preferences *wanted);

/*
 * path_preferences_of() - return the strictest wish for the network with this device and address
 * @preference: the network's first place in the order, lower is better; PATH_PREFERENCE_NONE if it has none, or a stricter wish
 */
enum path_use path_preferences_of(const struct path_preferences *wanted, const char *device, const struct in6_addr *address,
			      uint8_t *preference);

#define SETTINGS_CONVERTERS_MAX 8
#define SETTINGS_BYPASS_MAX 64
#define SETTINGS_NAME_MAX 254       /* bytes of a host name, NUL included (RFC 1035 2.3.4) */
#define SETTINGS_PATH_MAX 4096      /* bytes, NUL included: PATH_MAX */
#define SETTINGS_COOKIE_MAX 255     /* bytes */
/* Before the third SYN (RFC 6298), which Linux sends without MP_CAPABLE: see doc/decisions.md. */
#define SETTINGS_TIMEOUT_DEFAULT_MS 3000
#define SETTINGS_TIMEOUT_MAX_SECONDS 3600
#define SETTINGS_WITHHELD_LEARNED (-1) /* from the converter's answer to an Info TLV */
#define SETTINGS_WITHHELD_MAX_MS 65535
/* The path of the convertize by which the library starts programs that preloading doesn't reach; unset: by none */
#define SETTINGS_SUPERVISOR_VARIABLE "CONVERT_SUPERVISOR"
#define SETTINGS_PORT_DEFAULT 1234  /* Section 10.1 assigns none; the older client's default */

/* A converter as the user wrote it: an address, or a name to be resolved later. */
struct settings_converter {
	char name[SETTINGS_NAME_MAX]; /* empty for a numeric address; see srv_is_service() */
	union sockaddr_ip addr;       /* with its port; family AF_UNSPEC for a name */
	uint16_t port;                /* host byte order; 0 for a service */
};

struct settings {
	bool enabled;      /* connections may be converted */
	char problem[256]; /* why they can't be converted, in a sentence for the log; empty if enabled */
	char cache[SETTINGS_PATH_MAX]; /* CONVERT_CACHE: the cache's directory, or "none"; empty: as cache_find() says */
	char runtime_dir[SETTINGS_PATH_MAX]; /* XDG_RUNTIME_DIR, empty for none */
	char log[SETTINGS_PATH_MAX]; /* CONVERT_LOG: a path, "-" for stderr, empty for none */
	struct settings_converter converters[SETTINGS_CONVERTERS_MAX];
	size_t converter_count;
	uint8_t cookie[SETTINGS_COOKIE_MAX];
	size_t cookie_len; /* bytes; 0: none */
	struct prefix_rule bypass[SETTINGS_BYPASS_MAX]; /* destinations that aren't converted */
	size_t bypass_count;
	struct path_preferences paths; /* the networks that connections begin on */
	bool fail_closed; /* without a usable converter a connection fails instead of going directly */
	int timeout_ms;   /* how long a converter may be silent before the next one is asked */
	int withheld_ms;  /* converters withhold SYNs for at most this many ms (doc/private-tlvs.md); 0: they don't */
	bool silence;     /* requests may be silent, where the converter offers that (doc/private-tlvs.md) */
	bool early_data;  /* connect() doesn't wait: the SYN carries the application's first bytes */
	bool warn;         /* name on the standard error the started programs that can't be converted */
	bool beside_vpn;   /* connections may begin beside a VPN that leads to the converter */
	bool bypass_mptcp; /* servers that speak Multipath TCP themselves are reached without a converter */
};

/* Looks a variable up, as getenv(3) does. */
typedef const char *settings_lookup(const char *name);

/*
 * settings_read() - fill @out from the variables that @lookup finds: those of libconvert.so(7), and XDG_RUNTIME_DIR
 * @out: all zero, as static memory is, so that a starting program needn't write zeros over 18 kB.
 * Copies everything, since programs that set their title overwrite the memory of their environment.
 * An error leaves @out disabled, with the reason in @out->problem, which quotes the bad input: the client must then run unconverted, and
 * never fail.
 */
void settings_read(struct settings *out, settings_lookup *lookup);

/* --- which connections are converted --- */

enum policy_verdict {
	POLICY_CONVERT,
	POLICY_DIRECT_DISABLED,   /* no usable configuration */
	POLICY_DIRECT_LOCAL,      /* loopback or unspecified: this host */
	POLICY_DIRECT_LINK,       /* link-local: has no meaning at the converter */
	POLICY_DIRECT_GROUP,      /* multicast or broadcast: Section 6.2.5 forbids them */
	POLICY_DIRECT_CONVERTER,  /* the converter itself */
	POLICY_DIRECT_RESOLVER,   /* a server that helps to resolve the converter's own name */
	POLICY_DIRECT_BYPASS,     /* a rule of CONVERT_BYPASS matches */
	POLICY_DIRECT_SIGNALS,    /* O_ASYNC is set on the socket */
	POLICY_VERDICT_COUNT
};

/*
 * policy_decide() - decide whether to convert a connection to @destination
 * Depends on its arguments only. Doesn't resolve converters that are names: compare their addresses with policy_is_converter() when they
 * are known.
 */
enum policy_verdict policy_decide(const struct settings *settings,
				  const union sockaddr_ip *destination);

/*
 * policy_is_private() - is it an address of a private network, or of a provider's own (RFC 1918, 4193, 6598, 2544)?
 * Converters refuse these by default, and the client often reaches them by itself.
 */
bool policy_is_private(const union sockaddr_ip *destination);

/* Is @destination on the host that has @converter's address, at any port? */
bool policy_is_converter(const union sockaddr_ip *converter,
			 const union sockaddr_ip *destination);

/* Returns the reason, in words that complete "not converted: …". */
const char *policy_reason(enum policy_verdict verdict);

#endif
