import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ExitStatus, exitOf } from "./background-process.ts";
import { identifyProcess, type ProcessIdentity } from "./process-identity.ts";

/**
 * Stops the processes of a launcher that was killed with SIGKILL. The reaper is a small process in its own session,
 * with a pipe from the launcher. The launcher writes a note to the pipe for each process that it starts. When the
 * launcher ends for any reason, the system closes the pipe, and the reaper stops the processes that still run.
 */
export type Reaper = {
  /** Id of the reaper's process. While it runs, processes of an ended launcher may still run. */
  pid: number;
  /** Resolves when the reaper has ended. If that happens before `close`, nothing is guarded any more. */
  exited: Promise<ExitStatus>;
  /** Stops the process when the launcher ends. Call it immediately after the start of the process. */
  guard(pid: number, options: { stopSignal: NodeJS.Signals }): void;
  /** Removes a file as soon as the launcher ends, for information that is valid only while it runs. */
  removeAtOnce(file: string): void;
  /** Removes a directory of throwaway data when the launcher has ended and all processes have stopped. */
  removeAfterwards(directory: string): void;
  /** Makes the reaper process its notes now, and waits for it. Call it after the orderly stop. */
  close(): Promise<void>;
};

/** A message in the pipe: one line of JSON. */
export type ReaperNote =
  | { kind: "process"; identity: ProcessIdentity; stopSignal: NodeJS.Signals }
  | { kind: "file"; path: string }
  | { kind: "directory"; path: string };

export function startReaper(): Reaper {
  const program = fileURLToPath(new URL("./reaper-process.ts", import.meta.url));
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    cwd: "/",
    env: {},
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  const exited = exitOf(child);
  child.stdin.on("error", () => {
    // The reaper was killed. `exited` reports it, and the orderly stop of the launcher does not need the reaper.
  });
  child.unref();
  const write = (note: ReaperNote) => child.stdin.write(`${JSON.stringify(note)}\n`);
  if (child.pid === undefined) throw new Error("the reaper could not be started");
  return {
    pid: child.pid,
    exited,
    guard(pid, options) {
      const identity = identifyProcess(pid);
      if (identity !== undefined) write({ kind: "process", identity, ...options });
    },
    removeAtOnce: (file) => void write({ kind: "file", path: file }),
    removeAfterwards: (directory) => void write({ kind: "directory", path: directory }),
    async close() {
      child.ref();
      child.stdin.end();
      await exited;
    },
  };
}
