import type { SnapshotEntry } from "@halyard/contracts";
import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { replaceSnapshot } from "../../src/snapshot/replace.ts";
import {
  buildSnapshot,
  entriesOf,
  isNothing,
  type Snapshot,
  takeEntries,
} from "../../src/snapshot/snapshot.ts";
import {
  apiKey,
  deletedEnvironment,
  deletedFlag,
  flagEntry,
  id,
  organizationEntry,
  plansEntry,
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
    { case: "an older state", entry: flagEntry({ version: 2, enabled: true }), changes: false },
    { case: "its deletion", entry: deleted, changes: true },
    { case: "an older deletion", entry: deletedFlag(2), changes: false },
    { case: "another flag", entry: flagEntry({ flag_id: id("flag", 2) }), changes: true },
    { case: "the name of its project", entry: projectEntry(), changes: false },
  ])("applies $case only if it is newer", ({ entry, changes }) => {
    const { changed, taken } = takeEntries(held, [entry]);
    expect(changed.environments).toEqual(new Set(changes ? [id("env")] : []));
    expect(taken.map(({ address, value }) => ({ address, value }))).toEqual(changes ? [entry] : []);
  });

  it("returns the value that each applied entry replaced", () => {
    const { taken } = takeEntries(held, [on, deleted]);
    expect(taken.map(({ before }) => before)).toEqual([off.value, on.value]);
  });

  it("changes its maps in place, so that the cost of a change does not grow with the snapshot", () => {
    const { environments, keys } = held;
    const flags = environments.get(id("env"))?.flags;
    takeEntries(held, [on, apiKey().entry]);
    expect(held.environments).toBe(environments);
    expect(held.environments.get(id("env"))?.flags).toBe(flags);
    expect(held.keys).toBe(keys);
  });
});

describe("given a snapshot with a tombstone", () => {
  let held: Snapshot;
  beforeEach(() => {
    held = buildSnapshot(epoch, [off, deleted]);
  });

  it("does not restore the flag for older entries", () => {
    expect(isNothing(takeEntries(held, [on, off]).changed)).toBe(true);
  });

  it("applies a newer state", () => {
    const { changed } = takeEntries(held, [flagEntry({ version: 6 })]);
    expect(changed.environments).toContain(id("env"));
  });

  it("removes the tombstone at the next change of the environment after a week", () => {
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
  it("reports the changed environments, keys and organizations", () => {
    const key = apiKey();
    const { changed } = takeEntries(buildSnapshot(epoch, []), [key.entry, organizationEntry(), on]);
    expect(changed).toEqual({
      environments: new Set([id("env")]),
      keys: new Set([key.keyId]),
      organizations: new Set([id("org")]),
      audiences: new Set(),
    });
  });

  it("reports every organization if the plans change, but not for an older version of them", () => {
    const snapshot = buildSnapshot(epoch, [plansEntry(2), organizationEntry()]);
    expect(takeEntries(snapshot, [plansEntry(3)]).changed.organizations).toEqual(
      new Set([id("org")]),
    );
    expect(isNothing(takeEntries(snapshot, [plansEntry(2)]).changed)).toBe(true);
  });

  it("does not restore a revoked key", () => {
    const key = apiKey();
    const snapshot = buildSnapshot(epoch, [revokedKey(key.keyId)]);
    takeEntries(snapshot, [key.entry]);
    expect(snapshot.keys.get(key.keyId)).toMatchObject({ deleted: true });
  });
});

describe("given a snapshot with the flags of an environment", () => {
  it("drops them with the environment, and ignores entries that arrive later", () => {
    const otherEnvsEntry = flagEntry({ environment_id: id("env", 2) });
    const snapshot = buildSnapshot(epoch, [off, otherEnvsEntry]);
    const { changed } = takeEntries(snapshot, [deletedEnvironment()]);
    expect(changed.environments).toEqual(new Set([id("env")]));
    expect([...snapshot.environments.keys()]).toEqual([id("env", 2)]);
    const late = [on, deleted, flagEntry({ flag_id: id("flag", 2) })];
    expect(isNothing(takeEntries(snapshot, late).changed)).toBe(true);
    expect([...snapshot.environments.keys()]).toEqual([id("env", 2)]);
  });

  it("keeps the deletion in the disk cache and after a full read", () => {
    const held = buildSnapshot(epoch, [off, deletedEnvironment()]);
    const again = buildSnapshot(epoch, [on, ...entriesOf(held)]);
    expect(again.environments.size).toBe(0);
    const read = buildSnapshot(epoch, [on]);
    const { snapshot } = replaceSnapshot(held, read, { followedUntilNow: true });
    expect(snapshot.environments.size).toBe(0);
  });
});

/** Random entries of a few flags in two environments, of a key and of the organization. */
const key = apiKey();
const history = fc
  .record({
    version: fc.integer({ min: 1, max: 8 }),
    environment: fc.integer({ min: 1, max: 2 }),
    flag: fc.integer({ min: 1, max: 3 }),
    kind: fc.constantFrom("flag", "key", "organization"),
  })
  .map(({ version, environment, flag, kind }): SnapshotEntry => {
    // The version determines the value of an entry, as for entries from one database.
    const isDeleted = version % 4 === 0;
    if (kind === "organization") return organizationEntry(version);
    if (kind === "key") {
      const { address, value } = isDeleted ? revokedKey(key.keyId, version) : key.entry;
      return { address, value: { ...value, version } };
    }
    const scope = { environment_id: id("env", environment), flag_id: id("flag", flag) };
    return isDeleted
      ? deletedFlag(version, scope.flag_id, scope.environment_id)
      : flagEntry({ ...scope, version, enabled: version % 2 === 0 });
  });
const histories = fc.array(history, { maxLength: 40 });
const deletedEnvironments = fc.subarray([1, 2].map((each) => deletedEnvironment(id("env", each))));
const withDeletions = fc.tuple(histories, deletedEnvironments).chain(([entries, deletions]) => {
  const all = [...entries, ...deletions];
  return fc.shuffledSubarray(all, { minLength: all.length });
});

describe("given the same entries in any order", () => {
  it("results in the same snapshot", () => {
    const shuffled = withDeletions.chain((entries) =>
      fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length })),
    );
    fc.assert(
      fc.property(shuffled, ([entries, mixed]) => {
        expect(byId(buildSnapshot(epoch, mixed))).toEqual(byId(buildSnapshot(epoch, entries)));
      }),
    );
  });

  it("results in the same snapshot if they are applied one by one, and some of them twice", () => {
    fc.assert(
      fc.property(withDeletions, withDeletions, (entries, repeated) => {
        const all = [...entries, ...repeated, ...entries];
        const oneByOne = buildSnapshot(epoch, []);
        for (const entry of all) takeEntries(oneByOne, [entry]);
        expect(byId(oneByOne)).toEqual(byId(buildSnapshot(epoch, [...repeated, ...entries])));
      }),
    );
  });

  it("keeps the newest version of each entry, and never replaces it by an older one", () => {
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

/** Converts maps to objects, so that they compare regardless of the order of their entries. */
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
  const scope = { organizationId: id("org"), projectId: id("project") };
  return {
    address: { kind: "project", ...scope },
    value: {
      kind: "project",
      organization_id: scope.organizationId,
      project_id: scope.projectId,
      name: "Rigging",
      version: 9,
      committed_at: "2027-02-01T00:00:00.000Z",
    },
  };
}
