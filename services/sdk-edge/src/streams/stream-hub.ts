import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import type { EvaluationContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import type { FlagsStream } from "./stream.ts";
import { fullEvent, heartbeatEvent, retryLine } from "./stream-events.ts";
import type { StreamCounts, StreamRegistry } from "./stream-registry.ts";
import { streamSlots } from "./stream-rounds.ts";
import { createTelling } from "./telling.ts";

/**
 * What the open streams are told: what is different for each of them, after the new values have taken
 * the place of the old; so nobody who has seen an event can be answered with older values afterwards.
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
  /** Whether comparing with the context may take long. */
  hasLargeContext: boolean;
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
  const telling = createTelling({ views, counts, now, elapsed });
  let opened = 0;

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
      const stream: FlagsStream = {
        kind: "flags",
        response,
        keyId: key.id,
        organizationId: key.organizationId,
        environmentId: key.environmentId,
        context,
        hasLargeContext,
        heard: view,
        hasMissed: false,
        slot: opened % streamSlots,
        behind: undefined,
        cause: "client",
      };
      registry.add(stream);
      response.once("close", () => {
        registry.remove(stream);
        telling.forget(stream);
        counts.closed[stream.cause] += 1;
      });
      // Something may have changed while the values were evaluated.
      if (views.of(key.environmentId) !== view) telling.tell(key.environmentId, [stream]);
    },

    announce(environmentId) {
      telling.tell(environmentId, registry.flagsStreamsOf(environmentId));
    },

    stop: telling.stop,
  };
}
