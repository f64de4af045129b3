import { Fragment } from "react";
import { Dialog } from "../ui/dialog.tsx";
import styles from "./search.module.css";

const keys: readonly { keys: readonly string[]; effect: string }[] = [
  { keys: ["/", "Ctrl K", "⌘ K"], effect: "Search flags and pages" },
  { keys: ["?"], effect: "Show this help" },
  { keys: ["Tab", "Shift Tab"], effect: "Go to the next or the previous field or button" },
  { keys: ["Space"], effect: "Turn a switch on or off, or select a row of the list of flags" },
  { keys: ["Shift Space"], effect: "Select all rows from the last selected one" },
  {
    keys: ["Enter", "↑", "↓"],
    effect: "On the handle of a rule: take the rule, move it, put it down",
  },
  { keys: ["Escape"], effect: "Close a dialog or a menu" },
];

/** Help on the keys of the dashboard. */
export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className={styles.keys}>
        {keys.map(({ keys: pressed, effect }) => (
          <Fragment key={effect}>
            <dt>
              {pressed.map((key, index) => (
                <Fragment key={key}>
                  {index > 0 && " or "}
                  <kbd>{key}</kbd>
                </Fragment>
              ))}
            </dt>
            <dd>{effect}</dd>
          </Fragment>
        ))}
      </dl>
      <p>The first two work while no text field has the focus.</p>
    </Dialog>
  );
}
