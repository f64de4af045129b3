import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { findFreePort, findHaproxy, libraryVariables } from "@halyard/local-backends";
import {
  eventually,
  makeCertificates,
  type ServiceProcess,
  startServiceProcess,
} from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import { cacheDir, startHaproxy } from "../src/system/haproxy.ts";

/** Tests of both gateways, the built-in proxy and HAProxy with the generated configuration, before plain servers. */
const releases: (() => unknown)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0).toReversed()) await release();
});

type Answer = (incoming: IncomingMessage, response: ServerResponse) => unknown;

/** Starts a server in the role of a service, which is ready. Returns its URL. */
async function givenServer(
  answer: Answer,
  { address = "127.0.0.1", port = 0 } = {},
): Promise<string> {
  const server = createServer({ maxHeaderSize: 64 * 1024 }, (incoming, response) => {
    if (incoming.url === "/readyz") response.end();
    else answer(incoming, response);
  });
  server.listen(port, address);
  await once(server, "listening");
  releases.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://${address}:${(server.address() as AddressInfo).port}`;
}

const serves =
  (body: string): Answer =>
  (_incoming, response) =>
    response.end(body);
const drains: Answer = (_incoming, response) =>
  response.writeHead(503, { connection: "close" }).end("draining");
const breaks: Answer = (incoming) => incoming.socket.destroy();

const unused = "http://127.0.0.1:1";

type Given = {
  edges: readonly string[];
  management?: string;
  dashboard?: string;
  settings?: Record<string, string>;
  /** Name and port of the edges in DNS, and the address of the DNS server. */
  byName?: { name: string; dns: string };
};

async function startGateway(
  kind: "built-in" | "haproxy",
  { edges, management = unused, dashboard = unused, settings = {}, byName }: Given,
): Promise<ServiceProcess> {
  const others = {
    ...{ management, "sdk-edge": edges.join(",") },
    ...{ scheduler: unused, "usage-metering": unused },
    ...{ "webhook-dispatcher": unused, dashboard },
  };
  const variables = Object.entries(others).map(([name, urls]) => [
    `UPSTREAM_${name.toUpperCase().replace("-", "_")}_URL`,
    urls,
  ]);
  const gateway =
    kind === "haproxy"
      ? await startHaproxy(others, settings, byName)
      : await startServiceProcess("gateway", { ...Object.fromEntries(variables), ...settings });
  releases.push(gateway.kill);
  return gateway;
}

/** Sends bytes, and returns everything until the gateway closes the connection. */
async function sendRaw({ url }: ServiceProcess, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(bytes);
  return text(socket);
}

