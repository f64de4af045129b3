import { createProblem, type Problem } from "@halyard/service";

/** A deletion needs the id a second time. Ids may be written in either case. */
export function checkConfirmed(confirm: string, id: string): Problem | undefined {
  if (confirm.toLowerCase() === id.toLowerCase()) return undefined;
  return createProblem("VALIDATION_001", "query parameter /confirm must be the id in the path");
}
