import type { Bench, Benchmark } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { residentBytes, settledBytes } from "../processes/process-usage.ts";
import { below } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { installServerSdk } from "./installed-sdk.ts";
import { makeList, serveList } from "./list-server.ts";

export const sdkListsBenchmark: Benchmark = {
  name: "sdk-lists",
  group: "sdk",
  pinned: true,
  summary: "memory and evaluations of a server SDK whose audience has 1,000,000 entries",
  method:
    "New processes load the packed `@halyard/server-sdk`, create a client, and wait for `ready()`, which includes the chunks of the list. A `node:http` server on the other core sends the rule set and the chunks, so that the figures are those of the SDK. The baseline of start and memory is the same process with an empty list, after it has requested the same chunks by `fetch` and dropped them. Memory is read after a garbage collection: resident, and used, which is the heap and the array buffers. An evaluation is `isEnabled(key, context)` for a new context with an id, of which every second one is in the list; the baseline is a flag that compares the id with a text. The time is the shortest of 20 rounds of 100,000 evaluations.",
  run,
};

const entries = 1_000_000;
const quickEntries = 1_000;

async function run(bench: Bench): Promise<void> {
  const sdk = installServerSdk(bench);
  const made = makeList(bench.quick ? quickEntries : entries);
  const fullUrl = await serveList(bench, made);
  const emptyUrl = await serveList(bench, makeList(0));
  const dropped = made.list.chunks.map((sha256) => `${fullUrl}/${sha256}`);
  const side = (url: string, count: number, drops: readonly string[]) => () =>
    startOnce(bench, {
      ...{ SDK: sdk, BASE_URL: url, ENTRIES: String(count), DROPPED: JSON.stringify(drops) },
    });
  const { full, empty } = await alternate(bench, 5, {
    full: side(fullUrl, made.list.count, []),
    empty: side(emptyUrl, 0, dropped),
  });
  bench.compare("createClient to ready vs. an empty list", "ms", [full, empty], "startMs");
  const above = full.usedMegabytes - empty.usedMegabytes;
  bench.figure("memory of the list", "MB", above, { goal: below(12) });
  bench.compare("resident memory vs. an empty list", "MB", [full, empty], "residentMegabytes");
  const compared = { baseline: full.comparedNs };
  bench.figure("evaluation vs. a comparison of the id", "ns", full.listedNs, compared);
  const membership = full.listedNs - full.comparedNs;
  bench.figure("membership", "ns", membership, { goal: below(200) });
}

type Api = {
  collect(): { usedBytes: number };
  measure(): { listedNs: number; comparedNs: number };
};

async function startOnce(bench: Bench, environment: Record<string, string>) {
  const serverKey = `hs_${"a".repeat(16)}_${"s".repeat(43)}`;
  const child = await startChild<Api, { startMs: number }>(bench, {
    ...{ program: "sdk/list-process.js", core: "server", nodeOptions: ["--expose-gc"] },
    environment: { ...environment, SERVER_KEY: serverKey, NODE_ENV: "production" },
  });
  await settledBytes(bench, child.pid);
  const usedMegabytes = (await child.call.collect()).usedBytes / 1e6;
  const residentMegabytes = residentBytes(child.pid) / 1e6;
  const times = await child.call.measure();
  await child.stop();
  return { ...child.greeting, usedMegabytes, residentMegabytes, ...times };
}
