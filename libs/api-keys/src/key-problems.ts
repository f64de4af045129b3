import { createProblem } from "@halyard/http";

/** Problems of requests with a missing, invalid or insufficient key. */
export const keyProblems = {
  missing: createProblem("AUTH_001", "Send your API key as `Authorization: Bearer <API_KEY>`."),
  invalid: createProblem("AUTH_001", "The API key is not valid: unknown, expired or revoked."),
  operator: createProblem("AUTH_002", "This needs an API key, not the operator's token."),
  notServer: createProblem("AUTH_002", "This needs a server key of the project."),
  otherEnvironment: createProblem("AUTH_002", "This key works only in its own environment."),
} as const;
