import type { ReactNode } from "react";
import { Logo } from "../ui/logo.tsx";
import styles from "./sign-in-page.module.css";

/** The frame of pages that need no session. */
export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className={styles.page}>
      <div className={styles.frame}>
        <Logo />
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}
