import type { FlagEntry, Tombstone } from "@halyard/contracts";
import { createFlagIndex } from "@halyard/snapshot";
import { describe, expect, it } from "@jest/globals";

const address = { flagId: "flag", environmentId: "environment" };
const flag = (version: number) => ({ version, project_id: "project" }) as FlagEntry;
const deletion = (version: number): Tombstone => ({ deleted: true, version, committed_at: "" });

describe("the index of flags", () => {
  it("contains the existing flags, and the project of their environment", () => {
    const index = createFlagIndex();
    expect(index.statusOf(address)).toBe("unknown");
    expect(index.apply(address, flag(1))).toBe(true);
    expect(index.statusOf(address)).toBe("exists");
    expect(index.flagIdsOf("environment")).toEqual(["flag"]);
    expect(index.flagIdsOf("another")).toEqual([]);
    expect(index.projectOf("environment")).toBe("project");
    expect(index.statusOf({ ...address, environmentId: "another" })).toBe("unknown");
    expect(index.hasFlag("flag")).toBe(true);
  });

  it("keeps a deletion when an older entry arrives", () => {
    const index = createFlagIndex();
    expect(index.apply(address, deletion(2))).toBe(true);
    expect(index.apply(address, flag(1))).toBe(false);
    expect(index.apply(address, deletion(2))).toBe(false);
    expect(index.statusOf(address)).toBe("deleted");
    expect(index.flagIdsOf("environment")).toEqual([]);
    expect(index.apply(address, flag(3))).toBe(true);
    expect(index.statusOf(address)).toBe("exists");
  });
});
