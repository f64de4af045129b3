import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { createPublications } from "../../src/outbox/effects.ts";
import type { StreamName } from "../../src/outbox/unsent-rows.ts";
import { createUnreadEvents } from "../../src/publishing/unread-events.ts";
import { openRebuilds } from "../rebuild-fixture.ts";
import {
  eventRow,
  flagRow,
  insertRows,
  keyRow,
  type NewRow,
  observed,
  openPublisher,
  organizationOf,
  type Publication,
  unsentCount,
  whileLeading,
} from "./relay-fixture.ts";

/** Tests the order of publications of several organizations. */
const batchRows = 500;

let large: string;
let small: string;

const rebuilds = await openRebuilds();
afterAll(() => rebuilds.close());
beforeEach(() => {
  large = randomUUID();
  small = randomUUID();
});

const rowsOf = (count: number, row: () => NewRow) => Array.from({ length: count }, row);

/** Publishes the rows, and a late row that is committed during the first batch. Returns the publications in order. */
async function publishWith(stream: StreamName, rows: readonly NewRow[], late?: NewRow) {
  const published: Publication[] = [];
  let committed: Promise<unknown> | undefined;
  const broker = observed(rebuilds.broker, (publication) => {
    published.push(publication);
    if (late !== undefined) committed ??= insertRows(rebuilds.sql, [late]);
    return committed?.then(() => undefined);
  });
  await whileLeading(rebuilds, async () => {
    const publisher = await openPublisher(rebuilds, stream, { broker });
    await insertRows(rebuilds.sql, rows);
    await publisher.drain();
    // The late row has its own notification, after which the leader drains again.
    if (late !== undefined) await publisher.drain();
  });
  expect(await unsentCount(rebuilds.sql)).toBe(0);
  return published;
}

const versionOf = ({ payload }: Publication): number => JSON.parse(payload).version;

const positionOf = (organizationId: string, published: readonly Publication[]) =>
  published.findIndex((publication) => organizationOf(publication) === organizationId);

describe("given 10,000 unsent rows of one organization", () => {
  it("publishes the revocation of another organization's key next", async () => {
    const rows = rowsOf(10_000, () => flagRow(large));
    const published = await publishWith("snapshot", rows, keyRow(small));
    expect(published).toHaveLength(10_001);
    expect(positionOf(small, published)).toBe(batchRows);
  });

  it("publishes another organization's flag with the next batch", async () => {
    const rows = rowsOf(10_000, () => flagRow(large));
    const published = await publishWith("snapshot", rows, flagRow(small));
    expect(positionOf(small, published)).toBeLessThan(2 * batchRows);
  });

  it("publishes another organization's flag after one batch of keys", async () => {
    const rows = rowsOf(10_000, () => keyRow(large, randomUUID()));
    const published = await publishWith("snapshot", rows, flagRow(small));
    expect(positionOf(small, published)).toBe(batchRows);
  });

  it("publishes another organization's event with the next batch", async () => {
    const rows = rowsOf(10_000, () => eventRow(large));
    const published = await publishWith("events", rows, eventRow(small));
    expect(positionOf(small, published)).toBeLessThan(2 * batchRows);
  });
});

describe("given an organization with more unread events than its share of the event log", () => {
  /** So small that a batch of events passes the share of an organization. */
  const logMaxBytes = 16 * 1024;

  it("publishes the events of others, and its own when dispatchers have processed earlier ones", async () => {
    const published: Publication[] = [];
    const broker = observed(rebuilds.broker, (publication) => void published.push(publication));
    const unread = createUnreadEvents(logMaxBytes);
    await whileLeading(rebuilds, async () => {
      const publisher = await openPublisher(rebuilds, "events", { broker, unread });
      await insertRows(
        rebuilds.sql,
        rowsOf(20, () => eventRow(large)),
      );
      await publisher.drain();
      expect(unread.waiting()).toEqual([large]);
      await insertRows(rebuilds.sql, [eventRow(large), eventRow(small), eventRow(small)]);
      expect(await publisher.drain()).toBe(2);
      expect(published.slice(-2).map(organizationOf)).toEqual([small, small]);
      unread.processed(publisher.lastSequence());
      expect(await publisher.drain()).toBe(1);
    });
    expect(await unsentCount(rebuilds.sql)).toBe(0);
  });
});

