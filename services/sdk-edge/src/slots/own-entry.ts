import { leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { Clock } from "./clock.ts";
import type { FollowedContent } from "./lease-content.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { SlotTimes } from "./slot-times.ts";

/**
 * This edge's own entry, which says that the edge lives. The other edges count its streams while it is
 * renewed, and end it after a silence. An edge that was silent renews the entry and then writes its
 * counts again. Until the renewal it admits nothing, because the others may have admitted in its place.
 *
 * The state is computed from the clock at each use: a process that was suspended may handle requests
 * before timers.
 */
export type OwnEntry = {
  /** True while the other edges certainly count the streams that this edge publishes. */
  isCounted(): boolean;
  /** True while other edges may still be publishing their counts into a new bucket. */
  isBucketNew(): boolean;
  /** True when NATS does not acknowledge renewals, even if it is connected. */
  isUnanswered(): boolean;
  /** Every entry of the bucket was received. */
  caughtUp(): void;
  /** Renews the entry if it is due. Creates the bucket if it does not exist. */
  check(): void;
  /** Ends the entry, so that the other edges no longer count this edge's streams. */
  stop(): Promise<void>;
};

/** Lost messages alone do not add up to so many in a row. */
const unansweredRenewals = 10;
const lastTries = 3;

export function createOwnEntry(options: {
  edgeId: string;
  store: LeaseStore;
  bucket: FollowedContent;
  clock: Clock;
  times: SlotTimes;
  logger: Logger;
}): OwnEntry {
  const { edgeId, store, bucket, clock, times, logger } = options;
  const key = leaseKey.edge(edgeId);
  let renewedMs = Number.NEGATIVE_INFINITY;
  let renewals = 0;
  let unanswered = 0;
  let newUntilMs = Number.NEGATIVE_INFINITY;
  let isStopping = false;
  let checking: Promise<void> | undefined;

  const entry = () => bucket.content.edges.get(edgeId) ?? { revision: 0, isEnded: false };
  const renewedAgoMs = () => clock.elapsed() - renewedMs;

  function isCounted(): boolean {
    const { revision, isEnded } = entry();
    const isKnown = store.isCurrent() && revision > 0 && !isEnded;
    return isKnown && !isStopping && renewedAgoMs() < times.countedForMs;
  }

  async function write(value: object): Promise<boolean> {
    const { content } = bucket;
    const written = await store.write(key, value, entry().revision);
    unanswered = written.outcome === "unknown" ? unanswered + 1 : 0;
    if (written.outcome !== "written") return false;
    content.apply(key, { value, revision: written.revision });
    return true;
  }

  async function renew(): Promise<void> {
    if (entry().isEnded) logger.warn({ edge: edgeId }, "other edges ended this edge's entry");
    if (entry().revision === 0) renewals = 0;
    const sentMs = clock.elapsed();
    if (!(await write({ state: "held", renewals }))) return;
    renewedMs = sentMs;
    renewals += 1;
  }

  async function renewIfDue(): Promise<void> {
    if (!store.isCurrent()) unanswered = (await store.prepare()) ? 0 : unanswered + 1;
    else if (!isCounted() || renewedAgoMs() >= times.renewEveryMs) await renew();
  }

  return {
    isCounted,
    /** An entry that was renewed often enough proves that the bucket is older. */
    isBucketNew() {
      if (!store.isCurrent() || clock.elapsed() >= newUntilMs) return false;
      const enough = Math.ceil(times.publishWithinMs / times.renewEveryMs);
      return ![...bucket.content.edges.values()].some((edge) => edge.renewals >= enough);
    },
    isUnanswered: () => unanswered >= unansweredRenewals,
    caughtUp() {
      if (entry().revision === 0) newUntilMs = clock.elapsed() + times.publishWithinMs;
    },
    check() {
      if (isStopping || checking !== undefined) return;
      checking = renewIfDue().finally(() => {
        checking = undefined;
      });
    },
    async stop() {
      isStopping = true;
      await checking;
      for (let tries = 0; tries < lastTries && entry().revision > 0; tries += 1)
        if (await write({ state: "ended" })) return;
    },
  };
}
