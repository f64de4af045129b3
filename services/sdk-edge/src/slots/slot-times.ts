/** Every duration is measured on one machine. Clocks of two machines are never compared. */
export type SlotTimes = {
  /** Interval of checks: counts that changed are written, and failed renewals are sent again. */
  checkEveryMs: number;
  /** Interval at which an edge renews its own entry. */
  renewEveryMs: number;
  /** Time after sending an acknowledged renewal for which the other edges certainly count this edge. */
  countedForMs: number;
  /** Time without a renewal after which the other edges end an edge's entry. */
  endAfterMs: number;
  /** Time that edges have to publish their counts into a new bucket before any of them admits. */
  publishWithinMs: number;
  /** Minimum interval of writes for an organization without a limit, where the count is for reports alone. */
  writeUnlimitedEveryMs: number;
  /** Maximum time that a request for a stream waits for an answer of NATS. */
  patienceMs: number;
  /** Time without a connection after which an edge admits against the last counts that it received. */
  awayAfterMs: number;
};

/**
 * Six renewals may be lost. Between `countedForMs` and `endAfterMs` lies a margin for clocks that run at
 * different rates. The slots of a killed edge are free 22 seconds after its last renewal.
 */
export const slotTimes: SlotTimes = {
  checkEveryMs: 500,
  renewEveryMs: 2_000,
  countedForMs: 15_000,
  endAfterMs: 20_000,
  publishWithinMs: 5_000,
  writeUnlimitedEveryMs: 1_000,
  patienceMs: 5_000,
  awayAfterMs: 1_000,
};
