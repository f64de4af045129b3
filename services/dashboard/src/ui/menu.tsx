import { Ellipsis } from "lucide-react";
import type { ReactElement, ReactNode } from "react";
import {
  Menu as AriaMenu,
  MenuItem as AriaMenuItem,
  MenuTrigger,
  Popover,
} from "react-aria-components";
import { IconButton } from "./button.tsx";
import styles from "./overlay.module.css";

type MenuEntry = {
  id: string;
  label: string;
  note?: string;
  icon?: ReactNode;
  isDanger?: boolean;
  isDisabled?: boolean;
  onAction: () => void;
};

type MenuProps = { trigger: ReactElement; label: string; entries: readonly MenuEntry[] };

/** A button that opens a menu of actions. */
export function Menu({ trigger, label, entries }: MenuProps) {
  return (
    <MenuTrigger>
      {trigger}
      <Popover className={styles.popover ?? ""} placement="bottom end">
        <AriaMenu className={styles.list ?? ""} aria-label={label} items={entries}>
          {(entry) => (
            <AriaMenuItem
              id={entry.id}
              textValue={entry.label}
              isDisabled={entry.isDisabled ?? false}
              onAction={entry.onAction}
              className={`${styles.option} ${entry.isDanger ? styles.danger : ""}`}
            >
              {entry.icon}
              <span>{entry.label}</span>
              {entry.note !== undefined && <span className={styles.optionNote}>{entry.note}</span>}
            </AriaMenuItem>
          )}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

/** The actions of a row of a table or list. */
export function RowMenu({ name, entries }: { name: string; entries: readonly MenuEntry[] }) {
  const label = `Actions for ${name}`;
  return (
    <Menu
      label={label}
      entries={entries}
      trigger={<IconButton icon={Ellipsis} label={label} size="small" />}
    />
  );
}
