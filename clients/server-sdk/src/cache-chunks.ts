import { readFileSync, rmSync } from "node:fs";
import { mkdir, readdir, rm, rmdir, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { isChunk } from "./lists/fetch-chunk.ts";
import { replaceFile } from "./replace-file.ts";

/**
 * The chunks of lists beside a cache file: a folder with a file for each chunk, named by its SHA-256. A change of a list
 * writes only the chunks that differ, and not the list.
 */
function folderOf(cacheFile: string): string {
  return `${cacheFile}.lists`;
}

/** Reads chunks. A chunk without a usable file is left out, and the client loads it from the service. */
export function readCachedChunks(cacheFile: string, names: Iterable<string>): Chunks {
  const chunks = new Map<string, Uint8Array>();
  for (const sha256 of names) {
    const path = join(folderOf(cacheFile), sha256);
    try {
      const bytes = readFileSync(path);
      if (isChunk(bytes, sha256)) chunks.set(sha256, bytes);
      // Otherwise the next write would keep the damaged file.
      else rmSync(path, { force: true });
    } catch {
      // The file is missing or cannot be read, which the next write reports.
    }
  }
  return chunks;
}

type Chunks = ReadonlyMap<string, Uint8Array>;

/**
 * Writes the chunks that have no file yet, and marks the files of the others as used at this time. Then no other process
 * that shares the folder removes them.
 */
export async function writeCachedChunks(
  cacheFile: string,
  chunks: Chunks,
  time: Date,
): Promise<void> {
  if (chunks.size === 0) return;
  const folder = folderOf(cacheFile);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const [sha256, bytes] of chunks) {
    const path = join(folder, sha256);
    if (!(await mark(path, time))) await replaceFile(path, bytes);
  }
}

/**
 * Age from which unused files are removed. A process that shares the folder needs less from the write of a chunk to that
 * of the cache file that names it.
 */
const unusedAfterMs = 120_000;

/** Removes the old files of all other chunks, and of writes that a crash interrupted. */
export async function removeOtherChunks(
  cacheFile: string,
  chunks: Chunks,
  time: Date,
): Promise<void> {
  const folder = folderOf(cacheFile);
  const names = await readdir(folder).catch(ignoreRace);
  if (names === undefined) return;
  let left = names.length;
  for (const name of names) {
    if (!ownFile.test(name) || chunks.has(name)) continue;
    const path = join(folder, name);
    const usedAtMs = (await stat(path).catch(ignoreRace))?.mtimeMs ?? 0;
    if (time.getTime() - usedAtMs < unusedAfterMs) continue;
    await rm(path, { force: true });
    left -= 1;
  }
  if (left === 0) await rmdir(folder).catch(ignoreRace);
}

/** The names of chunks and of their temporary files. */
const ownFile = /^[0-9a-f]{64}(\.\d+-\d+\.tmp)?$/;

/** Marks a file as used at this time. Returns false if it does not exist. */
async function mark(path: string, time: Date): Promise<boolean> {
  try {
    await utimes(path, time, time);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** Another process can remove the same files, or add one to the folder. */
function ignoreRace(error: NodeJS.ErrnoException): undefined {
  const { code = "" } = error;
  if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes(code)) throw error;
}
