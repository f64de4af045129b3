import { type Receiver, startReceiver } from "./receiver.ts";

/** An OpenTelemetry collector that receives traces over OTLP/HTTP in JSON, and records their spans. */
export type Collector = Receiver & {
  /** The variables of a process that sends its traces here, without delay. */
  environment: Record<string, string>;
  /** The spans that have arrived, in order of arrival. */
  spans(): CollectedSpan[];
};

export type CollectedSpan = {
  /** The process that has sent the span. */
  service: string;
  name: string;
  kind: (typeof kinds)[number];
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  attributes: Record<string, string | number>;
  /** Ids of the linked spans. */
  links: string[];
  isFailed: boolean;
};

const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const;
const statusError = 2;

export async function startCollector(): Promise<Collector> {
  const receiver = await startReceiver();
  receiver.answer({
    kind: "answer",
    status: 200,
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  return {
    ...receiver,
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_BSP_SCHEDULE_DELAY: "10",
    },
    spans: () =>
      receiver.requests
        .filter(({ path }) => path === "/v1/traces")
        .flatMap(({ raw }) => spansIn(JSON.parse(raw.toString()) as TracesData)),
  };
}

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } };
type TracesData = {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        name: string;
        kind: number;
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        attributes: Attribute[];
        links?: { spanId: string }[];
        status: { code?: number };
      }[];
    }[];
  }[];
};

function spansIn({ resourceSpans }: TracesData): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)["service.name"]);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, kind, traceId, spanId, parentSpanId, attributes, links, status }) => ({
        ...{ service, name, traceId, spanId, parentSpanId },
        kind: kinds[kind] ?? "unspecified",
        attributes: valuesOf(attributes),
        links: (links ?? []).map((link) => link.spanId),
        isFailed: status.code === statusError,
      })),
    );
  });
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );
