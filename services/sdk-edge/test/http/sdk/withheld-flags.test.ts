import type { FlagEntry } from "@halyard/contracts";
import { needsOf } from "@halyard/evaluation";
import { createClient } from "@halyard/server-sdk";
import { call, eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  audiences,
  type ExcludingFlag,
  excludingFlags,
  needsWithout,
  payments,
  testersChunk,
} from "../../../../../libs/evaluation/test/excluding-flags.ts";
import { apiKey, audienceEntry, chunkEntry, flagEntry, id } from "../../builders.ts";
import { startEdgeServer } from "../../edge-server.ts";
import { askAll } from "../ofrep/asking.ts";

const server = apiKey({ key_kind: "server" });
const audienceEntries = [...audiences].map(([key, { match, list }], index) =>
  audienceEntry({
    ...{ key, audience_id: id("audience", index), match: match as never },
    ...(list && { list: list as never }),
  }),
);
const required = { ...payments, targeting_rules: [], flag_id: id("flag", 2) };
const edge = await startEdgeServer([
  ...[server.entry, flagEntry(required as Partial<FlagEntry>), ...audienceEntries],
  chunkEntry(Buffer.from(testersChunk), 1, id("audience", 1)),
]);
afterAll(() => edge.stop());

const silent = { info() {}, warn() {}, error() {} };

let version = 1;

/** Replaces the flag, whose entry has these needs. */
function feed({ variations, ...flag }: ExcludingFlag["flag"], needs: string[]) {
  version += 1;
  const texts = variations?.map(({ key }) => ({ key, json: JSON.stringify(key) }));
  const fields = { ...flag, ...(texts && { variations: texts }), needs, version };
  return edge.feed(flagEntry(fields as Partial<FlagEntry>));
}

describe("given a flag that an edge serves", () => {
  let client: ReturnType<typeof createClient>;
  beforeEach(() => {
    client = createClient({ baseUrl: edge.url, serverKey: server.text, logger: silent });
  });
  afterEach(() => client.close());

  /** Returns the keys of the flags in each response for all flags, and the status of the response for the one. */
  async function keysFor(user: ExcludingFlag["user"]) {
    const key = server.text;
    const headers = { "x-user-context": JSON.stringify(user) };
    const [{ body: booleans }, { body: typed }, { body: bulk }] = await Promise.all([
      call(`${edge.url}/api/v1/sdk/flags`, { key, headers }),
      call(`${edge.url}/api/v1/sdk/values`, { key, headers }),
      askAll(edge, key, user),
    ]);
    const one = await call(`${edge.url}/api/v1/sdk/evaluate?key=new-checkout`, { key, headers });
    return {
      flags: Object.keys(booleans.flags),
      values: Object.keys(typed.values),
      ofrep: bulk.flags.map((flag: { key: string }) => flag.key),
      evaluate: one.status,
    };
  }
  const isGiven = (found: unknown) => found !== undefined;
  const keys = (evaluate: number, all: string[]) => ({
    ...{ flags: all, values: all, ofrep: all, evaluate },
  });

  it.each(excludingFlags)(
    "the edge and the server SDK stop serving it when it needs an unknown word for $part",
    async (excluding) => {
      const { flag, user } = excluding;
      await feed(
        flag,
        needsOf(flag, (key) => audiences.get(key)),
      );
      await eventually(() => client.explain("new-checkout"), { until: isGiven });
      expect(await keysFor(user)).toEqual(keys(200, ["new-checkout", "payments"]));

      await feed(flag, needsWithout(excluding));
      expect(await keysFor(user)).toEqual(keys(404, ["payments"]));
      await eventually(() => client.explain("new-checkout"), { until: (found) => !isGiven(found) });
      expect(client.isEnabled("new-checkout", user, false)).toBe(false);
    },
  );
});
