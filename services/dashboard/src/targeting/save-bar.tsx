import { Button } from "../ui/button.tsx";
import { problemsText } from "./problems.ts";
import styles from "./targeting.module.css";

type SaveBarProps = {
  problemCount: number;
  isPending: boolean;
  onSave: () => void;
  onDiscard: () => void;
};

/** Says that there are unsaved changes, and saves or discards them. It stays at the bottom of the window. */
export function SaveBar({ problemCount, isPending, onSave, onDiscard }: SaveBarProps) {
  return (
    <section className={styles.saveBar} aria-label="Unsaved changes">
      <p role="status" className={styles.unsaved}>
        <span className={styles.dot} aria-hidden />
        {problemCount === 0 ? "Unsaved changes" : problemsText(problemCount)}
      </p>
      <Button onPress={onDiscard} isDisabled={isPending}>
        Discard
      </Button>
      <Button variant="primary" onPress={onSave} isPending={isPending}>
        Save changes
      </Button>
    </section>
  );
}
