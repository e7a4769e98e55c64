#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_runtimes.py - Python, Ruby, Perl, Node, Java and Rust: each of their ways to connect"""
import functools
import os
import subprocess
import sys

from convertlab import Build, Skip, equal, long, main, waits
from convertlab.applications import NAME, application
from convertlab.programs import tokio_program

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
DOWN = 8 * 200000
UP = 1000000


def http(lab):
    lab.http()


def echo(lab):
    lab.echo()


def task(run, *command, env=None):
    """Runs a program, which does as runtime_client.py says."""
    equal(run([*command, NAME], env=env).stdout, "8 done, 1000000 up\nrefused\n", "the program's output")


@functools.lru_cache
def python_with(module, package):
    """An interpreter that has the module: this one, or the distribution's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import " + module], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0:
            return python
    raise Skip("Python's %s is missing; on Debian: apt-get install %s" % (module, package))


def python(run, way, interpreter=sys.executable):
    task(run, interpreter, os.path.join(APPS, "runtime_client.py"), way)


@application(server=http, connections=9, carried=DOWN + UP, refused=True)
def test_python_urllib(run):
    python(run, "urllib")


@application(server=http, connections=(1, 9), carried=DOWN + UP, refused=True)
def test_python_requests(run):
    python(run, "requests", python_with("requests", "python3-requests"))


@application(server=echo, connections=8, carried=2 * DOWN, refused=True)
def test_python_asyncio(run):
    python(run, "asyncio")


@application(server=http, connections=(8, 9), carried=DOWN + UP, refused=True)
def test_python_aiohttp(run):
    python(run, "aiohttp", python_with("aiohttp", "python3-aiohttp"))


@application(server=http, connections=9, carried=DOWN + UP, refused=True)
def test_python_gevent(run):
    python(run, "gevent", python_with("gevent", "python3-gevent"))


@application(server=echo, connections=(8, 16), carried=2 * DOWN, refused=True)
def test_python_trio(run):
    python(run, "trio", python_with("trio", "python3-trio"))


@long
@waits
@application(server=echo, connections=(8, 16), carried=2 * DOWN, refused=True)
def test_python_twisted(run):
    python(run, "twisted", python_with("twisted", "python3-twisted"))


@application("ruby", server=http, connections=9, carried=DOWN + UP, refused=True)
def test_ruby(run):
    task(run, "ruby", os.path.join(APPS, "runtime_client.rb"))


@application("perl", server=echo, connections=8, carried=2 * DOWN, refused=True)
def test_perl(run):
    task(run, "perl", os.path.join(APPS, "runtime_client.pl"))


# If a connection takes longer than 250 ms, Node also tries the address of the other family
def node(run, way, **env):
    task(run, "node", os.path.join(APPS, "runtime_client.js"), way, env=env)


@application("node:nodejs", server=http, connections=(9, 18), carried=DOWN + UP, refused=True)
def test_node_http(run):
    node(run, "http")


@application("node:nodejs", server=echo, connections=(8, 16), carried=2 * DOWN, refused=True)
def test_node_net(run):
    node(run, "net")


@application("node:nodejs", server=http, connections=(8, 18), carried=DOWN + UP, refused=True)
def test_node_undici(run):
    node(run, "undici")


@application("node:nodejs", server=echo, connections=(8, 16), carried=2 * DOWN, refused=True)
def test_node_with_io_uring(run):
    """Some versions of libuv register with epoll through a ring, past the shim (libuv#4638)."""
    node(run, "net", UV_USE_IO_URING="1")


def classes():
    """Compiles RuntimeClient.java once, in the build's directory, whose path it returns."""
    directory = os.path.join(Build().directory, "tests/lab/apps/build/java")
    source = os.path.join(APPS, "RuntimeClient.java")
    compiled = os.path.join(directory, "RuntimeClient.class")
    if not os.path.exists(compiled) or os.path.getmtime(compiled) < os.path.getmtime(source):
        subprocess.run(["javac", "-d", directory, source], check=True)
    return directory


def java(run, way):
    task(run, "java", "-XX:TieredStopAtLevel=1", "-cp", run.server, "RuntimeClient", way)


def http_for_java(lab):
    lab.http()
    return classes()


def echo_for_java(lab):
    lab.echo()
    return classes()


@long
@application("javac:default-jdk-headless", server=http_for_java, connections=(8, 9), carried=DOWN + UP, refused=True)
def test_java_httpclient(run):
    java(run, "httpclient")


@long
@application("javac:default-jdk-headless", server=echo_for_java, connections=8, carried=2 * DOWN, refused=True)
def test_java_blocking(run):
    java(run, "blocking")


@long
@application("javac:default-jdk-headless", server=echo_for_java, connections=8, carried=2 * DOWN, refused=True)
def test_java_nio(run):
    java(run, "nio")


def echo_for_tokio(lab):
    lab.echo()
    return tokio_program()


@long
@application(server=echo_for_tokio, connections=8, carried=2 * DOWN, refused=True)
def test_rust_tokio(run):
    task(run, run.server)


if __name__ == "__main__":
    main()
