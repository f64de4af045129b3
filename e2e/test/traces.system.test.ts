import {
  type CollectedSpan,
  type Collector,
  call,
  eventually,
  openEventStream,
  type Receiver,
  startCollector,
  startReceiver,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Settings, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, type Tenant } from "../src/system/tenancy.ts";
import { createFlags } from "../src/traffic/changes.ts";

/** Writes the URL of each loaded module of OpenTelemetry into the log. The client of Prometheus loads its interface. */
const listModules = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) {
  if (/@opentelemetry\\/(?!api\\/)/.test(url)) process.stderr.write("loaded " + url + "\\n");
  return next(url, context);
} });`;
const listingModules = {
  NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(listModules)}"`,
};

const services = [
  ...(["management", "scheduler", "webhook-dispatcher"] as const),
  ...(["usage-metering", "sdk-edge"] as const),
];
const forAll = (variables: Record<string, string>): Settings =>
  Object.fromEntries(services.map((name) => [name, variables]));

const startAll = (variables: Record<string, string>) =>
  startSystem({
    ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 },
    settings: () => forAll({ ...variables, ...listingModules }),
  });

const processesOf = ({ managements, schedulers, dispatchers, meterings, edges }: System) => [
  ...[...managements, ...schedulers, ...dispatchers, ...meterings],
  ...edges.map(({ process }) => process),
];

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const callerSpanId = "00f067aa0ba902b7";
const traceparent = `00-${traceId}-${callerSpanId}-01`;
const tracestate = "vendor=value";
/** A value that a client sends in places that no span may contain. */
const mark = "marked-0d9f2c";

