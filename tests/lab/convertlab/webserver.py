# SPDX-License-Identifier: BSD-3-Clause
"""webserver.py - nginx on the lab's server: HTTP/1.1 on port 80, HTTP/2 over TLS on port 443, uploads by PUT"""
import os
import subprocess

from .applications import NAME
from .servers import pattern

CONFIGURATION = """
daemon off;
user root;
worker_processes 1;
pid %(dir)s/pid;
error_log stderr warn;
events { worker_connections 512; }
http {
    types { text/html html; text/javascript js; }
    default_type application/octet-stream;
    log_format lab "$request_method $uri $server_protocol $status $body_bytes_sent";
    access_log %(dir)s/access.log lab;
    client_body_temp_path %(dir)s/body;
    proxy_temp_path %(dir)s/proxy; fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi; scgi_temp_path %(dir)s/scgi;
    client_max_body_size 0;
    keepalive_requests 1000000;
    server {
        listen 80; listen [::]:80;
        listen 443 ssl http2; listen [::]:443 ssl http2;
        ssl_certificate %(certificate)s; ssl_certificate_key %(key)s;
        root %(dir)s/root;
        autoindex on;
        dav_methods PUT;
    }
}
"""


def certificate(lab):
    """(certificate, key): files of a certificate for the server's name and addresses, signed by itself."""
    paths = os.path.join(lab.directory, "certificate.pem"), os.path.join(lab.directory, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=" + NAME, "-addext",
                    "subjectAltName=DNS:%s,IP:%s,IP:%s" % (NAME, lab.server.addr4, lab.server.addr6),
                    "-out", paths[0], "-keyout", paths[1]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return paths


class Web:
    """The running server. certificate: the file that clients have to trust."""

    needs = ("nginx", "openssl")

    def __init__(self, lab):
        self.directory = os.path.join(lab.directory, "nginx")
        os.makedirs(self.path())
        os.chmod(self.directory, 0o755)
        self.certificate, key = certificate(lab)
        configuration = os.path.join(self.directory, "nginx.conf")
        with open(configuration, "w", encoding="ascii") as file:
            file.write(CONFIGURATION % {"dir": self.directory, "certificate": self.certificate, "key": key})
        lab.start_listening(lab.server, ["nginx", "-c", configuration, "-p", self.directory], 443)

    def path(self, *names):
        """The path of the file that nginx serves as /NAME…"""
        return os.path.join(self.directory, "root", *names)

    def put(self, name, content):
        """Writes a file for nginx to serve. A number stands for so many bytes of servers.pattern()."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(pattern(content) if isinstance(content, int) else content)

    def requests(self):
        """The requests so far: ["GET /file HTTP/2.0 200 1000", …]."""
        with open(os.path.join(self.directory, "access.log"), encoding="utf-8") as file:
            return file.read().splitlines()
