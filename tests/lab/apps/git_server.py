# SPDX-License-Identifier: BSD-3-Clause
"""git_server.py - Git's smart protocol over HTTP, by git-http-backend(1)

  git_server.py PORT DIRECTORY

Serves the repositories below the directory to everybody, for writing too.
"""
import http.server
import os
import socket
import subprocess
import sys


class Server(http.server.ThreadingHTTPServer):
    """For both families."""

    address_family = socket.AF_INET6


class Backend(http.server.BaseHTTPRequestHandler):
    """A CGI program's environment (RFC 3875) from the request; its output becomes the answer."""

    protocol_version = "HTTP/1.1"

    def body(self):
        """The request's, chunked where Git doesn't know its length beforehand."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_GET(self):  # pylint: disable=invalid-name
        """For POST as well."""
        path, _, query = self.path.partition("?")
        body = self.body()
        env = dict(os.environ, GIT_PROJECT_ROOT=sys.argv[2], GIT_HTTP_EXPORT_ALL="1", REMOTE_USER="lab", REMOTE_ADDR="::1",
                   PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=self.command, CONTENT_LENGTH=str(len(body)),
                   CONTENT_TYPE=self.headers.get("Content-Type", ""), GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""))
        said = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=True).stdout
        head, _, content = said.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().splitlines()]
        status = dict(fields).get("Status", "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET


if __name__ == "__main__":
    with Server(("::", int(sys.argv[1])), Backend) as server:
        server.serve_forever()
