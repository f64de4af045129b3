/**
 * The bytes of the event log that webhook dispatchers have not processed, by organization. At its size limit the log
 * discards its oldest events, even unread ones. While the dispatchers are unavailable, one organization could therefore
 * remove the unread events of all others. So the relay leaves the events of an organization with too many unread bytes
 * in the outbox, until dispatchers have read enough of the earlier ones.
 *
 * It counts what this leader has published. A new leader starts with zero, because reading a log of gigabytes takes too
 * long.
 */
export type UnreadEvents = {
  /** Adds an event of an organization, whose batch ends with a sequence. Sequences rise. */
  add(organizationId: string, event: Block): void;
  /** Removes the events up to a sequence, because dispatchers have processed them. */
  processed(upTo: number): void;
  /** Returns the organizations whose further events wait. */
  waiting(): string[];
};

/** Share of the log that the unread events of one organization may fill. */
const organizationShare = 1 / 16;

/** Events are counted in blocks of this share of an organization's bound, so that their number is small. */
const blockShare = 1 / 64;

type Block = { lastSequence: number; bytes: number };

export function createUnreadEvents(logMaxBytes: number): UnreadEvents {
  const maxBytes = logMaxBytes * organizationShare;
  const blocksOf = new Map<string, Block[]>();
  return {
    add(organizationId, { lastSequence, bytes }) {
      const blocks = blocksOf.get(organizationId) ?? [];
      blocksOf.set(organizationId, blocks);
      const last = blocks.at(-1);
      if (last !== undefined && last.bytes < maxBytes * blockShare) {
        last.lastSequence = lastSequence;
        last.bytes += bytes;
      } else blocks.push({ lastSequence, bytes });
    },
    processed(upTo) {
      for (const [organizationId, blocks] of blocksOf) {
        const left = blocks.filter(({ lastSequence }) => lastSequence > upTo);
        if (left.length === 0) blocksOf.delete(organizationId);
        else blocksOf.set(organizationId, left);
      }
    },
    waiting: () =>
      [...blocksOf]
        .filter(([, blocks]) => blocks.reduce((sum, { bytes }) => sum + bytes, 0) >= maxBytes)
        .map(([organizationId]) => organizationId),
  };
}
