export {
  type AllValues,
  type BooleanFlags,
  type Client,
  type ClientEvents,
  createClient,
  type WaitOptions,
} from "./client.ts";
export type { AttributeValue, Context } from "./context.ts";
export {
  type Declaration,
  type DeclaredFlags,
  defineFlags,
  type FallbackOf,
  type FlagValue,
  type Frozen,
  type JsonObject,
  type JsonValue,
  type KeyOf,
  type ValueTypes,
  type Widened,
} from "./declared-flags.ts";
export type { ClientOptions, InitialValueOf, InitialValues } from "./options.ts";
export type { HalyardError, Logger, ProblemKind } from "./problem.ts";
export type { Details, Readers } from "./readers.ts";
export type { Status } from "./status.ts";
export type { ValueStorage } from "./stored-values.ts";
export { createTestClient, type TestClient } from "./test-client.ts";
export type { Evaluated, InitialValue } from "./typed-values.ts";
export type { Source } from "./user-values.ts";
