import { setTimeout as delay } from "node:timers/promises";
import { type EventStream, openEventStream } from "@halyard/testing";
import type { Edge } from "../system/system.ts";

/**
 * A client that keeps a stream open to each edge and records the values of every flag. An edge may skip values that
 * follow each other quickly, but sends none twice and never in another order.
 */
export type SeenValues = {
  /** Returns the values of a flag in the order in which the edge sent them, without repetitions. */
  of(edge: StreamSource, flagKey: string): readonly boolean[];
  /** Returns the state of a stream: whether it is open, how often it was opened, and every failed attempt. */
  stream(edge: StreamSource): Readonly<FollowedStream>;
  stop(): Promise<void>;
};

/** The address of a stream: an edge, or a load balancer in front of gateways. */
export type StreamSource = Pick<Edge, "name" | "url">;
type FollowedStream = { isOpen: boolean; opened: number; failures: string[] };

const reopenAfterMs = 20;

export function recordValues(edges: readonly StreamSource[], clientKey: string): SeenValues {
  const seen = new Map<string, boolean[]>();
  const streams = new Map<StreamSource, FollowedStream>(
    edges.map((edge) => [edge, { isOpen: false, opened: 0, failures: [] }]),
  );
  const open = new Set<EventStream>();
  let stopping = false;

  const streamOf = (edge: StreamSource) => streams.get(edge) as FollowedStream;

  function note(edge: StreamSource, flagKey: string, value: boolean): void {
    const name = `${edge.name} ${flagKey}`;
    const values = seen.get(name) ?? [];
    if (values.at(-1) !== value) seen.set(name, [...values, value]);
  }

  async function follow(edge: StreamSource): Promise<void> {
    const state = streamOf(edge);
    while (!stopping) {
      const stream = await openEventStream(
        `${edge.url}/api/v1/sdk/stream`,
        { authorization: `Bearer ${clientKey}` },
        ({ event, data }) => {
          if (event !== "flags") return;
          const { flags } = data as { flags: Record<string, boolean> };
          for (const [flagKey, value] of Object.entries(flags)) note(edge, flagKey, value);
        },
      ).catch((error: Error) => void state.failures.push(error.message));
      if (stream?.status === 200) {
        state.isOpen = true;
        state.opened += 1;
      }
      if (stream !== undefined) {
        open.add(stream);
        if (stopping) stream.close();
        await stream.ended;
        open.delete(stream);
        state.isOpen = false;
        if (stream.status !== 200) state.failures.push(`${stream.status} ${stream.rest()}`);
      }
      await delay(reopenAfterMs);
    }
  }

  const following = edges.map(follow);
  return {
    of: (edge, flagKey) => seen.get(`${edge.name} ${flagKey}`) ?? [],
    stream: streamOf,
    async stop() {
      stopping = true;
      for (const stream of open) stream.close();
      await Promise.all(following);
    },
  };
}
