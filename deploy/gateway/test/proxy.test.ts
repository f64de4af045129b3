import { once } from "node:events";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { bodyOf, givenGateway, givenUpstream, promised } from "./given-gateway.ts";

/** Tests of what the gateway forwards unchanged, what it removes, and that it does not buffer. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

let behave: Listener;

const management = await givenUpstream((incoming, response) => void behave(incoming, response));
const edge = await givenUpstream((incoming, response) => void behave(incoming, response));
const gateway = await givenGateway({ management: [management.origin], edges: [edge.origin] });
afterAll(async () => {
  await gateway.stop();
  await management.close();
  await edge.close();
});

/** The last request, as the upstream received it. */
let seen: {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  raw: string[];
  body: string;
};

beforeEach(() => {
  behave = async (incoming, response) => {
    const { method = "", url = "", headers, rawHeaders: raw } = incoming;
    seen = { method, url, headers, raw, body: await bodyOf(incoming) };
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  };
});

describe("given a stream of events", () => {
  it("forwards each event immediately while the stream is open", async () => {
    const opened = promised<ServerResponse>();
    behave = (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      opened.resolve(response);
    };
    const answered = await fetch(`${gateway.url}/api/v1/sdk/stream`);
    expect(answered.headers.get("content-type")).toBe("text/event-stream");
    const reader = (answered.body as ReadableStream<Uint8Array>).getReader();
    const response = await opened.promise;
    for (const event of ["event: flags\n\n", "event: heartbeat\n\n"]) {
      response.write(event);
      const { value } = await reader.read();
      expect(Buffer.from(value as Uint8Array).toString()).toBe(event);
    }
    response.end();
    expect((await reader.read()).done).toBe(true);
  });

  it("ends the request to the upstream when the reader disconnects", async () => {
    const closed = promised();
    behave = (_incoming, response) => {
      response.once("close", () => closed.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
    };
    const leave = new AbortController();
    const answered = await fetch(`${gateway.url}/api/v1/sdk/stream`, { signal: leave.signal });
    expect(answered.status).toBe(200);
    leave.abort();
    await closed.promise;
  });

  it("ends the request to the upstream when the client disconnects before the response", async () => {
    // Longer than the test may take, so that only the disconnection can end the request.
    const own = await givenGateway({
      management: [management.origin],
      edges: [],
      answerWithinMs: 600_000,
    });
    const arrived = promised();
    const closed = promised();
    behave = (_incoming, response) => {
      response.once("close", () => closed.resolve());
      arrived.resolve();
    };
    const leave = new AbortController();
    const answered = fetch(`${own.url}/api/v1/flags`, { signal: leave.signal });
    await arrived.promise;
    leave.abort();
    await expect(answered).rejects.toThrow();
    await closed.promise;
    await own.stop();
  }, 30_000);

  it("breaks the reader's connection when the upstream breaks off", async () => {
    behave = (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
      response.once("drain", () => undefined);
      setImmediate(() => response.destroy());
    };
    const answered = await fetch(`${gateway.url}/api/v1/sdk/stream`);
    await expect(answered.text()).rejects.toThrow();
  });

  it("keeps hundreds of streams open, each with all its events", async () => {
    const streams = 500;
    const responses: ServerResponse[] = [];
    const allOpen = promised();
    behave = (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
      if (responses.push(response) === streams) allOpen.resolve();
    };
    const readers = Array.from({ length: streams }, async () => {
      const answered = await fetch(`${gateway.url}/api/v1/sdk/stream`);
      return answered.text();
    });
    await allOpen.promise;
    for (const response of responses) response.end("event: flags\n\n");
    expect(new Set(await Promise.all(readers))).toEqual(new Set([": hello\n\nevent: flags\n\n"]));
  });

  it("ends open streams when the gateway drains", async () => {
    const own = await givenGateway({ management: [management.origin], edges: [edge.origin] });
    const closed = promised();
    behave = (_incoming, response) => {
      response.once("close", () => closed.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
    };
    const answered = await fetch(`${own.url}/api/v1/sdk/stream`);
    const text = answered.text();
    await Promise.all([own.drain(), expect(text).rejects.toThrow(), closed.promise]);
    await own.stop();
  });
});

describe("given a request", () => {
  it("forwards method, path, query and headers unchanged", async () => {
    await fetch(`${gateway.url}/api/v1/flags/%C3%A4?limit=1&cursor=a%2Fb+c`, {
      method: "PATCH",
      headers: { authorization: "Bearer hs_x", "if-match": '"3"', "x-user-context": "{}" },
      body: "{}",
    });
    expect(seen).toMatchObject({
      method: "PATCH",
      url: "/api/v1/flags/%C3%A4?limit=1&cursor=a%2Fb+c",
      headers: { authorization: "Bearer hs_x", "if-match": '"3"', "x-user-context": "{}" },
    });
    expect(seen.headers.host).toBe(new URL(gateway.url).host);
  });

  it.each([
    ["http://halyard.example/api/v1/flags?limit=1", "/api/v1/flags?limit=1"],
    ["HTTP://[::1]:8080//api/v1/flags", "/api/v1/flags"],
    ["//ofrep/v1/evaluate/flags", "/ofrep/v1/evaluate/flags"],
    ["///api/v1/sdk/flags", "/api/v1/sdk/flags"],
    ["/ofrep/v1/evaluate/flags//a/", "/ofrep/v1/evaluate/flags//a/"],
  ])("forwards the path of the target %s", async (target, path) => {
    const socket = connect(gateway.port, "127.0.0.1");
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(seen.url).toBe(path);
  });

  it("forwards the body of a GET", async () => {
    const outgoing = request(`${gateway.url}/api/v1/sdk/evaluate?key=a`, {
      headers: { "content-type": "application/json", "content-length": "16" },
    });
    outgoing.end('{"country":"DE"}');
    await bodyOf((await once(outgoing, "response"))[0]);
    expect(seen).toMatchObject({ method: "GET", body: '{"country":"DE"}' });
  });

  it("forwards invalid JSON and UTF-8, so that the service responds to it", async () => {
    const body = Buffer.from([0x7b, 0xc3, 0x28]);
    behave = async (incoming, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      response.writeHead(400, { "content-type": "application/json" }).end(Buffer.concat(chunks));
    };
    for (const type of ["application/json", "text/plain", "nonsense"]) {
      const headers = { "content-type": type };
      const answered = await fetch(`${gateway.url}/api/v1/flags`, {
        method: "POST",
        headers,
        body,
      });
      expect(answered.status).toBe(400);
      expect(Buffer.from(await answered.arrayBuffer())).toEqual(body);
    }
  });

  it("forwards a body of more than 64 KiB while it is still arriving", async () => {
    const begun = promised<IncomingMessage>();
    behave = async (incoming, response) => {
      begun.resolve(incoming);
      response.end(await bodyOf(incoming));
    };
    const outgoing = request(`${gateway.url}/api/v1/flags`, { method: "POST" });
    const beginning = "x".repeat(100_000);
    outgoing.write(beginning);
    const incoming = await begun.promise;
    expect(incoming.headers["transfer-encoding"]).toBe("chunked");
    outgoing.end(" end");
    const [response] = await once(outgoing, "response");
    expect(await bodyOf(response)).toBe(`${beginning} end`);
  });

  it("forwards a response that arrives before the body was read", async () => {
    behave = (_incoming, response) => {
      response.writeHead(413, { "content-type": "application/json" });
      response.end('{"error":"large"}');
    };
    const body = Buffer.alloc(20_000_000, " ");
    for (let time = 0; time < 3; time++) {
      const answered = await fetch(`${gateway.url}/api/v1/flags`, { method: "POST", body });
      expect(answered.status).toBe(413);
      expect(await answered.text()).toBe('{"error":"large"}');
    }
  });

  it.each(["POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS"])(
    "adds no body to a %s without one",
    async (method) => {
      await fetch(`${gateway.url}/api/v1/flags`, { method });
      expect(seen.method).toBe(method);
      expect(seen.body).toBe("");
      expect(seen.headers["transfer-encoding"]).toBeUndefined();
    },
  );

  it("forwards a chunked body even if the method usually has none", async () => {
    const outgoing = request(`${gateway.url}/api/v1/flags`, {
      method: "DELETE",
      headers: { "transfer-encoding": "chunked" },
    });
    outgoing.end("GET /smuggled HTTP/1.1\r\n\r\n");
    const [response] = await once(outgoing, "response");
    await bodyOf(response);
    expect(seen).toMatchObject({ method: "DELETE", body: "GET /smuggled HTTP/1.1\r\n\r\n" });
  });

  it.each([
    ["transfer codings other than chunked", "Host: x\r\nTransfer-Encoding: gzip, chunked"],
    ["two Host headers", "Host: x\r\nConnection: close\r\nHost: y\r\nTransfer-Encoding: chunked"],
  ])("rejects %s", async (_what, headers) => {
    let requests = 0;
    behave = (_incoming, response) => {
      requests += 1;
      response.end();
    };
    const socket = connect(gateway.port, "127.0.0.1");
    socket.write(`POST /api/v1/flags HTTP/1.1\r\n${headers}\r\n\r\n1\r\na\r\n0\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toContain("HTTP/1.1 400 ");
    expect(text).toContain("VALIDATION_001");
    expect(requests).toBe(0);
  });

  it("does not forward hop-by-hop headers", async () => {
    const outgoing = request(`${gateway.url}/api/v1/flags`, {
      headers: {
        connection: "keep-alive, x-mine, content-length, host",
        "x-mine": "1",
        "keep-alive": "timeout=1",
        "proxy-authorization": "Basic x",
        te: "trailers",
        upgrade: "websocket",
        "x-other": "2",
      },
    });
    outgoing.end();
    await bodyOf((await once(outgoing, "response"))[0]);
    expect(Object.keys(seen.headers).toSorted()).toEqual([
      "connection",
      "host",
      "x-forwarded-for",
      "x-other",
      "x-request-id",
    ]);
  });

  it("forwards the client's request id, or generates one, and returns it", async () => {
    for (const headers of [{ "x-request-id": "mine" }, { "x-request-id": "not mine" }]) {
      const answered = await fetch(`${gateway.url}/api/v1/flags`, { headers });
      const requestId = answered.headers.get("x-request-id");
      expect(seen.headers["x-request-id"]).toBe(requestId);
      expect(requestId === "mine").toBe(headers["x-request-id"] === "mine");
    }
  });

  it("forwards a browser's preflight request to the edge", async () => {
    behave = (incoming, response) => {
      response.writeHead(204, {
        "access-control-allow-origin": "*",
        "x-saw": `${incoming.method}`,
      });
      response.end();
    };
    const answered = await fetch(`${gateway.url}/api/v1/sdk/flags`, {
      method: "OPTIONS",
      headers: { origin: "https://example.com", "access-control-request-method": "GET" },
    });
    expect(answered.status).toBe(204);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
    expect(answered.headers.get("x-saw")).toBe("OPTIONS");
  });
});

describe("given a response", () => {
  it("forwards Accept-Encoding, and the compressed body unchanged", async () => {
    const body = gzipSync('{"flags":{}}');
    let accepted: string | string[] | undefined;
    behave = (incoming, response) => {
      accepted = incoming.headers["accept-encoding"];
      const headers = { "content-encoding": "gzip", "content-length": body.length };
      response.writeHead(200, headers).end(body);
    };
    const outgoing = request(`${gateway.url}/api/v1/sdk/ruleset`, {
      headers: { "accept-encoding": "br, gzip" },
      agent: false,
    }).end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    expect(accepted).toBe("br, gzip");
    expect(response.headers["content-encoding"]).toBe("gzip");
    expect(response.headers["content-length"]).toBe(String(body.length));
    expect((await buffer(response)).equals(body)).toBe(true);
  });

  it.each([304, 204])("forwards %s without a body", async (status) => {
    behave = (_incoming, response) => response.writeHead(status, { etag: '"abc"' }).end();
    const answered = await fetch(`${gateway.url}/api/v1/sdk/flags`, {
      headers: { "if-none-match": '"abc"' },
    });
    expect(answered.status).toBe(status);
    expect(answered.headers.get("etag")).toBe('"abc"');
    expect(await answered.text()).toBe("");
  });

  it("forwards the response to HEAD with the content length of GET", async () => {
    behave = (_incoming, response) => response.writeHead(200, { "content-length": 1234 }).end();
    for (const path of ["/api/v1/sdk/flags", "/api/v1/flags"]) {
      const answered = await fetch(gateway.url + path, { method: "HEAD" });
      expect(answered.headers.get("content-length")).toBe("1234");
    }
  });

  it("forwards a response to HEAD without a content length", async () => {
    behave = (_incoming, response) => response.writeHead(200, { etag: '"a"' }).end();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let time = 0; time < 2; time++) {
      const outgoing = request(`${gateway.url}/api/v1/flags`, { method: "HEAD", agent });
      outgoing.end();
      const [response] = await once(outgoing, "response");
      expect(response.headers.etag).toBe('"a"');
      expect(await bodyOf(response)).toBe("");
    }
    agent.destroy();
  });

  it("forwards every header, including repeated ones", async () => {
    behave = (_incoming, response) => {
      response.writeHead(200, [
        "Vary",
        "X-User-ID",
        "ETag",
        '"a"',
        "Vary",
        "Authorization",
        "Connection",
        "x-hop",
        "X-Hop",
        "1",
      ]);
      response.end("{}");
    };
    const socket = connect(gateway.port, "127.0.0.1");
    socket.write("GET /api/v1/sdk/flags HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toContain('Vary: X-User-ID\r\nETag: "a"\r\nVary: Authorization\r\n');
    expect(text).not.toMatch(/x-hop/i);
    expect(text).toContain("Connection: close\r\n");
  });

  it("never mixes up the responses on a reused connection", async () => {
    behave = async (incoming, response) =>
      response.end(`${incoming.url}|${await bodyOf(incoming)}`);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const answers = Array.from({ length: 50 }, async (_, index) => {
      const outgoing = request(`${gateway.url}/api/v1/flags/${index}`, { agent, method: "POST" });
      outgoing.end(`body ${index}`);
      return bodyOf((await once(outgoing, "response"))[0]);
    });
    const expected = answers.map((_, index) => `/api/v1/flags/${index}|body ${index}`);
    expect(await Promise.all(answers)).toEqual(expected);
    agent.destroy();
  });
});
