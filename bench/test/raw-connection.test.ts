import { createServer, type Server } from "node:http";
import { afterAll, describe, expect, it } from "@jest/globals";
import { captureAnswer } from "../src/http/raw-connection.ts";
import { listen } from "../src/processes/answer-parent.ts";

const plan = { method: "GET", path: "/", headers: {} };
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Starts a server that sends the parts with chunked encoding, one after the other. */
function startChunked(parts: readonly string[]): Promise<string> {
  const server = createServer((_request, response) => {
    response.flushHeaders();
    const send = ([part, ...others]: readonly string[]): void => {
      if (part === undefined) response.end();
      else response.write(part, () => send(others));
    };
    send(parts);
  });
  servers.push(server);
  return listen(server);
}

describe("given a chunked response", () => {
  const parts = ['{"text":"', "0".repeat(100_000), '\\r\\n0\\r\\n\\r\\n"}'];

  it("the raw connection waits for its last chunk, and joins all of them", async () => {
    const { status, body } = await captureAnswer(await startChunked(parts), plan);
    expect(status).toBe(200);
    expect(body.toString()).toBe(parts.join(""));
  });

  it("an empty one has no body", async () => {
    const { body } = await captureAnswer(await startChunked([]), plan);
    expect(body).toHaveLength(0);
  });
});
