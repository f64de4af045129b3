import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { threadId } from "node:worker_threads";
import { format, parseRules, type Rules } from "./rules/parse-rules.ts";

/** Flags that were written to a cache file, with the tag that the service gave them. */
type CachedRules = { rules: Rules; etag: string; savedAt: Date };

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
  const { etag, saved_at: savedAt } = header;
  return { found: true, cached: { rules: parsed.value, etag, savedAt: new Date(savedAt) } };
}

/**
 * Writes a cache file that only its owner can read, and creates its folder. A crash or a full disk leaves the previous
 * file, because the new one is complete on disk before it replaces it.
 */
export async function writeCacheFile(
  path: string,
  binding: CacheBinding,
  { rules, etag, savedAt }: CachedRules,
): Promise<void> {
  const unsupported = [...rules.unsupported].map(([key, { received }]) => [key, received] as const);
  const flags = Object.fromEntries<object>([...rules.flags, ...unsupported]);
  const body = JSON.stringify({ format, environment_id: rules.environmentId, flags });
  const sha256 = sha256Of(body);
  const header: Header = { format, binding, etag, saved_at: savedAt.toISOString(), sha256 };
  // Processes and threads can share a file. In a container, the successor of a crashed process reuses its names.
  const temporary = `${path}.${process.pid}-${threadId}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    // A leftover file would keep its mode.
    await rm(temporary, { force: true });
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${JSON.stringify(header)}\n${body}`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
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
