import {
  type Checked,
  checkAudienceEvent,
  checkChangeRequestEvent,
  checkCompleteEntry,
  checkFlagEvent,
  checkProtectionEvent,
  checkQuotaEntry,
  completeKey,
  flagEventsStream,
  parseEntry,
  quotaBucket,
  snapshotBucket,
} from "@halyard/contracts";

export type StoredMessage = { subject: string; payload: unknown };

/** Reads a stored message as the services do. */
export function readStored(stream: string, { subject, payload }: StoredMessage): Checked<unknown> {
  if (stream === flagEventsStream.name) return readEvent(subject, payload);
  if (stream === quotaBucket.streamName) return checkQuotaEntry(payload);
  if (stream !== snapshotBucket.streamName) throw new Error(`no reader of ${stream}`);
  const key = subject.slice(snapshotBucket.subjectPrefix.length);
  if (key === completeKey) return checkCompleteEntry(payload);
  const entry = parseEntry(key, payload);
  if (entry === undefined) throw new Error(`no reader of ${subject}`);
  return entry;
}

function readEvent(subject: string, payload: unknown): Checked<unknown> {
  if (subject.startsWith("audience.")) return checkAudienceEvent(payload);
  if (subject.startsWith("change_request.")) return checkChangeRequestEvent(payload);
  if (subject.startsWith("environment.")) return checkProtectionEvent(payload);
  return checkFlagEvent(payload);
}
