import { isDeepStrictEqual } from "node:util";
import type { Protection, TargetingRule } from "@halyard/contracts";
import { type Content, differingMembers } from "../flags/flag.ts";
import type { DecidedChange, StateChange } from "./change-request.ts";

/** Returns changes in words, one in each line. */
export const describeChanges = (changes: readonly DecidedChange[]): string =>
  changes.map(describeChange).join("\n");

function describeChange(change: DecidedChange): string {
  switch (change.kind) {
    case "state":
      return describeState(change);
    case "flag_variations":
      return `${change.flag_key}: ${change.before.length} → ${change.variations.length} variations with other values`;
    case "flag_deletion":
      return `${change.flag_key}: deleted in every environment`;
    case "audience":
      return `audience ${change.audience}: ${change.patch.match === undefined ? "list removed" : "other conditions"}`;
    case "audience_list":
      return `audience ${change.audience}: ${change.add.length} users added, ${change.remove.length} removed`;
    case "protection":
      return `${change.environment_name}: protection ${describeProtection(change.before)} → ${describeProtection(change.protected)}`;
  }
}

function describeState({ flag_key, environment_name, before, after, dependents }: StateChange) {
  const members = differingMembers(before, after).map((name) => describers[name](before, after));
  const depend = dependents === 1 ? "1 flag depends on it" : `${dependents} flags depend on it`;
  const parts = dependents === 0 ? members : [...members, depend];
  return `${flag_key} in ${environment_name}: ${parts.join(", ")}`;
}

const describers: Readonly<Record<keyof Content, (before: Content, after: Content) => string>> = {
  enabled: (_, { enabled }) => (enabled ? "turned on" : "turned off"),
  rollout_percentage: (before, after) =>
    `${before.rollout_percentage} % → ${after.rollout_percentage} %`,
  targeting_rules: (before, after) => describeRules(before.targeting_rules, after.targeting_rules),
  bucket_by: (before, after) =>
    `buckets by ${before.bucket_by ?? "user"} → ${after.bucket_by ?? "user"}`,
  bucket_seed: () => "other seed of buckets",
  serve: (before, after) => `${describeServe(before)} → ${describeServe(after)}`,
  off_variation: (before, after) =>
    `off serves ${before.off_variation ?? "the default"} → ${after.off_variation ?? "the default"}`,
  requires: (_, { requires = [] }) =>
    requires.length === 0
      ? "requires no other flag"
      : `requires ${requires.map(({ flag }) => flag).join(" and ")}`,
};

/** The rules before are counted by their position before, and new rules by their position after. */
function describeRules(before: readonly TargetingRule[], after: readonly TargetingRule[]): string {
  const parts: string[] = [];
  for (const [index, rule] of before.entries()) {
    const kept = after.find(({ id }) => id === rule.id);
    if (kept === undefined) parts.push(`rule ${index + 1} removed`);
    else if (!isDeepStrictEqual(kept, rule)) parts.push(`rule ${index + 1} changed`);
  }
  for (const [index, { id }] of after.entries())
    if (!before.some((rule) => rule.id === id)) parts.push(`rule ${index + 1} added`);
  return parts.length === 0 ? "rules in another order" : parts.join(", ");
}

function describeServe({ serve }: Content): string {
  if (serve === undefined) return "the first variation";
  if ("variation" in serve) return serve.variation;
  return serve.split.map(({ variation, weight }) => `${variation} ${weight} %`).join(" / ");
}

function describeProtection(protection: Protection | null): string {
  if (protection === null) return "none";
  const { approvals, self_approval, without_approval } = protection;
  const parts = [approvals === 1 ? "1 approval" : `${approvals} approvals`];
  if (self_approval) parts.push("also by its author");
  if (without_approval.length > 0) parts.push(`none for ${without_approval.join(" and ")}`);
  return parts.join(", ");
}
