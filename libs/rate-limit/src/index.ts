export { addressBlock } from "./address-block.ts";
export { createAdmission, type LimitMember, policyOf } from "./admission.ts";
export { createRateLimit, describeRate, type Rate, type RateLimit } from "./rate-limit.ts";
export { retryAfter } from "./retry-after.ts";
