import { Button } from "../ui/button.tsx";
import { useEditor } from "./editor-context.ts";
import { problemsText } from "./problems.ts";
import styles from "./targeting.module.css";

type SaveBarProps = { isPending: boolean; onSave: () => void; onDiscard: () => void };

/** Says that there are unsaved changes, and saves or discards them. It stays at the bottom of the window. */
export function SaveBar({ isPending, onSave, onDiscard }: SaveBarProps) {
  const { problems } = useEditor();
  return (
    <section className={styles.saveBar} aria-label="Unsaved changes">
      <p role="status" className={styles.unsaved}>
        <span className={styles.dot} aria-hidden />
        {problems.size === 0 ? "Unsaved changes" : problemsText(problems.size)}
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
