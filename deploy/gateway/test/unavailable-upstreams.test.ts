import { once } from "node:events";
import { type RequestListener, request, type ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { createLogger } from "@halyard/service";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  bodyOf,
  findUnusedOrigin,
  type GivenGateway,
  givenGateway,
  givenUpstream,
  promised,
  type Upstream,
} from "./given-gateway.ts";

/** Tests of services that are unavailable, break off or become available again. */
const releases: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0).toReversed()) await release();
});

async function upstreamOf(...given: Parameters<typeof givenUpstream>): Promise<Upstream> {
  const upstream = await givenUpstream(...given);
  releases.push(upstream.close);
  return upstream;
}

async function gatewayOf(...given: Parameters<typeof givenGateway>): Promise<GivenGateway> {
  const gateway = await givenGateway(...given);
  releases.push(gateway.stop);
  return gateway;
}

async function errorOf(url: string, init: RequestInit = {}) {
  const answered = await fetch(url, init);
  const body = (await answered.json()) as { error: Record<string, unknown> };
  expect(Object.keys(body.error).sort()).toEqual(["category", "code", "message", "status"]);
  expect(answered.headers.get("x-request-id")).not.toBeNull();
  expect(answered.headers.get("x-content-type-options")).toBe("nosniff");
  return { ...body.error, headers: answered.headers };
}

