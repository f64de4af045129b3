export * from "./connect.ts";
export * from "./failures.ts";
export * from "./migrate.ts";
export * from "./provision.ts";
