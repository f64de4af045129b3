export * from "./answer-once.ts";
export * from "./forget-answers.ts";
