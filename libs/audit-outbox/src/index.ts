export * from "./publish-audit.ts";
export * from "./write-audit.ts";
