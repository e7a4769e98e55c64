#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_http.py - programs that speak HTTP work the same without the shim and with it"""
import hashlib
import os
import random
import sys

from convertlab import check, equal, long, main
from convertlab.applications import NAME, application, digest, digest_of_pattern, git
from convertlab.webserver import Web

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SIZE = 8000000
PIECES = 20


def web(lab):
    """Serves a file, and a directory of smaller ones, no two of the same size."""
    server = Web(lab)
    server.put("file", SIZE)
    for number in range(PIECES):
        server.put("pieces/%d" % number, 100000 + number)
    return server


PIECES_BYTES = sum(100000 + number for number in range(PIECES))


def has_pieces(run, directory=""):
    for number in range(PIECES):
        run.holds(os.path.join(directory, str(number)), 100000 + number)


def curl(run, *arguments):
    return run(["curl", "-sS", "--fail", "--cacert", run.server.certificate, *arguments])


def pieces(run, scheme):
    """The arguments that make curl fetch all pieces."""
    return ["%s://%s/pieces/[0-%d]" % (scheme, NAME, PIECES - 1), "-o", run.path("#1")]


@application("curl", *Web.needs, server=web, connections=1, carried=PIECES_BYTES)
def test_curl_one_connection(run):
    curl(run, *pieces(run, "http"))
    has_pieces(run)


@application("curl", *Web.needs, server=web, connections=(2, 10), carried=PIECES_BYTES)
def test_curl_parallel(run):
    curl(run, "--parallel", "--parallel-max", "10", *pieces(run, "http"))
    has_pieces(run)


@application("curl", *Web.needs, server=web, connections=(1, 2), carried=PIECES_BYTES)
def test_curl_http2_over_tls(run):
    """Twenty streams in one connection."""
    curl(run, "--http2", "--parallel", "--parallel-max", str(PIECES), *pieces(run, "https"))
    has_pieces(run)
    equal([line.split()[2] for line in run.server.requests()[-PIECES:]], ["HTTP/2.0"] * PIECES, "versions of HTTP")


@application("curl", *Web.needs, server=web, connections=2, carried=2 * SIZE)
def test_curl_upload_over_tls(run):
    for version in ("1.1", "2"):
        name = "upload-" + version
        curl(run, "--http" + version, "-T", run.server.path("file"), "https://%s/%s" % (NAME, name))
        equal(digest(run.server.path(name)), digest_of_pattern(SIZE), "what the server got")
        os.unlink(run.server.path(name))


@application("wget", *Web.needs, server=web, connections=2, carried=2 * SIZE)
def test_wget(run):
    for scheme in ("http", "https"):
        run(["wget", "-q", "--ca-certificate", run.server.certificate, "-O", run.path(scheme), "%s://%s/file" % (scheme, NAME)])
        run.holds(scheme, SIZE)


@application("aria2c:aria2", *Web.needs, server=web, connections=(4, 8), carried=SIZE, breaks_off=True)
def test_aria2c(run):
    """Four connections at a time, each with a part of the file."""
    run(["aria2c", "--no-conf", "-q", "-x4", "-s4", "-k", "1M", "-d", run.directory,
         "http://%s/file" % NAME])
    run.holds("file", SIZE)


@application("lftp", *Web.needs, server=web, connections=(4, 12), carried=SIZE + PIECES_BYTES, breaks_off=True)
def test_lftp(run):
    """A file over four connections, and a directory over four others."""
    run(["lftp", "-c", "open http://%s && pget -n 4 file -o %s && mirror -P 4 pieces %s"
         % (NAME, run.path("file"), run.path("mirrored"))])
    run.holds("file", SIZE)
    has_pieces(run, "mirrored")


WRK = """
local expected, wrong = 100003, 0
function response(status, headers, body)
    if status ~= 200 or #body ~= expected or body:byte(expected) ~= (expected - 1) % 251 then
        wrk.thread:stop()
        io.write("wrong answer\\n")
    end
end
"""


