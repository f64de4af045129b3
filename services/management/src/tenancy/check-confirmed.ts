import { createProblem, type Problem } from "@halyard/http";

/** Checks that a deletion repeats the id as `confirm`. Case is ignored. */
export function checkConfirmed(confirm: string, id: string): Problem | undefined {
  if (confirm.toLowerCase() === id.toLowerCase()) return undefined;
  return createProblem("VALIDATION_001", "query parameter /confirm must be the id in the path");
}
