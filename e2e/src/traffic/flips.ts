import { setTimeout as delay } from "node:timers/promises";
import { call } from "@halyard/testing";
import type { CreatedFlag } from "./changes.ts";

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

const retryAfterMs = 20;

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
