import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { heartbeatEvent, retryLine } from "@halyard/http";
import {
  type ChangedFlag,
  changedFlags,
  type Delta,
  deltaFor,
  type EnvironmentView,
  rememberBetween,
} from "../answers/environment-view.ts";
import { createFairScheduler, type Steps } from "../answers/fair-scheduler.ts";
import { asciiJson } from "../answers/flag-keys.ts";
import type { FlagValues } from "../answers/flag-values.ts";
import type { ValueForm } from "../answers/value-form.ts";
import { OpenStream, type StreamOptions } from "./stream-registry.ts";

/**
 * The open streams of values. The registry notifies them after the new values have replaced the old ones. So a client
 * that received an event never gets older values from a request.
 *
 * A change takes this path. The registry finds the streams of the environment. `differenceBetween` compares the view
 * that a stream was sent last with the current one. `eventFor` evaluates the flags that differ. `send` writes the event
 * to the socket. A change that arrives before a stream is visited is part of that difference.
 *
 * Streams without a context share one event, which is written immediately. Streams with a context are evaluated in time
 * slices. If that may take long, it is done one condition at a time.
 */
export type ValueStreams = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: Listener): void;
  stop(): void;
};

export type Listener = {
  key: DirectoryKey;
  context: EvaluationContext;
  /** True if comparisons with the context may take long. */
  hasLargeContext: boolean;
  /** The context was evaluated with this view. */
  view: EnvironmentView;
  form: ValueForm;
  values: FlagValues;
  /** The tag of the values that the client received on an earlier stream. */
  lastEventId: string | undefined;
};

class ValueStream extends OpenStream {
  /** `emptyContext` itself if the client sent none. */
  readonly context: EvaluationContext;
  readonly hasLargeContext: boolean;
  readonly form: ValueForm;
  /** The view whose values the client has. */
  sentView: EnvironmentView;
  /** True if the client was behind. The next event then contains all values. */
  hasMissed = false;

  constructor(response: ServerResponse, { key, context, hasLargeContext, form, view }: Listener) {
    super("flags", response, key);
    this.context = context;
    this.hasLargeContext = hasLargeContext;
    this.form = form;
    this.sentView = view;
  }
}

export function createValueStreams(options: StreamOptions): ValueStreams {
  const { openStreams, views, now, monotonicMs } = options;
  const scheduler = createFairScheduler<ValueStream>({ work, monotonicMs });
  const streams = openStreams.ofKind<ValueStream>({
    notify: sendOrQueue,
    onClose: (stream) =>
      scheduler.remove(stream.key.organizationId, stream.key.environmentId, stream),
  });
  const differenceBetween = rememberBetween(differenceOf);

  /** Sends to streams without a context immediately, and queues the others for a visit. */
  function sendOrQueue(environmentId: string, some: Iterable<ValueStream>): void {
    const view = views.of(environmentId);
    const targeted: ValueStream[] = [];
    for (const stream of some)
      if (stream.context !== emptyContext) targeted.push(stream);
      else if (isReadyOrFallsBehind(stream, view)) {
        const difference = differenceBetween(stream.sentView, view, environmentId);
        send(stream, view, eventWithoutContext(stream, view, difference));
      }
    const [first] = targeted;
    if (first !== undefined) scheduler.add(first.key.organizationId, environmentId, targeted);
  }

  function* work(stream: ValueStream): Steps {
    const { environmentId } = stream.key;
    const view = views.of(environmentId);
    if (!isReadyOrFallsBehind(stream, view)) return;
    const difference = differenceBetween(stream.sentView, view, environmentId);
    const event = yield* eventFor(stream, view, difference);
    // Heartbeats may have filled the stream's send buffer meanwhile.
    if (isReadyOrFallsBehind(stream, view)) send(stream, view, event);
  }

  /**
   * Returns whether an event for this view can be sent. A client that has the view has missed nothing. A client without
   * room falls behind, and receives all values when it has caught up.
   */
  function isReadyOrFallsBehind(stream: ValueStream, view: EnvironmentView): boolean {
    if (stream.sentView === view) {
      stream.hasMissed = false;
      return false;
    }
    return stream.hasRoomOrFallsBehind(now(), () => {
      stream.hasMissed = true;
      sendOrQueue(stream.key.environmentId, [stream]);
    });
  }

  /** Writes the event, unless it is null. The client then has the values of the view. */
  function send(stream: ValueStream, view: EnvironmentView, event: Buffer | null): void {
    stream.sentView = view;
    stream.hasMissed = false;
    if (event === null) return;
    stream.sink.write(event);
    openStreams.counts.flags += 1;
  }

  return {
    open(response, listener) {
      sendFirstEvents(response, listener, options);
      const stream = new ValueStream(response, listener);
      streams.add(stream);
      const { environmentId } = listener.key;
      // The flags may have changed while the values were evaluated.
      if (views.of(environmentId) !== listener.view) sendOrQueue(environmentId, [stream]);
    },
    stop: scheduler.stop,
  };
}

