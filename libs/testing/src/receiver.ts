import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";

/** A webhook receiver over real HTTP. It records every request and responds as configured. */
export type Receiver = {
  /** `http://127.0.0.1:<port>`. The receiver responds on every path. */
  url: string;
  /** Completely received requests, in order of arrival. */
  requests: ReceivedRequest[];
  /** Sets the behavior on all paths or on one path. A function decides for each request. */
  answer(behavior: Behavior | Decide, path?: string): void;
  /** Restores the response 200 on all paths, removes all recorded requests, and ends those that hang. */
  reset(): void;
  /** Returns the number of requests without a response because of the behavior `hang`. */
  hanging(): number;
  close(): Promise<void>;
};

export type ReceivedRequest = {
  method: string;
  /** Path with the query. */
  path: string;
  headers: IncomingHttpHeaders;
  /** Bytes of the body. */
  raw: Buffer;
  receivedAt: Date;
};

type Behavior =
  | {
      kind: "answer";
      status: number;
      headers?: Record<string, string>;
      body?: string;
      delayMs?: number;
      /** The response is sent after this promise resolves. */
      after?: Promise<void>;
    }
  /** Never responds and keeps the connection open. */
  | { kind: "hang" }
  /** Closes the connection without a response, or in the middle of the body. */
  | { kind: "close"; when: "at once" | "in the body" }
  /** Responds with 200 and a body that ends only when the client closes the connection. */
  | { kind: "endless body" };

type Decide = (request: ReceivedRequest) => Behavior;

const wellReceived: Behavior = { kind: "answer", status: 200 };
const everyPath = "*";

export async function startReceiver(): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const behaviors = new Map<string, Behavior | Decide>();
  const hanging = new Set<ServerResponse>();

  function behaviorFor(request: ReceivedRequest): Behavior {
    const found = behaviors.get(request.path) ?? behaviors.get(everyPath) ?? wellReceived;
    return typeof found === "function" ? found(request) : found;
  }

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await receive(message);
    requests.push(request);
    const behavior = behaviorFor(request);
    if (behavior.kind === "hang") {
      hanging.add(response);
      response.once("close", () => hanging.delete(response));
      return;
    }
    await respond(behavior, response);
  }

  const server = createServer((message, response) => {
    serve(message, response).catch((error: unknown) => {
      // The sender closed the connection before the end, for example because of a time-out.
      response.destroy(error as Error);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    answer: (behavior, path = everyPath) => void behaviors.set(path, behavior),
    reset() {
      requests.length = 0;
      behaviors.clear();
      for (const response of hanging) response.destroy();
    },
    hanging: () => hanging.size,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function receive(message: IncomingMessage): Promise<ReceivedRequest> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return {
    method: message.method ?? "",
    path: message.url ?? "",
    headers: message.headers,
    raw: Buffer.concat(parts),
    receivedAt: new Date(),
  };
}

async function respond(
  behavior: Exclude<Behavior, { kind: "hang" }>,
  response: ServerResponse,
): Promise<void> {
  switch (behavior.kind) {
    case "answer":
      if (behavior.delayMs !== undefined) await delay(behavior.delayMs);
      await behavior.after;
      response.writeHead(behavior.status, behavior.headers).end(behavior.body);
      return;
    case "close":
      if (behavior.when === "in the body") {
        response.writeHead(200, { "content-length": "1000" });
        await new Promise<void>((written) => response.write("half of it", () => written()));
      }
      response.destroy();
      return;
    case "endless body":
      response.writeHead(200);
      await pipeline(Readable.from(endless()), response);
  }
}

function* endless(): Generator<string> {
  for (;;) yield "and so on ".repeat(100);
}
