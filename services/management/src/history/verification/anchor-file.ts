import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { z } from "zod";
import { comparePlaces, type Head } from "./anchor.ts";

/**
 * Files of heads: JSON lines, one for each chain in the order of their places, and a last line with their number, so
 * that a file that was cut off is noticed.
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

/** Some hundred KB. */
const headsPerWrite = 1_000;

export type AnchorWriter = {
  add(head: Head): Promise<void>;
  /** Gives the file its name. Returns the number of heads. */
  finish(): Promise<number>;
  /** Removes what was written. */
  discard(): Promise<void>;
};

/** Writes a file that only its owner can read. It appears when it is whole. */
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

/** The message contains no values of callers. */
export class AnchorFileError extends Error {
  override name = "AnchorFileError";
}

/** Reads the heads of a file in their order. Throws an `AnchorFileError` if the file is not whole. */
export async function* readAnchorFile(path: string): AsyncGenerator<Head> {
  const file: FileHandle = await open(path, "r");
  let heads = 0;
  let last: Head | undefined;
  let isWhole = false;
  try {
    for await (const text of file.readLines()) {
      if (isWhole) throw new AnchorFileError(`${path} has lines after its last one.`);
      const line = parse(text);
      const head = HeadLine.safeParse(line);
      if (head.success) {
        const next = headIn(head.data);
        if (last !== undefined && comparePlaces(last, next) >= 0)
          throw new AnchorFileError(`${path} is not in order at line ${heads + 1}.`);
        heads += 1;
        last = next;
        yield next;
      } else {
        isWhole = LastLine.safeParse(line).data?.heads === heads;
        if (!isWhole) throw new AnchorFileError(`${path} is invalid at line ${heads + 1}.`);
      }
    }
    if (!isWhole) throw new AnchorFileError(`${path} is cut off after line ${heads}.`);
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
