import { ConfigurationError } from "@halyard/configuration";
import { printError } from "./describe-error.ts";
import { ListenError } from "./listen.ts";

/** Exit codes for an invalid configuration, which a restart does not fix, and for any other failure. */
const configurationExitCode = 2;
const failedExitCode = 1;

export const faultEvents = ["uncaughtException", "unhandledRejection"] as const;

/**
 * Runs the start function of a `main.ts`, and exits if it fails. Problems that an operator can fix are printed as
 * sentences. All other errors are printed in their log form, because the output of a service goes into its log.
 */
export async function startOrExit(start: () => Promise<unknown>): Promise<void> {
  const exit = exitAfter(printError);
  // Node.js would print an uncaught error with its message and all of its members.
  for (const event of faultEvents) process.on(event, exit);
  await start().catch(exit);
}

/** Runs a command. It prints errors with their messages, because a person reads them at a terminal. */
export async function runCommand(command: () => Promise<unknown>): Promise<void> {
  await command().catch(exitAfter(printWithMessage));
}

function exitAfter(print: (error: unknown) => string): (error: unknown) => never {
  return (error) => {
    process.stderr.write(`${describeFailure(error, print)}\n`);
    process.exit(error instanceof ConfigurationError ? configurationExitCode : failedExitCode);
  };
}

function describeFailure(error: unknown, print: (error: unknown) => string): string {
  if (error instanceof ConfigurationError)
    return [`${error.message}:`, ...error.problems.map((problem) => `  ${problem}`)].join("\n");
  return error instanceof ListenError ? error.message : print(error);
}

function printWithMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\nCaused by: ${error.cause.message}` : "";
  return `${error.stack ?? error.message}${cause}`;
}
