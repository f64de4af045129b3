#!/usr/bin/env node
import { parseArgs } from "node:util";
import { startProgram } from "./program.ts";
import { type Failure, runWith, type SuiteResult } from "./run-suite.ts";

/** The command `halyard-conformance`. */
const help = `Checks an evaluator in any language with Halyard's conformance cases.

  halyard-conformance [options] -- <command that starts the evaluator>

The evaluator reads one request per line from its standard input and writes one reply per line to its standard output,
both as JSON. README.md of @halyard/conformance describes the protocol.

Options
  --all             prints every failed check (default: the first 10)
  --skip-optional   skips the files that languages with strict Unicode strings cannot represent
  --timeout <s>     seconds to wait for a reply (default: 10)
  --help            shows this help

Exit codes
  0   all checked cases passed
  1   cases failed
  2   the command line is invalid
  3   the evaluator could not be started, ended, sent an invalid reply, or did not reply
`;

const failedExitCode = 1;
const usageExitCode = 2;
const stoppedExitCode = 3;
const shownFailures = 10;

process.exitCode = await main(process.argv.slice(2));

async function main(given: string[]): Promise<number> {
  const parsed = parse(given);
  if (typeof parsed === "string") return reject(parsed);
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const timeoutSeconds = Number(values.timeout);
  if (!(timeoutSeconds > 0)) return reject("Invalid --timeout: expected a number of seconds.");
  const [command, ...args] = positionals;
  if (command === undefined) return reject("Expected the command that starts the evaluator.");
  const program = startProgram({ command, args, timeoutMs: timeoutSeconds * 1_000 });
  const result = await runWith(program.answer, { skipOptional: values["skip-optional"] });
  await program.close();
  process.stdout.write(
    describeResult(result, values.all ? Number.POSITIVE_INFINITY : shownFailures),
  );
  if (result.stopped !== undefined) return stoppedExitCode;
  return result.failed > 0 ? failedExitCode : 0;
}

function parse(given: string[]) {
  try {
    return parseArgs({
      args: given,
      allowPositionals: true,
      options: {
        all: { type: "boolean", default: false },
        "skip-optional": { type: "boolean", default: false },
        timeout: { type: "string", default: "10" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return (error as Error).message;
  }
}

function reject(problem: string): number {
  process.stderr.write(`${problem}\n\n${help}`);
  return usageExitCode;
}

function describeResult(result: SuiteResult, maxFailures: number): string {
  const { version, passed, failed, skipped, unsupported, failures, stopped } = result;
  const shown = failures.slice(0, maxFailures).map(describeFailure);
  const hidden = failures.length - shown.length;
  if (hidden > 0) shown.push(`${hidden} more failed checks; --all prints them.\n`);
  if (stopped !== undefined) {
    const { file, name, problem } = stopped;
    shown.push(`Stopped at ${file}: ${name}\n  ${problem}\n  The later cases were not checked.\n`);
  }
  const missing = Object.entries(unsupported).map(([op, count]) => `${op} (${count} requests)`);
  if (missing.length > 0) shown.push(`Unsupported by the evaluator: ${missing.join(", ")}\n`);
  shown.push(
    `Conformance suite ${version}: ${passed} cases passed, ${failed} failed, ${skipped} skipped\n`,
  );
  return shown.join("\n");
}

function describeFailure({ file, name, request, expected, received }: Failure): string {
  return `${file}: ${name}
  request   ${request}
  expected  ${expected}
  received  ${received}
`;
}
