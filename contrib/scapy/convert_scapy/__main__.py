# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m convert_scapy - shows messages, which are read from standard input, hexadecimal, a line each

With --rebuild it prints each as it is built anew from the fields that were found in it, with all lengths and paddings computed.
"""
import sys

from scapy.packet import Raw

from . import Convert


def option_anew(option):
    """A TCP option with its length to be computed, unless it had another than it should: it may be a server's, and nobody's fault here."""
    fields = {name: value for name, value in option.fields.items() if value is not None}
    if fields.get("length") == len(option.value or b"") + 2:
        del fields["length"]
    return type(option)(**fields)


def rebuilt(message):
    """The bytes of a message with nothing kept of how it arrived but its fields."""
    tlvs = []
    for tlv in message.tlvs:
        fields = dict(tlv.fields, length=None)
        if "options" in fields:
            fields["options"] = [option_anew(option) for option in tlv.options]
        tlvs.append(type(tlv)(**fields) if not isinstance(tlv, Raw) else tlv)
    anew = Convert(version=message.version, magic=message.magic, tlvs=tlvs)
    return bytes(anew) + bytes(message.payload)


def main():
    """Reads, shows."""
    for line in sys.stdin:
        message = Convert(bytes.fromhex(line))
        if "--rebuild" not in sys.argv[1:]:
            message.show()
        elif isinstance(message, Convert):
            print(rebuilt(message).hex(), " ".join(type(tlv).__name__ for tlv in message.tlvs), flush=True)
        else:
            print(bytes(message).hex(), "no message", flush=True)


if __name__ == "__main__":
    main()
