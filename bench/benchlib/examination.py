# SPDX-License-Identifier: BSD-3-Clause
"""examination.py - the online examination of ../tools/exam in the lab, and JMeter's run of its plan

The server has nginx and PHP; a host of its own behind it has MariaDB, with a fresh database in the lab. All of them run as an
unprivileged user. What they need is in PACKAGES.
"""
import glob
import os
import shutil
import threading
import time
from typing import NamedTuple

from convertlab import LabError, Skip, Veth, sandbox, wait_until
from convertlab.links import Switch
from models.highload import MBIT, MTU

from . import processes
from .field import SYSCTLS

TOOLS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "exam")
DATABASE_PORT = 3306
# the links between web server and database: {device: (the server's address, the database's)}
DATABASE_LINKS = {"data1": ("10.6.0.1", "10.6.0.2"), "data2": ("10.5.0.1", "10.5.0.2")}
DATABASE_ADDRESS = DATABASE_LINKS["data1"][1]
JMETER_HOME = "/usr/share/jmeter"
QUESTIONS = 9           # of the plan
REQUESTS = 20           # that a thread of the plan makes
PHP_PROCESSES = 8
NOBODY = 65534          # the user nobody, of most systems
PASSAGE = "In the year of the examination the candidates read this passage with care before they answer what is asked about it. "
WARM_UP = 10            # of the application's pages
PACKAGES = {"nginx": "nginx", "mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server", "mariadb": "mariadb-client",
            "java": "default-jdk-headless", "mptcpize": "mptcpize"}
# what Debian has in packages of their own, by a file of each
FILES = {JMETER_HOME + "/lib/ext/ApacheJMeter_core.jar": "jmeter", JMETER_HOME + "/lib/ext/ApacheJMeter_http.jar": "jmeter-http",
         "/usr/lib/jvm/*/bin/javac": "default-jdk-headless", "/usr/lib/php/*/mysqli.so": "php-mysql"}

QUEUE = 1000            # packets
UNLIMITED = 10000       # Mbit/s

NGINX = """
daemon off;
%(user)s
worker_processes 1;
worker_rlimit_nofile %(files)d;
pid %(dir)s/nginx-%(port)d.pid;
error_log %(dir)s/nginx-error.log warn;
events { worker_connections %(connections)d; }
http {
    access_log off;
    client_body_temp_path %(dir)s/nginx-body;
    proxy_temp_path %(dir)s/nginx-proxy; fastcgi_temp_path %(dir)s/nginx-fastcgi;
    uwsgi_temp_path %(dir)s/nginx-uwsgi; scgi_temp_path %(dir)s/nginx-scgi;
    server {
        listen %(port)d backlog=16384;
        location / {
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME %(dir)s/exam.php;
            fastcgi_param EXAM_DATABASE %(database)s;
            fastcgi_pass unix:%(dir)s/%(socket)s;
            fastcgi_buffers 8 16k;
        }
    }
}
"""

PHP = """
[global]
error_log = %(dir)s/%(socket)s-error.log
log_level = warning
daemonize = no
[exam]
listen = %(dir)s/%(socket)s
listen.backlog = 16384
pm = static
pm.max_children = %(processes)d
php_admin_value[session.save_handler] = files
php_admin_value[session.save_path] = %(dir)s/sessions
php_admin_value[session.gc_probability] = 0
php_admin_value[opcache.enable] = 1
"""

