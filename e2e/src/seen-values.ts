import { setTimeout as delay } from "node:timers/promises";
import { type EventStream, openEventStream } from "@halyard/testing";
import type { Edge } from "./system.ts";

/**
 * A client that holds a stream open to each edge and writes down what it is told of every flag. An
 * edge may leave values out when they follow one another quickly, but tells of none twice, and never
 * in another order.
 */
export type SeenValues = {
  /** The values of a flag as the edge told them one after another, without repetitions. */
  of(edge: Edge, flagKey: string): readonly boolean[];
  stop(): Promise<void>;
};

const reopenAfterMs = 20;

export function recordValues(edges: readonly Edge[], clientKey: string): SeenValues {
  const seen = new Map<string, boolean[]>();
  const open = new Set<EventStream>();
  let stopping = false;

  function note(edge: Edge, flagKey: string, value: boolean): void {
    const place = `${edge.name} ${flagKey}`;
    const values = seen.get(place) ?? [];
    if (values.at(-1) !== value) seen.set(place, [...values, value]);
  }

  async function follow(edge: Edge): Promise<void> {
    while (!stopping) {
      const stream = await openEventStream(
        `${edge.url}/api/v1/sdk/stream`,
        { authorization: `Bearer ${clientKey}` },
        ({ event, data }) => {
          if (event !== "flags") return;
          const { flags } = data as { flags: Record<string, boolean> };
          for (const [flagKey, value] of Object.entries(flags)) note(edge, flagKey, value);
        },
      ).catch(() => undefined);
      if (stream !== undefined) {
        open.add(stream);
        if (stopping) stream.close();
        await stream.ended;
        open.delete(stream);
      }
      await delay(reopenAfterMs);
    }
  }

  const following = edges.map(follow);
  return {
    of: (edge, flagKey) => seen.get(`${edge.name} ${flagKey}`) ?? [],
    async stop() {
      stopping = true;
      for (const stream of open) stream.close();
      await Promise.all(following);
    },
  };
}
