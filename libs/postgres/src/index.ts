export { type ConnectOptions, connectPostgres, type Sql } from "./connect.ts";
export { isOutage } from "./failures.ts";
export type { Listening } from "./listen.ts";
export * from "./migrate.ts";
export * from "./open-database.ts";
export * from "./provision.ts";
export { rollBackOnProblem } from "./roll-back-on-problem.ts";
export {
  createStatements,
  type Fragment,
  fragment,
  json,
  type Rows,
  type Statement,
  type Statements,
  type Value,
} from "./statements.ts";
export type { Transaction } from "./transaction.ts";
