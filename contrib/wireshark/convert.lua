-- luacheck: max line length 140
-- SPDX-License-Identifier: BSD-3-Clause
--
-- convert.lua - a dissector of the 0-RTT TCP Convert Protocol (RFC 8803) for Wireshark and tshark 3.4 and newer
--
-- Installing it is copying it into Wireshark's folder of Lua plugins: "tshark -G folders" names the personal and the global one.
-- doc/wireshark.md says how, and which fields there are to filter by.
--
-- A Convert message is the beginning of each of the two byte streams of a connection; all that follows is relayed. Three
-- decisions carry the design:
--
-- - This dissector stays the connection's dissector to its end, and hands what is relayed to the next one, each time. It never
--   leaves the connection to another one: the client's bytes may be HTTP long before the converter's message has come.
-- - What a segment is gets decided when Wireshark reads the capture, in its order, and is remembered for the frame in calls[], since
--   frames are dissected again in any order whenever somebody looks at them. In that first pass there is no protocol tree, hence
--   no field of TCP's that could be asked: addresses, ports, and bytes have to do. Only Multipath TCP's further subflows, which
--   are told by their fields, are shown as such later.
-- - The next dissector is called with the server's port in place of the converter's. So it tells the directions apart as on a
--   direct connection, and has a conversation of its own.
--
-- Lua 5.2 and 5.4 both run this: there is no integer division, no bit library and no unpack() here. It is one file, and a long
-- one, because Wireshark runs each file in that folder by itself.

-- What Wireshark gives to its Lua programs, for luacheck:
-- luacheck: read globals base DESEGMENT_ONE_MORE_SEGMENT Dissector DissectorTable expert Field frametype NSTime Pref Proto ProtoExpert
-- luacheck: read globals ProtoField

-- Where it is installed twice, say by a package and in a home directory, the first one counts: two can't have the same name.
local loaded, other = pcall(Dissector.get, "convert")
if loaded and other then
	return
end

local convert = Proto("convert", "0-RTT TCP Convert Protocol")

local MAGIC = 0x2263
local SILENT_MAGIC = 0x6c63 -- of libconvert's silent requests
local WORD = 4
local HEADER_LEN = 4
local MARK = 0x6c63 -- of libconvert's private TLVs: "lc"

local INFO, CONNECT, TCP_HEADER, SUPPORTED, COOKIE, ERROR = 1, 10, 20, 21, 22, 30
local WITHHOLDING, ECHO, SILENCE, HOLD_TIME = 240, 241, 242, 243

local TLV_NAMES = {
	[0] = "Reserved", [INFO] = "Info TLV", [CONNECT] = "Connect TLV", [TCP_HEADER] = "Extended TCP Header TLV",
	[SUPPORTED] = "Supported TCP Extensions TLV", [COOKIE] = "Cookie TLV", [ERROR] = "Error TLV",
	[WITHHOLDING] = "Withholding TLV", [ECHO] = "Echo TLV", [SILENCE] = "Silence TLV",
	[HOLD_TIME] = "Hold Time TLV",
}

local UNSUPPORTED_VERSION, MALFORMED, UNSUPPORTED_MESSAGE, MISSING_COOKIE = 0, 1, 2, 3
local NOT_AUTHORIZED, UNSUPPORTED_OPTION, RESOURCE_EXCEEDED, NETWORK_FAILURE = 32, 33, 64, 65
local CONNECTION_RESET, UNREACHABLE = 96, 97

local ERROR_NAMES = {
	[UNSUPPORTED_VERSION] = "Unsupported Version", [MALFORMED] = "Malformed Message",
	[UNSUPPORTED_MESSAGE] = "Unsupported Message", [MISSING_COOKIE] = "Missing Cookie", [NOT_AUTHORIZED] = "Not Authorized",
	[UNSUPPORTED_OPTION] = "Unsupported TCP Option", [RESOURCE_EXCEEDED] = "Resource Exceeded",
	[NETWORK_FAILURE] = "Network Failure", [CONNECTION_RESET] = "Connection Reset",
	[UNREACHABLE] = "Destination Unreachable",
}

-- Codes of ICMP's Destination Unreachable; those of ICMPv6 differ, and the TLV doesn't tell which of the two it was.
local ICMP_CODES = {
	[0] = "network unreachable (ICMPv6: no route)", [1] = "host unreachable (ICMPv6: prohibited)",
	[2] = "protocol unreachable (ICMPv6: beyond scope)", [3] = "port unreachable (ICMPv6: address unreachable)",
	[4] = "fragmentation needed (ICMPv6: port unreachable)", [5] = "source route failed (ICMPv6: source address failed policy)",
	[6] = "network unknown (ICMPv6: rejected route)", [7] = "host unknown", [8] = "source host isolated",
	[9] = "network prohibited", [10] = "host prohibited", [11] = "network unreachable for this service",
	[12] = "host unreachable for this service", [13] = "communication prohibited", [14] = "host precedence violation",
	[15] = "precedence cutoff",
}

local OPTION_NAMES = {
	[0] = "End of Option List", [1] = "No-Operation", [2] = "Maximum Segment Size", [3] = "Window Scale", [4] = "SACK Permitted",
	[5] = "SACK", [8] = "Timestamps", [19] = "MD5 Signature", [28] = "User Timeout", [29] = "TCP-AO", [30] = "Multipath TCP",
	[34] = "Fast Open", [69] = "TCP-ENO", [253] = "Experiment 1", [254] = "Experiment 2",
}

local MPTCP_SUBTYPES = {
	[0] = "MP_CAPABLE", [1] = "MP_JOIN", [2] = "DSS", [3] = "ADD_ADDR", [4] = "REMOVE_ADDR", [5] = "MP_PRIO", [6] = "MP_FAIL",
	[7] = "MP_FASTCLOSE", [8] = "MP_TCPRST",
}

-- --- fields and expert notes ---------------------------------------------------------------------------------------------

local f = {}

local function field(name, kind, ...)
	f[name] = ProtoField[kind]("convert." .. name, ...)
end

