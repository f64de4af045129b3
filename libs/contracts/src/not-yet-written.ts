import type { OperatorName } from "@halyard/evaluation";
import type { EventName } from "./events.ts";

/**
 * New operators and events that this release reads but does not write: requests cannot contain the operators, and
 * management cannot publish the events. During a rolling upgrade, processes of an earlier release would reject them: an
 * edge would keep the old state of the flag, and a webhook dispatcher would dead-letter the event. A name leaves the
 * list when all releases in `libs/contracts/released` read it.
 */
export const notYetWritten = [] as const satisfies readonly (OperatorName | EventName)[];

export type PublishedEvent = Exclude<EventName, (typeof notYetWritten)[number]>;

/** Returns whether requests may contain an operator. */
export function isWritten(operator: string): boolean {
  return !(notYetWritten as readonly string[]).includes(operator);
}
