import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import { removedKeys } from "../environment/view-difference.ts";
import { createNews } from "./news.ts";
import { createSlices } from "./slices.ts";
import { type FlagsStream, hasRoom, sinkOf } from "./stream.ts";
import { catchUpEvent, fullEvent, heartbeatEvent, retryLine } from "./stream-events.ts";
import type { StreamCounts, StreamRegistry } from "./stream-registry.ts";
import { streamSlots } from "./stream-rounds.ts";

/**
 * What the open streams are told: what is different for each of them, after the new values have taken
 * the place of the old; so nobody who has seen an event can be answered with older values afterwards.
 *
 * The streams of whom nothing is known get their event in one go, since it is one for all. Those with a
 * context are evaluated one by one, in slices. A stream knows the view that it heard last, so whatever
 * changes before its turn is part of what it is told then.
 */
export type StreamHub = {
  /** Begins the body of an answer whose head is set, and keeps it going. */
  open(response: ServerResponse, listener: Listener): void;
  /** Tells the streams of an environment what is different now. */
  announce(environmentId: string): void;
  stop(): void;
};

export type Listener = {
  key: DirectoryKey;
  context: EvaluationContext;
  /** What the listener was evaluated by, and its values. */
  view: EnvironmentView;
  values: FlagValues;
  /** The tag of the values that the client has from an earlier stream. */
  lastEventId: string | undefined;
};

export function createStreamHub(options: {
  registry: StreamRegistry;
  views: EnvironmentViews;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): StreamHub {
  const { registry, views, counts, now, random, elapsed } = options;
  const newsFor = createNews();
  const slices = createSlices<FlagsStream>({ visit: tell, elapsed });
  let opened = 0;

  function sendFlags(stream: FlagsStream, event: Buffer): void {
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  function tell(stream: FlagsStream): void {
    const { heard, context, environmentId } = stream;
    const present = views.of(environmentId);
    if (present === heard) return;
    if (!hasRoom(stream)) {
      if (stream.behind === undefined) fallBehind(stream);
      return;
    }
    const event = newsFor(heard, present, context);
    stream.heard = present;
    if (event !== undefined) sendFlags(stream, event);
  }

  /** From here on the reader gets nothing until it has taken all that is on its way. */
  function fallBehind(stream: FlagsStream): void {
    stream.behind = { sinceMs: now() };
    sinkOf(stream).once("drain", () => catchUp(stream));
  }

  function catchUp(stream: FlagsStream): void {
    if (stream.behind === undefined || stream.response.writableEnded) return;
    stream.behind = undefined;
    const { heard, context, environmentId } = stream;
    const present = views.of(environmentId);
    const values = present.valuesFor(context);
    stream.heard = present;
    if (values.etag === heard.valuesFor(context).etag) return;
    sendFlags(stream, catchUpEvent(values, removedKeys(heard, present)));
  }

  return {
    open(response, { key, context, view, values, lastEventId }) {
      const known = lastEventId === values.etag;
      const heartbeat = Buffer.from(heartbeatEvent(now()));
      const retry = Buffer.from(retryLine(random));
      response.write(
        Buffer.concat(known ? [retry, heartbeat] : [retry, fullEvent(values), heartbeat]),
      );
      counts.heartbeat += 1;
      if (!known) counts.flags += 1;

      opened += 1;
      const stream: FlagsStream = {
        kind: "flags",
        response,
        keyId: key.id,
        organizationId: key.organizationId,
        environmentId: key.environmentId,
        context,
        heard: view,
        slot: opened % streamSlots,
        behind: undefined,
        cause: "client",
      };
      registry.add(stream);
      response.once("close", () => {
        registry.remove(stream);
        slices.remove(stream.environmentId, stream);
        counts.closed[stream.cause] += 1;
      });
      // Something may have changed while the values were evaluated.
      tell(stream);
    },

    announce(environmentId) {
      const targeted: FlagsStream[] = [];
      for (const stream of registry.flagsStreamsOf(environmentId)) {
        if (stream.context === emptyContext) tell(stream);
        else targeted.push(stream);
      }
      if (targeted.length > 0) slices.add(environmentId, targeted);
    },

    stop: slices.stop,
  };
}
