import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { isRunning, readIfPresent, StartError } from "@halyard/local-backends";

/**
 * Lock of a home. Without it, two runs on one home would start two servers on the same data. It is the lock of SQLite on
 * a file, which the system releases when the process ends for any reason. A second file contains the process id of the
 * launcher. If that process does not run, it was killed, and the run that holds the lock is stopping.
 */
export type HomeLock = { release(): void };

/** Longer than a run needs to stop in the worst case. */
const STOP_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 50;

/** Result code of SQLite if another connection holds the lock. */
const SQLITE_BUSY = 5;

export async function lockHome(
  home: string,
  options: { launcherPid: number; onStep: (text: string) => void },
): Promise<HomeLock> {
  const file = join(home, "lock.sqlite");
  const launcherFile = join(home, "launcher.pid");
  const database = new DatabaseSync(file);
  const deadline = Date.now() + STOP_TIMEOUT_MS;
  let isWaiting = false;
  while (!tryLock(database)) {
    const pid = Number.parseInt(readIfPresent(launcherFile) ?? "", 10);
    if (isRunning(pid))
      throw new StartError(
        `Halyard is already running in ${home} (process ${pid}). Stop it with \`kill ${pid}\`, ` +
          "or start a second one with its own directory and port: HALYARD_HOME=.halyard-2 PORT=8081 npm start",
      );
    if (!isWaiting)
      options.onStep("the previous run was killed: waiting until its processes have stopped");
    isWaiting = true;
    if (Date.now() > deadline)
      throw new StartError(
        `Another process holds the lock ${file}. Stop that process, or choose another directory with HALYARD_HOME.`,
      );
    await delay(POLL_INTERVAL_MS);
  }
  writeFileSync(launcherFile, `${options.launcherPid}\n`);
  return {
    release() {
      rmSync(launcherFile, { force: true });
      database.close();
    },
  };
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec("begin immediate");
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}
