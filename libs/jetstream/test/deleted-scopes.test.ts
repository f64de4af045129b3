import type { SnapshotEntry } from "@halyard/contracts";
import { removeOfDeletedScopes } from "@halyard/jetstream";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { pino } from "pino";

const deletion = (projectId: string): SnapshotEntry => ({
  address: { kind: "project", organizationId: "organization", projectId },
  value: { deleted: true, version: 2, committed_at: "2027-01-31T09:00:00.000Z" },
});

class Outage extends Error {}

let removed: string[][];
let revision: number | undefined;
let failure: Error | undefined;
let scopes: ReturnType<typeof removeOfDeletedScopes>;

beforeEach(() => {
  jest.useFakeTimers();
  [removed, revision, failure] = [[], 1, undefined];
  scopes = removeOfDeletedScopes({
    kind: "project",
    settledRevision: async () => revision,
    remove: async (ids) => {
      if (failure !== undefined) throw failure;
      removed.push([...ids]);
    },
    isOutage: (error) => error instanceof Outage,
    monotonicMs: Date.now,
    logger: pino({ level: "silent" }),
  });
});
afterEach(async () => {
  await scopes.stop();
  jest.useRealTimers();
});

const pass = (seconds: number) => jest.advanceTimersByTimeAsync(seconds * 1_000);

function readWhole(...entries: SnapshotEntry[]): void {
  const read = scopes.beginReplacing();
  for (const entry of entries) read.take(entry);
  read.finish();
}

describe("the rows of a deleted project", () => {
  it("are removed when its deletion arrives, and again a minute later", async () => {
    scopes.apply(deletion("one"));
    await pass(0);
    expect(removed).toEqual([["one"]]);
    await pass(120);
    expect(removed).toEqual([["one"], ["one"]]);
  });

  it("stay without a leader, and are removed after its first write if a read finds the deletion again", async () => {
    readWhole(deletion("restored"), deletion("gone"));
    await pass(3_600);
    expect(removed).toEqual([]);
    revision = 2;
    await pass(25);
    readWhole(deletion("gone"));
    await pass(60);
    expect(removed).toEqual([]);
    revision = 3;
    await pass(25);
    expect(removed).toEqual([]);
    await pass(10);
    expect(removed).toEqual([["gone"]]);
  });

  it("stay while the snapshot is rebuilt", async () => {
    revision = undefined;
    scopes.apply(deletion("one"));
    await pass(10);
    expect(removed).toEqual([]);
    revision = 2;
    await pass(2);
    expect(removed).toEqual([["one"]]);
  });

  it("stay after an outage of PostgreSQL until the leader has compared the database with the snapshot", async () => {
    failure = new Outage();
    scopes.apply(deletion("one"));
    await pass(10);
    failure = undefined;
    await pass(60);
    expect(removed).toEqual([]);
    revision = 2;
    await pass(25);
    expect(removed).toEqual([]);
    await pass(10);
    expect(removed).toEqual([["one"]]);
  });

  it("are not removed because of the deletion of another kind", async () => {
    scopes.apply({
      address: { kind: "environment", organizationId: "o", environmentId: "e" },
      value: { deleted: true, version: 2, committed_at: new Date().toISOString() },
    });
    await pass(120);
    expect(removed).toEqual([]);
  });
});
