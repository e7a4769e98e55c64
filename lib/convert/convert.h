/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convert/convert.h - the messages of the 0-RTT TCP Convert Protocol (RFC 8803)
 *
 * libconvertproto turns bytes into structures (convert_request_parse(), convert_response_parse()) and
 * structures into bytes (convert_writer_init(), a convert_write_*() for each TLV, convert_writer_finish()).
 * The caller moves the bytes: the library knows no socket.
 *
 * - It does not allocate, log, do I/O, set errno or keep state between calls. Every function may be called
 *   from any thread and from a signal handler, as long as no other thread uses the same structure.
 * - The caller owns all structures and buffers, and may put them on the stack. There is nothing to release.
 * - A struct convert_span points into the parsed buffer. It is valid as long as that buffer exists unchanged.
 * - Pointers must not be NULL, unless the description of the parameter says so. A buffer of no bytes may
 *   be NULL.
 * - Lengths are in bytes. Ports are in host byte order. Addresses are in network byte order, as always in
 *   struct in6_addr; IPv4 addresses are IPv4-mapped IPv6 addresses (::ffff:192.0.2.1), as on the wire
 *   (Section 6.2.5).
 *
 * "Section" and "Figure" without the name of a document are those of RFC 8803. convertproto(3) is the
 * overview of the manual; each function has a page there.
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

/* The version of this header; convert_library_version() returns the version of the running library. */
#define CONVERT_LIBRARY_VERSION_MAJOR 0
#define CONVERT_LIBRARY_VERSION_MINOR 1
#define CONVERT_LIBRARY_VERSION_PATCH 0
#define CONVERT_LIBRARY_VERSION_NUMBER(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
#define CONVERT_LIBRARY_VERSION                                                                            \
	CONVERT_LIBRARY_VERSION_NUMBER(CONVERT_LIBRARY_VERSION_MAJOR, CONVERT_LIBRARY_VERSION_MINOR,        \
				       CONVERT_LIBRARY_VERSION_PATCH)

#define CONVERT_PROTOCOL_VERSION 1 /* of the Convert Protocol, Section 6.1; version 0 is reserved */
#define CONVERT_MAGIC 0x2263       /* the Magic Number of each message, Section 6.1 */
#define CONVERT_MAGIC_SILENT 0x6c63 /* the Magic Number of a silent request, libconvert's own, see struct convert_silence */
#define CONVERT_HEADER_LEN 4       /* bytes of the fixed header, Figure 13 */
#define CONVERT_MESSAGE_MAX 1020   /* bytes: 255 words of 32 bits, fixed header included */
#define CONVERT_TLV_VALUE_MAX 1014 /* bytes of the longest Value that fits behind the fixed header */
#define CONVERT_CONNECT_LEN 20     /* bytes of a Base Connect TLV, Section 6.2.5 */

/* Types of TLVs, Section 6.2.2, Table 1. 192-255 are for private use (Section 10.2.2). */
enum convert_tlv_type {
	CONVERT_TLV_RESERVED = 0,
	CONVERT_TLV_INFO = 1,
	CONVERT_TLV_CONNECT = 10,
	CONVERT_TLV_EXTENDED_TCP_HEADER = 20,
	CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS = 21,
	CONVERT_TLV_COOKIE = 22,
	CONVERT_TLV_ERROR = 30,
	CONVERT_TLV_PRIVATE_FIRST = 192,
	CONVERT_TLV_WITHHOLDING = 240, /* libconvert's own, see struct convert_withholding */
	CONVERT_TLV_ECHO = 241,        /* libconvert's own, see convert_write_echo() */
	CONVERT_TLV_SILENCE = 242,     /* libconvert's own, see struct convert_silence */
	CONVERT_TLV_HOLD_TIME = 243,   /* libconvert's own, see convert_write_hold_time() */
	CONVERT_TLV_PRIVATE_LAST = 255
};

/* Codes of Error TLVs, Section 6.2.8, Table 2. 192-255 are for private use (Section 10.2.3). */
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
	CONVERT_ERROR_PRIVATE_FIRST = 192,
	CONVERT_ERROR_PRIVATE_LAST = 255
};

/*
 * The result of a function that reads. The first three aren't faults; all others are, and convert_request_answer() and
 * convert_response_answer() return the RFC's reaction to each. Later versions of the library may add faults at the end:
 * treat a value that you don't know as a fault.
 */
