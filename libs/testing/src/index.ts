export * from "./backends.ts";
export * from "./call.ts";
export * from "./event-stream.ts";
export * from "./eventually.ts";
export * from "./restartable-postgres.ts";
export * from "./service-process.ts";
export * from "./test-database.ts";
export * from "./test-nats.ts";
