import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import { tagInSteps, valuesInSteps } from "../environment/outcomes-in-steps.ts";
import {
  differenceFor,
  differenceInSteps,
  type FlagChange,
  flagChanges,
} from "../environment/view-difference.ts";
import { createSlices, type Steps } from "./slices.ts";
import {
  createStreamGroups,
  hasRoomOrFallsBehind,
  type Stream,
  type StreamCounts,
  type StreamRegistry,
  sinkOf,
  streamSlots,
} from "./stream.ts";
import {
  catchUpEvent,
  changeEvent,
  fullEvent,
  heartbeatEvent,
  retryLine,
} from "./stream-events.ts";

/**
 * The open streams of values. `announce` is called after the new values have replaced the old ones, so a reader
 * that received an event never gets older values from a request.
 *
 * A change takes this path: `announce` finds the streams of the environment, `eventFor` compares the view that a
 * stream was sent last with the present one, `send` writes the difference to the socket. A change that comes
 * before a stream's turn is part of that difference.
 *
 * Streams without a context share one event, which is written at once. Streams with a context are
 * evaluated in time slices; where that may take long, condition by condition.
 */
export type StreamHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: Listener): void;
  /** Sends the streams of an environment what has changed for each of them. */
  announce(environmentId: string): void;
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

export function createStreamHub(options: {
  registry: StreamRegistry;
  views: EnvironmentViews;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  elapsed: () => number;
}): StreamHub {
  const { registry, views, counts, now, random, elapsed } = options;
  const groups = createStreamGroups<FlagsStream>();
  const slices = createSlices<FlagsStream>({ visit, elapsed });
  const changeBetween = createChanges();
  let opened = 0;

  function announce(environmentId: string, streams: Iterable<FlagsStream>): void {
    const view = views.of(environmentId);
    const targeted: FlagsStream[] = [];
    for (const stream of streams)
      if (stream.context !== emptyContext) targeted.push(stream);
      else if (isDue(stream, view)) send(stream, view, eventForNobody(stream, view));
    const [first] = targeted;
    if (first !== undefined) slices.add(first.organizationId, environmentId, targeted);
  }

  function* visit(stream: FlagsStream): Steps {
    const view = views.of(stream.environmentId);
    if (!isDue(stream, view)) return;
    const event = yield* eventFor(stream, view, changeBetween(stream.sentView, view));
    // Heartbeats may have filled the room of a reader meanwhile.
    if (isDue(stream, view)) send(stream, view, event);
  }

  /** Returns whether the stream has room, and was not sent the values of this view. */
  function isDue(stream: FlagsStream, view: EnvironmentView): boolean {
    if (stream.sentView !== view) return hasRoomOrFallsBehind(stream, { nowMs: now(), onCaughtUp });
    stream.hasMissed = false;
    return false;

    function onCaughtUp(): void {
      stream.hasMissed = true;
      announce(stream.environmentId, [stream]);
    }
  }

  /** Streams without a context get the same event for the same change. */
  function eventForNobody(stream: FlagsStream, view: EnvironmentView): Buffer | undefined {
    const change = changeBetween(stream.sentView, view);
    if (stream.hasMissed) return complete(eventFor(stream, view, change));
    change.forNobody ??= { event: complete(eventFor(stream, view, change)) };
    return change.forNobody.event;
  }

  function send(stream: FlagsStream, view: EnvironmentView, event: Buffer | undefined): void {
    stream.sentView = view;
    stream.hasMissed = false;
    if (event === undefined) return;
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  return {
    open(response, { key, context, hasLargeContext, view, values, lastEventId }) {
      const known = lastEventId === values.etag;
      const heartbeat = Buffer.from(heartbeatEvent(now()));
      const retry = Buffer.from(retryLine(random));
      response.write(
        Buffer.concat(known ? [retry, heartbeat] : [retry, fullEvent(values), heartbeat]),
      );
      counts.heartbeat += 1;
      if (!known) counts.flags += 1;

      opened += 1;
      const { id: keyId, organizationId, environmentId } = key;
      const stream: FlagsStream = {
        kind: "flags",
        response,
        ...{ keyId, organizationId, environmentId, context, hasLargeContext },
        sentView: view,
        hasMissed: false,
        slot: opened % streamSlots,
        behind: undefined,
        cause: "client",
      };
      registry.add(stream);
      groups.add(stream);
      response.once("close", () => {
        registry.remove(stream);
        groups.remove(stream);
        slices.remove(organizationId, environmentId, stream);
        counts.closed[stream.cause] += 1;
      });
      // The flags may have changed while the values were evaluated.
      if (views.of(environmentId) !== view) announce(environmentId, [stream]);
    },

    announce: (environmentId) => announce(environmentId, groups.of(environmentId)),
    stop: slices.stop,
  };
}

/** The change from one view to another, with the events that streams have in common. */
type Change = {
  /** Held weakly: the view of a slow reader would otherwise keep all later ones, each by the one before. */
  to: WeakRef<EnvironmentView>;
  flags: readonly FlagChange[];
  byText: Map<string, Buffer>;
  forNobody: { event: Buffer | undefined } | undefined;
};

/** A change is kept while a stream exists that has not been sent it. */
function createChanges() {
  const changes = new WeakMap<EnvironmentView, Change>();
  return (from: EnvironmentView, to: EnvironmentView): Change => {
    let change = changes.get(from);
    if (change?.to.deref() !== to) {
      const flags = flagChanges(from, to);
      change = { to: new WeakRef(to), flags, byText: new Map(), forNobody: undefined };
      changes.set(from, change);
    }
    return change;
  };
}

/**
 * Returns what a change means for a stream: the values that differ under the present tag or, after the reader
 * was behind, all values. Undefined: nothing has changed for it. Only changed flags are evaluated to find that
 * out; all flags, for the tag, only if one of the values differs.
 */
function* eventFor(
  stream: FlagsStream,
  view: EnvironmentView,
  { flags, byText }: Change,
): Generator<undefined, Buffer | undefined> {
  const { context, hasMissed } = stream;
  const inSteps = takesLong(stream, view);
  const difference = inSteps
    ? yield* differenceInSteps(context, flags)
    : differenceFor(context, flags);
  if (difference === undefined) return undefined;
  if (hasMissed) {
    const values = inSteps ? yield* valuesInSteps(view, context) : view.valuesFor(context);
    return catchUpEvent(values, difference.removed);
  }
  const tag = inSteps ? yield* tagInSteps(view, context) : view.tagFor(context);
  const text = changeEvent(tag, difference);
  const event = byText.get(text) ?? Buffer.from(text);
  byText.set(text, event);
  return event;
}

function takesLong({ context, sentView, hasLargeContext }: FlagsStream, view: EnvironmentView) {
  if (context === emptyContext) return false;
  return hasLargeContext || sentView.isCostly || view.isCostly;
}

/** Runs the generator to its end. */
function complete<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
