import { type Refusal, refuse } from "@halyard/service";

/** A deletion needs the id a second time. Ids may be written in either case. */
export function checkConfirmed(confirm: string, id: string): Refusal | undefined {
  if (confirm.toLowerCase() === id.toLowerCase()) return undefined;
  return refuse("VALIDATION_001", "query parameter /confirm must be the id in the path");
}
