import type { Refusal } from "@halyard/service";
import type { StreamSlots } from "../slots/stream-slots.ts";
import { elsewhere } from "./begin-stream.ts";
import type { Exchange } from "./endpoint.ts";

/** Takes a slot for a requested stream and releases it when the response ends. */
export function takeSlot(
  { response, key, guarded }: Exchange,
  { slots, isDraining }: { slots: StreamSlots | undefined; isDraining: () => boolean },
  outcome: {
    refuse: (refusal: Refusal) => void;
    /** `open` is called when the stream can begin. It begins unless the edge has begun to drain. */
    given: (open: (begin: () => void) => void) => void;
  },
): void {
  const refuse = (refusal: Refusal) => {
    if (!response.destroyed) outcome.refuse(refusal);
  };
  const open = (begin: () => void) => (isDraining() ? refuse(elsewhere) : begin());
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
    if (isDraining()) refuse(elsewhere);
    else outcome.given(open);
  };
  slots.take(organizationId, (refusal) =>
    guarded(() => (refusal === undefined ? given() : refuse(refusal))),
  );
}
