#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fetch.py - downloads or uploads a file by HTTP: fetch.py get|put URL FILE

What curl does for a test, where curl can't run: preloaded sanitizer run-time libraries deadlock in its start.
"""
import http.client
import shutil
import sys
import urllib.parse


def main():
    verb, url, path = sys.argv[1:4]
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
    if verb == "put":
        with open(path, "rb") as file:
            connection.request("PUT", parts.path, file.read())
        sys.stdout.write(connection.getresponse().read().decode())
    else:
        connection.request("GET", parts.path)
        with open(path, "wb") as file:
            shutil.copyfileobj(connection.getresponse(), file)


if __name__ == "__main__":
    main()
