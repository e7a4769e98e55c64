# SPDX-License-Identifier: BSD-3-Clause
"""metrics.py - fetches convertd's metrics and status by HTTP, as Prometheus, a browser or a load balancer would"""
import json
import re
import socket

from .harness import check
from .waiting import wait_until

PORT = 9103
OPTIONS = ("--metrics", "127.0.0.1:%d" % PORT)


def ask(host, request, port=PORT, path=None, seconds=30):
    """Sends these bytes to 127.0.0.1 or to a Unix socket; returns (status, headers, body) of the answer, by HTTP/1.1."""
    with host.socket(socket.AF_UNIX if path else socket.AF_INET) as sock:
        sock.settimeout(seconds)
        sock.connect(path or ("127.0.0.1", port))
        sock.sendall(request)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return split(answer)


def split(answer):
    """(status, headers, body) of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    check(lines[0].startswith("HTTP/1."), "no HTTP: %r" % answer[:200])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body.decode("utf-8")


def get(host, path="/metrics", **options):
    """(status, headers, body) of a page."""
    return ask(host, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode(), **options)


_LABEL = r'([a-z_]+)="([^"\\\n]*)"'
_SAMPLE = re.compile(r'([a-z_]+)(?:\{(%s(?:,%s)*)\})? (\S+)' % (_LABEL, _LABEL))


def parse(text):
    """{(name, ((label, value), …)): value}; fails where it isn't Prometheus' text format 0.0.4, each family by itself."""
    found, seen, family, kind = {}, set(), None, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family, kind = line.split()[2], None
            check(family not in seen and len(line.split()) > 3, "a second HELP of a family, or one without text: " + line)
            seen.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            check(name == family and kind in ("counter", "gauge", "histogram"), line)
            check(name.endswith("_total") == (kind == "counter"), line)
        else:
            match = _SAMPLE.fullmatch(line)
            check(match and kind, "not a sample, or one without a family: %r" % line)
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            check(match[1] in [family + suffix for suffix in suffixes], "%s among the samples of %s" % (line, family))
            key = match[1], tuple(sorted(re.findall(_LABEL, match[2] or "")))
            check(key not in found, "a sample that stands twice: " + line)
            found[key] = float(match[match.lastindex])
    return found


class Metrics:
    """The metrics at one moment: metrics("convertd_connections", state="relay")."""

    def __init__(self, host, **options):
        status, headers, self.text = get(host, **options)
        check(status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"), "%s %s" % (status, headers))
        self.values = parse(self.text)

    def __call__(self, name, **labels):
        return self.values[name, tuple(sorted(labels.items()))]

    def family(self, name, label):
        """{value of the label: value} of all samples that aren't 0."""
        return {dict(labels)[label]: value for (own, labels), value in self.values.items() if own == name and value}

    def names(self):
        """The names of all samples."""
        return {name for name, _ in self.values}


def wait_metrics(host, condition, what):
    """Fetches the metrics until condition(Metrics) holds; returns them."""
    def asked():
        metrics = Metrics(host)
        return metrics if condition(metrics) else None
    return wait_until(asked, 10, what, interval=0.02)


def json_lines(process):
    """The log of a process, each line a JSON object."""
    return [json.loads(line) for line in process.log_text().splitlines()]
