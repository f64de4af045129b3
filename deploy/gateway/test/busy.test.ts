import { once } from "node:events";
import { request, type ServerResponse } from "node:http";
import { eventually, startServiceProcess } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type GivenGateway, givenGateway, givenUpstream, type Upstream } from "./given-gateway.ts";

/** Tests of overload: more requests than a service has slots. */
let service: Upstream;
let gateway: GivenGateway;
let held: ServerResponse[];

beforeEach(async () => {
  held = [];
  service = await givenUpstream((incoming, response) => {
    if (incoming.url?.endsWith("?hold") === true) held.push(response);
    else if (incoming.url?.endsWith("/stream") === true)
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
    else incoming.resume().on("end", () => response.end("fine"));
  });
});
afterEach(async () => {
  for (const response of held) response.destroy();
  await gateway.stop();
  await service.close();
});

async function gatewayWith(requestsPerUpstream: number, waitingRequests = 100): Promise<void> {
  gateway = await givenGateway({
    management: [service.origin],
    edges: [service.origin],
    limits: { requestsPerUpstream, waitingRequests },
  });
}

const hold = () => fetch(`${gateway.url}/api/v1/flags?hold`);
const flags = async () => (await fetch(`${gateway.url}/api/v1/flags`)).text();

describe("given a service whose slots are all taken", () => {
  it("queues further requests, and sends them when a slot becomes free", async () => {
    await gatewayWith(2);
    const [first] = [hold(), hold()];
    await eventually(() => held.length === 1, { because: "one address gets half of the slots" });
    const waiting = flags();
    held[0]?.end("done");
    expect(await (await first)?.text()).toBe("done");
    await eventually(() => held.length === 2, { because: "the second request gets a slot" });
    held[1]?.end("done");
    expect(await waiting).toBe("fine");
  });

  it("returns 503 when the queue is full, and does not forward the rejected request", async () => {
    await gatewayWith(1, 10);
    const first = hold();
    await eventually(() => held.length === 1, { because: "the slot is taken" });
    const waiting = Array.from({ length: 11 }, hold);
    const rejected = await Promise.any(waiting);
    expect(rejected.status).toBe(503);
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect(await rejected.json()).toMatchObject({ error: { code: "SERVER_002" } });
    expect(held).toHaveLength(1);
    gateway.app.server.closeAllConnections();
    await Promise.allSettled([first, ...waiting]);
  });

  it("gives the place of a client that disconnected while it waited to the next request", async () => {
    await gatewayWith(1, 1);
    const first = hold();
    await eventually(() => held.length === 1, { because: "the slot is taken" });
    const leave = new AbortController();
    const left = fetch(`${gateway.url}/api/v1/flags?hold`, { signal: leave.signal });
    const [, response] = await once(gateway.app.server, "request");
    const noticed = once(response, "close");
    leave.abort();
    await expect(left).rejects.toThrow();
    await noticed;
    const next = flags();
    await once(gateway.app.server, "request");
    held[0]?.end("done");
    await (await first).text();
    expect(await next).toBe("fine");
    expect(held).toHaveLength(1);
  });
});

describe("given open streams and slow clients", () => {
  it("does not count open streams as requests", async () => {
    await gatewayWith(1);
    for (let time = 0; time < 3; time++)
      expect((await fetch(`${gateway.url}/api/v1/sdk/stream`)).status).toBe(200);
    expect(await (await fetch(`${gateway.url}/api/v1/sdk/flags`)).text()).toBe("fine");
  });

  it.each([10, 100_000])(
    "serves other requests while bodies that begin with %i bytes never end",
    async (size) => {
      await gatewayWith(1);
      const uploads = Array.from({ length: 3 }, () => {
        const upload = request(`${gateway.url}/api/v1/flags`, { method: "POST" });
        upload.on("error", () => undefined);
        upload.write(Buffer.alloc(size));
        return upload;
      });
      for (let count = 0; count < uploads.length; count++)
        await once(gateway.app.server, "request");
      expect(await flags()).toBe("fine");
      for (const upload of uploads) upload.destroy();
    },
  );
});

describe("given the gateway's public readiness", () => {
  it("does not list the upstreams; the metrics port does", async () => {
    await gatewayWith(1);
    const origin = service.origin.origin;
    const gatewayProcess = await startServiceProcess("gateway", {
      UPSTREAM_MANAGEMENT_URL: origin,
      UPSTREAM_SCHEDULER_URL: origin,
      UPSTREAM_SDK_EDGE_URL: origin,
      UPSTREAM_USAGE_METERING_URL: origin,
      UPSTREAM_WEBHOOK_DISPATCHER_URL: origin,
    });
    const shown = await fetch(`${gatewayProcess.url}/readyz`);
    const body = await shown.json();
    const details = await (await fetch(`${gatewayProcess.metricsUrl}/readyz`)).json();
    await gatewayProcess.stop();
    expect({ status: shown.status, body }).toEqual({ status: 200, body: { ready: true } });
    expect(details).toMatchObject({ ready: true, upstreams: { management: [{ url: origin }] } });
  });
});
