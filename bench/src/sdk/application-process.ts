import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@halyard/server-sdk";
import { nowMs } from "../clock.ts";
import { answerParent } from "../processes/answer-parent.ts";
import { type FlagKind, type TargetedFlag, targetedFlags } from "../targeting/targeted-flags.ts";
import { userNamed } from "../targeting/users.ts";
import type { ServerSdk } from "./installed-sdk.ts";
import type { ApplicationQuestion, Loop } from "./measured-application.ts";

/**
 * An application that evaluates flags at a steady rate, each for a new user. Its baseline is the same loop with a function
 * that only keeps its arguments.
 */

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
type Question<Kind> = Extract<ApplicationQuestion, { kind: Kind }>;

const loops: Record<Loop, Evaluate> = {
  client: (key, context, fallback) => client.isEnabled(key, context, fallback),
  baseline(key, context, fallback) {
    // An object that is kept cannot be removed by the compiler.
    kept = context;
    return key === "" ? !fallback : fallback;
  },
};

answerParent<ApplicationQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "connect": {
        const { createClient } = (await import(question.sdk)) as ServerSdk;
        client = createClient({ baseUrl: question.url, serverKey: question.key });
        if (!(await client.ready())) throw new Error("the client has no flags");
        flags = targetedFlags(question.flags);
        return {};
      }
      case "pace":
        keys = keysOf(question.flagKinds);
        return paced(question);
      case "repeat":
        keys = keysOf(question.flagKinds);
        return repeated(question);
    }
  },
});

function keysOf(kinds: readonly FlagKind[]): string[] {
  return flags.filter(({ kind }) => kinds.includes(kind)).map(({ key }) => key);
}

/** Evaluates at a rate. Returns the CPU time as a percentage of a core. */
async function paced({ loop, perSecond: rate, durationMs }: Question<"pace">) {
  const evaluate = loops[loop];
  const beganMs = nowMs();
  const usedMs = cpuClock();
  let done = 0;
  for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = nowMs() - beganMs) {
    const due = Math.floor((elapsedMs * rate) / 1e3);
    for (; done < due; done += 1) evaluateNext(evaluate);
    await delay(tickMs);
  }
  const tookMs = nowMs() - beganMs;
  const percent = (100 * usedMs()) / tookMs;
  const perSecond = (1e3 * done) / tookMs;
  return { percent, perSecond, ...seen() };
}

/** Evaluates without pauses. Returns the CPU time of one evaluation. */
function repeated({ loop, evaluations }: Question<"repeat">) {
  const evaluate = loops[loop];
  const usedMs = cpuClock();
  for (let done = 0; done < evaluations; done += 1) evaluateNext(evaluate);
  const nanoseconds = (1e6 * usedMs()) / evaluations;
  return { nanoseconds, ...seen() };
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

function evaluateNext(evaluate: Evaluate): void {
  const { user_id: id, country, plan, app_version, age } = userNamed(`user-${users}`, users);
  const context = { id, country, plan, app_version, age };
  if (evaluate(keys[users % keys.length] as string, context, false)) on += 1;
  users += 1;
}
