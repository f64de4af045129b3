import type { EventSourceMessage } from "eventsource-parser";
import type { HalyardError } from "../halyard-error.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";
import { format, parseRulesEvent } from "../rules/parse-rules.ts";
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
  type PlanContext,
} from "./plan.ts";
import { type Receipt, readStream, type StreamEnd } from "./read-stream.ts";
import { watchForSuspension } from "./suspension.ts";

/** Events of the connection that the client handles. */
export type ConnectionEvents = {
  /** The flags in memory are those of the service. `changed` are the keys whose settings changed. */
  confirmed(source: "stream" | "poll", changed: readonly string[]): void;
  /** Changes no longer arrive: an open stream ended, or a poll failed. */
  lost(): void;
  /** An attempt failed. After a fatal error, the connection has stopped. */
  failed(error: HalyardError): void;
};

type Connection = { stop(): void };

type ConnectionOptions = {
  settings: Pick<Settings, "baseUrl" | "serverKey" | "pollIntervalMs">;
  platform: Platform;
  ruleSet: RuleSet;
  events: ConnectionEvents;
};

/** Keeps the flags in memory equal to those of the service, by a stream or by polls; see `Plan`. */
export function openConnection(options: ConnectionOptions): Connection {
  const connection = new PlannedConnection(options);
  connection.start();
  return { stop: () => connection.stop() };
}

/** Makes one attempt at a time, a stream or a poll, as its plan says. */
class PlannedConnection {
  readonly #options: ConnectionOptions;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  #plan: Plan;
  #attempt: AbortController | undefined = undefined;
  #cancelWait: (() => void) | undefined = undefined;
  #stopWatching: (() => void) | undefined = undefined;
  #stopped = false;

  constructor(options: ConnectionOptions) {
    const { settings, platform } = options;
    this.#options = options;
    this.#url = `${settings.baseUrl}/api/v1/sdk/ruleset`;
    this.#headers = { authorization: `Bearer ${settings.serverKey}` };
    this.#plan = firstPlan(platform.clock.monotonicMs(), platform.random);
  }

  start(): void {
    this.#stopWatching = watchForSuspension(this.#options.platform.clock, () => this.#resume());
    this.#step();
  }

  stop(): void {
    this.#stopped = true;
    this.#stopWatching?.();
    this.#cancelWait?.();
    this.#attempt?.abort({ kind: "ended_by_client" });
  }

  #step(): void {
    if (this.#stopped) return;
    const { clock } = this.#options.platform;
    const { kind, atMs } = nextStep(this.#plan);
    this.#cancelWait = clock.after(Math.max(0, atMs - clock.monotonicMs()), () => {
      this.#cancelWait = undefined;
      void (kind === "stream" ? this.#stream() : this.#poll());
    });
  }

  async #stream(): Promise<void> {
    const { platform, ruleSet, events } = this.#options;
    const { clock } = platform;
    const attempt = new AbortController();
    this.#attempt = attempt;
    let confirmedAtMs: number | undefined;
    const end = await readStream({
      url: `${this.#url}/stream${formatQuery}`,
      headers: streamHeaders(this.#headers, ruleSet.etag),
      platform,
      attempt,
      receive: (event) => {
        const receipt = this.#take(event);
        if (receipt === "confirmed") confirmedAtMs ??= clock.monotonicMs();
        return receipt;
      },
    });
    this.#attempt = undefined;
    const nowMs = clock.monotonicMs();
    if (confirmedAtMs !== undefined && !this.#stopped) events.lost();
    const openMs = confirmedAtMs === undefined ? undefined : nowMs - confirmedAtMs;
    this.#settle(end, () => afterStream(this.#plan, { end, openMs }, this.#planContext(nowMs)));
  }

  #take(event: EventSourceMessage): Receipt {
    const applied = applyEvent(this.#options.ruleSet, event);
    if (applied === "ignored" || "problem" in applied) return applied;
    this.#confirm("stream", applied.changed);
    return "confirmed";
  }

  async #poll(): Promise<void> {
    const { platform, ruleSet } = this.#options;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const { etag } = ruleSet;
    const request = {
      url: `${this.#url}${formatQuery}`,
      headers: this.#headers,
      etag,
      platform,
      attempt,
    };
    const result = await fetchRules(request);
    this.#attempt = undefined;
    if (this.#stopped) return;
    if (result.kind === "rules")
      this.#confirm("poll", ruleSet.replace(result.rules, result.etag, "poll"));
    else if (result.kind === "unchanged") this.#confirm("poll", []);
    else if (result.kind !== "ended_by_client") this.#options.events.lost();
    this.#settle(result, () =>
      afterPoll(this.#plan, result, this.#planContext(platform.clock.monotonicMs())),
    );
  }

  #confirm(source: "stream" | "poll", changed: readonly string[]): void {
    if (source === "stream" && this.#plan.polls) this.#plan = { ...this.#plan, polls: false };
    this.#options.ruleSet.confirm(source);
    this.#options.events.confirmed(source, changed);
  }

  /** Continues after an attempt. */
  #settle(outcome: StreamEnd | PollResult, next: () => Plan): void {
    if (this.#stopped) return;
    if (outcome.kind !== "ended_by_client") this.#plan = next();
    if (isFinal(outcome)) this.stop();
    const error = describeFailure(outcome, this.#options.settings.baseUrl);
    if (error !== undefined) this.#options.events.failed(error);
    this.#step();
  }

  #planContext(nowMs: number): PlanContext {
    const { platform, settings } = this.#options;
    return { nowMs, random: platform.random, pollIntervalMs: settings.pollIntervalMs };
  }

  #resume(): void {
    this.#plan = afterResume(this.#plan, this.#options.platform.clock.monotonicMs());
    if (this.#attempt !== undefined) {
      this.#attempt.abort({ kind: "ended_by_client" });
      return;
    }
    this.#cancelWait?.();
    this.#step();
  }
}

const formatQuery = `?format=${format}`;

function streamHeaders(
  headers: Record<string, string>,
  etag: string | undefined,
): Record<string, string> {
  return {
    ...headers,
    accept: "text/event-stream",
    ...(etag === undefined ? {} : { "last-event-id": etag }),
  };
}

/** Result of an event for the flags in memory. With `changed`, they are now those of the service. */
type Applied = { changed: readonly string[] } | "ignored" | { problem: string };

/** Applies an event of the stream to the flags in memory. */
function applyEvent(ruleSet: RuleSet, { event, id, data }: EventSourceMessage): Applied {
  // The service sends its flags before the first heartbeat, unless the client has them.
  if (event === "heartbeat") return ruleSet.etag === undefined ? "ignored" : { changed: [] };
  if (event !== "ruleset")
    return id === undefined || id === ruleSet.etag ? "ignored" : { problem: "unknown event" };
  const parsed = parseRulesEvent(data);
  if (!parsed.ok) return { problem: parsed.problem };
  if (id === undefined || id === "") return { problem: "the event has no id" };
  const { value: rules } = parsed;
  if (rules.full) return { changed: ruleSet.replace(rules, id, "stream") };
  if (ruleSet.etag === undefined || rules.environmentId !== ruleSet.environmentId)
    return { problem: "the event changes flags that the client does not have" };
  return { changed: ruleSet.apply(rules, id, "stream") };
}
