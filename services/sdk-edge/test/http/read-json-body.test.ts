import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { BodyReading } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { readJsonBody } from "../../src/http/hot-path.ts";

const limitBytes = 10;

/** Reads a body that a client sends in one piece, with or without its length. */
function read(text: string, { isAnnounced }: { isAnnounced: boolean }): Promise<BodyReading> {
  const length = isAnnounced
    ? { "content-length": String(text.length) }
    : { "transfer-encoding": "chunked" };
  const request = Object.assign(Readable.from([Buffer.from(text)]), {
    headers: { "content-type": "application/json", ...length },
  });
  return new Promise((done) =>
    readJsonBody(request as unknown as IncomingMessage, limitBytes, done),
  );
}

describe.each([
  ["with its length", { isAnnounced: true }],
  ["in chunks", { isAnnounced: false }],
])("given a body that is sent %s", (_name, how) => {
  it("accepts the maximum size", async () => {
    expect(await read('"12345678"', how)).toEqual({ body: "12345678" });
  });

  it("rejects one byte more", async () => {
    expect(await read('"123456789"', how)).toMatchObject({ rejected: "VALIDATION_002" });
  });
});
