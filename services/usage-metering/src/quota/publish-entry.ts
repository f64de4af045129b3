import { type QuotaEntry, quotaBucket } from "@halyard/contracts";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamClient } from "@nats-io/jetstream";

/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

const anotherWasFaster: number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

/**
 * Writes an entry over the one that was read, or in a place where none was (revision 0), so that of two
 * replicas the one that knows less never writes over the other. Answers the entry's revision; undefined
 * when another replica was faster.
 */
export async function publishEntry(
  client: JetStreamClient,
  entry: QuotaEntry,
  revision: number,
): Promise<number | undefined> {
  try {
    const { seq } = await client.publish(
      quotaBucket.subjectPrefix + entry.organization_id,
      JSON.stringify(entry),
      {
        expect: { lastSubjectSequence: revision },
        timeout: acknowledgementTimeoutMs,
        retries: 0,
      },
    );
    return seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && anotherWasFaster.includes(error.code))
      return undefined;
    throw error;
  }
}
