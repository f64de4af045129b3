import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * The baseline of HTTP benchmarks: a `node:http` server that returns a fixed response. It ignores the
 * request, except for the body if `readsBody` is set. Node adds `Date`, `Connection` and `Keep-Alive`, as on
 * the edge.
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
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  answerParent<BareAnswer>({
    greeting: { url: `http://127.0.0.1:${port}` },
    async answer({ status, headers, bodyBase64, bodyAs, readsBody, keepAliveTimeoutMs }) {
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
      return {};
    },
  });
});

function readJson(request: IncomingMessage, done: () => void): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    JSON.parse(Buffer.concat(chunks).toString());
    done();
  });
}
