export * from "./address-block.ts";
export * from "./admission.ts";
export * from "./rate-limit.ts";
