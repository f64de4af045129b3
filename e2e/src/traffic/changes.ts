import { setTimeout as delay } from "node:timers/promises";
import { type Called, call } from "@halyard/testing";
import { must } from "../system/tenancy.ts";

/**
 * A stream of changes over HTTP. One writer switches a series of flags on, one after another, for the watching client;
 * they stay on. The other writers switch their own flags back and forth, rename them, and create and delete more. A
 * writer repeats a change, at any management process, until it succeeds. `If-Match` and `Idempotency-Key` prevent a
 * repetition from changing anything twice.
 */
export type Acknowledged = {
  flagId: string;
  version: number;
  enabled: boolean;
  tookMs: number;
};

export type ChangeStream = {
  /** Every change with a successful response. */
  acknowledged: readonly Acknowledged[];
  deleted: readonly string[];
  /** Ends after the changes in progress. */
  stop(): Promise<void>;
  /** Resolves when the writers have ended, by error or by `stop`. */
  ended: Promise<void>;
};

export type CreatedFlag = { id: string; key: string };

/** The status codes of a change while a dependency is unavailable. */
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
  /** Returns the management processes that are in service now. */
  managementUrls: () => readonly string[];
  serverKey: string;
  ladder: readonly CreatedFlag[];
  /** Flags with one writer each, which switches the flag back and forth. */
  flipped: readonly CreatedFlag[];
  /** Pause of a writer between two changes. */
  pauseMs: number;
}): ChangeStream {
  const { serverKey, ladder, flipped, pauseMs } = options;
  const acknowledged: Acknowledged[] = [];
  const deleted: string[] = [];
  const etags = new Map<string, string>();
  let stopping = false;
  let turn = 0;

  /** Repeats a request until the response is not an outage. Returns undefined if it was stopped before that. */
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
    // Each flag has one writer, so an earlier attempt whose response was lost has made the change.
    if (answer?.status === 412) answer = await insist("GET", path);
    if (answer === undefined) return;
    if (answer.status !== 200 || !isChanged(answer.body, wanted))
      throw new Error(`The response to the change was ${JSON.stringify(answer.body)}`);
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

  async function createAndDelete(): Promise<void> {
    for (let round = 1; !stopping; round += 1) {
      const body = { key: `passing-${round}`, name: "passing", enabled: true };
      const idempotencyKey = { "idempotency-key": `passing-${round}` };
      const created = await insist("POST", "/api/v1/flags", body, idempotencyKey);
      if (created === undefined) return;
      if (created.status !== 201)
        throw new Error(`The response to POST was ${JSON.stringify(created.body)}`);
      const { id, version, enabled } = created.body;
      acknowledged.push({ flagId: id, version, enabled, tookMs: created.tookMs });
      await delay(pauseMs);
      if (round % 2 === 0) continue;
      const gone = await insist("DELETE", `/api/v1/flags/${id}`);
      // 404: an earlier attempt whose response was lost has deleted the flag.
      if (gone === undefined) return;
      if (gone.status !== 204 && gone.status !== 404)
        throw new Error(`The response to DELETE was ${JSON.stringify(gone.body)}`);
      deleted.push(id);
    }
  }

  const writers = Promise.all([climb(), createAndDelete(), ...flipped.map(flip)]);
  const ended = writers.then(() => undefined);
  // The caller that awaits the end receives the failure. Without this, it would be unhandled until then.
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
 * A stream of changes of one kind: one writer per flag switches it back and forth. It repeats a change without a
 * successful response, at any management process. The repetition has no effect, because switching on a flag that is on
 * changes nothing.
 */
export type FlipStream = {
  /** Returns the number of changes with a successful response. */
  answered(): number;
  /** Resolves when all changes are made, or after `stop`. */
  ended: Promise<void>;
  /** Ends after the changes in progress. */
  stop(): Promise<void>;
};

export function streamFlips(options: {
  /** Returns the management processes that are in service now. */
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
        throw new Error(`The response to PATCH was ${JSON.stringify(answer.body)}`);
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
  // The caller that awaits the end receives the failure. Without this, it would be unhandled until then.
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
