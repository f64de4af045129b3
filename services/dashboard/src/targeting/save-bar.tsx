import { Button } from "../ui/button.tsx";
import { problemsText } from "./problems.ts";
import styles from "./targeting.module.css";

type SaveBarProps = {
  problemCount: number;
  isPending: boolean;
  /** Number of conflicts in which the person has not chosen yet. Until then, nothing can be saved. */
  openConflicts: number;
  /** Why the person cannot save. */
  whyNot?: string | undefined;
  /** The change is requested in place of saved. */
  isProposed: boolean;
  onSave: () => void;
  onDiscard: () => void;
};

/** Says that there are unsaved changes, and saves or discards them. It stays at the bottom of the window. */
export function SaveBar(props: SaveBarProps) {
  const { problemCount, isPending, openConflicts, whyNot, isProposed, onSave, onDiscard } = props;
  const text =
    openConflicts === 0 ? "Unsaved changes" : "Unsaved changes: choose in each conflict above";
  return (
    <section className={styles.saveBar} aria-label="Unsaved changes">
      <p role="status" className={styles.unsaved}>
        <span className={styles.dot} aria-hidden />
        {problemCount === 0 ? text : problemsText(problemCount)}
      </p>
      <Button onPress={onDiscard} isDisabled={isPending}>
        Discard
      </Button>
      <Button
        variant="primary"
        onPress={onSave}
        isPending={isPending}
        isDisabled={openConflicts > 0}
        whyNot={whyNot}
      >
        {isProposed ? "Request the change" : "Save changes"}
      </Button>
    </section>
  );
}
