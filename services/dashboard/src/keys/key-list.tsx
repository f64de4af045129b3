import { KeyRound } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { ApiKey } from "../api/schema.d.ts";
import { ButtonLink } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { Checkbox } from "../ui/fields.tsx";
import { Filters } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type KeyPlace, useKeys } from "./key-queries.ts";
import { sortKeys, works } from "./key-state.ts";
import { KeyTable } from "./key-table.tsx";
import { RevokeKeyDialog } from "./revoke-key-dialog.tsx";
import { RotateKeyDialog } from "./rotate-key-dialog.tsx";

type KeyListProps = {
  place: KeyPlace;
  /** Names the user of a key. */
  emailOf: (userId: string) => string;
  /** Further filters, such as the choice of the environment. */
  filters?: ReactNode;
};

/** The keys of an environment, with the actions on each. */
export function KeyList({ place, emailOf, filters }: KeyListProps) {
  const keys = useKeys(place);
  const [open, setOpen] = useState<{ dialog: "rotate" | "revoke"; subject: ApiKey }>();
  const [showsEnded, setShowsEnded] = useState(false);
  const now = Date.now();
  const ended = (keys.data ?? []).filter((key) => !works(key, now)).length;
  const close = () => setOpen(undefined);
  return (
    <>
      {(filters !== undefined || ended > 0) && (
        <Filters>
          {filters}
          {ended > 0 && (
            <Checkbox isSelected={showsEnded} onChange={setShowsEnded}>
              Show revoked and expired keys ({ended})
            </Checkbox>
          )}
        </Filters>
      )}
      <QueryView query={keys} label="Loading the keys">
        {(all) => {
          const shown = sortKeys(all, now).filter((key) => showsEnded || works(key, now));
          if (shown.length === 0) return <NoKeys place={place} />;
          return (
            <KeyTable
              {...{ place, all, shown, emailOf }}
              onRotate={(subject) => setOpen({ dialog: "rotate", subject })}
              onRevoke={(subject) => setOpen({ dialog: "revoke", subject })}
            />
          );
        }}
      </QueryView>
      {open?.dialog === "rotate" && (
        <RotateKeyDialog place={place} subject={open.subject} onClose={close} />
      )}
      {open?.dialog === "revoke" && (
        <RevokeKeyDialog place={place} subject={open.subject} onClose={close} />
      )}
    </>
  );
}

function NoKeys({ place: { projectId, environment, own, users } }: { place: KeyPlace }) {
  const path = `/api/v1/projects/${projectId}/environments/${environment.id}/keys`;
  const body = `{"kind":"client","name":"Web app","user_id":"${users[0]?.id ?? "…"}"}`;
  const command = curl(path, body, own === null ? "OPERATOR_TOKEN" : undefined);
  return (
    <EmptyState
      icon={KeyRound}
      title={`No key works in ${environment.name}`}
      action={own !== null && <ButtonLink to="/connect">Connect an application</ButtonLink>}
      examples={<CodeBlock title="Issue a key over the API" code={command} />}
    >
      Applications and people need a key of this environment to ask for its flags. Choose "Issue
      key" to create one.
    </EmptyState>
  );
}
