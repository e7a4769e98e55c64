#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_processes.py - connections that begin in one process and go on in others, or in other programs

A process that gets the socket sees the same as without the shim: no byte of the converter's response, all bytes of the server.
"""
import concurrent.futures
import os
import time

from convertlab import Lab, Link, check, equal, kernel, long, main, need, waits
from test_silence_shim import SILENTLY

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(HERE, "apps", "process_probe.py")
SCRIPTED = os.path.join(HERE, "scripted_converter.py")
WAYS = ("poll", "epoll", "epoll-edge", "select", "blocking", "error")
STARTS = ("execve", "execv", "execvp", "execvpe", "execl", "execle", "execlp", "fexecve", "execveat", "fork", "subprocess",
          "inherited", "posix_spawn", "posix_spawnp")


def near(**options):
    return Lab(wifi=Link(delay_ms=2), lte=None, core=Link(delay_ms=1), **options)


def far():
    """Far enough for programs to start while a connection is pending, also where many tests run at once."""
    return Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=240))


def scripted(lab, script, *response):
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, script, *response], 1234,
                               name="scripted")


def learned(lab, port, **variables):
    """An environment in which connections to that port of the server are silent, since a first one has filled the cache."""
    env = lab.remembering(CONVERT_ADDR=lab.converter.addr4, **variables)
    program = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(1000)"
    lab.client.run(["python3", "-c", program, lab.server.addr4, port], env=env)
    return env


def kinds(lab, port):
    """Environments in which a response says that the server was reached, or the SYN+ACK, with a response behind it or without."""
    env = learned(lab, port)
    return {"response": lab.converted(), "confirmed": dict(env, CONVERT_SILENCE="never"), "silent": env}


def share(lab, pairs, *how, env=None):
    """Makes connections that two processes share from a random moment of the handshake on."""
    program = lab.build.program("tests/lab/apps/forks")
    said = lab.client.run([program, lab.server.addr4, 1900, pairs, 4, 6000, *how],
                          env=env or lab.converted(CONVERT_ADDR=lab.converter.addr4)).stdout
    equal(said, "clean %d\n" % pairs, "what the processes saw")


def probe(lab, env, *words):
    result = lab.client.run(["python3", PROBE, *words], env=env, check=False)
    return "%sended with %d\n%s" % (result.stdout, result.returncode, result.stderr)


def compare(lab, cases, envs=None, **variables):
    """Compares transcripts without the shim and with it, in each environment. Each case is a list of words; several run at a time."""
    cases = [[*map(str, words)] for words in cases]
    envs = envs or {"converted": lab.converted(**variables)}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        direct = [pool.submit(probe, lab, None, *words) for words in cases]
        for kind, env in envs.items():
            converted = [pool.submit(probe, lab, env, *words) for words in cases]
            for words, one, other in zip(cases, converted, direct):
                equal(one.result(), other.result(), "%s, %s" % (kind, " ".join(words)))


# --- fork() -----------------------------------------------------------------------------------


def test_two_processes_share_1000_connections():
    """The shim takes the response off the stream before there are two processes."""
    with near() as lab:
        lab.convertd(["--no-silence"])
        lab.chorus()
        share(lab, 1000)
        equal(lab.shim_log().count("converted over MPTCP"), 1000, "processes that took a response")
        check("another process" not in lab.shim_log(), lab.shim_log())


@long
@kernel.needs("fastopen")
def test_two_processes_share_1000_silent_connections():
    """The process doesn't wait for the SYN+ACK before fork(), and both processes see it."""
    with near() as lab:
        lab.convertd()
        lab.chorus()
        share(lab, 1000, env=learned(lab, 1900))
        equal(lab.shim_log().count(SILENTLY), 1000, "processes that have asked")
        equal(lab.shim_log().count("converted by another process"), 1000, "processes that have followed")


def test_one_of_two_processes_is_killed():
    with near() as lab:
        lab.convertd()
        lab.chorus()
        for env in kinds(lab, 1900).values():
            share(lab, 400, "kill", env=env)


def test_fork_in_a_signal_handler():
    """The handler interrupts a wait of the process, and the child never returns from it."""
    with near() as lab:
        lab.convertd()
        lab.chorus()
        for env in kinds(lab, 1900).values():
            share(lab, 200, "handler", env=env)