enum convert_status {
	CONVERT_STATUS_OK,                  /* the function has filled in the result */
	CONVERT_STATUS_END,                 /* convert_tlv_next(), convert_tcp_option_next(): the list is at its end */
	CONVERT_STATUS_NEED_MORE,           /* the others: the bytes are the valid beginning of a longer message */
	CONVERT_STATUS_BAD_MAGIC,           /* this is not a Convert message */
	CONVERT_STATUS_BAD_VERSION,         /* version 0, or one that this library does not know */
	CONVERT_STATUS_ZERO_TOTAL_LENGTH,   /* the Total Length is 0, Section 6.1, whatever the version is */
	CONVERT_STATUS_NO_TLV,              /* a request that asks for nothing: it has neither an Info nor a Connect TLV */
	CONVERT_STATUS_TLV_PAST_END,        /* a TLV is longer than the rest of the message, Section 9 */
	CONVERT_STATUS_TLV_ZERO_LENGTH,     /* a TLV's Length is 0, so the start of the next one is unknown */
	CONVERT_STATUS_TLV_TYPE_RESERVED,   /* a TLV is of type 0, Section 6.2.2 */
	CONVERT_STATUS_TLV_TWICE,           /* two TLVs are of the same type, Section 6.2.1 */
	CONVERT_STATUS_TLV_UNKNOWN,         /* a request has a TLV that this library does not know, Section 6.2.8 */
	CONVERT_STATUS_TLV_WRONG_DIRECTION, /* a TLV that only the other peer may send, Section 6.2.8 */
	CONVERT_STATUS_TLV_BAD_LENGTH,      /* a TLV's Length is impossible for its type */
	CONVERT_STATUS_TLV_BAD_VALUE,       /* a TLV's Value breaks the rules of its type: a field called Zero, TCP options */
	CONVERT_STATUS_BAD_ADDRESS,         /* a Connect TLV has an address that convert_address_is_valid() refuses */
	CONVERT_STATUS_BAD_SILENCE,         /* any fault in a request with the Magic Number of a silent one */
	CONVERT_STATUS_COUNT                /* their number in this version of the library; not a status */
};

/* The RFC's reaction to a status. */
enum convert_answer {
	CONVERT_ANSWER_NONE,   /* continue: there is no fault */
	CONVERT_ANSWER_IGNORE, /* close the connection without a word (Section 6): this is not Convert */
	CONVERT_ANSWER_RESET,  /* reset the connection */
	CONVERT_ANSWER_ERROR   /* send a message with an Error TLV, then close the connection */
};

/* Bytes of the parsed message. The parser doesn't copy them: see the rules above. */
struct convert_span {
	const uint8_t *data; /* may be NULL if len is 0 */
	size_t len;          /* bytes */
};

/* One TLV of a message, Figure 14. */
struct convert_tlv {
	uint8_t type;              /* an enum convert_tlv_type, or any other number */
	struct convert_span value; /* all behind Type and Length, padding included: 4 * Length - 2 bytes */
};

/* One TCP option, as in Figure 19 and RFC 9293, Section 3.1. */
struct convert_tcp_option {
	uint8_t kind;              /* 2-255 */
	struct convert_span value; /* all behind Kind and Length, 0-253 bytes */
};

/*
 * The Silence TLV, a private-use TLV of libconvert (doc/private-tlvs.md). It is the first TLV of a silent request: the
 * client wants no response if the SYN+ACK says that the server was reached. Such a request has a Magic Number of its
 * own, CONVERT_MAGIC_SILENT. So a converter that doesn't know silence takes it for another protocol's data, and sends
 * no response that the client would pass to its application.
 */
struct convert_silence {
	bool blind; /* the client can't take a response off the stream: the network's own means report errors */
	bool mptcp; /* the client uses Multipath TCP, and wants to be served that way or not at all */
	uint64_t attempt; /* blind: a random number that identifies repeats of the request; 0: there are none */
	uint16_t repeat;  /* with an attempt: how often it was sent before */
	uint8_t padding;  /* written, not read: words of 32 bits at the end; a converter may answer a longer SYN more often */
};

