import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { readCachedChunks, removeOtherChunks, writeCachedChunks } from "./cache-chunks.ts";
import { replaceFile } from "./replace-file.ts";
import { chunkNames } from "./rules/parse-audiences.ts";
import { format, parseRules, type Rules } from "./rules/parse-rules.ts";

/** Flags that were written to a cache file, with the tag that the service gave them. */
type CachedRules = {
  rules: Rules;
  /** The known chunks of lists by their SHA-256. */
  chunks: ReadonlyMap<string, Uint8Array>;
  etag: string;
  savedAt: Date;
};

type CacheReading =
  | { found: true; cached: CachedRules }
  /** Without a problem, the file does not exist. */
  | { found: false; problem?: string };

/** Binds a file to the service and the key that its flags came from. It contains no secret. */
export type CacheBinding = string;

/** Returns the binding of a base address and a server key. Only the id of the key, which is no secret, is used. */
export function cacheBindingOf(baseUrl: string, serverKey: string): CacheBinding {
  const [kind, keyId] = serverKey.split("_");
  return createHash("sha256").update(`${baseUrl}\n${kind}_${keyId}`).digest("hex");
}

/**
 * Reads a cache file: a line with its format, binding, tag, time and checksum, and a line with the rule set. The read is
 * synchronous, so that the first evaluation after `createClient` already has the flags.
 */
export function readCacheFile(path: string, binding: CacheBinding): CacheReading {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? { found: false } : unusable(`it cannot be read (${code})`);
  }
  const end = text.indexOf("\n");
  const header = parseHeader(text.slice(0, end === -1 ? 0 : end));
  const body = text.slice(end + 1);
  if (header === undefined || header.sha256 !== sha256Of(body))
    return unusable("it is truncated or damaged");
  if (header.format !== format) return unusable("it is in another format");
  if (header.binding !== binding) return unusable("it belongs to another base address or key");
  const parsed = parseRules(body);
  if (!parsed.ok) return unusable(`its rule set is invalid: ${parsed.problem}`);
  const { value: rules } = parsed;
  const chunks = readCachedChunks(path, chunkNames(rules.audiences.values()));
  const { etag, saved_at: savedAt } = header;
  return { found: true, cached: { rules, chunks, etag, savedAt: new Date(savedAt) } };
}

/** Writes a cache file that only its owner can read, and creates its folder. */
export async function writeCacheFile(
  path: string,
  binding: CacheBinding,
  { rules, chunks, etag, savedAt }: CachedRules,
): Promise<void> {
  const body = bodyOf(rules);
  const sha256 = sha256Of(body);
  const header: Header = { format, binding, etag, saved_at: savedAt.toISOString(), sha256 };
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // In this order, a cache file on disk never names a chunk that was not written.
  await writeCachedChunks(path, chunks, savedAt);
  await replaceFile(path, `${JSON.stringify(header)}\n${body}`);
  // Another process may have removed a chunk that its own cache file, now replaced, did not name.
  await writeCachedChunks(path, chunks, savedAt);
  await removeOtherChunks(path, chunks, savedAt);
}

/** Returns the rule set as JSON, with the parts that this version does not know. */
function bodyOf({ projectId, environmentId, flags, audiences, unsupported }: Rules): string {
  const unknown = [...unsupported].map(([key, { received }]) => [key, received] as const);
  const received = [...audiences].map(([key, { audience }]) => [key, audience] as const);
  return JSON.stringify({
    ...{ format, project_id: projectId, environment_id: environmentId },
    flags: Object.fromEntries<object>([...flags, ...unknown]),
    ...(received.length > 0 && { audiences: Object.fromEntries(received) }),
  });
}

type Header = { format: number; binding: string; etag: string; saved_at: string; sha256: string };

function parseHeader(line: string): Header | undefined {
  try {
    const header = JSON.parse(line) as Partial<Record<keyof Header, unknown>> | null;
    const { etag, saved_at: savedAt } = header ?? {};
    const isValid =
      typeof etag === "string" && typeof savedAt === "string" && !Number.isNaN(Date.parse(savedAt));
    return isValid ? (header as Header) : undefined;
  } catch {
    return undefined;
  }
}

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function unusable(problem: string): CacheReading {
  return { found: false, problem };
}
