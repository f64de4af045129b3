import type { FlagEntry } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/** Tests streams with user contexts. A stream receives the changes of its user's values. */
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
  it("starts each with the values of its user, with their tag", async () => {
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

  it("sends a change only to users whose values changed", async () => {
    const [german, french, austrian, noUser] = await Promise.all([
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
    await eventually(() => [austrian, noUser].every((stream) => flagsOf(stream).length === 2));
    for (const stream of [austrian, noUser])
      expect(flagsOf(stream)[1]?.data).toEqual({ flags: { open: false } });
  });

  it("sends deleted and new flags to all users", async () => {
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

  it("omits the values if the tag matches the user's values, and sends them otherwise", async () => {
    const tag = (await ask("DE")).headers.get("etag") ?? "";
    const known = await openOnce("DE", { "last-event-id": tag });
    await eventually(() => known.events.length > 0);
    expect(known.events[0]).toMatchObject({ event: "heartbeat" });
    const other = await open("FR", { "last-event-id": tag });
    expect(other.events[0]).toMatchObject({ event: "flags" });
  });
});

describe("given a change that takes long to evaluate for each of many users", () => {
  it("serves other requests meanwhile, and finally sends the change to every user", async () => {
    const streams = await Promise.all(
      Array.from({ length: 40 }, (_, number) =>
        open("DE", { "x-user-attributes": slowText(number) }),
      ),
    );
    version += 1;
    await edge.feed(flag(3, "slow", { targeting_rules: slowRules() }));
    const received = () => streams.filter((stream) => flagsOf(stream).length === 2).length;
    let servedMeanwhile = 0;
    while (received() < streams.length) {
      expect((await ask("FR")).status).toBe(200);
      if (received() < streams.length) servedMeanwhile += 1;
    }
    expect(servedMeanwhile).toBeGreaterThan(3);
    for (const stream of streams)
      expect(flagsOf(stream)[1]?.data).toEqual({ flags: { slow: true } });
  });
});

/** Returns a distinct text that the expression below must read to its end. */
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

/** Opens a stream, and waits for its values and its first heartbeat. */
async function open(country: string | undefined, headers: Record<string, string> = {}) {
  const stream = await openOnce(country, headers);
  await eventually(() => stream.events.length > 1);
  return stream;
}

/** Returns the `flags` events, without the heartbeats in between. */
const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");

const ask = (country: string) =>
  call(`${edge.url}/api/v1/sdk/flags`, { key: key.text, headers: headersOf(country) });
