import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nowMs } from "../clock.ts";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * The baseline for streams: a `node:http` server that sends the same head and first events to every client,
 * and writes an event to all open responses on request.
 */
export type BareStreamQuestion =
  | { kind: "answer"; headers: string[]; firstEvents: string }
  | { kind: "broadcast"; event: string };

const responses = new Set<ServerResponse>();
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  answerParent<BareStreamQuestion>({
    greeting: { url: `http://127.0.0.1:${port}` },
    async answer(question) {
      if (question.kind === "answer") answerAll(question);
      else return broadcast(Buffer.from(question.event));
      return {};
    },
  });
});

function answerAll({ headers, firstEvents }: { headers: string[]; firstEvents: string }): void {
  const first = Buffer.from(firstEvents);
  server.on("request", (_request, response) => {
    response.removeHeader("transfer-encoding");
    response.writeHead(200, headers);
    response.write(first);
    responses.add(response);
    response.once("close", () => responses.delete(response));
  });
}

function broadcast(event: Buffer): { begunMs: number } {
  const begunMs = nowMs();
  for (const response of responses) response.write(event);
  return { begunMs };
}