MARIADB = ["--skip-name-resolve", "--innodb-log-file-size=32M", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"]


def path():
    """A path as Mininet makes it: a switch with rate and queue by the kernel's own qdisc, packets of 1500 bytes, no delay."""
    return Veth(rate_mbit=MBIT, burst="%d" % (4 * MTU), limit="%d" % (QUEUE * MTU), switched=True)


def _php_fpm():
    """Debian adds PHP's version to the name of the program."""
    found = shutil.which("php-fpm") or max(glob.glob("/usr/sbin/php-fpm*"), default=None)
    if not found:
        raise Skip("php-fpm is missing; on Debian: apt-get install php-fpm")
    return found


def mptcpize():
    """The words in front of a command that make its sockets Multipath TCP's."""
    return (shutil.which("mptcpize"), "run")


def files():
    """A file of each program that takes part, by its name for people."""
    return {"JMeter": next(iter(FILES)), "Java": shutil.which("java"), "nginx": shutil.which("nginx"), "PHP": _php_fpm(),
            "MariaDB": shutil.which("mariadbd")}


def need_programs():
    """Skips the experiment where a program is missing, and says how to get all that are."""
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    missing += [package for path, package in FILES.items() if not glob.glob(path)]
    if missing:
        raise Skip("not all programs are there; on Debian: apt-get install --no-install-recommends %s" % " ".join(sorted(set(missing))))
    _php_fpm()


class Web(NamedTuple):
    """A web server, by what it speaks: nginx to clients, and PHP to the database."""

    name: str
    port: int
    to_clients: bool = False   # over Multipath TCP?
    to_database: bool = False


# one for each system that is measured; who is behind a converter, is so as ever
WEBS = (Web("TCP", 8080), Web("TCP, database over MPTCP", 8081, to_database=True), Web("MPTCP", 8082, True, True))


class Examination:
    """The application while it runs, for `students`; the pages of its questions have about `page` bytes."""

    def __init__(self, lab, students, page):
        need_programs()
        self.lab = lab
        self.students = students
        # not in the lab's own directory, which only root can enter
        self.directory = os.path.join("/run/convertlab", os.path.basename(lab.directory) + "-exam")
        os.mkdir(self.directory, 0o755)
        self._alone = not sandbox.in_user_namespace()
        self.processes = {}
        self.database = lab.add_host("database")
        self._connect()
        for name, value in SYSCTLS.items():
            for host in [*lab.hosts.values(), self.database]:
                if host.has_sysctl(name):
                    host.sysctl(name, value)
        self._start_database(page)
        self._start_web()

    def _connect(self):
        """Joins the web server and the database by two links like the clients'. The database announces its second address to Multipath TCP."""
        self._links = []
        for device, addresses in DATABASE_LINKS.items():
            self._links.append(Switch(path(), device, self.lab.server, self.database, self.lab.add_host("switch-" + device)))
            for host, address in zip((self.lab.server, self.database), addresses):
                host.ip("addr add %s/24 dev %s" % (address, device))
        self.lab.server.ip("mptcp limits set subflows 2 add_addr_accepted 2")
        self.database.ip("mptcp limits set subflows 2", "mptcp endpoint add %s dev data2 signal" % DATABASE_LINKS["data2"][1])

    def _path(self, *names):
        return os.path.join(self.directory, *names)

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def _own(self, name):
        """Makes a directory that belongs to the user who runs the application."""
        os.mkdir(self._path(name), 0o755)
        if self._alone:
            os.chown(self._path(name), NOBODY, NOBODY)
        return self._path(name)

    def _as_user(self, command):
        """The command run by nobody; in a user namespace of an ordinary user, who is root in it, by that user."""
        return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups", *command] if self._alone else command

    # --- starting it ------------------------------------------------------------------------------

    def _start_database(self, page):
        data = self._own("database")
        as_root = [] if self._alone else ["--user=root"]
        self.database.run(self._as_user(["mariadb-install-db", "--no-defaults", "--datadir=" + data, "--skip-test-db",
                                         "--auth-root-authentication-method=normal", *as_root, *MARIADB]))
        self.processes["MariaDB"] = self.lab.start_listening(
            self.database, self._as_user([*mptcpize(), shutil.which("mariadbd"), "--no-defaults", "--datadir=" + data,
                                          "--socket=%s/socket" % data, "--bind-address=0.0.0.0", "--port=%d" % DATABASE_PORT, "--pid-file=pid",
                                          *as_root, *MARIADB]), DATABASE_PORT, name="mariadbd", timeout=60)
        with open(os.path.join(TOOLS, "exam.sql"), encoding="utf-8") as file:
            self.sql(file.read())
        passage = (PASSAGE * (page // len(PASSAGE) + 1))[:page]
        self.sql("USE exam; INSERT INTO students VALUES %s; INSERT INTO questions VALUES %s;" % (
            ", ".join("(%d, 'Student %d')" % (number, number) for number in range(1, self.students + 1)),
            ", ".join("(%d, '%s', 'What does the passage say?', 'This\\nThat\\nBoth\\nNeither')" % (number, passage)
                      for number in range(1, QUESTIONS + 1))))

    def sql(self, statements):
        """Runs SQL as the database's administrator; returns what it prints, without names of columns."""
        return self.database.run(["mariadb", "--no-defaults", "--skip-column-names", "--user=root",
                                  "--socket=%s/database/socket" % self.directory], input=statements).stdout

    def _start_web(self):
        work = self._own("web")
        self._own("web/sessions")
        shutil.copy(os.path.join(TOOLS, "exam.php"), work)
        words = {"dir": work, "database": DATABASE_ADDRESS, "processes": PHP_PROCESSES, "files": 20000,
                 "connections": 9000, "user": "" if self._alone else "user root;"}
        # all are there in all runs, with processes of their own, so that direct TCP has nothing of Multipath TCP
        for web in WEBS:
            pool = "php-%s.socket" % ("mptcp" if web.to_database else "tcp")
            if pool not in self.processes:
                self.processes[pool] = self._start_php(dict(words, socket=pool), mptcpize() if web.to_database else ())
            self.processes[web.name] = self._start_nginx(dict(words, socket=pool, port=web.port), mptcpize() if web.to_clients else ())

    def _start_php(self, words, wrapper):
        configuration = words["socket"] + ".conf"
        self._write(configuration, PHP % words)
        php = self.lab.server.popen(self._as_user([*wrapper, _php_fpm(), "--fpm-config", self._path(configuration)]
                                                  + ([] if self._alone else ["--allow-to-run-as-root"])), name=words["socket"])
        wait_until(lambda: os.path.exists(self._path("web", words["socket"])) or php.poll() is not None, 10, "PHP to listen")
        if php.poll() is not None:
            raise LabError("%s ended with %d:\n%s" % (php.title, php.returncode, php.log_text()))
        return php

    def _start_nginx(self, words, wrapper):
        configuration = "nginx-%d.conf" % words["port"]
        self._write(configuration, NGINX % words)
        return self.lab.start_listening(self.lab.server, self._as_user([
            *wrapper, shutil.which("nginx"), "-c", self._path(configuration), "-p", words["dir"], "-e", words["dir"] + "/nginx-error.log"]),
            words["port"], name="nginx")

    def pids(self, web):
        """{the name of a program: its first process} for those that answer for a Web."""
        return {"nginx": self.processes[web.name].pid, "MariaDB": self.processes["MariaDB"].pid,
                "PHP": self.processes["php-%s.socket" % ("mptcp" if web.to_database else "tcp")].pid}

    # --- a run ------------------------------------------------------------------------------------

    def _limit_database(self, limited):
        """Gives the database's links the paths' rate, or none worth the name."""
        rate, burst = ("%dmbit" % MBIT, path().burst) if limited else ("%dmbit" % UNLIMITED, "256kb")
        for link in self._links:
            for host in (self.lab.server, self.database):
                link.host.run(["tc", "qdisc", "change", "dev", "to-" + host.name, "root", "tbf", "rate", rate, "burst", burst,
                               "limit", path().limit])

    def reset(self, limited=True):
        """Forgets all answers and sessions, and makes sure that the application works. limited: are the database's links?"""
        self._limit_database(limited)
        shutil.rmtree(self._path("web/sessions"))
        self._own("web/sessions")
        self.sql("TRUNCATE exam.answers;")
        for web in WEBS * WARM_UP:
            self.lab.server.run(["curl", "-sS", "--fail", "-o", "/dev/null", "-d", "student=1", "http://127.0.0.1:%d/sign-in" % web.port])

    def answers(self):
        """How many answers the database has."""
        return int(self.sql("SELECT COUNT(*) FROM exam.answers;"))

    def errors(self):
        """What nginx and PHP have complained about."""
        found = ""
        for path_of_log in sorted(glob.glob(self._path("web", "*-error.log"))):
            with open(path_of_log, encoding="utf-8", errors="replace") as file:
                found += file.read()
        return found


# --- JMeter -------------------------------------------------------------------------------------------

# 4,000 threads, each with a small stack; and the collector of garbage and the compiler that take least of two cores
JAVA = ["-Xss256k", "-Xms512m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JMETER_HOME + "/bin/ApacheJMeter.jar",
        "-Djmeter.home=" + JMETER_HOME, os.path.join(TOOLS, "StartJMeter.java")]
JMETER = {
    "jmeter.save.saveservice.output_format": "csv",
    "jmeter.save.saveservice.print_field_names": "true",
    "jmeter.save.saveservice.timestamp_format": "ms",
    # what is asked for once is asked for once: an error is an error
    "httpclient4.retrycount": "0",
}


def jmeter(lab, env, directory, properties, wrapper=()):
    """Starts JMeter on the client with the examination's plan; returns its Process and the path of what it records.

    wrapper: words in front of the command, such as those of mptcpize().
    """
    os.mkdir(directory)
    records = os.path.join(directory, "results.jtl")
    words = ["-J%s=%s" % pair for pair in {**JMETER, **properties}.items()]
    environment = {"HOME": directory, **env}
    return lab.client.popen([*wrapper, "java", *JAVA, "-n", "-t", os.path.join(TOOLS, "exam.jmx"), "-l", records,
                             "-j", os.path.join(directory, "jmeter.log"), *words], env=environment, name="jmeter"), records


class Meter(threading.Thread):
    """Reads every second, and when it is stopped, what a host's links have carried to it.

    It notes [seconds since its start, {link: bytes}, CPU seconds of the whole machine].
    """

    INTERVAL = 1  # seconds

    def __init__(self, host, links):
        super().__init__(daemon=True)
        self.notes = []
        self._links = links
        self._host = host
        self._ended = threading.Event()
        self.epoch = time.time()
        self.start()

    def _read(self, file):
        file.seek(0)
        carried = {}
        for line in file:
            name, _, values = line.strip().partition(":")
            if name in self._links:
                carried[name] = int(values.split()[0])
        return carried

    def run(self):
        with self._host.entered(), open("/proc/thread-self/net/dev", encoding="ascii") as file:
            while True:
                is_last = self._ended.is_set()
                self.notes.append([time.time() - self.epoch, self._read(file), processes.system_cpu_seconds()])
                if is_last:
                    return
                self._ended.wait(self.INTERVAL)

    def stop(self):
        """Ends it; returns its notes."""
        self._ended.set()
        self.join()
        return self.notes
