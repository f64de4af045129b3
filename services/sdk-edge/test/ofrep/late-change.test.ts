import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { configurationStateOf } from "../../src/environment/configuration-tag.ts";
import { maxWaitingPerEnvironment } from "../../src/ofrep/waiting-refetches.ts";
import type { Usage } from "../../src/usage/usage.ts";
import { apiKey, flagEntry, id, revokedKey } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { askAll } from "./asking.ts";

/**
 * Two edges behind one address: one is told of a change a moment before the other. Whoever waits does so
 * until the change comes or a test lets the time pass, however long that takes.
 */
const key = apiKey();
const begunMs = Date.now();
/** A millisecond between two changes, as when somebody makes several quickly. */
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
  // All but timeouts goes on as ever.
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

/** Resolves when the next request has been read; where it must wait, it waits by then. */
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

describe("given a client that was told of a change by another edge", () => {
  it("is answered when the change has come, with the new values", async () => {
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

  it("is answered after a second with what there is, if the change does not come", async () => {
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

  it("waits on when another change comes first", async () => {
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

  it("is refused when its key has ended meanwhile", async () => {
    const brief = apiKey();
    await late.feed(brief.entry);
    const arrived = arrival();
    const refetched = refetch(await changeHere(), brief.text);
    await arrived;
    await late.feed(revokedKey(brief.keyId), state(version));
    expect((await refetched).status).toBe(401);
  });

  it("may leave before", async () => {
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

describe("given a fault in the answer to a client that has waited", () => {
  it.each([
    ["the change comes", () => late.feed(state(version))],
    ["it does not", () => jest.advanceTimersByTime(1_000)],
  ])("ends that answer alone when %s", async (_when, happens) => {
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

describe("given more refetches than may wait", () => {
  it("answers the rest at once with what there is, and those that wait with the change", async () => {
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

describe("given a refetch that needs no waiting", () => {
  let tagBefore: string;
  beforeAll(async () => {
    tagBefore = tagAt(late);
    await changeHere();
    await late.feed(state(version));
  });

  it.each([
    ["the present tag", () => tagAt(late)],
    ["the tag of a moment ago", () => tagBefore],
    ["a tag of tomorrow", () => `${(Date.now() + 86_400_000).toString(36)}-${"A".repeat(22)}`],
    ["an older tag", () => "k0-AAAAAAAAAAAAAAAAAAAAAA"],
    ["a tag that is none", () => "nonsense"],
    ["an empty tag", () => ""],
  ])("is answered at once (%s)", async (_what, tag) => {
    // One that waits is not answered here at all.
    expect((await refetch(tag())).status).toBe(200);
  });
});
