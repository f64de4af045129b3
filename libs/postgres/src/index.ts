export { connectPostgres, type Sql } from "./connect.ts";
export { isOutage } from "./failures.ts";
export { migrate, runMigrations } from "./migrate.ts";
export { type Database, identifyDatabase, openDatabase } from "./open-database.ts";
export {
  doctorRole,
  type ProvisionedService,
  provisionDoctor,
  provisionService,
  urlFor,
} from "./provision.ts";
export {
  createStatements,
  type Fragment,
  fragment,
  json,
  type Rows,
  type Statement,
} from "./statements.ts";
export type { Transaction } from "./transaction.ts";
export { withClient } from "./with-client.ts";
