/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convert/convert.h - the messages of the 0-RTT TCP Convert Protocol (RFC 8803)
 *
 * Bytes to structs and back. Nothing here allocates, does I/O, logs or keeps
 * state between calls, so every function may be called from any thread, signal
 * handler or fuzzer. Section numbers are RFC 8803's.
 *
 * Reading is done from the point of view of one of the two peers, because the
 * RFC gives them different answers to the same fault (Section 6.2.1: a client
 * that sees a TLV twice resets, a converter returns an Error TLV). The parsers
 * say *what* is wrong as an enum convert_status; convert_status_answer() says
 * what the RFC wants done about it.
 */
#ifndef CONVERT_CONVERT_H
#define CONVERT_CONVERT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CONVERT_API __attribute__((visibility("default")))
#else
#define CONVERT_API
#endif

#define CONVERT_PROTOCOL_VERSION 1          /* Section 6.1; version 0 is reserved */
#define CONVERT_MAGIC 0x2263       /* Section 6.1 */
#define CONVERT_HEADER_LEN 4       /* bytes of the fixed header */
#define CONVERT_MESSAGE_MAX 1020   /* bytes: 255 words of 32 bits, header included */
#define CONVERT_TLV_VALUE_MAX 1014 /* bytes of a Value that still fit behind the header */
#define CONVERT_CONNECT_LEN 20     /* bytes of a Base Connect TLV, Section 6.2.5 */

/* Section 6.2.2, Table 1. 192-255 are for private use (Section 10.2.2). */
enum convert_tlv_type {
	CONVERT_TLV_RESERVED = 0,
	CONVERT_TLV_INFO = 1,
	CONVERT_TLV_CONNECT = 10,
	CONVERT_TLV_EXTENDED_TCP_HEADER = 20,
	CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS = 21,
	CONVERT_TLV_COOKIE = 22,
	CONVERT_TLV_ERROR = 30,
	CONVERT_TLV_PRIVATE_FIRST = 192,
	CONVERT_TLV_WITHHOLDING = 240, /* of private use, see struct convert_withholding */
	CONVERT_TLV_ECHO = 241,        /* likewise, see doc/private-tlvs.md */
	CONVERT_TLV_PRIVATE_LAST = 255,
};

/* Section 6.2.8, Table 2. */
enum convert_error_code {
	CONVERT_ERROR_UNSUPPORTED_VERSION = 0,
	CONVERT_ERROR_MALFORMED_MESSAGE = 1,
	CONVERT_ERROR_UNSUPPORTED_MESSAGE = 2,
	CONVERT_ERROR_MISSING_COOKIE = 3,
	CONVERT_ERROR_NOT_AUTHORIZED = 32,
	CONVERT_ERROR_UNSUPPORTED_TCP_OPTION = 33,
	CONVERT_ERROR_RESOURCE_EXCEEDED = 64,
	CONVERT_ERROR_NETWORK_FAILURE = 65,
	CONVERT_ERROR_CONNECTION_RESET = 96,
	CONVERT_ERROR_DESTINATION_UNREACHABLE = 97,
};

/* What a parser found. Names of these come from convert_status_name(). */
enum convert_status {
	CONVERT_STATUS_OK,
	CONVERT_STATUS_NEED_MORE,            /* valid so far; more bytes are needed to decide */
	CONVERT_STATUS_BAD_MAGIC,            /* not a Convert message at all */
	CONVERT_STATUS_BAD_VERSION,          /* version 0, or one that we don't speak */
	CONVERT_STATUS_ZERO_TOTAL_LENGTH,    /* Section 6.1: the connection MUST be reset */
	CONVERT_STATUS_NO_TLV,               /* a request that asks for nothing: a header alone (Section 6
	                                 wants one or more TLVs), or a Cookie TLV alone */
	CONVERT_STATUS_TLV_PAST_END,         /* a TLV crosses the Total Length (Section 9) */
	CONVERT_STATUS_TLV_ZERO_LENGTH,      /* a TLV whose Length is 0 can't be stepped over */
	CONVERT_STATUS_TLV_TYPE_RESERVED,    /* type 0, Section 6.2.2 */
	CONVERT_STATUS_TLV_TWICE,            /* Section 6.2.1 */
	CONVERT_STATUS_TLV_UNKNOWN,          /* a request with a TLV that we don't know */
	CONVERT_STATUS_TLV_WRONG_DIRECTION,  /* a TLV that only the other peer may send */
	CONVERT_STATUS_TLV_BAD_LENGTH,       /* Length impossible for this type */
	CONVERT_STATUS_TLV_BAD_VALUE,        /* Value breaks the type's own rules (Zero field, padding, options) */
	CONVERT_STATUS_BAD_ADDRESS,          /* Section 6.2.5: multicast, broadcast, loopback (or unspecified) */
	CONVERT_STATUS_COUNT
};

