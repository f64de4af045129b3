import type { Serve, State, TargetingRule } from "./flag-state.ts";
import { offText, servedText } from "./serve.ts";
import { countedBy, whoText, withoutText } from "./words.ts";

/** Rules that a summary names. The others are counted. */
export const namedRules = 5;

/** Returns the percentage of a rule's users who get the flag. */
export const shareOf = (rule: TargetingRule, ofFlag: number): number =>
  rule.value === false ? 0 : (rule.rollout_percentage ?? ofFlag);

export const furtherText = (count: number): string =>
  count === 1 ? "1 more rule follows." : `${count} more rules follow.`;

/** Says who gets which variation: "blue for 50 %, red for 50 % of users whose country is DE; everybody else gets grey." */
export function summarizeTyped(state: State, serve: Serve): string {
  const { enabled, rollout_percentage: percentage, targeting_rules: rules } = state;
  const off = offText(state.off_variation);
  const { bucket_by: by } = state;
  if (!enabled) return `Off: everybody gets ${off}.`;
  if (rules.length === 0)
    return `${clauseFor({ serve, share: percentage, who: "all users", off, by })}.`;
  const end = rules.findIndex(({ conditions }) => conditions.length === 0);
  const deciding = end === -1 ? rules : rules.slice(0, end + 1);
  const clauses = deciding.slice(0, namedRules).map((rule, index) =>
    clauseFor({
      serve: rule.serve ?? serve,
      share: shareOf(rule, percentage),
      who: index > 0 && rule.conditions.length === 0 ? "everybody else" : whoText(rule),
      off,
      by,
    }),
  );
  if (end === -1) clauses.push(`everybody else gets ${off}`);
  const text = `${clauses.join("; ")}.`;
  return deciding.length > namedRules
    ? `${text} ${furtherText(deciding.length - namedRules)}`
    : text;
}

type Clause = { serve: Serve; share: number; who: string; off: string; by: string | undefined };

function clauseFor({ serve, share, who, off, by }: Clause): string {
  if (share === 0) return `${off} for ${who}`;
  const text = servedText(serve, { who, percentage: share, by: countedBy(by) });
  if (share < 100) return `${text} (${off} for the others)`;
  return by !== undefined && "split" in serve ? `${text} (${off} for ${withoutText(by)})` : text;
}
