import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rename, utimes } from "node:fs/promises";
import { type KeySignatures, signerOf } from "@halyard/api-keys";
import {
  AudienceEntry,
  ChunkEntry,
  CompleteEntry,
  compileCheck,
  EnvironmentEntry,
  entryKey,
  FlagEntry,
  KeyEntry,
  OrganizationEntry,
  PlansEntry,
  parseEntry,
  type SnapshotEntry,
  Tombstone,
  toJsonSchema,
} from "@halyard/contracts";
import type { HeldSnapshot } from "@halyard/snapshot";
import { decoded } from "./audience-chunk.ts";
import { entriesOf, type Snapshot } from "./snapshot.ts";

/**
 * A snapshot as a file. The first line has the epoch, the revision and the time. One line for each entry follows. The
 * last line has the SHA-256 of everything before it, so that a truncated or damaged file is detected. The modification
 * time of the file is the time at which the snapshot was last known to be current.
 */
type CachedSnapshot = {
  snapshot: Snapshot;
  /** The snapshot contains every entry up to this revision. Undefined if the revision is unknown. */
  revision: number | undefined;
  currentAtMs: number;
};

export type CachedEntries = {
  epoch: string;
  entries: readonly SnapshotEntry[];
  /**
   * The position from which a follower can continue. Its time is from the first line, because a copy of the file can
   * have another modification time. Undefined without a position, or if the file was written with other schemas, which
   * may have rejected entries.
   */
  held: HeldSnapshot | undefined;
  currentAtMs: number;
};

type CacheReading =
  | ({ found: true } & CachedEntries)
  /** Without a problem, the file does not exist yet. */
  | { found: false; problem?: string };

const format = "halyard-snapshot-1";

const checkHeader = compileCheck(CompleteEntry.pick({ epoch: true }));

const cachedSchemas = [
  ...[PlansEntry, OrganizationEntry, EnvironmentEntry, KeyEntry, FlagEntry],
  ...[AudienceEntry, ChunkEntry, Tombstone],
];

/** Identifies the schemas that entries are checked against. */
const schemas = createHash("sha256")
  .update(JSON.stringify(cachedSchemas.map(toJsonSchema)))
  .digest("hex");

/**
 * Size of a part that is written in one turn of the event loop, and read at a time: a millisecond or two of work. An entry
 * can be larger, and is then a part alone.
 */
const partBytes = 256 * 1024;

/** Only the owner can read the file, because it contains key hashes and names. */
const fileMode = 0o600;

const newline = 0x0a;

