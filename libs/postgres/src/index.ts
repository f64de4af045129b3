export * from "./connect.ts";
export * from "./failures.ts";
export * from "./migrate.ts";
export * from "./open-database.ts";
export * from "./provision.ts";
