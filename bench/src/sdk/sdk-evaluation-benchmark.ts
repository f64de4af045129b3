import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { startTargetedEdge } from "../targeting/targeted-edge.ts";
import { type FlagKind, flagKinds, targetedFlags } from "../targeting/targeted-flags.ts";
import { installServerSdk } from "./installed-sdk.ts";
import { type Application, type Loop, startApplication } from "./measured-application.ts";

export const sdkEvaluationBenchmark: Benchmark = {
  name: "sdk-evaluation",
  group: "sdk",
  pinned: true,
  summary: "CPU time of an application that evaluates 50,000 flags a second with the server SDK",
  method:
    "An application with a connected client of the packed `@halyard/server-sdk` calls `isEnabled(key, context, fallback)` 50,000 times a second, in bursts every 10 ms. " +
    "The environment has 999 flags, a third each constant, rules with two conditions and 50 % rollouts. The flags are evaluated in turn, each for a new user with five attributes. " +
    "The baseline is the same loop in the same process, with a function that only keeps the context in place of the call; both loops run in turn. " +
    "The difference of their CPU times is the cost of the evaluations. CPU time is that of all threads: it includes garbage collection, counting for the usage reports, and the connection. " +
    "The figures per evaluation come from the same loops without pauses.",
  run,
};

const flags = 999;
const quickFlags = 9;
const perSecond = 50_000;
const goalPercent = 3;
/** The machine was too busy for the rate if fewer evaluations were made. */
const leastShareOfRate = 0.95;

async function run(bench: Bench): Promise<Outcome> {
  const sdk = installServerSdk(bench);
  const count = bench.quick ? quickFlags : flags;
  const { edge, key, natsVersion } = await startTargetedEdge(bench, targetedFlags(count), {
    ...{ keyKind: "server", core: bench.cores?.load },
  });
  const application = await startApplication(bench, { sdk, url: edge.url, key, flags: count });
  bench.say("a paced loop with and without evaluations in turn");
  const { client, baseline } = await measurePaced(bench, application);
  if (!bench.quick && Math.min(client.perSecond, baseline.perSecond) < leastShareOfRate * perSecond)
    throw new Error(`the machine was too busy for ${perSecond} evaluations per second`);
  const figures: Figure[] = [
    {
      what: "50,000 evaluations per second: share of a core",
      unit: "%",
      measured: client.percent - baseline.percent,
      goal: { of: "measured", below: goalPercent },
    },
    {
      what: "50,000 evaluations per second: CPU of the loop vs. without evaluations",
      unit: "%",
      measured: client.percent,
      baseline: baseline.percent,
    },
  ];
  bench.say("loops without pauses in turn");
  for (const [name, kinds] of cases)
    figures.push(await nanosecondsFigure(bench, application, { name, kinds }));
  return {
    figures,
    notes: [`Measured rate: ${number(client.perSecond)} evaluations per second.`],
    servers: { NATS: natsVersion },
  };
}

const cases: readonly [string, readonly FlagKind[]][] = [
  ["constant", ["constant"]],
  ["rules", ["rules"]],
  ["rollout", ["rollout"]],
  ["mixed", flagKinds],
];

async function measurePaced(bench: Bench, { pace }: Application) {
  const options = { flagKinds, perSecond };
  const warmUpMs = bench.quick ? 50 : 2_000;
  const durationMs = bench.quick ? 50 : 2_500;
  for (const loop of ["client", "baseline"] as const)
    await pace({ ...options, loop, durationMs: warmUpMs });
  return alternate(bench.quick ? 1 : 7, {
    client: () => pace({ ...options, loop: "client", durationMs }),
    baseline: () => pace({ ...options, loop: "baseline", durationMs }),
  });
}

/** The time of one evaluation: the difference of the two loops. */
async function nanosecondsFigure(
  bench: Bench,
  { repeat }: Application,
  { name, kinds }: { name: string; kinds: readonly FlagKind[] },
): Promise<Figure> {
  const evaluations = bench.quick ? 1_000 : 300_000;
  const side = (loop: Loop) => () => repeat({ loop, flagKinds: kinds, evaluations });
  await side("client")();
  const { client, baseline } = await alternate(bench.quick ? 1 : 7, {
    client: side("client"),
    baseline: side("baseline"),
  });
  const measured = client.nanoseconds - baseline.nanoseconds;
  return { what: `${name}, a new user each: isEnabled`, unit: "ns", measured };
}
