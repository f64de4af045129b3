import { leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import { createAbandonedLeases } from "./abandoned-leases.ts";
import { type Clock, createRests } from "./clock.ts";
import { stateOf, writeHeld } from "./lease-entry.ts";
import type { LeaseStore, StoredEntry } from "./lease-store.ts";
import type { SlotTimes } from "./slot-times.ts";

/**
 * The lease by which this edge holds slots. It is renewed again and again, and good for a while from
 * when its last acknowledged renewal was sent: from no earlier moment can others have counted its
 * silence. A lease that was not good once is never used again, even if nobody has ended it: the edge
 * ends it itself, and takes another under a new id. So whatever was written for the old one, and may
 * still be on its way, counts for nothing.
 *
 * Whether it is good is asked of the clock each time. A process that was stopped handles its requests
 * before its timers when it goes on, and must not admit anybody by a lease that ended meanwhile.
 */
export type OwnLease = {
  /** The lease's id while it is good; undefined while there is none. */
  goodId(): string | undefined;
  /** What stands for a lease now; undefined when nothing does. */
  hear(leaseId: string, entry: StoredEntry | undefined): void;
  /** Tries at once what would be tried again soon. */
  hurry(): void;
  /** Gives the lease up, so that others may have its slots at once. */
  stop(): Promise<void>;
};

type HeldLease = { id: string; revision: number; renewals: number; sentMs: number };

/** How often giving up is tried at the end; when it fails, others end the lease in time. */
const lastTries = 3;

export function createOwnLease(options: {
  store: LeaseStore;
  clock: Clock;
  times: SlotTimes;
  newId: () => string;
  onTaken: () => void;
  /** Nothing that the lease held may be used any more. */
  onOver: () => void;
  logger: Logger;
}): OwnLease {
  const { store, clock, times, logger } = options;
  const abandoned = createAbandonedLeases(store);
  const rests = createRests(clock);
  let held: HeldLease | undefined;
  let isStopping = false;

  const goodForMs = ({ sentMs }: HeldLease) => times.validForMs - (clock.elapsed() - sentMs);

  function good(): HeldLease | undefined {
    if (held !== undefined && goodForMs(held) <= 0) lose("it was not renewed in time");
    return held;
  }

  function lose(reason: string): void {
    if (held === undefined) return;
    logger.warn({ lease: held.id, reason }, "the lease of this edge is over");
    abandoned.add(held.id, held.revision);
    held = undefined;
    options.onOver();
  }

  /** Notices the end of the time also when nobody asks. */
  function watchTheClock(lease: HeldLease): void {
    if (held === lease && good() === lease)
      clock.after(goodForMs(lease), () => watchTheClock(lease));
  }

  async function take(): Promise<void> {
    if (!(await store.prepare())) return;
    await abandoned.end();
    const lease = { id: options.newId(), revision: 0, renewals: 0, sentMs: clock.elapsed() };
    const written = await writeHeld(store, lease.id, { renewals: 0, over: 0 });
    if (written.outcome !== "written") return;
    held = { ...lease, revision: written.revision };
    watchTheClock(held);
    if (good() === undefined) return;
    logger.info({ lease: lease.id }, "this edge has a lease");
    options.onTaken();
  }

  async function renew(lease: HeldLease): Promise<void> {
    const sentMs = clock.elapsed();
    const renewals = lease.renewals + 1;
    const written = await writeHeld(store, lease.id, { renewals, over: lease.revision });
    if (good() !== lease) return;
    if (written.outcome === "written")
      Object.assign(lease, { revision: written.revision, renewals, sentMs });
    if (written.outcome !== "conflict") return;
    const found = await store.read(leaseKey.edge(lease.id));
    if (found.outcome === "read") hear(lease.id, found.entry);
  }

  function hear(leaseId: string, entry: StoredEntry | undefined): void {
    if (held?.id !== leaseId) return;
    if (entry === undefined) lose("nothing is known of it");
    else if (stateOf(entry) !== "held") lose("it was ended");
    // Perhaps a renewal of which no answer came.
    else held.revision = Math.max(held.revision, entry.revision);
  }

  async function keep(): Promise<void> {
    while (!isStopping) {
      const lease = good();
      const saidMs = lease?.sentMs;
      await (lease === undefined ? take() : renew(lease));
      if (abandoned.size > 0) await abandoned.end();
      const isSaid = held !== undefined && held.sentMs !== saidMs;
      if (!isStopping) await rests.rest(isSaid ? times.renewEveryMs : times.retryAfterMs);
    }
  }

  const keeping = keep();
  return {
    goodId: () => good()?.id,
    hear,
    hurry: rests.hurry,
    async stop() {
      isStopping = true;
      rests.hurry();
      await keeping;
      if (held !== undefined) abandoned.add(held.id, held.revision);
      held = undefined;
      for (let tries = 0; tries < lastTries && abandoned.size > 0; tries += 1)
        await abandoned.end();
    },
  };
}