/* What the RFC wants done about a status. */
enum convert_answer {
	CONVERT_ANSWER_NONE,   /* CONVERT_STATUS_OK or CONVERT_STATUS_NEED_MORE: nothing is wrong */
	CONVERT_ANSWER_IGNORE, /* not Convert: close without a word (Section 6) */
	CONVERT_ANSWER_RESET,  /* reset the connection */
	CONVERT_ANSWER_ERROR,  /* return an Error TLV with the code, then close */
};

/* Bytes inside the message that was parsed: valid as long as that buffer is. */
struct convert_span {
	const uint8_t *data;
	size_t len; /* bytes */
};

/* One TLV of a message: its type and its Value, i.e. all after Type and Length. */
struct convert_tlv {
	uint8_t type;
	struct convert_span value; /* 4 * Length - 2 bytes */
};

/*
 * A position in a message, for convert_tlv_next(). Start it with
 * convert_tlv_first().
 */
struct convert_tlv_cursor {
	const uint8_t *pos;
	const uint8_t *end;
};

/* A request: what a client may send to a converter. */
struct convert_request {
	size_t length;           /* bytes of the stream that the message takes */
	bool has_info;           /* Section 6.2.3 */
	bool has_connect;        /* Section 6.2.5 */
	bool has_cookie;         /* Section 6.2.7 */
	bool has_echo;           /* doc/private-tlvs.md: what follows the message is to come back */
	struct in6_addr address; /* of the server; IPv4 as v4-mapped */
	uint16_t port;           /* of the server, host byte order */
	bool extended;           /* an Extended Connect TLV: a TCP Options field is there */
	struct convert_span tcp_options; /* that field, walk it with convert_tcp_option_next() */
	struct convert_span cookie;      /* with its padding: its true length is not on the wire */
};

/*
 * A private-use TLV of this project (doc/private-tlvs.md), in answers to an Info TLV: whether the
 * converter withholds SYNs until the server has answered (Section 4.2), so that its SYN+ACK confirms
 * the server; and whether data in an MPTCP SYN to it may be followed by a download over several paths.
 */
struct convert_withholding {
	bool withheld;     /* it withholds SYNs that carry a whole request */
	uint16_t limit_ms; /* for so long at most; what comes later confirms nothing */
	bool corrects;     /* it corrects the windows of MPTCP SYNs that carry data */
};

/* A response: what a converter may send to a client. */
struct convert_response {
	size_t length; /* bytes of the stream that the message takes */
	bool has_error;
	bool has_tcp_header; /* Extended TCP Header TLV, Section 6.2.6 */
	bool has_supported;  /* Supported TCP Extensions TLV, Section 6.2.4 */
	bool has_withholding;
	bool has_echo;       /* of private use: what follows the request comes back, */
	uint16_t echo_kib;   /* so many KiB of it at most */
	uint8_t error_code;  /* enum convert_error_code, or a code that we don't know */
	struct convert_span error_value; /* all after the Error Code: 4 * Length - 3 bytes */
	struct convert_span tcp_header;  /* TCP options of the server's SYN+ACK */
	struct convert_span supported;   /* option kinds, padded with 0 */
	struct convert_withholding withholding; /* zero without that TLV, or in one of another's */
};

/* One TCP option as in Figure 19. */
struct convert_tcp_option {
	uint8_t kind;
	struct convert_span value; /* without Kind and Length; empty where Length is 2 */
};

