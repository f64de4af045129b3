import { eventually } from "@halyard/testing";
import { faultsOfUsage } from "../checks/usage-agreement.ts";
import { awaitAnswers } from "../system/disturbances.ts";
import type { Edge, System } from "../system/system.ts";
import { beginChapter, type Chapter } from "./chapter.ts";
import { beginScheduleStory, type ScheduleStory } from "./schedule-story.ts";
import { beginUsageStory } from "./usage-story.ts";
import { beginWebhookStory } from "./webhook-story.ts";

/**
 * One fault of a dependency beside everything that a system does: changes, SDK requests of every kind, streams,
 * schedules that become due, webhooks, and usage.
 */
export type SurvivedFault = {
  name: string;
  /** Longest time without an accepted change. */
  changesPausedMs: number;
  /** Longest time without a change in the streams of an edge; the maximum of all edges. */
  streamsPausedMs: number;
  requests: number;
  /** SDK requests without the expected response. */
  unanswered: string[];
  /** Descriptions of everything that violates a guarantee. */
  faults: string[];
};

/** The processes of such a system. Edges share the secret, so that each one accepts the streams of the other. */
export const faultSystem = {
  ...{ managements: 2, schedulers: 1, dispatchers: 1, meterings: 1, edges: 2 },
  settings: () => ({ "sdk-edge": { STREAM_TOKEN_SECRET: "a secret that all edges here share" } }),
};

/** Maximum time after a fault without an accepted change, and without a change in the streams of an edge. */
export const resumedWithinMs = 10_000;

const changesBefore = 40;
/** Changes that are accepted, and that the streams of each edge receive, before the fault is repaired. */
const changesAfter = 40;
const samplePauseMs = 5;
/** Pauses of eight clients that change flags, and of four that send SDK requests. */
const changePauseMs = 150;
const requestPauseMs = 20;
const webhooks = { flags: 2, pauseMs: 100 };
/** Due times begin after the schedules are created, and span the fault. */
const schedules = { flags: 20, firstDueMs: 1_500, intervalMs: 400 };
/** A delivery whose claim was committed without a response is attempted again after seventy seconds. */
const settleWithinMs = 120_000;

/** Runs the fault in the middle of the load, and repairs it after further changes. */
export async function surviveFault(
  system: System,
  name: string,
  { fault, repair }: { fault: () => Promise<void>; repair: () => Promise<void> },
): Promise<SurvivedFault> {
  const chapter = await beginChapter(system, { name });
  const webhook = await beginWebhookStory(system, { name: `${name}: webhooks`, ...webhooks });
  const usage = await beginUsageStory(system, { name: `${name}: usage` });
  const { flags } = schedules;
  const schedule = await beginScheduleStory(system, { name: `${name}: schedules`, flags });

  const changes = chapter.change({ pauseMs: changePauseMs });
  const flips = webhook.flip({ times: Number.POSITIVE_INFINITY, pauseMs: webhooks.pauseMs });
  const traffic = usage.ask({ pauseMs: requestPauseMs });
  await scheduleAll(schedule);
  await awaitAnswers(changes, changesBefore);
  const changePauses = watchPauses(() => changes.acknowledged.length);
  const streamPauses = system.edges.map((edge: Edge) =>
    watchPauses(() => chapter.watcher.events(edge)),
  );
  await fault();
  await awaitAnswers(changes, changesAfter);
  await awaitEvents(system, chapter);
  await repair();
  await Promise.all(schedule.flags.map(schedule.applied));
  const changesPausedMs = changePauses.stop();
  const streamsPausedMs = Math.max(...streamPauses.map((pauses) => pauses.stop()));

  await Promise.all([flips.stop(), changes.stop()]);
  const scheduleFaults = await schedule.faults({ withinMs: settleWithinMs });
  const webhookFaults = await webhook.faults({ withinMs: settleWithinMs });
  await traffic.stop();
  const sent = [...usage.before, ...traffic.sent];
  const usageFaults = await faultsOfUsage(system, usage.tenant, sent);
  return {
    ...{ name, changesPausedMs, streamsPausedMs, requests: sent.length },
    unanswered: [...traffic.complaints],
    faults: [...scheduleFaults, ...webhookFaults, ...usageFaults, ...(await chapter.faults())],
  };
}

async function awaitEvents({ edges }: System, { watcher }: Chapter): Promise<void> {
  const wanted = edges.map((edge) => watcher.events(edge) + changesAfter);
  const missing = () => edges.filter((edge, at) => watcher.events(edge) < (wanted[at] as number));
  await eventually(() => missing().map(({ name }) => name), {
    until: (names) => names.length === 0,
    because: "the streams of every edge receive changes",
  });
}

/** Schedules a time window for each flag, so that a change becomes due every 200 ms. */
async function scheduleAll(story: ScheduleStory): Promise<void> {
  const { firstDueMs, intervalMs } = schedules;
  for (const [index, flag] of story.flags.entries()) {
    const enableInMs = firstDueMs + index * intervalMs;
    await story.schedule(flag, { enableInMs, disableInMs: enableInMs + intervalMs / 2 });
  }
}

/** Measures the longest time without growth of a count. */
function watchPauses(read: () => number) {
  let count = read();
  let lastMs = performance.now();
  let longestMs = 0;
  const sample = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    if (read() > count) lastMs = nowMs;
    count = read();
  };
  const timer = setInterval(sample, samplePauseMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return Math.round(longestMs);
    },
  };
}
