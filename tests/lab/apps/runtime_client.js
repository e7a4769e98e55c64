// SPDX-License-Identifier: BSD-3-Clause
// runtime_client.js - Node's ways to the network: runtime_client.js http|net|undici HOST
// The task is in runtime_client.py.
"use strict";
const crypto = require("crypto");
const http = require("http");
const net = require("net");

const COUNT = 8;
const SIZE = 1000000;
const PATTERN = Buffer.alloc(SIZE, Buffer.from(Array.from({ length: 251 }, (_, i) => i)));
const host = process.argv[3];
const numbers = Array.from({ length: COUNT }, (_, i) => i);
const sizeOf = (number) => 200000 + number;

function verify(number, data) {
    if (!data.equals(PATTERN.subarray(0, sizeOf(number))))
        throw new Error(`download ${number}: ${data.length} other bytes`);
}

function verifyUpload(answer) {
    const digest = crypto.createHash("sha256").update(PATTERN).digest("hex");
    const expected = `bytes=${SIZE} sha256=${digest}\n`;
    if (answer !== expected)
        throw new Error(`the server got ${answer}, not ${expected}`);
}

async function collect(stream) {
    const chunks = [];
    for await (const chunk of stream)
        chunks.push(chunk);
    return Buffer.concat(chunks);
}

// by the http module, without an agent: a connection each
function request(method, port, path, body) {
    return new Promise((resolve, reject) => {
        const call = http.request({ method, host, port, path, agent: false });
        call.on("response", (answer) => collect(answer).then(resolve, reject));
        call.on("error", reject);
        call.end(body);
    });
}

async function echoed(number) {
    const socket = net.connect({ host, port: 7, allowHalfOpen: true });
    socket.end(PATTERN.subarray(0, sizeOf(number)));
    verify(number, await collect(socket));
}

function refused(port) {
    return new Promise((resolve, reject) => {
        net.connect({ host, port }).on("error", reject).on("connect", resolve);
    });
}

// fetch() is undici
async function fetched(port, path, options) {
    const answer = await fetch(`http://${host}:${port}${path}`, options);
    return Buffer.from(await answer.arrayBuffer());
}

const ways = {
    http: {
        get: async (number) => verify(number, await request("GET", 80, `/bytes/${sizeOf(number)}`)),
        put: async () => verifyUpload((await request("PUT", 80, "/upload", PATTERN)).toString()),
        fail: () => request("GET", 9999, "/"),
    },
    net: { get: echoed, put: async () => {}, fail: () => refused(9999) },
    undici: {
        get: async (number) => verify(number, await fetched(80, `/bytes/${sizeOf(number)}`)),
        put: async () => verifyUpload(
            (await fetched(80, "/upload", { method: "PUT", body: PATTERN })).toString()),
        fail: () => fetched(9999, "/"),
    },
};

// The error, its causes, and what it collects: of the addresses of both families.
function codes(error) {
    return error ? [error.code, ...codes(error.cause), ...(error.errors || []).flatMap(codes)] : [];
}

async function main() {
    const way = ways[process.argv[2]];
    await Promise.all(numbers.map(way.get));
    await way.put();
    console.log(`${COUNT} done, ${SIZE} up`);
    await way.fail().then(
        () => { throw new Error("not refused"); },
        (error) => {
            if (!codes(error).includes("ECONNREFUSED"))
                throw error;
            console.log("refused");
        });
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
