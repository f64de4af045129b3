import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * The least that a Node server can do to answer: node:http, the head handed over as one list, the
 * body as bytes that are ready. It looks at nothing of the request, except its body where `readsBody` is set. `Date`, `Connection` and
 * `Keep-Alive` Node adds by itself, as it does on the edge.
 */
export type BareAnswer = {
  status: number;
  /** Names and values in turn. */
  headers: string[];
  bodyBase64: string;
  /** The server reads the body of each request and parses it as JSON. */
  readsBody: boolean;
  /** As a string, Node sends the body in one piece with the head; as bytes it sends the two together. */
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