/* A client's message to a converter. A part whose has_… is false is zero. */
struct convert_request {
	size_t length;                   /* bytes of the stream that the message takes */
	bool has_info;                   /* Info TLV, Section 6.2.3: the client asks for the supported TCP extensions */
	bool has_connect;                /* Connect TLV, Section 6.2.5: the client asks for a connection to a server */
	bool has_cookie;                 /* Cookie TLV, Section 6.2.7 */
	bool has_echo;                   /* Echo TLV, convert_write_echo(): the client asks for its own bytes */
	bool has_silence;                /* it has the Magic Number of a silent request: reset it unless silence was offered */
	struct convert_silence silence;  /* Silence TLV */
	bool has_hold_time;              /* Hold Time TLV, convert_write_hold_time(): how long its SYN may be withheld */
	uint16_t hold_ms;                /* Hold Time TLV: the limit in milliseconds; 0: don't withhold it */
	struct in6_addr address;         /* Connect TLV: the server's address */
	uint16_t port;                   /* Connect TLV: the server's port, any number */
	bool extended;                   /* Connect TLV: an Extended one, with a TCP Options field */
	struct convert_span tcp_options; /* Connect TLV: that field, valid for convert_tcp_option_next() */
	struct convert_span cookie;      /* Cookie TLV: the cookie and its padding (its own length is not on the wire) */
	struct convert_span tlvs;        /* all TLVs, for convert_tlv_next() */
};

/*
 * The Withholding TLV, a private-use TLV of libconvert (doc/private-tlvs.md). In the answer to an Info TLV a converter
 * tells by it how it treats SYNs that carry a request.
 */
struct convert_withholding {
	bool withheld;     /* it withholds them until the server has answered (Section 4.2): its SYN+ACK confirms the server */
	uint16_t limit_ms; /* withheld: at most so many milliseconds (a later SYN+ACK confirms nothing); otherwise 0 */
	bool corrects;     /* it corrects the receive window of MPTCP SYNs that carry data, which Linux misreads */
	bool silent;       /* withheld: it understands silent requests, struct convert_silence */
	bool blind;        /* silent: and blind ones */
	bool repeats;      /* blind: it recognizes repeated blind requests by struct convert_silence's attempt */
	bool hold_times;   /* withheld: it understands Hold Time TLVs, convert_write_hold_time() */
	bool no_way;       /* it has no route to servers, or none answers it: it refuses requests now */
};

/* A converter's message to a client. A part whose has_… is false is zero. */
struct convert_response {
	size_t length;                          /* bytes of the stream that the message takes */
	bool has_error;                         /* Error TLV, Section 6.2.8: the connection has failed */
	bool has_tcp_header;                    /* Extended TCP Header TLV, Section 6.2.6 */
	bool has_supported;                     /* Supported TCP Extensions TLV, Section 6.2.4 */
	bool has_withholding;                   /* Withholding TLV */
	bool has_echo;                          /* Echo TLV: the bytes behind the request come back */
	uint16_t echo_kib;                      /* Echo TLV: at most so many KiB of them */
	uint8_t error_code;                     /* Error TLV: an enum convert_error_code, or any other number */
	struct convert_span error_value;        /* Error TLV: all behind the Error Code, 4 * Length - 3 bytes: 1 or more */
	struct convert_span tcp_header;         /* Extended TCP Header TLV: TCP options of the server's SYN+ACK, unchecked */
	struct convert_span supported;          /* Supported TCP Extensions TLV: kinds of TCP options, padded with 0 */
	struct convert_withholding withholding; /* Withholding TLV */
	struct convert_span tlvs;               /* all TLVs, for convert_tlv_next() */
};

/*
 * A message under construction. The members belong to the library; the caller passes the structure from
 * convert_writer_init() to the convert_write_*() functions and convert_writer_finish().
 */
struct convert_writer {
	uint8_t *buf;
	size_t capacity; /* bytes of buf that a message may take, at most CONVERT_MESSAGE_MAX */
	size_t len;      /* bytes written, fixed header included */
	int error;       /* 0, or the first fault as -errno */
};

/*
 * convert_library_version() - return the version of the running library
 *
 * Returns a number like CONVERT_LIBRARY_VERSION, for the library that the program is linked with at run time: compare
 * it with CONVERT_LIBRARY_VERSION_NUMBER(major, minor, patch).
 */
CONVERT_API uint32_t convert_library_version(void);

/*
 * --- Reading -----------------------------------------------------------------
 *
 * A peer passes the parser the first bytes of the stream, as many as have arrived, and repeats this when more arrive,
 * until the status is not CONVERT_STATUS_NEED_MORE. Bytes behind the message are the application's; the parsers don't
 * look at them.
 */