describe("given an unavailable service", () => {
  it.each(["GET", "POST"])("returns 503 to a %s, with a Retry-After", async (method) => {
    const unusedOrigin = await findUnusedOrigin();
    const gateway = await gatewayOf({ management: [unusedOrigin], edges: [unusedOrigin] });
    const body = method === "POST" ? '{"key":"a"}' : null;
    const error = await errorOf(`${gateway.url}/api/v1/flags`, { method, body });
    expect(error).toMatchObject({ code: "SERVER_002", status: 503 });
    expect(error.headers.get("retry-after")).toBe("1");
    expect(error.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("logs the id of every error response", async () => {
    const lines: string[] = [];
    const logger = createLogger({
      service: "gateway",
      level: "info",
      destination: { write: (line) => lines.push(line) },
    });
    const unusedOrigin = await findUnusedOrigin();
    const gateway = await gatewayOf({ management: [unusedOrigin], edges: [unusedOrigin], logger });
    for (let time = 0; time < 2; time++) {
      const error = await errorOf(`${gateway.url}/api/v1/flags`);
      const id = error.headers.get("x-request-id");
      await eventually(() => lines.map((line) => JSON.parse(line)), {
        until: (logged) => logged.some((line) => line.request_id === id),
      });
    }
  });

  it.each([
    ["scheduler", "/api/v1/flags/a/environments/b/schedule"],
    ["webhook-dispatcher", "/api/v1/projects/a/webhooks/b"],
    ["usage-metering", "/api/v1/usage"],
  ])("does the same for a %s, and serves others", async (_name, path) => {
    const unusedOrigin = await findUnusedOrigin();
    const there = await upstreamOf((_incoming, response) => response.end("here"));
    const gateway = await gatewayOf({
      management: [there.origin],
      edges: [there.origin],
      schedulers: [unusedOrigin],
      dispatchers: [unusedOrigin],
      meterings: [unusedOrigin],
    });
    for (const method of ["GET", "POST", "DELETE"]) {
      const error = await errorOf(gateway.url + path, { method });
      expect(error).toMatchObject({ code: "SERVER_002", status: 503 });
      expect(error.headers.get("retry-after")).toBe("1");
      expect(error.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect(await (await fetch(`${gateway.url}/api/v1/flags`)).text()).toBe("here");
  });

  it("lets browsers of any origin read that an edge is unavailable", async () => {
    const unusedOrigin = await findUnusedOrigin();
    const gateway = await gatewayOf({ management: [unusedOrigin], edges: [unusedOrigin] });
    for (const path of ["/api/v1/sdk/flags", "/ofrep/v1/stream?token=t"]) {
      const { headers } = await fetch(gateway.url + path);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toContain("Retry-After");
    }
  });

  it.each([
    ["evaluate/flags", {}],
    ["evaluate/flags/a%2Fb?x=1", { key: "a/b" }],
    ["stream?token=t", {}],
  ])("returns errors in OFREP's shape below /ofrep/v1/ (%s)", async (path, about) => {
    const unusedOrigin = await findUnusedOrigin();
    const gateway = await gatewayOf({ management: [unusedOrigin], edges: [unusedOrigin] });
    const answered = await fetch(`${gateway.url}//ofrep/v1/${path}`, { method: "POST" });
    expect(answered.status).toBe(503);
    expect(answered.headers.get("retry-after")).toBe("1");
    expect(await answered.json()).toEqual({
      ...about,
      errorCode: "GENERAL",
      errorDetails: expect.any(String),
    });
  });

  it("forwards again as soon as the service is available", async () => {
    const unusedOrigin = await findUnusedOrigin();
    const gateway = await gatewayOf({ management: [unusedOrigin], edges: [unusedOrigin] });
    await errorOf(`${gateway.url}/api/v1/flags`);
    await upstreamOf((_incoming, response) => response.end("back"), Number(unusedOrigin.port));
    expect(await (await fetch(`${gateway.url}/api/v1/flags`)).text()).toBe("back");
  });

  it("uses the other edges in the meantime", async () => {
    const unusedOrigin = await findUnusedOrigin();
    const edge = await upstreamOf((_incoming, response) => response.end("here"));
    const gateway = await gatewayOf({
      management: [unusedOrigin],
      edges: [unusedOrigin, edge.origin],
    });
    for (let time = 0; time < 4; time++)
      expect(await (await fetch(`${gateway.url}/api/v1/sdk/flags`)).text()).toBe("here");
  });

  it("uses the other edges when the name of one does not resolve", async () => {
    // No resolver sends a query for a label of more than 63 bytes.
    const nameless = new URL(`http://${"x".repeat(64)}:8080`);
    const edge = await upstreamOf((_incoming, response) => response.end("here"));
    for (const method of ["GET", "POST"]) {
      const gateway = await gatewayOf({ management: [], edges: [nameless, edge.origin] });
      const answered = await fetch(`${gateway.url}/api/v1/sdk/flags`, { method });
      expect(await answered.text()).toBe("here");
    }
  });

  it("sends other edges the requests that met no connection, including bodies, for any method", async () => {
    const unusedOrigin = await findUnusedOrigin();
    const edge = await upstreamOf((incoming, response) => {
      void bodyOf(incoming).then((body) => response.end(String(body.length)));
    });
    for (const size of [0, 10, 1_000_000]) {
      const gateway = await gatewayOf({
        management: [],
        edges: [unusedOrigin, unusedOrigin, edge.origin],
      });
      const body = "x".repeat(size);
      const answered = await fetch(`${gateway.url}/ofrep/v1/evaluate/flags`, {
        method: "POST",
        body,
      });
      expect(await answered.text()).toBe(String(size));
    }
  });

  it("distributes requests among all edges in turn", async () => {
    const answers: string[] = [];
    const edges = await Promise.all(
      ["one", "two", "three"].map((name) =>
        upstreamOf((_incoming, response) => response.end(name)),
      ),
    );
    const origins = edges.map(({ origin }) => origin);
    const gateway = await gatewayOf({ management: origins, edges: origins });
    for (let time = 0; time < 6; time++)
      answers.push(await (await fetch(`${gateway.url}/api/v1/sdk/flags`)).text());
    expect(answers).toEqual(["one", "two", "three", "one", "two", "three"]);
  });
});

describe("given a service that breaks off before its response", () => {
  it("never sends a write twice", async () => {
    let writes = 0;
    const service = await upstreamOf((incoming) => {
      writes += 1;
      incoming.socket.destroy();
    });
    const gateway = await gatewayOf({ management: [service.origin], edges: [service.origin] });
    for (const method of ["POST", "PATCH", "DELETE"])
      expect(await errorOf(`${gateway.url}/api/v1/flags`, { method })).toMatchObject({
        code: "SERVER_002",
      });
    expect(writes).toBe(3);
  });

  it.each([
    ["POST", "{}"],
    ["POST", null],
    ["PUT", null],
    ["PATCH", null],
    ["DELETE", null],
  ])(
    "never sends a %s with the body %s twice over a reused connection, to neither process",
    async (method, body) => {
      let writes = 0;
      const services = await Promise.all(
        [1, 2].map(() =>
          upstreamOf((incoming, response) => {
            if (incoming.method === "GET") {
              response.end("fine");
              return;
            }
            writes += 1;
            incoming.socket.destroy();
          }),
        ),
      );
      const origins = services.map(({ origin }) => origin);
      const gateway = await gatewayOf({ management: origins, edges: [] });
      for (let time = 0; time < 2; time++)
        await (await fetch(`${gateway.url}/api/v1/flags`)).text();
      expect(await errorOf(`${gateway.url}/api/v1/flags`, { method, body })).toMatchObject({
        status: 503,
      });
      expect(writes).toBe(1);
    },
  );

  it("repeats a read whose reused connection was being closed", async () => {
    const sockets = new Set<unknown>();
    const service = await upstreamOf((incoming, response) => {
      if (sockets.has(incoming.socket)) incoming.socket.destroy();
      else response.end("fine");
      sockets.add(incoming.socket);
    });
    const gateway = await gatewayOf({ management: [service.origin], edges: [service.origin] });
    for (let time = 0; time < 3; time++)
      expect(await (await fetch(`${gateway.url}/api/v1/flags`)).text()).toBe("fine");
  });

  it("sends a read to another process when its new connection broke", async () => {
    const stopping = createServer((socket) => void socket.once("data", () => socket.destroy()));
    stopping.listen(0, "127.0.0.1");
    await once(stopping, "listening");
    releases.push(async () => void stopping.close());
    const { port } = stopping.address() as AddressInfo;
    const serving = await upstreamOf((_incoming, response) => response.end("served"));
    const edges = [new URL(`http://127.0.0.1:${port}`), serving.origin];
    const gateway = await gatewayOf({ management: [], edges });
    for (let time = 0; time < 4; time++)
      expect(await (await fetch(`${gateway.url}/api/v1/sdk/stream`)).text()).toBe("served");
  });

  it.each(["POST", "DELETE"])("excludes the process after a broken %s", async (method) => {
    const breaking = await upstreamOf((incoming) => void incoming.socket.destroy());
    const serving = await upstreamOf((_incoming, response) => response.end("served"));
    const edges = [breaking.origin, serving.origin];
    const gateway = await gatewayOf({ management: [], edges });
    const url = `${gateway.url}/api/v1/sdk/flags`;
    expect(await errorOf(url, { method })).toMatchObject({ status: 503 });
    for (let time = 0; time < 4; time++)
      expect(await (await fetch(url, { method })).text()).toBe("served");
  });

  it("repeats a read only once", async () => {
    let reads = 0;
    const service = await upstreamOf((incoming, response) => {
      if (incoming.url?.endsWith("?break") !== true) return response.end("fine");
      reads += 1;
      return incoming.socket.destroy();
    });
    const gateway = await gatewayOf({ management: [service.origin], edges: [service.origin] });
    const asked = Array.from({ length: 5 }, () => fetch(`${gateway.url}/api/v1/flags`));
    for (const answered of await Promise.all(asked)) await answered.text();
    expect(await errorOf(`${gateway.url}/api/v1/flags?break`)).toMatchObject({ status: 503 });
    expect(reads).toBe(2);
  });

  it("does not repeat a read that timed out", async () => {
    let reads = 0;
    const service = await upstreamOf((incoming, response) => {
      if (incoming.url?.endsWith("?silent") === true) reads += 1;
      else response.end("fine");
    });
    const origins = { management: [service.origin], edges: [service.origin] };
    const gateway = await gatewayOf({ ...origins, answerWithinMs: 200 });
    await (await fetch(`${gateway.url}/api/v1/flags`)).text();
    expect(await errorOf(`${gateway.url}/api/v1/flags?silent`)).toMatchObject({ status: 503 });
    expect(reads).toBe(1);
  });

  it("returns 503 when the service breaks off while the body is being sent", async () => {
    const service = await upstreamOf((incoming) =>
      incoming.once("data", () => incoming.socket.destroy()),
    );
    const gateway = await gatewayOf({ management: [service.origin], edges: [service.origin] });
    const body = Buffer.alloc(5_000_000);
    expect(await errorOf(`${gateway.url}/api/v1/flags`, { method: "POST", body })).toMatchObject({
      status: 503,
    });
  });
});

describe("given a process that starts or drains", () => {
  const leaving = () =>
    upstreamOf((_incoming, response) =>
      response.writeHead(503, { connection: "close" }).end("connect again"),
    );
  const serving = () => upstreamOf((_incoming, response) => response.end("served"));

  it("sends its reads to another process", async () => {
    const origins = [(await leaving()).origin, (await serving()).origin];
    const gateway = await gatewayOf({ management: [], edges: origins });
    for (let time = 0; time < 4; time++)
      expect(await (await fetch(`${gateway.url}/api/v1/sdk/stream`)).text()).toBe("served");
  });

  it("sends a read to the process that was excluded first when none is available", async () => {
    let isRestarted = false;
    const restarted = await upstreamOf((_incoming, response) => {
      if (isRestarted) response.end("served");
      else response.writeHead(503, { connection: "close" }).end();
    });
    const stopping = await upstreamOf((incoming, response) => {
      if (isRestarted) incoming.socket.destroy();
      else response.end("served");
    });
    const edges = [restarted.origin, stopping.origin];
    const gateway = await gatewayOf({ management: [], edges });
    const url = `${gateway.url}/api/v1/sdk/stream`;
    expect(await (await fetch(url)).text()).toBe("served");
    isRestarted = true;
    expect(await (await fetch(url)).text()).toBe("served");
  });

  it("forwards its rejection of a request with a body, and then excludes it", async () => {
    const origins = [(await leaving()).origin, (await serving()).origin];
    const gateway = await gatewayOf({ management: [], edges: origins });
    const url = `${gateway.url}/api/v1/sdk/flags`;
    const rejected = await fetch(url, { method: "POST", body: "{}" });
    expect(rejected.status).toBe(503);
    expect(await rejected.text()).toBe("connect again");
    for (let time = 0; time < 2; time++)
      expect(await (await fetch(url, { method: "POST", body: "{}" })).text()).toBe("served");
  });

  it.each<[string, RequestListener]>([
    ["rejects", (_incoming, response) => response.writeHead(503, { connection: "close" }).end()],
    ["breaks", (incoming) => incoming.socket.destroy()],
  ])("sends a GET with a body that it %s to no other process", async (_what, listener) => {
    const edges = [(await upstreamOf(listener)).origin, (await serving()).origin];
    const gateway = await gatewayOf({ management: [], edges });
    const outgoing = request(`${gateway.url}/api/v1/sdk/evaluate?key=a`, {
      headers: { "content-type": "application/json", "content-length": "2" },
    });
    outgoing.end("{}");
    const [response] = await once(outgoing, "response");
    await bodyOf(response);
    expect(response.statusCode).toBe(503);
  });

  it.each(["POST", "DELETE"])(
    "does not send a %s without a body that it rejects to another process",
    async (method) => {
      const received: string[] = [];
      const other = await upstreamOf((_incoming, response) => response.end("served"));
      const only = await upstreamOf((incoming, response) => {
        received.push(`${incoming.method}`);
        response.writeHead(503, { connection: "close" }).end();
      });
      const gateway = await gatewayOf({ management: [only.origin, other.origin], edges: [] });
      expect((await fetch(`${gateway.url}/api/v1/flags`, { method })).status).toBe(503);
      expect(received).toEqual([method]);
    },
  );

  it("repeats a read at an address shared by several processes", async () => {
    let reads = 0;
    const balancer = await upstreamOf((_incoming, response) => {
      reads += 1;
      if (reads === 1) response.writeHead(503, { connection: "close" }).end();
      else response.end("served");
    });
    const gateway = await gatewayOf({ management: [], edges: [balancer.origin] });
    expect(await (await fetch(`${gateway.url}/api/v1/sdk/flags`)).text()).toBe("served");
  });

  it("forwards the rejection when no process can serve", async () => {
    let reads = 0;
    const only = await upstreamOf((_incoming, response) => {
      reads += 1;
      response.writeHead(503, { connection: "close" }).end("connect again");
    });
    const gateway = await gatewayOf({ management: [], edges: [only.origin] });
    const rejected = await fetch(`${gateway.url}/api/v1/sdk/flags`);
    expect(rejected.status).toBe(503);
    expect(await rejected.text()).toBe("connect again");
    expect(reads).toBe(4);
  });

  it("does not repeat a request that a process rejects for another reason", async () => {
    let reads = 0;
    const service = await upstreamOf((_incoming, response) => {
      reads += 1;
      response.writeHead(503).end();
    });
    const gateway = await gatewayOf({ management: [], edges: [service.origin] });
    expect((await fetch(`${gateway.url}/api/v1/sdk/flags`)).status).toBe(503);
    expect(reads).toBe(1);
  });
});

describe("given a process that accepts requests and never responds", () => {
  const stuck = () => upstreamOf((incoming) => void incoming.resume());

  it.each(["GET", "POST", "DELETE"])(
    "fails a %s in time, and says that it may have been applied",
    async (method) => {
      const { origin } = await stuck();
      const gateway = await gatewayOf({ management: [origin], edges: [], answerWithinMs: 200 });
      const body = method === "POST" ? '{"key":"a"}' : null;
      const error = await errorOf(`${gateway.url}/api/v1/flags`, { method, body });
      expect(error).toMatchObject({
        code: "SERVER_002",
        status: 503,
        message: expect.stringContaining("may have been applied"),
      });
      expect(error.headers.get("retry-after")).toBe("1");
    },
  );

  it("limits neither a stream that is silent after its start nor a body that arrives slowly", async () => {
    const silent = await stuck();
    const opened = promised<ServerResponse>();
    const edge = await upstreamOf((incoming, response) => {
      if (incoming.method === "POST")
        void bodyOf(incoming).then((body) => response.end(`all of ${body}`));
      else {
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        opened.resolve(response);
      }
    });
    const gateway = await gatewayOf({
      management: [silent.origin],
      edges: [edge.origin],
      // Long enough for an immediate response, even on a busy machine.
      answerWithinMs: 1_000,
    });
    const stream = await fetch(`${gateway.url}/api/v1/sdk/stream`);
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const sent = fetch(`${gateway.url}/api/v1/sdk/flags`, {
      method: "POST",
      body: body.readable,
      duplex: "half",
    });
    await writer.write(Buffer.from("one"));
    // Each of these requests runs into the time limit. The stream and the upload stay open longer than that.
    for (let time = 0; time < 2; time++) await errorOf(`${gateway.url}/api/v1/flags`);
    (await opened.promise).end("still there");
    expect(await stream.text()).toBe("still there");
    await writer.write(Buffer.from(" and two"));
    await writer.close();
    expect(await (await sent).text()).toBe("all of one and two");
  });
});

describe("given an SDK or OFREP path that cannot be decoded", () => {
  it.each([
    ["/ofrep/v1/evaluate/flags/a%zz?x=%zz", "/ofrep/v1/evaluate/flags/a%25zz?x=%zz"],
    ["//ofrep/v1/evaluate/flags/a%2F%ff", "/ofrep/v1/evaluate/flags/a%252F%25ff"],
    ["/api/v1/sdk/%zz", "/api/v1/sdk/%25zz"],
    ["/api/v1/sdk/a%2Fb?x=%zz", "/api/v1/sdk/a%2Fb?x=%zz"],
  ])("forwards %s with escaped percent signs", async (path, forwarded) => {
    const edge = await upstreamOf((incoming, response) => response.end(incoming.url));
    const gateway = await gatewayOf({ management: [], edges: [edge.origin] });
    const answered = await fetch(gateway.url + path, { method: "POST" });
    expect(await answered.text()).toBe(forwarded);
  });

  it("returns the key as the client wrote it while no edge is available", async () => {
    const gateway = await gatewayOf({ management: [], edges: [await findUnusedOrigin()] });
    const url = `${gateway.url}/ofrep/v1/evaluate/flags/a%2F%ff`;
    const answered = await fetch(url, { method: "POST" });
    expect(answered.status).toBe(503);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
    expect(await answered.json()).toMatchObject({ key: "a%2F%ff", errorCode: "GENERAL" });
  });
});

describe("given a forwarded address", () => {
  async function forwardedFor(trustedProxies: string[], headers: Record<string, string>) {
    const saw = promised<Record<string, unknown>>();
    const service = await upstreamOf((incoming, response) => {
      saw.resolve(incoming.headers);
      response.end();
    });
    const gateway = await gatewayOf({
      management: [service.origin],
      edges: [service.origin],
      trustedProxies,
    });
    await fetch(`${gateway.url}/api/v1/flags`, { headers });
    return saw.promise;
  }

  const claims = {
    "x-forwarded-for": "203.0.113.9",
    "x-real-ip": "203.0.113.9",
    forwarded: "for=203.0.113.9",
    "x-forwarded-proto": "https",
  };

  it("drops the headers of an untrusted client and adds the address of the connection", async () => {
    const headers = await forwardedFor([], claims);
    expect(headers["x-forwarded-for"]).toBe("127.0.0.1");
    for (const name of ["x-real-ip", "forwarded", "x-forwarded-proto"])
      expect(headers[name]).toBeUndefined();
  });

  it("keeps the headers of a trusted proxy and adds the address of that proxy", async () => {
    const headers = await forwardedFor(["127.0.0.0/8"], claims);
    expect(headers).toMatchObject({ ...claims, "x-forwarded-for": "203.0.113.9, 127.0.0.1" });
  });

  it("trusts no other addresses", async () => {
    const headers = await forwardedFor(["10.0.0.0/8", "::1"], claims);
    expect(headers["x-forwarded-for"]).toBe("127.0.0.1");
  });
});
