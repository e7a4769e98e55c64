#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_services.py - clients of protocols other than HTTP: ssh, databases, MQTT, Subversion, a benchmark"""
import glob
import json
import os
import pwd
import shutil
import subprocess

from convertlab import Skip, check, equal, long, main, same_data, wait_until
from convertlab.applications import NAME, application, digest, digest_of_pattern
from convertlab.servers import pattern

SIZE = 4000000

# --- ssh ---------------------------------------------------------------------------------------------------------

SSHD = """
Port 22
HostKey %(dir)s/host_key
AuthorizedKeysFile %(dir)s/user_key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""

SSH = """
Host *
    User root
    IdentityFile %(dir)s/user_key
    IdentitiesOnly yes
    UserKnownHostsFile %(dir)s/known_hosts
    StrictHostKeyChecking yes
    BatchMode yes
"""


def sshd(lab):
    """Starts a server that admits root with a new key. Returns the path of the client's configuration."""
    directory = os.path.join(lab.directory, "ssh")
    os.mkdir(directory)
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(directory, key)], check=True)
    with open(os.path.join(directory, "host_key.pub"), encoding="ascii") as file:
        host_key = file.read()
    for name, content in (("sshd_config", SSHD % {"dir": directory}), ("ssh_config", SSH % {"dir": directory}),
                          ("known_hosts", "%s %s" % (NAME, host_key))):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(content)
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    lab.start_listening(lab.server, [shutil.which("sshd"), "-D", "-e", "-f", os.path.join(directory, "sshd_config")], 22)
    return os.path.join(directory, "ssh_config")


SSH_NEEDS = ("ssh:openssh-client", "sshd:openssh-server")


@application(*SSH_NEEDS, server=sshd, connections=2, carried=2 * SIZE, root=True)
def test_ssh(run):
    """A file to the server's sha256sum(1), without and with ConnectTimeout, with which ssh connects without blocking."""
    for option in ("ConnectTimeout=none", "ConnectTimeout=10"):
        said = run(["ssh", "-F", run.server, "-o", option, NAME, "sha256sum"], input=pattern(SIZE), text=False).stdout
        equal(said.decode().split()[0], digest_of_pattern(SIZE), "what the server got")


@application(*SSH_NEEDS, "scp:openssh-client", server=sshd, connections=2, carried=2 * SIZE, root=True)
def test_scp(run):
    source = run.write("source", pattern(SIZE))
    run(["scp", "-q", "-F", run.server, source, "%s:%s" % (NAME, run.path("there"))])
    run(["scp", "-q", "-F", run.server, "%s:%s" % (NAME, run.path("there")), run.path("back")])
    run.holds("back", SIZE)


