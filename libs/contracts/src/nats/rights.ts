import { edgeReports } from "../edge-reports.ts";
import { edgeStreams } from "../edge-streams.ts";
import { peopleBucket, peopleCompleteKey } from "../people.ts";
import { processStatuses } from "../process-status.ts";
import { completeKey, keysAndScopesFilter } from "../snapshot.ts";
import {
  auditStream,
  deadLetterStream,
  evaluationsStream,
  flagEventsStream,
  quotaBucket,
  scheduleStream,
  snapshotBucket,
  usageStream,
} from "../streams.ts";

/**
 * The rights of each NATS user. Every configuration of a NATS server is generated from this table. A user may
 * publish and subscribe only to the subjects listed here.
 *
 * JetStream sends its replies with its own rights, to any subject that a request names. A user that may send such a
 * request can therefore make the broker publish on any subject, without a right to it. docs/security.md lists the
 * consequences.
 */
export const natsUsers = [
  "management",
  "scheduler",
  "sdk-edge",
  "webhook-dispatcher",
  "usage-metering",
  "setup",
  /** For `npm run doctor`, which reads and changes nothing. */
  "doctor",
  /** For operators with the `nats` command. No process uses it. */
  "operator",
] as const;
export type NatsUser = (typeof natsUsers)[number];

type NatsRights = { publish: readonly string[]; subscribe: readonly string[] };

/** Prefix of the reply subjects of a user. Only this user may subscribe to them. */
export const inboxPrefixOf = (user: string) => `_INBOX.${user}`;

type Queue = { subject: string; consumer: string };

const api = (operation: string, ...tokens: string[]) => ["$JS.API", operation, ...tokens].join(".");

const info = (stream: string) => api("STREAM.INFO", stream);

/** Subjects of replies. Newer servers put the domain and the account before the stream. */
const replies = (kind: "ACK" | "FC", ...tokens: string[]) => [
  ["$JS", kind, ...tokens, ">"].join("."),
  ["$JS", kind, "*.*", ...tokens, ">"].join("."),
];

/** Rights to read with ephemeral consumers of random names; with a filter, only those subjects. */
const reads = (stream: string, filter?: string) => [
  info(stream),
  api("CONSUMER.CREATE", stream, "*", ...(filter === undefined ? [] : [filter])),
  api("CONSUMER.INFO", stream, "*"),
  api("CONSUMER.DELETE", stream, "*"),
  ...replies("FC", stream),
];

const readsSnapshot = (filter?: string) => [
  ...reads(
    snapshotBucket.streamName,
    filter === undefined ? undefined : snapshotBucket.subjectPrefix + filter,
  ),
  api("DIRECT.GET", snapshotBucket.streamName, snapshotBucket.subjectPrefix + completeKey),
];

const readsPeople = [
  ...reads(peopleBucket.streamName),
  api("DIRECT.GET", peopleBucket.streamName, peopleBucket.subjectPrefix + peopleCompleteKey),
];

/**
 * Rights to process messages with one durable consumer, and to dead-letter those that cannot be processed. Without a
 * filter, the consumer reads all subjects of the stream.
 */
const consumes = (
  stream: string,
  consumer: string,
  filter: string[],
  subjects: readonly string[],
) => [
  info(stream),
  api("CONSUMER.CREATE", stream, consumer, ...filter),
  api("CONSUMER.INFO", stream, consumer),
  api("CONSUMER.DELETE", stream, consumer),
  api("CONSUMER.MSG.NEXT", stream, consumer),
  ...replies("ACK", stream, consumer),
  ...subjects.map((subject) => deadLetterStream.subjectPrefix + subject),
];

const consumesQueue = (stream: string, { subject, consumer }: Queue) =>
  consumes(stream, consumer, [subject], [subject]);

/** Rights to publish to a queue and to read the number of its waiting messages. */
const sendsAndCounts = (stream: string, { subject, consumer }: Queue) => [
  subject,
  info(stream),
  api("CONSUMER.INFO", stream, consumer),
];

const sendsToAudit = sendsAndCounts(auditStream.name, auditStream.recorded);
const lastSeen = sendsAndCounts(usageStream.name, usageStream.lastSeen);