describe("given nine organizations with backlogs of large entries", () => {
  /** A batch of large entries contains one entry of each organization. */
  const organizations = 9;
  const payload = JSON.stringify({ padding: "x".repeat(480 * 1024) });

  it("publishes another organization's flag with the next batch", async () => {
    const backlogs = Array.from({ length: organizations }, () => randomUUID());
    const rows = backlogs.flatMap((id) => rowsOf(5, () => ({ ...flagRow(id), payload })));
    const published = await publishWith("snapshot", rows, flagRow(small));
    expect(published).toHaveLength(rows.length + 1);
    expect(positionOf(small, published)).toBeLessThan(2 * (organizations + 1));
  });
});

describe("given unsent rows of several organizations", () => {
  it("publishes the same number of rows of each in a batch", async () => {
    const others = rowsOf(4, () => flagRow(randomUUID()));
    const rows = others.flatMap((other) => {
      const [organizationId = ""] = other.subject.split(".");
      return rowsOf(300, () => flagRow(organizationId));
    });
    const published = await publishWith("snapshot", rows);
    const first = Map.groupBy(published.slice(0, batchRows), organizationOf);
    expect([...first.values()].map(({ length }) => length)).toEqual([125, 125, 125, 125]);
  });

  it("publishes one row of each before any second row if a batch cannot contain all of them", async () => {
    const organizations = rowsOf(2 * batchRows + 1, () => flagRow(randomUUID())).map(
      ({ subject }) => subject.split(".")[0] ?? "",
    );
    const rows = organizations.flatMap((id) => rowsOf(2, () => flagRow(id)));
    const published = await publishWith("snapshot", rows);
    expect(published).toHaveLength(rows.length);
    const first = new Set(published.slice(0, 2 * batchRows).map(organizationOf));
    expect(first.size).toBe(2 * batchRows);
  });

  it("publishes events without an organization", async () => {
    const event = { ...eventRow(small), payload: "{}" };
    expect(await publishWith("events", [event, eventRow(large)])).toHaveLength(2);
  });

  it("publishes the events of each flag in the order of their rows", async () => {
    const organizations = [large, small, randomUUID(), randomUUID()];
    const flags = rowsOf(40, () => flagRow(small)).map(({ subject }) => subject);
    const rows = Array.from({ length: 3_000 }, (_, number) => {
      const organizationId = organizations[number % organizations.length] as string;
      const flag = { id: flags[number % flags.length] };
      const payload = JSON.stringify({ organization_id: organizationId, flag, number });
      return { ...eventRow(organizationId), payload };
    });
    const published = (await publishWith("events", rows)).map(({ payload }) => JSON.parse(payload));
    expect(published).toHaveLength(rows.length);
    for (const ofFlag of Map.groupBy(published, ({ flag }) => flag.id).values()) {
      const numbers = ofFlag.map(({ number }) => number);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
  });
});

describe("given several values of one entry", () => {
  it("publishes the newest value of a batch, and confirms all their writes", async () => {
    const publications = createPublications();
    const published: Publication[] = [];
    const broker = observed(rebuilds.broker, (publication) => {
      published.push(publication);
      return undefined;
    });
    const values = [1, 2, 3].map((version) => keyRow(small, "a-key", version));
    await whileLeading(rebuilds, async () => {
      const publisher = await openPublisher(rebuilds, "snapshot", { broker, publications });
      const ids = await insertRows(rebuilds.sql, values);
      const writes = ids.map((id) => publications.expect([id]).confirmed);
      await publisher.drain();
      for (const confirmed of await Promise.all(writes))
        expect(confirmed.revision).toBe(publisher.lastSequence());
    });
    expect(published.map(versionOf)).toEqual([3]);
  });

  it("publishes a value that is committed while an older one is published", async () => {
    const newer = keyRow(small, "a-key", 2);
    const published = await publishWith("snapshot", [keyRow(small, "a-key", 1)], newer);
    expect(published.map(versionOf)).toEqual([1, 2]);
  });
});
