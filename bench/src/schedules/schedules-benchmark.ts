import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { describeProfile } from "../profile/compare-profiles.ts";
import { profilingInto } from "../profile/profiling.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import { type Burst, type Cpu, measureBurst, measurePatches } from "./burst.ts";
import { openEffects } from "./effects.ts";
import { type Latencies, measureLightLoad } from "./light-load.ts";
import { few, measurePending, type Pending } from "./pending.ts";
import { batch } from "./product-statements.ts";
import { startSchedulingSystem } from "./scheduling-system.ts";
import { clients } from "./send-each.ts";

const changes = 10_000;
const quickChanges = 100;
/** Enough to see where the time goes. */
const profiledChanges = 3_000;

export const schedulesBenchmark: Benchmark = {
  name: "schedules",
  pinned: false,
  summary: "10,000 changes due in the same second, one at a time, and 1,000,000 pending",
  run,
  profile,
};

async function run(bench: Bench): Promise<Outcome> {
  const count = bench.quick ? quickChanges : changes;
  bench.say(`a project with ${count} flags`);
  const system = await startSchedulingSystem(bench, { flags: count });
  const readEffects = await openEffects(bench, system);
  bench.say("changes that come due one by one");
  const light = await measureLightLoad(bench, system);
  bench.say(`${count} changes as PATCHes`);
  const patches = await measurePatches(system, { changes: count, action: "enable" });
  bench.say(`${count} changes due at once: one scheduler, one management`);
  const one = await measureBurst(system, { changes: count, action: "disable", readEffects });
  bench.say(`${count} changes due at once: two of each`);
  await system.addReplicas();
  const two = await measureBurst(system, { changes: count, action: "enable", readEffects });
  const pending = await measurePending(bench, system);

  const { postgres, nats } = system;
  return {
    figures: [
      ...burstFigures(one, { patches, name: `${amount(count)} at once, 1 + 1` }),
      ...burstFigures(two, { patches, name: `${amount(count)} at once, 2 + 2` }),
      ...lightFigures(light),
      ...pendingFigures(pending),
    ],
    notes: [
      `1 + 1 is one scheduler and one management, 2 + 2 two of each. The baseline of both is the same changes as PATCHes by ${clients} clients through one management.`,
      `CPU time, 1 + 1: ${describeCpu(one.cpu)}.`,
      `CPU time, 2 + 2: ${describeCpu(two.cpu)}.`,
      `CPU time of the PATCHes: ${describeCpu(patches.cpu)}.`,
    ],
    listings: pending.plans.map(({ purpose, text }) => ({
      title: `With ${amount(pending.manyCount)} pending, ${purpose}:`,
      text,
    })),
    servers: { PostgreSQL: postgres.version, NATS: nats.version },
  };
}

const goalBurstS = 30;
const goalLightP99Ms = 250;

function burstFigures(
  burst: Burst,
  { name, patches }: { name: string; patches: { tookMs: number; cpu: Cpu } },
): Figure[] {
  const late = (share: number) => quantile(burst.latenessesMs, share) / 1e3;
  const figure = (what: string, measured: number): Figure => ({
    what: `${name}: ${what}`,
    unit: "s",
    measured,
  });
  return [
    {
      ...figure("all applied, beside PATCHes", late(1)),
      baseline: patches.tookMs / 1e3,
      goal: { of: "measured", below: goalBurstS },
    },
    figure("lateness, median", late(0.5)),
    figure("lateness, p99", late(0.99)),
    figure("all on the streams", burst.streamedMs / 1e3),
    figure("all recorded", burst.recordedMs / 1e3),
    { ...figure("CPU time, beside PATCHes", total(burst.cpu)), baseline: total(patches.cpu) },
    {
      ...figure("entries and events amiss", burst.amiss),
      unit: "",
      goal: { of: "measured", below: 1 },
    },
  ];
}

function lightFigures({ scheduledMs, patchedMs }: Latencies): Figure[] {
  const figure = (what: string, share: number): Figure => ({
    what: `one by one: due to bytes, beside PATCH to bytes: ${what}`,
    unit: "ms",
    measured: quantile(scheduledMs, share),
    baseline: quantile(patchedMs, share),
  });
  return [
    figure("median", 0.5),
    { ...figure("p99", 0.99), goal: { of: "measured", below: goalLightP99Ms } },
    figure("the slowest", 1),
  ];
}

function pendingFigures({ few: withFew, many, manyCount }: Pending): Figure[] {
  const amounts = `${amount(manyCount)} pending, beside ${amount(few)}`;
  const figure = (what: string, unit: string, measured: number, baseline: number): Figure => ({
    what: `${amounts}: ${what}`,
    unit,
    measured,
    baseline,
  });
  return [
    figure(`claiming ${batch}`, "ms", many.claimMs, withFew.claimMs),
    figure("setting one, median", "ms", many.setMedianMs, withFew.setMedianMs),
    figure("setting one, p99", "ms", many.setP99Ms, withFew.setP99Ms),
    figure("looking for deleted flags at a start", "s", many.walkMs / 1e3, withFew.walkMs / 1e3),
  ];
}

const amount = (count: number) => count.toLocaleString("en-US");

const total = (cpu: Cpu) => Object.values(cpu).reduce((sum, seconds) => sum + seconds, 0);

function describeCpu(cpu: Cpu): string {
  return Object.entries(cpu)
    .map(([name, seconds]) => `${name} ${number(seconds)} s`)
    .join(", ");
}

/** Where the time of management and of the scheduler goes, a change. */
async function profile(bench: Bench): Promise<string> {
  const profiling = profilingInto(bench);
  const count = bench.quick ? quickChanges : profiledChanges;
  const { nodeOptions } = profiling;
  const system = await startSchedulingSystem(bench, { flags: count, nodeOptions });
  const readEffects = await openEffects(bench, system);
  const burst = await measureBurst(system, { changes: count, action: "enable", readEffects });
  const run = { answers: count, fromMs: burst.fromMs, toMs: burst.toMs };
  const parts: string[] = [];
  for (const [name, services] of [
    ["management", system.managements],
    ["scheduler", system.schedulers],
  ] as const)
    for (const { child } of services) {
      await child.stop();
      parts.push(
        `${name}'s self time a change`,
        describeProfile({ profile: profiling.read(child.pid), run }),
      );
    }
  return parts.join("\n\n");
}
