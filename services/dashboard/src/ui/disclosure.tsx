import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { Disclosure as AriaDisclosure, Button, DisclosurePanel } from "react-aria-components";
import styles from "./disclosure.module.css";

type DisclosureProps = {
  label: string;
  /** The subject of the label, for screen readers where several disclosures have the same label. */
  about?: string;
  /** Makes the button a cell of the surrounding grid, and the content a row below it. */
  isInGrid?: boolean;
  children: () => ReactNode;
};

/** A button that shows and hides what is below it. The content is rendered when it is shown. */
export function Disclosure({ label, about, isInGrid = false, children }: DisclosureProps) {
  return (
    <AriaDisclosure className={`${styles.disclosure} ${isInGrid ? styles.inGrid : ""}`}>
      {({ isExpanded }) => (
        <>
          <Button slot="trigger" className={styles.trigger ?? ""}>
            <ChevronRight size={14} aria-hidden className={styles.chevron} />
            {label}
            {about !== undefined && <span className="visually-hidden"> {about}</span>}
          </Button>
          <DisclosurePanel className={styles.panel ?? ""}>
            {isExpanded && children()}
          </DisclosurePanel>
        </>
      )}
    </AriaDisclosure>
  );
}
