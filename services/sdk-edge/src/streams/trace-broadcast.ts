import { startSpan } from "@halyard/tracing";
import type { TracedEntry } from "../snapshot/snapshot-holder.ts";

/**
 * Runs the broadcast of an environment's changes to its streams in one span. The span is in the trace of the first
 * change, and links to every change that is sent with it. Streams whose users must be evaluated receive their events
 * later, outside of the span.
 */
export function traceBroadcast(
  environmentId: string,
  traced: readonly TracedEntry[],
  broadcast: () => void,
): void {
  const changes = traced.filter(({ entry }) => concerns(entry, environmentId));
  const [first] = changes;
  const span =
    first &&
    startSpan("broadcast", {
      parent: first.span.context,
      links: changes.map((change) => change.span.context),
      attributes: { "halyard.environment.id": environmentId, "halyard.changes": changes.length },
    });
  broadcast();
  span?.end();
}

/** A change of an audience can affect every environment. */
function concerns({ address }: TracedEntry["entry"], environmentId: string): boolean {
  if (address.kind === "audience" || address.kind === "chunk") return true;
  return "environmentId" in address && address.environmentId === environmentId;
}
