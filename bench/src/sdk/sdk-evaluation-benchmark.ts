import type { Bench, Benchmark } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { below } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { contentOf, type FlagKind, flagKinds, targetedFlags } from "../targeting/targeted-flags.ts";
import type { ApplicationApi, Loop } from "./application-process.ts";
import { installServerSdk } from "./installed-sdk.ts";

export const sdkEvaluationBenchmark: Benchmark = {
  name: "sdk-evaluation",
  group: "sdk",
  pinned: true,
  summary: "CPU time of an application that evaluates 50,000 flags a second with the server SDK",
  method:
    "An application with a connected client of the packed `@halyard/server-sdk` calls `isEnabled(key, context, fallback)` 50,000 times a second, in bursts every 10 ms. The environment has 99 or 999 flags, a third each constant, rules with two conditions and 50 % rollouts. The flags are evaluated in turn, each for a new user with five attributes. The baseline is the same loop in the same process, with a function that only keeps the context in place of the call; both loops run in turn. The difference of their CPU times is the cost of the evaluations. CPU time is that of all threads: it includes garbage collection, counting for the usage reports, and the connection. The figures per evaluation come from the same loops without pauses, with 999 flags. An evaluation in the paced loop costs several times as much, because its data has left the processor's caches during the pause. So the cost grows with the number of flags.",
  run,
};

const manyFlags = 999;
const flagCounts = [99, manyFlags];
const quickFlags = 9;
const perSecond = 50_000;
const rounds = 7;
/** The machine was too busy for the rate if fewer evaluations were made. */
const leastShareOfRate = 0.95;
type Application = Child<ApplicationApi>;

async function run(bench: Bench): Promise<void> {
  const sdk = installServerSdk(bench);
  for (const flags of bench.quick ? [quickFlags] : flagCounts) {
    const options = {
      ...contentOf(targetedFlags(flags)),
      keyKind: "server",
      core: "load",
    } as const;
    const { edge, key } = await startSnapshotEdge(bench, options);
    const application: Application = await startChild(bench, {
      program: "sdk/application-process.ts",
      core: "server",
      environment: { NODE_ENV: "production" },
    });
    await application.call.connect({ sdk, url: edge.url, key, flags });
    await measurePaced(bench, application, flags);
    if (flags === manyFlags || bench.quick) {
      for (const kind of flagKinds) await measureRepeated(bench, application, kind, [kind]);
      await measureRepeated(bench, application, "mixed", flagKinds);
    }
    await application.stop();
  }
}

/** @throws Error if the machine was too busy for the rate */
async function measurePaced(bench: Bench, { call }: Application, flags: number): Promise<void> {
  const pace = (loop: Loop, durationMs: number) =>
    call.pace(perSecond, durationMs, { loop, flagKinds });
  const warmUpMs = bench.quick ? 50 : 2_000;
  const durationMs = bench.quick ? 50 : 2_500;
  for (const loop of ["client", "baseline"] as const) await pace(loop, warmUpMs);
  const { client, baseline } = await alternate(bench, rounds, {
    client: () => pace("client", durationMs),
    baseline: () => pace("baseline", durationMs),
  });
  const reached = Math.min(client.perSecond, baseline.perSecond) / perSecond;
  if (!bench.quick && reached < leastShareOfRate)
    throw new Error(`the machine was too busy for ${perSecond} evaluations per second`);
  const what = `50,000 evaluations per second of ${flags} flags`;
  const share = client.percent - baseline.percent;
  bench.figure(`${what}: share of a core`, "%", share, { goal: below(3) });
  const loop = `${what}: CPU of the loop vs. without evaluations`;
  bench.compare(loop, "%", [client, baseline], "percent");
}

/** Measures the time of one evaluation: the difference of the two loops. */
async function measureRepeated(
  bench: Bench,
  { call }: Application,
  name: string,
  kinds: readonly FlagKind[],
): Promise<void> {
  const evaluations = bench.quick ? 1_000 : 300_000;
  const side = (loop: Loop) => () => call.repeat(evaluations, { loop, flagKinds: kinds });
  await side("client")();
  const { client, baseline } = await alternate(bench, rounds, {
    client: side("client"),
    baseline: side("baseline"),
  });
  const measured = client.nanoseconds - baseline.nanoseconds;
  bench.figure(`${name}, a new user each: isEnabled`, "ns", measured);
}
