import { eventually, isThorough, type ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { requestsUsed } from "../src/checks/usage-agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import { beginScheduleStory, type ScheduleStory } from "../src/stories/schedule-story.ts";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { type LoadBalancer, startLoadBalancer } from "../src/system/load-balancer.ts";
import { replaceEach, replaceOne, stopInOrder } from "../src/system/replicas.ts";
import { awaitReady, type System, startSystem } from "../src/system/system.ts";
import type { FlipStream } from "../src/traffic/changes.ts";
import { type PollingClients, startPollingClients } from "../src/traffic/polling-clients.ts";
import { recordValues, type SeenValues, type StreamSource } from "../src/traffic/seen-values.ts";

const openStreams = 24;
const scheduledFlags = 12;
/** Pause of writers. It is long enough that restarts, and not writes, take most of two cores. */
const pauseMs = 200;
/** Processes of each other service. Only `npm run chaos` replaces all services; `npm test` starts half as many. */
const ofOtherServices = isThorough ? 2 : 0;
/** Longer than elsewhere, because more processes start. */
const timeoutMs = 240_000;
/** Number of requests that prove load in each step. */
const requestsPerStep = 30;

/**
 * Replaces every process while clients read, stream and write through the gateways. The streams record which restarts
 * they noticed. Afterwards, the scenarios check that nothing was lost.
 */
const title = "given two processes of each service under load, and two gateways (%s)";
describe.each(["built-in", "haproxy"] as const)(title, (proxy) => {
  let system: System;
  let gateways: ServiceProcess[];
  let balancer: LoadBalancer;
  beforeAll(async () => {
    system = await startSystem({
      managements: 2,
      schedulers: ofOtherServices,
      dispatchers: ofOtherServices,
      meterings: ofOtherServices,
      edges: 2,
    });
    gateways = await Promise.all([system.startGateway({ proxy }), system.startGateway({ proxy })]);
    balancer = await startLoadBalancer(() => gateways);
    system.endsWithSystem(balancer.close);
  });
  afterAll(() => system?.close());

  /** Returns the system as clients use it: every request to a service goes through the gateways. */
  function behindGateways(): System {
    const at = <T extends ServiceProcess>([first]: readonly T[]): T[] => [
      { ...(first as T), url: balancer.url },
    ];
    return {
      ...system,
      managements: at(system.managements),
      schedulers: at(system.schedulers),
      dispatchers: at(system.dispatchers),
      meterings: at(system.meterings),
    };
  }

  async function replaceServices(): Promise<void> {
    await Promise.all([
      replaceEach(system.managements, system.startManagement),
      replaceEach(system.schedulers, system.startScheduler),
      replaceEach(system.dispatchers, system.startDispatcher),
      replaceEach(system.meterings, system.startMetering),
    ]);
  }

  async function startGateway(place: { port: string }): Promise<ServiceProcess> {
    const gateway = await system.startGateway({ ...place, proxy });
    await awaitReady({ name: "a gateway", process: gateway });
    gateways.push(gateway);
    return gateway;
  }

  it(
    "replaces each of them without a failed request, a second reconnect or a lost change",
    async () => {
      const outside = behindGateways();
      const chapter = await beginChapter(outside, { name: "Rolling restart" });
      const others = isThorough ? await beginOtherStories(outside) : undefined;
      const { tenant } = others?.webhooks ?? chapter;
      const sources = Array.from({ length: openStreams }, (_, index) => ({
        name: `stream-${index}`,
        url: balancer.url,
      }));
      const streams = recordValues(sources, chapter.tenant.clientKey);
      const clients = startPollingClients(balancer.url, tenant.clientKey);
      system.endsWithSystem(async () => {
        await Promise.all([streams.stop(), clients.stop()]);
      });
      await awaitOpen(streams, sources);
      chapter.change({ pauseMs });

      const load = { clients, streams, sources };
      await others?.begin();
      expect(await reconnectsDuring(load, replaceServices)).toEqual(sources.map(() => 0));
      for (const edge of system.edges) {
        const reconnects = await reconnectsDuring(load, async () => {
          await stopInOrder(edge.process);
          await edge.start();
        });
        expect(Math.max(...reconnects)).toBe(1);
      }
      for (const gateway of [...gateways]) {
        const reconnects = await reconnectsDuring(load, () =>
          replaceOne(gateways, gateway, startGateway),
        );
        expect(Math.max(...reconnects)).toBe(1);
      }

      await others?.stop();
      await clients.stop();
      expect(clients.failures).toEqual([]);
      expect(sources.flatMap((source) => streams.stream(source).failures)).toEqual([]);
      expect(await chapter.faults()).toEqual([]);
      expect(await others?.faults()).toEqual(others && []);
      await awaitLatestValues(system, { streams, sources, ...chapter.tenant });
      if (others !== undefined)
        await eventually(async () => (await requestsUsed(outside, tenant)) >= clients.answered(), {
          because: "every successful request is counted",
        });
    },
    timeoutMs,
  );
});

/** Starts scenarios of webhooks and schedules, which last until all services are replaced. */
async function beginOtherStories(system: System) {
  const webhooks = await beginWebhookStory(system, { name: "Rolling webhooks", flags: 4 });
  const schedules = await beginScheduleStory(system, {
    name: "Rolling schedules",
    flags: scheduledFlags,
  });
  let flips: FlipStream | undefined;
  return {
    webhooks,
    async begin() {
      flips = webhooks.flip({ times: Number.POSITIVE_INFINITY, pauseMs: 2 * pauseMs });
      await scheduleWindows(schedules);
    },
    async stop() {
      await flips?.stop();
      await flips?.ended;
    },
    faults: async () => [...(await webhooks.faults()), ...(await schedules.faults())],
  };
}

type Load = { clients: PollingClients; streams: SeenValues; sources: readonly StreamSource[] };

/** Returns the number of reconnects of each stream, once all of them are open again. */
async function reconnectsDuring(load: Load, restart: () => Promise<void>): Promise<number[]> {
  const { clients, streams, sources } = load;
  const opened = () => sources.map((source) => streams.stream(source).opened);
  const before = opened();
  await clients.awaitMore(requestsPerStep);
  await restart();
  await clients.awaitMore(requestsPerStep);
  await awaitOpen(streams, sources);
  return opened().map((count, index) => count - (before[index] as number));
}

async function awaitOpen(streams: SeenValues, sources: readonly StreamSource[]): Promise<void> {
  await eventually(() => sources.every((source) => streams.stream(source).isOpen), {
    because: "every stream is open",
  });
}

/** Schedules changes that become due one after another while services are replaced. */
async function scheduleWindows({ flags, schedule }: ScheduleStory): Promise<void> {
  for (const [index, flag] of flags.entries()) {
    const enableInMs = 1_000 + index * 300;
    await schedule(flag, { enableInMs, disableInMs: enableInMs + 700 });
  }
}

/** Waits until the latest value of each flag on each stream is the value in PostgreSQL. */
async function awaitLatestValues(
  { sql }: System,
  seen: { streams: SeenValues; sources: readonly StreamSource[]; environmentId: string },
): Promise<void> {
  const flags = await sql<{ key: string; enabled: boolean }[]>`
    select flag.key, state.content -> 'enabled' as enabled
    from flag_states as state join flags as flag on flag.id = state.flag_id
    where state.environment_id = ${seen.environmentId}`;
  await eventually(
    () =>
      seen.sources.every((source) =>
        flags.every(({ key, enabled }) => seen.streams.of(source, key).at(-1) === enabled),
      ),
    { because: "every stream has sent the latest values" },
  );
}
