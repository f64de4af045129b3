/**
 * Names of what lives in JetStream. They are the interface between the services and are never renamed.
 */

/** The log of domain events: what happened, in order, for seven days. */
export const flagEventsStream = {
  name: "FLAG_EVENTS",
  subjects: [
    "flag.created",
    "flag.updated",
    "flag.deleted",
    "flag.toggled",
    "flag_state.updated",
  ] as const,
  maxAgeMs: 7 * 24 * 60 * 60 * 1000,
  /** Within this time the broker itself drops a message id that it has seen. */
  duplicateWindowMs: 2 * 60 * 1000,
};

/** The snapshot: what is, compacted to the newest value of each entry (a JetStream KV bucket). */
export const snapshotBucket = {
  bucket: "SNAPSHOT",
  streamName: "KV_SNAPSHOT",
  subjectPrefix: "$KV.SNAPSHOT.",
};

/** How long a deletion stays in the snapshot, so that no older writer resurrects what was deleted. */
export const tombstoneLifetimeMs = 7 * 24 * 60 * 60 * 1000;
