import type { AudienceChunk } from "./audience-chunk.ts";

/**
 * The chunks of lists that were deleted a moment ago, because a change replaced them. An SDK that loads a list finishes
 * the version that it began, although the list changes meanwhile. Without these chunks, the flags of a list that changes
 * steadily would never become complete in an SDK.
 */
export type ReplacedChunks = {
  /** Keeps chunks that left the snapshot. */
  follow(removed: readonly AudienceChunk[]): void;
  find(audienceId: string, sha256: string): Buffer | undefined;
  stop(): void;
};

/** Twice the time that an SDK waits for the chunks of a list. */
const keptMs = 60_000;

/** Maximum size of the kept chunks of one audience: the list of a million users, once. The oldest ones are dropped. */
const maxBytesPerAudience = 8 * 1024 * 1024;

type Kept = { bytes: Buffer; untilMs: number };

export function createReplacedChunks(now: () => number): ReplacedChunks {
  /** The chunks of each audience in the order of their deletion. */
  const byAudience = new Map<string, Map<string, Kept>>();
  let sweeping: NodeJS.Timeout | undefined;

  function sweep(): void {
    const nowMs = now();
    for (const [audienceId, chunks] of byAudience) {
      for (const [sha256, { untilMs }] of chunks) if (untilMs <= nowMs) chunks.delete(sha256);
      if (chunks.size === 0) byAudience.delete(audienceId);
    }
    sweeping = byAudience.size === 0 ? undefined : setTimeout(sweep, keptMs).unref();
  }

  function keep(audienceId: string, { sha256, bytes }: AudienceChunk): void {
    const chunks = byAudience.get(audienceId) ?? new Map<string, Kept>();
    byAudience.set(audienceId, chunks);
    chunks.delete(sha256);
    chunks.set(sha256, { bytes, untilMs: now() + keptMs });
    let size = 0;
    for (const kept of chunks.values()) size += kept.bytes.length;
    for (const [oldest, kept] of chunks) {
      if (size <= maxBytesPerAudience) break;
      chunks.delete(oldest);
      size -= kept.bytes.length;
    }
    sweeping ??= setTimeout(sweep, keptMs).unref();
  }

  return {
    follow(removed) {
      for (const chunk of removed) if (chunk.isIntact) keep(chunk.audience_id, chunk);
    },
    find(audienceId, sha256) {
      const kept = byAudience.get(audienceId)?.get(sha256);
      return kept !== undefined && kept.untilMs > now() ? kept.bytes : undefined;
    },
    stop: () => clearTimeout(sweeping),
  };
}
