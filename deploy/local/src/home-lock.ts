import { linkSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  hasCode,
  identifyProcess,
  isSameProcessRunning,
  type ProcessIdentity,
  readIfPresent,
  StartError,
} from "@halyard/local-backends";

/**
 * Lock of a home. Without it, two launchers on one home would start two servers on the same data. The lock is a file
 * that names the launcher and its reaper. A hard link creates it atomically with its content, and fails if it exists.
 * A killed launcher leaves its lock behind. The next launcher waits until that launcher's reaper has stopped all
 * processes, and then takes over the lock.
 */
export type HomeLock = { release(): void };

type Holder = { launcher: ProcessIdentity; reaper: ProcessIdentity };

/** Longer than the reaper needs in the worst case. */
const REAPER_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 50;

/** Maximum number of attempts. Each one can fail because another launcher starts at the same moment. */
const ATTEMPTS = 10;

export async function lockHome(
  home: string,
  options: { reaperPid: number; onStep: (text: string) => void },
): Promise<HomeLock> {
  const path = join(home, "lock");
  const content = JSON.stringify(describeHolder(options.reaperPid));
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (createWhole(path, content)) return { release: () => releaseOwn(path, content) };
    const found = readIfPresent(path);
    if (found === undefined) continue;
    const holder = parseHolder(found);
    if (holder !== undefined && isSameProcessRunning(holder.launcher)) {
      throw alreadyRunning(home, holder.launcher.pid);
    }
    if (holder !== undefined) await awaitReaper(holder.reaper, options.onStep);
    removeStale(path, found);
  }
  throw new StartError(`Could not take the lock ${path}. Delete it if no Halyard runs there.`);
}

function describeHolder(reaperPid: number): Holder {
  const launcher = identifyProcess(process.pid);
  const reaper = identifyProcess(reaperPid);
  if (launcher === undefined || reaper === undefined) {
    throw new StartError(
      "Could not lock the home: this system does not report the start times of processes.",
    );
  }
  return { launcher, reaper };
}

function createWhole(path: string, content: string): boolean {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  } finally {
    unlinkSync(draft);
  }
}

/**
 * Removes a stale lock. Another launcher may have taken over the lock since it was read. Its new lock was then moved
 * away, and is restored.
 */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  const moved = readIfPresent(aside);
  if (moved !== undefined && moved !== stale) createWhole(path, moved);
  rmSync(aside, { force: true });
}

async function awaitReaper(reaper: ProcessIdentity, onStep: (text: string) => void): Promise<void> {
  if (!isSameProcessRunning(reaper)) return;
  onStep("the previous run was killed: waiting until its processes have stopped");
  const deadline = Date.now() + REAPER_TIMEOUT_MS;
  while (isSameProcessRunning(reaper) && Date.now() < deadline) await delay(POLL_INTERVAL_MS);
}

function releaseOwn(path: string, content: string): void {
  if (readIfPresent(path) === content) rmSync(path, { force: true });
}

function alreadyRunning(home: string, pid: number): StartError {
  return new StartError(
    `Halyard is already running in ${home} (process ${pid}). Stop it with \`kill ${pid}\`, ` +
      "or start a second one with its own directory and port: HALYARD_HOME=.halyard-2 PORT=8081 npm start",
  );
}

/** Parses a lock. A file with other content holds no lock. */
function parseHolder(text: string): Holder | undefined {
  try {
    const holder: Partial<Holder> = JSON.parse(text);
    const { launcher, reaper } = holder;
    return launcher === undefined || reaper === undefined ? undefined : { launcher, reaper };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
