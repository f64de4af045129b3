import { isDeepStrictEqual } from "node:util";
import type { FlagEntry, SnapshotEntry } from "@halyard/contracts";
import type { Attributes } from "@halyard/evaluation";
import { type Client, createClient } from "@halyard/server-sdk";
import { call, type EventStream, eventually, isThorough, openEventStream } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { contexts } from "../../../../libs/evaluation/test/random-flags.ts";
import {
  type Forest,
  forests,
  projectOf,
} from "../../../../libs/evaluation/test/random-forests.ts";
import {
  evaluateByReference,
  isFoundByReference,
  variationByReference,
} from "../../../../libs/evaluation/test/reference-evaluator.ts";
import {
  apiKey,
  audienceEntry,
  chunkEntry,
  deletedFlag,
  flagEntry,
  id,
  sha256Of,
} from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { askAll } from "./ofrep/asking.ts";

/**
 * All ways to read flags return the same values as the independent reference evaluator: the SDK routes, OFREP, the events
 * of a stream, and the server SDK. Each case is an environment of its own with random flags in up to ten levels, which
 * then change all at once.
 */
const comparisonsWanted = isThorough ? 100_000 : 2_000;

const edge: EdgeServer = await startEdgeServer([]);
afterAll(() => edge.stop());

/** Values by the keys of flags. A typed flag has the keys of its variations as values, and null for the caller's default. */
type Values = Record<string, boolean | string | null>;

/** A rule on `targetingKey` reads an attribute of the SDK's context that OFREP contexts cannot have. */
const users = fc.array(
  contexts.map((user) => new Map([...user].filter(([name]) => name !== "targetingKey"))),
  { minLength: 1, maxLength: 2 },
);

/** The values of a user in both forms of responses and streams: in their types, and as booleans. */
type Expected = Record<Form, Values>;

const forms = ["values", "flags"] as const;
type Form = (typeof forms)[number];

function expectedOf(forest: Forest, user: Attributes): Expected {
  const project = projectOf(forest);
  const expected: Expected = { values: {}, flags: {} };
  for (const flag of forest.flags.filter((each) => isFoundByReference(each, project))) {
    const isOn = evaluateByReference(flag, user, project).value;
    const isTyped = flag.variations !== undefined;
    expected.flags[flag.key] = isOn;
    expected.values[flag.key] = isTyped ? variationByReference(flag, user, project) : isOn;
  }
  return expected;
}

/** One environment in a separate project. */
type Place = { environment: number; scope: Pick<FlagEntry, "project_id" | "environment_id"> };

/** Returns the entries of a forest: all flags before their audiences, whose chunks come last. */
function entriesOf(forest: Forest, { environment, scope }: Place, version: number) {
  const numberOf = (index: number) => environment * 1_000 + index;
  const flags = forest.flags.map((flag, index) => {
    const variations = flag.variations?.map(({ key }) => ({ key, json: JSON.stringify(key) }));
    const fields = { ...flag, ...scope, ...(variations && { variations }) } as Partial<FlagEntry>;
    return flagEntry({ ...fields, flag_id: id("flag", numberOf(index)), version });
  });
  const audiences = [...forest.audiences].map(([key, { audience, chunks }], index) => {
    const audienceId = id("audience", numberOf(index));
    const own = chunks.map((bytes) => chunkEntry(Buffer.from(bytes), version, audienceId));
    const list = audience.list && { ...audience.list, chunks: own.map(sha256Of) };
    const entry = audienceEntry({
      ...{ key, audience_id: audienceId, version, project_id: scope.project_id },
      ...{ match: audience.match as never, ...(list && { list: list as never }) },
    });
    return { entry: { ...entry, address: { ...entry.address, projectId: scope.project_id } }, own };
  });
  return { flags, others: audiences.flatMap(({ entry, own }) => [entry, ...own]) };
}

/** Returns the JSON of a user in ASCII, as headers require. */
const headerOf = (user: Attributes): Record<string, string> => ({
  "x-user-context": JSON.stringify(Object.fromEntries(user)).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  ),
});

type Value = { value: boolean | string | null };
const valuesIn = (values: Record<string, Value>): Values =>
  Object.fromEntries(Object.entries(values).map(([key, { value }]) => [key, value]));

async function flagsFor(key: string, user: Attributes): Promise<Values> {
  return (await call(`${edge.url}/api/v1/sdk/flags`, { key, headers: headerOf(user) })).body.flags;
}

async function valuesFor(key: string, user: Attributes): Promise<Values> {
  const { body } = await call(`${edge.url}/api/v1/sdk/values`, { key, headers: headerOf(user) });
  return valuesIn(body.values);
}

async function ofrepFor(key: string, user: Attributes): Promise<Values> {
  const { body } = await askAll(edge, key, Object.fromEntries(user));
  return Object.fromEntries(
    body.flags.map(({ key, value = null }: Value & { key: string }) => [key, value]),
  );
}

/** An event of a stream: the values that it contains, and the keys of removed flags. */
type Sent = { values: Values; removed: readonly string[] };

/** Returns the events of a stream so far, without its heartbeats. */
function eventsOf({ events }: EventStream, form: Form): Sent[] {
  return events
    .filter(({ event }) => event === form)
    .map(({ data }) => {
      const { removed = [], ...sent } = data as { removed?: string[] } & Record<Form, never>;
      const values = form === "values" ? valuesIn(sent.values) : sent.flags;
      return { values, removed: removed.toSorted() };
    });
}

