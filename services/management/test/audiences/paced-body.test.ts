import { PassThrough } from "node:stream";
import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { partsAtPace } from "../../src/audiences/paced-body.ts";

const pace = { bytes: 1_000, withinMs: 30 };

async function read(stream: PassThrough): Promise<(number | string)[]> {
  const parts: (number | string)[] = [];
  for await (const part of partsAtPace(stream, pace))
    parts.push(isProblem(part) ? part.message : part.length);
  return parts;
}

describe("the parts of a body", () => {
  it("are returned to the end", async () => {
    const stream = new PassThrough();
    const reading = read(stream);
    stream.end("entry\n");
    expect(await reading).toEqual([6]);
  });

  it("end with a problem if nothing arrives, and the stream stays open", async () => {
    const stream = new PassThrough();
    expect(await read(stream)).toEqual([expect.stringContaining("too slowly")]);
    expect(stream.destroyed).toBe(false);
  });

  it("end with a problem if fewer bytes than the pace arrive", async () => {
    const stream = new PassThrough();
    const timer = setInterval(() => stream.write("x"), 5);
    const parts = await read(stream);
    clearInterval(timer);
    expect(parts.at(-1)).toContain("too slowly");
  });

  it("may take longer together, and while the process does not read", async () => {
    const stream = new PassThrough();
    const reading = partsAtPace(stream, pace);
    for (let count = 0; count < 4; count += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      stream.write(Buffer.alloc(1_000));
      expect(await reading.next()).toMatchObject({ value: { length: 1_000 } });
    }
    await reading.return(undefined);
    expect(stream.destroyed).toBe(false);
  });
});
