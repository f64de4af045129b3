import type { Readable } from "node:stream";

/** So much of an answer is kept to be looked at; whatever follows is not even received. */
const keptBytes = 2_048;

/**
 * The beginning of a body as text. A body that goes on has its connection closed. Bytes that are no
 * UTF-8 become replacement characters; so do zeros, which PostgreSQL keeps in no text.
 */
export async function readBeginning(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= keptBytes) break;
  }
  const kept = Buffer.concat(chunks).subarray(0, keptBytes);
  // As if more was to come: a character that was cut in the middle is left out.
  return new TextDecoder().decode(kept, { stream: true }).replaceAll("\0", "\u{FFFD}");
}
