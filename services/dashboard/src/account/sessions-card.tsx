import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./account.module.css";
import { type OwnSession, useOwnSessions, useRefreshOwn } from "./account-queries.ts";
import { browserName } from "./browser-name.ts";
import { methodNames } from "./method-names.ts";

/** The person's sessions in all browsers. */
export function SessionsCard() {
  const query = useOwnSessions();
  const [isEnding, setEnding] = useState(false);
  return (
    <Card
      title="Sessions"
      actions={
        <Button size="small" onPress={() => setEnding(true)}>
          Sign out everywhere…
        </Button>
      }
    >
      <QueryView query={query} label="Loading the sessions">
        {(sessions) => <SessionTable sessions={sessions} />}
      </QueryView>
      {isEnding && <EndAllDialog onClose={() => setEnding(false)} />}
    </Card>
  );
}

function SessionTable({ sessions }: { sessions: readonly OwnSession[] }) {
  const { api } = useKeySession();
  const refresh = useRefreshOwn();
  const { mutate, isPending, error, variables } = useMutation({
    mutationFn: ({ id }: OwnSession) =>
      unwrap(api.DELETE("/api/v1/sessions", { params: { query: { id } } })),
    onSuccess: async (_ended, { user_agent }) => {
      await refresh();
      notify({ text: `The session of ${browserName(user_agent)} has ended.` });
    },
  });
  const columns: readonly Column<OwnSession>[] = [
    {
      id: "browser",
      header: "Browser",
      cell: ({ user_agent: userAgent, current }) => (
        <span className={styles.name} title={userAgent}>
          {browserName(userAgent)} {current && <Badge tone="accent">This session</Badge>}
        </span>
      ),
    },
    { id: "address", header: "Address", cell: ({ address }) => <code>{address}</code> },
    { id: "by", header: "Signed in", cell: ({ signed_in_by }) => methodNames[signed_in_by] },
    { id: "since", header: "Since", cell: ({ signed_in_at }) => <Time at={signed_in_at} /> },
    { id: "until", header: "Until", cell: ({ expires_at }) => <Time at={expires_at} /> },
    actionsColumn(
      (session) =>
        !session.current && (
          <Button
            size="small"
            aria-label={`End the session of ${browserName(session.user_agent)}`}
            isPending={isPending && variables.id === session.id}
            onPress={() => mutate(session)}
          >
            End
          </Button>
        ),
    ),
  ];
  return (
    <>
      {error !== null && <ErrorPanel error={error} />}
      <Table label="Sessions" columns={columns} rows={sessions} />
    </>
  );
}

/** Ends all sessions, then this tab's. */
function EndAllDialog({ onClose }: { onClose: () => void }) {
  const { api, token } = useKeySession();
  const { signOut } = useSessions();
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/sessions")),
    onSuccess: () => signOut(token),
  });
  return (
    <ConfirmDialog
      title="Sign out everywhere?"
      action="Sign out everywhere"
      onClose={onClose}
      onConfirm={mutate}
      isPending={isPending}
      error={error}
    >
      <p>
        All your sessions end within a second, in every browser and also in this one. API keys still
        work.
      </p>
    </ConfirmDialog>
  );
}
