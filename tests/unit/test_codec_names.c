/* SPDX-License-Identifier: BSD-3-Clause */
/* test_codec_names.c - names are the RFC's, and every value has one */
#include "config.h"

#include "run.h"

#include <check.h>
#include <stdio.h>

#include <convert/convert.h>

static const struct {
	uint8_t value;
	const char *name;
} errors[] = { /* Table 2 */
	{ 0, "Unsupported Version" },	  { 1, "Malformed Message" },
	{ 2, "Unsupported Message" },	  { 3, "Missing Cookie" },
	{ 32, "Not Authorized" },	  { 33, "Unsupported TCP Option" },
	{ 64, "Resource Exceeded" },	  { 65, "Network Failure" },
	{ 96, "Connection Reset" },	  { 97, "Destination Unreachable" },
	{ 4, "unknown" },		  { 31, "unknown" },
	{ 98, "unknown" },		  { 255, "unknown" },
}, tlvs[] = { /* Table 4 */
	{ 0, "Reserved" },		  { 1, "Info TLV" },
	{ 10, "Connect TLV" },		  { 20, "Extended TCP Header TLV" },
	{ 22, "Cookie TLV" },		  { 21, "Supported TCP Extension TLV" },
	{ 30, "Error TLV" },		  { 2, "unknown" },
	{ 31, "unknown" },		  { 192, "unknown" },
	{ 240, "Withholding TLV" },	  { 241, "Echo TLV" },
	{ 242, "Silence TLV" },		  { 243, "Hold Time TLV" },
	{ 244, "unknown" },		  { 255, "unknown" },
};

START_TEST(error_and_tlv_names)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		ck_assert_str_eq(convert_error_name(errors[i].value), errors[i].name);
	for (size_t i = 0; i < sizeof(tlvs) / sizeof(tlvs[0]); i++)
		ck_assert_str_eq(convert_tlv_name(tlvs[i].value), tlvs[i].name);
}
END_TEST

START_TEST(status_names_are_distinct)
{
	for (int i = 0; i < CONVERT_STATUS_COUNT; i++) {
		const char *name = convert_status_name((enum convert_status)i);

		ck_assert_str_ne(name, "unknown");
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(name, convert_status_name((enum convert_status)j));
	}
	ck_assert_str_eq(convert_status_name(CONVERT_STATUS_COUNT), "unknown");
	ck_assert_str_eq(convert_status_name((enum convert_status)-1), "unknown");
}
END_TEST

/* The header, the library and configure.ac have the same version. */
START_TEST(library_version)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", CONVERT_LIBRARY_VERSION_MAJOR,
		 CONVERT_LIBRARY_VERSION_MINOR, CONVERT_LIBRARY_VERSION_PATCH);
	ck_assert_str_eq(text, PACKAGE_VERSION);
	ck_assert_uint_eq(convert_library_version(), CONVERT_LIBRARY_VERSION);
	ck_assert_uint_eq(CONVERT_LIBRARY_VERSION_NUMBER(1, 2, 3), 0x010203);
	ck_assert(CONVERT_LIBRARY_VERSION_NUMBER(0, 255, 255) < CONVERT_LIBRARY_VERSION_NUMBER(1, 0, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_names");
	TCase *tcase = tcase_create("names");

	tcase_add_test(tcase, error_and_tlv_names);
	tcase_add_test(tcase, status_names_are_distinct);
	tcase_add_test(tcase, library_version);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
