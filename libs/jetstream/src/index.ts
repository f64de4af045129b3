export * from "./connect.ts";
export * from "./fenced-publish.ts";
export * from "./follow-snapshot.ts";
export * from "./read-epoch.ts";
export * from "./read-stream.ts";
export * from "./read-tail.ts";
export * from "./streams.ts";
