export { type AnswerOnce, createAnswerOnce } from "./answer-once.ts";
export { deleteExpiredAnswers } from "./delete-expired-answers.ts";
export { rollBackOnProblem } from "./roll-back-on-problem.ts";