/*
 * convert_message_length() - read the fixed header of a message (Section 6.1, Figure 13)
 * @buf: the first bytes of the stream
 * @len: their number; 0 or more
 * @length: set to the number of bytes of the whole message, fixed header included, arrived or not: 4-1020 with
 *          CONVERT_STATUS_OK and CONVERT_STATUS_BAD_VERSION, 0 with CONVERT_STATUS_ZERO_TOTAL_LENGTH. Unchanged with
 *          other results.
 *
 * Returns CONVERT_STATUS_OK; CONVERT_STATUS_NEED_MORE if there are fewer than 4 bytes and no fault so far;
 * CONVERT_STATUS_BAD_MAGIC, as soon as the third byte shows it; CONVERT_STATUS_ZERO_TOTAL_LENGTH if the Magic Number is
 * right, whatever the Version is; CONVERT_STATUS_BAD_VERSION if the Version isn't 1 and the other two fields are right.
 */
CONVERT_API enum convert_status convert_message_length(const uint8_t *buf, size_t len, size_t *length);

/*
 * convert_request_parse() - read a client's message, as a converter does (Sections 6.1 to 6.2.8)
 * @buf: the first bytes of the stream from the client
 * @len: their number; 0 or more
 * @out: always set: with CONVERT_STATUS_OK to the request, otherwise to zero with two exceptions. @out->length is the
 *       number of bytes of the whole message as soon as the fixed header is there, so that the caller can wait for the
 *       message and, on a fault, echo it (convert_write_error_echo()). @out->has_silence is true as soon as the Magic
 *       Number is there and is CONVERT_MAGIC_SILENT. The spans point into @buf.
 *
 * Returns CONVERT_STATUS_OK; CONVERT_STATUS_NEED_MORE until the whole message is there; or a fault, of several the
 * first in the stream (within a TLV: Type before Length, Length before Value). A TLV that is neither in Table 1 nor
 * libconvert's own is CONVERT_STATUS_TLV_UNKNOWN, as is a Silence TLV in a request that isn't silent. A message with
 * neither an Info TLV nor a Connect TLV is CONVERT_STATUS_NO_TLV.
 *
 * A silent request begins with a Silence TLV, and has a Connect TLV and no Info TLV. Every fault of a message with its
 * Magic Number is CONVERT_STATUS_BAD_SILENCE, for which convert_request_answer() demands a reset.
 *
 * Silent requests, Echo and Hold Time TLVs are no fault, since a client sends them to a converter that offers them. One
 * that hasn't resets a connection as soon as @out->has_silence is true, whatever the status is, and answers
 * CONVERT_ERROR_UNSUPPORTED_MESSAGE to has_echo and has_hold_time, by convert_write_error_echo().
 */
CONVERT_API enum convert_status convert_request_parse(const uint8_t *buf, size_t len, struct convert_request *out);

/*
 * convert_response_parse() - read a converter's message, as a client does (Sections 6.1 to 6.2.8)
 * @buf: the first bytes of the stream from the converter
 * @len: their number; 0 or more
 * @out: always set, as by convert_request_parse()
 *
 * Returns as convert_request_parse(), with two exceptions. It skips TLVs of unknown types, since new TLVs extend the
 * protocol (Section 6): @out->tlvs has them. A message without TLVs is CONVERT_STATUS_OK: it says that the server was
 * reached, and no more.
 */
CONVERT_API enum convert_status convert_response_parse(const uint8_t *buf, size_t len, struct convert_response *out);

/*
 * convert_request_answer() - return a converter's reaction to a status of convert_request_parse()
 * @status: the result of that function
 * @code: set, with CONVERT_ANSWER_ERROR only, to the code of the Error TLV; may be NULL. For
 *        CONVERT_ERROR_UNSUPPORTED_VERSION write the TLV by convert_write_error_versions(), for the two other possible
 *        codes by convert_write_error_echo().
 *
 * Returns CONVERT_ANSWER_NONE for CONVERT_STATUS_OK, CONVERT_STATUS_END and CONVERT_STATUS_NEED_MORE; for faults the
 * reaction that Sections 6, 6.1, 6.2.1, 6.2.2, 6.2.5 and 6.2.8 demand of a converter; CONVERT_ANSWER_RESET for values
 * that are no status.
 */
