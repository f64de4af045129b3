import { Check, Minus, X } from "lucide-react";
import { memo } from "react";
import type { ConditionTrace, FlagExplanation, RuleTrace } from "../api/schema.d.ts";
import type { TargetingRule } from "../state/flag-state.ts";
import { conditionText } from "../state/words.ts";
import { Badge } from "../ui/badge.tsx";
import { prettyJson } from "../variations/json-text.ts";
import styles from "./targeting.module.css";
import { obstacleText, reasonText, servedReason } from "./try-user.ts";

type TraceProps = {
  result: FlagExplanation;
  /** The JSON text of the value. */
  value: string;
  rules: readonly TargetingRule[];
  /** The attribute that selects the bucket. */
  unit: string;
};

/** The value of a flag for a user and how it came about. `rules` are those that were tried. */
export const TraceView = memo(function TraceView({ result, value, rules, unit }: TraceProps) {
  const ruleName = (index: number) => {
    const name = rules[index]?.name;
    return name === undefined ? `Rule ${index + 1}` : `Rule ${index + 1} (${name})`;
  };
  const served = servedReason(result);
  return (
    <>
      <p className={styles.verdict}>
        <ValueBadge result={result} />
        <span className={styles.note}>
          {result.variation !== null && (
            <>
              variation <code>{result.variation}</code>,{" "}
            </>
          )}
          reason <code>{result.reason}</code>
        </span>
      </p>
      {typeof result.value !== "boolean" && result.value !== null && (
        <pre className={styles.value}>{prettyJson(value)}</pre>
      )}
      <p>{reasonText(result, { ruleName, unit })}</p>
      {served !== undefined && <p>{served}</p>}
      <ol className={styles.trace}>
        {result.trace.rules.map((trace) => (
          <li key={trace.index} data-reached={trace.reached}>
            <p>
              <strong>{ruleName(trace.index)}</strong>{" "}
              <span className={styles.note}>{outcomeText(trace)}</span>
            </p>
            {trace.reached && <ConditionTraces trace={trace} rule={rules[trace.index]} />}
          </li>
        ))}
      </ol>
    </>
  );
});

function ValueBadge({ result: { value, variation, trace } }: { result: FlagExplanation }) {
  if (typeof value === "boolean")
    return <Badge tone={value ? "on" : "neutral"}>{value ? "On" : "Off"}</Badge>;
  return (
    <Badge tone={trace.serve === undefined ? "neutral" : "on"}>
      {variation ?? "The application's default"}
    </Badge>
  );
}

function outcomeText({ reached, matched, inside_percentage: isInside }: RuleTrace): string {
  if (!reached) return "was not tried";
  if (!matched) return "does not match";
  if (isInside === undefined) return "matches";
  return isInside ? "matches, inside its percentage" : "matches, outside its percentage";
}

function ConditionTraces({ trace, rule }: { trace: RuleTrace; rule: TargetingRule | undefined }) {
  if (trace.conditions.length === 0)
    return <p className={styles.note}>It has no conditions, so it matches everyone.</p>;
  return (
    <ul className={styles.traceConditions}>
      {trace.conditions.map((condition, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list of one response never changes.
        <li key={index}>
          <Outcome condition={condition} />
          <span>
            {rule?.conditions[index] === undefined
              ? `${condition.attribute} ${condition.operator}`
              : conditionText(rule.conditions[index])}
            {condition.obstacle !== undefined && (
              <span className={styles.note}> ({obstacleText(condition.obstacle)})</span>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Outcome({ condition: { held, obstacle } }: { condition: ConditionTrace }) {
  const Icon = held ? Check : obstacle === undefined ? X : Minus;
  return (
    <>
      <Icon size={15} aria-hidden className={held ? styles.held : styles.failed} />
      <span className="visually-hidden">{held ? "True:" : "False:"}</span>
    </>
  );
}
