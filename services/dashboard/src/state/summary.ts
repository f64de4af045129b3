import type { Condition } from "../api/schema.d.ts";
import type { State, TargetingRule } from "./flag-state.ts";
import { furtherText, namedRules, shareOf, summarizeTyped } from "./typed-summary.ts";
import { countedBy, whoText } from "./words.ts";

/**
 * Says in plain English who gets a flag: "On for 20 % of users whose country is DE. Everyone else gets it off.", or for
 * a typed flag: "blue for 50 %, red for 50 % of all users."
 */
export function summarize(state: State): string {
  return state.serve === undefined ? summarizeBoolean(state) : summarizeTyped(state, state.serve);
}

function summarizeBoolean(state: State): string {
  const { enabled, rollout_percentage: percentage, targeting_rules: rules } = state;
  if (!enabled) return "Off for everyone.";
  const by = countedBy(state.bucket_by);
  if (rules.length === 0) return everyoneText(percentage, by);
  const end = rules.findIndex(({ conditions }) => conditions.length === 0);
  const catchAll = rules[end];
  const limited = end === -1 ? rules : rules.slice(0, end);
  if (limited.length === 0 && catchAll !== undefined) {
    return catchAll.value === false
      ? "Off for everyone: rule 1 takes all users out."
      : everyoneText(shareOf(catchAll, percentage), by);
  }
  const ofRest = catchAll === undefined ? 0 : shareOf(catchAll, percentage);
  const sentences = runsOf(limited.slice(0, namedRules), percentage).map((run, index) => {
    const isLast = run.at(-1) === limited.at(-1);
    const shares = { percentage, by, isRestOff: isLast && ofRest === 0 };
    return index === 0
      ? `${runText(run, shares)}.`
      : `Of the others: ${lowerFirst(runText(run, shares))}.`;
  });
  if (limited.length > namedRules) sentences.push(furtherText(limited.length - namedRules));
  return [...sentences, restText(ofRest, by)].join(" ");
}

function everyoneText(percentage: number, by: string): string {
  if (percentage === 100) return "On for everyone.";
  if (percentage === 0) return "Off for everyone, because the percentage is 0.";
  return `On for ${percentage} % of all users${by}. The others get it off.`;
}

/**
 * Splits rules into runs that one sentence can list in any order. The first matching rule decides, so a run has only
 * rules of the same result, and ends after a percentage: later rules do not reach the users outside of it.
 */
function runsOf(rules: readonly TargetingRule[], percentage: number): TargetingRule[][] {
  const runs: TargetingRule[][] = [];
  let shareBefore: number | undefined;
  for (const rule of rules) {
    const share = shareOf(rule, percentage);
    const isSame = share === 0 ? shareBefore === 0 : shareBefore === 100;
    if (isSame) runs.at(-1)?.push(rule);
    else runs.push([rule]);
    shareBefore = share;
  }
  return runs;
}

/** `isRestOff`: users outside of the last percentage are among "everyone else gets it off". */
type Shares = { percentage: number; by: string; isRestOff: boolean };

function runText(run: readonly TargetingRule[], { percentage, by, isRestOff }: Shares): string {
  const texts = run.map((rule) => {
    const share = shareOf(rule, percentage);
    if (share === 0 || share === 100) return whoText(rule);
    const text = `${share} % of ${whoText(rule)}${by}`;
    return isRestOff ? text : `${text} (off for the other ${100 - share} %)`;
  });
  const isOff = run.every((rule) => shareOf(rule, percentage) === 0);
  return `${isOff ? "Off" : "On"} for ${texts.length === 1 ? texts[0] : joinedRules(texts)}`;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

const joinedRules = (texts: readonly string[]): string =>
  `${texts.slice(0, -1).join(", for ")}, and for ${texts.at(-1)}`;

function restText(share: number, by: string): string {
  if (share === 0) return "Everyone else gets it off.";
  if (share === 100) return "Everyone else gets it on.";
  return `Of everyone else${by}, ${share} % get it on and the others off.`;
}

/** Warns about a rule that decides less than it seems to. */
export function ruleHint(
  rules: readonly { conditions: readonly Condition[] }[],
  index: number,
): string | undefined {
  const before = rules.findIndex(({ conditions }) => conditions.length === 0);
  if (before !== -1 && before < index)
    return `No user reaches this rule, because rule ${before + 1} matches everyone.`;
  return undefined;
}
