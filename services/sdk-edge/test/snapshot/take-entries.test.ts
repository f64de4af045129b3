import type { SnapshotEntry } from "@halyard/contracts";
import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { replaceSnapshot } from "../../src/snapshot/replace.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import { entriesOf } from "../../src/snapshot/snapshot.ts";
import { buildSnapshot, isNothing, takeEntries } from "../../src/snapshot/take-entries.ts";
import {
  apiKey,
  deletedEnvironment,
  deletedFlag,
  flagEntry,
  id,
  organizationEntry,
  revokedKey,
} from "../builders.ts";

const epoch = id("epoch");
const off = flagEntry({ version: 3, enabled: false });
const on = flagEntry({ version: 4, enabled: true });
const deleted = deletedFlag(5);

describe("given a snapshot that holds a flag", () => {
  let held: Snapshot;
  beforeEach(() => {
    held = buildSnapshot(epoch, [off]);
  });

  it.each([
    { case: "a newer state", entry: on, changes: true },
    { case: "the same state again", entry: off, changes: false },
    { case: "a late older state", entry: flagEntry({ version: 2, enabled: true }), changes: false },
    { case: "its deletion", entry: deleted, changes: true },
    { case: "a late deletion of before", entry: deletedFlag(2), changes: false },
    { case: "another flag", entry: flagEntry({ flag_id: id("flag", 2) }), changes: true },
    { case: "the name of its project", entry: projectEntry(), changes: false },
  ])("takes $case only if it is news", ({ entry, changes }) => {
    const { changed, taken } = takeEntries(held, [entry]);
    expect(changed.environments).toEqual(new Set(changes ? [id("env")] : []));
    expect(taken.map(({ address, value }) => ({ address, value }))).toEqual(changes ? [entry] : []);
  });

  it("returns what each taken entry replaced", () => {
    const { taken } = takeEntries(held, [on, deleted]);
    expect(taken.map(({ before }) => before)).toEqual([off.value, on.value]);
  });

  it("changes its maps in place, so that a change costs the same in a large snapshot", () => {
    const { environments, keys } = held;
    const flags = environments.get(id("env"))?.flags;
    takeEntries(held, [on, apiKey().entry]);
    expect(held.environments).toBe(environments);
    expect(held.environments.get(id("env"))?.flags).toBe(flags);
    expect(held.keys).toBe(keys);
  });
});

describe("given a snapshot that remembers a deletion", () => {
  let held: Snapshot;
  beforeEach(() => {
    held = buildSnapshot(epoch, [off, deleted]);
  });

  it("does not bring the flag back for older news", () => {
    expect(isNothing(takeEntries(held, [on, off]).changed)).toBe(true);
  });

  it("takes a newer state all the same", () => {
    const { changed } = takeEntries(held, [flagEntry({ version: 6 })]);
    expect(changed.environments).toContain(id("env"));
  });

  it("forgets it a week later, when the environment changes again", () => {
    const inEightDays = new Date(Date.parse(deleted.value.committed_at) + 8 * 24 * 3_600_000);
    const later = flagEntry({
      flag_id: id("flag", 2),
      committed_at: inEightDays.toISOString(),
    });
    takeEntries(held, [later]);
    expect([...(held.environments.get(id("env"))?.flags.keys() ?? [])]).toEqual([id("flag", 2)]);
  });
});

describe("given entries of every kind", () => {
  it("says of each what changed", () => {
    const key = apiKey();
    const { changed } = takeEntries(buildSnapshot(epoch, []), [key.entry, organizationEntry(), on]);
    expect(changed).toEqual({
      environments: new Set([id("env")]),
      keys: new Set([key.keyId]),
      organizations: new Set([id("org")]),
    });
  });

  it("does not bring a revoked key back", () => {
    const key = apiKey();
    const snapshot = buildSnapshot(epoch, [revokedKey(key.keyId)]);
    takeEntries(snapshot, [key.entry]);
    expect(snapshot.keys.get(key.keyId)).toMatchObject({ deleted: true });
  });
});

