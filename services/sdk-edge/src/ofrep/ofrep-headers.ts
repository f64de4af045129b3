import { cacheHeadersOf, ofrepEvaluateFlags } from "@halyard/contracts";

/** Who may keep an answer, its reader alone, and what it depends on beside its address. */
export const ofrepHeaders: readonly string[] = Object.entries(
  cacheHeadersOf(ofrepEvaluateFlags),
).flat();
