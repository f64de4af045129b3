import type { FlagEntry } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/** Streams of users: each hears what is different for itself. */
const key = apiKey();
let edge: EdgeServer;
let version: number;
const opened: EventStream[] = [];

beforeEach(async () => {
  version = 1;
  edge = await startEdgeServer([
    key.entry,
    flag(1, "for-germany", forCountry("DE")),
    flag(2, "open", {}),
  ]);
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

describe("given streams of different users", () => {
  it("begins each with the values of its user, under their tag", async () => {
    const stream = await open("DE");
    const polled = await ask("DE");
    expect(stream.events[0]).toMatchObject({
      event: "flags",
      data: { flags: { "for-germany": true, open: true } },
      id: polled.headers.get("etag"),
    });
    const other = await open("FR");
    expect(other.events[0]?.data).toEqual({ flags: { "for-germany": false, open: true } });
  });

  it("tells of a change only those for whom a value is another now", async () => {
    const [german, french, austrian, nobody] = await Promise.all([
      open("DE"),
      open("FR"),
      open("AT"),
      open(undefined),
    ]);
    await change(1, "for-germany", forCountry("FR"));
    await eventually(() => [german, french].every((stream) => flagsOf(stream).length === 2));
    expect(flagsOf(german)[1]?.data).toEqual({ flags: { "for-germany": false } });
    expect(flagsOf(french)[1]?.data).toEqual({ flags: { "for-germany": true } });
    expect(flagsOf(french)[1]?.id).toBe((await ask("FR")).headers.get("etag"));

    await change(2, "open", { enabled: false });
    await eventually(() => [austrian, nobody].every((stream) => flagsOf(stream).length === 2));
    for (const stream of [austrian, nobody])
      expect(flagsOf(stream)[1]?.data).toEqual({ flags: { open: false } });
  });

  it("tells everybody of a flag that is no more, and of a new one", async () => {
    const streams = await Promise.all([open("DE"), open("FR"), open(undefined)]);
    version += 1;
    await edge.feed(deletedFlag(version, id("flag", 2)), flag(3, "new", forCountry("DE")));
    await eventually(() => streams.every((stream) => flagsOf(stream).length === 2));
    expect(streams.map((stream) => flagsOf(stream)[1]?.data)).toEqual([
      { flags: { new: true }, removed: ["open"] },
      { flags: { new: false }, removed: ["open"] },
      { flags: { new: false }, removed: ["open"] },
    ]);
  });

  it("leaves the values out for a user who has them, and sends them to one who has another's", async () => {
    const tag = (await ask("DE")).headers.get("etag") ?? "";
    const known = await openOnce("DE", { "last-event-id": tag });
    await eventually(() => known.events.length > 0);
    expect(known.events[0]).toMatchObject({ event: "heartbeat" });
    const other = await open("FR", { "last-event-id": tag });
    expect(other.events[0]).toMatchObject({ event: "flags" });
  });
});

describe("given a change that takes long to work out for each of many users", () => {
  it("answers others in between, and tells every user in the end", async () => {
    const streams = await Promise.all(
      Array.from({ length: 40 }, (_, number) =>
        open("DE", { "x-user-attributes": slowText(number) }),
      ),
    );
    version += 1;
    await edge.feed(flag(3, "slow", { targeting_rules: slowRules() }));
    const received = () => streams.filter((stream) => flagsOf(stream).length === 2).length;
    let answeredBetween = 0;
    while (received() < streams.length) {
      expect((await ask("FR")).status).toBe(200);
      if (received() < streams.length) answeredBetween += 1;
    }
    expect(answeredBetween).toBeGreaterThan(3);
    for (const stream of streams)
      expect(flagsOf(stream)[1]?.data).toEqual({ flags: { slow: true } });
  });
});

/** Texts that the expression below must read to their end, each another one. */
function slowText(number: number): string {
  let state = number + 1;
  const letters = Array.from({ length: 1_000 }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state < 2 ** 31 ? "a" : "b";
  });
  return `text=${letters.join("")}`;
}

function slowRules(): FlagEntry["targeting_rules"] {
  const slowly = {
    attribute: "text",
    operator: "matches_regex",
    value: "(a|b)*a(a|b){20}$",
  } as const;
  const never = { attribute: "text", operator: "equals", value: "c" } as const;
  const rule = { conditions: [slowly, slowly, slowly, never] };
  return [...Array.from({ length: 10 }, () => rule), { conditions: [] }];
}

async function change(number: number, flagKey: string, fields: Partial<FlagEntry>) {
  version += 1;
  await edge.feed(flag(number, flagKey, fields));
}

function flag(number: number, flagKey: string, fields: Partial<FlagEntry>) {
  return flagEntry({
    flag_id: id("flag", number),
    key: flagKey,
    enabled: true,
    version,
    ...fields,
  });
}

function forCountry(country: string): Partial<FlagEntry> {
  return {
    targeting_rules: [
      { conditions: [{ attribute: "country", operator: "equals", value: country }] },
    ],
  };
}

const headersOf = (country: string | undefined): Record<string, string> =>
  country === undefined ? {} : { "x-user-context": JSON.stringify({ id: "u1", country }) };

async function openOnce(country: string | undefined, headers: Record<string, string>) {
  const stream = await openEventStream(`${edge.url}/api/v1/sdk/stream`, {
    authorization: `Bearer ${key.text}`,
    ...headersOf(country),
    ...headers,
  });
  opened.push(stream);
  return stream;
}

/** A stream that has begun: with the values and a heartbeat. */
async function open(country: string | undefined, headers: Record<string, string> = {}) {
  const stream = await openOnce(country, headers);
  await eventually(() => stream.events.length > 1);
  return stream;
}

/** Heartbeats come when it is their turn. */
const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");

const ask = (country: string) =>
  call(`${edge.url}/api/v1/sdk/flags`, { key: key.text, headers: headersOf(country) });
