import { type HistoryEntry as HistoryEntryResource, inSchemaOrder } from "@halyard/contracts";
import type { HistoryEntry } from "../flags/decision.ts";

/** An entry of the history as the API shows it. */
export function historyEntryResource(entry: HistoryEntry): HistoryEntryResource {
  return {
    id: entry.id,
    enabled: entry.enabled,
    rollout_percentage: entry.rolloutPercentage,
    targeting_rules: inSchemaOrder(entry.targetingRules),
    changed_at: entry.changedAt.toISOString(),
    changed_by: entry.changedBy,
    change_type: entry.changeType,
  };
}
