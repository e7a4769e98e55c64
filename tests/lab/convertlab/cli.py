# SPDX-License-Identifier: BSD-3-Clause
"""cli.py - the lab from the command line"""
import argparse
import os
import runpy
import signal
import subprocess
import sys
import tempfile

from . import sandbox, topology
from .links import Link
from .topology import Lab
from .waiting import LabError

DESCRIPTION = """\
A client with two access links, a converter and a server, each in a network
namespace of its own. Everything is gone when the lab ends, however it ends.
""" + topology.__doc__.split("\n", 1)[1]

EPILOG = """\
Links take settings as linkem has them (linkem --help), such as
  --wifi 'delay=10ms rate=50mbit queue=200 loss=1%%' --lte none
The programs under test come from the build in CONVERT_BUILDDIR, in the current directory or in build* near the source
tree; CONVERT_SHIM and CONVERT_CONVERTD name others. CONVERT_LAB_KEEP=DIR keeps logs and captures there.

examples:
  lab shell                                  a shell on the client; there:
    ping $LAB_SERVER4; lab exec server ss -ltn; lab link wifi down; lab link wifi set loss 5%%
  lab run measure.py 10                      measure.py finds the running lab in the variable `lab`
"""


def _link(text):
    return None if text == "none" else Link.parse(text)


def _add_lab_options(parser):
    parser.add_argument("--wifi", type=_link, metavar="SETTINGS", default=Link.parse("delay=10ms rate=50mbit queue=200"),
                        help="default: delay=10ms rate=50mbit queue=200")
    parser.add_argument("--lte", type=_link, metavar="SETTINGS", default=Link.parse("delay=25ms rate=30mbit queue=200"),
                        help="default: delay=25ms rate=30mbit queue=200; none: no such link")
    parser.add_argument("--core", type=_link, metavar="SETTINGS", default=Link(),
                        help="default: no delay and no limit; none: a veth pair, for more than linkem's few Gbit/s")
    parser.add_argument("--congestion", metavar="NAME", help="congestion control of all hosts, such as reno")
    parser.add_argument("--converter-fastopen", type=int, default=3, metavar="N",
                        help="net.ipv4.tcp_fastopen of the converter (3)")


def _lab(arguments):
    if not arguments.wifi:
        raise LabError("--wifi none: the client's first link must be there")
    return Lab(wifi=arguments.wifi, lte=arguments.lte, core=arguments.core, congestion=arguments.congestion,
               converter_fastopen=arguments.converter_fastopen)


def lab_environment(lab):
    """LAB_… variables: every address of the lab, such as LAB_CLIENT_WIFI4, LAB_SERVER4, LAB_BLACKHOLE6."""
    env = {"LAB_DIRECTORY": lab.directory, "LAB_BUILDDIR": lab.build.directory}
    for name, host in lab.hosts.items():
        for attribute, value in vars(host).items():
            if attribute[-1] in "46" and isinstance(value, str):
                short = attribute[-1] if attribute.startswith("addr") else "_" + attribute
                env["LAB_%s%s" % (name.upper(), short.upper())] = value
    for name, value in vars(lab.addresses).items():
        env["LAB_" + name.upper()] = str(value)
    return env


def _shell(arguments):
    with _lab(arguments) as lab:
        env = dict(os.environ, **lab_environment(lab))
        env["PATH"] = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + ":" + env["PATH"]
        env["LAB_HOST"] = arguments.host
        with tempfile.NamedTemporaryFile("w", dir=lab.directory, suffix=".bashrc") as rc:
            rc.write("[ -r ~/.bashrc ] && . ~/.bashrc\nPS1='%s:\\w\\$ '\n" % arguments.host)
            rc.flush()
            host = lab.hosts[arguments.host]
            # Ctrl-C belongs to the shell
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return subprocess.call(host.command(["bash", "--rcfile", rc.name, "-i"]), env=env,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def _run(arguments):
    with _lab(arguments) as lab:
        sys.argv = [arguments.script] + arguments.args
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments.script)))
        os.environ.update(lab_environment(lab))
        runpy.run_path(arguments.script, init_globals={"lab": lab}, run_name="__main__")
    return 0


def _running():
    """The directory of the lab in which this command runs."""
    if not sandbox.inside() or "LAB_DIRECTORY" not in os.environ:
        raise LabError("no lab is running around this command; start one with \"lab shell\"")
    return os.environ["LAB_DIRECTORY"]


def _exec(arguments):
    _running()
    command = ["nsenter", "--net=/run/netns/" + arguments.host, "--"] + arguments.command
    os.environ["LAB_HOST"] = arguments.host
    os.execvp(command[0], command)


def _link_command(arguments):
    import socket  # pylint: disable=import-outside-toplevel
    path = os.path.join(_running(), arguments.link + ".control")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(path)
        control.sendall((" ".join(arguments.words) + "\n").encode())
        answer = control.makefile().readline().strip()
    print("\n".join(answer.split()) if arguments.words == ["stats"] else answer)
    return 0 if answer.startswith("ok") else 1


def _parser():
    parser = argparse.ArgumentParser(prog="lab", description=DESCRIPTION, epilog=EPILOG.replace("%%", "%"),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    shell = commands.add_parser("shell", help="start a lab and a shell in one of its hosts")
    shell.add_argument("host", nargs="?", choices=("client", "converter", "server"), default="client")
    shell.set_defaults(function=_shell, sandbox=True)
    run = commands.add_parser("run", help="start a lab and run a Python script with it")
    run.add_argument("script")
    run.add_argument("args", nargs=argparse.REMAINDER)
    run.set_defaults(function=_run, sandbox=True)
    for command in (shell, run):
        _add_lab_options(command)
    within = commands.add_parser("exec", help="within a lab: run a command in another host")
    within.add_argument("host", choices=("client", "converter", "server"))
    within.add_argument("command", nargs=argparse.REMAINDER)
    within.set_defaults(function=_exec, sandbox=False)
    link = commands.add_parser("link", help="within a lab: down, up, set ... or stats for one of its links")
    link.add_argument("link", choices=("wifi", "lte", "core"))
    link.add_argument("words", nargs=argparse.REMAINDER)
    link.set_defaults(function=_link_command, sandbox=False)
    return parser


def main():
    """The program `lab`."""
    arguments = _parser().parse_args()
    if arguments.sandbox:
        sandbox.enter_or_exit()
    try:
        sys.exit(arguments.function(arguments))
    except LabError as error:
        sys.exit("lab: %s" % error)
