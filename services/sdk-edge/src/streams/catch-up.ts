import { tagInSteps, valuesInSteps } from "../environment/outcomes-in-steps.ts";
import { removedKeys } from "../environment/view-difference.ts";
import type { News } from "./news.ts";
import { catchUpEvent } from "./stream-events.ts";

/**
 * What is said to somebody who has missed what came between the two views: all values, and the flags
 * that went meanwhile; undefined when all values are the same in both.
 */
export const catchUp: News = {
  atOnce(heard, present, context) {
    const values = present.valuesFor(context);
    if (values.etag === heard.tagFor(context)) return undefined;
    return catchUpEvent(values, removedKeys(heard, present));
  },

  *inSteps(heard, present, context) {
    const values = yield* valuesInSteps(present, context);
    if (values.etag === (yield* tagInSteps(heard, context))) return undefined;
    return catchUpEvent(values, removedKeys(heard, present));
  },
};
