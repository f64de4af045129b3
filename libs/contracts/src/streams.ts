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
  /** The durable consumer of the service that tells customers' systems. */
  webhookConsumer: "webhook-dispatcher",
  maxAgeMs: 7 * 24 * 60 * 60 * 1000,
  /** Two million events of 1 KiB. The oldest are discarded first. */
  defaultMaxBytes: 2 * 1024 * 1024 * 1024,
  /** Within this time the broker itself drops a message id that it has seen. */
  duplicateWindowMs: 2 * 60 * 1000,
};

/**
 * Changes that have come due, from the scheduler to management, and what became of them, back. A work
 * queue: a message stays until its reader has taken care of it.
 */
export const scheduleStream = {
  name: "SCHEDULE",
  due: { subject: "schedule.due", consumer: "management" },
  resolved: { subject: "schedule.resolved", consumer: "scheduler" },
  /** Within this time the broker itself drops a message id that it has seen. */
  duplicateWindowMs: 2 * 60 * 1000,
} as const;

/**
 * What was used, from the edges to usage-metering, and when it was last seen, on to management. A work
 * queue with a consumer for each subject.
 */
export const usageStream = {
  name: "USAGE",
  recorded: { subject: "usage.recorded", consumer: "usage-metering" },
  lastSeen: { subject: "usage.last_seen", consumer: "management" },
  /** Within this time the broker itself drops a message id that it has seen. */
  duplicateWindowMs: 2 * 60 * 1000,
  /**
   * While nobody reads, this much is kept. Then the broker takes no more, and edges go on adding up in
   * their own memory, which loses nothing; dropping the oldest would.
   */
  maxBytes: 1024 * 1024 * 1024,
} as const;

/** Changes of webhooks and schedules, on their way to the audit log of management. A work queue. */
export const auditStream = {
  name: "AUDIT",
  recorded: { subject: "audit.recorded", consumer: "management" },
  /** Within this time the broker drops a message whose id it has seen. */
  duplicateWindowMs: 2 * 60 * 1000,
  /**
   * Hundreds of thousands of changes. A full stream rejects messages, which stay in the outbox of the service that
   * made the change.
   */
  maxBytes: 256 * 1024 * 1024,
} as const;

/** How much each organization has used (a JetStream KV bucket, one entry for each). */
export const quotaBucket = {
  bucket: "QUOTA",
  streamName: "KV_QUOTA",
  subjectPrefix: "$KV.QUOTA.",
} as const;

/** Which edge holds how many slots for streams of which organization (a JetStream KV bucket). */
export const leasesBucket = {
  bucket: "LEASES",
  streamName: "KV_LEASES",
  subjectPrefix: "$KV.LEASES.",
} as const;

/**
 * Where a message goes that no reader can process, with the reason in its headers, so that it blocks
 * nothing and somebody can look at it. Its subject is `set_aside.` and the subject that it had.
 */
export const deadLetterStream = {
  name: "SET_ASIDE",
  subjectPrefix: "set_aside.",
  maxAgeMs: 30 * 24 * 60 * 60 * 1000,
  /** A flood of broken messages must not fill the broker's disk: the oldest go first. */
  maxBytes: 64 * 1024 * 1024,
} as const;

/** The snapshot: what is, compacted to the newest value of each entry (a JetStream KV bucket). */
export const snapshotBucket = {
  bucket: "SNAPSHOT",
  streamName: "KV_SNAPSHOT",
  subjectPrefix: "$KV.SNAPSHOT.",
};

/**
 * Minimum time for which a deletion stays in the snapshot, so that no older writer brings the entry
 * back. A reader that resumes within one epoch from a revision of at most this age misses no deletion.
 */
export const tombstoneLifetimeMs = 7 * 24 * 60 * 60 * 1000;

/**
 * Maximum number of entries that the relay publishes before it records them. After a crash of the broker,
 * the sequences of such entries may be assigned again, so a reader that resumes repeats as many.
 */
export const snapshotBatchEntries = 500;
