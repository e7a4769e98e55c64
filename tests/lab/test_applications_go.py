#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_go.py - programs in Go that people use, supervised by convertize"""
import gzip
import hashlib
import json
import os
import random
import shutil
import sys

from convertlab import Unsuitable, check, equal, long, main
from convertlab.applications import NAME, application, digest, digest_of_pattern, git
from convertlab.programs import APPS, go_program
from convertlab.servers import pattern
from convertlab.webserver import Web

SIZE = 2000000
FILES = 12
# Go dials for each request that finds no idle connection; if that takes longer than 300 ms, it also dials the other family's address.
# rclone lists the directory, and asks twice for each file.
DIALS_MAX = 2 * (1 + 2 * FILES)


def http(lab):
    lab.http()


# --- the web -------------------------------------------------------------------------------------------------------


def web(lab):
    server = Web(lab)
    for number in range(FILES):
        server.put("files/%d" % number, SIZE + number)
    return server


@application("rclone", *Web.needs, server=web, connections=(1, DIALS_MAX), carried=FILES * SIZE, method="supervise")
def test_rclone(run):
    """A directory, four files at once."""
    run(["rclone", "copy", "--config", os.devnull, "--http-url", "http://%s/files/" % NAME, ":http:", run.path("files")])
    for number in range(FILES):
        run.holds("files/%d" % number, SIZE + number)


@application("rclone", *Web.needs, server=web, connections=(1, DIALS_MAX), carried=FILES * SIZE, method="supervise")
def test_rclone_over_tls(run):
    """HTTP/2 over TLS."""
    run(["rclone", "copy", "--config", os.devnull, "--ca-cert", run.server.certificate, "--http-url", "https://%s/files/" % NAME,
         ":http:", run.path("files")])
    for number in range(FILES):
        run.holds("files/%d" % number, SIZE + number)


# --- a proxy ---------------------------------------------------------------------------------------------------------


@application("caddy", "curl", server=http, connections=(1, 8), carried=8 * SIZE, method="supervise")
def test_caddy(run):
    """A reverse proxy: its connections to the upstream server are converted, those of its own clients are not touched."""
    caddy = run.start(["caddy", "reverse-proxy", "--from", "http://:8080", "--to", "http://%s" % NAME], 8080)
    run.lab.client.run(["curl", "-sSfZ", "--parallel-max", "4", *(word for number in range(8) for word in (
        "-o", run.path("file%d" % number), "http://127.0.0.1:8080/bytes/%d" % (SIZE + number)))])
    for number in range(8):
        run.holds("file%d" % number, SIZE + number)
    caddy.stop()


# --- kubernetes, gRPC --------------------------------------------------------------------------------------------------


@application("kubectl:kubernetes-client", server=http, connections=(1, 2), carried=SIZE, method="supervise")
def test_kubectl(run):
    said = run(["kubectl", "--server", "http://" + NAME, "get", "--raw", "/bytes/%d" % SIZE], text=False).stdout
    equal(hashlib.sha256(said).hexdigest(), digest_of_pattern(SIZE), "the answer")


def etcd(lab):
    lab.start_listening(lab.server, ["etcd", "--data-dir", os.path.join(lab.directory, "etcd"), "--listen-client-urls",
                                     "http://[::]:2379", "--advertise-client-urls", "http://%s:2379" % NAME,
                                     "--listen-peer-urls", "http://127.0.0.1:2380"], 2379, name="etcd", timeout=30)


@application("etcd:etcd-server", "etcdctl:etcd-client", server=etcd, connections=(2, 8), carried=2 * 1000000, method="supervise")
def test_etcdctl(run):
    """gRPC: a value there and back."""
    value = "".join(random.Random(1).choices("abcdefgh", k=1000000))
    etcdctl, env = ["etcdctl", "--endpoints", "http://%s:2379" % NAME], {"ETCDCTL_API": "3"}
    equal(run([*etcdctl, "put", "lab"], input=value, env=env).stdout, "OK\n", "etcdctl's output")
    check(run([*etcdctl, "get", "--print-value-only", "lab"], env=env).stdout.strip() == value, "another value")


# --- containers ----------------------------------------------------------------------------------------------------------

REGISTRY = """
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: %s}}
http: {addr: ":5000"}
"""
MEDIA = "application/vnd.docker.%s"


