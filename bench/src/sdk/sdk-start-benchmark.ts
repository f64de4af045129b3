import { join } from "node:path";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { residentBytes } from "../processes/process-usage.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { settledBytes } from "../streams/settled-memory.ts";
import { startTargetedEdge } from "../targeting/targeted-edge.ts";
import { type TargetedFlag, targetedFlags } from "../targeting/targeted-flags.ts";
import { installServerSdk } from "./installed-sdk.ts";

export const sdkStartBenchmark: Benchmark = {
  name: "sdk-start",
  group: "sdk",
  pinned: true,
  summary: "start and memory of a Node.js process whose server SDK has 10,000 flags",
  method:
    "New processes load the packed `@halyard/server-sdk`, create a client of an edge with 10,000 flags, and wait for `ready()`. A third of the flags each are constant, rules with two conditions and 50 % rollouts. " +
    "The baseline of the start is a process that requests the same rule set by `fetch` and parses it; loading the package is a figure of its own. " +
    "The baseline of the memory is an idle process. The processes run one after another on one core, and the edge runs on the other. " +
    "Resident memory is read once it is stable, without a forced garbage collection unless stated. No flag has been evaluated except one, because a flag is compiled at its first evaluation.",
  run,
};

const flags = 10_000;
const quickFlags = 30;
const rounds = 7;
const goalStartMs = 300;
const goalMegabytes = 60;

type Start = "client" | "fetch" | "nothing";

async function run(bench: Bench): Promise<Outcome> {
  const sdk = installServerSdk(bench);
  const targeted = targetedFlags(bench.quick ? quickFlags : flags);
  const { edge, key, natsVersion } = await startTargetedEdge(bench, targeted, {
    ...{ keyKind: "server", core: bench.cores?.load },
  });
  const { key: lastFlag } = targeted.at(-1) as TargetedFlag;
  const environment = { SDK: sdk, BASE_URL: edge.url, SERVER_KEY: key, LAST_FLAG: lastFlag };
  bench.say("a client, a fetch and an idle process in turn");
  const side = (start: Start) => () => startOnce(bench, { ...environment, START: start });
  const samples = await alternate(bench.quick ? 1 : rounds, {
    client: side("client"),
    fetch: side("fetch"),
    nothing: side("nothing"),
  });
  const { client, fetch, nothing } = samples;
  const above = client.megabytes - nothing.megabytes;
  return {
    figures: [
      {
        ...figure("createClient to ready vs. fetch and JSON.parse", "ms", client.startMs),
        baseline: fetch.startMs,
        goal: { of: "measured", below: goalStartMs },
      },
      figure("loading the package", "ms", client.loadMs),
      {
        ...figure("memory above an idle process", "MB", above),
        goal: { of: "measured", below: goalMegabytes },
      },
      {
        ...figure("memory vs. an idle process", "MB", client.megabytes),
        baseline: nothing.megabytes,
      },
      {
        ...figure("memory after a garbage collection vs. an idle process", "MB", client.collected),
        baseline: nothing.collected,
      },
      {
        ...figure("heap after a garbage collection vs. an idle process", "MB", client.heap),
        baseline: nothing.heap,
      },
    ],
    notes: [
      `The process with the fetch keeps the parsed rule set: ${number(fetch.megabytes - nothing.megabytes)} MB above an idle process, ${number(fetch.heap - nothing.heap)} MB of heap.`,
    ],
    servers: { NATS: natsVersion },
  };
}

const figure = (what: string, unit: string, measured: number): Figure => ({ what, unit, measured });

type Started = { hasFlags: boolean; loadMs: number; startMs: number };

async function startOnce(bench: Bench, environment: Record<string, string>) {
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "start-process.js"),
    core: bench.cores?.server,
    nodeOptions: ["--expose-gc"],
    environment: { ...environment, NODE_ENV: "production" },
  });
  const { hasFlags, loadMs, startMs } = child.greeting as Started;
  if (!hasFlags) throw new Error("the process does not have the flags");
  const resident = await settledBytes(bench, child.pid);
  const { heapBytes } = (await child.ask({})) as { heapBytes: number };
  const collected = residentBytes(child.pid);
  await child.stop();
  return {
    ...{ loadMs, startMs },
    megabytes: resident / 1e6,
    collected: collected / 1e6,
    heap: heapBytes / 1e6,
  };
}
