import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import { sendBacklog } from "./backlog.ts";
import { sendBarePosts } from "./bare-posts.ts";
import { type Latencies, measureLightLoad } from "./light-load.ts";
import { startBarePosts, startHangingTargets, startReceiver } from "./receivers.ts";
import { createWebhooks, startWebhookSystem, type WebhookSystem } from "./webhook-system.ts";

export const webhooksBenchmark: Benchmark = {
  name: "webhooks",
  pinned: false,
  summary: "a backlog of 10,000 deliveries, and 200 targets that hang",
  method:
    "**Backlog.** One dispatcher sends 10,000 deliveries of 40 webhooks, which become due at the same moment. The baselines send the same requests with bare `got` and bare `node:http`, without a database. " +
    "The backlog is sent again while 200 other webhooks have due deliveries whose targets never respond.\n\n" +
    "**Single changes.** The time from the event's timestamp, before its commit, to the request at the receiver. The baseline is the time of the `PATCH`.",
  run,
};

const size = { deliveries: 10_000, targets: 40, hanging: 200, rounds: 3 };
const quickSize = { deliveries: 200, targets: 4, hanging: 10, rounds: 1 };
const perOrganization = { good: 4, hanging: 10 };

async function run(bench: Bench): Promise<Outcome> {
  const system = await startWebhookSystem(bench);
  const backlogs = await measureBacklogs(bench, system);
  bench.say("single changes");
  const light = await measureLightLoad(bench, system);
  const { postgres, nats } = system;
  return {
    figures: [...backlogFigures(backlogs), ...lightFigures(light)],
    notes: notesOf(backlogs),
    servers: { PostgreSQL: postgres.version, NATS: nats.version },
  };
}

async function measureBacklogs(bench: Bench, system: WebhookSystem) {
  const { deliveries, targets, hanging, rounds } = bench.quick ? quickSize : size;
  const [receiver, hangingTargets, posts] = await Promise.all([
    startReceiver(bench, targets),
    startHangingTargets(bench, hanging),
    startBarePosts(bench),
  ]);
  bench.say(`${targets} webhooks, and ${hanging} with hanging targets`);
  const webhookIds = await createWebhooks(system, {
    urls: receiver.urls,
    perOrganization: perOrganization.good,
  });
  const hangingIds = await createWebhooks(system, {
    urls: hangingTargets.urls,
    perOrganization: perOrganization.hanging,
  });
  const bad = { webhookIds: hangingIds, targets: hangingTargets };
  const sides = (count: number) => {
    const good = { deliveries: count, webhookIds, receiver };
    return {
      alone: () => sendBacklog(system, good),
      beside: () => sendBacklog(system, { ...good, hanging: bad }),
      got: () => sendBarePosts(posts, { ...good, client: "got" }),
      node: () => sendBarePosts(posts, { ...good, client: "node:http" }),
    };
  };
  if (!bench.quick) {
    bench.say("warming up with a tenth");
    await alternate(1, sides(deliveries / 10));
  }
  bench.say(`${deliveries} deliveries: alone, with hanging targets, and bare, in turn`);
  return { ...(await alternate(rounds, sides(deliveries))), deliveries, targets, hanging };
}

type Backlogs = Awaited<ReturnType<typeof measureBacklogs>>;

const goalBesideHanging = 0.9;
const goalMedianMs = 20;
const goalP99Ms = 100;

function backlogFigures({ alone, beside, got, node, hanging }: Backlogs): Figure[] {
  const rate = { unit: "/s", measured: alone.perSecond };
  return [
    { ...rate, what: "deliveries per second vs. bare got", baseline: got.perSecond },
    { ...rate, what: "deliveries per second vs. bare node:http", baseline: node.perSecond },
    {
      what: "CPU of the dispatcher per delivery vs. bare got",
      unit: "µs",
      measured: alone.dispatcherMicroseconds,
      baseline: got.senderMicroseconds,
    },
    {
      what: `deliveries per second while ${hanging} targets hang vs. none`,
      unit: "/s",
      measured: beside.perSecond,
      baseline: alone.perSecond,
      goal: { of: "ratio", atLeast: goalBesideHanging },
    },
  ];
}

function lightFigures({ deliveredMs, patchedMs }: Latencies): Figure[] {
  const figure = (what: string, share: number): Figure => ({
    what: `single changes, event to receiver vs. PATCH: ${what}`,
    unit: "ms",
    measured: quantile(deliveredMs, share),
    baseline: quantile(patchedMs, share),
  });
  return [
    { ...figure("median", 0.5), goal: { of: "measured", below: goalMedianMs } },
    { ...figure("p99", 0.99), goal: { of: "measured", below: goalP99Ms } },
    figure("maximum", 1),
  ];
}

function notesOf({ alone, deliveries, targets }: Backlogs): string[] {
  const { postgresMicroseconds, receiverMicroseconds } = alone;
  return [
    `${amount(deliveries)} deliveries to ${targets} webhooks. CPU per delivery: ${number(alone.dispatcherMicroseconds)} µs in the dispatcher, ${number(postgresMicroseconds)} µs in PostgreSQL and ${number(receiverMicroseconds)} µs in the receiver.`,
  ];
}

const amount = (count: number) => count.toLocaleString("en-US");
