export {
  type Client,
  type ClientEvents,
  createClient,
  type WaitOptions,
} from "./client.ts";
export type { AttributeValue, Context } from "./context.ts";
export type { Flags } from "./flags.ts";
export type { ClientOptions } from "./options.ts";
export type { HalyardError, Logger, ProblemKind } from "./problem.ts";
export type { Status } from "./status.ts";
export type { ValueStorage } from "./stored-values.ts";
export { createTestClient, type TestClient } from "./test-client.ts";
export type { Source } from "./values.ts";
