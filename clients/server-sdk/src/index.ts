export type {
  Client,
  ClientEvents,
  ConnectionState,
  Context,
  Details,
  Evaluated,
  Evaluation,
  EvaluationError,
  EvaluationReason,
  Explanation,
  Listener,
  Source,
  Status,
  TypedMethods,
} from "./client.ts";
export { createClient } from "./create-client.ts";
export {
  defineFlags,
  type FlagTypes,
  type FlagValue,
  type Frozen,
  type JsonObject,
  type JsonValue,
  type KeysOf,
  type ValuesOf,
} from "./flag-types.ts";
export { type ErrorCode, HalyardError } from "./halyard-error.ts";
export type { Logger } from "./log.ts";
export type { ClientOptions } from "./options.ts";
export { createTestClient, type TestClient } from "./test-client.ts";
