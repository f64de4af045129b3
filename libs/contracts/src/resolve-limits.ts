import { type ConfiguredLimits, type PlanLimits, planLimitsOf } from "./plans.ts";
import type { OrganizationEntry, PlansEntry, Tombstone } from "./snapshot.ts";

/**
 * Resolves the limits of organizations from the plans of the snapshot, into `limits`. An organization whose plan is
 * unknown keeps the limits that were resolved last: while many changes wait, its entry can precede that of a new plan.
 */
export function resolveLimits(
  limits: Map<string, PlanLimits>,
  organizations: Iterable<readonly [id: string, entry: OrganizationEntry | Tombstone]>,
  plans: PlansEntry | undefined,
): void {
  for (const [id, entry] of organizations) {
    if ("deleted" in entry) limits.delete(id);
    else if (plans && Object.hasOwn(plans.limits, entry.plan))
      limits.set(id, planLimitsOf(plans.limits[entry.plan] as ConfiguredLimits));
  }
}
