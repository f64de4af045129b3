import type { Refusal } from "@halyard/service";
import { elsewhere } from "../sdk/begin-stream.ts";
import type { Exchange } from "../sdk/endpoint.ts";
import { slotsUnknown } from "./slot-refusals.ts";
import type { StreamSlots } from "./stream-slots.ts";

/**
 * Takes a slot for a stream that is asked for, and gives it back when the answer is over, however it
 * ends: with the stream, with a refusal for another reason, or because the client has left.
 */
export function takeSlot(
  { response, key, guarded }: Exchange,
  { slots, isDraining }: { slots: StreamSlots | undefined; isDraining: () => boolean },
  outcome: {
    refuse: (refusal: Refusal) => void;
    /**
     * `open` is called when the stream can begin. It begins unless meanwhile the slot was lost, or the
     * edge began to close the streams that it has, of which this one would be none.
     */
    given: (open: (begin: () => void) => void) => void;
  },
): void {
  const refuse = (refusal: Refusal) => {
    if (!response.destroyed) outcome.refuse(refusal);
  };
  if (slots === undefined) {
    outcome.given((begin) => (isDraining() ? refuse(elsewhere) : begin()));
    return;
  }
  const { organizationId } = key;
  const given = () => {
    if (response.destroyed) {
      slots.release(organizationId);
      return;
    }
    response.once("close", () => slots.release(organizationId));
    const { losses } = slots;
    const open = (begin: () => void) => {
      if (isDraining()) refuse(elsewhere);
      else if (slots.losses !== losses) refuse(slotsUnknown);
      else begin();
    };
    if (isDraining()) refuse(elsewhere);
    else outcome.given(open);
  };
  slots.take(organizationId, (refusal) =>
    guarded(() => (refusal === undefined ? given() : refuse(refusal))),
  );
}
