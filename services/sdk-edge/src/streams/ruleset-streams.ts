import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { heartbeatEvent, retryLine } from "@halyard/http";
import { changedRules } from "../answers/changed-rules.ts";
import { type EnvironmentView, rememberBetween } from "../answers/environment-view.ts";
import { createFairScheduler, type Steps } from "../answers/fair-scheduler.ts";
import { deltaEvent } from "../answers/rulesets.ts";
import { OpenStream, rulesetHeartbeatIntervalMs, type StreamOptions } from "./stream-registry.ts";

/**
 * The open streams of rules. After a change, each stream receives the flags that differ between the view that it was
 * sent last and the current one. So a client that was behind receives everything that it missed in one event. Streams
 * with the same view share the bytes of the event.
 *
 * The events are written in time slices, because an event can be as large as the rules of a flag, and an environment
 * can have thousands of streams.
 */
export type RulesetStreams = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: RulesetListener): void;
  stop(): void;
};

export type RulesetListener = {
  key: DirectoryKey;
  /** The first event, in parts; empty if the client has the rules of the view. */
  firstEvent: readonly Buffer[];
  /** The view whose rules the client has after the first event. */
  view: EnvironmentView;
};

class RulesetStream extends OpenStream {
  /** The view whose rules the client has. */
  sentView: EnvironmentView;

  constructor(response: ServerResponse, { key, view }: RulesetListener) {
    super("ruleset", response, key);
    this.sentView = view;
  }
}

export function createRulesetStreams(options: StreamOptions): RulesetStreams {
  const { openStreams, views, tagOf, now, monotonicMs } = options;
  const { counts } = openStreams;
  const scheduler = createFairScheduler<RulesetStream>({ work, monotonicMs });
  const streams = openStreams.ofKind<RulesetStream>({
    notify(environmentId, some) {
      const [first] = some;
      if (first !== undefined) scheduler.add(first.key.organizationId, environmentId, some);
    },
    onClose: (stream) =>
      scheduler.remove(stream.key.organizationId, stream.key.environmentId, stream),
  });
  const eventBetween = rememberBetween((from, view, environmentId) => {
    const changed = changedRules(from, view);
    return deltaEvent({ environmentId, view, tag: tagOf(environmentId), changed });
  });

  function work(stream: RulesetStream): Steps {
    send(stream);
    return noFurtherSteps;
  }

  function send(stream: RulesetStream): void {
    const { environmentId } = stream.key;
    const view = views.of(environmentId);
    if (stream.sentView === view) return;
    if (!stream.hasRoomOrFallsBehind(now(), () => send(stream))) return;
    stream.sink.write(eventBetween(stream.sentView, view, environmentId));
    stream.sentView = view;
    counts.ruleset += 1;
  }

  return {
    open(response, listener) {
      sendFirstEvents(response, listener, options);
      const stream = new RulesetStream(response, listener);
      streams.add(stream);
      // The flags may have changed while the first event was prepared.
      send(stream);
    },

    stop: scheduler.stop,
  };
}

const noFurtherSteps: Steps = (function* () {})();

/** Begins a stream with the first event and a heartbeat, which names the interval of the next ones. */
function sendFirstEvents(
  response: ServerResponse,
  { firstEvent }: RulesetListener,
  { openStreams: { counts }, now, random }: StreamOptions,
): void {
  response.cork();
  response.write(retryLine(random));
  for (const part of firstEvent) response.write(part);
  response.write(heartbeatEvent(now(), { intervalMs: rulesetHeartbeatIntervalMs }));
  response.uncork();
  counts.heartbeat += 1;
  if (firstEvent.length > 0) counts.ruleset += 1;
}
