import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
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
import { catchUpEvent, deltaEvent, fullEvent, heartbeatEvent, retryLine } from "./stream-events.ts";

/**
 * The open streams of values. `notify` is called after the new values have replaced the old ones, so a reader
 * that received an event never gets older values from a request.
 *
 * A change takes this path: `notify` finds the streams of the environment, `eventFor` compares the view that a
 * stream was sent last with the present one, `send` writes the difference to the socket. A change that comes
 * before a visit to the stream is part of that difference.
 *
 * Streams without a context share one event, which is written at once. Streams with a context are
 * evaluated in time slices; where that may take long, condition by condition.
 */
export type StreamHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: Listener): void;
  /** Sends the streams of an environment what has changed for each of them. */
  notify(environmentId: string): void;
  stop(): void;
};

export type Listener = {
  key: DirectoryKey;
  context: EvaluationContext;
  /** Whether comparing with the context may take long. */
  hasLargeContext: boolean;
  /** The view by which the context was evaluated, and the values. */
  view: EnvironmentView;
  values: FlagValues;
  /** The tag of the values that the client has from an earlier stream. */
  lastEventId: string | undefined;
};

type FlagsStream = Stream & {
  readonly organizationId: string;
  /** `emptyContext` itself if the client sent none. */
  readonly context: EvaluationContext;
  readonly hasLargeContext: boolean;
  /** The view whose values were sent last. */
  sentView: EnvironmentView;
  /** The reader was behind, and gets all values next. */
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

  /** Sends to streams without a context immediately. Queues the others for a visit. */
  function sendOrQueue(environmentId: string, streams: Iterable<FlagsStream>): void {
    const view = views.of(environmentId);
    const targeted: FlagsStream[] = [];
    for (const stream of streams)
      if (stream.context !== emptyContext) targeted.push(stream);
      else if (isReadyOrFallsBehind(stream, view))
        send(
          stream,
          view,
          eventWithoutContext(stream, view, differenceBetween(stream.sentView, view)),
        );
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
    // Heartbeats may have filled the room of a reader meanwhile.
    if (isReadyOrFallsBehind(stream, view)) send(stream, view, event);
  }

  /**
   * Returns whether an event for this view can be sent. A reader that has the view already has missed nothing. A
   * reader without room falls behind, and is sent all values when it has caught up.
   */
  function isReadyOrFallsBehind(stream: FlagsStream, view: EnvironmentView): boolean {
    if (stream.sentView !== view) return hasRoomOrFallsBehind(stream, { nowMs: now(), onCaughtUp });
    stream.hasMissed = false;
    return false;

    function onCaughtUp(): void {
      stream.hasMissed = true;
      sendOrQueue(stream.environmentId, [stream]);
    }
  }

  /** Writes the event, unless it is null. The reader then has the values of the view. */
  function send(stream: FlagsStream, view: EnvironmentView, event: Buffer | null): void {
    stream.sentView = view;
    stream.hasMissed = false;
    if (event === null) return;
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  return {
    open(response, listener) {
      const stream = beginStream(response, listener, options);
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

/** Writes the values, unless the client has them, and a heartbeat. */
function beginStream(
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
    cause: "client",
  };
}

/** The flags that differ between two views, with the events that streams have in common. */
type ViewDifference = {
  /** Held weakly: the view of a slow reader would otherwise keep all later ones, each by the one before. */
  to: WeakRef<EnvironmentView>;
  flags: readonly ChangedFlag[];
  byText: Map<string, Buffer>;
  /** For streams without a context. null: nothing differs for them; undefined: not made yet. */
  withoutContext: Buffer | null | undefined;
};

/** A difference is kept while a stream exists that has not been sent it. */
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
 * Returns the event for a stream: the values that differ, under the present tag, or, after the reader was behind, all
 * values. null: no value differs for it. Only changed flags are evaluated to find that out; all flags, for the tag,
 * only if one of the values differs.
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

/** Streams without a context get the same event for the same change. */
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

/** The same as `eventFor`, one condition after the other. */
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

/** Streams with the same text share its bytes. */
function sharedEvent({ byText }: ViewDifference, text: string): Buffer {
  const event = byText.get(text) ?? Buffer.from(text);
  byText.set(text, event);
  return event;
}

/** Returns whether the flags are evaluated condition by condition for a stream with a context. */
function takesLong({ sentView, hasLargeContext }: FlagsStream, view: EnvironmentView): boolean {
  return hasLargeContext || sentView.isCostly || view.isCostly;
}
