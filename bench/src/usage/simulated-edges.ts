import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type EnvironmentUsage,
  type UsageRecorded,
  usageMessageId,
  usageStream,
} from "@halyard/contracts";
import { jetstream } from "@nats-io/jetstream";
import type { Bench } from "../benchmark.ts";
import { repeatAtOnce } from "../processes/arrivals.ts";
import { connectNats, type Nats } from "../system/backends.ts";
import type { SnapshotContent } from "../system/snapshot-content.ts";
import { nowMs } from "../time.ts";

export type SimulatedEdges = Awaited<ReturnType<typeof startSimulatedEdges>>;
export type Sent = { edge: string; sequence: number; sentMs: number };
export const environmentsPerMessage = 20;
/** Share of a message's environments with counts of single flags, and their number. */
const oneInHasFlags = 5;
const singleFlags = 3;
const hourMs = 3_600_000;
/** Number of concurrent publications. */
const atOnce = 64;

/** Starts simulated edges that publish numbered usage messages. */
export async function startSimulatedEdges(
  bench: Bench,
  options: { nats: Nats; edges: number; content: SnapshotContent },
) {
  const client = jetstream(await connectNats(bench, options.nats));
  const lives = Array.from({ length: options.edges }, () => ({ edge: randomUUID(), sequence: 0 }));
  let requests = 0;
  let next = 0;

  async function sendNext(): Promise<Sent> {
    const life = lives[next % lives.length] as (typeof lives)[number];
    next += 1;
    life.sequence += 1;
    const message = messageOf(life, { content: options.content, number: next });
    requests += requestsOf(message);
    const sent = { ...life, sentMs: nowMs() };
    const msgID = usageMessageId(message);
    await client.publish(usageStream.recorded.subject, JSON.stringify(message), { msgID });
    return sent;
  }

  return {
    requests: () => requests,
    /** Sends messages at a constant rate from all edges in turn. Returns the time of each one. */
    async send({ messages, perSecond }: { messages: number; perSecond: number }) {
      const beganMs = nowMs();
      const sending: Promise<Sent>[] = [];
      for (let index = 0; index < messages; index += 1) {
        const dueMs = beganMs + (index / perSecond) * 1e3;
        await delay(Math.max(0, dueMs - nowMs()));
        sending.push(sendNext());
      }
      return Promise.all(sending);
    },
    /** Sends messages as fast as NATS accepts them. */
    sendAll: (count: number) =>
      repeatAtOnce({ count, atOnce }, async () => void (await sendNext())),
  };
}

/** Returns a usage message. Messages have different environments, and several edges report the same ones. */
function messageOf(
  { edge, sequence }: { edge: string; sequence: number },
  { content: { scopes }, number }: { content: SnapshotContent; number: number },
): UsageRecorded {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const hour = new Date(now - (now % hourMs)).toISOString();
  const length = Math.min(environmentsPerMessage, scopes.length);
  const chosen = Array.from(
    { length },
    (_, index) => scopes[(number * 7 + index) % scopes.length] as (typeof scopes)[number],
  );
  const environments = chosen.map((scope, index): EnvironmentUsage => {
    const single = index % oneInHasFlags === 0 ? scope.flagIds.slice(0, singleFlags) : [];
    const evaluated = single.length === 0 ? {} : { evaluate: single.length };
    return {
      ...{ hour, organization_id: scope.organizationId, project_id: scope.projectId },
      ...{ environment_id: scope.environmentId, requests: { flags: 40, stream: 2, ...evaluated } },
      ...{ bulk_answers: 42, bulk_answered_at: at },
      flags: single.map((flag_id) => ({ flag_id, evaluations: 1, evaluated_at: at })),
    };
  });
  const keys = chosen.map(({ keyId }) => ({ key_id: keyId, used_at: at }));
  return { edge, sequence, environments, keys };
}

function requestsOf({ environments }: UsageRecorded): number {
  let sum = 0;
  for (const { requests } of environments)
    for (const count of Object.values(requests)) sum += count ?? 0;
  return sum;
}
