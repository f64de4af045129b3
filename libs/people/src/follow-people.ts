import { isDeepStrictEqual } from "node:util";
import { completeAt, type KeySignatures } from "@halyard/api-keys";
import {
  checkPeopleComplete,
  type PeopleAddress,
  type PeopleComplete,
  type PeopleEntry,
  parsePeopleEntry,
  peopleBucket,
  peopleCompleteKey,
  peopleKey,
  peopleSignaturePrefix,
} from "@halyard/contracts";
import {
  type FollowedStream,
  findNewest,
  followStream,
  parseJson,
  type StreamMessage,
  throttleLog,
} from "@halyard/jetstream";
import { createTimeSlicer } from "@halyard/timing";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { PeopleDirectory } from "./people-directory.ts";

/**
 * Follows the people bucket: all entries first, then each change. Every attempt reads everything again, because the bucket
 * is small. The directory keeps its state until then. An entry without a valid signature is ignored.
 *
 * The verification of a signature takes most of the time of a read. Entries that the directory contains are not verified
 * again. The others are verified in time slices: the connection to NATS would be lost if its pings had to wait for all.
 */
export function followPeople(options: {
  connection: NatsConnection;
  directory: Pick<PeopleDirectory, "beginReplacing" | "apply" | "valueOf">;
  signatures: KeySignatures;
  /** Called when the directory is current, at the start and after every interruption. */
  onCurrent?: () => void;
  logger: Logger;
}): FollowedStream {
  const { connection, directory, signatures, logger } = options;
  const rejected = createRejectionLog(logger);
  let steps = createSteps();
  let isRead = false;
  const followed = followStream({
    connection,
    logger,
    source: {
      stream: peopleBucket.streamName,
      filter: undefined,
      identify: async (manager) => {
        const found = await findPeopleComplete(manager);
        if (found === undefined) return undefined;
        const { complete, sequence } = found;
        if (!signatures.isGenuine(peopleSignaturePrefix + completeAt(sequence), complete))
          return undefined;
        return { identity: complete.epoch, firstSequence: complete.from };
      },
      begin({ firstSequence = 1 }) {
        steps.stop();
        steps = createSteps();
        isRead = false;
        const read = directory.beginReplacing();
        return {
          take(message) {
            if (message.sequence < firstSequence) return;
            const entry = parse(message, rejected);
            if (entry === undefined) return;
            steps.add(() => {
              const verified = verify(entry, options);
              if (verified === undefined) rejected({ key: peopleKey(entry.address) });
              const taken = verified ?? withoutRights(entry.address);
              if (taken !== undefined) (isRead ? directory.apply : read.take)(taken);
            });
          },
          caughtUp: () =>
            steps.add(() => {
              read.finish();
              isRead = true;
              options.onCurrent?.();
            }),
        };
      },
    },
  });
  return {
    isCurrent: () => followed.isCurrent() && isRead,
    async stop() {
      steps.stop();
      await followed.stop();
    },
  };
}

const sliceMs = 10;

/** Runs steps in their order, in time slices. */
function createSteps() {
  const waiting = new Set<() => void>();
  const slicer = createTimeSlicer({
    ...{ sliceMs, monotonicMs: () => performance.now() },
    work(isOver) {
      for (const step of waiting) {
        if (isOver()) return true;
        waiting.delete(step);
        step();
      }
      return false;
    },
  });
  return {
    add(step: () => void) {
      waiting.add(step);
      slicer.start();
    },
    stop: slicer.stop,
  };
}

/** Returns the entry `complete` and its sequence, which its signature covers. */
export async function findPeopleComplete(
  manager: JetStreamManager,
): Promise<{ complete: PeopleComplete; sequence: number } | undefined> {
  const found = await findNewest(manager, peopleBucket, {
    key: peopleCompleteKey,
    check: checkPeopleComplete,
  });
  return found && { complete: found.value, sequence: found.sequence };
}

type Rejected = (fields: { key: string }) => void;

const createRejectionLog = (logger: Logger): Rejected =>
  throttleLog<{ key: string }>((fields) =>
    logger.error(fields, "an entry about people has no valid form or signature and was ignored"),
  );

function parse({ subject, payload }: StreamMessage, rejected: Rejected): PeopleEntry | undefined {
  // A consumer that delivers into the bucket would store messages with subjects of another stream.
  if (!subject.startsWith(peopleBucket.subjectPrefix)) return undefined;
  const key = subject.slice(peopleBucket.subjectPrefix.length);
  if (key === peopleCompleteKey) return undefined;
  const entry = parsePeopleEntry(key, parseJson(payload));
  if (entry === undefined) rejected({ key });
  return entry;
}

/**
 * Returns an entry in place of a user's without a valid signature. Without any entry, the keys of a user would have all
 * rights. It never replaces a genuine entry, whose version is higher.
 */
function withoutRights(address: PeopleAddress): PeopleEntry | undefined {
  if (address.kind !== "user") return undefined;
  return {
    address,
    value: {
      ...{ kind: "user", organization_id: address.organizationId, user_id: address.userId },
      ...{ person_id: null, governed: true, grants: [] },
      ...{ version: 0, committed_at: new Date(0).toISOString() },
    },
  };
}

/** Returns the entry without its signature, which would be an eighth of the memory; undefined if it is not valid. */
function verify(
  { address, value: signed }: PeopleEntry,
  { directory, signatures }: Pick<Parameters<typeof followPeople>[0], "directory" | "signatures">,
): PeopleEntry | undefined {
  const { signature: _, ...value } = signed;
  const known = directory.valueOf(address);
  if (isDeepStrictEqual(known, value)) return { address, value: known ?? value };
  const isGenuine = signatures.isGenuine(peopleSignaturePrefix + peopleKey(address), signed);
  return isGenuine ? { address, value } : undefined;
}
