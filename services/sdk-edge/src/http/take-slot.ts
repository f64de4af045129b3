import { createProblem, type Problem } from "@halyard/http";
import type { StreamSlots } from "../admission/stream-slots.ts";
import type { SdkExchange } from "./hot-path.ts";

/**
 * The problem of a stream request on a stopping edge. It closes the connection, because a gateway sends the request to
 * another edge only then. Requests that arrived before the edge began to drain also receive it.
 */
export const edgeIsStopping = createProblem("SERVER_002", "This edge is stopping; connect again.", {
  connection: "close",
});

/**
 * Takes a slot for a requested stream and releases it when the response ends. `granted` calls `open` when the stream can
 * begin. It begins unless the edge has begun to drain.
 */
export function takeSlot(
  exchange: SdkExchange,
  { slots, isDraining }: { slots: StreamSlots | undefined; isDraining: () => boolean },
  granted: (open: (begin: () => void) => void) => void,
): void {
  const { response, key } = exchange;
  if (response.destroyed) return;
  const reject = (problem: Problem) => {
    if (!response.destroyed) exchange.reject(problem);
  };
  const problem = slots?.take(key.organizationId);
  if (problem !== undefined) {
    reject(problem);
    return;
  }
  response.once("close", () => slots?.release(key.organizationId));
  granted((begin) => (isDraining() ? reject(edgeIsStopping) : begin()));
}
