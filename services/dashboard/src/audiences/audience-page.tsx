import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { SearchX, Trash2 } from "lucide-react";
import { useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import type { Audience } from "../api/schema.d.ts";
import { useAudience } from "../references/audience-queries.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Button, ButtonLink } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Page } from "../ui/page.tsx";
import { Card, EmptyState, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import { AudienceEditor } from "./audience-editor.tsx";
import { AudienceHistory } from "./audience-history.tsx";
import { protectedUse } from "./audience-proposal.ts";
import styles from "./audiences.module.css";
import { ListCard } from "./list-card.tsx";
import { useDeleteAudience } from "./use-audience-changes.ts";

/** An audience: who is in it, its list, the flags that use it, and its history. */
export function AudiencePage() {
  const { audienceKey } = useParams({ from: "/audiences/$audienceKey" });
  const query = useAudience(audienceKey);
  const { error } = query;
  // The API rejects a text that is no key with 400.
  if (error instanceof ApiProblem && (error.status === 404 || error.status === 400))
    return <MissingAudience audienceKey={audienceKey} />;
  return (
    <QueryView query={query} label={`Loading ${audienceKey}`}>
      {(audience) => <LoadedAudience key={audienceKey} audience={audience} />}
    </QueryView>
  );
}

function LoadedAudience({ audience }: { audience: Audience }) {
  const reached = protectedUse(audience, useKeySession().me.environments);
  const { reason, isOffered } = usePermission("change_project", reached);
  const mayChange = reason === undefined;
  return (
    <Page
      title={audience.name}
      back={{ link: { to: "/audiences" }, label: "Audiences" }}
      facts={
        <>
          <code>{audience.key}</code>
          <CopyButton text={audience.key} label="Copy the key" />
        </>
      }
      actions={isOffered && <DeleteButton audience={audience} />}
    >
      {!mayChange && <Warning>{reason}</Warning>}
      {reached !== undefined && (
        <p className={styles.note}>
          <ProtectedBadge /> Flags in <bdi>{reached.name}</bdi> use this audience, so changes of its
          users need an approved change request.
        </p>
      )}
      <AudienceEditor stored={audience} {...{ mayChange, reached }} />
      <ListCard audience={audience} {...{ mayChange, reached }} />
      <UsedBy audience={audience} />
      <AudienceHistory audienceKey={audience.key} />
    </Page>
  );
}

function UsedBy({ audience: { used_by: uses } }: { audience: Audience }) {
  const { environments } = useKeySession().me;
  const nameOf = new Map(environments.map(({ id, name }) => [id, name]));
  return (
    <Card title="Used by">
      {uses.length === 0 ? (
        <p className={styles.note}>No rule of a flag uses this audience.</p>
      ) : (
        <ul className={styles.uses} aria-label="Flags that use this audience">
          {uses.map(({ flag_id, flag_key, environment_id }) => {
            const env = nameOf.get(environment_id);
            return (
              <li key={`${flag_id} ${environment_id}`}>
                <Link
                  to="/flags/$flagKey"
                  params={{ flagKey: flag_key }}
                  search={env === undefined ? {} : { env }}
                >
                  <code>{flag_key}</code>
                </Link>
                {env !== undefined && (
                  <>
                    {" "}
                    in <bdi>{env}</bdi>
                  </>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </Card>
  );
}

function DeleteButton({ audience }: { audience: Audience }) {
  const { key, version, used_by: uses } = audience;
  const { reason } = usePermission("change_project");
  const [isAsking, setAsking] = useState(false);
  const navigate = useNavigate();
  const { mutate, isPending, error, reset } = useDeleteAudience(key, () => {
    notify({ text: `${key} is deleted.` });
    void navigate({ to: "/audiences", ignoreBlocker: true });
  });
  const close = () => {
    reset();
    setAsking(false);
  };
  const isUsed = error instanceof ApiProblem && error.code === "CONFLICT_001";
  return (
    <>
      <Button onPress={() => setAsking(true)} whyNot={reason}>
        <Trash2 size={16} aria-hidden /> Delete audience
      </Button>
      {isAsking && (
        <ConfirmDialog
          title={`Delete ${key}?`}
          action="Delete audience"
          onClose={close}
          onConfirm={() => mutate(version)}
          isPending={isPending}
          error={isUsed ? undefined : error}
        >
          {isUsed && <Warning>{error.message}</Warning>}
          {uses.length > 0 && !isUsed && (
            <Warning>
              Rules of flags use this audience, so it cannot be deleted. Remove it from these rules
              first.
            </Warning>
          )}
          <p>Its conditions and its list are deleted. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function MissingAudience({ audienceKey }: { audienceKey: string }) {
  return (
    <Page title="No such audience">
      <EmptyState
        icon={SearchX}
        title={`There is no audience ${audienceKey}`}
        action={<ButtonLink to="/audiences">All audiences</ButtonLink>}
      >
        It may have been deleted. The history of the project keeps what it was.
      </EmptyState>
    </Page>
  );
}
