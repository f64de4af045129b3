import { unknownKey } from "./authentication.ts";
import type { EdgeParts } from "./edge-parts.ts";
import type { SdkExchange } from "./hot-path.ts";

/**
 * Calls `respond` with true as soon as this edge has the state that a client refers to, or a later one. Calls it with
 * false if that takes longer than a second, or if too many requests wait. A client whose key ends meanwhile is rejected.
 */
export function awaitState(
  { waiting, isKeyLive, now }: Pick<EdgeParts, "waiting" | "isKeyLive" | "now">,
  exchange: SdkExchange,
  { isKnown, respond }: { isKnown: () => boolean; respond: (isKnown: boolean) => void },
): void {
  if (isKnown()) {
    respond(true);
    return;
  }
  const { key, response } = exchange;
  const leave = () => giveUp?.();
  const giveUp = waiting.wait(key.environmentId, {
    isKnown,
    // A timer calls this, or the code that applies a change. An error must not reach either of them.
    resume: () =>
      exchange.guarded(() => {
        response.off("close", leave);
        if (isKeyLive(key.id, now())) respond(isKnown());
        else exchange.reject(unknownKey);
      }),
  });
  if (giveUp === undefined) respond(false);
  else response.once("close", leave);
}
