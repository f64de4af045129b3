import type { Readable } from "node:stream";
import {
  maxListEntries,
  maxUploadBytes,
  type replaceAudienceList,
  uploadTimeoutMs,
} from "@halyard/contracts";
import { fingerprintBytes, SipHash } from "@halyard/evaluation";
import { createProblem, isProblem, type Problem, type RequestFacts } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { z } from "zod";
import { createCsvParser, createNdjsonParser, type EntryParser } from "./entry-lines.ts";
import { type Chunk, chunkOf, divide, FingerprintList } from "./fingerprint-chunks.ts";
import {
  fingerprintKeyOf,
  giveUpList,
  insertMembers,
  insertUnusedList,
  type Members,
} from "./list-store.ts";
import { partsAtPace } from "./paced-body.ts";

/**
 * Receives uploaded lists. The entries are written in short transactions while the body arrives, as a list that no audience
 * has. So a slow client holds neither locks nor a database connection, and the caller replaces the list of the audience
 * in one transaction at the end. The process keeps only the fingerprints, 8 bytes for each entry. The entries of an
 * upload that fails, or of a process that ends, are removed later.
 */
type Uploads = {
  /** Takes one of the concurrent uploads for an organization. Returns the function that ends it. */
  begin(organizationId: string): (() => void) | Problem;
  /**
   * Reads a body to its end, and calls `use` with the list. The entries are removed unless `use` returns a result.
   * Rejects if the client disconnects.
   */
  receive<Done extends object>(
    input: UploadInput,
    bounds: UploadBounds,
    use: (uploaded: UploadedList) => Promise<Done | Problem>,
  ): Promise<Done | Problem>;
};

type UploadInput = {
  request: RequestFacts;
  query: z.infer<typeof replaceAudienceList.query>;
};

type UploadBounds = {
  projectId: string;
  /** Checks the number of entries so far, so that an upload beyond a limit ends early. */
  checkCount: (count: number) => Promise<Problem | undefined>;
  /** Called with the size of each part of the body. */
  onBytes: (bytes: number) => void;
};

/** A complete list that no audience has yet. */
export type UploadedList = {
  id: string;
  count: number;
  fingerprintKey: string;
  chunks: readonly Chunk[];
};

/** Each upload takes up to 40 MB of memory. */
const maxConcurrent = 3;
const maxConcurrentOfOrganization = 1;

/** Minimum number of entries in a batch. Smaller batches are more commits that wait for the disk. */
const batchSize = 5_000;

/** Time for the last transaction after the end of the body. */
const finishWithinMs = 5 * 60_000;

export function createUploads({ sql, newId }: { sql: Sql; newId: () => string }): Uploads {
  /** The organization of each upload. */
  const current = new Map<symbol, string>();

  return {
    begin(organizationId) {
      const own = [...current.values()].filter((other) => other === organizationId).length;
      if (own >= maxConcurrentOfOrganization) return tooManyOfOrganization;
      if (current.size >= maxConcurrent) return tooMany;
      const upload = Symbol("upload");
      current.set(upload, organizationId);
      return () => void current.delete(upload);
    },

    async receive({ request, query }, { projectId, ...bounds }, use) {
      const length = Number(request.headers["content-length"] ?? 0);
      if (length > maxUploadBytes) return tooLarge;
      const id = newId();
      await insertUnusedList(sql, id, uploadTimeoutMs + finishWithinMs);
      let isUsed = false;
      try {
        const key = await fingerprintKeyOf(sql, projectId);
        const parser = parserFor(request, query);
        const { stream } = request;
        const received = await receiveEntries(sql, { id, key, parser, stream, ...bounds });
        const done = isProblem(received) ? received : await use(received);
        isUsed = !isProblem(done);
        return done;
      } finally {
        if (!isUsed) await giveUp(sql, id);
      }
    },
  };
}

/** The entries are removed later in any case. Their early removal is no reason to fail. */
async function giveUp(sql: Sql, id: string): Promise<void> {
  await giveUpList(sql, id).catch(() => undefined);
}

function parserFor({ headers }: RequestFacts, query: { header?: string | undefined }): EntryParser {
  const options = { hasHeader: query.header === "present" };
  const isCsv = headers["content-type"]?.trimStart().toLowerCase().startsWith("text/csv") === true;
  return isCsv ? createCsvParser(options) : createNdjsonParser(options);
}

type Receiving = Omit<UploadBounds, "projectId"> & {
  id: string;
  key: Buffer;
  parser: EntryParser;
  stream: Readable | undefined;
};

