import { Link, type LinkProps } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import styles from "./page.module.css";

export type BackLink = { link: LinkProps; label: string };

type PageProps = {
  title: string;
  back?: BackLink;
  lead?: ReactNode;
  /** Codes and badges. */
  facts?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
};

/**
 * The frame of a page: its title, also of the window, a sentence about it, and its actions. A page about one thing has a
 * link back to the list, and short facts below its title.
 */
export function Page({ title, back, lead, facts, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Halyard`;
  }, [title]);
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <div className={styles.titles}>
          {back !== undefined && (
            <Link {...back.link} className={styles.back ?? ""}>
              <ChevronLeft size={14} aria-hidden /> {back.label}
            </Link>
          )}
          <h1>{title}</h1>
          {lead !== undefined && <p className={styles.lead}>{lead}</p>}
          {facts !== undefined && <div className={styles.facts}>{facts}</div>}
        </div>
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Fields and buttons that filter what is below them. */
export function Filters({ children }: { children: ReactNode }) {
  return <search className={styles.filters}>{children}</search>;
}