describe("given a system whose processes send traces to a collector", () => {
  let collector: Collector;
  let receiver: Receiver;
  let system: System;
  let tenant: Tenant;
  let flagId: string;

  beforeAll(async () => {
    [collector, receiver] = await Promise.all([startCollector(), startReceiver()]);
    system = await startAll(collector.environment);
    system.endsWithSystem(collector.close);
    system.endsWithSystem(receiver.close);
    tenant = await createTenant(urlOf("management"), { name: "Acme" });
    const [flag] = await createFlags(urlOf("management"), tenant.serverKey, ["checkout"]);
    flagId = flag?.id ?? "";
    await hook("/with", { trace_context: true });
    await hook("/without", {});
  });
  afterAll(() => system?.close());

  function urlOf(service: "management" | "dispatcher" | "edge" | "scheduler"): string {
    const { managements, dispatchers, edges, schedulers } = system;
    const found = {
      management: managements[0],
      dispatcher: dispatchers[0],
      edge: edges[0],
      scheduler: schedulers[0],
    }[service];
    return found?.url ?? "";
  }

  const hook = (path: string, settings: object) =>
    must(`${urlOf("dispatcher")}/api/v1/projects/${tenant.projectId}/webhooks`, {
      method: "POST",
      key: tenant.serverKey,
      body: { name: path, url: receiver.url + path, events: ["flag.toggled"], ...settings },
    });

  const spansNamed = (name: string, trace = traceId): CollectedSpan[] =>
    collector.spans().filter((span) => span.name === name && span.traceId === trace);

  const oneSpan = (name: string, trace?: string) =>
    eventually(() => spansNamed(name, trace)[0], { because: `there is a span ${name}` });

  const entry = "$KV.SNAPSHOT_2.{organization_id}.flag.{environment_id}.{flag_id}";

  it("puts a change into one trace, from the caller to the streams and the receivers", async () => {
    const stream = await openEventStream(`${urlOf("edge")}/api/v1/sdk/stream`, {
      authorization: `Bearer ${tenant.clientKey}`,
    });
    const changed = await call(`${urlOf("management")}/api/v1/flags/${flagId}?${mark}=${mark}`, {
      method: "PATCH",
      key: tenant.serverKey,
      headers: { traceparent, tracestate, "x-user-id": mark },
      body: { enabled: true },
    });
    // The query is not valid. The rejected request has a span, too.
    expect(changed.status).toBe(400);
    await must(`${urlOf("management")}/api/v1/flags/${flagId}`, {
      method: "PATCH",
      key: tenant.serverKey,
      headers: { traceparent, tracestate },
      body: { enabled: true },
    });

    const transaction = await oneSpan("transaction");
    const server = await eventually(() =>
      collector.spans().find(({ spanId }) => spanId === transaction.parentSpanId),
    );
    expect(server).toMatchObject({
      service: "management",
      name: "PATCH /api/v1/flags/:id",
      kind: "server",
      traceId,
      parentSpanId: callerSpanId,
      attributes: {
        "http.request.method": "PATCH",
        "http.route": "/api/v1/flags/:id",
        "url.path": `/api/v1/flags/${flagId}`,
        "http.response.status_code": 200,
      },
    });
    const sent = await oneSpan(`send ${entry}`);
    expect(sent).toMatchObject({
      kind: "producer",
      parentSpanId: transaction.spanId,
      attributes: {
        "messaging.system": "nats",
        "messaging.destination.name": entry,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.message.id": expect.any(String),
      },
    });
    const processed = await oneSpan(`process ${entry}`);
    expect(processed).toMatchObject({
      service: "sdk-edge",
      kind: "consumer",
      parentSpanId: sent.spanId,
    });
    expect(await oneSpan("broadcast")).toMatchObject({
      parentSpanId: processed.spanId,
      links: [processed.spanId],
      attributes: { "halyard.environment.id": tenant.environmentId },
    });
    const event = await oneSpan("send flag.toggled");
    expect(event.parentSpanId).toBe(transaction.spanId);
    const received = await oneSpan("process flag.toggled");
    expect(received).toMatchObject({
      service: "webhook-dispatcher",
      kind: "consumer",
      parentSpanId: event.spanId,
    });
    const attempts = await eventually(() => spansNamed("POST"), {
      until: (found) => found.length === 2,
    });
    for (const attempt of attempts)
      expect(attempt).toMatchObject({
        kind: "client",
        parentSpanId: received.spanId,
        attributes: { "server.address": "127.0.0.1", "http.response.status_code": 200 },
      });
    stream.close();
    const metrics = await fetch(`${system.edges[0]?.process.metricsUrl}/metrics`);
    expect(metrics.headers.get("content-type")).toMatch(/^application\/openmetrics-text/);
    expect(await metrics.text()).toMatch(
      new RegExp(`^halyard_change_propagation_seconds_bucket.* # \\{trace_id="${traceId}"\\}`, "m"),
    );
    const [continued] = receiver.requests.filter(({ path }) => path === "/with");
    expect(attempts.map(({ spanId }) => `00-${traceId}-${spanId}-01`)).toContain(
      continued?.headers.traceparent,
    );
    expect(continued?.headers.tracestate).toBe(tracestate);
    const [other] = receiver.requests.filter(({ path }) => path === "/without");
    expect(other?.headers).not.toHaveProperty("traceparent");
    expect(other?.headers).not.toHaveProperty("tracestate");
    expect(JSON.stringify(collector.spans())).not.toContain(mark);
  });

  it("puts the trace id into the log lines of a request, also of an error response", async () => {
    const trace = "a".repeat(32);
    const rejected = await call(`${urlOf("management")}/api/v1/flags/${flagId}`, {
      method: "PATCH",
      key: tenant.serverKey,
      headers: { traceparent: `00-${trace}-${callerSpanId}-01`, "x-request-id": "rejected" },
      body: { enabled: "yes" },
    });
    expect(rejected.status).toBe(400);
    await eventually(() =>
      (system.managements[0]?.log() ?? "")
        .split("\n")
        .find((line) => line.includes('"rejected"') && line.includes(`"trace_id":"${trace}"`)),
    );
  });

  it("begins the trace of a scheduled change when it is sent", async () => {
    const url = `${urlOf("scheduler")}/api/v1/flags/${flagId}/environments/${tenant.environmentId}/schedule`;
    // On a busy machine, the time may have passed before it arrives.
    await eventually(() => {
      const soon = new Date(Date.now() + 1_000).toISOString();
      return must(url, { method: "POST", key: tenant.serverKey, body: { disable_at: soon } });
    });
    const due = await eventually(() =>
      collector.spans().find(({ name }) => name === "send schedule.due"),
    );
    expect(due).toMatchObject({ service: "scheduler", kind: "producer", parentSpanId: undefined });
    const made = await oneSpan("process schedule.due", due.traceId);
    expect(made).toMatchObject({ service: "management", parentSpanId: due.spanId });
    expect((await oneSpan("transaction", due.traceId)).parentSpanId).toBe(made.spanId);
    expect((await oneSpan(`process ${entry}`, due.traceId)).service).toBe("sdk-edge");
    expect((await oneSpan("send schedule.resolved", due.traceId)).parentSpanId).toBe(made.spanId);
  });

  it("counts usage in one span for each group of messages", async () => {
    await must(`${urlOf("edge")}/api/v1/sdk/flags`, { key: tenant.clientKey });
    const counted = await eventually(() =>
      collector.spans().find(({ name }) => name === "process usage.recorded"),
    );
    expect(counted).toMatchObject({ service: "usage-metering", kind: "consumer" });
    expect(counted.links).toHaveLength(Number(counted.attributes["messaging.batch.message_count"]));
    const sent = collector.spans().filter(({ name }) => name === "send usage.recorded");
    expect(sent.map(({ spanId }) => spanId)).toEqual(expect.arrayContaining(counted.links));
  });

  it("has no spans for SDK requests and streams", () => {
    expect(
      collector.spans().filter(({ kind, service }) => kind === "server" && service === "sdk-edge"),
    ).toEqual([]);
  });

  it("loads the SDK of OpenTelemetry", () => {
    for (const process of processesOf(system)) expect(process.log()).toContain("loaded ");
  });
});

