import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { heartbeatEvent, retryLine } from "@halyard/service";
import type { ConfigurationTag } from "../environment/configuration-tag.ts";
import { changedFlags } from "../environment/delta.ts";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import { deltaEvent } from "../environment/ruleset-json.ts";
import { createFairScheduler, type Steps } from "./fair-scheduler.ts";
import {
  createStreamGroups,
  hasRoomOrFallsBehind,
  type OpenStreams,
  type Stream,
  type StreamCounts,
  sinkOf,
} from "./stream.ts";

/**
 * The open streams of rules. After a change, each stream receives the flags that differ between the view that it was
 * sent last and the current one. So a client that was behind receives everything that it missed in one event. Streams
 * with the same view share the bytes of the event.
 *
 * The events are written in time slices, because an event can be as large as the rules of a flag, and an environment
 * can have thousands of streams.
 */
export type RulesetHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: RulesetListener): void;
  /** Sends each stream of an environment the changed flags. */
  notify(environmentId: string): void;
  stop(): void;
};

export type RulesetListener = {
  key: DirectoryKey;
  /** The first event, in parts; empty if the client has the rules of the view. */
  firstEvent: readonly Buffer[];
  /** The view whose rules the client has after the first event. */
  view: EnvironmentView;
};

type RulesetStream = Stream & {
  readonly organizationId: string;
  /** The view whose rules the client has. */
  sentView: EnvironmentView;
};

type HubOptions = {
  openStreams: OpenStreams;
  views: EnvironmentViews;
  tagOf: (environmentId: string) => ConfigurationTag;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
};

export function createRulesetHub(options: HubOptions): RulesetHub {
  const { openStreams, views, tagOf, counts, now, monotonicMs } = options;
  const groups = createStreamGroups<RulesetStream>();
  const scheduler = createFairScheduler<RulesetStream>({ work, monotonicMs });
  const eventBetween = createSharedEvents(tagOf);

  function work(stream: RulesetStream): Steps {
    send(stream);
    return noFurtherSteps;
  }

  function send(stream: RulesetStream): void {
    const { environmentId } = stream;
    const view = views.of(environmentId);
    if (stream.sentView === view) return;
    const onCaughtUp = () => send(stream);
    if (!hasRoomOrFallsBehind(stream, { nowMs: now(), onCaughtUp })) return;
    sinkOf(stream).write(eventBetween(environmentId, stream.sentView, view));
    stream.sentView = view;
    counts.ruleset += 1;
  }

  return {
    open(response, listener) {
      const stream = sendFirstEvents(response, listener, options);
      const { organizationId, environmentId } = stream;
      groups.add(stream);
      openStreams.add(stream, () => {
        groups.remove(stream);
        scheduler.remove(organizationId, environmentId, stream);
      });
      // The flags may have changed while the first event was prepared.
      send(stream);
    },

    notify(environmentId) {
      const streams = groups.of(environmentId);
      const [first] = streams;
      if (first !== undefined) scheduler.add(first.organizationId, environmentId, streams);
    },

    stop: scheduler.stop,
  };
}

const noFurtherSteps: Steps = (function* () {})();

/** Begins a stream with the first event and a heartbeat. */
function sendFirstEvents(
  response: ServerResponse,
  { key, firstEvent, view }: RulesetListener,
  { counts, now, random }: Pick<HubOptions, "counts" | "now" | "random">,
): RulesetStream {
  response.cork();
  response.write(retryLine(random));
  for (const part of firstEvent) response.write(part);
  response.write(heartbeatEvent(now()));
  response.uncork();
  counts.heartbeat += 1;
  if (firstEvent.length > 0) counts.ruleset += 1;
  const { id: keyId, organizationId, environmentId } = key;
  return {
    kind: "ruleset",
    response,
    ...{ keyId, organizationId, environmentId },
    sentView: view,
    behind: undefined,
    closeCause: "client",
  };
}

/**
 * Returns a function that creates the event between two views. An event is kept while a stream has the older view. The
 * newer view is held weakly. Otherwise the view of a slow client would keep all later views in memory.
 */
function createSharedEvents(tagOf: HubOptions["tagOf"]) {
  const events = new WeakMap<EnvironmentView, { to: WeakRef<EnvironmentView>; bytes: Buffer }>();
  return (environmentId: string, from: EnvironmentView, to: EnvironmentView): Buffer => {
    const known = events.get(from);
    if (known?.to.deref() === to) return known.bytes;
    const keys = changedFlags(from, to).map(({ key }) => key);
    const bytes = deltaEvent({ environmentId, view: to, tag: tagOf(environmentId), keys });
    events.set(from, { to: new WeakRef(to), bytes });
    return bytes;
  };
}