const allStreams = [
  flagEventsStream.name,
  auditStream.name,
  scheduleStream.name,
  deadLetterStream.name,
  usageStream.name,
  evaluationsStream.name,
  snapshotBucket.streamName,
  quotaBucket.streamName,
  peopleBucket.streamName,
];

const createsStreams = allStreams.flatMap((stream) => [info(stream), api("STREAM.CREATE", stream)]);

/** A release may add subjects to these streams of an existing installation. */
const extendsStreams = [
  flagEventsStream,
  auditStream,
  scheduleStream,
  usageStream,
  evaluationsStream,
].map(({ name }) => api("STREAM.UPDATE", name));

/** Only the relay creates these, because a reader must never read an empty one. */
const ofManagement = [snapshotBucket.streamName, peopleBucket.streamName];

const publishes: Record<NatsUser, readonly string[]> = {
  management: [
    ...createsStreams,
    ...extendsStreams,
    ...flagEventsStream.allSubjects,
    `${snapshotBucket.subjectPrefix}>`,
    api("STREAM.PURGE", snapshotBucket.streamName),
    `${peopleBucket.subjectPrefix}>`,
    api("STREAM.PURGE", peopleBucket.streamName),
    ...readsPeople,
    api("STREAM.DELETE", flagEventsStream.name),
    api("STREAM.DELETE", scheduleStream.name),
    ...readsSnapshot(),
    ...readsSnapshot(keysAndScopesFilter),
    ...reads(flagEventsStream.name),
    ...consumesQueue(scheduleStream.name, scheduleStream.due),
    scheduleStream.resolved.subject,
    ...consumesQueue(auditStream.name, auditStream.recorded),
    ...consumesQueue(usageStream.name, usageStream.lastSeen),
    ...lastSeen,
    ...reads(deadLetterStream.name, `${deadLetterStream.subjectPrefix}>`),
    processStatuses.subjectOf("management"),
  ],
  scheduler: [
    processStatuses.subjectOf("scheduler"),
    ...readsSnapshot(),
    ...readsPeople,
    scheduleStream.due.subject,
    ...consumesQueue(scheduleStream.name, scheduleStream.resolved),
    ...sendsToAudit,
    ...lastSeen,
  ],
  "sdk-edge": [
    edgeReports.subject,
    edgeStreams.subject,
    processStatuses.subjectOf("sdk-edge"),
    ...readsSnapshot(),
    usageStream.recorded.subject,
    evaluationsStream.reported.subject,
    ...reads(quotaBucket.streamName, `${quotaBucket.subjectPrefix}*`),
  ],
  "webhook-dispatcher": [
    processStatuses.subjectOf("webhook-dispatcher"),
    ...readsSnapshot(keysAndScopesFilter),
    ...readsPeople,
    ...consumes(
      flagEventsStream.name,
      flagEventsStream.webhookConsumer,
      [],
      flagEventsStream.allSubjects,
    ),
    ...sendsToAudit,
    ...lastSeen,
  ],
  "usage-metering": [
    processStatuses.subjectOf("usage-metering"),
    ...readsSnapshot(),
    ...readsPeople,
    ...reads(quotaBucket.streamName),
    `${quotaBucket.subjectPrefix}*`,
    ...consumesQueue(usageStream.name, usageStream.recorded),
    ...consumesQueue(evaluationsStream.name, evaluationsStream.reported),
    ...lastSeen,
  ],
  operator: [">"],
  doctor: [api("INFO"), ...allStreams.map(info)],
  setup: [
    api("INFO"),
    ...createsStreams.filter((subject) => !ofManagement.some((name) => subject.endsWith(name))),
    ...extendsStreams,
  ],
};

const subscribes: Partial<Record<NatsUser, readonly string[]>> = {
  management: [edgeReports.subject, processStatuses.everySubject],
  "sdk-edge": [edgeStreams.subject],
  "usage-metering": [edgeStreams.subject],
  operator: [">"],
  doctor: [processStatuses.everySubject],
};

/** Returns the subjects that a user may use. The broker denies all others. */
export function natsRightsOf(user: NatsUser): NatsRights {
  return {
    publish: [...new Set(publishes[user])].toSorted(),
    subscribe: [`${inboxPrefixOf(user)}.>`, ...(subscribes[user] ?? [])],
  };
}