def blob(directory, content, kind):
    """Writes content where a dir: image has its blobs; returns the content's descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    with open(os.path.join(directory, digest), "wb") as file:
        file.write(content)
    return {"mediaType": MEDIA % kind, "size": len(content), "digest": "sha256:" + digest}


def image(directory):
    """Makes an image of one layer in skopeo(1)'s dir: form, whose content no registry looks at. Returns the layer's digest and size."""
    os.makedirs(directory)
    layer = blob(directory, gzip.compress(random.Random(1).randbytes(SIZE), mtime=0), "image.rootfs.diff.tar.gzip")
    config = blob(directory, json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {
        "type": "layers", "diff_ids": [layer["digest"]]}}).encode(), "container.image.v1+json")
    with open(os.path.join(directory, "manifest.json"), "w", encoding="ascii") as file:
        json.dump({"schemaVersion": 2, "mediaType": MEDIA % "distribution.manifest.v2+json",
                   "config": config, "layers": [layer]}, file)
    with open(os.path.join(directory, "version"), "w", encoding="ascii") as file:
        file.write("Directory Transport Version: 1.1\n")
    return layer["digest"].removeprefix("sha256:"), layer["size"]


def registry(lab):
    path = os.path.join(lab.directory, "registry.yml")
    with open(path, "w", encoding="ascii") as file:
        file.write(REGISTRY % os.path.join(lab.directory, "registry"))
    lab.start_listening(lab.server, ["docker-registry", "serve", path], 5000, name="registry")
    return image(os.path.join(lab.directory, "image"))


@application("skopeo", "docker-registry", server=registry, connections=(2, 32), carried=SIZE, method="supervise")
def test_skopeo(run):
    """An image to a registry and back."""
    name = "docker://%s:5000/lab:%s" % (NAME, "converted" if run.converted else "direct")
    skopeo = ["skopeo", "--insecure-policy", "copy", "--quiet"]
    run([*skopeo, "--dest-tls-verify=false", "dir:" + os.path.join(run.lab.directory, "image"), name])
    run([*skopeo, "--src-tls-verify=false", name, "dir:" + run.path("back")])
    equal(digest(run.path("back", run.server[0])), run.server[0], "the layer")


def registry_for_docker(lab):
    if not shutil.which("docker") or not shutil.which("skopeo"):
        raise Unsuitable("docker and skopeo aren't both here; test_skopeo stands in for it")
    layer = registry(lab)
    lab.server.run(["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false",
                    "dir:" + os.path.join(lab.directory, "image"), "docker://%s:5000/lab:1" % lab.server.addr4])
    return layer


@application("docker-registry", server=registry_for_docker, connections=(1, 12), method="supervise")
def test_docker(run):
    """docker manifest inspect asks the registry itself, without docker's daemon."""
    said = run(["docker", "manifest", "inspect", "--insecure", "%s:5000/lab:1" % NAME]).stdout
    equal(json.loads(said)["layers"][0]["size"], run.server[1], "the layer's size")


# --- git -----------------------------------------------------------------------------------------------------------------


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"


def git_server(lab):
    """Serves a repository with an ordinary file and one in Git LFS, behind a password."""
    root = os.path.join(lab.directory, "git")
    work = os.path.join(root, "work")
    os.makedirs(os.path.join(root, "lfs"))
    git("init", "-q", "-b", "main", work, cwd=root)
    with open(os.path.join(root, "lfs", digest_of_pattern(SIZE)), "wb") as file:
        file.write(pattern(SIZE))
    for name, text in ((".gitattributes", "large filter=lfs -text\n"), ("small", "small\n"),
                       ("large", POINTER % (digest_of_pattern(SIZE), SIZE))):
        with open(os.path.join(work, name), "w", encoding="ascii") as file:
            file.write(text)
    git("add", ".", cwd=work)
    git("commit", "-q", "-m", "lab", cwd=work)
    git("clone", "-q", "--bare", work, os.path.join(root, "lab.git"), cwd=root)
    lab.start_listening(lab.server, [sys.executable, os.path.join(APPS, "git_server.py"), 80, root, "secret"], 80, name="git")


@long
@application("git", "git-lfs", "go:golang-go", server=git_server, connections=(3, 12), carried=SIZE, method="auto")
def test_git_with_go_programs(run):
    """Git, which is preloaded, starts a credential helper and Git LFS, which are in Go."""
    helper = go_program("git-credential-lab", "task.go", "credential.go")
    run(["git", "-c", "credential.helper=" + helper, "-c", "filter.lfs.process=git-lfs filter-process",
         "-c", "filter.lfs.required=true", "clone", "-q", "http://%s/lab.git" % NAME, run.path("clone")])
    run.holds("clone/large", SIZE)


if __name__ == "__main__":
    main()
