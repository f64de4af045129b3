import { setTimeout as delay } from "node:timers/promises";
import { type Called, call } from "@halyard/testing";
import { must } from "../system/tenancy.ts";

/**
 * A stream of changes over HTTP. One writer climbs a ladder of flags that go on one after another and
 * stay on, for the watching client; others flip flags of their own back and forth, rename them, and
 * create and delete more. A writer repeats a change, at any management, until it has a successful
 * response. `If-Match` and `Idempotency-Key` prevent a repetition from changing anything twice.
 */
export type Acknowledged = {
  flagId: string;
  version: number;
  enabled: boolean;
  tookMs: number;
};

export type ChangeStream = {
  /** Every change that was answered with success. */
  acknowledged: readonly Acknowledged[];
  deleted: readonly string[];
  /** Ends after the change that is under way. */
  stop(): Promise<void>;
  /** Resolves when the writers have ended by themselves or by `stop`. */
  ended: Promise<void>;
};

export type CreatedFlag = { id: string; key: string };

/** The answers that a change may get while something is away. */
const outageStatuses = new Set([502, 503]);
const retryAfterMs = 20;
const createdAtOnce = 8;

export async function createFlags(
  managementUrl: string,
  serverKey: string,
  keys: readonly string[],
): Promise<CreatedFlag[]> {
  const flags: CreatedFlag[] = [];
  const remaining = [...keys];
  const work = async () => {
    for (let key = remaining.shift(); key !== undefined; key = remaining.shift()) {
      const body = { key, name: key };
      const url = `${managementUrl}/api/v1/flags`;
      const flag = await must(url, { method: "POST", key: serverKey, body });
      flags.push({ id: flag.id, key });
    }
  };
  await Promise.all(Array.from({ length: createdAtOnce }, work));
  return flags.sort((left, right) => left.key.localeCompare(right.key));
}

export function ladderKeys(steps: number): string[] {
  return Array.from({ length: steps }, (_, step) => `step-${String(step).padStart(4, "0")}`);
}

