import { type ReactNode, useId } from "react";
import styles from "./panels.module.css";

type RestrictedProps = { reason: string | undefined; children: ReactNode };

/** Disables the form in it if there is a reason, and says the reason above it. */
export function Restricted({ reason, children }: RestrictedProps) {
  const note = useId();
  if (reason === undefined) return children;
  return (
    <>
      <p id={note} className={styles.reason}>
        {reason}
      </p>
      <fieldset disabled aria-describedby={note} className={styles.restricted}>
        {children}
      </fieldset>
    </>
  );
}
