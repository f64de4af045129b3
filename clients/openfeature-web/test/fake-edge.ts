import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { compile, createContext, type ResolvedState, readAttributes } from "@halyard/evaluation";

/** The part of an edge that pages use, with one environment, over real HTTP. It accepts every key. */
export type FakeEdge = {
  url: string;
  /** Adds flags or changes their rules. Open streams receive the change. */
  change(flags: Flags): void;
  /** From now on, every request is rejected with this status, and all streams end. Undefined ends that. */
  rejectWith(status: number | undefined): void;
  /** Returns the number of open streams. */
  openStreams(): number;
  close(): Promise<void>;
};

export const clientKey = `hc_${"a".repeat(16)}_${"b".repeat(43)}`;

/** Settings of flags by key. */
type Flags = Readonly<Record<string, Settings>>;

type Settings = Partial<Omit<ResolvedState, "key" | "variations">> & {
  variations?: readonly { key: string; value: unknown }[];
};

type Stream = { response: ServerResponse; contextJson: string };

export async function startFakeEdge(initial: Flags): Promise<FakeEdge> {
  let flags = initial;
  let changes = 0;
  let status: number | undefined;
  const streams = new Set<Stream>();
  const tag = () => `"${changes}-fake"`;

  function openStream(response: ServerResponse, contextJson: string): void {
    const stream = { response, contextJson };
    streams.add(stream);
    response.once("close", () => streams.delete(stream));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`retry: 10\n\n${valuesEvent(tag(), valuesFor(contextJson, flags))}`);
    response.write("event: heartbeat\ndata: {}\n\n");
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (status !== undefined) {
      response.writeHead(status).end();
      return;
    }
    if (request.url === "/api/v1/sdk/stream?values=true") {
      openStream(response, String(request.headers["x-user-context"] ?? "{}"));
      return;
    }
    const values = valuesFor(await textOf(request), flags);
    response.writeHead(200, { etag: tag() }).end(JSON.stringify({ values }));
  }

  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    change(changed) {
      flags = { ...flags, ...changed };
      changes += 1;
      for (const { response, contextJson } of streams)
        response.write(valuesEvent(tag(), valuesFor(contextJson, changed)));
    },
    rejectWith(next) {
      status = next;
      if (next !== undefined) for (const { response } of streams) response.destroy();
    },
    openStreams: () => streams.size,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function valuesEvent(tag: string, values: Values): string {
  return `event: values\nid: ${tag}\ndata: ${JSON.stringify({ values })}\n\n`;
}

type Values = Record<string, { value: unknown; variation: string | null }>;

/** Returns the values of flags for the user in a JSON text. */
function valuesFor(contextJson: string, flags: Flags): Values {
  const read = readAttributes(JSON.parse(contextJson), "ignore");
  const context = createContext(read.ok ? read.attributes : new Map());
  const values = Object.entries(flags).map(([key, settings]) => {
    const flag = { key, enabled: true, rollout_percentage: 100, targeting_rules: [], ...settings };
    const compiled = compile(flag);
    const index = compiled.variationOf?.(context);
    if (index === undefined) {
      const { value, variation } = compiled.evaluate(context);
      return [key, { value, variation }];
    }
    const served = settings.variations?.[index];
    return [key, { value: served?.value ?? null, variation: served?.key ?? null }];
  });
  return Object.fromEntries(values);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