describe.each(["built-in", "haproxy"] as const)("given the gateway %s", (kind) => {
  const given = (options: Given) => startGateway(kind, options);

  describe("given unavailable edges", () => {
    it.each([
      ["drains", drains],
      ["breaks off", breaks],
    ])("sends a read to the next edge while one %s", async (_what, answer) => {
      const edges = [await givenServer(answer), await givenServer(serves("served"))];
      const { url } = await given({ edges });
      for (let time = 0; time < 6; time++)
        expect(await (await fetch(`${url}/api/v1/sdk/flags`)).text()).toBe("served");
    });

    it.each(["GET", "POST", "DELETE"])(
      "sends a %s to the next edge if one is away",
      async (method) => {
        const edges = [unused, await givenServer(serves("served"))];
        const { url } = await given({ edges });
        for (let time = 0; time < 6; time++) {
          const answered = await fetch(`${url}/api/v1/sdk/evaluate`, { method });
          expect(await answered.text()).toBe("served");
        }
      },
    );

    it.each(["POST", "PATCH", "PUT", "DELETE"])("never sends a %s twice", async (method) => {
      let received = 0;
      const management = await givenServer((incoming) => {
        received += 1;
        incoming.socket.destroy();
      });
      const { url } = await given({ edges: [unused], management });
      const body = method === "DELETE" ? null : "{}";
      for (let time = 1; time <= 3; time++) {
        const status = await fetch(`${url}/api/v1/flags/a`, { method, body }).then(
          (answered) => answered.status,
          () => "closed",
        );
        // HAProxy closes a connection that had served an earlier request.
        expect(kind === "haproxy" && time > 1 ? [503, "closed"] : [503]).toContain(status);
        expect(received).toBe(time);
      }
    });
  });

  it.each(["usage", "%75sage"])(
    "never sends a report to /sdk/%s to a second edge after the first one has received it",
    async (path) => {
      let received = 0;
      const count: Parameters<typeof givenServer>[0] = (incoming, response) => {
        received += 1;
        drains(incoming, response);
      };
      const { url } = await given({ edges: [await givenServer(count), await givenServer(count)] });
      await fetch(`${url}/api/v1/sdk/${path}`, { method: "POST", body: "{}" });
      expect(received).toBe(1);
    },
  );

  describe("without an edge", () => {
    it("responds in the form of the services, to any origin, with the id of the request", async () => {
      const { url } = await given({ edges: [unused] });
      const headers = { "x-request-id": 'mine"\\' };
      const answered = await fetch(`${url}//api/v1/sdk/flags`, { headers });
      expect(answered.status).toBe(503);
      expect(Object.fromEntries(answered.headers)).toMatchObject({
        "access-control-allow-origin": "*",
        "access-control-expose-headers": expect.stringContaining("Retry-After"),
        "content-type": "application/json; charset=utf-8",
        "retry-after": "1",
        "x-content-type-options": "nosniff",
        "x-request-id": 'mine"\\',
      });
      expect(await answered.json()).toEqual({
        error: {
          code: "SERVER_002",
          category: "SERVER",
          message: expect.stringContaining("unavailable"),
          status: 503,
        },
      });
    });

    it.each([
      ["evaluate/flags", {}],
      ["evaluate/flags/a%2Fb%22%0A?x=1", { key: 'a/b"\n' }],
      ["stream?token=t", {}],
    ])("responds in the form of OFREP to %s", async (path, about) => {
      const { url } = await given({ edges: [unused] });
      const answered = await fetch(`${url}/ofrep/v1/${path}`, { method: "POST" });
      expect(answered.status).toBe(503);
      expect(answered.headers.get("access-control-allow-origin")).toBe("*");
      expect(await answered.json()).toEqual({
        ...about,
        errorCode: "GENERAL",
        errorDetails: expect.any(String),
      });
    });
  });

  describe("given requests", () => {
    it("forwards 16 KiB of context and the headers of browsers beside it", async () => {
      const edge = await givenServer((incoming, response) =>
        response.end(String(incoming.headers["x-user-context"]?.length)),
      );
      const { url } = await given({ edges: [edge] });
      const headers = { "x-user-context": "c".repeat(16 * 1024), baggage: "b".repeat(4_000) };
      expect(await (await fetch(`${url}/api/v1/sdk/flags`, { headers })).text()).toBe("16384");
    });

    const claims = {
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-proto": "https",
      "x-real-ip": "203.0.113.9",
      forwarded: "for=203.0.113.9",
    };

    it.each([
      [
        "drops the claims of an untrusted client",
        "10.0.0.0/8,::1",
        { "x-forwarded-for": "127.0.0.1" },
      ],
      [
        "keeps the claims of a trusted proxy",
        "10.0.0.0/8, 127.0.0.0/8",
        {
          ...claims,
          "x-forwarded-for": kind === "haproxy" ? "203.0.113.9" : "203.0.113.9, 127.0.0.1",
        },
      ],
    ])("%s about its address", async (_what, trusted, expected) => {
      const management = await givenServer((incoming, response) =>
        response.end(JSON.stringify(incoming.headers)),
      );
      const settings = { TRUSTED_PROXIES: trusted };
      const { url } = await given({ edges: [unused], management, settings });
      const answered = await fetch(`${url}/api/v1/flags`, { headers: claims });
      const seen = (await answered.json()) as Record<string, string>;
      const named = Object.keys(claims).flatMap((name) =>
        name in seen ? [[name, seen[name]]] : [],
      );
      expect(Object.fromEntries(named)).toEqual(expected);
    });

    it("forwards a chunked body unchanged", async () => {
      const seen: string[] = [];
      const management = await givenServer(async (incoming, response) => {
        seen.push(`${incoming.method} ${incoming.url} ${await text(incoming)}`);
        response.end();
      });
      const { url } = await given({ edges: [unused], management });
      const outgoing = request(`${url}/api/v1/flags`, {
        method: "DELETE",
        headers: { "transfer-encoding": "chunked" },
      });
      outgoing.end("GET /smuggled HTTP/1.1\r\n\r\n");
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      await text(response);
      expect(seen).toEqual(["DELETE /api/v1/flags GET /smuggled HTTP/1.1\r\n\r\n"]);
    });

    it.each([
      ["two different Host headers", "Host: a\r\nHost: b\r\n\r\n"],
      [
        "an unknown transfer coding",
        "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      ],
      ["two different lengths", "Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
      ["a space before the colon", "Host: a\r\nContent-Length : 1\r\n\r\na"],
    ])(
      "rejects %s, or leaves it to the service, which gets no second request",
      async (_what, rest) => {
        let requests = 0;
        const management = await givenServer((incoming, response) => {
          requests += 1;
          incoming.resume();
          response.writeHead(400).end();
        });
        const gateway = await given({ edges: [unused], management });
        const head = "POST /api/v1/flags HTTP/1.1\r\nConnection: close\r\n";
        expect(await sendRaw(gateway, head + rest)).toMatch(/^HTTP\/1\.1 4\d\d /);
        expect(requests).toBeLessThanOrEqual(1);
      },
    );
  });

  describe("given an installation that browsers open at localhost", () => {
    const page = { accept: "text/html,*/*" };

    async function load(
      path: string,
      init: RequestInit,
      { publicUrl = "http://localhost:8080", host = "127.0.0.1" } = {},
    ) {
      const server = await givenServer(serves("served"));
      const settings = { PUBLIC_URL: publicUrl };
      const { url } = await given({
        ...{ edges: [unused], management: server, dashboard: server, settings },
      });
      const at = url.replace("127.0.0.1", host);
      const { status, headers } = await fetch(at + path, { redirect: "manual", ...init });
      return [status, headers.get("location")];
    }

    it("redirects page loads at 127.0.0.1, with their path and query", async () => {
      expect(await load("/flags?tag=a", { headers: page })).toEqual([
        ...[307, "http://localhost:8080/flags?tag=a"],
      ]);
    });

    it("stays on this host for paths that name another one", async () => {
      const [status, location] = await load("//example.com/", { headers: page });
      expect([status, location]).toEqual([
        ...[307, expect.stringMatching(/^http:\/\/localhost:8080\//)],
      ]);
    });

    it.each<[string, string, RequestInit]>([
      ["a call of the API", "/api/v1/flags", { headers: page }],
      ["a file of a page", "/assets/index.js", { headers: { accept: "*/*" } }],
      ["a write", "/flags", { method: "POST", headers: page }],
    ])("forwards %s", async (_what, path, init) => {
      expect(await load(path, init)).toEqual([200, null]);
    });

    it.each([
      ["at localhost", { host: "localhost" }],
      ["of an installation at another address", { publicUrl: "https://flags.example.com" }],
    ])("forwards page loads %s", async (_what, options) => {
      expect(await load("/flags", { headers: page }, options)).toEqual([200, null]);
    });
  });

  describe("given streams", () => {
    const opensStream =
      (opened: (response: ServerResponse) => void): Answer =>
      (_incoming, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        opened(response);
      };

    it("forwards each event immediately, and closes when the reader leaves", async () => {
      const { promise: opened, resolve } = Promise.withResolvers<ServerResponse>();
      const { url } = await given({ edges: [await givenServer(opensStream(resolve))] });
      const leave = new AbortController();
      const answered = await fetch(`${url}/api/v1/sdk/stream`, { signal: leave.signal });
      const reader = (answered.body as ReadableStream<Uint8Array>).getReader();
      const response = await opened;
      for (const event of ["event: flags\n\n", "event: heartbeat\n\n"]) {
        response.write(event);
        const { value } = await reader.read();
        expect(Buffer.from(value as Uint8Array).toString()).toBe(event);
      }
      const closed = once(response, "close");
      leave.abort();
      await closed;
    });

    it("ends them when it stops, within 18 s, and exits", async () => {
      const { promise: opened, resolve } = Promise.withResolvers<ServerResponse>();
      const gateway = await given({ edges: [await givenServer(opensStream(resolve))] });
      const answered = await fetch(`${gateway.url}/api/v1/sdk/stream`);
      await opened;
      const ended = expect(answered.text()).rejects.toThrow();
      const stoppedAt = performance.now();
      const status = await gateway.stop();
      await ended;
      expect(performance.now() - stoppedAt).toBeLessThan(18_000);
      // HAProxy exits with 1 if it had to end streams.
      expect(kind === "haproxy" ? [0, 1] : [0]).toContain(status);
    }, 60_000);
  });
});

describe("given HAProxy", () => {
  const given = (options: Given) => startGateway("haproxy", options);

  it("sends an edge that hangs no new request after 3.5 s, and repeats the reads that it holds", async () => {
    const hanging = await startServiceProcess("dashboard", {});
    releases.push(hanging.kill);
    const { url, metricsUrl } = await given({
      edges: [hanging.url, await givenServer(serves("served"))],
    });
    const ask = async () => (await fetch(`${url}/api/v1/sdk/flags`)).status;
    hanging.signal("SIGSTOP");
    const stoppedAt = performance.now();
    const held = Array.from({ length: 4 }, ask);
    const isDown = 'haproxy_server_status{proxy="sdk-edge",server="process-1",state="DOWN"} 1';
    await eventually(
      async () => (await (await fetch(`${metricsUrl}/metrics`)).text()).includes(isDown),
      { because: "the checks have failed" },
    );
    expect(performance.now() - stoppedAt).toBeLessThan(3_500);
    // More than it holds, so that the number of its open requests alone would not protect them.
    const askedAt = performance.now();
    expect(await Promise.all(Array.from({ length: 20 }, ask))).toEqual(Array(20).fill(200));
    expect(performance.now() - askedAt).toBeLessThan(2_000);
    expect(await Promise.all(held)).toEqual([200, 200, 200, 200]);
  }, 60_000);

  it.each(["gateway/haproxy", "kubernetes/components/haproxy"])(
    "accepts the configuration in deploy/%s",
    async (folder) => {
      const file = join(import.meta.dirname, "../../deploy", folder, "haproxy.cfg");
      const binary = await findHaproxy({ cacheDir });
      const options = { env: libraryVariables(binary) };
      const { stdout } = await promisify(execFile)(binary, ["-c", "-f", file], options);
      expect(stdout).toContain("Configuration file is valid");
    },
  );

  it.each([
    ["of two trusted proxies", "203.0.113.9, 10.0.0.7", "203.0.113.9"],
    ["of a client in a network that services trust", "203.0.113.66, 192.168.1.50", "192.168.1.50"],
    ["without an address", "unknown", "127.0.0.1"],
  ])("passes on one address from the claims %s", async (_whose, claimed, expected) => {
    const management = await givenServer(({ headers }, response) =>
      response.end(headers["x-forwarded-for"]),
    );
    const settings = { TRUSTED_PROXIES: "10.0.0.0/8, 127.0.0.1" };
    const { url } = await given({ edges: [unused], management, settings });
    const headers = { "x-forwarded-for": claimed };
    expect(await (await fetch(`${url}/api/v1/flags`, { headers })).text()).toBe(expected);
  });

  it("finds edges by DNS when they start, up to thirty of them", async () => {
    const port = await findFreePort("127.0.0.1");
    const addresses = Array.from({ length: 30 }, (_, index) => `127.0.1.${index + 1}`);
    for (const address of addresses) await givenServer(serves(address), { address, port });
    let known = 1;
    const dns = await startDnsServer(() => addresses.slice(0, known));
    const { url } = await given({ edges: [unused], byName: { name: `edges.test:${port}`, dns } });
    const served = async () => {
      const asked = Array.from({ length: 60 }, async () =>
        (await fetch(`${url}/api/v1/sdk/flags`)).text(),
      );
      return new Set(await Promise.all(asked)).size;
    };
    for (const count of [1, 2, 30]) {
      known = count;
      await eventually(async () => (await served()) === count, {
        because: `${count} edges are found`,
      });
    }
  }, 60_000);

  it("limits the connections of an address that is no trusted proxy", async () => {
    const edges = [await givenServer(serves("served"))];
    const limit = { MAX_CONNECTIONS_PER_ADDRESS: "2" };
    for (const [settings, expected] of [
      [limit, 2],
      [{ ...limit, TRUSTED_PROXIES: "127.0.0.2" }, 4],
    ] as const) {
      const { url } = await given({ edges, settings });
      const port = Number(new URL(url).port);
      const outcomes = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
          releases.push(() => socket.destroy());
          socket.write("GET /api/v1/sdk/flags HTTP/1.1\r\nHost: a\r\n\r\n");
          return once(socket, "data").then(
            () => "served",
            () => "closed",
          );
        }),
      );
      expect(outcomes.filter((outcome) => outcome === "served")).toHaveLength(expected);
    }
  });

  it("serves HTTP/2 over TLS where a certificate is given, with IPv6 and IPv4 at ::", async () => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-certificates-"));
    releases.push(() => rmSync(directory, { recursive: true }));
    const { caFile, certFile, keyFile } = makeCertificates(directory);
    const both = join(directory, "both.pem");
    writeFileSync(both, readFileSync(certFile, "utf8") + readFileSync(keyFile, "utf8"));
    const port = await findFreePort("127.0.0.1");
    const edge = await givenServer(({ headers }, response) =>
      response.end(headers["x-forwarded-for"]),
    );
    await given({
      edges: [edge],
      settings: { TLS_CERTIFICATE_FILE: both, TLS_HOST: "::", TLS_PORT: String(port) },
    });
    for (const [address, family] of [
      ["127.0.0.1", 4],
      ["::1", 6],
    ] as const) {
      const session = connectHttp2(`https://localhost:${port}`, {
        ca: readFileSync(caFile),
        lookup: (_name, _options, done) => done(null, [{ address, family }]),
      });
      releases.push(() => session.destroy());
      const asked = session.request({ ":path": "/api/v1/sdk/flags" });
      const [headers] = await once(asked, "response");
      expect(headers["strict-transport-security"]).toBe("max-age=31536000");
      expect(session.remoteSettings.maxConcurrentStreams).toBe(20);
      expect([headers[":status"], await text(asked), session.alpnProtocol]).toEqual([
        200,
        address,
        "h2",
      ]);
    }
  });

  it("serves readiness and metrics on a separate port", async () => {
    const { metricsUrl } = await given({ edges: [await givenServer(serves("served"))] });
    for (const path of ["/healthz", "/readyz"])
      expect((await fetch(metricsUrl + path)).status).toBe(200);
    expect(await (await fetch(`${metricsUrl}/metrics`)).text()).toContain(
      "haproxy_frontend_http_requests_total",
    );
  });

  it("is not ready while it reaches no process at all", async () => {
    const { metricsUrl } = await given({ edges: [unused] });
    await eventually(async () => (await fetch(`${metricsUrl}/readyz`)).status === 503, {
      because: "the first checks have failed",
    });
    expect((await fetch(`${metricsUrl}/healthz`)).status).toBe(200);
  });
});

/** Starts a DNS server that returns the addresses for every name. Returns its address. */
async function startDnsServer(addresses: () => readonly string[]): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    // The question ends after the name, its type and its class. A client may add further records, which are left out.
    const end = query.indexOf(0, 12) + 5;
    const isForA = query.readUInt16BE(end - 4) === 1;
    const answers = (isForA ? addresses() : []).map((each) =>
      // A reference to the name, type A, class IN, a second, four bytes.
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...each.split(".").map(Number)]),
    );
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(answers.length, 6);
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  releases.push(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}
