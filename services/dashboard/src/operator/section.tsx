import { type ReactNode, useId } from "react";
import styles from "./operator.module.css";

type SectionProps = { title: string; lead?: ReactNode; actions?: ReactNode; children: ReactNode };

/** A part of a page: its heading, a sentence about it, its actions, and a table or cards. */
export function Section({ title, lead, actions, children }: SectionProps) {
  const id = useId();
  return (
    <section className={styles.section} aria-labelledby={id}>
      <div className={styles.sectionHead}>
        <div className={styles.sectionText}>
          <h2 id={id}>{title}</h2>
          {lead !== undefined && <p className={styles.note}>{lead}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}
