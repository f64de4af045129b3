import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, renameSync } from "node:fs";
import { hasCode } from "./files.ts";

export type ExitStatus = { code: number | null; signal: NodeJS.Signals | null };

export type BackgroundProcess = {
  pid: number;
  logFile: string;
  /** Resolves when the process has ended, for any reason; never rejects. */
  exited: Promise<ExitStatus>;
  hasExited(): boolean;
  /** Sends the signals one after another, with a time-out for each, and waits until the process has ended. */
  stop(): Promise<ExitStatus>;
};

export type StopStep = { signal: NodeJS.Signals; timeoutMs: number };

/**
 * Starts a server whose output goes to a log file. The server has its own process group, so that Ctrl-C in the terminal
 * reaches only the launcher, which then stops all processes in order.
 */
export async function startBackgroundProcess(options: {
  command: string;
  args: string[];
  logFile: string;
  workingDirectory: string;
  environment: NodeJS.ProcessEnv;
  stopSteps: StopStep[];
  user?: { uid: number; gid: number } | undefined;
  /** Opens a channel to the process and receives its messages. The channel closes when the launcher ends. */
  onMessage?: (message: unknown) => void;
}): Promise<BackgroundProcess> {
  keepPreviousLog(options.logFile);
  const log = openSync(options.logFile, "a", 0o600);
  try {
    const child = spawn(options.command, options.args, {
      cwd: options.workingDirectory,
      env: options.environment,
      stdio: ["ignore", log, log, ...(options.onMessage ? ["ipc" as const] : [])],
      detached: true,
      ...options.user,
    });
    const exited = exitOf(child);
    if (options.onMessage !== undefined) child.on("message", options.onMessage);
    await spawned(child);
    return describe(child, { exited, logFile: options.logFile, stopSteps: options.stopSteps });
  } finally {
    closeSync(log);
  }
}

/** Keeps the log of the previous run, which may contain the reason for its end. */
function keepPreviousLog(logFile: string): void {
  try {
    renameSync(logFile, `${logFile}.1`);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}

/** Returns a promise of a process's exit status, which never rejects. */
export function exitOf(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", () => {
      // A process without an id never ran, and emits no "exit".
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
  });
}

function spawned(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
}

function describe(
  child: ChildProcess,
  options: { exited: Promise<ExitStatus>; logFile: string; stopSteps: StopStep[] },
): BackgroundProcess {
  if (child.pid === undefined) throw new Error("a spawned process has an id");
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid,
    logFile: options.logFile,
    exited: options.exited,
    hasExited,
    async stop() {
      for (const step of options.stopSteps) {
        if (hasExited()) break;
        child.kill(step.signal);
        await settledWithin(options.exited, step.timeoutMs);
      }
      if (!hasExited()) child.kill("SIGKILL");
      return options.exited;
    },
  };
}

/** Waits for the promise, at most for the given time. */
export async function settledWithin(promise: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
