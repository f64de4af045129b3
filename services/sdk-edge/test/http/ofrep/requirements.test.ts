import {
  compileCheck,
  type FlagEntry,
  OfrepBulkEvaluation,
  OfrepEvaluation,
} from "@halyard/contracts";
import { type EventStream, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, audienceEntry, flagEntry, id, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll, askOne, listen, tokenSecret } from "./asking.ts";

const key = apiKey();
const named = (number: number, key: string, fields: Partial<FlagEntry> = {}) => ({
  ...{ flag_id: id("flag", number), key, enabled: true, ...fields },
});
const requires = (...flags: string[]) => ({
  requires: flags.map((flag) => ({ flag, is: "on" as const })),
});
const inBeta = [{ conditions: [{ audience: "beta" }] }];
const beta = (plan: string, version = 1) =>
  audienceEntry({ version, match: [[{ attribute: "plan", operator: "equals", value: plan }]] });

let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer(
    [
      key.entry,
      beta("pro"),
      flagEntry(named(1, "beta only", { targeting_rules: inBeta })),
      flagEntry(named(2, "größe", { enabled: false })),
      flagEntry(named(3, "payments", requires("beta only", "größe"))),
      flagEntry(named(4, "always")),
      typedFlag(
        "string",
        { a: '"ü"', b: '"b"' },
        named(5, "text", requires("always", "beta only")),
      ),
    ],
    { streamTokenSecret: tokenSecret },
  );
});
afterAll(() => edge.stop());

const heldBack = { reason: "DEFAULT", variant: "off" };

describe("given a flag that a required one holds back", () => {
  it.each([
    { context: { plan: "pro" }, prerequisite: "größe" },
    { context: { plan: "free" }, prerequisite: "beta only" },
    { context: { plan: "pro", padding: "x".repeat(2_000) }, prerequisite: "größe" },
    { context: { plan: "free", padding: "x".repeat(2_000) }, prerequisite: "beta only" },
  ])("names the first unmet requirement ($prerequisite)", async ({ context, prerequisite }) => {
    const { body } = await askOne(edge, key.text, "payments", { context });
    expect(body).toEqual({
      ...{ key: "payments", value: false, ...heldBack },
      metadata: { prerequisite },
    });
    expect(compileCheck(OfrepEvaluation)(body)).toMatchObject({ ok: true });
    const { body: all } = await askAll(edge, key.text, context);
    expect(compileCheck(OfrepBulkEvaluation)(all)).toMatchObject({ ok: true });
    expect(all.flags).toContainEqual(body);
    expect(all.flags.map(({ key }: { key: string }) => key)).toEqual([
      ...["always", "beta only", "größe", "payments", "text"],
    ]);
  });

  it("names it for a typed flag beside the off variation", async () => {
    const context = { plan: "free" };
    const expected = { key: "text", value: "b", reason: "DEFAULT", variant: "b" };
    const { body } = await askOne(edge, key.text, "text", { context });
    expect(body).toEqual({ ...expected, metadata: { version: 1, prerequisite: "beta only" } });
    const { body: all } = await askAll(edge, key.text, context);
    expect(all.flags).toContainEqual({ ...expected, metadata: { prerequisite: "beta only" } });
    const met = await askAll(edge, key.text, { plan: "pro" });
    expect(met.body.flags).toContainEqual({
      ...{ key: "text", value: "ü", reason: "STATIC", variant: "a" },
    });
  });
});

describe("given a change of an audience", () => {
  it("makes clients evaluate again, and answers them with the new state", async () => {
    const stream: EventStream = await listen(edge, key.text);
    try {
      const { body: before } = await askAll(edge, key.text, { plan: "free" });
      await edge.feed(beta("free", 2));
      const refetch = await eventually(() =>
        stream.events.findLast(({ data }) => (data as { etag?: string }).etag !== undefined),
      );
      const { etag } = refetch.data as { etag: string };
      const query = `?flagConfigEtag=${etag}`;
      const { body: after } = await askAll(edge, key.text, { plan: "free" }, { query });
      const valueIn = (body: { flags: { key: string; value: boolean }[] }) =>
        body.flags.find(({ key }) => key === "beta only")?.value;
      expect([valueIn(before), valueIn(after)]).toEqual([false, true]);
    } finally {
      stream.close();
    }
  });
});
