import type { KeyLimits } from "@halyard/api-keys";
import type { Awaitable, Problem, RequestFacts } from "@halyard/http";
import type { Principal } from "./principal.ts";
import { costOfBytes, costOfPart, costOfTime, isLarge, isLargeEffect } from "./request-cost.ts";
import { createTurns, type EndTurn } from "./turns.ts";

/**
 * Shares the time of this process among organizations. Costs count towards the rate limit of the organization, and its
 * costly requests take turns. The operator has no limit.
 */
export type Costs = {
  /** Waits for the turn of the organization if the request needs one. */
  admit(
    input: Input,
    principal: Principal,
    kind: "read" | "costly_read" | "change",
  ): Awaitable<EndTurn | Problem | undefined>;
  /** Charges the messages of a change. */
  chargeMessages(input: Input, principal: Principal, bytes: number): void;
  /** Charges entries of an upload by their bytes. Their storage costs as much as the request itself. */
  chargeEntries(principal: Principal, bytes: number): void;
  /** Charges time of the event loop. */
  chargeTime(principal: Principal, ms: number): void;
};

type Input = { params: Readonly<Record<string, unknown>>; request: RequestFacts };

/** Returns the id of the flag that a request changes, undefined for its creation. An id can be written in either case. */
function flagOf({ params: { id, flagId = id } }: Input): string | undefined {
  return typeof flagId === "string" ? flagId.toLowerCase() : undefined;
}

export function createCosts({ limits, now }: { limits: KeyLimits; now: () => Date }): Costs {
  const turns = createTurns({
    monotonicMs: () => performance.now(),
    after: (ms, call) => void setTimeout(call, ms).unref(),
  });
  const nowMs = () => now().getTime();

  function charge(principal: Principal, cost: number): void {
    if (principal.kind === "key") limits.charge(principal.key.organizationId, nowMs(), cost);
  }

  return {
    admit(input, principal, kind) {
      if (principal.kind === "operator") return undefined;
      const { organizationId } = principal.key;
      const flagId = flagOf(input);
      const needsTurn =
        isLarge(input.request.headers) ||
        kind === "costly_read" ||
        (kind === "change" && flagId !== undefined && turns.areForSmallChanges(flagId, nowMs()));
      return needsTurn ? turns.take(organizationId) : undefined;
    },
    chargeMessages(input, principal, bytes) {
      charge(principal, costOfBytes(bytes));
      const flagId = flagOf(input);
      if (flagId !== undefined && isLargeEffect(bytes)) turns.noteLargeEffect(flagId, nowMs());
    },
    chargeEntries: (principal, bytes) => charge(principal, costOfPart(bytes)),
    chargeTime: (principal, ms) => charge(principal, costOfTime(ms)),
  };
}
