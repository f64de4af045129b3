import type { Bench } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Nats } from "../system/backends.ts";
import { awaitReady, startEdge } from "../system/services.ts";
import { joined, snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import { until } from "../until.ts";
import { type Openers, startOpeners } from "./openers.ts";
import { openSlotsHeld } from "./slots-held.ts";

/**
 * As many streams as a plan allows, opened as fast as they can be on four edges, which share the slots;
 * beside as many of an organization without limit, for which no edge asks the others.
 */
const edges = 4;
const flags = 20;
const streams = 10_000;
const quickStreams = 40;
const rounds = 3;

export async function measureOpeningStreams(bench: Bench, nats: Nats) {
  const count = bench.quick ? quickStreams : streams;
  const content = (sseConnections: number | null) =>
    snapshotContent({
      environments: 1,
      flagsPerEnvironment: flags,
      limits: { requests_per_month: null, sse_connections: sseConnections, projects: null },
    });
  const [limited, unlimited] = [content(count), content(null)];
  await writeSnapshot(nats.url, joined(limited, unlimited));
  const core = bench.cores?.server;
  const services = await Promise.all(
    Array.from({ length: edges }, () => startEdge(bench, { natsUrl: nats.url, core })),
  );
  await Promise.all(services.map(awaitReady));
  const openers = await startOpeners(bench);
  const slotsHeld = await openSlotsHeld(bench, nats);
  const urls = services.map(({ url }) => url);
  const side = (plan: typeof limited) => async () => {
    const options = { count, urls, key: plan.clientKey, isLimited: plan === limited };
    const held = () => slotsHeld(plan.organizationId);
    return openAndClose(openers, { ...options, slotsHeld: held });
  };
  bench.say(`${count} streams over ${edges} edges, limited and unlimited in turn`);
  const measured = await alternate(bench.quick ? 1 : rounds, {
    limited: side(limited),
    unlimited: side(unlimited),
  });
  await Promise.all(services.map(({ child }) => child.stop()));
  return { figures: figuresOf(count, measured), notes: notesOf(measured) };
}

type Opened = Awaited<ReturnType<typeof openAndClose>>;

async function openAndClose(
  openers: Openers,
  options: {
    count: number;
    urls: readonly string[];
    key: string;
    isLimited: boolean;
    slotsHeld: () => Promise<number>;
  },
) {
  const { count, urls, key, isLimited, slotsHeld } = options;
  const opened = await openers.open({ urls, key, streams: count });
  if (isLimited) await assertExact(openers, options);
  const { lost } = await openers.close();
  const closedMs = performance.now();
  await until("the slots are free", async () => (await slotsHeld()) === 0);
  return {
    elapsedMs: opened.elapsedMs,
    medianMs: quantile(opened.tookMs, 0.5),
    p99Ms: quantile(opened.tookMs, 0.99),
    errors: count - opened.tookMs.length + lost,
    freeMs: performance.now() - closedMs,
  };
}

/** All slots are taken, not one more and not one less, and each edge refuses the next stream. */
async function assertExact(
  openers: Openers,
  { count, urls, key, slotsHeld }: Parameters<typeof openAndClose>[1],
): Promise<void> {
  const held = await slotsHeld();
  if (held !== count) throw new Error(`the edges hold ${held} slots for ${count} streams`);
  const more = await openers.open({ urls, key, streams: urls.length });
  if (more.refused !== urls.length)
    throw new Error(`of ${urls.length} streams too many, ${more.refused} were refused`);
}

type Measured = { limited: Opened; unlimited: Opened };

function figuresOf(count: number, { limited, unlimited }: Measured): Figure[] {
  const what = `${count.toLocaleString("en-US")} streams over ${edges} edges`;
  return [
    {
      what: `${what}: opened a second, beside no limit`,
      unit: "/s",
      measured: (count / limited.elapsedMs) * 1e3,
      baseline: (count / unlimited.elapsedMs) * 1e3,
    },
    {
      what: `${what}: one opens, median`,
      unit: "ms",
      measured: limited.medianMs,
      baseline: unlimited.medianMs,
    },
    {
      what: `${what}: one opens, p99`,
      unit: "ms",
      measured: limited.p99Ms,
      baseline: unlimited.p99Ms,
    },
    {
      what: `${what}: refused, failed or lost`,
      unit: "",
      measured: limited.errors,
      goal: { of: "measured", below: 1 },
    },
    {
      what: `${what}: from closing them all to free slots`,
      unit: "ms",
      measured: limited.freeMs,
    },
  ];
}

function notesOf({ limited, unlimited }: Measured): string[] {
  return [
    `The streams of the limited organization opened in ${number(limited.elapsedMs / 1e3)} s, those of ` +
      `the other one in ${number(unlimited.elapsedMs / 1e3)} s. When all were open, the edges held ` +
      "exactly as many slots as the plan has, and each of them refused one more stream.",
  ];
}