/** Returns the event after a change: the values that differ. There is none if all values are the same. */
function eventsBetween(before: Values, after: Values): Sent[] {
  const differing = Object.entries(after).filter(([key, value]) => before[key] !== value);
  const removed = Object.keys(before).filter((key) => !(key in after));
  if (differing.length + removed.length === 0) return [];
  return [{ values: Object.fromEntries(differing), removed: removed.toSorted() }];
}

/**
 * Compares all events of the streams so far with the states of the environment, the newest last. Returns the number of
 * values in the newest one.
 */
async function compareEvents(
  streams: Record<Form, EventStream>,
  states: readonly Expected[],
): Promise<number> {
  for (const form of forms) {
    const expected = states.flatMap(({ [form]: values }, index): Sent[] => {
      const before = states[index - 1]?.[form];
      return before === undefined ? [{ values, removed: [] }] : eventsBetween(before, values);
    });
    const events = await eventually(() => eventsOf(streams[form], form), {
      until: ({ length }) => length >= expected.length,
    });
    expect(events).toEqual(expected);
  }
  return Object.keys(states.at(-1)?.values ?? {}).length;
}

const valuesInSdk = (client: Client, user: Attributes): Values =>
  valuesIn(client.allValues(Object.fromEntries(user) as never) as Record<string, Value>);

const isSame = (expected: unknown) => (values: unknown) => isDeepStrictEqual(values, expected);

/** Compares all ways to read flags but streams. Returns the number of compared values. */
async function compare(
  expected: readonly Expected[],
  several: readonly Attributes[],
  given: { key: string; client: Client },
): Promise<number> {
  let compared = 0;
  for (const [index, user] of several.entries()) {
    const { values, flags } = expected[index] as Expected;
    expect(await valuesFor(given.key, user)).toEqual(values);
    expect(await ofrepFor(given.key, user)).toEqual(values);
    expect(await flagsFor(given.key, user)).toEqual(flags);
    await eventually(() => valuesInSdk(given.client, user), { until: isSame(values) });
    compared += 4 * Object.keys(values).length;
  }
  return compared;
}

const noMembers = { audience: { match: [] }, chunks: [], reference: { match: [] } };

/** Adds the audiences that a forest lacks: a flag would keep its previous state while it waits for one. */
const completed = (forest: Forest, { audiences }: Forest): Forest => ({
  ...forest,
  audiences: new Map([["audience-3", noMembers], ...audiences, ...forest.audiences]),
});

let environments = 0;

/** Opens a stream of each form. */
async function openStreams(key: string, user: Attributes): Promise<Record<Form, EventStream>> {
  const headers = { authorization: `Bearer ${key}`, ...headerOf(user) };
  const [values, flags] = await Promise.all(
    ["?values=true", ""].map((query) =>
      openEventStream(`${edge.url}/api/v1/sdk/stream${query}`, headers),
    ),
  );
  return { values, flags } as Record<Form, EventStream>;
}

/** Serves a forest in a new environment, and then another one in its place. */
async function compareInTurn(
  [first, later]: readonly [Forest, Forest],
  several: readonly Attributes[],
): Promise<number> {
  environments += 1;
  const second = completed(later, first);
  const scope = {
    project_id: id("project", environments),
    environment_id: id("env", environments),
  };
  const place = { environment: environments, scope };
  const { text: key, entry } = apiKey({ ...scope, key_kind: "server" });
  const [before, after] = [entriesOf(first, place, 1), entriesOf(second, place, 2)];
  await edge.feed(entry, ...before.flags, ...before.others);
  const client = createClient({ baseUrl: edge.url, serverKey: key });
  const streams = await openStreams(key, several[0] as Attributes);
  try {
    await client.ready();
    const [earlier, newer] = [first, second].map((forest) =>
      several.map((user) => expectedOf(forest, user)),
    ) as [Expected[], Expected[]];
    const given = { key, client };
    let compared = await compare(earlier, several, given);
    const states = earlier.slice(0, 1);
    compared += await compareEvents(streams, states);
    const gone = before.flags.slice(after.flags.length).map(({ address }): SnapshotEntry => {
      const { flagId } = address as Extract<typeof address, { kind: "flag" }>;
      return deletedFlag(2, flagId, scope.environment_id);
    });
    await edge.feed(...after.others, ...after.flags, ...gone);
    compared += await compare(newer, several, given);
    return compared + (await compareEvents(streams, [...states, ...newer.slice(0, 1)]));
  } finally {
    for (const stream of Object.values(streams)) stream.close();
    await client.close();
  }
}

describe("given any flags that require each other and refer to audiences", () => {
  it(
    "returns the same values in every way, and streams exactly those that change",
    async () => {
      let compared = 0;
      await fc.assert(
        fc.asyncProperty(fc.tuple(forests, forests), users, async (two, several) => {
          if (compared < comparisonsWanted) compared += await compareInTurn(two, several);
        }),
        // Waiting for the values of each smaller case would take minutes.
        { numRuns: comparisonsWanted / 20, endOnFailure: true },
      );
      expect(compared).toBeGreaterThanOrEqual(comparisonsWanted);
    },
    isThorough ? 30 * 60_000 : undefined,
  );
});
