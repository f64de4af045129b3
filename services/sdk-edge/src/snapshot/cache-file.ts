import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, readFile, rename, stat, utimes } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type KeySignatures, signerOf } from "@halyard/api-keys";
import {
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
  Tombstone,
];

/** Identifies the schemas that entries are checked against. */
const schemas = createHash("sha256")
  .update(JSON.stringify(cachedSchemas.map(toJsonSchema)))
  .digest("hex");

/** Number of entries handled in one turn of the event loop: a millisecond or two of work. */
const entriesPerSlice = 500;

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
  let count = 0;
  for (const { address, value } of entriesOf(snapshot)) {
    lines += line({ key: entryKey(address), value });
    count += 1;
    if (count % entriesPerSlice === 0) {
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
 * edge cannot verify is rejected, because an edge that rejects every key must not become ready.
 */
export async function readCacheFile(file: string, trusts: Trusts): Promise<CacheReading> {
  let bytes: Buffer;
  let currentAtMs: number;
  try {
    bytes = await readFile(file);
    currentAtMs = (await stat(file)).mtimeMs;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { found: false };
    return { found: false, problem: `the file cannot be read (${code})` };
  }
  const body = bodyOf(bytes);
  if (body === undefined) return { found: false, problem: "the file is truncated or damaged" };
  try {
    const parsed = await parseBody(body, trusts);
    if (typeof parsed === "string") return { found: false, problem: parsed };
    return { found: true, ...parsed, currentAtMs };
  } catch {
    // The checksum is right, but another program wrote the content.
    return { found: false, problem: "the file is not a snapshot cache" };
  }
}

/** Returns all lines but the last one; undefined if the last line is not their checksum. */
function bodyOf(bytes: Buffer): Buffer | undefined {
  const end = bytes.lastIndexOf(newline, -2) + 1;
  const body = bytes.subarray(0, end);
  const sha256 = createHash("sha256").update(body).digest("hex");
  return bytes.toString("utf8", end) === line({ sha256 }) ? body : undefined;
}

/** Returns the content of the file, or a text that describes the problem. */
async function parseBody(
  body: Buffer,
  trusts: Trusts,
): Promise<Omit<CachedEntries, "currentAtMs"> | string> {
  const entries: SnapshotEntry[] = [];
  let start = body.indexOf(newline) + 1;
  const header = JSON.parse(body.toString("utf8", 0, start));
  if (header.format !== format) return "the file is in another format";
  const checkedHeader = checkHeader(header);
  if (!checkedHeader.ok) return checkedHeader.problem;
  while (start < body.length) {
    const end = body.indexOf(newline, start);
    const entry = parseLine(body.toString("utf8", start, end));
    if (typeof entry === "string") return entry;
    entries.push(entry);
    start = end + 1;
    if (entries.length % entriesPerSlice === 0) await nextTurn();
  }
  if (!hasUsableKeys(entries, trusts)) return "none of SIGNING_PUBLIC_KEYS verifies its API keys";
  const { epoch } = checkedHeader.value;
  return { epoch, entries, held: heldOf(epoch, header) };
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
  return parsed.ok ? parsed.value : `${key}: ${parsed.problem}`;
}
