import { emptyContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import { catchUp } from "./catch-up.ts";
import { createNews } from "./news.ts";
import { createSlices, type Steps } from "./slices.ts";
import { type FlagsStream, hasRoom, sinkOf } from "./stream.ts";
import type { StreamCounts } from "./stream-registry.ts";

/**
 * Tells streams what they have not heard yet.
 *
 * The streams of whom nothing is known get their event in one go, since it is one for all. Those with a
 * context have turns, in slices: each is evaluated at once or, where the context or the rules are such
 * that it may take long, condition by condition. A stream knows the view that it heard last, so whatever
 * changes before its turn is part of what it is told then. What changes during its turn it is told in the
 * next one.
 */
export type Telling = {
  /** Tells streams of one environment what is different now for each of them. */
  tell(environmentId: string, streams: Iterable<FlagsStream>): void;
  /** Tells a stream nothing more, and drops what is being worked out for it. */
  forget(stream: FlagsStream): void;
  stop(): void;
};

export function createTelling(options: {
  views: EnvironmentViews;
  counts: Pick<StreamCounts, "flags">;
  now: () => number;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): Telling {
  const { views, counts, now, elapsed } = options;
  const news = createNews();
  const slices = createSlices<FlagsStream>({ visit, elapsed });

  function visit(stream: FlagsStream): Steps | undefined {
    const { heard, context, environmentId } = stream;
    const present = views.of(environmentId);
    if (present === heard) {
      stream.hasMissed = false;
      return undefined;
    }
    if (!isReady(stream)) return undefined;
    if (takesLong(stream, present)) return tellInSteps(stream, present);
    say(stream, present, newsFor(stream).atOnce(heard, present, context));
    return undefined;
  }

  function* tellInSteps(stream: FlagsStream, present: EnvironmentView): Steps {
    const { heard, context } = stream;
    const event = yield* newsFor(stream).inSteps(heard, present, context);
    // Heartbeats may have filled up meanwhile what its reader leaves unread.
    if (isReady(stream)) say(stream, present, event);
  }

  const newsFor = ({ hasMissed }: FlagsStream) => (hasMissed ? catchUp : news);

  function say(stream: FlagsStream, present: EnvironmentView, event: Buffer | undefined): void {
    stream.heard = present;
    stream.hasMissed = false;
    if (event === undefined) return;
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  /** Whose reader has no room falls behind. */
  function isReady(stream: FlagsStream): boolean {
    const isReady = hasRoom(stream);
    if (!isReady && stream.behind === undefined) fallBehind(stream);
    return isReady;
  }

  /** From here on the reader gets nothing until it has taken all that is on its way. */
  function fallBehind(stream: FlagsStream): void {
    stream.behind = { sinceMs: now() };
    sinkOf(stream).once("drain", () => {
      if (stream.behind === undefined || stream.response.writableEnded) return;
      stream.behind = undefined;
      stream.hasMissed = true;
      tell(stream.environmentId, [stream]);
    });
  }

  function tell(environmentId: string, streams: Iterable<FlagsStream>): void {
    const targeted: FlagsStream[] = [];
    for (const stream of streams) {
      if (stream.context === emptyContext) visit(stream);
      else targeted.push(stream);
    }
    const [first] = targeted;
    if (first !== undefined) slices.add(first.organizationId, environmentId, targeted);
  }

  return {
    tell,
    forget: (stream) => slices.remove(stream.organizationId, stream.environmentId, stream),
    stop: slices.stop,
  };
}

function takesLong({ context, heard, hasLargeContext }: FlagsStream, present: EnvironmentView) {
  if (context === emptyContext) return false;
  return hasLargeContext || heard.isCostly || present.isCostly;
}
