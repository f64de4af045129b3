import { isDeepStrictEqual } from "node:util";
import { completeAt, type KeySignatures } from "@halyard/api-keys";
import {
  checkPeopleComplete,
  type PeopleComplete,
  type PeopleEntry,
  parsePeopleEntry,
  peopleBucket,
  peopleCompleteKey,
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
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { PeopleDirectory } from "./people-directory.ts";

/**
 * Follows the people bucket: all entries first, then each change. Every attempt reads everything again, because the bucket
 * is small. The directory keeps its state until then. An entry without a valid signature is ignored. The verification of a
 * signature takes most of the time of a read, so entries that the directory contains are not verified again.
 */
export function followPeople(options: {
  connection: NatsConnection;
  directory: Pick<PeopleDirectory, "beginReplacing" | "apply" | "valueOf">;
  signatures: KeySignatures;
  /** Called when the directory is current, at the start and after every interruption. */
  onCurrent?: () => void;
  logger: Logger;
}): FollowedStream {
  const { connection, directory, logger } = options;
  const decode = createDecoder(options);
  return followStream({
    connection,
    logger,
    source: {
      stream: peopleBucket.streamName,
      filter: undefined,
      identify: async (manager) => {
        const found = await findPeopleComplete(manager);
        if (found === undefined) return undefined;
        const { complete, sequence } = found;
        const signed = peopleSignaturePrefix + completeAt(sequence);
        if (!options.signatures.isGenuine(signed, complete)) return undefined;
        return { identity: complete.epoch, firstSequence: complete.from };
      },
      begin({ firstSequence = 1 }) {
        let read: ReturnType<PeopleDirectory["beginReplacing"]> | undefined =
          directory.beginReplacing();
        return {
          take(message) {
            if (message.sequence < firstSequence) return;
            const entry = decode(message);
            if (entry !== undefined) (read?.take ?? directory.apply)(entry);
          },
          caughtUp() {
            read?.finish();
            read = undefined;
            options.onCurrent?.();
          },
        };
      },
    },
  });
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

function createDecoder({
  directory,
  signatures,
  logger,
}: Pick<Parameters<typeof followPeople>[0], "directory" | "signatures" | "logger">) {
  const log = throttleLog<{ key: string }>((fields) =>
    logger.error(fields, "an entry about people has no valid form or signature and was ignored"),
  );
  return ({ subject, payload }: StreamMessage): PeopleEntry | undefined => {
    // A consumer that delivers into the bucket would store messages with subjects of another stream.
    if (!subject.startsWith(peopleBucket.subjectPrefix)) return undefined;
    const key = subject.slice(peopleBucket.subjectPrefix.length);
    if (key === peopleCompleteKey) return undefined;
    const entry = parsePeopleEntry(key, parseJson(payload));
    if (entry !== undefined) {
      // Nothing needs the verified signature, which would be an eighth of the memory.
      const { signature: _, ...value } = entry.value;
      const known = directory.valueOf(entry.address);
      if (isDeepStrictEqual(known, value)) return { ...entry, value: known ?? value };
      if (signatures.isGenuine(peopleSignaturePrefix + key, entry.value))
        return { ...entry, value };
    }
    log({ key });
    return undefined;
  };
}
