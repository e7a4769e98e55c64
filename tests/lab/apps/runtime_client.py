# SPDX-License-Identifier: BSD-3-Clause
"""runtime_client.py - Python's ways to the network, each with the same task

  runtime_client.py urllib|requests|asyncio|aiohttp|gevent|trio|twisted HOST

The task, also of runtime_client.js, .rb and .pl, RuntimeClient.java and tokio/: (HTTP) eight downloads of the lab's http server at port 80, at
once where there is a way to, and an upload; (TCP, such as asyncio) eight connections to its echo server at port 7, at once, each
with a half-close. Every byte is checked. Then a connection to port 9999, which must be refused. Prints "8 done, 1000000 up", then
"refused".
"""
import asyncio
import concurrent.futures
import errno
import hashlib
import sys

COUNT = 8
SIZE = 1000000
PATTERN = bytes(range(251)) * (SIZE // 251 + 2)


def size_of(number):
    return 200000 + number


def verify(number, data):
    if data != PATTERN[:size_of(number)]:
        sys.exit("download %d: %d other bytes" % (number, len(data)))


def verify_upload(answer):
    expected = "bytes=%d sha256=%s\n" % (SIZE, hashlib.sha256(PATTERN[:SIZE]).hexdigest())
    if answer != expected:
        sys.exit("the server got %r, not %r" % (answer, expected))


def done():
    print("%d done, %d up" % (COUNT, SIZE), flush=True)


def was_refused(error):
    """Is ECONNREFUSED among the causes?"""
    while error:
        if getattr(error, "errno", None) == errno.ECONNREFUSED or "[Errno %d]" % errno.ECONNREFUSED in str(error):
            print("refused")
            return
        error = getattr(error, "exceptions", [None])[0] or error.__cause__ or error.__context__  # Trio has one for each address
    sys.exit("not refused")


def in_threads(get, put, base):
    """For what blocks: get(url) and put(url, data) return bytes."""
    with concurrent.futures.ThreadPoolExecutor(COUNT) as pool:
        for number, data in enumerate(pool.map(lambda n: get("%s/bytes/%d" % (base, size_of(n))), range(COUNT))):
            verify(number, data)
    verify_upload(put(base + "/upload", PATTERN[:SIZE]).decode())
    done()
    try:
        get(base + ":9999/")
    except OSError as error:
        was_refused(error)


def urllib_client(host):
    from urllib.request import Request, urlopen
    in_threads(lambda url: urlopen(url, timeout=20).read(),
               lambda url, data: urlopen(Request(url, data, method="PUT"), timeout=20).read(), "http://" + host)


def requests_client(host):
    import requests
    with requests.Session() as session:
        in_threads(lambda url: session.get(url, timeout=20).content,
                   lambda url, data: session.put(url, data=data, timeout=20).content, "http://" + host)


async def echoed(host, number):
    reader, writer = await asyncio.open_connection(host, 7)

    async def send():
        writer.write(PATTERN[:size_of(number)])
        await writer.drain()
        writer.write_eof()
    data, _ = await asyncio.gather(reader.read(-1), send())
    verify(number, data)
    writer.close()
    await writer.wait_closed()


async def asyncio_client(host):
    await asyncio.wait_for(asyncio.gather(*[echoed(host, number) for number in range(COUNT)]), 20)
    done()
    try:
        await asyncio.open_connection(host, 9999)
    except OSError as error:
        was_refused(error)


async def aiohttp_client(host):
    import aiohttp

    async def get(session, number):
        async with session.get("http://%s/bytes/%d" % (host, size_of(number))) as response:
            verify(number, await response.read())
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        await asyncio.gather(*[get(session, number) for number in range(COUNT)])
        async with session.put("http://%s/upload" % host, data=PATTERN[:SIZE]) as response:
            verify_upload(await response.text())
        done()
        try:
            await session.get("http://%s:9999/" % host)
        except OSError as error:
            was_refused(error)


def gevent_client(host):
    from gevent import monkey
    monkey.patch_all()
    urllib_client(host)


def trio_client(host):
    import trio

    async def echo(number):
        async with await trio.open_tcp_stream(host, 7) as stream, trio.open_nursery() as nursery:
            async def send():
                await stream.send_all(PATTERN[:size_of(number)])
                await stream.send_eof()
            nursery.start_soon(send)
            verify(number, b"".join([bytes(data) async for data in stream]))

    async def task():
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(COUNT):
                    nursery.start_soon(echo, number)
        done()
        try:
            await trio.open_tcp_stream(host, 9999)
        except OSError as error:
            was_refused(error)
    trio.run(task)


def twisted_client(host):
    from twisted.internet import defer, endpoints, protocol, task

    class Echo(protocol.Protocol):
        def __init__(self, number):
            self.number, self.data, self.ended = number, bytearray(), defer.Deferred()

        def connectionMade(self):
            self.transport.write(PATTERN[:size_of(self.number)])
            self.transport.loseWriteConnection()

        def dataReceived(self, data):
            self.data += data

        def connectionLost(self, reason=protocol.connectionDone):
            self.ended.callback(None)

    async def echo(reactor, number):
        client = Echo(number)
        await endpoints.connectProtocol(endpoints.HostnameEndpoint(reactor, host, 7), client)
        await client.ended
        verify(number, client.data)

    async def run(reactor):
        await defer.gatherResults([defer.ensureDeferred(echo(reactor, number)) for number in range(COUNT)])
        done()
        try:
            await endpoints.connectProtocol(endpoints.HostnameEndpoint(reactor, host, 9999), Echo(0))
        except Exception as error:  # pylint: disable=broad-except
            print("refused" if "refused" in str(error) else error)
    task.react(lambda reactor: defer.ensureDeferred(run(reactor)))


if __name__ == "__main__":
    CLIENT = globals()[sys.argv[1] + "_client"]
    RESULT = CLIENT(sys.argv[2])
    if asyncio.iscoroutine(RESULT):
        asyncio.run(RESULT)
