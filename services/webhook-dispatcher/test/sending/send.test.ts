import { getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createCheckedLookup, resolveBySystem } from "../../src/sending/names.ts";
import { createAgents, post } from "../../src/sending/post.ts";
import { createSend } from "../../src/sending/send.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";

/** Requests to targets with various behaviors, over real connections on loopback. */
const { closing, closeAll } = createClosing();
afterEach(closeAll);

/** A shorter time limit than in production, for targets that never respond. */
const timeoutMs = 1_000;
const timeOut = { kind: "failed", error: "time-out after 1 s", timedOut: true };
const closedEarly = { kind: "failed", error: "connection closed early", timedOut: false };

async function sendTo(onRequest: (socket: Socket) => void, times: { timeoutMs?: number } = {}) {
  const target = closing(await startRawTarget({ onRequest }));
  const sender = closing(createSend({ rules: { httpsOnly: false, allowPrivate: true }, ...times }));
  const send = (options: { signal?: AbortSignal; body?: string; path?: string } = {}) => {
    const { signal, body = "{}", path = "/" } = options;
    return sender.send({
      url: `http://127.0.0.1:${target.port}${path}`,
      headers: { "Content-Type": "application/json", "X-Service-Event": "flag.toggled" },
      body,
      ...(signal && { signal }),
    });
  };
  return { send, target };
}

const answering = (status: string, headers: readonly string[] = [], body = "") => {
  const lines = [`HTTP/1.1 ${status}`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers];
  return (socket: Socket) => void socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
};

