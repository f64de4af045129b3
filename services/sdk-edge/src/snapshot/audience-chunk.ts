import { createHash } from "node:crypto";
import type { ChunkEntry, SnapshotEntry } from "@halyard/contracts";

/**
 * A chunk of a list with its fingerprints as bytes. The text of the entry takes a third more memory, so it is decoded
 * once, when the entry arrives, and encoded again only for the cache on disk.
 */
export class AudienceChunk implements ChunkEntry {
  readonly kind = "chunk";
  readonly audience_id: string;
  readonly sha256: string;
  readonly version: number;
  readonly committed_at: string;
  readonly bytes: Buffer;
  /** True if the bytes have the SHA-256 of the entry. It is computed once. A damaged chunk counts as missing. */
  readonly isIntact: boolean;

  private constructor({ audience_id, sha256, data, version, committed_at }: ChunkEntry) {
    this.audience_id = audience_id;
    this.sha256 = sha256;
    this.version = version;
    this.committed_at = committed_at;
    this.bytes = Buffer.from(data, "base64");
    this.isIntact = createHash("sha256").update(this.bytes).digest("hex") === sha256;
  }

  /** Decodes the chunk of an entry, unless it is decoded. */
  static of(entry: ChunkEntry): AudienceChunk {
    return entry instanceof AudienceChunk ? entry : new AudienceChunk(entry);
  }

  get data(): string {
    return this.bytes.toString("base64");
  }

  toJSON(): ChunkEntry {
    const { kind, audience_id, sha256, data, version, committed_at } = this;
    return { kind, audience_id, sha256, data, version, committed_at };
  }
}

/** Decodes a chunk, so that a list of entries that waits to be applied does not contain texts. */
export function decoded(entry: SnapshotEntry): SnapshotEntry {
  const { value } = entry;
  if (!("kind" in value) || value.kind !== "chunk") return entry;
  return { ...entry, value: AudienceChunk.of(value) } as SnapshotEntry;
}
