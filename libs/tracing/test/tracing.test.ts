import { eventually, type Receiver, startCollector, startReceiver } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import { startMessaging } from "../src/messaging.ts";
import type { TracingConfig } from "../src/span.ts";
import {
  currentSpan,
  inSpan,
  inStep,
  isTracing,
  onTracesLost,
  startSpan,
  startTracing,
  stopTracing,
  traceFields,
  withSpan,
} from "../src/tracing.ts";

const defaults: TracingConfig = {
  OTEL_SDK_DISABLED: false,
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_TRACES_SAMPLER: "parentbased_always_on",
  OTEL_TRACES_SAMPLER_ARG: 1,
  OTEL_BSP_SCHEDULE_DELAY: 10,
  OTEL_BSP_MAX_QUEUE_SIZE: 100,
};
const endpoint = "http://127.0.0.1:1";
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const notSampled = traceparent.replace(/01$/, "00");

const begun: (() => Promise<void>)[] = [];
afterEach(async () => {
  await stopTracing();
  onTracesLost(() => undefined);
  for (const end of begun.splice(0)) await end();
  for (const name of Object.keys(process.env))
    if (name.startsWith("OTEL_")) delete process.env[name];
});

async function begin(config: Partial<TracingConfig> = {}) {
  const collector = await startCollector();
  begun.push(collector.close);
  await startTracing("tests", {
    ...defaults,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...config,
  });
  /** Ends the traces and returns the spans. */
  return async () => {
    await stopTracing();
    return collector.spans();
  };
}

describe("without traces", () => {
  it.each<[string, Partial<TracingConfig>]>([
    ["there is no endpoint", {}],
    ["the SDK is disabled", { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: true }],
    [
      "the exporter is none",
      { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: "none" },
    ],
  ])("nothing begins: %s", async (_why, config) => {
    await startTracing("tests", { ...defaults, ...config });
    expect(isTracing()).toBe(false);
    expect(startSpan("work")).toBeUndefined();
    expect(await inSpan(undefined, async () => currentSpan())).toBeUndefined();
    expect(traceFields()).toEqual({});
  });
});

