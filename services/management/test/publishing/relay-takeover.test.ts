import { randomUUID } from "node:crypto";
import { testSigner, testVerification } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { createPublications } from "../../src/outbox/effects.ts";
import type { Lease } from "../../src/publishing/lease.ts";
import { findUnexplained } from "../../src/publishing/restored-database.ts";
import { createStreamPublisher } from "../../src/publishing/stream-publisher.ts";
import { openRebuilds } from "../rebuild-fixture.ts";
import {
  flagRow,
  insertRows,
  keyRow,
  observed,
  openPublisher,
  type Publication,
  unsentCount,
  whileLeading,
} from "./relay-fixture.ts";

/** Tests a takeover from a leader that published a batch and did not record it. */
const batchRows = 500;

const rebuilds = await openRebuilds();
afterAll(() => rebuilds.close());

/** Publishes one batch and fails before recording it, as a leader that crashes does. */
async function publishUnrecorded(): Promise<void> {
  const { sql, broker, lease } = rebuilds;
  const { lastSequence, epoch } = await rebuilds.synchronize();
  const dying: Lease = {
    ...lease,
    recordAsLeader: () => Promise.reject(new Error("the leader died")),
  };
  const shared = { stream: "snapshot" as const, sql, broker, publications: createPublications() };
  const publisher = createStreamPublisher({
    ...shared,
    ...{ lease: dying, epoch, lastSequence, signer: testSigner, isLeading: () => true },
  });
  await expect(publisher.drain()).rejects.toThrow("the leader died");
}

/** Takes over and publishes everything. Returns the versions of the entry that it published. */
async function takeOver(subject: string): Promise<number[]> {
  const { sql, broker, lease } = rebuilds;
  const published: Publication[] = [];
  const observing = observed(broker, (publication) => void published.push(publication));
  expect(await findUnexplained(sql, lease, broker, testVerification())).toBeUndefined();
  const publisher = await openPublisher(rebuilds, "snapshot", { broker: observing });
  await publisher.drain();
  expect(await unsentCount(sql)).toBe(0);
  return published
    .filter((publication) => publication.subject.endsWith(subject))
    .map(({ payload }) => JSON.parse(payload).version);
}

const rowsOf = (count: number, organizationId: string) =>
  Array.from({ length: count }, () => keyRow(organizationId, randomUUID()));

describe("given a leader that crashed after it published the newest of two values", () => {
  it("does not publish the older value, even if the next batch contains only that value", async () => {
    const { sql } = rebuilds;
    const organizationId = randomUUID();
    const [older, newest] = [1, 2].map((version) => keyRow(organizationId, "revoked", version));
    await whileLeading(rebuilds, async () => {
      await rebuilds.synchronize();
      await insertRows(sql, [
        older as ReturnType<typeof keyRow>,
        ...rowsOf(batchRows - 2, organizationId),
        newest as ReturnType<typeof keyRow>,
      ]);
      await publishUnrecorded();
      // With two organizations, a batch takes half of its rows from each.
      await insertRows(sql, rowsOf(batchRows, randomUUID()));
      expect(await takeOver(".key.revoked")).toEqual([2]);
    });
  });

  it("publishes a value that was committed afterwards", async () => {
    const { sql } = rebuilds;
    const organizationId = randomUUID();
    const flagId = randomUUID();
    const value = (version: number) => flagRow(organizationId, { flagId, version });
    await whileLeading(rebuilds, async () => {
      await rebuilds.synchronize();
      await insertRows(sql, [value(1), value(2)]);
      await publishUnrecorded();
      await insertRows(sql, [value(3)]);
      expect(await takeOver(flagId)).toEqual([3]);
    });
  });
});
