# SPDX-License-Identifier: BSD-3-Clause
"""git_server.py - Git's smart protocol over HTTP, by git-http-backend(1)

  git_server.py PORT DIRECTORY [TOKEN]

Serves the repositories below the directory to all clients, for writing, too; with a TOKEN only to clients with that password, which any
client may fetch from /token. For downloads by Git LFS it serves the files below DIRECTORY/lfs, by their SHA-256.
"""
import base64
import http.server
import json
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
        """The request's body, chunked if Git doesn't know its length beforehand."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def answer(self, content, status=200, kind="text/plain", **fields):
        """Sends a whole answer."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **fields}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def is_let_in(self):
        """Tells whether the client has the password, or none is needed."""
        expected = base64.b64encode(b"lab:" + sys.argv[3].encode()).decode() if len(sys.argv) > 3 else ""
        return not expected or self.headers.get("Authorization") == "Basic " + expected

    def batch(self, body):
        """Answers the batch API of Git LFS with the URL of each object."""
        host = self.headers["Host"]
        objects = [dict(item, actions={"download": {"href": "http://%s/lfs/%s" % (host, item["oid"])}})
                   for item in json.loads(body)["objects"]]
        self.answer(json.dumps({"transfer": "basic", "objects": objects}).encode(), kind="application/vnd.git-lfs+json")

    def do_GET(self):  # pylint: disable=invalid-name
        """Answers GET and POST."""
        path, _, query = self.path.partition("?")
        body = self.body()
        if path == "/token":
            self.answer(sys.argv[3].encode())
        elif path.startswith("/lfs/"):
            with open(os.path.join(sys.argv[2], "lfs", os.path.basename(path)), "rb") as file:
                self.answer(file.read())
        elif not self.is_let_in():
            self.answer(b"", 401, WWW_Authenticate='Basic realm="lab"')
        elif path.endswith("/objects/batch"):
            self.batch(body)
        else:
            self.git(path, query, body)

    def git(self, path, query, body):
        """Answers with the output of git-http-backend(1)."""
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
