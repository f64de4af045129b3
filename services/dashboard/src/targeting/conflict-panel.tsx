import { Users } from "lucide-react";
import type { State } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { summarize } from "../state/summary.ts";
import { Button } from "../ui/button.tsx";
import { Time } from "../ui/time.tsx";
import { problemsText } from "./problems.ts";
import styles from "./targeting.module.css";
import { useLastChange } from "./targeting-queries.ts";

type ConflictPanelProps = {
  theirs: State;
  mine: State;
  problemCount: number;
  isPending: boolean;
  onKeep: () => void;
  onTake: () => void;
};

/** Shows the state that another person saved, and lets the person choose a version. Until then, both are kept. */
export function ConflictPanel(props: ConflictPanelProps) {
  const { theirs, mine, problemCount, isPending, onKeep, onTake } = props;
  const { environment } = useFlagInPage();
  const { data: change } = useLastChange();
  return (
    <section role="alert" className={styles.conflict} aria-label="Changed by someone else">
      <h2 className={styles.conflictTitle}>
        <Users size={18} aria-hidden /> Someone else changed this first
      </h2>
      {change && (
        <p>
          {change.actor.email} {describeChange(change, environment.name)},{" "}
          <Time at={change.changed_at} />.
        </p>
      )}
      <dl className={styles.versions}>
        <dt>Saved now</dt>
        <dd>
          <Version state={theirs} />
        </dd>
        <dt>Your draft</dt>
        <dd>
          <Version state={mine} />
        </dd>
      </dl>
      {problemCount > 0 && <p role="status">{problemsText(problemCount)}</p>}
      <div className={styles.buttons}>
        <Button onPress={onTake} isDisabled={isPending}>
          Take theirs
        </Button>
        <Button variant="primary" onPress={onKeep} isPending={isPending}>
          Keep mine and save
        </Button>
      </div>
    </section>
  );
}

/** Summary of a version. Two versions that are off can still differ in their rules. */
function Version({ state }: { state: State }) {
  return (
    <>
      {summarize(state)}
      {!state.enabled && ` When turned on: ${summarize({ ...state, enabled: true })}`}
    </>
  );
}
