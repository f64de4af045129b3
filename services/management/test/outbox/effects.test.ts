import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "@jest/globals";
import {
  createEffects,
  createPublications,
  type Effects,
  type Incomplete,
  type Publications,
} from "../../src/outbox/effects.ts";
import { parsePublished } from "../../src/outbox/notifications.ts";
import type { OutboxMessage } from "../../src/outbox/outbox-message.ts";

const revision = { epoch: randomUUID(), revision: 7 };
const entry = { stream: "snapshot" } as OutboxMessage;
let publications: Publications;
let incomplete: Incomplete[];
let connected: boolean;
let applied: Promise<void>;
let effects: Effects;

beforeEach(() => {
  publications = createPublications();
  incomplete = [];
  connected = true;
  applied = Promise.resolve();
  effects = createEffects({
    publications,
    edges: {
      waitUntilApplied: (_, ended) =>
        Promise.race([
          applied,
          new Promise<void>((resolve) => ended.addEventListener("abort", () => resolve())),
        ]),
    },
    isConnected: () => connected,
    isInEffect: () => true,
    onIncomplete: (step) => incomplete.push(step),
    onWaited: () => undefined,
  });
});

const never = new Promise<void>(() => {});

describe("a write that waits for its effect", () => {
  it("is complete when its rows are published and the edges have applied them", async () => {
    const effect = effects.expect([1, 2]);
    const waiting = effect.wait([entry]);
    publications.confirm([1], { ...revision, revision: 6 });
    publications.confirm([2], revision);
    await waiting;
    expect(incomplete).toEqual([]);
  });

  it("times out, and is counted by the missing step", async () => {
    await effects.expect([1]).wait([entry]);
    applied = never;
    const published = effects.expect([2]);
    publications.confirm([2], revision);
    await published.wait([entry]);
    expect(incomplete).toEqual(["publication", "edges"]);
  });

  it("does not wait while NATS is disconnected", async () => {
    connected = false;
    await effects.expect([1]).wait([entry]);
    expect(incomplete).toEqual(["disconnected"]);
  });

  it("ends when the connection to NATS is lost", async () => {
    const waiting = effects.expect([1]).wait([entry]);
    connected = false;
    effects.interrupt();
    await waiting;
    expect(incomplete).toEqual(["disconnected"]);
  });
});

describe("a notification of published rows", () => {
  it.each([{ rowIds: [1, 2], revision }, { rowIds: [], revision }, { rowIds: [3] }])(
    "is parsed: %j",
    (published) => {
      expect(parsePublished(JSON.stringify(published))).toEqual(published);
    },
  );

  it.each(["", "12,13", "{}", '{"rowIds":["1"]}'])("is ignored if another role sent %j", (text) => {
    expect(parsePublished(text)).toBeUndefined();
  });
});