@long
@application(*SSH_NEEDS, "rsync", server=sshd, connections=2, carried=2 * SIZE, root=True)
def test_rsync_over_ssh(run):
    """A directory there and back; rsync's child connects."""
    for number in range(20):
        os.makedirs(run.path("source"), exist_ok=True)
        run.write("source/%d" % number, pattern(SIZE // 20 + number, number))
    shell = "ssh -F " + run.server
    run(["rsync", "-a", "-W", "-e", shell, run.path("source/"), "%s:%s" % (NAME, run.path("there"))])
    run(["rsync", "-a", "-W", "-e", shell, "%s:%s/" % (NAME, run.path("there")), run.path("back")])
    for number in range(20):
        equal(digest(run.path("back", str(number))), digest(run.path("source", str(number))), "file %d" % number)


# --- redis -------------------------------------------------------------------------------------------------------


def redis(lab):
    lab.start_listening(lab.server, ["redis-server", "--bind", "0.0.0.0", "::", "--protected-mode", "no", "--save", "", "--dir",
                                     lab.directory], 6379, name="redis")


REDIS_NEEDS = ("redis-server", "redis-cli:redis-tools")


@application(*REDIS_NEEDS, server=redis, connections=2, carried=2 * SIZE)
def test_redis_cli(run):
    run(["redis-cli", "-h", NAME, "-x", "SET", "lab"], input=pattern(SIZE), text=False)
    got = run(["redis-cli", "-h", NAME, "--raw", "GET", "lab"], text=False).stdout
    same_data(got == pattern(SIZE) + b"\n", "%d other bytes" % len(got))


@long
@application(*REDIS_NEEDS, "redis-benchmark:redis-tools", server=redis, connections=(102, 104))
def test_redis_benchmark(run):
    """Fifty clients at once."""
    run(["redis-cli", "-h", run.lab.server.addr4, "CONFIG", "RESETSTAT"])
    said = run(["redis-benchmark", "-h", run.lab.server.addr4, "-c", "50", "-n", "5000", "-d", "1000", "-q",
                "-t", "set,get"]).stdout
    check("SET:" in said and "GET:" in said and "rror" not in said, said)
    stats = run(["redis-cli", "-h", run.lab.server.addr4, "INFO", "commandstats"]).stdout
    for command in ("set", "get"):
        check("cmdstat_%s:calls=5000," % command in stats, stats)


# --- PostgreSQL --------------------------------------------------------------------------------------------------


def postgres_program(name):
    """Returns the path of a server program of PostgreSQL, which Debian keeps outside of PATH: the newest version's."""
    found = shutil.which(name) or max(glob.glob("/usr/lib/postgresql/*/bin/" + name), default=None)
    if not found:
        raise Skip("%s is missing; on Debian: apt-get install postgresql" % name)
    return found


def postgres(lab):
    """Starts a new cluster as the user postgres, who can't reach the lab's directory."""
    initdb, server = postgres_program("initdb"), postgres_program("postgres")
    try:
        user = pwd.getpwnam("postgres")
    except KeyError as error:
        raise Skip("there is no user postgres; on Debian: apt-get install postgresql") from error
    directory = os.path.join("/run/convertlab", os.path.basename(lab.directory) + "-postgres")
    os.mkdir(directory, 0o700)
    os.chown(directory, user.pw_uid, user.pw_gid)
    become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "env", "-C", directory, "LC_ALL=C.UTF-8"]
    lab.server.run([*become, initdb, "-D", directory + "/data", "-A", "trust", "-U", "lab", "--no-sync", "-E", "UTF8"])
    with open(directory + "/data/pg_hba.conf", "a", encoding="ascii") as file:
        file.write("host all all all trust\n")
    lab.start_listening(lab.server, [*become, server, "-D", directory + "/data", "-c", "listen_addresses=*", "-c", "fsync=off",
                                     "-c", "unix_socket_directories="], 5432, name="postgres")


@long
@application("psql:postgresql-client", "setpriv:util-linux", server=postgres, connections=3, carried=2 * 3000000, root=True)
def test_psql(run):
    """COPY in, a query, COPY out."""
    rows = "".join("%d\t%s\n" % (number, "lab" * 10) for number in range(80000))
    psql = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", NAME, "-U", "lab", "-d", "postgres", "-At"]
    run([*psql, "-c", "DROP TABLE IF EXISTS rows; CREATE TABLE rows (number int, text text)",
         "-c", "COPY rows FROM STDIN"], input=rows)
    equal(run([*psql, "-c", "SELECT count(*), sum(number) FROM rows"]).stdout, "80000|%d\n" % sum(range(80000)), "the answer")
    got = run([*psql, "-c", "COPY (SELECT * FROM rows ORDER BY number) TO STDOUT"]).stdout
    check(got == rows, "%d other bytes" % len(got))


# --- MQTT --------------------------------------------------------------------------------------------------------


def mosquitto(lab):
    configuration = os.path.join(lab.directory, "mosquitto.conf")
    with open(configuration, "w", encoding="ascii") as file:
        file.write("listener 1883\nallow_anonymous true\nuser root\n")
    lab.start_listening(lab.server, ["mosquitto", "-c", configuration], 1883)


@application("mosquitto", "mosquitto_pub:mosquitto-clients", server=mosquitto, connections=3, carried=2 * 200000)
def test_mosquitto(run):
    """A retained message, a subscriber that gets it, and an empty message with QoS 2, which removes it."""
    message = run.write("message", pattern(200000))
    run(["mosquitto_pub", "-h", NAME, "-r", "-q", "1", "-t", "lab", "-f", message])
    got = run(["mosquitto_sub", "-h", NAME, "-C", "1", "-N", "-t", "lab"], text=False).stdout
    same_data(got == pattern(200000), "%d other bytes" % len(got))
    run(["mosquitto_pub", "-h", NAME, "-r", "-n", "-q", "2", "-t", "lab"])


# --- Subversion --------------------------------------------------------------------------------------------------


def svnserve(lab):
    """Serves an empty repository that anybody may change."""
    directory = os.path.join(lab.directory, "svn")
    subprocess.run(["svnadmin", "create", directory], check=True)
    with open(os.path.join(directory, "conf/svnserve.conf"), "w", encoding="ascii") as file:
        file.write("[general]\nanon-access = write\n")
    lab.start_listening(lab.server, ["svnserve", "-d", "--foreground", "--prefer-ipv6", "-r", directory], 3690)


@application("svn:subversion", "svnserve:subversion", server=svnserve, connections=4, carried=30000)
def test_svn(run):
    """Imports a file and checks it out. Subversion compresses it, so fewer bytes are carried."""
    name = "in-%s" % run.converted
    source = run.write(name, pattern(SIZE // 2))
    run(["svn", "import", "-q", "-m", "in", source, "svn://%s/%s" % (NAME, name)])
    run(["svn", "checkout", "-q", "svn://%s/" % NAME, run.path("copy")])
    run.holds("copy/" + name, SIZE // 2)
    check(name in run(["svn", "ls", "svn://%s/" % NAME]).stdout, "it isn't listed")


# --- iperf3 ------------------------------------------------------------------------------------------------------


def iperf3(lab):
    return lab.start_listening(lab.server, ["iperf3", "-s", "--forceflush"], 5201)


@long
@application("iperf3", server=iperf3, connections=10, carried=2 * 4000000, breaks_off=True)
def test_iperf3(run):
    """Four streams and the control connection, up and down."""
    for direction in ([], ["-R"]):
        # After each test the server closes its listening socket, and the connections in its queue, and makes another one.
        wait_until(lambda: run.server.log_text().count("Server listening") > run.server.log_text().count("Accepted connection"), 10,
                   "the server to be done with the test before")
        said = json.loads(run(["iperf3", "-c", NAME, "-t", "1", "-P", "4", "-J", *direction]).stdout)
        check("error" not in said, said.get("error"))
        received = [stream["receiver"]["bytes"] for stream in said["end"]["streams"]]
        check(len(received) == 4 and min(received) > 1000000, "bytes received by stream: %s" % received)


if __name__ == "__main__":
    main()
