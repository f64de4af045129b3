import { describe, expect, it } from "@jest/globals";
import { eventually } from "../src/eventually.ts";

async function messageOf(waiting: Promise<unknown>): Promise<string> {
  const error = await waiting.then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  return error?.message ?? "";
}

const once = { withinMs: 0 };

describe("eventually", () => {
  it("returns the first value that is neither undefined nor false", async () => {
    const answers = [undefined, false, 0];
    expect(await eventually(() => answers.shift())).toBe(0);
  });

  it("returns the first value that the predicate accepts", async () => {
    let count = 0;
    expect(await eventually(() => ++count, { until: (value) => value === 3 })).toBe(3);
  });

  it("shows the last value that the predicate rejected", async () => {
    const message = await messageOf(
      eventually(() => ({ status: 503 }), { ...once, until: ({ status }) => status === 200 }),
    );
    expect(message).toContain("Not within 0 ms: ({ status }) => status === 200");
    expect(message).toContain("Last value (try 1): { status: 503 }");
  });

  it("shows the reason, the number of tries, the last value and the last error", async () => {
    let tries = 0;
    const read = () => {
      tries += 1;
      if (tries === 1) throw new RangeError("connection refused");
      return false;
    };
    const because = "the service responds";
    const message = await messageOf(eventually(read, { withinMs: 500, because }));
    expect(message).toContain(`Not within 500 ms: ${because}`);
    expect(message).toContain(`Tries: ${tries}.`);
    expect(message).toContain(`Last value (try ${tries}): false`);
    expect(message).toContain("Last error (try 1): RangeError: connection refused");
  });

  it("has the last error as its cause", async () => {
    const broken = new Error("broken");
    const waiting = eventually(() => Promise.reject(broken), once);
    await expect(waiting).rejects.toMatchObject({ cause: broken });
  });

  it("bounds the text of a large value", async () => {
    const waiting = eventually(() => "x".repeat(1_000_000), { ...once, until: () => false });
    expect((await messageOf(waiting)).length).toBeLessThan(3_000);
  });
});
