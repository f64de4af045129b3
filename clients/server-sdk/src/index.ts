export type { Explanation } from "@halyard/evaluation";
export type {
  Client,
  ClientEvents,
  ConnectionState,
  Context,
  Evaluation,
  EvaluationReason,
  Listener,
  Source,
  Status,
} from "./client.ts";
export { createClient } from "./create-client.ts";
export { type ErrorCode, HalyardError } from "./halyard-error.ts";
export type { Logger } from "./log.ts";
export type { ClientOptions } from "./options.ts";
export { createTestClient, type TestClient } from "./test-client.ts";
