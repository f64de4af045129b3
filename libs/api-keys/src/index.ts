export * from "./api-key.ts";
export * from "./bearer.ts";
export * from "./key-directory.ts";