CONVERT_API enum convert_answer convert_request_answer(enum convert_status status, enum convert_error_code *code);

/*
 * convert_response_answer() - return a client's reaction to a status of convert_response_parse()
 * @status: the result of that function
 *
 * Returns CONVERT_ANSWER_NONE for CONVERT_STATUS_OK, CONVERT_STATUS_END and CONVERT_STATUS_NEED_MORE;
 * CONVERT_ANSWER_RESET for all faults (Sections 6.1, 6.2.1, 6.2.2) and for values that are no status: a client has no
 * message to complain with.
 */
CONVERT_API enum convert_answer convert_response_answer(enum convert_status status);

/*
 * convert_tlv_next() - take the next TLV off a list of TLVs (Section 6.2.1, Figure 14)
 * @list: the remaining TLVs; at first the tlvs of a struct convert_request or convert_response, or any bytes.
 *        CONVERT_STATUS_OK moves it behind the TLV, otherwise it stays.
 * @tlv: set with CONVERT_STATUS_OK; it points into the same buffer as @list
 *
 * For TLVs that the parsers don't interpret, those of private use and of later RFCs, and for tools that print messages.
 * Returns TLVs of any type, also 0, as often as they are there.
 *
 * Returns CONVERT_STATUS_OK; CONVERT_STATUS_END if no byte is left; CONVERT_STATUS_TLV_ZERO_LENGTH or
 * CONVERT_STATUS_TLV_PAST_END, which don't occur in a list that a parser has set.
 */
CONVERT_API enum convert_status convert_tlv_next(struct convert_span *list, struct convert_tlv *tlv);

/*
 * convert_tcp_option_next() - take the next option off a list of TCP options (Figure 19; RFC 9293, Section 3.1)
 * @list: the remaining options; at first the tcp_options of a request, the tcp_header of a response, or any bytes.
 *        CONVERT_STATUS_OK moves it behind the option; any other status moves it, if at all, over options of kinds 0
 *        and 1.
 * @option: set with CONVERT_STATUS_OK; it points into the same buffer as @list
 *
 * Options of kind 0 (End of Option List, which is the padding here) and 1 (No-Operation) have no length. The function
 * skips them; neither ends the list (Section 7.1).
 *
 * Returns CONVERT_STATUS_OK; CONVERT_STATUS_END if no option is left; CONVERT_STATUS_TLV_BAD_VALUE if an option's
 * Length is less than 2 or more than the rest. That fault doesn't occur in the tcp_options of a request, which its
 * parser has checked; it may in the tcp_header of a response, where the options are the server's.
 */
CONVERT_API enum convert_status convert_tcp_option_next(struct convert_span *list, struct convert_tcp_option *option);

/*
 * convert_address_is_valid() - may this address be the Remote Peer IP Address of a Connect TLV (Section 6.2.5)?
 * @address: IPv4 as IPv4-mapped
 *
 * Returns false for multicast and loopback addresses of both families and for 255.255.255.255, as the RFC demands, and
 * for the unspecified addresses :: and 0.0.0.0/8, since Linux connects to them as to loopback. The caller judges
 * addresses of a link or of a private network.
 */
CONVERT_API bool convert_address_is_valid(const struct in6_addr *address);

/*
 * --- Writing -----------------------------------------------------------------
 *
 * convert_writer_init() begins a message in the caller's buffer, each convert_write_*() adds one TLV, and
 * convert_writer_finish() writes the fixed header. The writer remembers the first fault and writes nothing after
 * it, so the caller need check only the result of convert_writer_finish(). These are the faults:
 *
 * -ENOBUFS  the message does not fit into the buffer, or into CONVERT_MESSAGE_MAX bytes
 * -EEXIST   a TLV of the same type was written before (Section 6.2.1)
 * -EINVAL   a value that the RFC forbids, as each function says
 *
 * The functions copy their arguments, which must not lie in the buffer of the message, and may change afterwards. They
 * write TLVs of either direction, and don't check whether these belong together.
 */

/*
 * convert_writer_init() - begin a message
 * @w: set, whatever it was
 * @buf: receives the message; the writer uses it until convert_writer_finish() has returned
 * @capacity: bytes of @buf. CONVERT_MESSAGE_MAX suffices for every message; the writer uses no more. Fewer than
 *            CONVERT_HEADER_LEN are -ENOBUFS.
 */