field("version", "uint8", "Version")
field("total_length", "uint8", "Total Length", base.DEC, nil, nil, "In words of 32 bits, with this header")
field("magic", "uint16", "Magic Number", base.HEX)
field("request", "bool", "From the client to the converter")
field("answer", "bool", "From the converter to the client")
field("response_in", "framenum", "Answer in frame", base.NONE, frametype.RESPONSE)
field("response_to", "framenum", "Answer to the request in frame", base.NONE, frametype.REQUEST)
field("time", "relative_time", "Time since the request")
field("tlv", "none", "TLV")
field("tlv.type", "uint8", "Type", base.DEC, TLV_NAMES)
field("tlv.length", "uint8", "Length", base.DEC, nil, nil, "In words of 32 bits, with Type and Length")
field("tlv.value", "bytes", "Value")
field("zero", "uint16", "Zero", base.HEX)
field("unassigned", "uint16", "Unassigned", base.HEX)
field("padding", "bytes", "Padding")
field("connect.port", "uint16", "Remote Peer Port", base.DEC)
field("connect.ip", "ipv4", "Remote Peer IP Address")
field("connect.ipv6", "ipv6", "Remote Peer IP Address")
field("tcp_option", "none", "TCP option")
field("tcp_option.kind", "uint8", "Kind", base.DEC, OPTION_NAMES)
field("tcp_option.length", "uint8", "Length")
field("tcp_option.value", "bytes", "Value")
field("tcp_option.mss", "uint16", "Maximum Segment Size")
field("tcp_option.wscale", "uint8", "Window Scale (shift count)")
field("tcp_option.tsval", "uint32", "Timestamp value")
field("tcp_option.tsecr", "uint32", "Timestamp echo reply")
field("tcp_option.mptcp_subtype", "uint8", "Multipath TCP subtype", base.DEC, MPTCP_SUBTYPES)
field("tcp_option.fastopen_cookie", "bytes", "Fast Open Cookie")
field("supported.kind", "uint8", "Kind", base.DEC, OPTION_NAMES)
field("cookie", "bytes", "Cookie")
field("error.code", "uint8", "Error Code", base.DEC, ERROR_NAMES)
field("error.value", "bytes", "Value")
field("error.version", "uint8", "Supported version")
field("error.echo", "none", "Message that triggered the error")
field("error.kind", "uint8", "Unsupported TCP option", base.DEC, OPTION_NAMES)
field("error.delay", "uint8", "Delay in seconds")
field("error.icmp_code", "uint8", "ICMP Code", base.DEC, ICMP_CODES)
field("withholding.version", "uint8", "Version")
field("withholding.flags", "uint8", "Flags", base.HEX)
field("withholding.withheld", "bool", "SYNs are withheld until the server has answered", 8, nil, 0x01)
field("withholding.corrects", "bool", "Windows of SYNs are corrected", 8, nil, 0x02)
field("withholding.uncorrected", "bool", "Windows of withheld SYNs are not corrected", 8, nil, 0x04)
field("withholding.silent", "bool", "Silent requests are understood", 8, nil, 0x08)
field("withholding.blind", "bool", "Blind ones are, too", 8, nil, 0x10)
field("withholding.repeats", "bool", "Blind ones that are made again are known", 8, nil, 0x20)
field("withholding.hold_times", "bool", "Hold Time TLVs are understood", 8, nil, 0x40)
field("withholding.no_way", "bool", "The converter reaches no server", 8, nil, 0x80)
field("withholding.limit", "uint16", "Limit in milliseconds")
field("echo.version", "uint8", "Version")
field("echo.flags", "uint8", "Flags", base.HEX)
field("echo.limit", "uint16", "Limit in KiB")
field("silence.version", "uint8", "Version")
field("silence.flags", "uint8", "Flags", base.HEX)
field("silence.blind", "bool", "The client can't take a response off its stream", 8, nil, 0x01)
field("silence.mptcp", "bool", "The client's socket is one of Multipath TCP", 8, nil, 0x02)
field("silence.repeat", "uint16", "Repeat", base.DEC, nil, nil, "How many times the request was made before")
field("silence.attempt", "uint64", "Attempt", base.HEX, nil, nil, "What all repeats of a request share; 0 without repeats")
field("hold_time.version", "uint8", "Version")
field("hold_time.flags", "uint8", "Flags", base.HEX)
field("hold_time.limit", "uint16", "Limit in milliseconds")
field("mark", "uint16", "Mark", base.HEX)
field("data", "bytes", "Undecoded bytes")
field("relayed", "bool", "Relayed stream")
field("server", "string", "Server")
field("request_in", "framenum", "Request in frame", base.NONE, frametype.NONE)
field("subflow_of", "uint32", "Further subflow of TCP stream", base.DEC)
convert.fields = f

local e = {}

local function note(name, text, group, severity)
	e[name] = ProtoExpert.new("convert." .. name, text, expert.group[group], expert.severity[severity])
end

note("magic.bad", "The Magic Number isn't 0x2263: this is no Convert message", "MALFORMED", "ERROR")
note("silence.bad", "No silent request, though it has the Magic Number of one: the receiver resets the connection", "MALFORMED", "ERROR")
note("version.unknown", "The version isn't 1, the only one that RFC 8803 defines", "PROTOCOL", "ERROR")
note("total_length.zero", "The Total Length is 0: the receiver resets the connection", "MALFORMED", "ERROR")
note("total_length.past_end", "The Total Length is more than there is", "MALFORMED", "ERROR")
note("tlv.none", "The request has neither an Info TLV nor a Connect TLV", "MALFORMED", "ERROR")
note("tlv.past_end", "The TLV is longer than what is left of the message", "MALFORMED", "ERROR")
note("tlv.length.zero", "The TLV's Length is 0: where the next one begins is unknown", "MALFORMED", "ERROR")
note("tlv.length.bad", "The TLV's Length is impossible for its type", "MALFORMED", "ERROR")
note("tlv.type.reserved", "Type 0 is reserved", "MALFORMED", "ERROR")
note("tlv.type.unknown", "The TLV's type is unknown", "UNDECODED", "WARN")
note("tlv.duplicate", "The TLV appears more than once", "MALFORMED", "ERROR")
note("tlv.wrong_direction", "Only the other peer may send this TLV", "PROTOCOL", "ERROR")
note("zero.nonzero", "The field has to be 0", "MALFORMED", "ERROR")
note("unassigned.nonzero", "The field should be 0; receivers ignore it", "PROTOCOL", "NOTE")
note("padding.nonzero", "The padding isn't 0", "PROTOCOL", "WARN")
note("connect.address.bad", "A multicast, broadcast, loopback or unspecified address can't be a server's", "MALFORMED", "ERROR")
note("tcp_option.truncated", "The TCP option is longer than what is left of the TLV", "MALFORMED", "ERROR")
note("tcp_option.length.bad", "A TCP option's Length is 2 or more", "MALFORMED", "ERROR")
note("tcp_option.forbidden", "This kind must not be in a Connect TLV", "PROTOCOL", "WARN")
note("tcp_header.bad", "The server's TCP options end in the middle of one", "PROTOCOL", "WARN")
note("supported.forbidden", "This kind must not be announced", "PROTOCOL", "WARN")
note("error.received", "The converter has answered with an error", "RESPONSE_CODE", "NOTE")
note("error.code.unknown", "RFC 8803 doesn't define this Error Code", "UNDECODED", "WARN")
note("error.value.bad", "The Value doesn't fit the Error Code", "PROTOCOL", "WARN")
note("mark.foreign", "Another implementation's TLV, or another version of libconvert's", "UNDECODED", "NOTE")
note("answer.no_tcp_header", "The request had TCP options, so the answer has to have an Extended TCP Header TLV",
	"PROTOCOL", "WARN")
