import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
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
    "The environment has 99 or 999 flags, a third each constant, rules with two conditions and 50 % rollouts. The flags are evaluated in turn, each for a new user with five attributes. " +
    "The baseline is the same loop in the same process, with a function that only keeps the context in place of the call; both loops run in turn. " +
    "The difference of their CPU times is the cost of the evaluations. CPU time is that of all threads: it includes garbage collection, counting for the usage reports, and the connection. " +
    "The figures per evaluation come from the same loops without pauses, with 999 flags. " +
    "An evaluation in the paced loop costs several times as much, because its data has left the processor's caches during the pause. So the cost grows with the number of flags.",
  run,
};

const manyFlags = 999;
const flagCounts = [99, manyFlags];
const quickFlags = 9;
const perSecond = 50_000;
const goalPercent = 3;
/** The machine was too busy for the rate if fewer evaluations were made. */
const leastShareOfRate = 0.95;

async function run(bench: Bench): Promise<Outcome> {
  const sdk = installServerSdk(bench);
  const figures: Figure[] = [];
  let versions = {};
  for (const flags of bench.quick ? [quickFlags] : flagCounts) {
    const { application, natsVersion } = await startWith(bench, { sdk, flags });
    bench.say(`${flags} flags: a paced loop with and without evaluations in turn`);
    figures.push(...pacedFigures(flags, await measurePaced(bench, application)));
    if (flags === manyFlags || bench.quick) {
      bench.say("loops without pauses in turn");
      for (const [name, kinds] of cases)
        figures.push(await nanosecondsFigure(bench, application, { name, kinds }));
    }
    versions = { NATS: natsVersion };
    await application.stop();
  }
  return { figures, notes: [], servers: versions };
}

type Installed = { sdk: string; flags: number };

async function startWith(bench: Bench, { sdk, flags }: Installed) {
  const { edge, key, natsVersion } = await startTargetedEdge(bench, targetedFlags(flags), {
    ...{ keyKind: "server", core: bench.cores?.load },
  });
  return {
    application: await startApplication(bench, { sdk, url: edge.url, key, flags }),
    natsVersion,
  };
}

function pacedFigures(flags: number, { client, baseline }: Paced): Figure[] {
  const what = `50,000 evaluations per second of ${flags} flags`;
  return [
    {
      what: `${what}: share of a core`,
      unit: "%",
      measured: client.percent - baseline.percent,
      goal: { of: "measured", below: goalPercent },
    },
    {
      what: `${what}: CPU of the loop vs. without evaluations`,
      unit: "%",
      measured: client.percent,
      baseline: baseline.percent,
    },
  ];
}

const cases: readonly [string, readonly FlagKind[]][] = [
  ["constant", ["constant"]],
  ["rules", ["rules"]],
  ["rollout", ["rollout"]],
  ["mixed", flagKinds],
];

type Paced = Awaited<ReturnType<typeof measurePaced>>;

/** @throws Error if the machine was too busy for the rate */
async function measurePaced(bench: Bench, { pace }: Application) {
  const options = { flagKinds, perSecond };
  const warmUpMs = bench.quick ? 50 : 2_000;
  const durationMs = bench.quick ? 50 : 2_500;
  for (const loop of ["client", "baseline"] as const)
    await pace({ ...options, loop, durationMs: warmUpMs });
  const paced = await alternate(bench.quick ? 1 : 7, {
    client: () => pace({ ...options, loop: "client", durationMs }),
    baseline: () => pace({ ...options, loop: "baseline", durationMs }),
  });
  const reached = Math.min(paced.client.perSecond, paced.baseline.perSecond) / perSecond;
  if (!bench.quick && reached < leastShareOfRate)
    throw new Error(`the machine was too busy for ${perSecond} evaluations per second`);
  return paced;
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