/*
 * convert_message_length() - how many bytes of the stream a message takes
 * @buf, @len: the first bytes of the stream, as many as have arrived
 * @length: set on CONVERT_STATUS_OK: bytes (4-1020) that the whole message takes,
 *          header included; they may not have arrived yet
 *
 * Returns CONVERT_STATUS_OK, CONVERT_STATUS_NEED_MORE (fewer than 4 bytes, which don't yet show
 * a wrong magic number), CONVERT_STATUS_BAD_MAGIC, CONVERT_STATUS_BAD_VERSION (the magic number
 * is right) or CONVERT_STATUS_ZERO_TOTAL_LENGTH. On the last two @length is set as well,
 * to 0 if the Total Length is 0; otherwise it is left alone.
 */
CONVERT_API enum convert_status convert_message_length(const uint8_t *buf, size_t len,
						       size_t *length);

/*
 * convert_request_parse() - read a client's message, as a converter
 * @buf, @len: the first bytes of the stream; bytes behind the message are the
 *             application's and are not looked at
 * @out: filled on CONVERT_STATUS_OK, otherwise zero but for @out->length, which is right
 *       as soon as the header is, so that the message can be echoed (Section 6.2.8)
 *
 * CONVERT_STATUS_NEED_MORE until the whole message is there. A TLV that Table 1 doesn't
 * list is CONVERT_STATUS_TLV_UNKNOWN. Of several faults the first in the stream is
 * returned; within a TLV, Type comes before Length and Length before Value.
 */
CONVERT_API enum convert_status convert_request_parse(const uint8_t *buf, size_t len,
						      struct convert_request *out);

/*
 * convert_response_parse() - read a converter's message, as a client
 * As convert_request_parse(); but TLVs of unknown type are stepped over (the
 * protocol is extended by new TLVs, Section 6), and a header alone is accepted,
 * which says that the server was reached and nothing else.
 */
CONVERT_API enum convert_status convert_response_parse(const uint8_t *buf, size_t len,
						       struct convert_response *out);

/*
 * convert_request_answer(), convert_response_answer() - what to do about a status
 * @code: for CONVERT_ANSWER_ERROR set to the code of the Error TLV, may be NULL
 */
CONVERT_API enum convert_answer convert_request_answer(enum convert_status status,
						       enum convert_error_code *code);
CONVERT_API enum convert_answer convert_response_answer(enum convert_status status);

/*
 * convert_tlv_first(), convert_tlv_next() - walk the TLVs of any message
 * For what the parsers above don't interpret (private-use TLVs, tools).
 * @buf, @len: the TLVs, that is the message without its fixed header
 * Returns CONVERT_STATUS_OK with @tlv set, CONVERT_STATUS_NEED_MORE at the end, or the fault,
 * at which the cursor stays: CONVERT_STATUS_TLV_ZERO_LENGTH, CONVERT_STATUS_TLV_PAST_END.
 */
CONVERT_API void convert_tlv_first(struct convert_tlv_cursor *cursor, const uint8_t *buf,
				   size_t len);
CONVERT_API enum convert_status convert_tlv_next(struct convert_tlv_cursor *cursor,
						 struct convert_tlv *tlv);

/*
 * convert_tcp_option_next() - walk a list of TCP options (Figure 19, RFC 9293 3.1)
 * @list: the options still ahead; moved behind the option returned
 * @option: set on CONVERT_STATUS_OK
 *
 * Kinds 0 and 1 have no length and are passed over (Section 7.1; 0 is the padding).
 * Returns CONVERT_STATUS_OK, CONVERT_STATUS_NEED_MORE at the end of the list, or
 * CONVERT_STATUS_TLV_BAD_VALUE, where @list stays: an option's length is under 2 or
 * crosses the end. The options of a request were walked by its parser and have
 * no such fault; those of a response are the server's and may.
 */
CONVERT_API enum convert_status convert_tcp_option_next(struct convert_span *list,
							struct convert_tcp_option *option);

/*
 * convert_address_is_valid() - may this be a Remote Peer IP Address (Section 6.2.5)?
 * False for multicast, broadcast (255.255.255.255) and host loopback addresses of
 * either family (v4-mapped for IPv4), and for the unspecified ones (::, 0.0.0.0/8),
 * which Linux takes for loopback.
 */
CONVERT_API bool convert_address_is_valid(const struct in6_addr *address);

/*
 * Writing. A writer puts TLVs behind a fixed header into the caller's buffer and
 * remembers the first thing that did not fit or is not allowed, so that only
 * convert_writer_finish() has to be checked. What it is given must not lie in that
 * buffer.
 */
