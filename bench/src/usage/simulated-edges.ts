import { randomUUID } from "node:crypto";
import {
  type EnvironmentUsage,
  type UsageRecorded,
  usageMessageId,
  usageStream,
} from "@halyard/contracts";
import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import type { Nats } from "../system/backends.ts";
import type { SnapshotContent } from "../system/snapshot-content.ts";

/** Simulated edges that publish numbered usage messages. */
export type SimulatedEdges = {
  /** Sends messages at a constant rate from all edges in turn. Returns the time of each one. */
  send(options: { messages: number; perSecond: number }): Promise<Sent[]>;
  /** Sends messages as fast as NATS accepts them. */
  sendAll(messages: number): Promise<Sent[]>;
  /** Number of requests in all messages. */
  requests(): number;
};

export type Sent = { edge: string; sequence: number; sentMs: number };

export const environmentsPerMessage = 20;
/** Share of a message's environments with counts of single flags, and their number. */
const oneInHasFlags = 5;
const singleFlags = 3;
const hourMs = 3_600_000;
/** Number of concurrent publications. */
const atOnce = 64;

export async function startSimulatedEdges(
  bench: Bench,
  options: { nats: Nats; edges: number; content: SnapshotContent },
): Promise<SimulatedEdges> {
  const connection = await connect({ servers: options.nats.url });
  bench.afterwards(() => connection.close());
  const client = jetstream(connection);
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
    await publish(client, message);
    return sent;
  }

  return {
    requests: () => requests,
    async send({ messages, perSecond }) {
      const beganMs = nowMs();
      const sending: Promise<Sent>[] = [];
      for (let index = 0; index < messages; index += 1) {
        const dueMs = beganMs + (index / perSecond) * 1e3;
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - nowMs())));
        sending.push(sendNext());
      }
      return Promise.all(sending);
    },
    async sendAll(messages) {
      const sent: Sent[] = [];
      while (sent.length < messages) {
        const count = Math.min(atOnce, messages - sent.length);
        sent.push(...(await Promise.all(Array.from({ length: count }, sendNext))));
      }
      return sent;
    },
  };
}

async function publish(client: JetStreamClient, message: UsageRecorded): Promise<void> {
  await client.publish(usageStream.recorded.subject, JSON.stringify(message), {
    msgID: usageMessageId(message),
  });
}

/** Returns a usage message. Messages have different environments, and several edges report the same ones. */
function messageOf(
  { edge, sequence }: { edge: string; sequence: number },
  { content, number }: { content: SnapshotContent; number: number },
): UsageRecorded {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const hour = new Date(now - (now % hourMs)).toISOString();
  const { scopes } = content;
  const chosen = Array.from(
    { length: Math.min(environmentsPerMessage, scopes.length) },
    (_, index) => scopes[(number * 7 + index) % scopes.length] as (typeof scopes)[number],
  );
  return {
    edge,
    sequence,
    environments: chosen.map((scope, index): EnvironmentUsage => {
      const single = index % oneInHasFlags === 0 ? scope.flagIds.slice(0, singleFlags) : [];
      return {
        hour,
        organization_id: scope.organizationId,
        project_id: scope.projectId,
        environment_id: scope.environmentId,
        requests: {
          flags: 40,
          stream: 2,
          ...(single.length === 0 ? {} : { evaluate: single.length }),
        },
        bulk_answers: 42,
        bulk_answered_at: at,
        flags: single.map((flag_id) => ({ flag_id, evaluations: 1, evaluated_at: at })),
      };
    }),
    keys: chosen.map(({ keyId }) => ({ key_id: keyId, used_at: at })),
  };
}

function requestsOf({ environments }: UsageRecorded): number {
  let sum = 0;
  for (const { requests } of environments)
    for (const count of Object.values(requests)) sum += count ?? 0;
  return sum;
}
