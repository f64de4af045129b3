import type { Environment } from "../api/schema.d.ts";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Badge } from "../ui/badge.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Table } from "../ui/table.tsx";
import { type ListedFlag, stateIn, summaryOf } from "./flag-search.ts";

type StatesDialogProps = {
  flag: ListedFlag;
  environments: readonly Environment[];
  onClose: () => void;
};

/** The state of a flag in each environment of the project. */
export function StatesDialog({ flag, environments, onClose }: StatesDialogProps) {
  const rows = environments.flatMap(({ id, name, protected: protection }) => {
    const state = stateIn(flag, id);
    return state === undefined ? [] : [{ id, name, protection, state }];
  });
  return (
    <Dialog title={`${flag.key} in all environments`} onClose={onClose}>
      <Table
        label="Environments"
        rows={rows}
        columns={[
          {
            id: "name",
            header: "Environment",
            cell: ({ name, protection }) => (
              <>
                {name} {protection !== null && <ProtectedBadge />}
              </>
            ),
          },
          {
            id: "state",
            header: "State",
            cell: ({ state }) => (
              <Badge tone={state.enabled ? "on" : "neutral"}>{summaryOf(state)}</Badge>
            ),
          },
        ]}
      />
    </Dialog>
  );
}
