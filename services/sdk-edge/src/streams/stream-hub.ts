import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { heartbeatEvent, retryLine } from "@halyard/service";
import { type ChangedFlag, changedFlags, deltaFor, deltaInSteps } from "../environment/delta.ts";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import { tagInSteps, valuesInSteps } from "../environment/outcomes-in-steps.ts";
import { createFairScheduler, type Steps } from "./fair-scheduler.ts";
import {
  createStreamGroups,
  hasRoomOrFallsBehind,
  type OpenStreams,
  type Stream,
  type StreamCounts,
  sinkOf,
} from "./stream.ts";
import { catchUpEvent, deltaEvent, fullEvent } from "./stream-events.ts";

/**
 * The open streams of values. `notify` is called after the new values have replaced the old ones. So a client that
 * received an event never gets older values from a request.
 *
 * A change takes this path. `notify` finds the streams of the environment. `differenceBetween` compares the view that a
 * stream was sent last with the current one. `eventFor` evaluates the flags that differ. `send` writes the event to the
 * socket. A change that arrives before a stream is visited is part of that difference.
 *
 * Streams without a context share one event, which is written immediately. Streams with a context are evaluated in time
 * slices. If that may take long, it is done one condition at a time.
 */
export type StreamHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: Listener): void;
  /** Sends each stream of an environment its changed values. */
  notify(environmentId: string): void;
  stop(): void;
};

export type Listener = {
  key: DirectoryKey;
  context: EvaluationContext;
  /** True if comparisons with the context may take long. */
  hasLargeContext: boolean;
  /** The view with which the context was evaluated. */
  view: EnvironmentView;
  values: FlagValues;
  /** The tag of the values that the client received on an earlier stream. */
  lastEventId: string | undefined;
};

type FlagsStream = Stream & {
  readonly organizationId: string;
  /** `emptyContext` itself if the client sent none. */
  readonly context: EvaluationContext;
  readonly hasLargeContext: boolean;
  /** The view whose values the client has. */
  sentView: EnvironmentView;
  /** True if the client was behind. The next event then contains all values. */
  hasMissed: boolean;
};

type HubOptions = {
  openStreams: OpenStreams;
  views: EnvironmentViews;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
};

