import { createOpenStreams, followOpenStreams } from "@halyard/reports";
import { pino } from "pino";
import type { Bench } from "../benchmark.ts";
import { count as amount, below, number } from "../reporting.ts";
import { alternate, quantile } from "../statistics.ts";
import { startReaders, valuesStream as stream } from "../streams/readers.ts";
import { connectNats, type Nats } from "../system/backends.ts";
import { startEdge } from "../system/services.ts";
import { type SnapshotScope, snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/snapshot-edge.ts";
import { nowMs, until } from "../time.ts";

/**
 * Opens as many streams as a plan allows on four edges that share the slots, compared with an organization
 * without a limit.
 */
const edges = 4;
const flagsPerEnvironment = 20;
const fullStreams = 10_000;
const quickStreams = 40;

export async function measureOpeningStreams(bench: Bench, nats: Nats): Promise<void> {
  const streams = bench.quick ? quickStreams : fullStreams;
  const plan = (sse_connections: number | null) => {
    const limits = { requests_per_month: null, sse_connections, projects: null };
    return { flagsPerEnvironment, limits };
  };
  const content = snapshotContent(plan(streams), plan(null));
  await writeSnapshot(nats.url, content);
  const [withLimit, withoutLimit] = content.scopes as [SnapshotScope, SnapshotScope];
  const starting = Array.from({ length: edges }, () => startEdge(bench, { nats }));
  const services = await Promise.all(starting);
  const urls = services.map(({ url }) => url);
  const readers = await startReaders(bench);
  const slotsHeld = await openSlotsHeld(bench, nats);

  const side = (scope: SnapshotScope) => async () => {
    const { key, organizationId } = scope;
    const beganMs = nowMs();
    const opened = await readers.open({ urls, key, streams, stream });
    const elapsedMs = nowMs() - beganMs;
    if (scope === withLimit) {
      // Exactly all slots are taken, and each edge then rejects another stream.
      const areAllHeld = async () => slotsHeld(organizationId) === streams;
      await until("the edges have reported all streams", areAllHeld);
      const { rejected } = await readers.open({ urls, key, streams: edges, stream });
      if (rejected !== edges)
        throw new Error(`${rejected} of ${edges} streams beyond the limit were rejected`);
    }
    const lost = await readers.close();
    const closedMs = nowMs();
    await until("the slots are free", async () => slotsHeld(organizationId) === 0);
    return {
      ...{ elapsedMs, perSecond: (streams / elapsedMs) * 1e3 },
      ...{ medianMs: quantile(opened.tookMs, 0.5), p99Ms: quantile(opened.tookMs, 0.99) },
      ...{ errors: streams - opened.tookMs.length + lost, freeMs: nowMs() - closedMs },
    };
  };
  const { limited, unlimited } = await alternate(bench, 3, {
    limited: side(withLimit),
    unlimited: side(withoutLimit),
  });
  await Promise.all(services.map((edge) => edge.stop()));

  const what = `${amount(streams)} streams over ${edges} edges`;
  const both = [limited, unlimited] as const;
  bench.compare(`${what}: opened per second vs. no limit`, "/s", both, "perSecond");
  bench.compare(`${what}: time to open, median`, "ms", both, "medianMs");
  bench.compare(`${what}: time to open, p99`, "ms", both, "p99Ms");
  bench.figure(`${what}: rejected, failed or lost`, "", limited.errors, { goal: below(1) });
  bench.figure(`${what}: all closed to slots free`, "ms", limited.freeMs);
  bench.note`The streams opened in ${number(limited.elapsedMs / 1e3)} s with the limit and in ${number(unlimited.elapsedMs / 1e3)} s without. With all streams open, the edges held exactly the slots of the plan, and each edge rejected another stream.`;
}

/** Returns the number of an organization's open streams, from the reports of the edges. */
async function openSlotsHeld(bench: Bench, nats: Nats): Promise<(id: string) => number> {
  const connection = await connectNats(bench, nats);
  const streams = createOpenStreams();
  followOpenStreams({ connection, streams, logger: pino({ level: "silent" }) });
  return streams.of;
}
