import { Button } from "../ui/button.tsx";
import { useEditor } from "./editor-context.ts";
import { problemsText } from "./problems.ts";
import styles from "./targeting.module.css";

type SaveBarProps = {
  isPending: boolean;
  /** Number of conflicts in which the person has not chosen yet. Until then, nothing can be saved. */
  openConflicts: number;
  onSave: () => void;
  onDiscard: () => void;
};

/** Says that there are unsaved changes, and saves or discards them. It stays at the bottom of the window. */
export function SaveBar({ isPending, openConflicts, onSave, onDiscard }: SaveBarProps) {
  const { problems } = useEditor();
  const text =
    openConflicts === 0 ? "Unsaved changes" : "Unsaved changes: choose in each conflict above";
  return (
    <section className={styles.saveBar} aria-label="Unsaved changes">
      <p role="status" className={styles.unsaved}>
        <span className={styles.dot} aria-hidden />
        {problems.size === 0 ? text : problemsText(problems.size)}
      </p>
      <Button onPress={onDiscard} isDisabled={isPending}>
        Discard
      </Button>
      <Button
        variant="primary"
        onPress={onSave}
        isPending={isPending}
        isDisabled={openConflicts > 0}
      >
        Save changes
      </Button>
    </section>
  );
}
