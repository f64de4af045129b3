import type { EventSourceMessage } from "eventsource-parser";
import type { HalyardError } from "../halyard-error.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";
import { parseRulesEvent } from "../rules/parse-rules.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { describeFailure } from "./describe-failure.ts";
import { fetchRules, type PollResult } from "./fetch-rules.ts";
import {
  afterPoll,
  afterResume,
  afterStream,
  firstPlan,
  isFinal,
  nextStep,
  type Plan,
} from "./plan.ts";
import { type Receipt, readStream, type StreamEnd } from "./read-stream.ts";
import { watchForSuspension } from "./suspension.ts";

/** What the connection tells the client. */
export type ConnectionEvents = {
  /** The flags in memory are those of the service. `changed` are the keys whose settings changed. */
  confirmed(source: "stream" | "poll", changed: readonly string[]): void;
  /** An open stream ended. Changes no longer arrive. */
  streamEnded(): void;
  /** An attempt failed. After a fatal error, the connection has stopped. */
  failed(error: HalyardError): void;
};

export type Connection = { stop(): void };

type ConnectionOptions = {
  settings: Pick<Settings, "baseUrl" | "serverKey" | "pollIntervalMs">;
  platform: Platform;
  ruleSet: RuleSet;
  events: ConnectionEvents;
};

/** Keeps the flags in memory equal to those of the service, by a stream or by polls; see `Plan`. */
export function openConnection(options: ConnectionOptions): Connection {
  const { settings, platform, ruleSet, events } = options;
  const { clock, random } = platform;
  const url = `${settings.baseUrl}/api/v1/sdk/ruleset`;
  const headers = { authorization: `Bearer ${settings.serverKey}` };
  let plan = firstPlan(clock.monotonicMs());
  let attempt: AbortController | undefined;
  let cancelWait: (() => void) | undefined;
  let stopped = false;

  function step(): void {
    if (stopped) return;
    const { kind, atMs } = nextStep(plan);
    cancelWait = clock.after(Math.max(0, atMs - clock.monotonicMs()), () => {
      cancelWait = undefined;
      void (kind === "stream" ? stream() : poll());
    });
  }

  async function stream(): Promise<void> {
    const current = new AbortController();
    attempt = current;
    let confirmedAtMs: number | undefined;
    let retryMs: number | undefined;
    const { etag } = ruleSet;
    const end = await readStream({
      url: `${url}/stream`,
      headers: {
        ...headers,
        accept: "text/event-stream",
        ...(etag === undefined ? {} : { "last-event-id": etag }),
      },
      platform,
      attempt: current,
      onRetry: (delayMs) => {
        retryMs = delayMs;
      },
      receive(event) {
        const receipt = take(event);
        if (receipt === "confirmed") confirmedAtMs ??= clock.monotonicMs();
        return receipt;
      },
    });
    attempt = undefined;
    const nowMs = clock.monotonicMs();
    if (confirmedAtMs !== undefined && !stopped) events.streamEnded();
    const openMs = confirmedAtMs === undefined ? 0 : nowMs - confirmedAtMs;
    settle(end, () => afterStream(plan, { end, openMs, retryMs }, planContext(nowMs)));
  }

  /** Applies an event of the stream. */
  function take({ event, id, data }: EventSourceMessage): Receipt {
    if (event === "heartbeat") {
      // The service sends its flags before the first heartbeat, unless the client has them.
      if (ruleSet.etag === undefined) return "ignored";
      confirm("stream", []);
      return "confirmed";
    }
    if (event !== "ruleset")
      return id === undefined || id === ruleSet.etag ? "ignored" : { problem: "unknown event" };
    const parsed = parseRulesEvent(data);
    if (!parsed.ok) return parsed;
    if (id === undefined || id === "") return { problem: "the event has no id" };
    const { value: rules } = parsed;
    if (rules.full) {
      confirm("stream", ruleSet.replace(rules, id, "stream"));
      return "confirmed";
    }
    if (ruleSet.etag === undefined || rules.environmentId !== ruleSet.environmentId)
      return { problem: "the event changes flags that the client does not have" };
    confirm("stream", ruleSet.apply(rules, id, "stream"));
    return "confirmed";
  }

  async function poll(): Promise<void> {
    const current = new AbortController();
    attempt = current;
    const { etag } = ruleSet;
    const result = await fetchRules({ url, headers, etag, platform, attempt: current });
    attempt = undefined;
    if (stopped) return;
    if (result.kind === "rules")
      confirm("poll", ruleSet.replace(result.rules, result.etag, "poll"));
    if (result.kind === "unchanged") confirm("poll", []);
    settle(result, () => afterPoll(plan, result, planContext(clock.monotonicMs())));
  }

  function confirm(source: "stream" | "poll", changed: readonly string[]): void {
    if (source === "stream" && plan.polls) plan = { ...plan, polls: false };
    ruleSet.confirm(source);
    events.confirmed(source, changed);
  }

  /** Continues after an attempt. */
  function settle(outcome: StreamEnd | PollResult, next: () => Plan): void {
    if (stopped) return;
    if (outcome.kind !== "ended_by_client") plan = next();
    if (isFinal(outcome)) stop();
    const error = describeFailure(outcome);
    if (error !== undefined) events.failed(error);
    step();
  }

  function planContext(nowMs: number) {
    return { nowMs, random, pollIntervalMs: settings.pollIntervalMs };
  }

  function resume(): void {
    plan = afterResume(plan, clock.monotonicMs());
    if (attempt !== undefined) {
      attempt.abort({ kind: "ended_by_client" });
      return;
    }
    cancelWait?.();
    step();
  }

  const stopWatching = watchForSuspension(clock, resume);

  function stop(): void {
    stopped = true;
    stopWatching();
    cancelWait?.();
    attempt?.abort({ kind: "ended_by_client" });
  }

  step();
  return { stop };
}
