import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { tagInSteps } from "../environment/outcomes-in-steps.ts";
import {
  differenceFor,
  differenceInSteps,
  type FlagChange,
  flagChanges,
  type ValuesDifference,
} from "../environment/view-difference.ts";
import { changeEvent } from "./stream-events.ts";

/**
 * What is new for somebody who has heard the values of one view and is to hear those of another;
 * undefined when all of theirs are the same in both.
 *
 * For a listener with a context only the flags that changed are evaluated, as they were and as they
 * are; all of its flags, for the event's id, only when one of its values is different now. Listeners who
 * are told the same share the bytes; those of whom nothing is known share the work, too. What is shared
 * is kept for as long as somebody listens to whom the same change is still to be told.
 */
export type News = {
  atOnce(
    heard: EnvironmentView,
    present: EnvironmentView,
    context: EvaluationContext,
  ): Buffer | undefined;
  /** The same, one condition after the other: for those who stop in between to serve others. */
  inSteps(
    heard: EnvironmentView,
    present: EnvironmentView,
    context: EvaluationContext,
  ): Generator<undefined, Buffer | undefined>;
};

type Change = {
  /** Held weakly: a slow reader's view would otherwise keep all later ones, each by the one before. */
  present: WeakRef<EnvironmentView>;
  flags: readonly FlagChange[];
  byText: Map<string, Buffer>;
  forNobody: { event: Buffer | undefined } | undefined;
};

export function createNews(): News {
  const changes = new WeakMap<EnvironmentView, Change>();

  function changeFrom(heard: EnvironmentView, present: EnvironmentView): Change {
    let change = changes.get(heard);
    if (change?.present.deref() !== present) {
      const flags = flagChanges(heard, present);
      change = { present: new WeakRef(present), flags, byText: new Map(), forNobody: undefined };
      changes.set(heard, change);
    }
    return change;
  }

  return {
    atOnce(heard, present, context) {
      const change = changeFrom(heard, present);
      if (context !== emptyContext) return eventFor(change, present, context);
      change.forNobody ??= { event: eventFor(change, present, context) };
      return change.forNobody.event;
    },

    *inSteps(heard, present, context) {
      const change = changeFrom(heard, present);
      const difference = yield* differenceInSteps(context, change.flags);
      if (difference === undefined) return undefined;
      return sharedEvent(change, yield* tagInSteps(present, context), difference);
    },
  };
}

function eventFor(
  change: Change,
  present: EnvironmentView,
  context: EvaluationContext,
): Buffer | undefined {
  const difference = differenceFor(context, change.flags);
  if (difference === undefined) return undefined;
  return sharedEvent(change, present.tagFor(context), difference);
}

function sharedEvent({ byText }: Change, etag: string, difference: ValuesDifference): Buffer {
  const text = changeEvent(etag, difference);
  let event = byText.get(text);
  if (event === undefined) {
    event = Buffer.from(text);
    byText.set(text, event);
  }
  return event;
}
