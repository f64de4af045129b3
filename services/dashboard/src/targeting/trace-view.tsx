import { Check, Minus, X } from "lucide-react";
import { memo } from "react";
import type {
  AudienceTrace,
  ComparisonTrace,
  Condition,
  ConditionTrace,
  FlagExplanation,
  RequirementTrace,
  RuleTrace,
} from "../api/schema.d.ts";
import type { TargetingRule } from "../state/flag-state.ts";
import { conditionText, requirementText, verbOf } from "../state/words.ts";
import { Badge } from "../ui/badge.tsx";
import { Time } from "../ui/time.tsx";
import { prettyJson } from "../variations/json-text.ts";
import type { OperatorName } from "./conditions.ts";
import styles from "./targeting.module.css";
import {
  audienceReason,
  obstacleText,
  reasonText,
  requirementLines,
  servedReason,
} from "./try-user.ts";

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
      <RequirementTraces requires={result.trace.requires ?? []} />
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

function RequirementTraces({ requires }: { requires: readonly RequirementTrace[] }) {
  if (requires.length === 0) return null;
  return (
    <section aria-label="Required flags in the result">
      <p>
        <strong>Required flags</strong>
      </p>
      <ul className={styles.traceConditions}>
        {requires.map((trace) => (
          <li key={requirementText(trace)}>
            <Outcome condition={trace} />
            <div>
              {requirementText(trace)}
              <RequirementWhy trace={trace} />
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

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
          <div>
            {conditionLabel(condition, rule?.conditions[index])}
            <Why condition={condition} />
          </div>
        </li>
      ))}
    </ul>
  );
}

function conditionLabel(trace: ConditionTrace, condition: Condition | undefined): string {
  if (condition !== undefined) return conditionText(condition);
  if ("attribute" in trace) return comparedText(trace);
  return conditionText("flag" in trace ? trace : { audience: trace.audience });
}

/** Describes a comparison without the value, which a trace lacks. */
const comparedText = ({ attribute, operator }: ComparisonTrace): string =>
  `${attribute} ${verbOf(operator as OperatorName)} …`;

/** Why a condition holds or not, beyond its own text. */
function Why({ condition }: { condition: ConditionTrace }) {
  if ("audience" in condition) return <AudienceWhy trace={condition} />;
  if ("flag" in condition) return <RequirementWhy trace={condition} />;
  if (condition.obstacle === undefined) return null;
  return <span className={styles.note}> ({obstacleText(condition.obstacle)})</span>;
}

function RequirementWhy({ trace }: { trace: RequirementTrace }) {
  return (
    <ul className={styles.note}>
      {requirementLines(trace).map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function AudienceWhy({ trace }: { trace: AudienceTrace }) {
  return (
    <>
      <span className={styles.note}>
        {" "}
        ({audienceReason(trace)}
        {trace.changed_at !== undefined && (
          <>
            ; the audience changed <Time at={trace.changed_at} />
          </>
        )}
        )
      </span>
      {trace.alternatives.map((alternative, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list of one response never changes.
        <div key={index}>
          <p className={styles.note}>Alternative {index + 1}:</p>
          <ul className={styles.traceConditions}>
            {alternative.conditions.map((comparison, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the list of one response never changes.
              <li key={at}>
                <Outcome condition={comparison} />
                <div>
                  {comparedText(comparison)}
                  <Why condition={comparison} />
                </div>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </>
  );
}

function Outcome({ condition }: { condition: ConditionTrace }) {
  const isUndecided = "obstacle" in condition && condition.obstacle !== undefined;
  const Icon = condition.held ? Check : isUndecided ? Minus : X;
  return (
    <>
      <Icon size={15} aria-hidden className={condition.held ? styles.held : styles.failed} />
      <span className="visually-hidden">{condition.held ? "True:" : "False:"}</span>
    </>
  );
}
