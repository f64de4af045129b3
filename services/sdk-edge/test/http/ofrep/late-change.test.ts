import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { configurationStateOf } from "../../../src/answers/configuration-tags.ts";
import { maxWaitingPerEnvironment } from "../../../src/answers/waiting-requests.ts";
import type { Usage } from "../../../src/usage/usage.ts";
import { apiKey, flagEntry, id, revokedKey } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll } from "./asking.ts";

/**
 * Two edges behind one address. One of them receives a change before the other. Timers are fake, so that a waiting
 * request waits until the change arrives or the test advances the time.
 */
const key = apiKey();
const begunMs = Date.now();
/** Returns the flag after a change. Consecutive changes are one millisecond apart. */
const state = (version: number) =>
  flagEntry({
    version,
    enabled: version % 2 === 0,
    committed_at: new Date(begunMs + version).toISOString(),
  });
let early: EdgeServer;
let late: EdgeServer;
let version = 1;

beforeAll(async () => {
  // Only timeouts are fake.
  jest.useFakeTimers({
    doNotFake: [
      "Date",
      "hrtime",
      "nextTick",
      "performance",
      "queueMicrotask",
      "setImmediate",
      "clearImmediate",
      "setInterval",
      "clearInterval",
    ],
  });
  [early, late] = await Promise.all([
    startEdgeServer([key.entry, state(1)]),
    startEdgeServer([key.entry, state(1)], { countsUsage: true }),
  ]);
});
afterAll(async () => {
  jest.useRealTimers();
  await Promise.all([early.stop(), late.stop()]);
});

const tagAt = ({ holder }: EdgeServer) =>
  configurationStateOf(holder.snapshot?.environments.get(id("env"))).tag.text;

const refetch = (tag: string, keyText = key.text) =>
  askAll(late, keyText, {}, { query: `?flagConfigEtag=${encodeURIComponent(tag)}` });

/** Resolves when the edge has read the next request. A request that must wait is waiting by then. */
async function arrival(): Promise<void> {
  const [request] = (await once(late.edge.app.server, "request")) as [IncomingMessage];
  await once(request, "end");
  await nextTurn();
}

async function changeHere(): Promise<string> {
  version += 1;
  await early.feed(state(version));
  return tagAt(early);
}

describe("given a client that received a change from another edge", () => {
  it("receives the new values as soon as the change has arrived", async () => {
    const tag = await changeHere();
    const arrived = arrival();
    const refetched = refetch(tag);
    await arrived;
    await late.feed(state(version));
    const { status, body } = await refetched;
    expect(status).toBe(200);
    expect(body.flags[0].value).toBe(version % 2 === 0);
    expect(tagAt(late)).toBe(tag);
  });

  it("receives the current values after a second if the change does not arrive", async () => {
    const answered: string[] = [];
    const arrived = arrival();
    const refetched = refetch(await changeHere()).finally(() => answered.push("refetch"));
    await arrived;
    jest.advanceTimersByTime(999);
    await askAll(late, key.text).finally(() => answered.push("another"));
    jest.advanceTimersByTime(1);
    const { status, body } = await refetched;
    expect(answered).toEqual(["another", "refetch"]);
    expect(status).toBe(200);
    expect(body.flags[0].value).toBe((version - 1) % 2 === 0);
    await late.feed(state(version));
  });

  it("keeps waiting if another change arrives first", async () => {
    const between = version + 1;
    await changeHere();
    const arrived = arrival();
    const refetched = refetch(await changeHere());
    await arrived;
    await late.feed(state(between));
    await late.feed(state(version));
    const { body } = await refetched;
    expect(body.flags[0].value).toBe(version % 2 === 0);
  });

  it("is rejected if its key is revoked meanwhile", async () => {
    const brief = apiKey();
    await late.feed(brief.entry);
    const arrived = arrival();
    const refetched = refetch(await changeHere(), brief.text);
    await arrived;
    await late.feed(revokedKey(brief.keyId), state(version));
    expect((await refetched).status).toBe(401);
  });

  it("can disconnect while it waits", async () => {
    const leave = new AbortController();
    const tag = await changeHere();
    const arrived = arrival();
    const left = fetch(
      `${late.url}/ofrep/v1/evaluate/flags?flagConfigEtag=${encodeURIComponent(tag)}`,
      {
        method: "POST",
        headers: { authorization: `Bearer ${key.text}`, "content-type": "application/json" },
        body: "{}",
        signal: leave.signal,
      },
    );
    await arrived;
    leave.abort();
    await expect(left).rejects.toThrow();
    await late.feed(state(version));
    expect((await askAll(late, key.text)).status).toBe(200);
  });
});

describe("given a fault in the response to a client that has waited", () => {
  it.each([
    ["the change arrives", () => late.feed(state(version))],
    ["the wait times out", () => jest.advanceTimersByTime(1_000)],
  ])("fails only that response when %s", async (_when, happens) => {
    const arrived = arrival();
    const refetched = refetch(await changeHere());
    await arrived;
    const usage = late.counting?.usage as Usage;
    const counting = jest.spyOn(usage, "answeredAll").mockImplementationOnce(() => {
      throw new Error("a fault");
    });
    await happens();
    const { status, body } = await refetched;
    counting.mockRestore();
    expect(status).toBe(500);
    expect(body.errorCode).toBe("GENERAL");
    await late.feed(state(version));
    expect((await askAll(late, key.text)).status).toBe(200);
  });
});

describe("given more refetches than the maximum that can wait", () => {
  it("answers the excess immediately with current values, and the others with the change", async () => {
    const tag = await changeHere();
    const values: boolean[] = [];
    const refetches = Array.from({ length: maxWaitingPerEnvironment + 20 }, async () => {
      const { status, body } = await refetch(tag);
      expect(status).toBe(200);
      values.push(body.flags[0].value);
    });
    await eventually(() => values.length >= 20);
    await late.feed(state(version));
    await Promise.all(refetches);
    expect(values[0]).toBe((version - 1) % 2 === 0);
    expect(values.at(-1)).toBe(version % 2 === 0);
  });
});

describe("given a refetch that does not need to wait", () => {
  let tagBefore: string;
  beforeAll(async () => {
    tagBefore = tagAt(late);
    await changeHere();
    await late.feed(state(version));
  });

  it.each([
    ["the current tag", () => tagAt(late)],
    ["the previous tag", () => tagBefore],
    ["a tag of tomorrow", () => `${(Date.now() + 86_400_000).toString(36)}-${"A".repeat(22)}`],
    ["an older tag", () => "k0-AAAAAAAAAAAAAAAAAAAAAA"],
    ["an invalid tag", () => "nonsense"],
    ["an empty tag", () => ""],
  ])("is answered at once (%s)", async (_what, tag) => {
    // A waiting request would never be answered here, because the timers are fake.
    expect((await refetch(tag())).status).toBe(200);
  });
});
