#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_jtl.py - what models/jtl.py makes of JMeter's records: times, throughput, errors and their causes, on records made by hand"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from models import jtl

NAMES = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,grpThreads,allThreads,Latency"
# as JMeter 2.13 writes them, one message with a comma in it; not in the order of their starts
RECORDS = """
1000500,500,read,200,OK,Students 1-2,text,true,10000,2,2,400
1000000,250,sign in,200,OK,Students 1-1,text,true,9000,1,1,200
1000250,1750,answer,Non HTTP response code: java.net.SocketTimeoutException,Non HTTP response message: Read timed out,Students 1-1,text,false,1500,2,2,0
1001000,500,answer,403,Forbidden,Students 1-2,text,false,400,2,2,100
1002000,2000,read,200,"OK, at last",Students 1-1,text,true,10000,1,1,100
"""


def samples():
    return jtl.parse((NAMES + RECORDS.rstrip("\n")).splitlines())[0]


def failure(code, message):
    """A request that failed so."""
    return jtl.Sample(0.0, 1.0, "read", code, message, False, 0)


def near(found, expected, what):
    check(abs(found - expected) < 1e-9, "%s: %r, not %r" % (what, found, expected))


def test_parsing():
    found, epoch = jtl.parse((NAMES + RECORDS.rstrip("\n")).splitlines())
    equal(epoch, 1000.0, "the first start, which is not the first line's")
    equal([sample.start for sample in found], [0.5, 0.0, 0.25, 1.0, 2.0], "starts")
    equal([sample.end for sample in found], [1.0, 0.25, 2.0, 1.5, 4.0], "ends")
    equal([sample.success for sample in found], [True, True, False, False, True], "success")
    equal((found[4].message, found[4].size, found[4].label), ("OK, at last", 10000, "read"), "a message with a comma")


def test_no_record_is_no_result():
    try:
        jtl.parse([NAMES])
        check(False, "no request gave a result")
    except ValueError as error:
        check("no request" in str(error), str(error))


def test_throughput_is_of_what_succeeded():
    near(jtl.running_time(samples()), 4.0, "running time")
    near(jtl.throughput(samples()), 3 / 4, "over the whole time")
    near(jtl.throughput(samples(), 2), 2 / 2, "of the first two seconds")
    near(jtl.throughput(samples(), 0.25), 1 / 0.25, "a request that ends at the last moment counts")


def test_rate_over_time():
    equal(jtl.rate_over_time(samples(), 1), [(0.5, 1.0), (1.5, 1.0), (2.5, 0.0), (3.5, 1.0)], "by second; the last one ends with its interval")
    equal(jtl.rate_over_time(samples(), 3), [(1.5, 2 / 3), (3.5, 1.0)], "the last interval has one second")
    total = sum(rate * width for (_, rate), width in zip(jtl.rate_over_time(samples(), 1.5), (1.5, 1.5, 1.0)))
    near(total, 3, "requests in all intervals")


def test_errors():
    near(jtl.error_rate(samples()), 2 / 5, "share")
    equal(jtl.causes(samples()), {"time-out of the response": 1, "status 403": 1}, "causes")
    equal(jtl.by_second(samples()), [[0, 1, 0], [1, 1, 1], [2, 0, 1], [4, 1, 0]], "by second: answered, failed")


def test_causes_in_words():
    for code, message, expected in (
            ("Non HTTP response code: org.apache.http.conn.ConnectTimeoutException", "Connect to 10.8.0.1:8080 timed out", "time-out of the connection"),
            ("Non HTTP response code: java.net.SocketTimeoutException", "connect timed out", "time-out of the connection"),
            ("Non HTTP response code: org.apache.http.conn.HttpHostConnectException", "Connection to http://10.8.0.1:8080 refused",
             "connection refused"),
            ("Non HTTP response code: java.net.SocketException", "Connection reset", "connection reset"),
            ("Non HTTP response code: org.apache.http.NoHttpResponseException", "The target server failed to respond",
             "connection closed without a response"),
            ("Non HTTP response code: java.io.UnheardOf", "what", "UnheardOf"), ("500", "Internal Server Error", "status 500")):
        equal(failure(code, message).cause, expected, code)
    equal(samples()[0].cause, "", "of a request that has succeeded")


def test_how_many_at_once():
    equal(jtl.most_active(samples()), 2, "requests at once; one that begins as another ends is not beside it")


def test_tail():
    found = jtl.tail([jtl.Sample(start, elapsed, "", "200", "OK", True, 1, first) for start, elapsed, first in (
        (0.0, 0.1, 0.1), (1.0, 2.0, 1.9), (2.0, 3.0, 0.2), (3.0, 4.0, 3.9), (4.0, 0.2, 0.1))], 0.6)
    equal((found.least, found.start), (2.0, 2.0), "the three slowest")
    near(found.waited, 2 / 3, "those that waited for the first byte")
    equal(jtl.tail(samples()).least, max(sample.elapsed for sample in samples()), "one at least")


def test_rates_of_a_counter():
    found = jtl.rates_of_counter([(0.0, 1000), (1.0, 1000), (1.5, 126000), (1.5, 126000), (3.5, 626000)])
    equal([time for time, _ in found], [0.5, 1.25, 2.5], "middles; no interval without a length")
    for (_, rate), expected in zip(found, (0.0, 2.0, 2.0)):
        near(rate, expected, "Mbit/s")


if __name__ == "__main__":
    main()
