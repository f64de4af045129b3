export * from "./api-key.ts";
export * from "./authenticate-server-key.ts";
export * from "./bearer.ts";
export * from "./key-directory.ts";
export * from "./key-limits.ts";
export * from "./key-refusals.ts";
export * from "./last-used.ts";
export * from "./tell-last-used.ts";
