import { use, useCallback } from "react";
import { Checkbox, Select, TextField } from "../ui/fields.tsx";
import { PercentageSlider, type TypedPercentage } from "../ui/slider.tsx";
import { ConditionsEditor } from "./conditions-editor.tsx";
import type { DraftRule, DraftServe } from "./draft.ts";
import { FlagDefaultsContext, useEditor } from "./editor-context.ts";
import { fieldKey, type Problems } from "./problems.ts";
import type { RuleActions } from "./rule-actions.ts";
import { ServeEditor } from "./serve-editor.tsx";
import styles from "./targeting.module.css";

type RuleEditorProps = {
  rule: DraftRule;
  label: string;
  problems: Problems;
  onChange: RuleActions["update"];
};

type PartProps = Omit<RuleEditorProps, "onChange"> & {
  change: (changed: (rule: DraftRule) => DraftRule) => void;
};

/** The fields of a rule: its name, its conditions, and what its users get. */
export function RuleEditor({ onChange, ...props }: RuleEditorProps) {
  const { rule, problems } = props;
  const { uid } = rule;
  const change = useCallback<PartProps["change"]>(
    (changed) => onChange(uid, changed),
    [onChange, uid],
  );
  return (
    <div className={styles.ruleBody}>
      <TextField
        label="Name (optional)"
        value={rule.name ?? ""}
        onChange={(name) => change((before) => ({ ...before, name }))}
        error={problems.get(fieldKey(uid, "name"))}
      />
      <Conditions {...props} change={change} />
      <Effect {...props} change={change} />
      {problems.has(fieldKey(uid, "rule")) && (
        <p role="alert" className={styles.problem}>
          {problems.get(fieldKey(uid, "rule"))}
        </p>
      )}
    </div>
  );
}

function Conditions({ rule, label, problems, change }: PartProps) {
  const changeConditions = useCallback<Parameters<typeof ConditionsEditor>[0]["change"]>(
    (changed) => change((before) => ({ ...before, conditions: changed(before.conditions) })),
    [change],
  );
  const { uid, conditions } = rule;
  return (
    <ConditionsEditor
      owner={uid}
      label={label}
      legend={
        conditions.length === 0
          ? "Without conditions, the rule matches everyone."
          : "All of these must be true:"
      }
      conditions={conditions}
      problems={problems}
      hasReferences
      change={changeConditions}
    />
  );
}

function withoutPercentage({
  rollout_percentage: _,
  invalidPercentage: __,
  ...rule
}: DraftRule): DraftRule {
  return rule;
}

function Effect({ rule, problems, change }: PartProps) {
  const ofFlag = use(FlagDefaultsContext);
  const isOff = rule.value === false;
  const own = rule.rollout_percentage;
  const setPercentage = useCallback(
    (typed: TypedPercentage) => change((before) => ({ ...before, ...typed })),
    [change],
  );
  return (
    <div className={styles.effect}>
      <Select
        label="These users get the flag"
        value={isOff ? "off" : "on"}
        onChange={(value) => change((before) => ({ ...before, value: value === "on" }))}
        options={effects}
      />
      {!isOff && (
        <Checkbox
          isSelected={own !== undefined}
          onChange={(isOwn) =>
            change((before) =>
              isOwn
                ? { ...before, rollout_percentage: ofFlag.percentage }
                : withoutPercentage(before),
            )
          }
        >
          {own === undefined
            ? `Own percentage (now that of the flag, ${ofFlag.percentage} %)`
            : "Own percentage"}
        </Checkbox>
      )}
      {!isOff && own !== undefined && (
        <PercentageSlider
          label="Percentage of these users"
          value={own}
          invalidText={rule.invalidPercentage}
          error={problems.get(fieldKey(rule.uid, "rollout_percentage"))}
          onChange={setPercentage}
        />
      )}
      {!isOff && ofFlag.serve !== undefined && (
        <RuleServe
          rule={rule}
          inherited={ofFlag.serve}
          error={problems.get(fieldKey(rule.uid, "serve"))}
          change={change}
        />
      )}
    </div>
  );
}

type RuleServeProps = Pick<PartProps, "rule" | "change"> & {
  inherited: DraftServe;
  error: string | undefined;
};

/** The served variations of a rule: those of the flag, or its own. */
function RuleServe({ rule, inherited, error, change }: RuleServeProps) {
  const { base, variations } = useEditor();
  const stored = base.rules.find(({ uid }) => uid === rule.uid);
  return (
    <ServeEditor
      label="They get"
      variations={variations}
      serve={rule.serve}
      before={stored && (stored.serve ?? base.serve)}
      inherited={inherited}
      error={error}
      onChange={(serve) =>
        change(({ serve: _, ...before }) => (serve === undefined ? before : { ...before, serve }))
      }
    />
  );
}

const effects = [
  { value: "on", label: "On" },
  { value: "off", label: "Off", note: "whatever the percentage" },
] as const;
