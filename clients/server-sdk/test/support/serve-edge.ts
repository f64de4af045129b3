import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { EdgeRequest, FakeEdge, Reply } from "./fake-edge.ts";

export type ServedEdge = {
  url: string;
  /** Stops the server and cuts its connections. */
  stop(): Promise<void>;
  /** Starts the server again on the same port. */
  start(): Promise<void>;
};

/** Serves a fake edge over real HTTP. */
export async function serveEdge(edge: FakeEdge): Promise<ServedEdge> {
  let server = createServer(serve);
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;

  function serve(message: IncomingMessage, response: ServerResponse): void {
    void receive(message).then((request) => edge.handle(request, replyOf(response)));
  }

  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
    async start() {
      server = createServer(serve);
      await listen(server, port);
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

async function receive(message: IncomingMessage): Promise<EdgeRequest> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return {
    method: message.method ?? "",
    path: message.url ?? "",
    headers: message.headers as Record<string, string>,
    body: Buffer.concat(parts).toString(),
  };
}

function replyOf(response: ServerResponse): Reply {
  return {
    head(status, headers) {
      response.writeHead(status, headers);
      response.flushHeaders();
    },
    write: (text) => void response.write(text),
    end: (text) => void response.end(text),
    destroy: () => void response.destroy(),
    onClose: (callback) => void response.on("close", callback),
  };
}