describe("a request", () => {
  it("is a POST with exactly the given body and headers", async () => {
    const { send, target } = await sendTo(answerOk);
    await send({ body: '{"name":"Größe ☃"}', path: "/hooks?a=b" });
    const [head, body] = target.requests.join("").split("\r\n\r\n");
    expect(body).toBe('{"name":"Größe ☃"}');
    expect(head?.toLowerCase().split("\r\n").sort()).toEqual([
      "connection: keep-alive",
      "content-length: 22",
      "content-type: application/json",
      `host: 127.0.0.1:${target.port}`,
      "post /hooks?a=b http/1.1",
      "user-agent: got (https://github.com/sindresorhus/got)",
      "x-service-event: flag.toggled",
    ]);
  });

  it("reuses the connection of the previous one", async () => {
    const { send, target } = await sendTo(answerOk);
    for (let count = 0; count < 5; count += 1)
      expect(await send()).toMatchObject({ kind: "answered", status: 200, body: "ok" });
    expect(target.requests).toHaveLength(5);
    expect(target.connections).toHaveLength(1);
  });

  it("uses a new connection if the target has closed the previous one", async () => {
    const { send, target } = await sendTo((socket) => {
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    await send();
    await eventually(() => target.connections[0]?.destroyed);
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
  });
});

describe("a reused connection that is closed while the next request is sent", () => {
  /** Responds to the first request of a connection, and calls `then` for the next one. */
  const answeringOnce = (then: (socket: Socket) => void) => {
    const answered = new WeakSet<Socket>();
    return (socket: Socket) => {
      if (answered.has(socket)) return then(socket);
      answered.add(socket);
      answerOk(socket);
    };
  };

  it.each([
    ["closed", (socket: Socket) => void socket.end()],
    ["reset", (socket: Socket) => void socket.resetAndDestroy()],
  ])("causes one repetition on a new connection if it is %s", async (_, close) => {
    const { send, target } = await sendTo(answeringOnce(close));
    for (let count = 0; count < 6; count += 1)
      expect(await send()).toMatchObject({ kind: "answered", status: 200 });
    // Every second request is sent twice. The new connection is not reused.
    expect(target.requests).toHaveLength(9);
  });

  it("causes only one repetition", async () => {
    let requests = 0;
    const { send, target } = await sendTo((socket) => {
      requests += 1;
      if (requests === 1) answerOk(socket);
      else socket.destroy();
    });
    await send();
    expect(await send()).toMatchObject(closedEarly);
    expect(target.requests).toHaveLength(3);
  });

  it("causes no repetition if the response has begun", async () => {
    const { send, target } = await sendTo(
      answeringOnce((socket) => void socket.end("HTTP/1.1 200 O")),
    );
    await send();
    expect(await send()).toMatchObject(closedEarly);
    expect(target.requests).toHaveLength(2);
  });
});

describe("a new connection", () => {
  it.each([
    ["closed", (socket: Socket) => void socket.end()],
    ["reset", (socket: Socket) => void socket.resetAndDestroy()],
  ])("causes no repetition if it is %s without a response", async (_, close) => {
    const { send, target } = await sendTo(close);
    expect(await send()).toMatchObject(closedEarly);
    expect(target.requests).toHaveLength(1);
  });
});

describe("a response", () => {
  it.each([200, 204, 301, 400, 404, 410, 429, 500, 503])(
    "with the status %i is returned",
    async (status) => {
      const { send } = await sendTo(answering(`${status} Whatever`));
      expect(await send()).toMatchObject({ kind: "answered", status });
    },
  );

  it.each([301, 302, 303, 307, 308])("of %i is not followed", async (status) => {
    const otherTarget = closing(await startRawTarget({ onRequest: answerOk }));
    const location = `Location: http://127.0.0.1:${otherTarget.port}/`;
    const { send } = await sendTo(answering(`${status} Elsewhere`, [location]));
    expect(await send()).toMatchObject({ kind: "answered", status });
    expect(otherTarget.connections).toHaveLength(0);
  });

  it("with Retry-After returns the delay", async () => {
    const { send } = await sendTo(answering("429 Slowly", ["Retry-After: 7"]));
    expect(await send()).toMatchObject({ status: 429, retryAfterMs: 7_000 });
    const at = new Date(Date.now() + 60_000).toUTCString();
    const dated = await sendTo(answering("503 Away", [`Retry-After: ${at}`]));
    const { retryAfterMs } = (await dated.send()) as { retryAfterMs?: number };
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it("without Retry-After returns no delay", async () => {
    const { send } = await sendTo(answerOk);
    expect(await send()).not.toHaveProperty("retryAfterMs");
  });

  it("is stored up to 2 KiB, without a partial character at the end", async () => {
    const { send } = await sendTo(answering("200 OK", [], `x${"é".repeat(2_000)}`));
    expect(await send()).toMatchObject({ status: 200, body: `x${"é".repeat(1_023)}` });
  });

  it("without an end is truncated, and its connection is closed", async () => {
    let written = 0;
    const { send, target } = await sendTo((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const writeMore = () => {
        while (!socket.destroyed && socket.write(`400\r\n${"x".repeat(1024)}\r\n`)) written += 1;
      };
      socket.on("drain", writeMore);
      writeMore();
    });
    expect(await send()).toMatchObject({ kind: "answered", status: 200, body: "x".repeat(2_048) });
    await eventually(() => target.connections[0]?.destroyed);
    // The bound covers the buffers of both sides. An open connection would carry far more in a second.
    expect(written).toBeLessThan(16 * 1_024);
  });

  it("that is compressed is not decompressed", async () => {
    const packed = gzipSync(Buffer.alloc(100_000_000));
    const { send } = await sendTo((socket) => {
      const head = `Content-Encoding: gzip\r\nContent-Length: ${packed.length}`;
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`);
      socket.write(packed);
    });
    const result = (await send()) as { status: number; body: string };
    expect(result.status).toBe(200);
    expect(result.body.length).toBeLessThanOrEqual(2_048);
  });

  it("of arbitrary bytes becomes text that PostgreSQL can store", async () => {
    const { send } = await sendTo((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
      socket.write(Buffer.from([0x61, 0x00, 0xff, 0x62]));
    });
    expect(await send()).toMatchObject({ body: "a\u{FFFD}\u{FFFD}b" });
  });

  it("of HTTP/1.0 ends with its connection", async () => {
    const { send } = await sendTo((socket) => void socket.end("HTTP/1.0 200 OK\r\n\r\nok"));
    expect(await send()).toMatchObject({ kind: "answered", status: 200, body: "ok" });
  });

  it("may arrive before the whole request body was sent", async () => {
    const reject = answering("413 Too Large", ["Connection: close"]);
    const { send, target } = await sendTo((socket) => {
      if (target.requests.length === 1) reject(socket);
    });
    const body = "x".repeat(10_000_000);
    expect(await send({ body })).toMatchObject({ kind: "answered", status: 413 });
  });

  it("may follow informational responses", async () => {
    const { send } = await sendTo((socket) => {
      socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
      answerOk(socket);
    });
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
  });
});

describe("an attempt fails", () => {
  it("when the target does not respond within the time limit", async () => {
    const withDefaultLimit = await sendTo(() => undefined);
    const { send, target } = await sendTo(() => undefined, { timeoutMs });
    const result = await Promise.race([withDefaultLimit.send(), send()]);
    expect(result).toMatchObject(timeOut);
    expect(result.durationMs).toBeGreaterThanOrEqual(timeoutMs - 5);
    await eventually(() => target.connections[0]?.destroyed);
  });

  it.each([
    ["headers drip", "HTTP/1.1 200 OK\r\n", "X-Slow: 1\r\n"],
    ["a body drips", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"],
    [
      "informational responses drip",
      "HTTP/1.1 103 Early Hints\r\n\r\n",
      "HTTP/1.1 103 Early Hints\r\n\r\n",
    ],
  ])("when %s for longer than the time limit", async (_, head, drop) => {
    const { send, target } = await sendTo(
      (socket) => {
        socket.write(head);
        const dripping = setInterval(() => socket.write(drop), 50);
        socket.once("close", () => clearInterval(dripping));
      },
      { timeoutMs },
    );
    expect(await send()).toMatchObject(timeOut);
    await eventually(() => target.connections[0]?.destroyed);
  });

  it("when the body stops before its end", async () => {
    const { send } = await sendTo(
      (socket) => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
      },
      { timeoutMs },
    );
    expect(await send()).toMatchObject(timeOut);
  });

  it.each([
    ["before it responds", ""],
    ["in the headers", "HTTP/1.1 200 OK\r\nX-Half: "],
    ["in a body of known length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"],
    ["in a chunked body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf"],
  ])("when the target closes the connection %s", async (_, beginning) => {
    const { send, target } = await sendTo((socket) => void socket.end(beginning));
    expect(await send()).toMatchObject(closedEarly);
    expect(target.requests).toHaveLength(1);
  });

  it("when the target does not listen", async () => {
    const { send, target } = await sendTo(answerOk);
    await target.close();
    expect(await send()).toMatchObject({ error: "connection refused", timedOut: false });
  });

  it.each([
    ["is not HTTP", "SSH-2.0-OpenSSH_9.9\r\n"],
    ["has an invalid status", "HTTP/1.1 abc OK\r\n\r\n"],
    ["has endless headers", `HTTP/1.1 200 OK\r\n${`X-More: ${"x".repeat(1_000)}\r\n`.repeat(100)}`],
    ["has two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"],
  ])("when the response %s", async (_, answer) => {
    const { send } = await sendTo((socket) => void socket.write(answer));
    expect(await send()).toMatchObject({ kind: "failed", error: "answer is not HTTP" });
  });

  it("when the target switches to another protocol", async () => {
    const { send, target } = await sendTo((socket) => {
      socket.write("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    expect(await send()).toMatchObject({ error: "target switched to another protocol" });
    await eventually(() => target.connections[0]?.destroyed);
  });

  it("when it is cancelled", async () => {
    const cancel = new AbortController();
    const { send, target } = await sendTo(() => cancel.abort());
    const result = await send({ signal: cancel.signal });
    expect(result).toMatchObject({ kind: "failed", error: "cancelled", timedOut: false });
    await eventually(() => target.connections[0]?.destroyed);
  });

  it("without a connection when it is cancelled before it begins", async () => {
    const { send, target } = await sendTo(answerOk);
    expect(await send({ signal: AbortSignal.abort() })).toMatchObject({ error: "cancelled" });
    expect(target.connections).toHaveLength(0);
  });
});

describe("a signal that can cancel attempts", () => {
  it.each([
    ["answer", answerOk],
    ["close the connection", (socket: Socket) => void socket.destroy()],
    ["hang", () => undefined],
  ])("has no listeners left after targets that %s", async (_, onRequest) => {
    const { signal } = new AbortController();
    const { send } = await sendTo(onRequest, { timeoutMs: 200 });
    for (let count = 0; count < 3; count += 1) await send({ signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("a slow target", () => {
  it("may take longer than the idle time of a connection", async () => {
    const idleMs = 50;
    // The idle time begins earlier than this time, and both are timers of this process, so it ends earlier too.
    const onRequest = (socket: Socket) => void setTimeout(() => answerOk(socket), 4 * idleMs);
    const target = closing(await startRawTarget({ onRequest }));
    const agents = createAgents({ idleMs });
    closing({ close: async () => agents.destroy() });
    const url = new URL(`http://127.0.0.1:${target.port}/`);
    const lookup = createCheckedLookup({ resolve: resolveBySystem, isAllowed: () => true });
    const connection = { agents, lookup, signal: new AbortController().signal };
    const answer = await post({ url, headers: {}, body: "{}" }, connection);
    expect(answer).toMatchObject({ status: 200 });
  });
});
