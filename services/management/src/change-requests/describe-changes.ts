import { isDeepStrictEqual } from "node:util";
import { describeProtection, type TargetingRule } from "@halyard/contracts";
import { type Content, differingMembers } from "../flags/flag.ts";
import type { DecidedChange, StateChange } from "./change-request.ts";

/** Returns changes in words, one in each line. */
export const describeChanges = (changes: readonly DecidedChange[]): string =>
  changes.map(describeChange).join("\n");

/** Maximum length of a summary in an event or an audit entry, in UTF-16 code units, and of each line in it. */
const maxSummary = 4_000;
const maxLine = 1_000;

/** Returns the first changes in words, one in each line, and the number of the others. */
export function summarize(changes: readonly DecidedChange[]): string {
  const shown: string[] = [];
  let length = 0;
  for (const change of changes) {
    const line = shorten(describeChange(change), maxLine);
    length += line.length + 1;
    if (length > maxSummary) break;
    shown.push(line);
  }
  const others = changes.length - shown.length;
  if (others > 0) shown.push(others === 1 ? "1 more change" : `${others} more changes`);
  return shown.join("\n");
}

/** Returns the beginning of a text. PostgreSQL rejects half of a character in JSON. */
export const shorten = (text: string, length: number): string =>
  text.slice(0, length).toWellFormed();

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
      return `audience ${change.audience}: ${counted(change.add.length, "user")} added, ${change.remove.length} removed`;
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

/** The words of the dashboard. */
const describers: Readonly<Record<keyof Content, (before: Content, after: Content) => string>> = {
  enabled: (_, { enabled }) => (enabled ? "turned on" : "turned off"),
  rollout_percentage: (before, after) =>
    `${before.rollout_percentage} % → ${after.rollout_percentage} %`,
  targeting_rules: (before, after) => describeRules(before.targeting_rules, after.targeting_rules),
  bucket_by: (before, after) =>
    `percentages by ${before.bucket_by ?? "id"} → ${after.bucket_by ?? "id"}`,
  bucket_seed: (before, after) =>
    `seed of percentages ${before.bucket_seed ?? ownSeed} → ${after.bucket_seed ?? ownSeed}`,
  serve: (before, after) => `served ${describeServe(before)} → ${describeServe(after)}`,
  off_variation: (before, after) =>
    `all others get ${before.off_variation ?? ownDefault} → ${after.off_variation ?? ownDefault}`,
  requires: (_, { requires = [] }) =>
    requires.length === 0
      ? "requires no other flag"
      : `requires ${requires.map(({ flag }) => flag).join(" and ")}`,
};

const ownSeed = "the flag's key";
const ownDefault = "the application's default";

/** A rule without a name is named by its position: before the change if it is removed, otherwise after it. */
function describeRules(before: readonly TargetingRule[], after: readonly TargetingRule[]): string {
  const parts: string[] = [];
  for (const [index, rule] of before.entries())
    if (!after.some(({ id }) => id === rule.id)) parts.push(`${ruleName(rule, index)} removed`);
  for (const [index, rule] of after.entries()) {
    const earlier = before.find(({ id }) => id === rule.id);
    if (earlier === undefined) parts.push(`${ruleName(rule, index)} added`);
    else if (!isDeepStrictEqual(earlier, rule)) parts.push(`${ruleName(rule, index)} changed`);
  }
  return parts.length === 0 ? "rules in another order" : parts.join(", ");
}

const ruleName = ({ name = "" }: TargetingRule, index: number): string =>
  name.trim() === "" ? `rule ${index + 1}` : `rule “${name}”`;

function describeServe({ serve }: Content): string {
  if (serve === undefined) return "the first variation";
  if ("variation" in serve) return serve.variation;
  return serve.split.map(({ variation, weight }) => `${variation} ${weight} %`).join(" / ");
}

const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`;
