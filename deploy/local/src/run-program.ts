import { join } from "node:path";
import {
  type BackgroundProcess,
  StartError,
  startBackgroundProcess,
} from "@halyard/local-backends";
import { endOfLog } from "./process-end.ts";

const stopSteps = [{ signal: "SIGTERM", timeoutMs: 5_000 }] as const;

/**
 * Runs a program of the project to its end.
 *
 * @throws StartError with the end of its log if it fails
 */
export async function runProgram(
  { projectDir, logsDir }: { projectDir: string; logsDir: string },
  options: {
    what: string;
    program: string;
    args?: string[];
    folder?: string;
    logName: string;
    environment: Record<string, string>;
    onStarted?: ((process: BackgroundProcess) => void) | undefined;
  },
): Promise<void> {
  const { what, program, args = [], folder = ".", logName, environment } = options;
  const started = await startBackgroundProcess({
    command: process.execPath,
    args: [join(projectDir, program), ...args],
    logFile: join(logsDir, logName),
    workingDirectory: join(projectDir, folder),
    environment,
    stopSteps: [...stopSteps],
  });
  options.onStarted?.(started);
  const { code } = await started.exited;
  if (code === 0) return;
  throw new StartError(`${what} failed (${started.logFile}):${endOfLog(started.logFile)}`);
}
