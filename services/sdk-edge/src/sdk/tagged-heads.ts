import type { Asked } from "./endpoint.ts";

/**
 * Heads of answers that have a tag, as the flat lists that Node takes: what differs with every answer,
 * what never does, and what the caller has left of its limits, which stays the same for a second.
 * Putting the three together costs more than counting the request does; so a list is kept for as long
 * as these limits are told, and only its first values are written over. Node has read them when
 * `writeHead` returns.
 */
export type TaggedHeads = {
  notModified(asked: Asked, etag: string): string[];
  ok(asked: Asked, etag: string, bodyBytes: number): string[];
};

export function taggedHeads(unchanging: readonly string[]): TaggedHeads {
  const headOf = keptHeads(["X-Request-Id", "", "ETag", "", ...unchanging]);
  const headWithBodyOf = keptHeads([
    "X-Request-Id",
    "",
    "ETag",
    "",
    "Content-Length",
    "",
    "Content-Type",
    "application/json; charset=utf-8",
    ...unchanging,
  ]);
  return {
    notModified({ id, rateLimit }, etag) {
      const head = headOf(rateLimit);
      head[1] = id;
      head[3] = etag;
      return head;
    },
    ok({ id, rateLimit }, etag, bodyBytes) {
      const head = headWithBodyOf(rateLimit);
      head[1] = id;
      head[3] = etag;
      head[5] = String(bodyBytes);
      return head;
    },
  };
}

/** One list for each way in which callers are told their limits. */
function keptHeads(beginning: readonly string[]): (rateLimit: readonly string[]) => string[] {
  const kept = new WeakMap<readonly string[], string[]>();
  return (rateLimit) => {
    let head = kept.get(rateLimit);
    if (head === undefined) {
      head = [...beginning, ...rateLimit];
      kept.set(rateLimit, head);
    }
    return head;
  };
}
