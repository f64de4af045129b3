import type { EntryOf, TargetingRule } from "@halyard/contracts";

/** A flag in one environment, as the edges evaluate it. */
export function flagEntry(
  flag: { id: string; organizationId: string; projectId: string; key: string },
  state: {
    environmentId: string;
    enabled: boolean;
    rolloutPercentage: number;
    targetingRules: readonly TargetingRule[];
    version: number;
    updatedAt: Date;
  },
): EntryOf<"flag"> {
  const { organizationId } = flag;
  const { environmentId } = state;
  return {
    address: { kind: "flag", organizationId, environmentId, flagId: flag.id },
    value: {
      kind: "flag",
      organization_id: organizationId,
      project_id: flag.projectId,
      environment_id: environmentId,
      flag_id: flag.id,
      key: flag.key,
      enabled: state.enabled,
      rollout_percentage: state.rolloutPercentage,
      targeting_rules: [...state.targetingRules],
      version: state.version,
      committed_at: state.updatedAt.toISOString(),
    },
  };
}