struct convert_writer {
	uint8_t *buf;
	size_t capacity; /* bytes usable of buf, at most CONVERT_MESSAGE_MAX */
	size_t len;      /* bytes written, header included */
	int error;       /* 0, or the first -errno */
};

/* Starts a message in @buf of @capacity bytes; under 4 is -ENOBUFS at the end. */
CONVERT_API void convert_writer_init(struct convert_writer *w, uint8_t *buf, size_t capacity);

/*
 * convert_writer_finish() - write the fixed header
 * Returns the length of the message in bytes (a multiple of 4), or what went wrong
 * first: -ENOBUFS (the buffer, or 1020 bytes, is too small), -EINVAL (a value that
 * the RFC forbids), -EEXIST (a TLV written twice).
 */
CONVERT_API ssize_t convert_writer_finish(struct convert_writer *w);

CONVERT_API void convert_write_info(struct convert_writer *w);

/*
 * convert_write_connect() - a Base Connect TLV, or an Extended one if @options is not empty
 * @address: the server's, IPv4 as v4-mapped; one that is not valid is -EINVAL
 * @port: host byte order
 * @options, @options_len: a TCP Options field in wire format without its padding;
 *                         NULL and 0 for none. Kinds 0 and 1 are -EINVAL.
 */
CONVERT_API void convert_write_connect(struct convert_writer *w, const struct in6_addr *address,
				       uint16_t port, const uint8_t *options, size_t options_len);

/* @options: the options of the server's SYN+ACK in wire format, padded here with 0. */
CONVERT_API void convert_write_tcp_header(struct convert_writer *w, const uint8_t *options,
					  size_t options_len);

/* @kinds: TCP option kinds; 0, 1, 2, 3, 5 and 29 must not be announced (-EINVAL; Section 7). */
CONVERT_API void convert_write_supported(struct convert_writer *w, const uint8_t *kinds,
					 size_t count);

/* @cookie: opaque, 1 byte or more, padded here with 0 to a multiple of 4. */
CONVERT_API void convert_write_cookie(struct convert_writer *w, const uint8_t *cookie,
				      size_t cookie_len);

CONVERT_API void convert_write_withholding(struct convert_writer *w,
					   const struct convert_withholding *withholding);

/* @limit_kib: how much comes back at most; 0 in a request. */
CONVERT_API void convert_write_echo(struct convert_writer *w, uint16_t limit_kib);

/*
 * A TLV of any type but 0 (-EINVAL), say for private use; @value is not checked, and
 * padded with 0.
 */
CONVERT_API void convert_write_tlv(struct convert_writer *w, uint8_t type, const uint8_t *value,
				   size_t value_len);

/*
 * Error TLVs (Section 6.2.8), a function for each form of the Value field:
 * convert_write_error()           code and one byte: the ICMP code (97), the delay in
 *                                 seconds (64, 65; 0: the default of 30), 0 otherwise
 * convert_write_error_versions()  0: all versions that this library speaks
 * convert_write_error_echo()      1 and 2: the message that triggered it, cut to what fits
 * convert_write_error_cookie()    3: the computed cookie, 1 byte or more
 * convert_write_error_options()   33: the kinds that are not supported, 1 or more; 0 is padding
 *                                 and none (-EINVAL)
 * A form that is not the code's is -EINVAL. Codes that Table 2 doesn't list take
 * convert_write_error() with any value.
 */
CONVERT_API void convert_write_error(struct convert_writer *w, enum convert_error_code code,
				     uint8_t value);
CONVERT_API void convert_write_error_versions(struct convert_writer *w);
CONVERT_API void convert_write_error_echo(struct convert_writer *w, enum convert_error_code code,
					  const uint8_t *message, size_t len);
CONVERT_API void convert_write_error_cookie(struct convert_writer *w, const uint8_t *cookie,
					    size_t cookie_len);
CONVERT_API void convert_write_error_options(struct convert_writer *w, const uint8_t *kinds,
					     size_t count);

/* Names for logs and tools; "unknown" for values that have none. */
CONVERT_API const char *convert_status_name(enum convert_status status);
CONVERT_API const char *convert_error_name(uint8_t code); /* "Connection Reset", as in Table 2 */
CONVERT_API const char *convert_tlv_name(uint8_t type);   /* "Connect TLV", as in Table 4 */

#ifdef __cplusplus
}
#endif

#endif
