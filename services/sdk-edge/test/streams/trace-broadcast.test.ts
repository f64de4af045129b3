import { openEventStream, recordSpans } from "@halyard/testing";
import { startMessaging } from "@halyard/tracing";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

const key = apiKey();
let recorded: ReturnType<typeof recordSpans>;
let edge: EdgeServer;

beforeEach(async () => {
  recorded = recordSpans();
  edge = await startEdgeServer([key.entry, flagEntry({ version: 1 })]);
});
afterEach(async () => {
  await edge.stop();
  recorded.stop();
});

/** Delivers a change with a separate trace. */
function deliver(entry: ReturnType<typeof flagEntry>): void {
  edge.holder.apply(entry, startMessaging("process", { destination: "entry", parent: null }));
}

const named = (name: string) => recorded.spans.filter((span) => span.name === name);

it("broadcasts changes that arrive together in one span, which links to all of them", async () => {
  deliver(flagEntry({ version: 2 }));
  deliver(flagEntry({ version: 3 }));
  await edge.feed();
  const changes = named("process entry").map(({ context }) => context);
  expect(changes).toHaveLength(2);
  expect(named("broadcast")).toMatchObject([
    { parent: changes[0], links: changes, attributes: { "halyard.changes": 2 }, hasEnded: true },
  ]);
  expect(named("process entry").every(({ hasEnded }) => hasEnded)).toBe(true);
});

it("has one span for each environment, with the changes of that environment", async () => {
  deliver(flagEntry({ version: 2 }));
  deliver(flagEntry({ version: 2, environment_id: id("env", 2) }));
  await edge.feed();
  const [one, other] = named("process entry").map(({ context }) => context);
  expect(named("broadcast").map(({ links }) => links)).toEqual([[one], [other]]);
});

it("ends the span of an entry that changes nothing, without a broadcast", async () => {
  deliver(flagEntry({ version: 1 }));
  await edge.feed();
  expect(named("process entry")).toMatchObject([{ hasEnded: true }]);
  expect(named("broadcast")).toEqual([]);
});

it("has the same number of spans with any number of streams, and none that stays open", async () => {
  const headers = { authorization: `Bearer ${key.text}` };
  const streams = await Promise.all(
    Array.from({ length: 5 }, () => openEventStream(`${edge.url}/api/v1/sdk/stream`, headers)),
  );
  deliver(flagEntry({ version: 2, enabled: true }));
  await edge.feed();
  expect(recorded.spans.map(({ name }) => name)).toEqual(["process entry", "broadcast"]);
  expect(recorded.spans.every(({ hasEnded }) => hasEnded)).toBe(true);
  for (const stream of streams) stream.close();
});
