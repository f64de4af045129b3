export * from "./answer-once.ts";
export * from "./delete-expired-answers.ts";
