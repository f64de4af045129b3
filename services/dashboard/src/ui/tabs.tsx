import { Link, type LinkProps } from "@tanstack/react-router";
import styles from "./tabs.module.css";

type TabLinksProps = { label: string; tabs: readonly { label: string; link: LinkProps }[] };

/** Links between the views of one thing. The address names the view, so it can be shared. */
export function TabLinks({ label, tabs }: TabLinksProps) {
  return (
    <nav aria-label={label} className={styles.tabs}>
      {tabs.map((tab) => (
        <Link
          key={tab.label}
          {...tab.link}
          className={styles.tab ?? ""}
          activeProps={{ className: `${styles.tab} ${styles.active}` }}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
