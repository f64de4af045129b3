import { Ban, RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import type { ApiKey, KeyScope } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { RowMenu } from "../ui/menu.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import type { KeyPlace } from "./key-queries.ts";
import { type KeyState, stateOf, works } from "./key-state.ts";
import styles from "./keys.module.css";

type Actions = { onRotate: (key: ApiKey) => void; onRevoke: (key: ApiKey) => void };

type KeyTableProps = Actions & {
  place: KeyPlace;
  all: readonly ApiKey[];
  shown: readonly ApiKey[];
  emailOf: (userId: string) => string;
};

/** The keys with what they may do. */
export function KeyTable({ place, all, shown, emailOf, ...actions }: KeyTableProps) {
  const nameOf = (id: string) => all.find((key) => key.id === id)?.name;
  const columns: readonly Column<ApiKey>[] = [
    {
      id: "name",
      header: "Key",
      cell: (key) => <KeyName subject={key} isInUse={key.id === place.own?.id} />,
    },
    { id: "kind", header: "May do", cell: (key) => <Kind subject={key} /> },
    { id: "user", header: "User", cell: ({ user_id: id }) => emailOf(id) },
    {
      id: "used",
      header: "Last used",
      cell: ({ last_used_at: at }) => <OptionalTime at={at} or="Never" />,
    },
    {
      id: "expires",
      header: "Expires",
      cell: ({ expires_at: at }) => <OptionalTime at={at} or="Never" />,
    },
    { id: "created", header: "Created", cell: (key) => <Created subject={key} nameOf={nameOf} /> },
    actionsColumn(
      (key) =>
        mayRevoke(place, key) && (
          <KeyActions subject={key} mayRotate={mayHandle(place, key)} {...actions} />
        ),
    ),
  ];
  return <Table label="API keys" columns={columns} rows={shown} />;
}

const badges: Record<KeyState, ReactNode> = {
  active: null,
  "expires soon": <Badge tone="warning">Expires soon</Badge>,
  expired: <Badge>Expired</Badge>,
  revoked: <Badge>Revoked</Badge>,
};

function KeyName({ subject, isInUse }: { subject: ApiKey; isInUse: boolean }) {
  const state = stateOf(subject, Date.now());
  return (
    <div className={styles.name}>
      <strong>{subject.name}</strong>
      <span className={styles.badges}>
        <code>{subject.id}</code>
        {isInUse && <Badge tone="accent">In use here</Badge>}
        {badges[state]}
      </span>
    </div>
  );
}

export const nameOfKind: Readonly<Record<ApiKey["kind"], string>> = {
  client: "Client key",
  reader: "Reader key",
  server: "Server key",
};

function Kind({ subject }: { subject: ApiKey }) {
  return (
    <div className={styles.kind}>
      <span>{nameOfKind[subject.kind]}</span>
      <span className={styles.note}>{describeKind(subject)}</span>
    </div>
  );
}

function describeKind({ kind, scope = "write", environment_only: isLimited }: ApiKey): string {
  if (kind === "client") return "Reads flag values. May be public.";
  if (kind === "reader") return "Reads values and rules of this environment.";
  const where = isLimited ? "this environment only" : "the whole project";
  return `${scopeVerbs[scope]} ${where}.`;
}

const scopeVerbs: Readonly<Record<KeyScope, string>> = {
  read: "Reads",
  propose: "Reads, and opens change requests in,",
  write: "Reads and changes",
};

const OptionalTime = ({ at, or }: { at: string | null; or: string }) =>
  at === null ? <span className={styles.note}>{or}</span> : <Time at={at} />;

type CreatedProps = { subject: ApiKey; nameOf: (id: string) => string | undefined };

function Created({ subject: { created_at: at, issued_by: issuer }, nameOf }: CreatedProps) {
  return (
    <div className={styles.kind}>
      <Time at={at} />
      <span className={styles.note}>
        {issuer === null
          ? "by a person or the operator"
          : `with the key ${nameOf(issuer) ?? issuer}`}
      </span>
    </div>
  );
}

/**
 * Returns whether the API permits to rotate a key, and to revoke it: the operator every one, other people their own and,
 * as admins, those of service users.
 */
function mayHandle({ own, users }: KeyPlace, key: ApiKey): boolean {
  if (key.revoked_at !== null) return false;
  if (own === null) return true;
  const isOwn = users.some(({ id }) => id === key.user_id);
  return isOwn && (key.environment_only || !own.environment_only);
}

const mayRevoke = (place: KeyPlace, key: ApiKey): boolean =>
  mayHandle(place, key) || (place.mayRevokeAll && key.revoked_at === null);

type KeyActionsProps = Actions & { subject: ApiKey; mayRotate: boolean };

function KeyActions({ subject, mayRotate, onRotate, onRevoke }: KeyActionsProps) {
  return (
    <RowMenu
      name={subject.name}
      entries={[
        {
          id: "rotate",
          label: "Rotate…",
          icon: <RefreshCw size={16} aria-hidden />,
          isDisabled: !mayRotate || !works(subject, Date.now()),
          ...(!mayRotate && { note: "only its user can" }),
          onAction: () => onRotate(subject),
        },
        {
          id: "revoke",
          label: "Revoke…",
          icon: <Ban size={16} aria-hidden />,
          isDanger: true,
          onAction: () => onRevoke(subject),
        },
      ]}
    />
  );
}
