/**
 * How many answers were given. A counter with labels costs more than the rest of an answer, so these
 * are plain numbers, which the metrics read when they are asked for.
 */
export type AnswerCounts = {
  flags: Record<200 | 304, number>;
  evaluate: Record<200, number>;
  stream: Record<200, number>;
};

export function createAnswerCounts(): AnswerCounts {
  return { flags: { 200: 0, 304: 0 }, evaluate: { 200: 0 }, stream: { 200: 0 } };
}
