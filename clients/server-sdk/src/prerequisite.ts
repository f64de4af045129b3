import type { EvaluationReason } from "./client.ts";
import type { Guards } from "./guards.ts";
import type { Flag } from "./rules/flag.ts";

/** Returns the member that names the requirement that is not met. Empty if none decided. */
export function prerequisiteOf(
  flag: Flag,
  { reason, context }: { reason: EvaluationReason; context: unknown },
  { withContext }: Guards,
): { prerequisite?: string } {
  if (reason !== "prerequisite_failed") return {};
  const prerequisite = withContext(context, (prepared) => flag.unmetRequirement(prepared));
  return prerequisite === undefined ? {} : { prerequisite };
}
