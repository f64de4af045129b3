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

/** A customer's system over real HTTP: it records every request and answers as the test tells it to. */
export type Receiver = {
  /** `http://127.0.0.1:<port>`; every path of it is answered. */
  url: string;
  /** What has arrived whole, in that order. */
  requests: ReceivedRequest[];
  /** Answers so from now on, everywhere or on one path alone; a function is asked for each request. */
  answer(behaviour: Behaviour | Decide, path?: string): void;
  /** Answers 200 everywhere again, and forgets what it has recorded. */
  reset(): void;
  /** How many requests wait for an answer that is held back. */
  hanging(): number;
  close(): Promise<void>;
};

export type ReceivedRequest = {
  method: string;
  /** With the query. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The body, byte for byte. */
  raw: Buffer;
  receivedAt: Date;
};

export type Behaviour =
  | {
      kind: "answer";
      status: number;
      headers?: Record<string, string>;
      body?: string;
      /** Held back for so long. */
      delayMs?: number;
      /** Held back until then. */
      after?: Promise<void>;
    }
  /** Nothing is ever said; the connection stays. */
  | { kind: "hang" }
  /** The connection is cut: before anything was said, or in the middle of the body. */
  | { kind: "close"; when: "at once" | "in the body" }
  /** 200, and a body that goes on as long as somebody reads it. */
  | { kind: "endless body" };

type Decide = (request: ReceivedRequest) => Behaviour;

const wellReceived: Behaviour = { kind: "answer", status: 200 };
const everyPath = "*";

export async function startReceiver(): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const behaviours = new Map<string, Behaviour | Decide>();
  const hanging = new Set<ServerResponse>();

  function behaviourFor(request: ReceivedRequest): Behaviour {
    const found = behaviours.get(request.path) ?? behaviours.get(everyPath) ?? wellReceived;
    return typeof found === "function" ? found(request) : found;
  }

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await receive(message);
    requests.push(request);
    const behaviour = behaviourFor(request);
    if (behaviour.kind === "hang") {
      hanging.add(response);
      response.once("close", () => hanging.delete(response));
      return;
    }
    await respond(behaviour, response);
  }

  const server = createServer((message, response) => {
    serve(message, response).catch((error: unknown) => {
      // The sender has gone away in the middle, as senders do at their time-outs.
      response.destroy(error as Error);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    answer: (behaviour, path = everyPath) => void behaviours.set(path, behaviour),
    reset() {
      requests.length = 0;
      behaviours.clear();
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
  behaviour: Exclude<Behaviour, { kind: "hang" }>,
  response: ServerResponse,
): Promise<void> {
  switch (behaviour.kind) {
    case "answer":
      if (behaviour.delayMs !== undefined) await delay(behaviour.delayMs);
      await behaviour.after;
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body);
      return;
    case "close":
      if (behaviour.when === "in the body") {
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
