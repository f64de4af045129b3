import { createRequire } from "node:module";

/** Uses `require`, because with `import`, Node.js and TypeScript disagree about the shape of this CommonJS module. */
const { default: TestSequencer } = createRequire(import.meta.url)(
  "@jest/test-sequencer",
) as typeof import("@jest/test-sequencer");
type Sort = InstanceType<typeof TestSequencer>["sort"];

/**
 * Starts the longest test files first, so that no worker runs a long file alone at the end. By default, Jest sorts
 * files by their previous duration, which a fresh clone does not have, and then by size, which says little about a
 * short file that starts a dozen processes.
 */
const longest = [
  "deploy/local/test/whole-run.test.ts",
  "e2e/test/clients.test.ts",
  "e2e/test/docs/pages.test.ts",
  "e2e/test/sdk.test.ts",
  "deploy/local/test/supervision.test.ts",
  "e2e/test/faults/changes.test.ts",
  "e2e/test/ofrep/providers.test.ts",
  "e2e/test/rolling-restart.test.ts",
  "e2e/test/home.test.ts",
  "e2e/test/forged-keys.test.ts",
  "services/management/test/verify-history.test.ts",
  "services/scheduler/test/dispatch.test.ts",
  "bench/test/quick.test.ts",
  "services/management/test/restored-database.test.ts",
  "services/management/test/relay.test.ts",
  "libs/jetstream/test/consume-after-crash.test.ts",
  "services/webhook-dispatcher/test/sending/send-in-time.test.ts",
  "services/webhook-dispatcher/test/dispatch/replicas.test.ts",
];

/** Returns the position of a file. Files that are not in the list come last, in Jest's order. */
function positionOf({ path }: { path: string }): number {
  const at = longest.findIndex((name) => path.endsWith(name));
  return at < 0 ? longest.length : at;
}

// biome-ignore lint/style/noDefaultExport: Jest takes its sequencer as a default export.
export default class LongestFirst extends TestSequencer {
  override async sort(tests: Parameters<Sort>[0]): Promise<Awaited<ReturnType<Sort>>> {
    const sorted = await super.sort(tests);
    return sorted.toSorted((one, other) => positionOf(one) - positionOf(other));
  }
}
