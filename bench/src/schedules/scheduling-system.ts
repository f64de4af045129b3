import type { Bench } from "../benchmark.ts";
import { authorized } from "../http/requests.ts";
import { openTables, startBackends } from "../system/backends.ts";
import { startEdge, startManagement, startService } from "../system/services.ts";
import { createTenant } from "../system/tenant.ts";

export type SchedulingSystem = Awaited<ReturnType<typeof startSchedulingSystem>>;

/** Starts all services of scheduled changes, with one project of many flags and a stream on each edge. */
export async function startSchedulingSystem(bench: Bench, flags: number) {
  const backends = await startBackends(bench);
  const [management, scheduler, ...edges] = await Promise.all([
    startManagement(bench, backends),
    startService(bench, "scheduler", backends),
    startEdge(bench, backends),
    startEdge(bench, backends),
  ]);
  const managements = [management];
  const schedulers = [scheduler];
  const tenant = await createTenant(management.url, flags);
  const key = tenant.clientKey;
  const streams = edges.map(({ url }) => openFlagStream(bench, { url, key }));
  return {
    ...{ ...backends, tenant, managements, schedulers, edges },
    streams: await Promise.all(streams),
    admin: openTables(bench, backends.postgres, "scheduler"),
    /** Starts another scheduler and another management process. */
    async addReplicas() {
      managements.push(await startService(bench, "management", backends));
      schedulers.push(await startService(bench, "scheduler", backends));
    },
  };
}

export type FlagStream = Awaited<ReturnType<typeof openFlagStream>>;
const flagsEvent = /^event: flags\n(?:id: .*\n)?data: (.*)$/;

/** Opens an event stream on an edge, and records when flags changed. Resolves after the first heartbeat. */
async function openFlagStream(bench: Bench, { url, key }: { url: string; key: string }) {
  const closing = new AbortController();
  const options = { headers: authorized(key), signal: closing.signal };
  const response = await fetch(`${url}/api/v1/sdk/stream`, options);
  if (response.status !== 200 || response.body === null)
    throw new Error(`the stream: ${response.status} ${await response.text()}`);
  const arrivedMs = new Map<string, number>();
  let expected = true;
  const opened = Promise.withResolvers<void>();

  async function read(chunks: AsyncIterable<string>): Promise<void> {
    let text = "";
    for await (const chunk of chunks) {
      const nowMs = Date.now();
      const events = (text + chunk).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) take(event, nowMs);
    }
  }

  function take(event: string, nowMs: number): void {
    if (event.startsWith("event: heartbeat")) opened.resolve();
    const data = flagsEvent.exec(event)?.[1];
    if (data === undefined) return;
    const { flags } = JSON.parse(data) as { flags: Record<string, boolean> };
    // A slow reader receives all values in one event, including earlier changes.
    for (const [name, value] of Object.entries(flags))
      if (value === expected && !arrivedMs.has(name)) arrivedMs.set(name, nowMs);
  }

  const ended = read(response.body.pipeThrough(new TextDecoderStream())).catch((error: unknown) => {
    // An error before the end of the benchmark fails the waiting code.
    if (!closing.signal.aborted) throw error;
  });
  bench.afterwards(() => {
    closing.abort();
    return ended;
  });
  await Promise.race([opened.promise, ended]);
  return {
    /** Times by flag key, in milliseconds since 1970 like the times of schedules. */
    arrivedMs: arrivedMs as ReadonlyMap<string, number>,
    /** Starts recording flags that change to this value, and discards earlier records. */
    expect(value: boolean) {
      expected = value;
      arrivedMs.clear();
    },
  };
}
