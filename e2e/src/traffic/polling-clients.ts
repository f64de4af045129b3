import { setTimeout as delay } from "node:timers/promises";
import { type CallOptions, call, eventually } from "@halyard/testing";

/**
 * SDKs that poll over persistent connections, in each supported way. A client repeats a failed request immediately, and
 * reports a failure if the second attempt also fails.
 */
export type PollingClients = {
  /** Returns the number of requests with a successful response. */
  answered(): number;
  /** Returns the number of requests that needed a second attempt. */
  retried(): number;
  /** The requests that failed twice. */
  failures: readonly string[];
  awaitMore(more: number): Promise<void>;
  stop(): Promise<void>;
};

const clients = 6;
const pauseMs = 20;

const user = { user_id: "ada" };
const requests: readonly [path: string, options: CallOptions][] = [
  ["/api/v1/sdk/flags", {}],
  ["/api/v1/sdk/flags", { method: "POST", body: user }],
  ["/ofrep/v1/evaluate/flags", { method: "POST", body: { context: { targetingKey: "ada" } } }],
];

export function startPollingClients(url: string, key: string): PollingClients {
  const failures: string[] = [];
  let answered = 0;
  let retried = 0;
  let stopping = false;

  /** Returns the reason of a failure, or undefined. */
  async function attempt(path: string, options: CallOptions): Promise<string | undefined> {
    try {
      const { status, body } = await call(url + path, { ...options, key });
      if (status !== 200) return `${status} ${JSON.stringify(body)}`;
      answered += 1;
      return undefined;
    } catch (error) {
      return String((error as Error).cause ?? error);
    }
  }

  async function poll(client: number): Promise<void> {
    const [path, options] = requests[client % requests.length] as (typeof requests)[number];
    while (!stopping) {
      const first = await attempt(path, options);
      if (first !== undefined) {
        retried += 1;
        const second = await attempt(path, options);
        if (second !== undefined)
          failures.push(`${options.method ?? "GET"} ${path}: ${first}, then ${second}`);
      }
      await delay(pauseMs);
    }
  }

  const running = Array.from({ length: clients }, (_, client) => poll(client));
  return {
    answered: () => answered,
    retried: () => retried,
    failures,
    async awaitMore(more) {
      const from = answered;
      await eventually(() => answered >= from + more, { because: `${more} more requests succeed` });
    },
    async stop() {
      stopping = true;
      await Promise.all(running);
    },
  };
}
