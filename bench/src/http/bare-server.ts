import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { answerParent, listen } from "../processes/answer-parent.ts";
import { nowMs } from "../time.ts";

/**
 * The baseline of HTTP benchmarks: a `node:http` server that returns a fixed response, or writes fixed events
 * to all open responses. It ignores the request, except for the body if `readsBody` is set. Node adds `Date`,
 * `Connection` and `Keep-Alive`, as on the edge.
 */
export type BareAnswer = {
  status: number;
  /** Alternating names and values. */
  headers: string[];
  bodyBase64: string;
  /** Reads the body of each request and parses it as JSON. */
  readsBody: boolean;
  /** Node writes a string body together with the head; it writes bytes as a second buffer. */
  bodyAs: "bytes" | "text";
  keepAliveTimeoutMs: number;
};

const server = createServer();
const streams = new Set<ServerResponse>();

const api = {
  answer({ status, headers, bodyBase64, bodyAs, readsBody, keepAliveTimeoutMs }: BareAnswer) {
    const bytes = Buffer.from(bodyBase64, "base64");
    const body = bodyAs === "bytes" ? bytes : bytes.toString("latin1");
    server.keepAliveTimeout = keepAliveTimeoutMs;
    const respond = (response: ServerResponse) => {
      response.writeHead(status, headers);
      if (body.length === 0) response.end();
      else response.end(body, "latin1");
    };
    server.on("request", (request, response) => {
      if (readsBody) readJson(request, () => respond(response));
      else respond(response);
    });
  },

  /** Opens a stream for each request. */
  stream({ headers, firstEvents }: { headers: string[]; firstEvents: string }) {
    const first = Buffer.from(firstEvents);
    server.on("request", (_request, response) => {
      response.removeHeader("transfer-encoding");
      response.writeHead(200, headers);
      response.write(first);
      streams.add(response);
      response.once("close", () => streams.delete(response));
    });
  },

  /** Returns the time before the first write. */
  broadcast(event: string): number {
    const bytes = Buffer.from(event);
    const beganMs = nowMs();
    for (const response of streams) response.write(bytes);
    return beganMs;
  },
};
export type BareServer = typeof api;
answerParent(api, { url: await listen(server) });

function readJson(request: IncomingMessage, done: () => void): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    JSON.parse(Buffer.concat(chunks).toString());
    done();
  });
}