/** Writes a temporary file and renames it, so that the cache file is always complete. */
export async function writeCacheFile(file: string, cached: CachedSnapshot): Promise<void> {
  const temporary = `${file}.tmp`;
  const handle = await open(temporary, "w", fileMode);
  try {
    await writeLines(handle, cached);
    await touchCacheFile(temporary, cached.currentAtMs);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
}

/** Sets the modification time of the file to the time at which its content was last known to be current. */
export async function touchCacheFile(file: string, currentAtMs: number): Promise<void> {
  await utimes(file, new Date(), new Date(currentAtMs));
}

async function writeLines(
  handle: FileHandle,
  { snapshot, revision, currentAtMs }: CachedSnapshot,
): Promise<void> {
  const hash = createHash("sha256");
  let lines = line({ format, epoch: snapshot.epoch, revision, currentAtMs, schemas });
  for (const { address, value } of entriesOf(snapshot)) {
    lines += line({ key: entryKey(address), value });
    if (lines.length >= partBytes) {
      await writeHashed(handle, hash, lines);
      lines = "";
    }
  }
  await writeHashed(handle, hash, lines);
  await handle.writeFile(line({ sha256: hash.digest("hex") }));
}

async function writeHashed(handle: FileHandle, hash: Hash, text: string): Promise<void> {
  hash.update(text);
  await handle.writeFile(text);
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Decides whether this edge can verify the keys' entries of a signer. */
type Trusts = KeySignatures["trusts"];

/**
 * Reads the file and checks all its content against the schemas that apply to entries from NATS. A file whose keys this
 * edge cannot verify is rejected, because an edge that rejects every key must not become ready. The file is read in
 * parts, because an edge may have no memory for all of it beside the entries.
 */
export async function readCacheFile(file: string, trusts: Trusts): Promise<CacheReading> {
  let handle: FileHandle;
  try {
    handle = await open(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { found: false };
    return { found: false, problem: `the file cannot be read (${code})` };
  }
  try {
    const currentAtMs = (await handle.stat()).mtimeMs;
    const content = await readContent(handle, trusts);
    if (typeof content === "string") return { found: false, problem: content };
    return { found: true, ...content, currentAtMs };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { found: false, problem: `the file cannot be read (${code})` };
  } finally {
    await handle.close();
  }
}

type Content = Omit<CachedEntries, "currentAtMs">;

/** Returns the content of the file, or a text that describes the problem. Only the last line shows damage. */
async function readContent(handle: FileHandle, trusts: Trusts): Promise<Content | string> {
  const hash = createHash("sha256");
  const parser = createParser(trusts);
  let last: Buffer | undefined;
  for await (const next of linesOf(handle)) {
    if (last !== undefined) {
      hash.update(last);
      parser.take(last.toString("utf8"));
    }
    last = next;
  }
  const checksum = line({ sha256: hash.digest("hex") });
  if (last?.toString("utf8") !== checksum) return "the file is truncated or damaged";
  return parser.finish();
}

/** Yields the lines of a file with their ends. The last one may lack its end. */
async function* linesOf(handle: FileHandle): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  const parts = handle.createReadStream({ highWaterMark: partBytes, autoClose: false });
  for await (const part of parts as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = part.indexOf(newline); end !== -1; end = part.indexOf(newline, start)) {
      yield Buffer.concat([...begun, part.subarray(start, end + 1)]);
      begun = [];
      start = end + 1;
    }
    if (start < part.length) begun.push(part.subarray(start));
  }
  if (begun.length > 0) yield Buffer.concat(begun);
}

/** Parses the lines until one has a problem. */
function createParser(trusts: Trusts) {
  const entries: SnapshotEntry[] = [];
  let header: Record<string, unknown> | undefined;
  let problem: string | undefined;

  function parse(text: string): string | undefined {
    if (header === undefined) {
      header = JSON.parse(text) as Record<string, unknown>;
      if (header.format !== format) return "the file is in another format";
      const checked = checkHeader(header);
      return checked.ok ? undefined : checked.problem;
    }
    const entry = parseLine(text);
    if (typeof entry === "string") return entry;
    entries.push(entry);
    return undefined;
  }

  return {
    take(text: string): void {
      try {
        problem ??= parse(text);
      } catch {
        // If the checksum is right, another program wrote the content.
        problem = "the file is not a snapshot cache";
      }
    },
    finish(): Content | string {
      if (problem !== undefined) return problem;
      if (header === undefined) return "the file is not a snapshot cache";
      if (!hasUsableKeys(entries, trusts))
        return "none of SIGNING_PUBLIC_KEYS verifies its API keys";
      const epoch = header.epoch as string;
      return { epoch, entries, held: heldOf(epoch, header) };
    },
  };
}

function heldOf(epoch: string, header: Record<string, unknown>): HeldSnapshot | undefined {
  const { revision, currentAtMs } = header;
  const isKnown = typeof revision === "number" && typeof currentAtMs === "number";
  return isKnown && header.schemas === schemas ? { epoch, revision, currentAtMs } : undefined;
}

/**
 * Returns whether any key has a trusted signer. A single entry without one is forged. If all entries lack one, the file
 * belongs to another release or key pair.
 */
function hasUsableKeys(entries: readonly SnapshotEntry[], trusts: Trusts): boolean {
  const keys = entries.flatMap(({ value }) =>
    "kind" in value && value.kind === "key" ? [value] : [],
  );
  return keys.length === 0 || keys.some((key) => trusts(signerOf(key)));
}

function parseLine(text: string): SnapshotEntry | string {
  const { key, value } = JSON.parse(text);
  const parsed = parseEntry(key, value);
  if (parsed === undefined) return "the key of an entry is unknown";
  return parsed.ok ? decoded(parsed.value) : `${key}: ${parsed.problem}`;
}