/** Begins a stream with the values, unless the client has them, and a heartbeat. */
function sendFirstEvents(
  response: ServerResponse,
  { form, values, lastEventId }: Listener,
  { openStreams: { counts }, now, random }: StreamOptions,
): void {
  const known = lastEventId === values.etag;
  const heartbeat = Buffer.from(heartbeatEvent(now()));
  const retry = Buffer.from(retryLine(random));
  response.write(
    Buffer.concat(known ? [retry, heartbeat] : [retry, fullEvent(form, values), heartbeat]),
  );
  counts.heartbeat += 1;
  if (!known) counts.flags += 1;
}

/** The flags that differ between two views, with the events that streams have in common. */
type ViewDifference = {
  flags: readonly ChangedFlag[];
  byText: Map<string, Buffer>;
  /** The event of each form for streams without a context. null: no value differs for them. */
  withoutContext: Map<ValueForm, Buffer | null>;
};

const differenceOf = (from: EnvironmentView, to: EnvironmentView): ViewDifference => ({
  flags: changedFlags(from, to),
  byText: new Map(),
  withoutContext: new Map(),
});

/**
 * Returns the event for a stream: the values that differ and the current tag, or all values if the client was behind.
 * null: no value differs. Only changed flags are evaluated to find out. All flags, for the tag, are evaluated only if a
 * value differs. If the evaluation may take long, it is done one condition at a time.
 */
function* eventFor(
  { context, hasLargeContext, form, hasMissed, sentView }: ValueStream,
  view: EnvironmentView,
  difference: ViewDifference,
): Generator<undefined, Buffer | null> {
  const takesLong =
    context !== emptyContext && (hasLargeContext || sentView.isCostly || view.isCostly);
  const delta = yield* deltaFor(context, difference.flags, { form, inSteps: takesLong });
  if (delta === undefined) return null;
  const evaluated = takesLong ? yield* view.evaluateInSteps(context) : undefined;
  if (hasMissed) {
    const values =
      evaluated === undefined
        ? form.valuesFor(view, context)
        : form.valuesOf(view, evaluated.outcomeCodes, evaluated.variations);
    return catchUpEvent(form, values, delta.removed);
  }
  const tag =
    evaluated === undefined
      ? form.tagFor(view, context)
      : form.tagOf(view, evaluated.outcomeCodes, evaluated.variations);
  return sharedEvent(difference, deltaEvent(form, tag, delta));
}

/** Returns the event for a stream without a context, in one step. All such streams share it. */
function eventWithoutContext(
  stream: ValueStream,
  view: EnvironmentView,
  difference: ViewDifference,
): Buffer | null {
  const event = () => {
    const step = eventFor(stream, view, difference).next();
    if (!step.done) throw new Error("An evaluation without a context takes one step.");
    return step.value;
  };
  if (stream.hasMissed) return event();
  const known = difference.withoutContext.get(stream.form);
  if (known !== undefined) return known;
  const shared = event();
  difference.withoutContext.set(stream.form, shared);
  return shared;
}

/** Maximum length of a text that is kept for other streams. Long values differ between users, and are many. */
const maxSharedLength = 2_048;

/** Returns the bytes of a text. Streams with the same text share them. */
function sharedEvent({ byText }: ViewDifference, text: string): Buffer {
  if (text.length > maxSharedLength) return Buffer.from(text, "latin1");
  const event = byText.get(text) ?? Buffer.from(text, "latin1");
  byText.set(text, event);
  return event;
}

const fullEvents = new WeakMap<FlagValues, Buffer>();

/** Returns the event with all values. */
function fullEvent(form: ValueForm, values: FlagValues): Buffer {
  let event = fullEvents.get(values);
  if (event === undefined) {
    event = Buffer.from(eventText(form, values.etag, values.body), "latin1");
    fullEvents.set(values, event);
  }
  return event;
}

/** Returns the delta event: the changed values and the current ETag. */
function deltaEvent(form: ValueForm, etag: string, { changed, removed }: Delta): string {
  const values = changed.map(([key, text]) => `${asciiJson(key)}:${text}`).join(",");
  return eventText(form, etag, withRemoved(`{"${form.name}":{${values}}}`, removed));
}

/** Returns the event for a client that missed events: all values, and the flags that were removed meanwhile. */
function catchUpEvent(form: ValueForm, values: FlagValues, removed: readonly string[]): Buffer {
  if (removed.length === 0) return fullEvent(form, values);
  const text = eventText(form, values.etag, withRemoved(values.body, removed));
  return Buffer.from(text, "latin1");
}

function withRemoved(body: string, removed: readonly string[]): string {
  if (removed.length === 0) return body;
  return `${body.slice(0, -1)},"removed":${asciiJson(removed)}}`;
}

/** Formats an event. JSON contains no line breaks, so the data is always one line. */
function eventText({ name }: ValueForm, etag: string, data: string): string {
  return `event: ${name}\nid: ${etag}\ndata: ${data}\n\n`;
}
