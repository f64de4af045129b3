import { Differences } from "../state/differences.tsx";
import { Button } from "../ui/button.tsx";
import { Warning } from "../ui/panels.tsx";
import {
  type EditedVariations,
  openConflicts,
  type VariationConflict,
  variationDifferences,
} from "./merge-variations.ts";
import { draftsOf, type TypedValueType } from "./variation-drafts.ts";
import styles from "./variations.module.css";

type MergePanelProps = {
  type: TypedValueType;
  edited: EditedVariations;
  onDecide: (conflict: VariationConflict, choice: "mine" | "theirs") => void;
};

/** Shows the changes of other people that were merged into the drafts, and lets the person choose in each conflict. */
export function MergePanel({ type, edited, onDecide }: MergePanelProps) {
  const { base, drafts, firstBase } = edited;
  if (firstBase === undefined) return null;
  const conflicts = openConflicts(type, edited);
  return (
    <Warning>
      <p>
        Someone else changed the variations first. Your draft contains these changes now
        {conflicts.length === 0
          ? ". Check it, then save it."
          : ", except where you changed the same variation. Choose there before you save."}
      </p>
      <Differences
        items={variationDifferences(draftsOf(type, firstBase.stored), draftsOf(type, base.stored))}
        label="Changes by others"
      />
      {conflicts.map((conflict) => {
        const mine = drafts.filter(({ uid }) => uid === conflict.uid);
        return (
          <section
            key={conflict.uid}
            aria-label={`Conflict: ${conflict.key}`}
            className={styles.conflict}
          >
            <h3>{conflict.key}: you both changed this</h3>
            <p>From yours to theirs:</p>
            <Differences
              items={variationDifferences(mine, conflict.theirs ? [conflict.theirs] : [])}
              label={`Yours and theirs: ${conflict.key}`}
            />
            <div className={styles.buttons}>
              <Button onPress={() => onDecide(conflict, "theirs")}>Take theirs</Button>
              <Button variant="primary" onPress={() => onDecide(conflict, "mine")}>
                Keep mine
              </Button>
            </div>
          </section>
        );
      })}
    </Warning>
  );
}
