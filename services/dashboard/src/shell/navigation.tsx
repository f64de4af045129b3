import { Link, type LinkProps } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import styles from "./shell.module.css";

export type NavigationEntry = {
  to: NonNullable<LinkProps["to"]>;
  label: string;
  icon: LucideIcon;
  /** The number of things that wait on the page. */
  count?: string | undefined;
};

type NavigationProps = { entries: readonly NavigationEntry[]; onFollow?: () => void };

/** The links to the pages. `onFollow` closes the menu of narrow screens. */
export function Navigation({ entries, onFollow }: NavigationProps) {
  return (
    <nav aria-label="Pages" className={styles.navigation}>
      {entries.map(({ to, label, icon: Icon, count }) => (
        <Link
          key={to}
          to={to}
          className={styles.entry ?? ""}
          activeProps={{ className: `${styles.entry} ${styles.current}` }}
          activeOptions={{ exact: to === "/", includeSearch: false }}
          {...(onFollow && { onClick: onFollow })}
        >
          <Icon size={17} strokeWidth={1.75} aria-hidden />
          {label}
          {count !== undefined && (
            <span className={styles.count}>
              {count}
              <span className="visually-hidden"> pending</span>
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}
