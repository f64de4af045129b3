import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ExitStatus, exitOf } from "./background-process.ts";
import { identifyProcess, type ProcessIdentity } from "./process-identity.ts";

/**
 * A launcher that is killed with SIGKILL cannot stop what it started. The reaper can: it is a small
 * process in a session of its own that holds one end of a pipe to the launcher. While the launcher
 * lives it writes down there what it starts; when the launcher is gone, however it went, the system
 * closes the pipe, and the reaper stops those of the named processes that still run.
 */
export type Reaper = {
  /** Its process: while it runs, something that an ended launcher had started may still run. */
  pid: number;
  /** Settles when the reaper has ended. Before `close` nobody asked for that, and nothing is guarded. */
  exited: Promise<ExitStatus>;
  /** Has the process stopped when the launcher is gone. Call it right after the process was started. */
  guard(pid: number, options: { stopSignal: NodeJS.Signals }): void;
  /** Has a file removed as soon as the launcher is gone, for what is true only while that runs. */
  removeAtOnce(file: string): void;
  /** Has a directory of throwaway data removed when the launcher is gone and everything has stopped. */
  removeAfterwards(directory: string): void;
  /** Lets the reaper go through its list now and waits for it; call it after the orderly stop. */
  close(): Promise<void>;
};

/** What goes through the pipe, one JSON value a line. */
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
    // The reaper was killed. `exited` says so, and the launcher's orderly stop does without it.
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
