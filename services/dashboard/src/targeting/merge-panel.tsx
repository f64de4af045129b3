import { Users } from "lucide-react";
import { describeChange } from "../changes/describe-change.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { Differences } from "../state/differences.tsx";
import { labelOf, type MemberName, stateDifferences } from "../state/state.ts";
import { capitalized, ruleName } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { Time } from "../ui/time.tsx";
import { type Draft, stateOf } from "./draft.ts";
import { type Part, ruleIn, uidIn, withTheirs } from "./merge-drafts.ts";
import styles from "./targeting.module.css";
import { useLastChange } from "./targeting-queries.ts";
import type { DraftState } from "./use-draft.ts";

type MergePanelProps = { editing: DraftState; onDecide: DraftState["decide"] };

/** Shows the changes of other people that were merged into the draft, and lets the person choose in each conflict. */
export function MergePanel({ editing, onDecide }: MergePanelProps) {
  const { environment } = useFlagInPage();
  const { data: change } = useLastChange();
  const { draft, base, firstBase, conflicts } = editing;
  if (firstBase === undefined) return null;
  return (
    <section
      role={conflicts.length > 0 ? "alert" : "status"}
      className={styles.conflict}
      aria-label="Changed by someone else"
    >
      <h2 className={styles.conflictTitle}>
        <Users size={18} aria-hidden /> Someone else changed this first
      </h2>
      {change && (
        <p>
          {change.actor.email} {describeChange(change, environment.name)},{" "}
          <Time at={change.changed_at} />.
        </p>
      )}
      <p>
        {conflicts.length === 0
          ? "Your draft contains these changes now. Check it, then save it."
          : "Your draft contains these changes now, except where you changed the same. Choose there before you save."}
      </p>
      <Differences items={stateDifferences(firstBase, stateOf(base))} label="Changes by others" />
      {conflicts.map((part) => (
        <Conflict key={part} part={part} mine={draft} theirs={base} onDecide={onDecide} />
      ))}
    </section>
  );
}

type ConflictProps = {
  part: Part;
  mine: Draft;
  theirs: Draft;
  onDecide: DraftState["decide"];
};

function Conflict({ part, mine, theirs, onDecide }: ConflictProps) {
  const label = labelOfPart(part, mine, theirs);
  const taken = withTheirs(mine, theirs, part);
  return (
    <section aria-label={`Conflict: ${label}`} className={styles.conflictPart}>
      <h3>{label}: you both changed this</h3>
      <p>From yours to theirs:</p>
      <Differences
        items={stateDifferences(stateOf(mine), stateOf(taken))}
        label={`Yours and theirs: ${label}`}
      />
      <div className={styles.buttons}>
        <Button onPress={() => onDecide(part, "theirs")}>Take theirs</Button>
        <Button variant="primary" onPress={() => onDecide(part, "mine")}>
          Keep mine
        </Button>
      </div>
    </section>
  );
}

function labelOfPart(part: Part, mine: Draft, theirs: Draft): string {
  if (part === "order") return "Order of the rules";
  const uid = uidIn(part);
  if (uid === undefined) return labelOf(part as MemberName);
  const rules = ruleIn(mine, uid) === undefined ? theirs.rules : mine.rules;
  const index = rules.findIndex((rule) => rule.uid === uid);
  return capitalized(ruleName(rules[index], index));
}