describe("given a snapshot that holds the flags of an environment", () => {
  it("drops them with the environment, and leaves out what arrives later", () => {
    const edgeIsStopping = flagEntry({ environment_id: id("env", 2) });
    const snapshot = buildSnapshot(epoch, [off, edgeIsStopping]);
    const { changed } = takeEntries(snapshot, [deletedEnvironment()]);
    expect(changed.environments).toEqual(new Set([id("env")]));
    expect([...snapshot.environments.keys()]).toEqual([id("env", 2)]);
    const late = [on, deleted, flagEntry({ flag_id: id("flag", 2) })];
    expect(isNothing(takeEntries(snapshot, late).changed)).toBe(true);
    expect([...snapshot.environments.keys()]).toEqual([id("env", 2)]);
  });

  it("keeps the deletion in the cache on disk and through a whole read", () => {
    const held = buildSnapshot(epoch, [off, deletedEnvironment()]);
    const again = buildSnapshot(epoch, [on, ...entriesOf(held)]);
    expect(again.environments.size).toBe(0);
    const read = buildSnapshot(epoch, [on]);
    const { snapshot } = replaceSnapshot(held, read, { followedUntilNow: true });
    expect(snapshot.environments.size).toBe(0);
  });
});

/** Histories of a few flags in two environments, of a key and of the organization. */
const key = apiKey();
const history = fc
  .record({
    version: fc.integer({ min: 1, max: 8 }),
    environment: fc.integer({ min: 1, max: 2 }),
    flag: fc.integer({ min: 1, max: 3 }),
    kind: fc.constantFrom("flag", "key", "organization"),
  })
  .map(({ version, environment, flag, kind }): SnapshotEntry => {
    // What an entry says follows from its version, as it does for entries from one database.
    const isDeleted = version % 4 === 0;
    if (kind === "organization") return organizationEntry(version);
    if (kind === "key") {
      const { address, value } = isDeleted ? revokedKey(key.keyId, version) : key.entry;
      return { address, value: { ...value, version } };
    }
    const place = { environment_id: id("env", environment), flag_id: id("flag", flag) };
    return isDeleted
      ? deletedFlag(version, place.flag_id, place.environment_id)
      : flagEntry({ ...place, version, enabled: version % 2 === 0 });
  });
const histories = fc.array(history, { maxLength: 40 });
const deletedEnvironments = fc.subarray([1, 2].map((each) => deletedEnvironment(id("env", each))));
const withDeletions = fc.tuple(histories, deletedEnvironments).chain(([entries, deletions]) => {
  const all = [...entries, ...deletions];
  return fc.shuffledSubarray(all, { minLength: all.length });
});

describe("given the same entries in any order", () => {
  it("ends in the same snapshot", () => {
    const shuffled = withDeletions.chain((entries) =>
      fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length })),
    );
    fc.assert(
      fc.property(shuffled, ([entries, mixed]) => {
        expect(byId(buildSnapshot(epoch, mixed))).toEqual(byId(buildSnapshot(epoch, entries)));
      }),
    );
  });

  it("ends in the same snapshot when they are taken one by one, and some of them twice", () => {
    fc.assert(
      fc.property(withDeletions, withDeletions, (entries, repeated) => {
        const all = [...entries, ...repeated, ...entries];
        const oneByOne = buildSnapshot(epoch, []);
        for (const entry of all) takeEntries(oneByOne, [entry]);
        expect(byId(oneByOne)).toEqual(byId(buildSnapshot(epoch, [...repeated, ...entries])));
      }),
    );
  });

  it("holds the newest version of each, and no older one ever takes its place", () => {
    fc.assert(
      fc.property(histories, (entries) => {
        const snapshot = buildSnapshot(epoch, []);
        for (const entry of entries) {
          const before = byId(snapshot);
          takeEntries(snapshot, [entry]);
          for (const [environmentId, flags] of Object.entries(before.environments))
            for (const [flagId, { version }] of Object.entries(flags))
              expect(
                snapshot.environments.get(environmentId)?.flags.get(flagId)?.version,
              ).toBeGreaterThanOrEqual(version);
        }
      }),
    );
  });
});

/** Maps compare by content, whatever the order in which their entries came. */
function byId(snapshot: ReturnType<typeof buildSnapshot>) {
  const { epoch, organizations, keys, environments } = snapshot;
  return {
    epoch,
    organizations: Object.fromEntries(organizations),
    keys: Object.fromEntries(keys),
    environments: Object.fromEntries(
      [...environments].map(([environmentId, { flags }]) => [
        environmentId,
        Object.fromEntries(flags),
      ]),
    ),
  };
}

function projectEntry(): SnapshotEntry {
  const place = { organizationId: id("org"), projectId: id("project") };
  return {
    address: { kind: "project", ...place },
    value: {
      kind: "project",
      organization_id: place.organizationId,
      project_id: place.projectId,
      name: "Rigging",
      version: 9,
      committed_at: "2027-02-01T00:00:00.000Z",
    },
  };
}