note("next.malformed", "The next dissector has found the relayed bytes malformed", "MALFORMED", "WARN")
note("next.gap", "Part of the relayed stream travels on other subflows: not handed to the next dissector", "REASSEMBLE", "NOTE")
convert.experts = e

-- --- TLVs ----------------------------------------------------------------------------------------------------------------
--
-- A context says what the functions below have to know of the message: tvb; limit, how many bytes of the tvb may be read;
-- from_client; quoted, whether it is the message in an Error TLV, whose faults are no news; short, whether the capture lacks bytes of the
-- packet, so that a missing end is no fault; found, what has been learned from it.

local function complain(context, item, name, text)
	if context.quoted then
		return
	elseif text then
		item:add_proto_expert_info(e[name], text)
	else
		item:add_proto_expert_info(e[name])
	end
end

local function bytes_are_zero(range)
	return not range:bytes():tohex():find("[^0]")
end

-- Adds what stands behind a list that ends before its TLV does.
local function add_padding(context, tree, offset, finish)
	if offset < finish then
		local range = context.tvb(offset, finish - offset)
		local item = tree:add(f.padding, range)
		if not bytes_are_zero(range) then
			complain(context, item, "padding.nonzero")
		end
	end
end

local function add_field16(context, tree, offset, name, complaint)
	local item = tree:add(f[name], context.tvb(offset, 2))
	if context.tvb(offset, 2):uint() ~= 0 then
		complain(context, item, complaint)
	end
end

local option_readers = {
	[2] = { 4, function(tree, value) tree:add(f["tcp_option.mss"], value); return value:uint() end },
	[3] = { 3, function(tree, value) tree:add(f["tcp_option.wscale"], value); return value:uint() end },
	[8] = { 10, function(tree, value)
		tree:add(f["tcp_option.tsval"], value(0, 4))
		tree:add(f["tcp_option.tsecr"], value(4, 4))
		return string.format("%u, %u", value(0, 4):uint(), value(4, 4):uint())
	end },
	[30] = { nil, function(tree, value)
		local subtype = value(0, 1):bitfield(0, 4)
		tree:add(f["tcp_option.mptcp_subtype"], value(0, 1), subtype)
		return MPTCP_SUBTYPES[subtype] or tostring(subtype)
	end },
	[34] = { nil, function(tree, value) tree:add(f["tcp_option.fastopen_cookie"], value); return value:bytes():tohex() end },
}

-- Adds one TCP option of the given length, with its Kind and Length, and returns its name.
local function add_option(tree, range)
	local kind, length = range(0, 1):uint(), range:len()
	local name = OPTION_NAMES[kind] or string.format("Kind %d", kind)
	local item = tree:add(f.tcp_option, range)
	item:set_text("TCP option: " .. name)
	item:add(f["tcp_option.kind"], range(0, 1))
	if length == 1 then
		return name, item
	end
	item:add(f["tcp_option.length"], range(1, 1))
	if length > 2 then
		local reader, value = option_readers[kind], range(2)
		if reader and (reader[1] or length) == length then
			item:append_text(" " .. reader[2](item, value))
		else
			item:add(f["tcp_option.value"], value)
		end
	end
	return name, item
end

