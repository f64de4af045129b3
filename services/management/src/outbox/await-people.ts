import type { PeopleDirectory } from "@halyard/people";
import { pause } from "@halyard/timing";
import type { WrittenEntry } from "./write.ts";

/** Maximum time that a response waits. */
const timeoutMs = 500;
/** The directory receives an entry a few milliseconds after the commit. */
const pollIntervalMs = 1;

/**
 * Creates the wait of a write for its entries about people, so that the next request of the same browser finds them in
 * this process. It ends early while NATS is disconnected. It never fails the write.
 */
export function createAwaitPeople(
  people: Pick<PeopleDirectory, "valueOf">,
  isCurrent: () => boolean,
): (written: readonly WrittenEntry[]) => Promise<void> {
  return async (written) => {
    const deadlineMs = performance.now() + timeoutMs;
    const isKnown = ({ address, version }: WrittenEntry) =>
      (people.valueOf(address)?.version ?? 0) >= version;
    while (!written.every(isKnown) && isCurrent() && performance.now() < deadlineMs)
      await pause(pollIntervalMs);
  };
}
