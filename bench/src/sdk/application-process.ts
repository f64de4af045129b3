import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@halyard/server-sdk";
import { answerParent } from "../processes/answer-parent.ts";
import {
  type FlagKind,
  type TargetedFlag,
  targetedFlags,
  userNamed,
} from "../targeting/targeted-flags.ts";
import { nowMs } from "../time.ts";
import type { ServerSdk } from "./installed-sdk.ts";

/**
 * An application that evaluates flags at a steady rate, each for a new user. Its baseline is the same loop with a function
 * that only keeps its arguments.
 */

/** `baseline` is the loop without the call of the client. */
export type Loop = "client" | "baseline";
type Run = { loop: Loop; flagKinds: readonly FlagKind[] };
/** Evaluations begin together at this interval, as those of a busy application's requests do. */
const tickMs = 10;
let client: Client;
let flags: readonly TargetedFlag[];
/** The flags that the next run evaluates in turn. */
let keys: readonly string[];
/** Number of users so far. Each evaluation has its own. */
let users = 0;
/** Returned to the parent, so that V8 cannot remove evaluations as unused. */
let on = 0;
let kept: unknown;
type Evaluate = (key: string, context: Context, fallback: boolean) => boolean;
type Context = Readonly<Record<string, string | number>>;

const loops: Record<Loop, Evaluate> = {
  client: (key, context, fallback) => client.isEnabled(key, context, fallback),
  baseline(key, context, fallback) {
    // An object that is kept cannot be removed by the compiler.
    kept = context;
    return key === "" ? !fallback : fallback;
  },
};

const api = {
  async connect(options: { sdk: string; url: string; key: string; flags: number }) {
    const { createClient } = (await import(options.sdk)) as ServerSdk;
    client = createClient({ baseUrl: options.url, serverKey: options.key });
    if (!(await client.ready())) throw new Error("the client has no flags");
    flags = targetedFlags(options.flags);
  },

  /** Evaluates at a rate. Returns the CPU time as a percentage of a core. */
  async pace(rate: number, durationMs: number, run: Run) {
    const evaluateNext = begin(run);
    const beganMs = nowMs();
    const usedMs = cpuClock();
    let done = 0;
    for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = nowMs() - beganMs) {
      const due = Math.floor((elapsedMs * rate) / 1e3);
      for (; done < due; done += 1) evaluateNext();
      await delay(tickMs);
    }
    const tookMs = nowMs() - beganMs;
    return { percent: (100 * usedMs()) / tookMs, perSecond: (1e3 * done) / tookMs, ...seen() };
  },

  /** Evaluates without pauses. Returns the CPU time of one evaluation. */
  repeat(evaluations: number, run: Run) {
    const evaluateNext = begin(run);
    const usedMs = cpuClock();
    for (let done = 0; done < evaluations; done += 1) evaluateNext();
    return { nanoseconds: (1e6 * usedMs()) / evaluations, ...seen() };
  },
};
export type ApplicationApi = typeof api;
answerParent(api);

function begin({ loop, flagKinds }: Run): () => void {
  keys = flags.filter(({ kind }) => flagKinds.includes(kind)).map(({ key }) => key);
  const evaluate = loops[loop];
  return () => {
    const { user_id: id, country, plan, app_version, age } = userNamed(`user-${users}`, users);
    const context = { id, country, plan, app_version, age };
    if (evaluate(keys[users % keys.length] as string, context, false)) on += 1;
    users += 1;
  };
}

/** Measures the CPU time of all threads, which includes garbage collection and the client's own work. */
function cpuClock(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e3;
  };
}

const seen = () => ({ on, kept: kept === undefined ? 0 : 1 });