describe("with traces", () => {
  it("sends a span with the name of the service, its kind, parent, links and attributes", async () => {
    const end = await begin();
    const link = startSpan("linked", { parent: null });
    const span = startSpan("work", {
      kind: "client",
      parent: { traceparent, tracestate: "vendor=value" },
      links: link ? [link.context] : [],
      attributes: { given: 1, absent: undefined },
    });
    span?.setAttributes({ later: "text" });
    expect(span?.context).toEqual({
      traceparent: expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/),
      tracestate: "vendor=value",
    });
    span?.end();
    const [sent] = await end();
    expect(sent).toMatchObject({
      service: "tests",
      name: "work",
      kind: "client",
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      parentSpanId: "00f067aa0ba902b7",
      links: [link?.context.traceparent.split("-")[2]],
      attributes: { given: 1, later: "text" },
      isFailed: false,
    });
  });

  it("sends headers and attributes that were read from files, and ignores empty variables", async () => {
    process.env.OTEL_RESOURCE_ATTRIBUTES = "";
    const collector = await startCollector();
    begun.push(collector.close);
    const config = {
      ...defaults,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-token=a%20secret",
      OTEL_SERVICE_NAME: "another name",
    };
    await startTracing("tests", config);
    startSpan("work")?.end();
    await stopTracing();
    expect(collector.requests[0]?.headers["x-token"]).toBe("a secret");
    expect(collector.spans()).toMatchObject([{ service: "another name" }]);
  });

  it("names the version of the semantic conventions", async () => {
    const collector = await startCollector();
    begun.push(collector.close);
    await startTracing("tests", { ...defaults, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    startSpan("work")?.end();
    await stopTracing();
    const schemaUrl = "https://opentelemetry.io/schemas/1.44.0";
    expect(JSON.parse(String(collector.requests[0]?.raw))).toMatchObject({
      resourceSpans: [{ schemaUrl, scopeSpans: [{ schemaUrl }] }],
    });
  });

  it("gives nested work the current span as the parent, also after a wait", async () => {
    const end = await begin();
    await inSpan(startSpan("outer"), async () => {
      await Promise.resolve();
      await inStep("inner", async () => undefined);
    });
    await inStep("without a current span", async () => undefined);
    const [inner, outer, ...others] = await end();
    expect(outer).toMatchObject({ name: "outer", parentSpanId: undefined });
    expect(inner).toMatchObject({ name: "inner", parentSpanId: outer?.spanId });
    expect(others).toEqual([]);
  });

  it("begins a trace where the parent is null, inside of another span", async () => {
    const end = await begin();
    withSpan(startSpan("outer"), () => startSpan("root", { parent: null })?.end());
    expect(await end()).toMatchObject([{ name: "root", parentSpanId: undefined }]);
  });

  it("marks a span as failed with the type of the error, without its message", async () => {
    const end = await begin();
    const failing = inSpan(startSpan("work"), () => Promise.reject(new TypeError("a secret")));
    await expect(failing).rejects.toThrow("a secret");
    const [failed] = await end();
    expect(failed).toMatchObject({ isFailed: true, attributes: { "error.type": "TypeError" } });
    expect(JSON.stringify(failed)).not.toContain("secret");
  });

  it("follows the decision of the caller, and passes it on", async () => {
    const end = await begin();
    const span = startSpan("work", { parent: { traceparent: notSampled } });
    expect(span?.context.traceparent).toMatch(/-00$/);
    span?.end();
    expect(await end()).toEqual([]);
  });

  it.each([
    ["parentbased_always_off", 1, 0],
    ["always_off", 1, 0],
    ["traceidratio", 0, 0],
    ["parentbased_traceidratio", 1, 1],
    ["always_on", 0, 1],
  ] as const)(
    "sends with the sampler %s and the argument %d %d spans",
    async (name, share, count) => {
      const end = await begin({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share });
      startSpan("work")?.end();
      expect(await end()).toHaveLength(count);
    },
  );

  it("describes messages by the conventions", async () => {
    const end = await begin();
    startMessaging("process", { destination: "usage.recorded", batchCount: 3 })?.end();
    expect(await end()).toMatchObject([
      {
        name: "process usage.recorded",
        kind: "consumer",
        attributes: {
          "messaging.system": "nats",
          "messaging.destination.name": "usage.recorded",
          "messaging.operation.name": "process",
          "messaging.operation.type": "process",
          "messaging.batch.message_count": 3,
        },
      },
    ]);
  });

  it("gives the trace id to log lines", async () => {
    await begin();
    const span = startSpan("work", { parent: { traceparent } });
    expect(withSpan(span, () => traceFields())).toEqual({
      trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
    });
  });
});

describe("given a collector that does not respond", () => {
  let receiver: Receiver;

  it("ends the traces before the collector has responded", async () => {
    receiver = await startReceiver();
    begun.push(receiver.close);
    receiver.answer({ kind: "hang" });
    await startTracing("tests", { ...defaults, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    startSpan("work")?.end();
    await stopTracing();
    expect(receiver.hanging()).toBe(1);
    // The exporter repeats the request, and then releases its connection.
    receiver.reset();
    await eventually(() => receiver.requests.length === 1);
  });

  it("reports the loss once, not for each batch", async () => {
    receiver = await startReceiver();
    begun.push(receiver.close);
    receiver.answer({ kind: "answer", status: 400 });
    const losses: unknown[] = [];
    onTracesLost((error) => losses.push(error));
    await startTracing("tests", { ...defaults, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    while (receiver.requests.length < 2) {
      startSpan("work")?.end();
      await new Promise(setImmediate);
    }
    await stopTracing();
    expect(losses).toHaveLength(1);
  });
});
