import { randomUUID } from "node:crypto";
import type { EntryAddress, SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { createDeletions } from "../src/index.ts";

const [organizationId, audienceId] = [randomUUID(), randomUUID()];
const chunk = { kind: "chunk", organizationId, audienceId, sha256: "0".repeat(64) } as const;
const audience = { kind: "audience", organizationId, projectId: randomUUID(), audienceId } as const;

const deletion = (address: EntryAddress): SnapshotEntry =>
  ({
    address,
    value: { deleted: true, version: 2, committed_at: "2027-01-31T09:00:00.000Z" },
  }) as SnapshotEntry;

describe("given deletions of an audience and its chunks", () => {
  it("keeps only that of the audience", () => {
    const deletions = createDeletions();
    for (const address of [audience, chunk]) deletions.apply(deletion(address));
    expect([audience, chunk].map(deletions.has)).toEqual([true, false]);
  });
});