-- Adds a list of TCP options (Figure 19) and returns their names. Zeros at its end are padding.
local function add_options(context, tree, offset, finish, in_connect)
	local names = {}
	while offset < finish and not bytes_are_zero(context.tvb(offset, finish - offset)) do
		local kind, left = context.tvb(offset, 1):uint(), finish - offset
		local length = kind <= 1 and 1 or left > 1 and context.tvb(offset + 1, 1):uint() or 2
		if length < 1 or length > left or (kind > 1 and length < 2) then
			local item = tree:add(f.tcp_option, context.tvb(offset, left))
			item:set_text("TCP option: " .. (OPTION_NAMES[kind] or string.format("Kind %d", kind)) .. ", cut")
			item:add(f["tcp_option.kind"], context.tvb(offset, 1))
			complain(context, item, not in_connect and "tcp_header.bad" or length > left and "tcp_option.truncated" or "tcp_option.length.bad")
			return names
		end
		local name, item = add_option(tree, context.tvb(offset, length))
		if in_connect and (kind <= 1 or kind == 29) then
			complain(context, item, "tcp_option.forbidden")
		end
		names[#names + 1] = name
		offset = offset + length
	end
	add_padding(context, tree, offset, finish)
	return names
end

-- Adds a list of kinds, a byte each and padded with 0; returns their names.
local function add_kinds(context, tree, offset, finish, name, forbidden)
	local names = {}
	while offset < finish and not bytes_are_zero(context.tvb(offset, finish - offset)) do
		local kind = context.tvb(offset, 1):uint()
		local item = tree:add(f[name], context.tvb(offset, 1))
		if forbidden and forbidden[kind] then
			complain(context, item, "supported.forbidden")
		end
		names[#names + 1] = OPTION_NAMES[kind] or string.format("Kind %d", kind)
		offset = offset + 1
	end
	add_padding(context, tree, offset, finish)
	return names
end

-- Says whether these 16 bytes can't be a server's address: as convert_address_is_valid() in lib/message.c.
local function address_is_bad(range)
	local first, mapped = range(0, 1):uint(), range(0, 12):bytes():tohex():upper() == "00000000000000000000FFFF"
	if mapped then
		local v4 = range(12, 1):uint()
		return v4 == 0 or v4 == 127 or (v4 >= 224 and v4 <= 239) or range(12, 4):bytes():tohex():upper() == "FFFFFFFF"
	end
	return first == 0xff or (bytes_are_zero(range(0, 15)) and range(15, 1):uint() <= 1)
end

local function read_connect(context, tree, offset, finish)
	local tvb, address = context.tvb, context.tvb(offset + 4, 16)
	local port = tvb(offset + 2, 2):uint()
	tree:add(f["connect.port"], tvb(offset + 2, 2))
	local item, server
	if address(0, 12):bytes():tohex():upper() == "00000000000000000000FFFF" then
		item = tree:add(f["connect.ip"], tvb(offset + 16, 4))
		server = string.format("%s:%d", tostring(tvb(offset + 16, 4):ipv4()), port)
	else
		item = tree:add(f["connect.ipv6"], address)
		server = string.format("[%s]:%d", tostring(address:ipv6()), port)
	end
	if address_is_bad(address) then
		complain(context, item, "connect.address.bad")
	end
	context.found.port, context.found.server = port, server
	context.found.extended = offset + 20 < finish
	local names = add_options(context, tree, offset + 20, finish, true)
	return server .. (#names > 0 and " with " .. table.concat(names, ", ") or "")
end

local function read_tcp_header(context, tree, offset, finish)
	add_field16(context, tree, offset + 2, "unassigned", "unassigned.nonzero")
	context.found.tcp_header = true
	return table.concat(add_options(context, tree, offset + 4, finish, false), ", ")
end

local NEVER_ANNOUNCED = { [0] = true, [1] = true, [2] = true, [3] = true, [5] = true, [29] = true } -- Section 7

local function read_supported(context, tree, offset, finish)
	add_field16(context, tree, offset + 2, "unassigned", "unassigned.nonzero")
	return table.concat(add_kinds(context, tree, offset + 4, finish, "supported.kind", NEVER_ANNOUNCED), ", ")
end

local function read_info(context, tree, offset)
	add_field16(context, tree, offset + 2, "zero", "zero.nonzero")
end

local function read_cookie(context, tree, offset, finish)
	add_field16(context, tree, offset + 2, "zero", "zero.nonzero")
	if offset + 4 < finish then
		tree:add(f.cookie, context.tvb(offset + 4, finish - offset - 4))
	end
end

local read_message -- below; the message in an error is read as any other

-- What the errors of Section 6.2.8 have in their Value, which begins at offset. Each returns a text, or nothing.
local error_readers = {
	[UNSUPPORTED_VERSION] = function(context, tree, offset, finish)
		local versions = {}
		while offset < finish and not bytes_are_zero(context.tvb(offset, finish - offset)) do
			tree:add(f["error.version"], context.tvb(offset, 1))
			versions[#versions + 1] = string.format("%d", context.tvb(offset, 1):uint())
			offset = offset + 1
		end
		add_padding(context, tree, offset, finish)
		return "supported: " .. table.concat(versions, ", ")
	end,
	[MALFORMED] = function(context, tree, offset, finish)
		add_padding(context, tree, offset, offset + 1)
		if offset + 1 < finish then
			local item = tree:add(f["error.echo"], context.tvb(offset + 1, finish - offset - 1))
			read_message({ tvb = context.tvb, limit = finish, from_client = true, quoted = true, found = {} }, item, offset + 1)
		end
	end,
	[MISSING_COOKIE] = function(context, tree, offset, finish)
		add_padding(context, tree, offset, offset + 1)
		if offset + 1 < finish then
			tree:add(f.cookie, context.tvb(offset + 1, finish - offset - 1))
		else
			complain(context, tree, "error.value.bad", "There is no cookie in it")
		end
	end,
	[UNSUPPORTED_OPTION] = function(context, tree, offset, finish)
		return table.concat(add_kinds(context, tree, offset, finish, "error.kind"), ", ")
	end,
	[RESOURCE_EXCEEDED] = function(context, tree, offset, finish)
		local delay = context.tvb(offset, 1):uint()
		tree:add(f["error.delay"], context.tvb(offset, 1))
		add_padding(context, tree, offset + 1, finish)
		return delay == 0 and "ask again after 30 s or more" or string.format("ask again after %d s", delay)
	end,
	[NOT_AUTHORIZED] = function(context, tree, offset, finish)
		local item = tree:add(f["error.value"], context.tvb(offset, finish - offset))
		if not bytes_are_zero(context.tvb(offset, finish - offset)) then
			complain(context, item, "error.value.bad", "The Value has to be 0")
		end
	end,
	[UNREACHABLE] = function(context, tree, offset, finish)
		local code = context.tvb(offset, 1):uint()
		tree:add(f["error.icmp_code"], context.tvb(offset, 1))
		add_padding(context, tree, offset + 1, finish)
		return string.format("ICMP Code %d", code) .. (ICMP_CODES[code] and ", " .. ICMP_CODES[code] or "")
	end,
}
error_readers[UNSUPPORTED_MESSAGE] = error_readers[MALFORMED]
error_readers[NETWORK_FAILURE] = error_readers[RESOURCE_EXCEEDED]
error_readers[CONNECTION_RESET] = error_readers[NOT_AUTHORIZED]

local function read_error(context, tree, offset, finish)
	local code = context.tvb(offset + 2, 1):uint()
	local name, reader = ERROR_NAMES[code] or string.format("unknown code %d", code), error_readers[code]
	local item = tree:add(f["error.code"], context.tvb(offset + 2, 1))
	context.found.error = name
	if reader then
		complain(context, item, "error.received", "The converter has answered: " .. name)
		local text = reader(context, tree, offset + 3, finish)
		return name .. (text and ", " .. text or "")
	end
	complain(context, item, "error.code.unknown")
	tree:add(f["error.value"], context.tvb(offset + 3, finish - offset - 3))
	return name
end

-- libconvert's TLVs of private use (doc/private-tlvs.md); somebody else's of the same type lacks the mark, or is of another version.
local function is_ours(context, offset, finish)
	return finish - offset >= 8 and context.tvb(offset + 2, 1):uint() == 1 and context.tvb(offset + 6, 2):uint() == MARK
end

local function add_further_value(context, tree, offset, finish)
	tree:add(f["tlv.value"], context.tvb(offset, finish - offset)):prepend_text("Further ")
end

-- number: the name of the 16 bits behind the flags; add_rest: what reads the words that not every TLV of this type has
local function read_private(kind, number, read, add_rest)
	return function(context, tree, offset, finish)
		if not is_ours(context, offset, finish) then
			tree:add(f["tlv.value"], context.tvb(offset + 2, finish - offset - 2))
			complain(context, tree, (kind == "echo" or kind == "hold_time") and context.from_client and "tlv.type.unknown" or "mark.foreign")
			context.found.foreign = true
			return "not libconvert's"
		end
		tree:add(f[kind .. ".version"], context.tvb(offset + 2, 1))
		local flags = tree:add(f[kind .. ".flags"], context.tvb(offset + 3, 1))
		tree:add(f[kind .. "." .. number], context.tvb(offset + 4, 2))
		tree:add(f.mark, context.tvb(offset + 6, 2))
		if offset + 8 < finish then
			(add_rest or add_further_value)(context, tree, offset + 8, finish)
		end
		return read(context, flags, context.tvb(offset + 3, 1), context.tvb(offset + 4, 2):uint())
	end
end

local read_withholding = read_private("withholding", "limit", function(_, tree, flags, limit)
	tree:add(f["withholding.no_way"], flags)
	tree:add(f["withholding.hold_times"], flags)
	tree:add(f["withholding.repeats"], flags)
	tree:add(f["withholding.blind"], flags)
	tree:add(f["withholding.silent"], flags)
	tree:add(f["withholding.uncorrected"], flags)
	tree:add(f["withholding.corrects"], flags)
	tree:add(f["withholding.withheld"], flags)
	local withheld, uncorrected = flags:bitfield(7, 1) == 1, flags:bitfield(5, 1) == 1
	local corrects = flags:bitfield(6, 1) == 1 or (withheld and not uncorrected)
	return (withheld and string.format("SYNs are withheld for %d ms at most", limit) or "SYNs are not withheld") ..
		(corrects and ", their windows corrected" or "") .. (withheld and flags:bitfield(4, 1) == 1 and ", silence offered" or "")
end)

local read_echo = read_private("echo", "limit", function(context, _, _, limit)
	context.found.echo = true
	return context.from_client and "what follows is to come back" or string.format("%d KiB come back at most", limit)
end)

local read_silence = read_private("silence", "repeat", function(context, tree, flags)
	tree:add(f["silence.mptcp"], flags)
	tree:add(f["silence.blind"], flags)
	context.found.silence = true
	return "no response where the SYN+ACK says it" .. (flags:bitfield(7, 1) == 1 and ", blind" or "") ..
		(flags:bitfield(6, 1) == 1 and ", Multipath TCP" or "")
end, function(context, tree, offset, finish)
	if finish - offset >= 8 then
		tree:add(f["silence.attempt"], context.tvb(offset, 8))
		offset = offset + 8
	end
	add_padding(context, tree, offset, finish)
end)

local read_hold_time = read_private("hold_time", "limit", function(_, _, _, limit)
	return string.format("this SYN may be withheld for %d ms at most", limit)
end)

-- Who may send a TLV (both: nil), how many words it has at least and at most, and what reads it: as tlv_rules[] in lib/read.c
local RULES = {
	[INFO] = { client = true, min = 1, max = 1, read = read_info },
	[CONNECT] = { client = true, min = 5, max = 255, read = read_connect },
	[TCP_HEADER] = { client = false, min = 1, max = 255, read = read_tcp_header },
	[SUPPORTED] = { client = false, min = 1, max = 255, read = read_supported },
	[COOKIE] = { client = true, min = 2, max = 255, read = read_cookie },
	[ERROR] = { client = false, min = 1, max = 255, read = read_error },
	[WITHHOLDING] = { client = false, min = 1, max = 255, read = read_withholding },
	[ECHO] = { min = 1, max = 255, read = read_echo },
}

-- A Silence TLV is one in a request that has the Magic Number for it, a Hold Time TLV in any request. Elsewhere they are unknown ones.
local SILENCE_RULE = { client = true, min = 1, max = 255, read = read_silence }
local HOLD_TIME_RULE = { client = true, min = 1, max = 255, read = read_hold_time }

local function rule_of(type, context)
	return type == SILENCE and context.silent and SILENCE_RULE or type == HOLD_TIME and context.from_client and HOLD_TIME_RULE or RULES[type]
end

local function read_value(context, item, offset, finish, words, rule)
	if rule and words >= rule.min and words <= rule.max then
		return rule.read(context, item, offset, finish)
	end
	if rule then
		complain(context, item, "tlv.length.bad")
	end
	item:add(f["tlv.value"], context.tvb(offset + 2, finish - offset - 2))
end

-- Adds the TLV at offset of a message that ends at finish; returns where the next one begins, nothing if that can't be told.
local function read_tlv(context, tree, offset, finish, seen)
	local left = math.min(finish, context.limit) - offset
	local type = context.tvb(offset, 1):uint()
	local name = TLV_NAMES[type] or string.format("TLV of type %d", type)
	local item = tree:add(f.tlv, context.tvb(offset, left))
	item:set_text(name)
	item:add(f["tlv.type"], context.tvb(offset, 1))
	local rule = rule_of(type, context)
	local short = name:gsub(" TLV$", "")
	context.found.names[#context.found.names + 1] = short
	if seen[type] then
		complain(context, item, "tlv.duplicate")
	elseif not rule then
		complain(context, item, type == 0 and "tlv.type.reserved" or "tlv.type.unknown")
	elseif rule.client ~= nil and rule.client ~= context.from_client then
		complain(context, item, "tlv.wrong_direction")
	end
	seen[type] = true
	if left < 2 then
		return
	end
	local words = context.tvb(offset + 1, 1):uint()
	local stop = offset + words * WORD
	item:add(f["tlv.length"], context.tvb(offset + 1, 1)):append_text(string.format(" (%d bytes)", words * WORD))
	if words == 0 or stop > finish or stop > context.limit then
		if words == 0 then
			complain(context, item, "tlv.length.zero")
		elseif stop > finish then
			complain(context, item, "tlv.past_end")
		end
		if left > 2 then
			item:add(f["tlv.value"], context.tvb(offset + 2, left - 2))
		end
		return
	end
	item:set_len(words * WORD)
	local text = read_value(context, item, offset, stop, words, rule)
	if text and text ~= "" then
		item:append_text(": " .. text)
		if type == CONNECT or type == ERROR then
			context.found.names[#context.found.names] = short .. " " .. text
		end
	end
	return stop
end

local function note_incomplete(context, item, text)
	context.found.incomplete = true
	context.found.fault = context.short and "not all captured" or "incomplete"
	if not context.short then
		complain(context, item, "total_length.past_end", text)
	end
end

-- Adds a message: the fixed header and as many TLVs as are there. Returns how long it is by its header.
function read_message(context, tree, offset)
	local start, limit, tvb, found = offset, context.limit, context.tvb, context.found
	found.names = {}
	if limit - offset < HEADER_LEN then
		note_incomplete(context, tree:add(f.data, tvb(offset, limit - offset)), "The fixed header is cut")
		return limit - offset
	end
	local version, words, magic = tvb(offset, 1):uint(), tvb(offset + 1, 1):uint(), tvb(offset + 2, 2):uint()
	local version_item = tree:add(f.version, tvb(offset, 1))
	local length_item = tree:add(f.total_length, tvb(offset + 1, 1)):append_text(string.format(" (%d bytes)", words * WORD))
	local magic_item = tree:add(f.magic, tvb(offset + 2, 2))
	local finish = offset + math.max(words * WORD, HEADER_LEN)
	offset = offset + HEADER_LEN
	context.silent = context.from_client and magic == SILENT_MAGIC
	if (magic ~= MAGIC and not context.silent) or version ~= 1 or words == 0 then
		if magic ~= MAGIC and not context.silent then
			complain(context, magic_item, "magic.bad")
			found.fault = "wrong magic number"
		elseif words == 0 then -- Section 6.1 wants a reset, whatever the version is
			complain(context, length_item, "total_length.zero")
			found.fault = "Total Length of 0"
		else
			complain(context, version_item, "version.unknown")
			found.fault = "unknown version"
		end
		if offset < limit then
			tree:add(f.data, tvb(offset, limit - offset))
		end
		return finish - start
	end
	if finish > limit then
		note_incomplete(context, length_item, string.format("The message has %d bytes, of which %d are there", words * WORD, limit - start))
	end
	local seen, first = {}, offset < limit and tvb(offset, 1):uint()
	while offset and offset < finish and offset < limit do
		offset = read_tlv(context, tree, offset, finish, seen)
	end
	if context.silent and finish <= limit and (first ~= SILENCE or not found.silence or seen[INFO] or seen[ECHO] or not seen[CONNECT]) then
		complain(context, magic_item, "silence.bad")
	end
	if context.from_client and finish <= limit and not seen[INFO] and not seen[CONNECT] then
		complain(context, length_item, "tlv.none")
	end
	return finish - start
end

-- --- streams: where the messages are, and what is relayed ------------------------------------------------------------------
--
-- A stream has two sides, request and answer. A side's state is nil until its first bytes are seen, then "foreign" if these are no
-- message, "waiting" while TCP puts a message together, "cut" while one continues that nobody puts together, and "done" behind it. Of a
-- message, bytes is the beginning, as captured; have is how many bytes the packets so far had; len is the message's own length, nil while
-- the header isn't whole.
--
-- A capture may lack the end of each packet. So what was sent, reported_len(), decides where a message ends; len() is what can be read.

-- Both are emptied when a capture is opened or dissected anew.
local streams = {} -- lists of streams by their two ports
local calls = {} -- by the number of the frame, and where the tvb is in it: what the first pass has decided, false if it isn't ours
local claims_work = false -- whether TCP has called us for a connection that we had claimed

local function extractor(name)
	local known, found = pcall(Field.new, name) -- older versions lack some fields
	return known and found or function() end
end

local mptcp_master, mptcp_subflows = extractor("mptcp.master"), extractor("mptcp.analysis.subflows")
local mptcp_dsn, mptcp_subflow_seq = extractor("mptcp.dss.dsn"), extractor("tcp.options.mptcp.subflowseqno")

-- What the first bytes of a stream are: "message", "cut" (they may become one), "broken" (nearly one) or nothing.
local function judge(tvb)
	local len = tvb:len()
	if len < HEADER_LEN then
		return (len < 3 or tvb(2, 1):uint() == 0x22 or tvb(2, 1):uint() == 0x6c) and tvb(0, 1):uint() == 1 and "cut" or nil
	end
	local magic = tvb(2, 2):uint()
	if magic == MAGIC or magic == SILENT_MAGIC then
		return "message"
	end
	local first = len > HEADER_LEN and tvb(HEADER_LEN, 1):uint() or 0
	return tvb(0, 1):uint() == 1 and first > 0 and RULES[first] ~= nil and "broken" or nil
end

-- Returns how long the message is that begins with these bytes; nothing as long as the rest of the header may still come. It never comes
-- if the capture lacks it, but then the second byte will do.
local function message_length(tvb)
	local len = tvb:len()
	if len < HEADER_LEN and (len < 2 or len == tvb:reported_len()) then
		return nil
	end
	return math.max(tvb(1, 1):uint() * WORD, HEADER_LEN)
end

-- Takes the next part of a header that nobody puts together. Returns false if it turns out to be none.
local function continue_header(side, tvb)
	side.bytes = side.bytes .. tvb(0, math.min(tvb:len(), HEADER_LEN - #side.bytes)):bytes():raw()
	if #side.bytes < HEADER_LEN then
		return tvb:len() == tvb:reported_len()
	end
	local magic = side.bytes:byte(3) * 256 + side.bytes:byte(4)
	side.len = math.max(side.bytes:byte(2) * WORD, HEADER_LEN)
	return magic == MAGIC or magic == SILENT_MAGIC
end

-- Says whether this is a message beyond doubt: a header, and TLVs that fill what it says exactly.
local function is_certain(tvb)
	if tvb:len() < 2 * HEADER_LEN or judge(tvb) ~= "message" or tvb(0, 1):uint() ~= 1 then
		return false
	end
	local offset, finish = HEADER_LEN, tvb(1, 1):uint() * WORD
	if tvb(2, 2):uint() == SILENT_MAGIC and tvb(HEADER_LEN, 1):uint() ~= SILENCE then
		return false
	end
	while offset + 1 < math.min(finish, tvb:len()) do
		local words = tvb(offset + 1, 1):uint()
		if tvb(offset, 1):uint() == 0 or words == 0 then
			return false
		end
		offset = offset + words * WORD
	end
	return offset == finish or (offset >= tvb:len() and offset < finish)
end

local ports_text = "1234"

local function is_converter_port(port)
	for first, last in ports_text:gmatch("(%d+)%-?(%d*)") do
		if port >= tonumber(first) and port <= tonumber(last == "" and first or last) then
			return true
		end
	end
	return false
end

-- Says whether the sender of these bytes is the client. Where the ports don't tell, the type of the message's first TLV does.
local function sender_is_client(pinfo, tvb)
	local to, from = is_converter_port(pinfo.dst_port), is_converter_port(pinfo.src_port)
	if to ~= from then
		return to
	end
	local rule = tvb:len() > HEADER_LEN and RULES[tvb(HEADER_LEN, 1):uint()]
	return not rule or rule.client ~= false
end

-- Returns the list in which a stream of this frame's is, and its index there, or nothing.
local function find_stream(pinfo)
	local low, high = math.min(pinfo.src_port, pinfo.dst_port), math.max(pinfo.src_port, pinfo.dst_port)
	local key = low .. " " .. high
	streams[key] = streams[key] or {}
	for index, stream in ipairs(streams[key]) do
		-- Addresses are compared, and not their texts: these change when a name is found for one.
		if stream.from == pinfo.src and stream.to == pinfo.dst and stream.from_port == pinfo.src_port or
			stream.from == pinfo.dst and stream.to == pinfo.src and stream.from_port == pinfo.dst_port then
			return streams[key], index
		end
	end
	return streams[key], nil
end

local function new_stream(pinfo, tvb)
	return { from = pinfo.src, from_port = pinfo.src_port, to = pinfo.dst, from_is_client = sender_is_client(pinfo, tvb),
		request = {}, answer = {} }
end

-- TvbRange:raw() would be shorter than bytes():raw(), but gives all up to the buffer's end in 3.4.
local function starts_with(tvb, bytes)
	return tvb:len() >= #bytes and tvb(0, #bytes):bytes():raw() == bytes
end

-- What these bytes are, by what came before them on their side: "message", "continuation", "relayed", or nothing if they aren't ours.
local function continue(side, tvb)
	if side.state == nil then
		return judge(tvb) and (message_length(tvb) or tvb:len() == tvb:reported_len()) and "message" or nil
	elseif side.state == "foreign" then
		return is_certain(tvb) and "message" or nil
	elseif side.state == "cut" then
		if not side.len and not continue_header(side, tvb) then
			side.state = "foreign"
			return nil
		end
		return "continuation"
	elseif side.state == "waiting" then
		return (starts_with(tvb, side.bytes) and judge(tvb) or is_certain(tvb)) and "message" or nil -- perhaps a new connection's
	elseif #side.bytes >= HEADER_LEN and starts_with(tvb, side.bytes) then
		return "message" -- it was sent again
	end
	return "relayed"
end

-- Says whether this is another connection than the stream's, with the same ports, as Wireshark sees it: a SYN with another number begins
-- one. Each message claims its connection (pinfo.conversation), and for a claimed one TCP calls us without looking at the ports, so
-- that pinfo.match is none of them. Where a version or a preference doesn't keep claims, this is never true.
local function is_another(stream, pinfo, guessed)
	local claimed = not guessed and pinfo.match ~= pinfo.src_port and pinfo.match ~= pinfo.dst_port
	claims_work = claims_work or claimed
	return claims_work and not claimed and (stream.request.frame or stream.answer.frame) ~= nil
end

-- Decides in the first pass. A new connection may have the ports of an old one. Where is_another() doesn't tell, it begins with a request,
-- unless that is one to a converter behind the converter.
local function decide(tvb, pinfo, guessed)
	local list, index = find_stream(pinfo)
	local stream = list[index]
	if not stream or is_another(stream, pinfo, guessed) then
		stream = new_stream(pinfo, tvb)
	end
	local from_client = (stream.from == pinfo.src and stream.from_port == pinfo.src_port) == stream.from_is_client
	local side = from_client and stream.request or stream.answer
	local kind = continue(side, tvb)
	if stream.silent and not from_client and side.state == nil and not is_certain(tvb) then
		side.state, side.bytes, kind = "done", "", "relayed" -- there is no response
	end
	if kind == "relayed" and from_client and is_certain(tvb) and not is_converter_port(stream.port or 0) then
		stream, kind, from_client = new_stream(pinfo, tvb), "message", true
		stream.from_is_client = true
		side = stream.request
	end
	list[index or #list + 1] = stream
	if not kind then
		side.state = side.state or "foreign"
		return false
	end
	return { stream = stream, side = side, from_client = from_client, kind = kind, position = side.have }
end

-- Returns what the first pass has decided about these bytes of this frame, and decides in it. TCP asks again for bytes that aren't ours.
local function look_up(tvb, pinfo, guessed)
	local key = tvb:offset() .. " " .. tvb:reported_len()
	local frame = calls[pinfo.number] or {}
	if not pinfo.visited and frame[key] == nil then
		frame[key] = decide(tvb, pinfo, guessed)
		calls[pinfo.number] = frame
	end
	return frame[key]
end

-- Dissectors by the first bytes of what is relayed, for servers on ports that say nothing.
local SIGNATURES = {
	{ "^\x16\x03[\x00-\x04]", "tls" }, { "^PRI %* HTTP/2", "http2" }, { "^HTTP/1%.", "http" }, { "^SSH%-", "ssh" },
	{ "^GET ", "http" }, { "^HEAD ", "http" }, { "^POST ", "http" }, { "^PUT ", "http" }, { "^DELETE ", "http" },
	{ "^OPTIONS ", "http" }, { "^PATCH ", "http" },
}

local function dissector_by_signature(tvb)
	local beginning = tvb(0, math.min(tvb:len(), 16)):bytes():raw()
	for _, signature in ipairs(SIGNATURES) do
		if beginning:find(signature[1]) then
			local known, dissector = pcall(Dissector.get, signature[2])
			return known and dissector or nil
		end
	end
	return nil
end

local data_dissector = Dissector.get("data")
local tcp_ports = DissectorTable.get("tcp.port")
local handing_on -- the number of the frame for which the next dissector runs: a converter behind a converter isn't decoded

local function call_next(tvb, pinfo, tree, stream)
	-- On a converter's port the table has us in place of the server's protocol, say TLS, and we would refuse the bytes.
	if not is_converter_port(stream.port) and tcp_ports:get_dissector(stream.port) then
		tcp_ports:try(stream.port, tvb, pinfo, tree)
		return
	end
	if not stream.next then
		stream.next = dissector_by_signature(tvb)
		stream.next_since = pinfo.number
	end
	if stream.next and pinfo.number >= stream.next_since then
		stream.next:call(tvb, pinfo, tree)
	elseif not (DissectorTable.try_heuristics and DissectorTable.try_heuristics("tcp", tvb, pinfo, tree)) then
		data_dissector:call(tvb, pinfo, tree)
	end
end

-- Hands relayed bytes to the next dissector, which sees the server's port where the converter's is. Whole: the capture has all of
-- the packet; otherwise it is no fault of these bytes if that dissector lacks some.
local function hand_on(tvb, pinfo, tree, item, stream, from_client, whole)
	local side = from_client and "dst_port" or "src_port"
	local port, can_desegment = pinfo[side], pinfo.can_desegment
	if tvb:len() == 0 then
		return
	end
	-- If a dissector reads bytes that the capture lacks, Wireshark 4.0 leaves it and all of our functions, past pcall(), and Lua isn't told.
	-- So the next dissector gets a buffer that has no such bytes.
	if not whole then
		tvb = tvb(0, tvb:len()):tvb()
	end
	if not stream.port or stream.echo then
		data_dissector:call(tvb, pinfo, tree)
		return
	end
	pinfo[side] = stream.port
	pinfo.can_desegment = can_desegment > 0 and 2 or 0 -- each level takes one off
	handing_on = pinfo.number
	local fine = pcall(call_next, tvb, pinfo, tree, stream)
	handing_on = nil
	pinfo[side] = port
	pinfo.can_desegment = can_desegment
	if not fine and whole then
		item:add_proto_expert_info(e["next.malformed"])
	end
end

local function add_generated(tree, name, value)
	if value ~= nil then
		tree:add(f[name], value):set_generated()
	end
end

-- Says whether a part of the data before this segment's has taken another subflow: until then, both numbers count the same bytes.
local function is_behind_gap()
	local data, subflow = mptcp_dsn(), mptcp_subflow_seq()
	if not data or not subflow then
		return false
	end
	local difference = tonumber(tostring(data.value)) - tonumber(tostring(subflow.value))
	return difference ~= 0 and math.abs(difference) < 2 ^ 40 -- otherwise the preference for relative numbers is off
end

local function dissect_relayed(tvb, pinfo, tree, call, whole)
	local stream, side = call.stream, call.side
	local item = tree:add(convert, tvb(0, 0))
	item:append_text(", relayed stream" .. (stream.server and " of " .. stream.server or ""))
	add_generated(item, "relayed", true)
	add_generated(item, "server", stream.server)
	add_generated(item, "request_in", stream.request.frame)
	if side.frame == pinfo.number then -- the message is in this frame, too, and so is what the column says of it
		pinfo.cols.info:append(" | ")
		pinfo.cols.info:fence()
	end
	if side.opaque then
		data_dissector:call(tvb, pinfo, tree)
	elseif is_behind_gap() then
		item:add_proto_expert_info(e["next.gap"])
		data_dissector:call(tvb, pinfo, tree)
	else
		hand_on(tvb, pinfo, tree, item, stream, call.from_client, whole)
	end
	return tvb:len()
end

-- Remembers in the first pass what a message has told, for all that follows it.
local function learn(call, tvb, length, found, pinfo)
	local stream, side = call.stream, call.side
	if pinfo.visited or side.frame then
		return
	end
	side.frame, side.time = pinfo.number, pinfo.abs_ts
	side.bytes = tvb(0, math.min(length or HEADER_LEN, tvb:len())):bytes():raw()
	side.state = length and tvb:reported_len() >= length and "done" or "cut"
	side.have, side.len = tvb:reported_len(), length
	side.opaque = found.error ~= nil or (found.fault ~= nil and not found.incomplete)
	if call.from_client then
		stream.port, stream.server, stream.extended = found.port, found.server, found.extended
		stream.silent = found.silence
	end
	stream.echo = stream.echo or found.echo
end

local function add_links(item, stream, side, from_client, found)
	add_generated(item, from_client and "request" or "answer", true)
	if from_client then
		add_generated(item, "response_in", stream.answer.frame)
		return
	end
	add_generated(item, "server", stream.server)
	add_generated(item, "response_to", stream.request.frame)
	if stream.request.time then
		local nanoseconds = math.floor((side.time - stream.request.time) * 1e9 + 0.5)
		add_generated(item, "time", NSTime.new(math.floor(nanoseconds / 1e9), nanoseconds % 1e9))
	end
	if stream.extended and not found.error and not found.tcp_header and not found.fault then
		item:add_proto_expert_info(e["answer.no_tcp_header"])
	end
end

-- Asks TCP for the rest of a message of which only a part is here; false if that can't be had.
local function wait_for_more(tvb, pinfo, side, length)
	if pinfo.can_desegment == 0 or tvb:len() < tvb:reported_len() or tvb:len() >= length then
		return false
	end
	if not pinfo.visited then
		side.state, side.bytes = "waiting", tvb():bytes():raw()
	end
	pinfo.desegment_offset = 0
	-- An exact number would do for the header too, but Wireshark then loses a message whose end is in the same segment (4.0).
	pinfo.desegment_len = tvb:len() < HEADER_LEN and DESEGMENT_ONE_MORE_SEGMENT or length - tvb:len()
	return true
end

-- The next dissector may have asked TCP for more: it counts from where its own bytes begin, TCP from where ours do.
local function move_desegmentation(pinfo, length)
	if pinfo.desegment_len > 0 then
		pinfo.desegment_offset = pinfo.desegment_offset + length
	end
end

local function dissect_message(tvb, pinfo, tree, call)
	local stream, side, from_client, len = call.stream, call.side, call.from_client, tvb:len()
	local length = message_length(tvb)
	local part = math.min(len, length or HEADER_LEN)
	if wait_for_more(tvb, pinfo, side, length or HEADER_LEN) then
		return len
	end
	pinfo.cols.protocol = "Convert"
	pinfo.conversation = convert
	local item = tree:add(convert, tvb(0, part))
	local context = { tvb = tvb, limit = part, from_client = from_client, short = len < tvb:reported_len(), found = {} }
	read_message(context, item, 0)
	local found = context.found
	learn(call, tvb, length, found, pinfo)
	add_links(item, stream, side, from_client, found)
	local text = (from_client and "request" or "answer") .. (#found.names > 0 and ": " .. table.concat(found.names, ", ") or "") ..
		(found.fault and " [" .. found.fault .. "]" or "")
	item:append_text(", " .. text)
	pinfo.cols.info = "Convert " .. text
	if len > part then
		pinfo.cols.info:append(" | ")
		pinfo.cols.info:fence()
		if side.opaque then
			data_dissector:call(tvb(part):tvb(), pinfo, tree)
		else
			hand_on(tvb(part):tvb(), pinfo, tree, item, stream, from_client, len == tvb:reported_len())
			move_desegmentation(pinfo, part)
		end
	end
	return len
end

-- A part of a message that wasn't put together, since that is switched off or the capture lacks bytes; what is relayed may begin in it.
local function dissect_continuation(tvb, pinfo, tree, call)
	local side, len, reported = call.side, tvb:len(), tvb:reported_len()
	local rest = math.min(side.len and side.len - call.position or reported, reported)
	local item = tree:add(convert, tvb(0, math.min(rest, len)))
	item:append_text(", continuation")
	item:add(f.data, tvb(0, math.min(rest, len)))
	pinfo.cols.protocol = "Convert"
	if not pinfo.visited then
		side.have = call.position + rest
		side.state = side.have == side.len and "done" or "cut"
	end
	if rest < len then
		dissect_relayed(tvb(rest):tvb(), pinfo, tree, call, len == reported)
		move_desegmentation(pinfo, rest)
	end
	return len
end

-- On a further subflow, returns the number of the TCP stream that is the first one: the lowest in Wireshark's list of them.
local function first_subflow()
	local master, subflows = mptcp_master(), mptcp_subflows()
	if not master or not subflows or (master.value ~= false and master.value ~= 0) then
		return nil
	end
	local first
	-- Older versions have it in a text only, which newer ones don't make for what isn't shown.
	for number in (tostring(subflows.value) .. " " .. master.label):gmatch("%d+") do
		first = math.min(first or tonumber(number), tonumber(number))
	end
	return first
end

-- A further subflow of a Multipath TCP connection carries parts of the relayed stream, which Wireshark doesn't put together, and no
-- message.
local function dissect_subflow(tvb, pinfo, tree, first)
	local item = tree:add(convert, tvb(0, 0))
	item:append_text(", relayed stream on a further subflow")
	pinfo.cols.protocol = "Convert"
	pinfo.cols.info = string.format("Relayed stream, further subflow of TCP stream %d", first)
	add_generated(item, "relayed", true)
	add_generated(item, "subflow_of", first)
	data_dissector:call(tvb, pinfo, tree)
	return tvb:len()
end

-- --- what Wireshark calls --------------------------------------------------------------------------------------------------

local function dissect(tvb, pinfo, tree, guessed)
	if handing_on == pinfo.number or tvb:len() == 0 then
		return 0
	end
	local call = look_up(tvb, pinfo, guessed)
	if call then
		local kinds = { message = dissect_message, continuation = dissect_continuation, relayed = dissect_relayed }
		return kinds[call.kind](tvb, pinfo, tree, call, tvb:len() == tvb:reported_len())
	end
	local first = (is_converter_port(pinfo.src_port) or is_converter_port(pinfo.dst_port)) and first_subflow()
	return first and dissect_subflow(tvb, pinfo, tree, first) or 0
end

function convert.dissector(tvb, pinfo, tree)
	return dissect(tvb, pinfo, tree, false)
end

-- This finds converters on ports that nobody has told Wireshark about.
convert:register_heuristic("tcp", function(tvb, pinfo, tree)
	return handing_on ~= pinfo.number and is_certain(tvb) and dissect(tvb, pinfo, tree, true) > 0
end)

convert.prefs["tcp.port"] = Pref.range("TCP port(s)", ports_text, "Ports on which converters listen", 65535)
tcp_ports:add(ports_text, convert)

function convert.prefs_changed()
	local wanted = tostring(convert.prefs["tcp.port"])
	if wanted ~= ports_text then
		if ports_text ~= "" then
			tcp_ports:remove(ports_text, convert)
		end
		if wanted ~= "" then
			tcp_ports:add(wanted, convert)
		end
		ports_text = wanted
	end
end

function convert.init()
	streams, calls, claims_work = {}, {}, false
end
