import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type EventStream, openEventStream, type StreamEvent } from "@halyard/testing";
import type { Edge } from "../system/system.ts";

/**
 * A client that observes every edge continuously: by polling, and by streams that it reopens when they end. The watched
 * flags exist before it starts, and are only ever switched on. So a flag that an edge has once shown as on must stay
 * on. A flag that is missing or off again is a fault: the response comes from an empty or older state.
 *
 * A response is compared only with what the edge had shown before the request was sent. Responses that cross each other
 * are therefore never a fault.
 */
export type Watcher = {
  /** Descriptions of all responses that are faults. */
  faults: readonly string[];
  /** Number of responses, and of events, so that a test can detect that an edge was silent. */
  answers(edge: Edge): number;
  events(edge: Edge): number;
  /**
   * Discards what an edge has shown, because an edge that starts from its disk without NATS may serve an older state.
   */
  forgive(edge: Edge): void;
  stop(): Promise<void>;
};

type Values = Record<string, boolean>;
type Seen = { on: Set<string>; answers: number; events: number };

const pollPauseMs = 5;
const streamsPerEdge = 2;
const requestTimeoutMs = 5_000;
/** Maximum number of recorded faults. More would repeat the same one. */
const maxFaults = 20;

export function watch(options: {
  edges: readonly Edge[];
  key: string;
  /** Flags that exist from the beginning, and are only switched on. */
  flags: readonly string[];
}): Watcher {
  const { edges, key, flags } = options;
  const watched = new Set(flags);
  const faults: string[] = [];
  const agent = new Agent({ keepAlive: true });
  const seen = new Map<Edge, Seen>(
    edges.map((edge) => [edge, { on: new Set(), answers: 0, events: 0 }]),
  );
  const open = new Set<EventStream>();
  let stopping = false;

  function accuse(text: string): void {
    if (!stopping && faults.length < maxFaults) faults.push(text);
  }

  const of = (edge: Edge): Seen => seen.get(edge) as Seen;

  /** Checks a complete response. `before` is what the edge had shown when the request was sent. */
  function judgeWhole(edge: Edge, how: string, values: Values, before: ReadonlySet<string>): void {
    const missing = flags.filter((flag) => values[flag] === undefined);
    const older = [...before].filter((flag) => values[flag] === false);
    if (missing.length > 0)
      accuse(`${edge.name} (${how}) lacks ${missing.length} of ${flags.length} flags`);
    if (older.length > 0)
      accuse(`${edge.name} (${how}) shows an older state: off again are ${older.join(", ")}`);
    learn(edge, values);
  }

  function learn(edge: Edge, values: Values): void {
    for (const [flag, value] of Object.entries(values))
      if (value && watched.has(flag)) of(edge).on.add(flag);
  }

  async function poll(edge: Edge): Promise<void> {
    while (!stopping) {
      const before = new Set(of(edge).on);
      const answer = await ask(edge.url, key, agent);
      if (answer !== undefined && answer.status === 200) {
        of(edge).answers += 1;
        judgeWhole(edge, "poll", answer.flags, before);
      } else if (answer !== undefined && answer.status !== 503)
        accuse(`${edge.name} returned ${answer.status}`);
      await delay(pollPauseMs);
    }
  }

  async function follow(edge: Edge): Promise<void> {
    while (!stopping) {
      const before = new Set(of(edge).on);
      let first = true;
      const stream = await openEventStream(
        `${edge.url}/api/v1/sdk/stream`,
        { authorization: `Bearer ${key}` },
        (event) => {
          if (event.event !== "flags") return;
          of(edge).events += 1;
          if (first) judgeWhole(edge, "stream", valuesOf(event), before);
          else judgeChange(edge, event, before);
          first = false;
          for (const [flag, value] of Object.entries(valuesOf(event)))
            if (value && watched.has(flag)) before.add(flag);
        },
      ).catch(() => undefined);
      if (stream === undefined) {
        await delay(pollPauseMs);
        continue;
      }
      if (stream.status !== 200 && stream.status !== 503)
        accuse(`${edge.name} returned ${stream.status}`);
      open.add(stream);
      if (stopping) stream.close();
      await stream.ended;
      open.delete(stream);
      await delay(pollPauseMs);
    }
  }

  /** Checks a delta event. `before` is what this stream has shown, and what the edge had shown when it was opened. */
  function judgeChange(edge: Edge, event: StreamEvent, before: ReadonlySet<string>): void {
    const older = Object.entries(valuesOf(event)).filter(
      ([flag, value]) => !value && before.has(flag),
    );
    if (older.length > 0)
      accuse(`${edge.name} sent older values: off again are ${older.map(([flag]) => flag)}`);
    const removed = ((event.data as { removed?: string[] }).removed ?? []).filter((flag) =>
      watched.has(flag),
    );
    if (removed.length > 0) accuse(`${edge.name} reported flags as deleted: ${removed}`);
    learn(edge, valuesOf(event));
  }

  const running = edges.flatMap((edge) => [
    poll(edge),
    ...Array.from({ length: streamsPerEdge }, () => follow(edge)),
  ]);
  return {
    faults,
    answers: (edge) => of(edge).answers,
    events: (edge) => of(edge).events,
    forgive: (edge) => of(edge).on.clear(),
    async stop() {
      stopping = true;
      for (const stream of open) stream.close();
      await Promise.all(running);
      agent.destroy();
    },
  };
}

function valuesOf(event: StreamEvent): Values {
  return (event.data as { flags: Values }).flags;
}

/** Reads all flags. Returns undefined if there was no response, because an edge may be unavailable. */
function ask(
  url: string,
  key: string,
  agent: Agent,
): Promise<{ status: number; flags: Values } | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(
      `${url}/api/v1/sdk/flags`,
      { agent, headers: { authorization: `Bearer ${key}` }, timeout: requestTimeoutMs },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", () => resolve(undefined));
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          const flags = status === 200 ? JSON.parse(Buffer.concat(chunks).toString()).flags : {};
          resolve({ status, flags });
        });
      },
    );
    outgoing.on("error", () => resolve(undefined));
    outgoing.on("timeout", () => outgoing.destroy());
    outgoing.on("close", () => resolve(undefined));
    outgoing.end();
  });
}
