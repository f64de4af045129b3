import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * A position in the snapshot: the epoch of a full write, and the sequence of a message in the stream of the bucket. The
 * name `revision` of the sequence is part of the protocol. Revisions are comparable only within one epoch: a full write
 * may replace newer values by those of an older database.
 */
export const SnapshotRevision = z.object({ epoch: z.uuid(), revision: z.int().min(0) });
export type SnapshotRevision = z.infer<typeof SnapshotRevision>;

/**
 * The state of one edge, sent over core NATS. Management delays the response to a write until every live edge has
 * applied it. Reports may be lost, because each one replaces the edge's previous report.
 */
export const EdgeReport = z.discriminatedUnion("state", [
  /** Sent before the edge's first full read of the snapshot. The edge becomes ready after that read. */
  z.object({ state: z.literal("starting"), edge: z.uuid() }),
  /** Everything up to this revision is applied. Sent only while the edge follows the snapshot. */
  z.object({ state: z.literal("current"), edge: z.uuid(), ...SnapshotRevision.shape }),
  /** The edge has stopped serving. */
  z.object({ state: z.literal("stopped"), edge: z.uuid() }),
]);
export type EdgeReport = z.infer<typeof EdgeReport>;

export const checkEdgeReport = compileCheck(EdgeReport);

export const edgeReports = {
  /** A subject of core NATS; no stream stores it. */
  subject: "edge.report",
  /** Maximum time between two reports of an edge that follows the snapshot. */
  intervalMs: 250,
  /** Minimum time between two reports of an edge. It bounds the load that a burst of writes causes. */
  minIntervalMs: 10,
  /** Time without a report after which writes do not wait for an edge. */
  silentAfterMs: 2_000,
  /** Room for several times the members of this release. A larger report is not parsed. */
  maxBytes: 1024,
} as const;
