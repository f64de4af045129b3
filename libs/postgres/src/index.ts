export * from "./connect.ts";
export * from "./database-health.ts";
export * from "./failures.ts";
export * from "./migrate.ts";
export * from "./provision.ts";
