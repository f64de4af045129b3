import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { z } from "zod";
import type { Break, ChainScope, Link } from "./chain.ts";

/**
 * The head of a chain: its newest entry at some time. A head that is kept outside the database reveals a rewritten
 * chain.
 */
export type Head = ChainScope & {
  id: string;
  changedAt: Date;
  hash: string;
  /** Position of the entry in its chain, starting at 1. Removed entries count. */
  position: number;
};

/** Returns the position of a link. `before` is the position of the previous link of the chain. */
export function positionOf(link: Link, before: number | undefined): number {
  const followsRemoved = link.previousHash === link.removedHash;
  return before === undefined || followsRemoved ? link.removedEntries + 1 : before + 1;
}

export function headOf(link: Link, position: number): Head {
  const { flagId, environmentId, id, changedAt, hash } = link;
  return { flagId, environmentId, id, changedAt, hash, position };
}

/** Compares chains in the order in which PostgreSQL sorts UUIDs. */
function compareScopes(one: ChainScope, other: ChainScope): number {
  const [left, right] = [one, other].map(
    ({ flagId, environmentId }) => `${flagId}.${environmentId}`,
  ) as [string, string];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/**
 * Compares the chains with earlier heads. Links and heads arrive in the same order of scopes, so only one head is in
 * memory. Each head must still be in its chain, or its removal must be recorded.
 */
export type HeadComparison = {
  /** Checks the next link. Returns breaks of its chain, and of earlier chains that have no more links. */
  follow(link: Link, position: number): Promise<Break[]>;
  /** Returns the breaks of the remaining chains. */
  finish(): Promise<Break[]>;
  /** Number of heads compared. */
  count(): number;
};

/** Minimum retention period. The database rejects a shorter one. */
const minRetentionMs = 30 * 24 * 60 * 60 * 1_000;

export function compareHeads(
  heads: AsyncIterator<Head>,
  options: {
    /** Returns true if retention may have removed all entries of the chain of this head. */
    wasRemoved: (head: Head) => Promise<boolean>;
    now: Date;
  },
): HeadComparison {
  let head: Head | "found" | undefined;
  let scope: ChainScope | undefined;
  let hasBegun = false;
  let count = 0;

  async function next(): Promise<Head | undefined> {
    const read = await heads.next();
    if (read.done) return undefined;
    count += 1;
    return read.value;
  }

  /**
   * Advances to the first head at or after a scope, or past the last head. Returns breaks for skipped heads that are
   * missing.
   */
  async function advanceTo(to: ChainScope | undefined): Promise<Break[]> {
    const breaks: Break[] = [];
    if (!hasBegun || head === "found") head = await next();
    hasBegun = true;
    while (head !== undefined && (to === undefined || compareScopes(head, to) < 0)) {
      const hadLinks = scope !== undefined && compareScopes(head, scope) === 0;
      if (hadLinks || !(await options.wasRemoved(head))) breaks.push(missing(head));
      head = await next();
    }
    return breaks;
  }

  function isAccountedFor(link: Link, position: number, sought: Head): boolean {
    if (position === sought.position) return link.hash === sought.hash;
    if (position - 1 === sought.position) return link.previousHash === sought.hash;
    return options.now.getTime() - sought.changedAt.getTime() > minRetentionMs;
  }

  return {
    async follow(link, position) {
      const isNewChain = scope === undefined || compareScopes(scope, link) !== 0;
      const breaks = isNewChain ? await advanceTo(link) : [];
      scope = { flagId: link.flagId, environmentId: link.environmentId };
      if (head === undefined || head === "found" || compareScopes(head, link) !== 0) return breaks;
      if (position < head.position) return breaks;
      if (!isAccountedFor(link, position, head)) breaks.push(missing(head));
      head = "found";
      return breaks;
    },
    finish: () => advanceTo(undefined),
    count: () => count,
  };
}

function missing({ id, changedAt, ...scope }: Head): Break {
  return { scope, kind: "anchored_missing", entry: { id, changedAt } };
}

/**
 * Format of a file of heads: JSON lines, one for each chain in the order of scopes. The last line contains the number
 * of heads, so that a truncated file is detected.
 */
const HeadLine = z.object({
  flag_id: z.guid(),
  environment_id: z.guid(),
  entry_id: z.guid(),
  changed_at: z.iso.datetime(),
  position: z.int().min(1),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
});
const LastLine = z.object({ heads: z.int().min(0) });

/** Number of heads per write, which are a few hundred KB. */
const headsPerWrite = 1_000;

export type AnchorWriter = {
  add(head: Head): Promise<void>;
  /** Renames the file to its final name. Returns the number of heads. */
  finish(): Promise<number>;
  /** Removes the unfinished file. */
  discard(): Promise<void>;
};

/** Creates a file that only its owner can read. It gets its final name when it is complete. */
export async function createAnchorWriter(path: string): Promise<AnchorWriter> {
  const unfinished = `${path}.${process.pid}.unfinished`;
  const file = await open(unfinished, "wx", 0o600);
  let waiting: string[] = [];
  let heads = 0;

  async function write(): Promise<void> {
    await file.appendFile(waiting.join(""));
    waiting = [];
  }

  return {
    async add(head) {
      heads += 1;
      waiting.push(`${JSON.stringify(lineOf(head))}\n`);
      if (waiting.length === headsPerWrite) await write();
    },
    async finish() {
      waiting.push(`${JSON.stringify({ heads })}\n`);
      await write();
      await file.sync();
      await file.close();
      await rename(unfinished, path);
      return heads;
    },
    async discard() {
      await file.close();
      await rm(unfinished, { force: true });
    },
  };
}

function lineOf(head: Head): z.infer<typeof HeadLine> {
  return {
    flag_id: head.flagId,
    environment_id: head.environmentId,
    entry_id: head.id,
    changed_at: head.changedAt.toISOString(),
    position: head.position,
    hash: head.hash,
  };
}

/** An invalid file of heads. The message contains no content of the file. */
export class AnchorFileError extends Error {
  override name = "AnchorFileError";
}

/** Reads the heads of a file in order. Throws an `AnchorFileError` if the file is incomplete or invalid. */
export async function* readAnchorFile(path: string): AsyncGenerator<Head> {
  const file: FileHandle = await open(path, "r");
  let heads = 0;
  let last: Head | undefined;
  let isComplete = false;
  try {
    for await (const text of file.readLines()) {
      if (isComplete) throw new AnchorFileError(`${path} has lines after its last one.`);
      const line = parse(text);
      const head = HeadLine.safeParse(line);
      if (head.success) {
        const next = headIn(head.data);
        if (last !== undefined && compareScopes(last, next) >= 0)
          throw new AnchorFileError(`${path} is not in order at line ${heads + 1}.`);
        heads += 1;
        last = next;
        yield next;
      } else {
        isComplete = LastLine.safeParse(line).data?.heads === heads;
        if (!isComplete) throw new AnchorFileError(`${path} is invalid at line ${heads + 1}.`);
      }
    }
    if (!isComplete) throw new AnchorFileError(`${path} is cut off after line ${heads}.`);
  } finally {
    await file.close();
  }
}

function headIn(line: z.infer<typeof HeadLine>): Head {
  return {
    flagId: line.flag_id,
    environmentId: line.environment_id,
    id: line.entry_id,
    changedAt: new Date(line.changed_at),
    position: line.position,
    hash: line.hash,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
