import { createRequire } from "node:module";

/** Imported, it has one shape for Node and another one for TypeScript; required, it has one for both. */
const { default: TestSequencer } = createRequire(import.meta.url)(
  "@jest/test-sequencer",
) as typeof import("@jest/test-sequencer");
type Sort = InstanceType<typeof TestSequencer>["sort"];

/**
 * Starts the longest test files first, so that at the end nobody waits for one that has begun last. Jest
 * by itself goes by how long files took the last time, which a fresh clone does not know, and then by
 * their size, which says little where a short file starts a dozen processes.
 */
const longest = [
  "deploy/local/test/whole-run.test.ts",
  "e2e/test/clients.test.ts",
  "e2e/test/docs/pages.test.ts",
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

/** Those that are not in the list come behind it, in jest's own order. */
function placeOf({ path }: { path: string }): number {
  const at = longest.findIndex((name) => path.endsWith(name));
  return at < 0 ? longest.length : at;
}

// biome-ignore lint/style/noDefaultExport: Jest takes its sequencer as a default export.
export default class LongestFirst extends TestSequencer {
  override async sort(tests: Parameters<Sort>[0]): Promise<Awaited<ReturnType<Sort>>> {
    const sorted = await super.sort(tests);
    return sorted.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}