@application("wrk", *Web.needs, server=web, connections=(16, 20), carried=16 * 100003, breaks_off=True)
def test_wrk(run):
    script = run.write("check.lua", WRK)
    said = run(["wrk", "-t2", "-c16", "-d1s", "-s", script, "http://%s/pieces/3" % NAME]).stdout
    check("requests in" in said and "Socket errors" not in said and "wrong" not in said, said)


def git_server(lab):
    """A bare repository with a hundred files in it, at /lab.git; returns its path."""
    root = os.path.join(lab.directory, "git")
    work, bare = os.path.join(root, "work"), os.path.join(root, "lab.git")
    os.makedirs(work)
    git("init", "-q", "-b", "main", work, cwd=root)
    for number in range(100):
        with open(os.path.join(work, str(number)), "wb") as file:
            file.write(random.Random(number).randbytes(20000))  # it doesn't compress
    git("add", ".", cwd=work)
    git("commit", "-q", "-m", "lab", cwd=work)
    git("clone", "-q", "--bare", work, bare, cwd=root)
    lab.start_listening(lab.server, [sys.executable, os.path.join(APPS, "git_server.py"), 80, root], 80, name="git")
    return bare


@application("git", server=git_server, connections=(2, 4), carried=2000000)
def test_git_clone_and_push(run):
    run(["git", "clone", "-q", "http://%s/lab.git" % NAME, run.path("clone")])
    equal(git("rev-parse", "HEAD", cwd=run.path("clone")), git("rev-parse", "main", cwd=run.server), "the cloned commit")
    git("fsck", "--full", "--strict", cwd=run.path("clone"))
    branch = "converted" if run.converted else "direct"
    with open(run.path("clone", "new"), "wb") as file:
        file.write(random.Random(branch).randbytes(500000))
    git("add", "new", cwd=run.path("clone"))
    git("commit", "-q", "-m", branch, cwd=run.path("clone"))
    run(["git", "-C", run.path("clone"), "push", "-q", "origin", "HEAD:" + branch])
    equal(git("rev-parse", branch, cwd=run.server), git("rev-parse", "HEAD", cwd=run.path("clone")), "the pushed commit")


def apt_repository(lab):
    """Serves a repository of one package; apt accepts any bytes as one that it needn't unpack."""
    server = Web(lab)
    server.put("apt/lab.deb", SIZE)
    packages = ("Package: lab\nVersion: 1\nArchitecture: all\nMaintainer: lab\nDescription: lab\nFilename: lab.deb\nSize: %d\n"
                "SHA256: %s\n" % (SIZE, digest_of_pattern(SIZE))).encode()
    server.put("apt/Packages", packages)
    server.put("apt/Release", b"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %d Packages\n"
               % (hashlib.sha256(packages).hexdigest().encode(), len(packages)))
    return server


APT = """
Dir "%(dir)s"; Dir::Etc "%(dir)s"; Dir::Etc::Parts "-"; Dir::Etc::SourceParts "-"; Dir::Etc::PreferencesParts "-";
Dir::State "%(dir)s/state"; Dir::State::Status "%(dir)s/status"; Dir::Cache "%(dir)s/cache"; Dir::Log "%(dir)s";
Dir::Bin::Methods "/usr/lib/apt/methods"; Dir::Bin::Apt-Key "/usr/bin/apt-key";
APT::Architecture "amd64"; APT::Architectures { "amd64"; }; APT::Sandbox::User "root"; Acquire::Languages "none";
"""


@application("apt-get:apt", *Web.needs, server=apt_repository, connections=(2, 4), carried=SIZE)
def test_apt(run):
    """apt's http method, with configuration and state of its own."""
    env = {"APT_CONFIG": run.write("apt.conf", APT % {"dir": run.directory})}
    run.write("status", "")
    run.write("sources.list", "deb [trusted=yes] http://%s/apt ./\n" % NAME)
    for directory in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(run.path(directory))
    run(["apt-get", "update"], env=env)
    run(["sh", "-c", "cd %s && apt-get download lab" % run.directory], env=env)
    run.holds("lab_1_all.deb", SIZE)


NGINX_PROXY = """
daemon off;
user root;
pid %(dir)s/pid;
error_log stderr warn;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path %(dir)s/body;
    proxy_temp_path %(dir)s/proxy; fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi; scgi_temp_path %(dir)s/scgi;
    client_max_body_size 0;
    upstream lab { server %(server)s:80; }
    server { listen 8080; location / { proxy_pass http://lab; } }
}
"""

