export * from "./address-block.ts";
export * from "./admission.ts";
export * from "./rate-limit.ts";
export * from "./retry-after.ts";
