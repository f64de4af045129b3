import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, renameSync } from "node:fs";
import { unlessAbsent } from "./files.ts";

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

export type BackgroundOptions = {
  command: string;
  args: string[];
  logFile: string;
  workingDirectory: string;
  environment: NodeJS.ProcessEnv;
  stopSteps: StopStep[];
  user?: { uid: number; gid: number } | undefined;
};

/** Starts a process whose output goes to a log file. */
export async function startBackgroundProcess(
  options: BackgroundOptions & {
    /** Opens a channel to the process and receives its messages. The channel closes when the launcher ends. */
    onMessage?: (message: unknown) => void;
  },
): Promise<BackgroundProcess> {
  // The log of the previous run may contain the reason for its end.
  unlessAbsent(() => renameSync(options.logFile, `${options.logFile}.1`));
  const log = openSync(options.logFile, "a", 0o600);
  try {
    const child = spawn(options.command, options.args, {
      cwd: options.workingDirectory,
      env: options.environment,
      stdio: ["ignore", log, log, ...(options.onMessage ? ["ipc" as const] : [])],
      ...options.user,
    });
    const exited = exitOf(child);
    if (options.onMessage !== undefined) child.on("message", options.onMessage);
    await once(child, "spawn");
    return describe(child, exited, options);
  } finally {
    closeSync(log);
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

function describe(
  child: ChildProcess,
  exited: Promise<ExitStatus>,
  { logFile, stopSteps }: BackgroundOptions,
): BackgroundProcess {
  if (child.pid === undefined) throw new Error("a spawned process has an id");
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid,
    logFile,
    exited,
    hasExited,
    async stop() {
      for (const step of stopSteps) {
        if (hasExited()) break;
        child.kill(step.signal);
        await settledWithin(exited, step.timeoutMs);
      }
      if (!hasExited()) child.kill("SIGKILL");
      return exited;
    },
  };
}

/** Waits for the promise, at most for the given time. */
export async function settledWithin(promise: Promise<unknown>, timeoutMs: number): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
