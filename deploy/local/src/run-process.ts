import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { HELP, parseArguments } from "./arguments.ts";
import { createSteps } from "./steps.ts";

/** Exit code for wrong arguments or settings; a failed start has another one. */
const USAGE_EXIT_CODE = 2;

async function main(): Promise<number> {
  const parsed = parseArguments(process.argv.slice(2));
  if (parsed.kind === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  if (parsed.kind === "unknown") {
    process.stderr.write(`Unknown option ${parsed.argument}.\n\n${HELP}`);
    return USAGE_EXIT_CODE;
  }
  enableCompileCache(join(import.meta.dirname, "../../../.cache/node"));
  const { readSettings } = await import("./config.ts");
  const { run } = await import("./run.ts");
  const result = await readSettings();
  if (!result.ok) {
    process.stderr.write(`${result.problems.join("\n")}\n`);
    return USAGE_EXIT_CODE;
  }
  const { watch, removeDemoKeys } = parsed;
  const steps = createSteps(process.stdout);
  const problem = await run(result.settings, { steps, watch, removeDemoKeys });
  if (problem === undefined) return 0;
  process.stderr.write(`\n${problem}\n`);
  return 1;
}

// The reader of the output may be gone, such as a closed terminal. An unhandled error would prevent an orderly stop.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});
process.exit(await main());