it("loads no SDK of OpenTelemetry without an endpoint, and sends no trace context", async () => {
  const system = await startAll({});
  try {
    const [management, dispatcher, edge] = [system.managements, system.dispatchers, system.edges];
    const receiver = await startReceiver();
    system.endsWithSystem(receiver.close);
    const tenant = await createTenant(management[0]?.url ?? "", { name: "Acme" });
    const { serverKey: key, projectId } = tenant;
    const [flag] = await createFlags(management[0]?.url ?? "", key, ["checkout"]);
    await must(`${dispatcher[0]?.url}/api/v1/projects/${projectId}/webhooks`, {
      ...{ method: "POST", key },
      body: { name: "a", url: receiver.url, events: ["flag.toggled"], trace_context: true },
    });
    await must(`${management[0]?.url}/api/v1/flags/${flag?.id}`, {
      ...{ method: "PATCH", key, body: { enabled: true } },
      headers: { traceparent, tracestate },
    });
    const delivered = await eventually(() => receiver.requests[0]);
    expect(delivered.headers).not.toHaveProperty("traceparent");
    await must(`${edge[0]?.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
    const stored = await system.sql`select from outbox where traceparent is not null`;
    expect(stored).toHaveLength(0);
    for (const process of processesOf(system)) expect(process.log()).not.toContain("loaded ");
  } finally {
    await system.close();
  }
});

describe.each([
  ["refuses connections", async () => ({ url: "http://127.0.0.1:1" })],
  [
    "never responds",
    async () => {
      const receiver = await startReceiver();
      receiver.answer({ kind: "hang" });
      return receiver;
    },
  ],
])(
  "given a collector that %s",
  (_what, open: () => Promise<{ url: string } & Partial<Receiver>>) => {
    it("serves changes, logs one line, and stops", async () => {
      const collector = await open();
      const system = await startSystem({
        ...{ managements: 1, edges: 1 },
        settings: () =>
          forAll({
            OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
            OTEL_EXPORTER_OTLP_TIMEOUT: "300",
            OTEL_BSP_SCHEDULE_DELAY: "10",
          }),
      });
      try {
        const [management] = system.managements;
        const tenant = await createTenant(management?.url ?? "", { name: "Acme" });
        const lost = () => management?.log().split("traces could not be sent").length;
        await eventually(() => lost() === 2);
        await createFlags(management?.url ?? "", tenant.serverKey, ["one", "two", "three"]);
        expect(await management?.stop()).toBe(0);
        expect(lost()).toBe(2);
      } finally {
        await system.close();
        await collector.close?.();
      }
    });
  },
);