async function receiveEntries(sql: Sql, receiving: Receiving): Promise<UploadedList | Problem> {
  const { id, key } = receiving;
  const batches = createBatches(sql, id, key);
  try {
    const problem = await readInto(batches, receiving);
    if (problem !== undefined) return problem;
    const { count, fingerprints } = await batches.finish();
    const chunks = divide(fingerprints);
    if (chunks === undefined) return indivisible;
    return { id, count, fingerprintKey: key.toString("hex"), chunks: chunks.map(chunkOf) };
  } finally {
    // Entries that are written after a failed upload was removed would stay until the next sweep.
    await batches.settled();
  }
}

/** Reads the body to its end. Returns the first problem. */
async function readInto(
  batches: ReturnType<typeof createBatches>,
  { parser, stream, checkCount, onBytes }: Receiving,
): Promise<Problem | undefined> {
  let bytes = 0;
  for await (const part of stream === undefined ? [] : partsAtPace(stream)) {
    if (isProblem(part)) return part;
    bytes += part.length;
    onBytes(part.length);
    if (bytes > maxUploadBytes) return tooLarge;
    const problem = await addEntries(parser.parse(part, false));
    if (problem !== undefined) return problem;
  }
  return addEntries(parser.parse(Buffer.alloc(0), true));

  async function addEntries(
    parsed: ReturnType<EntryParser["parse"]>,
  ): Promise<Problem | undefined> {
    if ("line" in parsed)
      return createProblem("VALIDATION_001", `Line ${parsed.line} ${parsed.problem}.`);
    if (batches.add(parsed) > maxListEntries) return tooManyEntries;
    const count = await batches.written();
    return count === undefined ? undefined : checkCount(count);
  }
}

/** Collects entries, and inserts them in batches. While a batch is inserted, the next one is collected. */
function createBatches(sql: Sql, listId: string, key: Buffer) {
  const hash = new SipHash(key);
  const fingerprints = new FingerprintList();
  let batch: string[] = [];
  let received = 0;
  let count = 0;
  let inserting: Promise<void> = Promise.resolve();

  async function insertNext(): Promise<void> {
    await inserting;
    const members = hashed(batch, hash, (high, low) => fingerprints.add(high, low));
    batch = [];
    inserting = insertMembers(sql, listId, members).then((inserted) => {
      count += inserted;
    });
    // The next wait for it gets the rejection.
    inserting.catch(() => undefined);
  }

  return {
    /** Adds entries. Returns the number of all entries so far. */
    add(entries: readonly string[]): number {
      received += entries.length;
      batch = batch.length === 0 ? [...entries] : [...batch, ...entries];
      return received;
    },
    /**
     * Waits until further entries may be added. Returns the number of distinct entries in the batches that are written,
     * if a batch begins.
     */
    async written(): Promise<number | undefined> {
      if (batch.length < batchSize) return undefined;
      await insertNext();
      return count;
    },
    /** Waits until an insert in progress has succeeded or failed. */
    settled: () => inserting.catch(() => undefined),
    async finish(): Promise<{ count: number; fingerprints: Buffer }> {
      await insertNext();
      await inserting;
      return { count, fingerprints: fingerprints.sorted() };
    },
  };
}

/** Returns entries with their fingerprints. Calls `onFingerprint` with the halves of each. */
function hashed(
  texts: readonly string[],
  hash: SipHash,
  onFingerprint?: (high: number, low: number) => void,
): Members {
  const fingerprints = Buffer.allocUnsafe(texts.length * fingerprintBytes);
  for (const [index, text] of texts.entries()) {
    hash.hash(text);
    fingerprints.writeUInt32BE(hash.high, index * fingerprintBytes);
    fingerprints.writeUInt32BE(hash.low, index * fingerprintBytes + 4);
    onFingerprint?.(hash.high, hash.low);
  }
  return { texts, fingerprints };
}

/** Returns entries with their fingerprints, each once. */
export function membersOf(entries: readonly string[], key: Buffer): Members {
  return hashed([...new Set(entries)], new SipHash(key));
}

const tooLarge = createProblem(
  "VALIDATION_002",
  `The list must be at most ${maxUploadBytes} bytes. The list of the audience is unchanged.`,
);

const tooManyEntries = createProblem(
  "VALIDATION_001",
  `The list must have at most ${maxListEntries} entries, including repeated ones. The list of the audience is unchanged.`,
);

export const indivisible = createProblem(
  "VALIDATION_001",
  "Too many entries have fingerprints that begin alike.",
);

const tooManyOfOrganization = createProblem(
  "RATE_001",
  "Another list of this organization is being uploaded. Upload one list at a time.",
  {
    "retry-after": "5",
    "ratelimit-policy": `"uploads";q=${maxConcurrentOfOrganization};qu="concurrent-requests"`,
    ratelimit: '"uploads";r=0',
  },
);

const tooMany = createProblem("SERVER_002", "Too many lists are being uploaded; retry after 5 s.", {
  "retry-after": "5",
});
