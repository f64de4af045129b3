import { ListChecks } from "lucide-react";
import { lazy, memo, Suspense, useEffect, useRef, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import { CautionBadge } from "../state/caution.tsx";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Button } from "../ui/button.tsx";
import { Menu } from "../ui/menu.tsx";
import { count } from "../ui/numbers.ts";
import { type BulkKind, flagsText } from "./bulk-change.ts";
import styles from "./flag-list.module.css";
import type { Selection } from "./use-selection.ts";

const BulkDialog = lazy(async () => ({ default: (await import("./bulk-dialog.tsx")).BulkDialog }));

type ListHeadProps = {
  shown: number;
  total: number | undefined;
  selection: Selection | undefined;
  environment: Environment;
};

/** The head of the list: the number of flags, or of selected ones with their actions, and the environments. */
export const ListHead = memo(function ListHead(props: ListHeadProps) {
  const { shown, total, selection, environment } = props;
  const isSelecting = selection !== undefined && selection.selected.length > 0;
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} className={styles.head}>
        {selection !== undefined && <SelectAll selection={selection} shown={shown} />}
        <span role="columnheader" className={styles.count}>
          {isSelecting ? <SelectionActions selection={selection} /> : countText(shown, total)}
        </span>
        <span role="columnheader" className={styles.others}>
          Other environments
        </span>
        <span role="columnheader" className={styles.own}>
          {environment.protected !== null && <ProtectedBadge />}{" "}
          {environment.caution && <CautionBadge />} {environment.name}
        </span>
      </div>
    </div>
  );
});

function countText(shown: number, total: number | undefined): string {
  if (total === undefined) return `${flagsText(shown)}, reading more…`;
  return shown === total ? flagsText(total) : `${count(shown)} of ${flagsText(total)}`;
}

function SelectAll({ selection, shown }: { selection: Selection; shown: number }) {
  const box = useRef<HTMLInputElement>(null);
  const { length } = selection.selected;
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = length > 0 && length < shown;
  });
  return (
    <span role="columnheader">
      <input
        ref={box}
        type="checkbox"
        className={styles.select}
        aria-label={`Select all ${flagsText(shown)} that are listed`}
        checked={length === shown}
        onChange={({ target }) => selection.chooseAll(target.checked)}
      />
    </span>
  );
}

const actions: readonly { id: BulkKind; label: string }[] = [
  { id: "archive", label: "Archive…" },
  { id: "restore", label: "Restore…" },
  { id: "owner", label: "Set the owner…" },
  { id: "add_tags", label: "Add tags…" },
  { id: "remove_tags", label: "Remove tags…" },
];

/** The number of selected flags, and the changes of all of them. Each shows a preview first. */
function SelectionActions({ selection: { selected, chooseAll } }: { selection: Selection }) {
  const [kind, setKind] = useState<BulkKind>();
  return (
    <>
      <span aria-live="polite">{count(selected.length)} selected</span>
      <Menu
        label="Change the selected flags"
        trigger={
          <Button size="small">
            <ListChecks size={14} aria-hidden /> Change
          </Button>
        }
        entries={actions.map((action) => ({ ...action, onAction: () => setKind(action.id) }))}
      />
      <Button size="small" variant="quiet" onPress={() => chooseAll(false)}>
        Clear
      </Button>
      {kind !== undefined && (
        <Suspense>
          <BulkDialog kind={kind} flags={selected} onClose={() => setKind(undefined)} />
        </Suspense>
      )}
    </>
  );
}
