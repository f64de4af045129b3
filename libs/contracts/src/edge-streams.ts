import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/** Open streams of one edge by organization id. */
const Streams = z.record(z.uuid(), z.int().min(0).max(10_000_000));

/**
 * The open streams of one edge, sent over core NATS. Edges admit streams of an organization against the sum of all
 * counts. Reports may be lost, because the next complete report replaces the counts.
 */
export const EdgeStreams = z.discriminatedUnion("state", [
  /** Organizations whose count has changed; 0 if they have no more streams. */
  z.object({ state: z.literal("changed"), edge: z.uuid(), streams: Streams }),
  /** One part of a complete report. The parts follow one another in order, with no other report in between. */
  z.object({
    state: z.literal("all"),
    edge: z.uuid(),
    part: z.int().min(1),
    parts: z.int().min(1),
    streams: Streams,
  }),
  /** The edge has stopped. Its streams are closed. */
  z.object({ state: z.literal("stopped"), edge: z.uuid() }),
]);
export type EdgeStreams = z.infer<typeof EdgeStreams>;

export const checkEdgeStreams = compileCheck(EdgeStreams);

export const edgeStreams = {
  /** A subject of core NATS; no stream stores it. */
  subject: "edge.streams",
  /** Time between two complete reports. */
  intervalMs: 1_000,
  /** Minimum time between two reports of changes. */
  coalescedMs: 50,
  /** Time without a report after which the streams of an edge no longer count. */
  silentAfterMs: 20_000,
  /** Maximum number of organizations in a report. One takes at most 50 bytes. */
  maxOrganizations: 5_000,
  /** A larger report is not parsed. */
  maxBytes: 256 * 1024,
} as const;
