import type { Bench, Benchmark } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { residentBytes, settledBytes } from "../processes/process-usage.ts";
import { below, number, ratioBelow } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { startEdge } from "../system/services.ts";
import { type SnapshotScope, snapshotContent } from "../system/snapshot-content.ts";
import { startSnapshot } from "../system/snapshot-edge.ts";
import { contentOf, targetedFlags, withColors } from "../targeting/targeted-flags.ts";
import { installServerSdk } from "./installed-sdk.ts";

export const sdkStartBenchmark: Benchmark = {
  name: "sdk-start",
  group: "sdk",
  pinned: true,
  summary: "start and memory of a Node.js process whose server SDK has 10,000 flags",
  method:
    "New processes load the packed `@halyard/server-sdk`, create a client of an edge with 10,000 flags, and wait for `ready()`. A third of the flags each are constant, rules with two conditions and 50 % rollouts. The baseline of the start is a process that requests the same rule set by `fetch` and parses it; loading the package is a figure of its own. The baseline of the memory is an idle process. The processes run one after another on one core, and the edge runs on the other. Resident memory is read once it is stable, without a forced garbage collection unless stated. No flag has been evaluated except one, because a flag is compiled at its first evaluation. The last rows compare with an environment in which each 50 % rollout is a typed flag with a split of three texts. The heap of the flags is that of the process minus that of a process with one flag.",
  run,
};

const flags = 10_000;
const quickFlags = 30;

async function run(bench: Bench): Promise<void> {
  const sdk = installServerSdk(bench);
  const targeted = targetedFlags(bench.quick ? quickFlags : flags);
  const contents = [targeted, withColors(targeted), targeted.slice(0, 1)].map((each) => ({
    ...contentOf(each),
    keyKind: "server" as const,
  }));
  const content = snapshotContent(...contents);
  const edge = await startEdge(bench, { nats: await startSnapshot(bench, content), core: "load" });
  const [booleans, colors, first] = content.scopes as [SnapshotScope, SnapshotScope, SnapshotScope];
  const environment = { SDK: sdk, BASE_URL: edge.url, FLAG: targeted[0]?.key ?? "" };
  const side =
    (start: "client" | "fetch" | "nothing", { key }: SnapshotScope) =>
    () =>
      startOnce(bench, { ...environment, SERVER_KEY: key, START: start });
  const { client, fetch, nothing, typed, one } = await alternate(bench, 7, {
    client: side("client", booleans),
    fetch: side("fetch", booleans),
    nothing: side("nothing", booleans),
    typed: side("client", colors),
    one: side("client", first),
  });
  const above = client.megabytes - nothing.megabytes;
  const started = "createClient to ready vs. fetch and JSON.parse";
  bench.compare(started, "ms", [client, fetch], "startMs", below(300));
  bench.figure("loading the package", "ms", client.loadMs);
  bench.figure("memory above an idle process", "MB", above, { goal: below(60) });
  const besideIdle = (what: string, field: "megabytes" | "collected" | "heap") =>
    bench.compare(`${what} vs. an idle process`, "MB", [client, nothing], field);
  besideIdle("memory", "megabytes");
  besideIdle("memory after a garbage collection", "collected");
  besideIdle("heap after a garbage collection", "heap");
  const most = ratioBelow(1.25);
  const third = "a third of the flags with splits vs. all boolean";
  bench.compare(`${third}: createClient to ready`, "ms", [typed, client], "startMs", most);
  bench.figure(`${third}: heap of the flags`, "MB", typed.heap - one.heap, {
    ...{ baseline: client.heap - one.heap, goal: most },
  });
  bench.note`The process with the fetch keeps the parsed rule set: ${number(fetch.megabytes - nothing.megabytes)} MB above an idle process, ${number(fetch.heap - nothing.heap)} MB of heap.`;
}

type StartApi = { collect(): { heapBytes: number } };
type Started = { hasFlags: boolean; loadMs: number; startMs: number };

async function startOnce(bench: Bench, environment: Record<string, string>) {
  const child = await startChild<StartApi, Started>(bench, {
    ...{ program: "sdk/start-process.js", core: "server", nodeOptions: ["--expose-gc"] },
    environment: { ...environment, NODE_ENV: "production" },
  });
  const { hasFlags, loadMs, startMs } = child.greeting;
  if (!hasFlags) throw new Error("the process does not have the flags");
  const megabytes = (await settledBytes(bench, child.pid)) / 1e6;
  const heap = (await child.call.collect()).heapBytes / 1e6;
  const collected = residentBytes(child.pid) / 1e6;
  await child.stop();
  return { loadMs, startMs, megabytes, collected, heap };
}
