import { type LucideIcon, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { ProgressBar } from "react-aria-components";
import styles from "./panels.module.css";

type CardProps = { title: ReactNode; actions?: ReactNode; children: ReactNode };

/** A framed section of a page, with a heading and actions. */
export function Card({ title, actions, children }: CardProps) {
  return (
    <section className={styles.card}>
      <div className={styles.cardHead}>
        <h2>{title}</h2>
        {actions}
      </div>
      <div className={styles.cardBody}>{children}</div>
    </section>
  );
}

type EmptyStateProps = {
  icon: LucideIcon;
  title: string;
  children: ReactNode;
  action?: ReactNode;
  examples?: ReactNode;
};

/** Says what a page will contain and what to do next. `examples` are commands and snippets to copy. */
export function EmptyState({ icon: Icon, title, children, action, examples }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      <Icon size={32} strokeWidth={1.5} aria-hidden />
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
      {examples !== undefined && <div className={styles.examples}>{examples}</div>}
    </div>
  );
}

export function Warning({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div role="status" className={`${styles.panel} ${styles.warning}`}>
      <TriangleAlert size={18} aria-hidden className={styles.icon} />
      <div className={styles.text}>{children}</div>
      {action}
    </div>
  );
}

/** Time before progress is shown. A fast answer shows no flicker. */
const quietMs = 200;

/** Progress of a request whose duration is unknown. */
export function Loading({ label }: { label: string }) {
  const [isVisible, setVisible] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setVisible(true), quietMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className={styles.loading}>
      {isVisible && (
        <ProgressBar isIndeterminate aria-label={label}>
          <p>{label}…</p>
          <div className={styles.bar} />
        </ProgressBar>
      )}
    </div>
  );
}
