/**
 * The times by which edges agree on who holds slots. No two machines' clocks are ever compared: each
 * figure is measured on one machine, and the order of them is what keeps the count exact. An edge that
 * hears nothing closes its streams after `validForMs`, and the others take its slots `endAfterMs` after
 * they last heard of it, which was later than it last spoke.
 */
export type SlotTimes = {
  /** How often an edge renews its lease. */
  renewEveryMs: number;
  /** How soon what could not be said is tried again. */
  retryAfterMs: number;
  /** How long a lease is good for, from when its last acknowledged renewal was sent. */
  validForMs: number;
  /** How long a lease must have been silent for the others to end it. */
  endAfterMs: number;
  /** How often the others' leases are looked at. */
  watchEveryMs: number;
  /** How long a slot that has become free is kept for who comes back at once, before all may have it. */
  keepFreeForMs: number;
  /** How long an organization without limit may have other streams than are written down for it. */
  tellUnlimitedAfterMs: number;
  /** After a refusal the others are not asked again for so long: a flood costs the broker ten reads a second. */
  fullForMs: number;
  /** How long who asks for a stream waits to be told whether there is a slot. */
  patienceMs: number;
  /** When NATS has been away for so long, nobody waits for it. */
  awayAfterMs: number;
};

/**
 * A lease may miss six renewals. A quarter more than it is good for lies between its end and the moment
 * at which others end it: no clock runs that wrong, and streams are closed in that time. A killed edge's
 * slots are free 22 seconds after its last word at the latest, of the 30 that are promised.
 */
export const slotTimes: SlotTimes = {
  renewEveryMs: 2_000,
  retryAfterMs: 250,
  validForMs: 15_000,
  endAfterMs: 20_000,
  watchEveryMs: 1_000,
  keepFreeForMs: 250,
  tellUnlimitedAfterMs: 1_000,
  fullForMs: 100,
  patienceMs: 5_000,
  awayAfterMs: 1_000,
};