export function streamChanges(options: {
  /** The addresses to turn to, as they are at the moment. */
  managementUrls: () => readonly string[];
  serverKey: string;
  ladder: readonly CreatedFlag[];
  /** Each is flipped by a writer of its own. */
  flipped: readonly CreatedFlag[];
  /** How long a writer rests between two changes. */
  pauseMs: number;
}): ChangeStream {
  const { serverKey, ladder, flipped, pauseMs } = options;
  const acknowledged: Acknowledged[] = [];
  const deleted: string[] = [];
  const etags = new Map<string, string>();
  let stopping = false;
  let turn = 0;

  /** Asks until there is an answer that is not about an outage; undefined when stopped before. */
  async function insist(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<(Called & { tookMs: number }) | undefined> {
    for (;;) {
      const urls = options.managementUrls();
      turn += 1;
      const url = urls[turn % urls.length];
      const startedMs = performance.now();
      const answer =
        url === undefined
          ? undefined
          : await call(url + path, {
              method,
              key: serverKey,
              headers,
              ...(body === undefined ? {} : { body }),
            }).catch(() => undefined);
      if (answer !== undefined && !outageStatuses.has(answer.status))
        return { ...answer, tookMs: performance.now() - startedMs };
      if (stopping) return undefined;
      await delay(retryAfterMs);
    }
  }

  async function change(flagId: string, wanted: Record<string, unknown>): Promise<void> {
    const path = `/api/v1/flags/${flagId}`;
    const etag = etags.get(flagId);
    let answer = await insist(
      "PATCH",
      path,
      wanted,
      etag === undefined ? {} : { "if-match": etag },
    );
    // Each flag has one writer: an earlier attempt, whose answer was lost, has made the change.
    if (answer?.status === 412) answer = await insist("GET", path);
    if (answer === undefined) return;
    if (answer.status !== 200 || !isChanged(answer.body, wanted))
      throw new Error(`The change was answered ${JSON.stringify(answer.body)}`);
    etags.set(flagId, answer.headers.get("etag") as string);
    const { version, enabled } = answer.body;
    acknowledged.push({ flagId, version, enabled, tookMs: answer.tookMs });
  }

  async function climb(): Promise<void> {
    for (const flag of ladder) {
      if (stopping) return;
      await change(flag.id, { enabled: true });
      await delay(pauseMs);
    }
  }

  async function flip(flag: CreatedFlag): Promise<void> {
    for (let round = 1; !stopping; round += 1) {
      await change(flag.id, { enabled: round % 2 === 1 });
      if (round % 5 === 0) await change(flag.id, { name: `${flag.key} ${round}` });
      await delay(pauseMs);
    }
  }

  async function comeAndGo(): Promise<void> {
    for (let round = 1; !stopping; round += 1) {
      const body = { key: `passing-${round}`, name: "passing", enabled: true };
      const idempotencyKey = { "idempotency-key": `passing-${round}` };
      const created = await insist("POST", "/api/v1/flags", body, idempotencyKey);
      if (created === undefined) return;
      if (created.status !== 201)
        throw new Error(`POST was answered ${JSON.stringify(created.body)}`);
      const { id, version, enabled } = created.body;
      acknowledged.push({ flagId: id, version, enabled, tookMs: created.tookMs });
      await delay(pauseMs);
      if (round % 2 === 0) continue;
      const gone = await insist("DELETE", `/api/v1/flags/${id}`);
      // 404 when an earlier attempt, whose answer was lost, has done it.
      if (gone === undefined) return;
      if (gone.status !== 204 && gone.status !== 404)
        throw new Error(`DELETE was answered ${JSON.stringify(gone.body)}`);
      deleted.push(id);
    }
  }

  const writers = Promise.all([climb(), comeAndGo(), ...flipped.map(flip)]);
  const ended = writers.then(() => undefined);
  // Whoever awaits the end hears of a failure; until then it is not unhandled.
  ended.catch(() => undefined);
  return {
    acknowledged,
    deleted,
    ended,
    async stop() {
      stopping = true;
      await ended;
    },
  };
}

function isChanged(flag: Record<string, unknown>, wanted: Record<string, unknown>): boolean {
  return Object.entries(wanted).every(([field, value]) => flag[field] === value);
}

/**
 * A stream of changes of one kind: each flag is switched back and forth by a writer of its own. A
 * change that got no answer of success is asked for again until it gets one, at whichever management
 * answers; it is made only once, because to switch on what is on changes nothing.
 */
export type FlipStream = {
  /** How many changes were answered with success. */
  answered(): number;
  /** Resolves when every change is made, or after `stop`. */
  ended: Promise<void>;
  /** Ends after the changes that are under way. */
  stop(): Promise<void>;
};

export function streamFlips(options: {
  /** The addresses to turn to, as they are at the moment. */
  managementUrls: () => readonly string[];
  serverKey: string;
  flags: readonly CreatedFlag[];
  times: number;
  pauseMs: number;
}): FlipStream {
  const { serverKey: key, flags, times, pauseMs } = options;
  let answered = 0;
  let stopping = false;

  async function insist(flag: CreatedFlag, enabled: boolean): Promise<void> {
    while (!stopping) {
      const [url] = options.managementUrls();
      const change = { method: "PATCH", key, body: { enabled } };
      const answer = await call(`${url}/api/v1/flags/${flag.id}`, change).catch(() => undefined);
      if (answer?.status === 200) {
        answered += 1;
        return;
      }
      if (answer !== undefined && answer.status < 500)
        throw new Error(`PATCH was answered ${JSON.stringify(answer.body)}`);
      await delay(retryAfterMs);
    }
  }

  async function flip(flag: CreatedFlag): Promise<void> {
    for (let time = 1; time <= times && !stopping; time += 1) {
      await insist(flag, time % 2 === 1);
      await delay(pauseMs);
    }
  }

  const ended = Promise.all(flags.map(flip)).then(() => undefined);
  // Whoever awaits the end hears of a failure; until then it is not unhandled.
  ended.catch(() => undefined);
  return {
    answered: () => answered,
    ended,
    async stop() {
      stopping = true;
      await ended.catch(() => undefined);
    },
  };
}
