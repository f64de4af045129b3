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
 * Opens as many streams as a plan allows on four edges that share the slots, compared with an organization
 * without a limit.
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
    const options = { count, urls, key: plan.key, isLimited: plan === limited };
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
    slotsHeld: () => number;
  },
) {
  const { count, urls, key, isLimited, slotsHeld } = options;
  const opened = await openers.open({ urls, key, streams: count });
  if (isLimited) await assertExact(openers, options);
  const { lost } = await openers.close();
  const closedMs = performance.now();
  await until("the slots are free", async () => slotsHeld() === 0);
  return {
    elapsedMs: opened.elapsedMs,
    medianMs: quantile(opened.tookMs, 0.5),
    p99Ms: quantile(opened.tookMs, 0.99),
    errors: count - opened.tookMs.length + lost,
    freeMs: performance.now() - closedMs,
  };
}

/** Verifies that exactly all slots are taken, and that each edge then rejects another stream. */
async function assertExact(
  openers: Openers,
  { count, urls, key, slotsHeld }: Parameters<typeof openAndClose>[1],
): Promise<void> {
  await until("the edges have reported all streams", async () => slotsHeld() === count);
  const more = await openers.open({ urls, key, streams: urls.length });
  if (more.rejected !== urls.length)
    throw new Error(`${more.rejected} of ${urls.length} streams beyond the limit were rejected`);
}

type Measured = { limited: Opened; unlimited: Opened };

function figuresOf(count: number, { limited, unlimited }: Measured): Figure[] {
  const what = `${count.toLocaleString("en-US")} streams over ${edges} edges`;
  return [
    {
      what: `${what}: opened per second vs. no limit`,
      unit: "/s",
      measured: (count / limited.elapsedMs) * 1e3,
      baseline: (count / unlimited.elapsedMs) * 1e3,
    },
    {
      what: `${what}: time to open, median`,
      unit: "ms",
      measured: limited.medianMs,
      baseline: unlimited.medianMs,
    },
    {
      what: `${what}: time to open, p99`,
      unit: "ms",
      measured: limited.p99Ms,
      baseline: unlimited.p99Ms,
    },
    {
      what: `${what}: rejected, failed or lost`,
      unit: "",
      measured: limited.errors,
      goal: { of: "measured", below: 1 },
    },
    {
      what: `${what}: all closed to slots free`,
      unit: "ms",
      measured: limited.freeMs,
    },
  ];
}

function notesOf({ limited, unlimited }: Measured): string[] {
  return [
    `The streams opened in ${number(limited.elapsedMs / 1e3)} s with the limit and in ` +
      `${number(unlimited.elapsedMs / 1e3)} s without. With all streams open, the edges held ` +
      "exactly the slots of the plan, and each edge rejected another stream.",
  ];
}
