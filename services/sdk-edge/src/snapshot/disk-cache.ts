import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { KeySignatures } from "@halyard/api-keys";
import type { Logger } from "pino";
import { type CachedEntries, readCacheFile, touchCacheFile, writeCacheFile } from "./cache-file.ts";
import type { SnapshotHolder, SnapshotUpdate } from "./snapshot-holder.ts";
import { isNothing } from "./take-entries.ts";

/**
 * Keeps the snapshot on disk, so that an edge can start and serve without NATS, and otherwise reads
 * from NATS only what has changed since. While the
 * snapshot changes, the file follows a few seconds behind; at shutdown it catches up. While nothing
 * changes only the file's time is set, to say that what it holds is still current.
 *
 * The file belongs to one edge alone. If it cannot be written, the edge serves on and says so.
 */
export type DiskCache = {
  /** Reads the file; undefined without a usable one. */
  read(): Promise<CachedEntries | undefined>;
  /** Takes a change of the snapshot, which is written later. */
  follow(change: SnapshotUpdate): void;
  /** Writes what is not written yet, and stops. */
  close(): Promise<void>;
};

/** Often enough that a crash loses little, and rarely enough that a stream of changes costs little. */
const writeDelayMs = 3_000;
/** Writing takes at most about a twentieth of the time, however large the snapshot is. */
const pausePerWrite = 20;
/** A full or broken disk does not mend within seconds. */
const delayAfterFailureMs = 60_000;
const touchIntervalMs = 30_000;

type DiskCacheOptions = {
  file: string;
  holder: Pick<SnapshotHolder, "snapshot" | "source" | "applied" | "staleMs">;
  trusts: KeySignatures["trusts"];
  logger: Logger;
  now: () => number;
};

export function createDiskCache(options: DiskCacheOptions): DiskCache {
  const { file, holder, logger, now } = options;
  let unwritten = false;
  let epochOnDisk = "";
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let work: Promise<void> = Promise.resolve();
  const touching = setInterval(enqueue, touchIntervalMs, touch).unref();

  function writeIn(delayMs: number): void {
    if (timer !== undefined || closed) return;
    timer = setTimeout(enqueue, delayMs, write).unref();
  }

  /** One piece of work at a time. A failure is logged here and never thrown. */
  function enqueue(piece: () => Promise<void>): void {
    work = work.then(piece).catch((error: unknown) => {
      logger.warn({ err: error, file }, "the snapshot cache could not be written");
      unwritten = true;
      timer = undefined;
      writeIn(delayAfterFailureMs);
    });
  }

  async function write(): Promise<void> {
    const { snapshot, applied } = holder;
    if (snapshot === undefined || !unwritten) return;
    const startedAtMs = now();
    // What changes from here on needs another write.
    unwritten = false;
    await mkdir(dirname(file), { recursive: true });
    const revision = applied?.epoch === snapshot.epoch ? applied.revision : undefined;
    await writeCacheFile(file, { snapshot, revision, currentAtMs: currentAtMs() });
    epochOnDisk = snapshot.epoch;
    timer = undefined;
    if (unwritten) writeIn(Math.max(writeDelayMs, pausePerWrite * (now() - startedAtMs)));
  }

  async function touch(): Promise<void> {
    if (holder.source === "nats" && !unwritten) await touchCacheFile(file, currentAtMs());
  }

  function currentAtMs(): number {
    return now() - (holder.staleMs() ?? 0);
  }

  return {
    async read() {
      const cached = await readUsable(options);
      if (cached !== undefined) epochOnDisk = cached.epoch;
      return cached;
    },
    follow({ snapshot, changed }) {
      const alreadyThere = isNothing(changed) && snapshot.epoch === epochOnDisk;
      if (holder.source !== "nats" || alreadyThere) return;
      unwritten = true;
      writeIn(writeDelayMs);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      clearInterval(touching);
      enqueue(unwritten ? write : touch);
      await work;
    },
  };
}

async function readUsable({
  file,
  trusts,
  logger,
}: DiskCacheOptions): Promise<CachedEntries | undefined> {
  const reading = await readCacheFile(file, trusts);
  if (!reading.found) {
    const { problem } = reading;
    if (problem !== undefined) logger.warn({ file, problem }, "the snapshot cache is of no use");
    return undefined;
  }
  logger.info({ file, revision: reading.held?.revision }, "the snapshot cache was read");
  return reading;
}
