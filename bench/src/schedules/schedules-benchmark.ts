import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import { type Burst, type Cpu, measureBurst, measurePatches } from "./burst.ts";
import { openEffects } from "./effects.ts";
import { type Latencies, measureLightLoad } from "./light-load.ts";
import { few, measurePending, type Pending } from "./pending.ts";
import { startSchedulingSystem } from "./scheduling-system.ts";
import { clients } from "./send-each.ts";

const changes = 10_000;
const quickChanges = 100;

export const schedulesBenchmark: Benchmark = {
  name: "schedules",
  pinned: false,
  summary: "10,000 changes due in the same second, single changes, and 1,000,000 pending changes",
  method:
    "**10,000 at once.** 10,000 flags have a schedule for the same moment. `1 + 1` is one scheduler and one management process, `2 + 2` two of each. " +
    "Lateness is `lateness_ms` of the API. The baseline applies the same changes with `PATCH`. Afterwards history and event log must contain each change exactly once.\n\n" +
    "**Single changes.** 200 changes at random times within 20 seconds, from the requested time to the event on a stream.\n\n" +
    "**1,000,000 pending.** Setting a schedule with 1,000,000 pending changes, compared with 1,000.",
  run,
};

async function run(bench: Bench): Promise<Outcome> {
  const count = bench.quick ? quickChanges : changes;
  bench.say(`a project with ${count} flags`);
  const system = await startSchedulingSystem(bench, { flags: count });
  const readEffects = await openEffects(bench, system);
  bench.say("single changes");
  const light = await measureLightLoad(bench, system);
  bench.say(`${count} changes by PATCH`);
  const patches = await measurePatches(system, { changes: count, action: "enable" });
  bench.say(`${count} changes due at once: one scheduler, one management process`);
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
      `1 + 1 is one scheduler and one management process, 2 + 2 two of each. The baseline of both: ${clients} clients send the same changes as PATCH to one management process.`,
      `CPU time, 1 + 1: ${describeCpu(one.cpu)}.`,
      `CPU time, 2 + 2: ${describeCpu(two.cpu)}.`,
      `CPU time of the PATCH requests: ${describeCpu(patches.cpu)}.`,
    ],
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
      ...figure("all applied vs. PATCH", late(1)),
      baseline: patches.tookMs / 1e3,
      goal: { of: "measured", below: goalBurstS },
    },
    figure("lateness, median", late(0.5)),
    figure("lateness, p99", late(0.99)),
    figure("all received by streams", burst.streamedMs / 1e3),
    figure("all recorded", burst.recordedMs / 1e3),
    { ...figure("CPU time vs. PATCH", total(burst.cpu)), baseline: total(patches.cpu) },
    {
      ...figure("missing or wrong entries and events", burst.amiss),
      unit: "",
      goal: { of: "measured", below: 1 },
    },
  ];
}

function lightFigures({ scheduledMs, patchedMs }: Latencies): Figure[] {
  const figure = (what: string, share: number): Figure => ({
    what: `single changes, due to client vs. PATCH to client: ${what}`,
    unit: "ms",
    measured: quantile(scheduledMs, share),
    baseline: quantile(patchedMs, share),
  });
  return [
    figure("median", 0.5),
    { ...figure("p99", 0.99), goal: { of: "measured", below: goalLightP99Ms } },
    figure("maximum", 1),
  ];
}

function pendingFigures({ few: withFew, many, manyCount }: Pending): Figure[] {
  const amounts = `${amount(manyCount)} pending vs. ${amount(few)}`;
  const figure = (what: string, measured: number, baseline: number): Figure => ({
    what: `${amounts}: ${what}`,
    unit: "ms",
    measured,
    baseline,
  });
  return [
    figure("set a schedule, median", many.setMedianMs, withFew.setMedianMs),
    figure("set a schedule, p99", many.setP99Ms, withFew.setP99Ms),
  ];
}

const amount = (count: number) => count.toLocaleString("en-US");

const total = (cpu: Cpu) => Object.values(cpu).reduce((sum, seconds) => sum + seconds, 0);

function describeCpu(cpu: Cpu): string {
  return Object.entries(cpu)
    .map(([name, seconds]) => `${name} ${number(seconds)} s`)
    .join(", ");
}
