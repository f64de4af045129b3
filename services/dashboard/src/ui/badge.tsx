import type { ReactNode } from "react";
import styles from "./badge.module.css";

export type Tone = "neutral" | "on" | "warning" | "danger" | "accent";

/** A short state or category. The text says everything, and the color only repeats it. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}