CONVERT_API void convert_writer_init(struct convert_writer *w, uint8_t *buf, size_t capacity);

/*
 * convert_writer_finish() - write the fixed header (Section 6.1) and end the message
 *
 * Returns the length of the message in bytes, 4-1020 and a multiple of 4, or the first fault as a negative number
 * of errno: -ENOBUFS, -EEXIST or -EINVAL, as above. After a fault the buffer has no message. A message without TLVs is
 * valid, too: as a response it says that the server was reached.
 */
CONVERT_API ssize_t convert_writer_finish(struct convert_writer *w);

/* convert_write_info() - add an Info TLV (Section 6.2.3): a client asks for the supported TCP extensions */
CONVERT_API void convert_write_info(struct convert_writer *w);

/*
 * convert_write_connect() - add a Connect TLV (Section 6.2.5): a client asks for a connection to a server
 * @address: the server's, IPv4 as IPv4-mapped; -EINVAL if convert_address_is_valid() refuses it
 * @port: the server's, host byte order, any number
 * @options: TCP options for the converter to use towards the server, one after the other as in Figure 19; they make it
 *           an Extended Connect TLV and are padded with 0. An option without a value (Length 2) leaves the value to the
 *           converter. Zeros behind the last option are ignored, as the tcp_options of a request may have them. -EINVAL
 *           if an option's length doesn't fit, or its kind is 1, or 0 in front of another. NULL with 0 bytes: none, a
 *           Base Connect TLV.
 * @options_len: bytes of @options
 */
CONVERT_API void convert_write_connect(struct convert_writer *w, const struct in6_addr *address, uint16_t port,
				       const uint8_t *options, size_t options_len);

/*
 * convert_write_cookie() - add a Cookie TLV (Section 6.2.7): a client shows the cookie that the converter has given it
 * @cookie: the bytes behind the first one of the error_value of a Missing Cookie error; padded with 0
 * @cookie_len: bytes of @cookie; 0 is -EINVAL
 */
CONVERT_API void convert_write_cookie(struct convert_writer *w, const uint8_t *cookie, size_t cookie_len);

/*
 * convert_write_tcp_header() - add an Extended TCP Header TLV (Section 6.2.6): a converter passes on a server's options
 * @options: the TCP options of the server's SYN+ACK, one after the other as there; not checked, padded with 0
 * @options_len: bytes of @options; 0 or more
 */
CONVERT_API void convert_write_tcp_header(struct convert_writer *w, const uint8_t *options, size_t options_len);

/*
 * convert_write_supported() - add a Supported TCP Extensions TLV (Section 6.2.4): a converter answers an Info TLV
 * @kinds: kinds of TCP options, a byte each, padded with 0. Zeros at the end are ignored, as the supported list of a
 *         response may have them. -EINVAL for kinds that Section 7 forbids: 0 in front of another, 1, 2 (Maximum Segment
 *         Size), 3 (Window Scale), 5 (SACK) and 29 (TCP-AO).
 * @count: their number; 0 or more
 */
CONVERT_API void convert_write_supported(struct convert_writer *w, const uint8_t *kinds, size_t count);

/*
 * convert_write_withholding() - add a Withholding TLV (doc/private-tlvs.md): a converter tells how it treats SYNs
 * @withholding: its treatment. limit_ms counts only if withheld is true; otherwise 0 is written.
 */
CONVERT_API void convert_write_withholding(struct convert_writer *w, const struct convert_withholding *withholding);

/*
 * convert_write_silence() - begin a silent request with a Silence TLV (doc/private-tlvs.md)
 * @silence: the client's properties
 *
 * It must be the first TLV; otherwise the fault is -EINVAL. convert_writer_finish() gives such a message the Magic
 * Number CONVERT_MAGIC_SILENT.
 */
CONVERT_API void convert_write_silence(struct convert_writer *w, const struct convert_silence *silence);

/*
 * convert_write_echo() - add an Echo TLV (doc/private-tlvs.md): the converter sends back the bytes behind a request
 * @limit_kib: in a response, how many KiB of them come back at most; in a request 0
 *
 * In a request it goes with an Info TLV and without a Connect TLV.
 */
CONVERT_API void convert_write_echo(struct convert_writer *w, uint16_t limit_kib);

