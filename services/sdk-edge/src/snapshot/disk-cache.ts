import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { KeySignatures } from "@halyard/api-keys";
import type { Logger } from "pino";
import { type CachedEntries, readCacheFile, touchCacheFile, writeCacheFile } from "./cache-file.ts";
import { isNothing } from "./snapshot.ts";
import type { SnapshotHolder, SnapshotUpdate } from "./snapshot-holder.ts";

/**
 * Keeps the snapshot on disk, so that an edge can start and serve without NATS. With NATS, it reads only the changes
 * since the last write. While the snapshot changes, the file is a few seconds behind; the shutdown writes the rest.
 * While nothing changes, only the modification time of the file is set, to record that its content is current.
 *
 * The file belongs to one edge alone. If it cannot be written, the edge logs a warning and continues to serve.
 */
export type DiskCache = {
  /** Reads the file; undefined if there is no usable one. */
  read(): Promise<CachedEntries | undefined>;
  /** Schedules a write of an update of the snapshot. */
  follow(update: SnapshotUpdate): void;
  /** Writes the remaining changes, and stops. */
  close(): Promise<void>;
};

/** Delay of a write after a change. A crash loses little, and a series of changes causes few writes. */
const writeDelayMs = 3_000;
/**
 * Minimum pause after a write, as a multiple of its duration. Writing therefore takes about a twentieth of the time at
 * most, for a snapshot of any size.
 */
const pausePerWrite = 20;
/** Delay after a failed write. A full or broken disk does not recover within seconds. */
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

  /** Runs one piece of work at a time. A failure is logged here and never thrown. */
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
    // Changes from here on need another write.
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
    if (problem !== undefined) logger.warn({ file, problem }, "the snapshot cache is unusable");
    return undefined;
  }
  logger.info({ file, revision: reading.held?.revision }, "the snapshot cache was read");
  return reading;
}
