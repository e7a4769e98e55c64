# SPDX-License-Identifier: BSD-3-Clause
"""golden.py - the messages of the codec's tests, and the codec's verdict on any message, for tests of other parsers"""
import ctypes
import glob
import os
import re

from .build import SRCDIR, Build
from .harness import check


def source(name):
    """The text of a file of the source tree."""
    with open(os.path.join(SRCDIR, name), encoding="utf-8") as file:
        return file.read()


def enumeration(name):
    """{name: number} of an enum of convert.h, without the names' common prefix."""
    body = re.search(r"enum %s \{(.*?)\n\}" % name, source("lib/convert/convert.h"), re.DOTALL).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    found, number = {}, -1
    for constant, value in re.findall(r"CONVERT_(\w+)(?:\s*=\s*(\d+))?", body):
        number = int(value) if value else number + 1
        found[constant.partition("_")[2]] = number
    return found


class Library:
    """libconvertproto as this tree has built it."""

    def __init__(self):
        self._library = ctypes.CDLL(Build().program(".libs/libconvertproto.so"))
        self._statuses = {number: name for name, number in enumeration("convert_status").items()}

    def judge(self, data, from_client):
        """The name of the codec's status for a message, such as "OK" or "BAD_MAGIC"."""
        out = ctypes.create_string_buffer(4096)  # larger than either structure
        parse = self._library.convert_request_parse if from_client else self._library.convert_response_parse
        return self._statuses[parse(data, ctypes.c_size_t(len(data)), out)]


def unfold(text):
    """The bytes that bytes_hex() of tests/unit/bytes.c reads from this."""
    text = re.sub(r"([0-9a-f]{2})\*(\d+)", lambda match: match.group(1) * int(match.group(2)), text)
    return bytes.fromhex(text)


def vectors():
    """Yields (message, from_client) of test_codec_read.c, except empty messages."""
    text = source("tests/unit/test_codec_read.c")
    macros = dict(re.findall(r'^#define (\w+) ((?:"[^"]*"|\w+| )+)$', text, re.MULTILINE))
    for _ in range(2):  # macros contain other macros
        text = re.sub(r"(?<!#define )\b(%s)\b" % "|".join(macros), lambda match: macros[match.group(1)], text)
    for table, directions in (("headers", (True, False)), ("requests", (True,)), ("responses", (False,))):
        body = re.search(r"struct vector %s\[\] = \{(.*?)\n\};" % table, text, re.DOTALL).group(1)
        found = re.findall(r'\{ ((?:"[^"]*"\s*)+),\s*CONVERT_STATUS', body)
        check(len(found) > 20, "%d vectors in %s" % (len(found), table))
        for strings in found:
            data = unfold("".join(re.findall(r'"([^"]*)"', strings)))
            for from_client in directions:
                if data:
                    yield data, from_client


def golden():
    """Yields (message, from_client) of the fuzzers' corpus: whole messages with a header, cut at their Total Length."""
    for kind in ("request", "response"):
        for path in sorted(glob.glob(os.path.join(SRCDIR, "tests/fuzz/corpus", kind, "*"))):
            with open(path, "rb") as file:
                data = file.read()
            if data[2:4] in (b"\x22\x63", b"\x6c\x63") and 0 < data[1] * 4 <= len(data):
                yield data[:data[1] * 4], kind == "request"
