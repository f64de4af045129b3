import { createHash } from "node:crypto";
import { boundedRequest, type NoResponse } from "../connection/bounded-request.ts";
import { type Rejection, rejectionOf } from "../connection/rejection.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";

export type ChunkResult =
  | Rejection
  | NoResponse
  | { kind: "chunk"; bytes: Uint8Array }
  /** The bytes are not those that the rule set names. */
  | { kind: "damaged" };

type ChunkRequest = {
  sha256: string;
  settings: Pick<Settings, "baseUrl" | "serverKey">;
  platform: Platform;
  /** Aborted to end the request. */
  attempt: AbortController;
};

const maxChunkBytes = 512 * 1024;
/** Size of a fingerprint. */
const entryBytes = 8;

/** Requests a chunk of a list, and checks its SHA-256. Never rejects. */
export async function fetchChunk(request: ChunkRequest): Promise<ChunkResult> {
  const { platform, attempt } = request;
  return boundedRequest({ clock: platform.clock, attempt }, () => fetchOnce(request));
}

async function fetchOnce({
  sha256,
  settings: { baseUrl, serverKey },
  platform,
  attempt,
}: ChunkRequest): Promise<ChunkResult> {
  const response = await platform.fetch(`${baseUrl}/api/v1/sdk/lists/${sha256}`, {
    headers: { authorization: `Bearer ${serverKey}` },
    signal: attempt.signal,
    redirect: "manual",
  });
  if (response.status !== 200) return rejectionOf(response, platform.clock.wallMs());
  const bytes = await readBody(response);
  return bytes !== undefined && isChunk(bytes, sha256)
    ? { kind: "chunk", bytes }
    : { kind: "damaged" };
}

/** Returns whether bytes are the chunk with this name. */
export function isChunk(bytes: Uint8Array, sha256: string): boolean {
  return (
    bytes.byteLength <= maxChunkBytes &&
    bytes.byteLength % entryBytes === 0 &&
    createHash("sha256").update(bytes).digest("hex") === sha256
  );
}

/** Returns the body, or undefined if it is longer than a chunk. */
async function readBody({ body }: Response): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > maxChunkBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}