/*
 * convert_write_hold_time() - add a Hold Time TLV (doc/private-tlvs.md): how long a client's SYN may be withheld
 * @limit_ms: the limit in milliseconds; 0: don't withhold it
 *
 * It goes with a Connect TLV, to a converter that has offered it (struct convert_withholding's hold_times); others
 * answer Unsupported Message.
 */
CONVERT_API void convert_write_hold_time(struct convert_writer *w, uint16_t limit_ms);

/*
 * convert_write_tlv() - add a TLV of any type (Section 6.2.1), say one of private use
 * @type: 1-255; 0 is -EINVAL
 * @value: the Value, which is not checked; padded with 0
 * @value_len: bytes of @value; 0 or more
 */
CONVERT_API void convert_write_tlv(struct convert_writer *w, uint8_t type, const uint8_t *value, size_t value_len);

/*
 * convert_write_error() - add an Error TLV whose Value is one byte (Section 6.2.8)
 * @code: one of CONVERT_ERROR_NOT_AUTHORIZED, CONVERT_ERROR_RESOURCE_EXCEEDED, CONVERT_ERROR_NETWORK_FAILURE,
 *        CONVERT_ERROR_CONNECTION_RESET, CONVERT_ERROR_DESTINATION_UNREACHABLE, or a code that Table 2 doesn't list. The
 *        other codes have functions of their own and are -EINVAL here, as are codes greater than 255.
 * @value: for Resource Exceeded and Network Failure the delay in seconds after which the client may ask again (0: the
 *         default of at least 30 seconds); for Destination Unreachable the Code field of the ICMP message; for
 *         Not Authorized and Connection Reset 0, otherwise -EINVAL; for codes that Table 2 doesn't list, any byte
 */
CONVERT_API void convert_write_error(struct convert_writer *w, enum convert_error_code code, uint8_t value);

/*
 * convert_write_error_versions() - add an Error TLV "Unsupported Version" (0, Section 6.2.8)
 * Its Value lists the versions of the protocol that this library knows: 1.
 */
CONVERT_API void convert_write_error_versions(struct convert_writer *w);

/*
 * convert_write_error_echo() - add an Error TLV "Malformed Message" or "Unsupported Message" (1, 2; Figure 23)
 * @code: CONVERT_ERROR_MALFORMED_MESSAGE or CONVERT_ERROR_UNSUPPORTED_MESSAGE; others are -EINVAL
 * @message: the message that caused the error, fixed header included
 * @len: bytes of @message, 0 or more. The function omits the part that doesn't fit: a message of CONVERT_MESSAGE_MAX
 *       bytes can't be echoed whole in another.
 */
CONVERT_API void convert_write_error_echo(struct convert_writer *w, enum convert_error_code code, const uint8_t *message,
					  size_t len);

/*
 * convert_write_error_cookie() - add an Error TLV "Missing Cookie" (3, Section 6.2.8): a converter gives a client a cookie
 * @cookie: the cookie that the converter has computed for this client; padded with 0
 * @cookie_len: bytes of @cookie; 0 is -EINVAL
 */
CONVERT_API void convert_write_error_cookie(struct convert_writer *w, const uint8_t *cookie, size_t cookie_len);

/*
 * convert_write_error_options() - add an Error TLV "Unsupported TCP Option" (33, Section 6.2.8)
 * @kinds: the kinds of the request's TCP options that can't be used, a byte each; padded with 0. Zeros at the end are
 *         ignored, as the error_value of a response may have them. Kind 0 in front of another is -EINVAL.
 * @count: their number; 0 is -EINVAL, as are zeros alone
 */
CONVERT_API void convert_write_error_options(struct convert_writer *w, const uint8_t *kinds, size_t count);

/*
 * --- Names, for logs and tools -------------------------------------------------
 *
 * The texts are English, constant, and never NULL: "unknown" for values that have no name.
 */

/* convert_status_name() - return a status in words, for example "TLV appears twice" */
CONVERT_API const char *convert_status_name(enum convert_status status);

/* convert_error_name() - return the name of the code of an Error TLV as in Table 2, for example "Connection Reset" */
CONVERT_API const char *convert_error_name(uint8_t code);

/* convert_tlv_name() - return the name of a type of TLV as in Table 4, for example "Connect TLV" */
CONVERT_API const char *convert_tlv_name(uint8_t type);

#ifdef __cplusplus
}
#endif

#endif