def test_many_connections_at_a_fork():
    """More than one poll() waits for: each stream is whole, whichever of the two processes goes on with it."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["many", 150, lab.server.addr4, 25]], kinds(lab, 25))


@long
def test_shared_whatever_the_request_and_response_look_like():
    for sysctls in (["net.ipv4.tcp_fastopen"], ["net.mptcp.enabled"], ["net.mptcp.enabled", "net.ipv4.tcp_fastopen"]):
        with near() as lab:
            for name in sysctls:
                lab.client.sysctl(name, 0)
            lab.convertd()
            lab.chorus()
            share(lab, 120)
            share(lab, 120, "kill")
    with near(converter_fastopen=1) as lab:
        lab.convertd()
        lab.chorus()
        share(lab, 200)
    for script in (["bytewise"], ["split:4"], ["cookie", "00112233445566778899aabbccddeeff"]):
        with near() as lab:
            scripted(lab, *script)
            lab.chorus()
            share(lab, 60)
            share(lab, 60, "kill")


def test_shared_with_a_converter_that_fails():
    """Both processes get the direct connection that the shim begins instead."""
    for script in (["whole", "48545450"], ["reset"], ["close"]):
        with near() as lab:
            scripted(lab, *script)
            lab.chorus()
            share(lab, 40)
            equal(lab.shim_log().count("direct, the converter fails"), 40, "direct connections")


def test_forks_beside_many_connections():
    """A thread forks all the time while others connect: no fork interrupts their steps of the handshake."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        lab.convertd()
        lab.echo()
        program = lab.build.program("tests/lab/apps/threads")
        said = lab.client.run([program, lab.server.addr4, 7, 16, 100, "forks"], env=lab.converted()).stdout
        equal(said, "done 1600\n", "what the threads did")
        # a child may share a socket that is older than the fork, which stays a TCP socket
        equal(lab.shim_log().count("converted over "), 1600, "conversions")
        check(lab.shim_log().count("converted over MPTCP") > 1200, "few over MPTCP")


@long
@waits
def test_several_processes_in_turn():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["pair", way, lab.server.addr4, 25] for way in WAYS], kinds(lab, 25))


@long
@waits
def test_parent_is_gone():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["heir", way, lab.server.addr4, 25] for way in WAYS], kinds(lab, 25))


@long
@waits
def test_refusal_in_several_processes():
    """The kernel reports an error once: the process that looks first gets it, and none reads a byte."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        for kind, env in kinds(lab, 25).items():
            for way in ("poll", "epoll", "select"):
                said = probe(lab, env, "pair", way, lab.server.addr4, lab.addresses.refused_port)
                equal(said.split("\n", 1)[0], "writable ECONNREFUSED", "what the first process sees (%s, %s):\n%s" % (kind, way, said))
                check("'" not in said.split("\nended")[0].replace("b''", ""), "%s, %s: bytes of no server:\n%s" % (kind, way, said))


def test_early_data_in_another_process():
    """The SYN waits for the first bytes, which another process sends."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        cases = [["pair", "poll"], ["pair", "epoll-edge"], ["heir", "poll"]]
        compare(lab, [[*words, lab.server.addr4, 25] for words in cases], CONVERT_EARLY_DATA="yes")


# --- other programs -----------------------------------------------------------------------------


@long
def test_program_takes_over_what_is_pending():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["start", "pending", how, WAYS[number % len(WAYS)], lab.server.addr4, 25]
                      for number, how in enumerate(STARTS)], kinds(lab, 25))
        check(lab.shim_log().count("taken over from the program before") >= len(STARTS), lab.shim_log())


@long
def test_program_and_parent_share():
    """Two processes share connections, but one is another program, so that they have no memory in common."""
    with near() as lab:
        lab.convertd()
        lab.chorus()
        for env in kinds(lab, 1900).values():
            share(lab, 100, "exec", env=env)
            share(lab, 100, "exec", "kill", env=env)
        lab.client.sysctl("net.ipv4.tcp_fastopen", 0)
        share(lab, 100, "exec", "kill")
    for script in (["bytewise"], ["cookie", "00112233445566778899aabbccddeeff"], ["whole", "48545450"]):
        with near() as lab:
            scripted(lab, *script)
            lab.chorus()
            share(lab, 60, "exec")
            share(lab, 60, "exec", "kill")


@long
def test_program_takes_over_in_all_ways():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["start", "pending", how, way, lab.server.addr4, 25] for way in WAYS for how in ("execve", "fork")],
                kinds(lab, 25))


@long
def test_program_takes_over_what_is_connected_or_failed():
    with near() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["start", moment, how, "poll", lab.server.addr4, port]
                      for how in ("execve", "fork", "subprocess", "inherited", "posix_spawn")
                      for moment, port in (("connected", 25), ("failed", lab.addresses.refused_port))])