HAPROXY = """
global
    nbthread 2
defaults
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend web
    mode http
    bind :8080
    default_backend web
backend web
    mode http
    http-reuse never
    server lab %(server)s:80
listen stream
    mode tcp
    bind :8081
    server lab %(server)s:80
"""


def through_proxy(run, port):
    """Fetches twenty files, ten at a time, and uploads one, by a curl that is never under the shim."""
    here = "http://127.0.0.1:%d" % port
    run.lab.client.run(["curl", "-sS", "--fail", "--parallel", "--parallel-max", "10", here + "/pieces/[0-%d]" % (PIECES - 1),
                        "-o", run.path("%d-#1" % port)])
    for number in range(PIECES):
        run.holds("%d-%d" % (port, number), 100000 + number)
    run.lab.client.run(["curl", "-sS", "--fail", "-T", run.server.path("file"), here + "/proxied"])
    equal(digest(run.server.path("proxied")), digest_of_pattern(SIZE), "what the server got")
    os.unlink(run.server.path("proxied"))


@application("curl", *Web.needs, server=web, connections=21, carried=SIZE + PIECES_BYTES)
def test_nginx_as_a_proxy(run):
    configuration = run.write("nginx.conf", NGINX_PROXY % {"dir": run.directory, "server": run.lab.server.addr4})
    proxy = run.start(["nginx", "-c", configuration, "-p", run.directory], 8080)
    through_proxy(run, 8080)
    equal(proxy.stop(), 0, "nginx's status")


@application("curl", "haproxy", *Web.needs, server=web, connections=(4, 42), carried=2 * (SIZE + PIECES_BYTES))
def test_haproxy(run):
    """As an HTTP proxy and as a TCP proxy. curl chooses how many connections it makes for its files: at least one."""
    proxy = run.start(["haproxy", "-db", "-f", run.write("haproxy.cfg", HAPROXY % {"server": run.lab.server.addr4})], 8080)
    through_proxy(run, 8080)
    through_proxy(run, 8081)
    proxy.stop()


RESOURCES = 100
PAGE = """<!doctype html><meta charset="utf-8"><title>lab</title><script>
var loaded = 0, wrong = 0;
function resource(number, text) {
    var expected = ("resource " + number + ";").repeat(500);
    if (text === expected) loaded++; else wrong++;
}
</script>
%s
<p id="said"></p>
<script>document.getElementById("said").textContent = "loaded " + loaded + " wrong " + wrong;</script>
"""


def page(lab):
    """Serves a page with a hundred scripts, which checks the bytes of each."""
    server = Web(lab)
    for number in range(RESOURCES):
        text = "resource(%d, %s);\n" % (number, '"%s"' % ("resource %d;" % number * 500))
        server.put("scripts/%d.js" % number, text.encode())
    server.put("page.html", (PAGE % "\n".join('<script src="scripts/%d.js"></script>' % number
                                              for number in range(RESOURCES))).encode())
    return server


@application("chromium", *Web.needs, server=page, connections=(2, 12), carried=500000,
             sanitizers="Chromium has memory where AddressSanitizer must have its own")
@long
def test_chromium(run):
    """A page of a hundred resources by HTTP/1.1, then the same by HTTP/2 over TLS."""
    for scheme in ("http", "https"):
        before = len(run.server.requests())
        said = run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--disable-background-networking", "--ignore-certificate-errors", "--user-data-dir=" + run.path("profile-" + scheme), "--dump-dom",
                    "%s://%s/page.html" % (scheme, NAME)]).stdout
        check("loaded %d wrong 0" % RESOURCES in said, said[-1000:])
        requests = [line for line in run.server.requests()[before:] if "/scripts/" in line]
        equal(len(requests), RESOURCES, "requests for the page's resources")
        equal({line.split()[2] for line in requests}, {"HTTP/1.1" if scheme == "http" else "HTTP/2.0"}, "versions of HTTP")


if __name__ == "__main__":
    main()
