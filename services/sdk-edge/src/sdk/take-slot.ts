import { type Refusal, refuse } from "@halyard/service";
import type { Exchange } from "../http/exchange.ts";
import type { StreamSlots } from "../slots/stream-slots.ts";

/**
 * Closes the connection, also when the edge began to drain after the request arrived: a gateway sends a read to
 * another edge only then.
 */
export const elsewhere = refuse("SERVER_002", "This edge is stopping; connect again.", {
  connection: "close",
});

/** Takes a slot for a requested stream and releases it when the response ends. */
export function takeSlot(
  exchange: Exchange,
  { slots, isDraining }: { slots: StreamSlots | undefined; isDraining: () => boolean },
  outcome: {
    refuse: (refusal: Refusal) => void;
    /** `open` is called when the stream can begin. It begins unless the edge has begun to drain. */
    given: (open: (begin: () => void) => void) => void;
  },
): void {
  const { response, key } = exchange;
  const reject = (refusal: Refusal) => {
    if (!response.destroyed) outcome.refuse(refusal);
  };
  const open = (begin: () => void) => (isDraining() ? reject(elsewhere) : begin());
  if (slots === undefined) {
    outcome.given(open);
    return;
  }
  const { organizationId } = key;
  const given = () => {
    if (response.destroyed) {
      slots.release(organizationId);
      return;
    }
    response.once("close", () => slots.release(organizationId));
    if (isDraining()) reject(elsewhere);
    else outcome.given(open);
  };
  slots.take(organizationId, (refusal) =>
    exchange.guarded(() => (refusal === undefined ? given() : reject(refusal))),
  );
}
