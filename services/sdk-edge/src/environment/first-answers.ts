import { type KeptAnswers, type KeptAnswersBudget, keptAnswers } from "./kept-answers.ts";

/**
 * The first answers of a view, by their tags. With few different answers, the first ones repeat. After many
 * answers without a repetition the search pauses, because it would only cost time.
 */
export type FirstAnswers<T> = Pick<KeptAnswers<T>, "get" | "keep">;

/** More than are kept of small answers: an answer that is given repeatedly was repeated by then. */
const missesToGiveUp = 1_024;
const looksOnceIn = 64;

export function createFirstAnswers<T>(budget: KeptAnswersBudget = keptAnswers): FirstAnswers<T> {
  const kept = budget.open<T>();
  let missesInARow = 0;
  return {
    get(tag) {
      if (missesInARow > missesToGiveUp && missesInARow % looksOnceIn !== 0) {
        missesInARow += 1;
        return undefined;
      }
      const known = kept.get(tag);
      missesInARow = known === undefined ? missesInARow + 1 : 0;
      return known;
    },
    keep: kept.keep,
  };
}
