import { type Refusal, refuse } from "@halyard/service";
import type { Principal } from "../access/principal.ts";

/**
 * The operator reaches every project, a key its own; to others a project does not exist. Asked before
 * anything is read or locked. The id is as it came: a UUID may be written in either case.
 */
export function reachesProject(principal: Principal, projectId: string): boolean {
  return principal.kind === "operator" || principal.key.projectId === projectId.toLowerCase();
}

export function noSuchProject(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such project.");
}
