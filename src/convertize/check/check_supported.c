/* SPDX-License-Identifier: BSD-3-Clause */
/* check_supported.c - what a converter's answer to an Info TLV says of it */
#include "config.h"

#include "convertize/check/check.h"

#include <stdlib.h>
#include <string.h>

static const char *kind_name(uint8_t kind)
{
	/* from IANA's "TCP Parameters": those that Section 7 lets a converter announce */
	static const struct {
		uint8_t kind;
		const char *name;
	} names[] = {
		{ 4, "SACK" }, { 8, "timestamps" }, { 19, "MD5" }, { 27, "quick start" },
		{ 28, "user timeout" }, { 30, "Multipath TCP" }, { 34, "Fast Open" },
		{ 69, "encryption (ENO)" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].kind == kind)
			return names[i].name;
	return "TCP option";
}

static void report_options(struct report *report, const char *about,
			   const struct convert_response *response)
{
	struct convert_span kinds = response->supported;
	size_t size;
	char *list = NULL;
	FILE *stream;
	struct fact *fact;

	while (kinds.len && !kinds.data[kinds.len - 1])
		kinds.len--; /* padding */
	stream = open_memstream(&list, &size);
	if (!stream)
		return;
	for (size_t i = 0; i < kinds.len; i++)
		fprintf(stream, "%s%s (%u)", i ? ", " : " ", kind_name(kinds.data[i]),
			kinds.data[i]);
	fclose(stream);
	fact = report_fact(report, FACT_OK, "converter.supports", about,
			   "supports towards servers:%s",
			   list && kinds.len ? list : " no TCP option");
	fact_value_bytes(fact, kinds.data, kinds.len);
	free(list);
}

/* Reports TLVs of the answer that libconvert doesn't know, most likely private ones. */
static void report_unknown(struct report *report, const char *about,
			   const struct probe_result *probe)
{
	uint8_t types[CONVERT_MESSAGE_MAX / 4];
	struct convert_span tlvs = probe->response.tlvs;
	size_t size, count = 0;
	struct convert_tlv tlv;
	char *list = NULL;
	FILE *stream = open_memstream(&list, &size);
	struct fact *fact;

	if (!stream)
		return;
	while (convert_tlv_next(&tlvs, &tlv) == CONVERT_STATUS_OK) {
		if (strcmp(convert_tlv_name(tlv.type), "unknown") != 0)
			continue;
		fprintf(stream, "%s%u%s (%zu bytes)", count ? ", " : " ", tlv.type,
			tlv.type >= CONVERT_TLV_PRIVATE_FIRST ? ", private" : "", tlv.value.len);
		types[count++] = tlv.type;
	}
	fclose(stream);
	if (count && list) {
		fact = report_fact(report, FACT_NOTE, "converter.unknown_tlvs", about,
				   "sends TLVs that mean nothing to libconvert: type%s", list);
		fact_value_bytes(fact, types, count);
	}
	free(list);
}

/* Reports whether its SYN+ACK confirms the server (doc/private-tlvs.md). Converters of other projects don't say. */
static void report_withholding(struct report *report, const char *about,
			       const struct convert_response *response)
{
	bool withheld = response->withholding.withheld;
	struct fact *fact;

	if (!response->has_withholding)
		return;
	fact = report_fact(report, withheld ? FACT_OK : FACT_NOTE, "converter.withholds", about,
			   withheld ? "withholds SYNs until servers have answered" :
				      "withholds no SYNs: connections over Multipath TCP take a "
				      "round trip to it more");
	if (!withheld)
		fact_remedy(fact, "on the converter, --hold-syn on: it says what it lacks");
	fact_value_bool(fact, withheld);
}

/*
 * Linux takes the window of an MPTCP SYN with data for many times larger than it is, and floods clients that have several
 * paths. Where the converter doesn't correct that, programs send no such SYNs.
 */
static void report_windows(struct report *report, const char *about,
			   const struct convert_response *response)
{
	bool corrects = response->withholding.corrects;
	struct fact *fact;

	fact = report_fact(report, corrects ? FACT_OK : FACT_WARN, "converter.windows", about,
			   corrects ? "corrects the windows of SYNs with data, so that requests may "
				      "ride in those of Multipath TCP" :
				      "doesn't say that it corrects the windows of SYNs with data: "
				      "over Multipath TCP requests follow the handshake, a round "
				      "trip more, since downloads over several networks would crawl");
	if (!corrects)
		fact_remedy(fact, "on the converter, start convertd with CAP_NET_ADMIN, as its systemd "
				  "unit does; what it lacks besides it says with --hold-syn on");
	fact_value_bool(fact, corrects);
}

void check_supported(struct report *report, const char *about, const struct probe_result *probe,
		     bool mptcp)
{
	if (probe->response.has_supported)
		report_options(report, about, &probe->response);
	report_withholding(report, about, &probe->response);
	if (mptcp)
		report_windows(report, about, &probe->response);
	report_unknown(report, about, probe);
}
