import { createHash } from "node:crypto";
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
export const longest = [
  "e2e/test/dashboard.system.test.ts",
  "e2e/test/dashboard-people.system.test.ts",
  "e2e/test/clients.test.ts",
  "e2e/test/sdk.system.test.ts",
  "e2e/test/docs/pages.system.test.ts",
  "deploy/local/test/whole-run.system.test.ts",
  "e2e/test/ofrep/providers.system.test.ts",
  "e2e/test/limits.system.test.ts",
  "e2e/test/faults/changes.system.test.ts",
  "e2e/test/exchanges.system.test.ts",
  "deploy/local/test/supervision.system.test.ts",
  "e2e/test/packages/packages.system.test.ts",
  "services/scheduler/test/dispatch.test.ts",
  "services/management/test/publishing/change-streams.test.ts",
  "services/management/test/publishing/restored-database.test.ts",
  "services/management/test/history/verify-history.test.ts",
  "services/management/test/publishing/relay.test.ts",
  "libs/jetstream/test/consume-after-crash.test.ts",
  "services/webhook-dispatcher/test/sending/send-in-time.system.test.ts",
  "services/sdk-edge/test/snapshot/follow-nats.test.ts",
  "services/management/test/history/history.test.ts",
];

/** `TEST_ORDER_SEED=7 npm test` runs the files in a random order, always the same one for a seed. */
const seed = process.env.TEST_ORDER_SEED;

/** Returns the position of a file. Files that are not in the list come last, in Jest's order. */
function positionOf({ path }: { path: string }): number {
  const at = longest.findIndex((name) => path.endsWith(name));
  return at < 0 ? longest.length : at;
}

function randomPositionOf({ path }: { path: string }): string {
  return createHash("sha256").update(`${seed} ${path}`).digest("hex");
}

// biome-ignore lint/style/noDefaultExport: Jest takes its sequencer as a default export.
export default class LongestFirst extends TestSequencer {
  override async sort(tests: Parameters<Sort>[0]): Promise<Awaited<ReturnType<Sort>>> {
    const sorted = await super.sort(tests);
    if (seed === undefined)
      return sorted.toSorted((one, other) => positionOf(one) - positionOf(other));
    process.stderr.write(`Test files run in the order of TEST_ORDER_SEED=${seed}.\n`);
    return sorted.toSorted((one, other) =>
      randomPositionOf(one).localeCompare(randomPositionOf(other)),
    );
  }
}
