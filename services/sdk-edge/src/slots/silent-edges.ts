import { leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { LeaseContent } from "./lease-content.ts";
import type { LeaseStore } from "./lease-store.ts";

/** Maximum number of ended entries kept for debugging. */
const endedEntriesKept = 1_000;

type Parts = { content: LeaseContent; store: LeaseStore };

/** Ends the entries of edges that stopped renewing, so that their counts no longer apply. */
export function endSilentEdges(
  watched: { edgeId: string; forMs: number; endAfterMs: number },
  { content, store, logger }: Parts & { logger: Logger },
): void {
  for (const [id, edge] of content.edges) {
    if (id === watched.edgeId || edge.isEnded) continue;
    edge.silentMs += watched.forMs;
    if (edge.silentMs > watched.endAfterMs) void end(id, edge.revision);
  }

  /** Has no effect if the edge has renewed its entry meanwhile. */
  async function end(id: string, over: number): Promise<void> {
    const value = { state: "ended" };
    const written = await store.write(leaseKey.edge(id), value, over);
    if (written.outcome !== "written") return;
    content.apply(leaseKey.edge(id), { value, revision: written.revision });
    logger.warn({ edge: id }, "an edge stopped renewing its entry; its streams no longer count");
  }
}

export async function forgetLongEnded({ content, store }: Parts): Promise<void> {
  const ended = [...content.edges].filter(([, edge]) => edge.isEnded);
  ended.sort(([, one], [, other]) => other.revision - one.revision);
  for (const [id] of ended.slice(endedEntriesKept)) await store.forget(leaseKey.edge(id));
}