export function createStreamHub(options: HubOptions): StreamHub {
  const { openStreams, views, counts, now, monotonicMs } = options;
  const groups = createStreamGroups<FlagsStream>();
  const scheduler = createFairScheduler<FlagsStream>({ work, monotonicMs });
  const differenceBetween = createViewDifferences();

  /** Sends to streams without a context immediately, and queues the others for a visit. */
  function sendOrQueue(environmentId: string, streams: Iterable<FlagsStream>): void {
    const view = views.of(environmentId);
    const targeted: FlagsStream[] = [];
    for (const stream of streams)
      if (stream.context !== emptyContext) targeted.push(stream);
      else if (isReadyOrFallsBehind(stream, view)) {
        const difference = differenceBetween(stream.sentView, view);
        send(stream, view, eventWithoutContext(stream, view, difference));
      }
    const [first] = targeted;
    if (first !== undefined) scheduler.add(first.organizationId, environmentId, targeted);
  }

  function* work(stream: FlagsStream): Steps {
    const view = views.of(stream.environmentId);
    if (!isReadyOrFallsBehind(stream, view)) return;
    const difference = differenceBetween(stream.sentView, view);
    const event = takesLong(stream, view)
      ? yield* eventInSteps(stream, view, difference)
      : eventFor(stream, view, difference);
    // Heartbeats may have filled the stream's send buffer meanwhile.
    if (isReadyOrFallsBehind(stream, view)) send(stream, view, event);
  }

  /**
   * Returns whether an event for this view can be sent. A client that has the view has missed nothing. A client without
   * room falls behind, and receives all values when it has caught up.
   */
  function isReadyOrFallsBehind(stream: FlagsStream, view: EnvironmentView): boolean {
    const onCaughtUp = () => {
      stream.hasMissed = true;
      sendOrQueue(stream.environmentId, [stream]);
    };
    if (stream.sentView !== view) return hasRoomOrFallsBehind(stream, { nowMs: now(), onCaughtUp });
    stream.hasMissed = false;
    return false;
  }

  /** Writes the event, unless it is null. The client then has the values of the view. */
  function send(stream: FlagsStream, view: EnvironmentView, event: Buffer | null): void {
    stream.sentView = view;
    stream.hasMissed = false;
    if (event === null) return;
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  return {
    open(response, listener) {
      const stream = sendFirstEvents(response, listener, options);
      const { organizationId, environmentId, sentView } = stream;
      groups.add(stream);
      openStreams.add(stream, () => {
        groups.remove(stream);
        scheduler.remove(organizationId, environmentId, stream);
      });
      // The flags may have changed while the values were evaluated.
      if (views.of(environmentId) !== sentView) sendOrQueue(environmentId, [stream]);
    },
    notify: (environmentId) => sendOrQueue(environmentId, groups.of(environmentId)),
    stop: scheduler.stop,
  };
}

/** Begins a stream with the values, unless the client has them, and a heartbeat. */
function sendFirstEvents(
  response: ServerResponse,
  { key, context, hasLargeContext, view, values, lastEventId }: Listener,
  { counts, now, random }: Pick<HubOptions, "counts" | "now" | "random">,
): FlagsStream {
  const known = lastEventId === values.etag;
  const heartbeat = Buffer.from(heartbeatEvent(now()));
  const retry = Buffer.from(retryLine(random));
  response.write(Buffer.concat(known ? [retry, heartbeat] : [retry, fullEvent(values), heartbeat]));
  counts.heartbeat += 1;
  if (!known) counts.flags += 1;
  const { id: keyId, organizationId, environmentId } = key;
  return {
    kind: "flags",
    response,
    ...{ keyId, organizationId, environmentId, context, hasLargeContext },
    sentView: view,
    hasMissed: false,
    behind: undefined,
    closeCause: "client",
  };
}

/** The flags that differ between two views, with the events that streams have in common. */
type ViewDifference = {
  /**
   * Held weakly. Otherwise the view of a slow client would keep all later views in memory, each through the one before.
   */
  to: WeakRef<EnvironmentView>;
  flags: readonly ChangedFlag[];
  byText: Map<string, Buffer>;
  /** The event for streams without a context. null: no value differs for them; undefined: not created yet. */
  withoutContext: Buffer | null | undefined;
};

/**
 * Returns a function that finds the difference between two views. A difference is kept while a stream has the older
 * view.
 */
function createViewDifferences() {
  const differences = new WeakMap<EnvironmentView, ViewDifference>();
  return (from: EnvironmentView, to: EnvironmentView): ViewDifference => {
    let difference = differences.get(from);
    if (difference?.to.deref() !== to) {
      const flags = changedFlags(from, to);
      difference = { to: new WeakRef(to), flags, byText: new Map(), withoutContext: undefined };
      differences.set(from, difference);
    }
    return difference;
  };
}

/**
 * Returns the event for a stream: the values that differ and the current tag, or all values if the client was behind.
 * null: no value differs. Only changed flags are evaluated to find out. All flags, for the tag, are evaluated only if a
 * value differs.
 */
function eventFor(
  { context, hasMissed }: FlagsStream,
  view: EnvironmentView,
  difference: ViewDifference,
): Buffer | null {
  const delta = deltaFor(context, difference.flags);
  if (delta === undefined) return null;
  if (hasMissed) return catchUpEvent(view.valuesFor(context), delta.removed);
  return sharedEvent(difference, deltaEvent(view.tagFor(context), delta));
}

/** Returns the event for a stream without a context. All such streams share it. */
function eventWithoutContext(
  stream: FlagsStream,
  view: EnvironmentView,
  difference: ViewDifference,
): Buffer | null {
  if (stream.hasMissed) return eventFor(stream, view, difference);
  if (difference.withoutContext === undefined)
    difference.withoutContext = eventFor(stream, view, difference);
  return difference.withoutContext;
}

/** Returns the same event as `eventFor`, one condition at a time. */
function* eventInSteps(
  { context, hasMissed }: FlagsStream,
  view: EnvironmentView,
  difference: ViewDifference,
): Generator<undefined, Buffer | null> {
  const delta = yield* deltaInSteps(context, difference.flags);
  if (delta === undefined) return null;
  if (hasMissed) return catchUpEvent(yield* valuesInSteps(view, context), delta.removed);
  return sharedEvent(difference, deltaEvent(yield* tagInSteps(view, context), delta));
}

/** Returns the bytes of a text. Streams with the same text share them. */
function sharedEvent({ byText }: ViewDifference, text: string): Buffer {
  const event = byText.get(text) ?? Buffer.from(text);
  byText.set(text, event);
  return event;
}

/** Returns whether the flags are evaluated condition by condition for a stream with a context. */
function takesLong({ sentView, hasLargeContext }: FlagsStream, view: EnvironmentView): boolean {
  return hasLargeContext || sentView.isCostly || view.isCostly;
}
