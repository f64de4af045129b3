import { createProblem, type Problem } from "@halyard/service";
import type { Exchange } from "../http/exchange.ts";
import type { StreamSlots } from "../slots/stream-slots.ts";

/**
 * The problem of a stream request on a stopping edge. It closes the connection, because a gateway sends the request to
 * another edge only then. Requests that arrived before the edge began to drain also receive it.
 */
export const edgeIsStopping = createProblem("SERVER_002", "This edge is stopping; connect again.", {
  connection: "close",
});

/** Takes a slot for a requested stream and releases it when the response ends. */
export function takeSlot(
  exchange: Exchange,
  { slots, isDraining }: { slots: StreamSlots | undefined; isDraining: () => boolean },
  outcome: {
    reject: (problem: Problem) => void;
    /** `open` is called when the stream can begin. It begins unless the edge has begun to drain. */
    granted: (open: (begin: () => void) => void) => void;
  },
): void {
  const { response, key } = exchange;
  const reject = (problem: Problem) => {
    if (!response.destroyed) outcome.reject(problem);
  };
  const open = (begin: () => void) => (isDraining() ? reject(edgeIsStopping) : begin());
  if (slots === undefined) {
    outcome.granted(open);
    return;
  }
  const { organizationId } = key;
  const granted = () => {
    if (response.destroyed) {
      slots.release(organizationId);
      return;
    }
    response.once("close", () => slots.release(organizationId));
    if (isDraining()) reject(edgeIsStopping);
    else outcome.granted(open);
  };
  slots.take(organizationId, (problem) =>
    exchange.guarded(() => (problem === undefined ? granted() : reject(problem))),
  );
}
