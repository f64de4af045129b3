import { ConfigurationError } from "./configuration-error.ts";
import { ListenError } from "./listen.ts";

/** Exit codes: the configuration is wrong, so that a restart will not help; or starting failed. */
const configurationExitCode = 2;
const failedExitCode = 1;

/**
 * The frame of every `main.ts`. Problems that a person can solve are printed as sentences; any other
 * one with its stack.
 */
export async function startOrExit(start: () => Promise<unknown>): Promise<void> {
  try {
    await start();
  } catch (error) {
    process.stderr.write(`${describeFailure(error)}\n`);
    process.exit(error instanceof ConfigurationError ? configurationExitCode : failedExitCode);
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof ConfigurationError)
    return [`${error.message}:`, ...error.problems.map((problem) => `  ${problem}`)].join("\n");
  if (error instanceof ListenError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\nCaused by: ${error.cause.message}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