def test_program_takes_over_early_data():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["start", "pending", how, "poll", lab.server.addr4, 25]
                      for how in ("execve", "subprocess", "posix_spawn")], CONVERT_EARLY_DATA="yes")


@long
def test_program_takes_over_an_unfinished_request_or_response():
    for script, fastopen in ((["bytewise"], 1), (["bytewise"], 0), (["cookie", b"opensesame!!".hex()], 0)):
        with far() as lab:
            lab.client.sysctl("net.ipv4.tcp_fastopen", fastopen)
            scripted(lab, *script)
            lab.greeter()
            compare(lab, [["start", "pending", how, "poll", lab.server.addr4, 25] for how in ("execve", "fork")],
                    CONVERT_ADDR=lab.converter.addr4, CONVERT_COOKIE="opensesame!!")


@long
@waits
def test_program_without_the_shim():
    """Its standard input is a connection, and it reads only the server's bytes."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        for env in (None, *kinds(lab, 25).values()):
            said = probe(lab, env, "bare", "exec", lab.server.addr4, 25)
            equal(said, "220 lab ready\nended with 0\n", "what head(1) read")
            said = probe(lab, env, "bare", "vfork", lab.server.addr4, 25)
            equal(said, "220 lab ready\nleft True\nended with 0\n", "what head(1) read after a vfork()")
            said = probe(lab, env, "bare", "spawn", lab.server.addr4, 25)
            equal(said, "220 lab ready\nstatus 0\nended with 0\n", "what head(1) read after a posix_spawn()")


@long
@waits
def test_shells():
    """Shells that system() and popen() start inherit a connection, and read only the server's bytes."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        for env in (None, *kinds(lab, 25).values()):
            for how in ("system", "popen"):
                equal(probe(lab, env, "bare", how, lab.server.addr4, 25), "220 lab ready\nstatus 0\nended with 0\n", how)


def test_program_without_the_shim_and_the_request():
    """The program starts before the request has left."""
    with far() as lab:
        lab.client.sysctl("net.ipv4.tcp_fastopen", 0)
        lab.convertd()
        lab.greeter()
        for _ in range(2):
            said = probe(lab, lab.converted(), "bare", "vfork", lab.server.addr4, 25)
            equal(said, "220 lab ready\nleft True\nended with 0\n", "what head(1) read after a vfork()")


def test_program_of_a_bare_clone():
    """No library sees that process begin, so none could take a response off for it: it may read nothing, but no response."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        for kind, env in kinds(lab, 25).items():
            said = probe(lab, env, "bare", "clone", lab.server.addr4, 25)
            check(said.startswith("left True\nended with 0\n"), "%s: what head(1) read, and its parent: %s" % (kind, said))


def test_unanswered_at_a_fork():
    """fork() waits for an answer for CONVERT_TIMEOUT; after that only the process that began the connection has it, and goes on."""
    with near() as lab:
        lab.convertd()
        said = probe(lab, lab.converted(CONVERT_TIMEOUT="0.5"), "unanswered", lab.addresses.blackhole4, 25)
        equal(said, "child writable ECONNREFUSED b''\nparent nothing 0\nended with 0\n", "what was said")


def test_programs_do_not_wait():
    """A connection without an answer delays another program by no more than CONVERT_TIMEOUT."""
    with near() as lab:
        lab.convertd()
        start = time.monotonic()
        said = probe(lab, lab.converted(CONVERT_TIMEOUT="1"), "late", lab.addresses.blackhole4, 25)
        equal(said, "true ended with 0\nended with 0\n", "what was said")
        check(time.monotonic() - start < 30, "it took %.1f s" % (time.monotonic() - start))


def test_shell():
    need("bash")
    with near() as lab:
        lab.convertd()
        lab.greeter()
        script = "exec 3<>/dev/tcp/%s/25; head -n1 <&3; echo helo >&3; read -r line <&3; echo \"$line\"" % lab.server.addr4
        for env in (None, lab.converted()):
            said = lab.client.run(["bash", "-c", script], env=env).stdout
            equal(said, "220 lab ready\n250 helo\n", "the greeting and the answer")


# --- SCM_RIGHTS -----------------------------------------------------------------------------------


def test_descriptor_over_a_unix_socket():
    with far() as lab:
        lab.convertd()
        lab.greeter()
        compare(lab, [["pass", moment, mode, lab.server.addr4, 25]
                      for moment in ("pending", "connected") for mode in ("blocking", "nonblocking")])


if __name__ == "__main__":
    main()
