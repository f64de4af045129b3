import { type Answer, answer } from "@halyard/service";
import { resourceOf } from "./flag-resource.ts";
import type { FlagPage } from "./flag-store.ts";

/**
 * The list of all flags of a project, written while it is read. It is read in pages by key, each a short
 * statement of its own, and a page is read when the caller has received the previous page. A slow caller
 * holds neither a connection to the database nor a transaction, and management holds a page or two.
 *
 * The pages are not one snapshot of the database. Keys never change, so a flag that exists all the while
 * is listed once. A flag that is created, changed or deleted meanwhile is listed as it is when its page
 * is read.
 */
export type ReadFlagPage = (page: {
  afterKey: string;
  limit: number;
  longestBytes: number;
}) => Promise<FlagPage>;

const pageBounds = {
  /** A few milliseconds of the event loop. */
  limit: 500,
  /** Flags with the largest rules that are allowed fill a page by three. */
  longestBytes: 1024 * 1024,
};

/** The first page is read before the answer begins, so that an outage is still answered with 503. */
export async function answerAllFlags(readPage: ReadFlagPage, afterKey: string): Promise<Answer> {
  const readAfter = (key: string) => readPage({ afterKey: key, ...pageBounds });
  const first = await readAfter(afterKey);
  return first.more
    ? answer.inParts(writeFlags(first, readAfter))
    : answer.ok({ flags: first.flags.map(resourceOf) });
}

async function* writeFlags(
  first: FlagPage,
  readAfter: (key: string) => Promise<FlagPage>,
): AsyncGenerator<string> {
  yield `{"flags":[${jsonOf(first)}`;
  for (let page = first; page.more; ) {
    const last = page.flags.at(-1);
    if (last === undefined) break;
    page = await readAfter(last.flag.key);
    if (page.flags.length > 0) yield `,${jsonOf(page)}`;
  }
  yield "]}";
}

function jsonOf({ flags }: FlagPage): string {
  return flags.map((found) => JSON.stringify(resourceOf(found))).join(",");
}
