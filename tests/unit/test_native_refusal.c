/* SPDX-License-Identifier: BSD-3-Clause */
/* test_native_refusal.c - what an Error TLV would say, said by the network */
#include "config.h"

#include "convertd/policy/judgement.h"
#include "hold/syn_packet.h"

#include "run.h"

#include <check.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* RFC 792 and 1122 3.2.2.1, RFC 4443 3.1; the errno is what Linux makes of the code that the client gets. */
static const struct {
	enum convert_error_code code;
	uint8_t value;
	bool server_v4, client_v4;
	uint8_t native;
} cases[] = {
	{ CONVERT_ERROR_CONNECTION_RESET, 0, true, true, NATIVE_RESET },
	{ CONVERT_ERROR_CONNECTION_RESET, 0, false, true, NATIVE_RESET },
	/* of one family: handed on */
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 0, true, true, 0 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 3, true, true, 3 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 13, true, true, 13 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 15, true, true, 15 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 6, false, false, 6 },
	/* a packet too large: the client's wasn't */
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 4, true, true, 1 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 4, false, false, 4 },
	/* no code that there is */
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 16, true, true, 1 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 255, false, false, 3 },
	/* ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EACCES from one family to the other */
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 0, false, true, 0 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 1, false, true, 13 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 2, false, true, 1 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 3, false, true, 1 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 4, false, true, 3 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 5, false, true, 13 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 0, true, false, 0 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 1, true, false, 3 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 3, true, false, 4 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 4, true, false, 3 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 10, true, false, 1 },
	{ CONVERT_ERROR_DESTINATION_UNREACHABLE, 13, true, false, 1 },
	/* Time Exceeded and the like */
	{ CONVERT_ERROR_NETWORK_FAILURE, 0, true, true, 1 },
	{ CONVERT_ERROR_NETWORK_FAILURE, 30, false, false, 3 },
	/* the converter's own */
	{ CONVERT_ERROR_NOT_AUTHORIZED, 0, true, true, 13 },
	{ CONVERT_ERROR_NOT_AUTHORIZED, 0, true, false, 1 },
	{ CONVERT_ERROR_RESOURCE_EXCEEDED, 10, true, true, 13 },
	{ CONVERT_ERROR_MISSING_COOKIE, 0, false, false, 1 },
};

START_TEST(refusal)
{
	ck_assert_uint_eq(request_native_refusal(cases[_i].code, cases[_i].value, cases[_i].server_v4, cases[_i].client_v4), cases[_i].native);
}
END_TEST

/* There is a rule for each that can come of an Error TLV: hold_rules.c. */
START_TEST(each_has_a_rule)
{
	for (int code = 0; code < 256; code++)
		for (int value = 0; value < 256; value++)
			for (int families = 0; families < 4; families++) {
				uint8_t native = request_native_refusal((enum convert_error_code)code, (uint8_t)value, families & 1, families & 2);

				ck_assert(native == NATIVE_RESET || native < NATIVE_CODES);
			}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("native_refusal");
	TCase *tcase = tcase_create("refusal");

	tcase_add_loop_test(tcase, refusal, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(tcase, each_has_a_rule);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
