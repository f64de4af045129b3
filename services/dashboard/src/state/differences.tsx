import { ArrowRight, Minus, Plus } from "lucide-react";
import type { Difference } from "./difference.ts";
import styles from "./differences.module.css";

/** Differences in words, one line each. Something new has a plus, something removed a minus. */
export function Differences({ items, label }: { items: readonly Difference[]; label: string }) {
  if (items.length === 0)
    return <p className={styles.note}>Users get the same before and after this change.</p>;
  return (
    <ul className={styles.differences} aria-label={label}>
      {items.map((item) => (
        <DifferenceLine key={`${item.label} ${item.before} ${item.after}`} item={item} />
      ))}
    </ul>
  );
}

function DifferenceLine({ item: { label, before, after, parts } }: { item: Difference }) {
  if (parts !== undefined)
    return (
      <li>
        <span className={styles.label}>{label}</span>
        <Differences items={parts} label={`Parts of ${label}`} />
      </li>
    );
  return (
    <li>
      <span className={styles.label}>{label}</span>{" "}
      {before === undefined && <Mark icon={Plus} text="added" tone={styles.added} />}
      {after === undefined && <Mark icon={Minus} text="removed" tone={styles.removed} />}
      {before !== undefined && <span className={styles.before}>{before}</span>}
      {before !== undefined && after !== undefined && (
        <>
          {" "}
          <ArrowRight size={12} aria-hidden className={styles.arrow} />
          <span className="visually-hidden">becomes</span>{" "}
        </>
      )}
      {after !== undefined && <span className={styles.after}>{after}</span>}
    </li>
  );
}

type MarkProps = { icon: typeof Plus; text: string; tone: string | undefined };

function Mark({ icon: Icon, text, tone }: MarkProps) {
  return (
    <>
      <span className={`${styles.mark} ${tone}`}>
        <Icon size={11} strokeWidth={3} aria-hidden /> {text}
      </span>{" "}
    </>
  );
}
