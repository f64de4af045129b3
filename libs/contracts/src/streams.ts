/** Names in JetStream. They are the interface between the services and never change. */

const flagEventSubjects = [
  "flag.created",
  "flag.updated",
  "flag.deleted",
  "flag.toggled",
  "flag_state.updated",
  "audience.updated",
  "change_request.opened",
  "change_request.approved",
  "change_request.rejected",
  "change_request.applied",
  "change_request.bypassed",
  "change_request.stale",
  "environment.protection_changed",
] as const;
/** Not an event for webhooks: the address of a user is removed from stored payloads. */
const erasureSubject = "user.erased";

/** The log of domain events, in their order, for seven days. */
export const flagEventsStream = {
  name: "FLAG_EVENTS",
  subjects: flagEventSubjects,
  erasureSubject,
  /** All subjects of the stream. */
  allSubjects: [...flagEventSubjects, erasureSubject] as readonly string[],
  /** Durable consumer of the webhook dispatcher. */
  webhookConsumer: "webhook-dispatcher",
  maxAgeMs: 7 * 24 * 60 * 60 * 1000,
  /** Two million events of 1 KiB. The broker discards the oldest first. */
  defaultMaxBytes: 2 * 1024 * 1024 * 1024,
  /** Time during which the broker drops a message with a known id. */
  duplicateWindowMs: 2 * 60 * 1000,
};

/**
 * Due changes from the scheduler to management, and their outcomes in the other direction. A work queue: a message
 * stays until its consumer acknowledges it.
 */
export const scheduleStream = {
  name: "SCHEDULE",
  due: { subject: "schedule.due", consumer: "management" },
  resolved: { subject: "schedule.resolved", consumer: "scheduler" },
  /** Time during which the broker drops a message with a known id. */
  duplicateWindowMs: 2 * 60 * 1000,
} as const;

/**
 * Usage from the edges to usage-metering, and times of last use from all other services to management. A work queue
 * with one consumer for each subject.
 */
export const usageStream = {
  name: "USAGE",
  recorded: { subject: "usage.recorded", consumer: "usage-metering" },
  lastSeen: { subject: "usage.last_seen", consumer: "management" },
  /** Time during which the broker drops a message with a known id. */
  duplicateWindowMs: 2 * 60 * 1000,
  /**
   * A full stream rejects messages, and the edges keep counting in memory. Discarding the oldest messages instead
   * would lose usage.
   */
  maxBytes: 1024 * 1024 * 1024,
} as const;

/**
 * Evaluations made in applications, which their SDKs report through the edges. A work queue of its own: applications
 * decide how much is reported, and a flood of reports must not take the room of the edges' own counts.
 */
export const evaluationsStream = {
  name: "EVALUATIONS",
  reported: { subject: "evaluations.reported", consumer: "usage-metering" },
  /** Time during which the broker drops a message with a known id. */
  duplicateWindowMs: 2 * 60 * 1000,
  /** A full stream rejects messages. Edges then answer 503, and the SDKs keep their counts and retry. */
  maxBytes: 256 * 1024 * 1024,
} as const;

/** Changes of webhooks and schedules, for the audit log of management. A work queue. */
export const auditStream = {
  name: "AUDIT",
  recorded: { subject: "audit.recorded", consumer: "management" },
  /** Time during which the broker drops a message with a known id. */
  duplicateWindowMs: 2 * 60 * 1000,
  /**
   * Room for hundreds of thousands of changes. A full stream rejects messages, which stay in the outbox of their
   * service.
   */
  maxBytes: 256 * 1024 * 1024,
} as const;

/** The services that sign their messages. */
export type SigningService = "management" | "scheduler" | "webhook-dispatcher";

const writers = new Map<string, readonly SigningService[]>([
  ...flagEventsStream.subjects.map((subject) => [subject, ["management"]] as const),
  [flagEventsStream.erasureSubject, ["management"]],
  [scheduleStream.due.subject, ["scheduler"]],
  [scheduleStream.resolved.subject, ["management"]],
  [auditStream.recorded.subject, ["scheduler", "webhook-dispatcher"]],
]);

/** Returns the services that write the signed messages of a subject; none if its messages are not signed. */
export const writersOf = (subject: string): readonly SigningService[] => writers.get(subject) ?? [];

/** Requests of each organization in the current month: a KV bucket with one entry for each organization. */
export const quotaBucket = {
  bucket: "QUOTA",
  streamName: "KV_QUOTA",
  subjectPrefix: "$KV.QUOTA.",
} as const;

/**
 * Dead letters: messages that no consumer can process, with the reason in their headers. They block no queue and can
 * be examined. The subject is `set_aside.` and the original subject.
 */
export const deadLetterStream = {
  name: "SET_ASIDE",
  subjectPrefix: "set_aside.",
  maxAgeMs: 30 * 24 * 60 * 60 * 1000,
  /** Keeps broken messages from filling the broker's disk. The broker discards the oldest first. */
  maxBytes: 64 * 1024 * 1024,
} as const;

/** The snapshot: a KV bucket with the newest value of each entry. Release 0.1 has another one, `SNAPSHOT`. */
export const snapshotBucket = {
  bucket: "SNAPSHOT_2",
  streamName: "KV_SNAPSHOT_2",
  subjectPrefix: "$KV.SNAPSHOT_2.",
};

/**
 * Minimum lifetime of a deletion in the snapshot, so that a delayed write cannot restore the entry. A reader
 * that resumes within one epoch from a revision of at most this age misses no deletion.
 */
export const tombstoneLifetimeMs = 7 * 24 * 60 * 60 * 1000;

/**
 * Minimum lifetime of the deletion of a chunk, which is far shorter because each change of a list leaves one. A reader
 * that misses it removes the chunk when it receives the audience, which no longer names the chunk.
 */
export const chunkTombstoneLifetimeMs = 10 * 60 * 1000;

/**
 * Maximum number of entries that the relay publishes before it records them. After a crash, the broker may assign the
 * sequences of such entries again, so a reader that resumes reads as many again.
 */
export const snapshotBatchEntries = 500;
