import { useCallback } from "react";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { usePermission } from "../session/use-permission.ts";
import type { State } from "../state/flag-state.ts";
import { summarize } from "../state/summary.ts";
import { Switch } from "../ui/fields.tsx";
import { Card } from "../ui/panels.tsx";
import { PercentageSlider, type TypedPercentage } from "../ui/slider.tsx";
import { BucketFields } from "./bucket-fields.tsx";
import type { Draft } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import styles from "./targeting.module.css";

/** The switch, what the whole state does, and the percentage of the flag. */
export function StateCard({ draft, state }: { draft: Draft; state: State }) {
  const { environment } = useFlagInPage();
  const { reason } = usePermission("change_states", environment);
  const { edit } = useEditor();
  const { enabled, rollout_percentage: percentage, rules } = draft;
  const setPercentage = useCallback(
    (typed: TypedPercentage) => edit((before) => ({ ...before, ...typed })),
    [edit],
  );
  return (
    <Card
      title={`In ${environment.name}`}
      actions={
        <Switch
          label={enabled ? "On" : "Off"}
          aria-label={`Flag in ${environment.name}`}
          isSelected={enabled}
          whyNot={reason}
          onChange={(next) => edit((before) => ({ ...before, enabled: next }))}
        />
      }
    >
      <div className={styles.stack}>
        {reason !== undefined && (
          <p className={styles.note}>{reason} You can try changes here, but not save them.</p>
        )}
        <p className={styles.summary} aria-live="polite">
          {summarize(state)}
        </p>
        {!enabled && (
          <p className={styles.note}>
            When you turn it on: {summarize({ ...state, enabled: true })}
          </p>
        )}
        <PercentageSlider
          label={rules.length === 0 ? "Percentage of all users" : "Percentage of the flag"}
          value={percentage}
          invalidText={draft.invalidPercentage}
          onChange={setPercentage}
        />
        <p className={styles.note}>{percentageNote(draft)}</p>
        <BucketFields draft={draft} />
      </div>
    </Card>
  );
}

function percentageNote({ rules }: Draft): string {
  if (rules.length === 0) return "If you raise the percentage, users who have the flag keep it.";
  const using = rules.filter(
    ({ value, rollout_percentage: own }) => value !== false && own === undefined,
  );
  return using.length === 0
    ? "No rule uses this percentage now: each has its own, or takes its users out."
    : "It applies to each rule without its own percentage. The flag is off for users that match no rule.";
}
