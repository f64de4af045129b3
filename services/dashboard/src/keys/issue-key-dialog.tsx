import { useMutation } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useId, useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { fieldMessageOf, isUnconfirmed } from "../api/problem.ts";
import type { IssuedApiKey, IssueKey, KeyScope } from "../api/schema.d.ts";
import { Button } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { Checkbox, Select, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useAskedClose, useUnsaved } from "../ui/leave-guard.ts";
import { type KeyPlace, keysRoute, pathOf, useRefreshKeys } from "./key-queries.ts";
import { type Expiry, expiriesWithin, expiryInstant, outlives } from "./key-state.ts";
import styles from "./keys.module.css";
import { NewKeyDialog } from "./new-key.tsx";

type IssueKeyButtonProps = {
  place: KeyPlace;
  variant?: "primary" | "secondary";
  label?: string;
  /** The kind that the form offers first. */
  kind?: IssueKey["kind"];
  /** Why the person cannot issue keys here. */
  whyNot?: string | undefined;
};

/** Issues a key, then shows it once. */
export function IssueKeyButton(props: IssueKeyButtonProps) {
  const { place, variant = "secondary", label = "Issue key", kind = "server" } = props;
  const [isOpen, setOpen] = useState(false);
  const [issued, setIssued] = useState<IssuedApiKey>();
  const close = () => {
    setOpen(false);
    setIssued(undefined);
  };
  const note = place.own === null ? "Send it over a safe channel, never by e-mail." : undefined;
  return (
    <>
      <Button variant={variant} onPress={() => setOpen(true)} whyNot={props.whyNot}>
        <Plus size={16} aria-hidden /> {label}
      </Button>
      {isOpen && issued === undefined && (
        <IssueKeyDialog place={place} firstKind={kind} onIssued={setIssued} onClose={close} />
      )}
      {issued !== undefined && <NewKeyDialog issued={issued} note={note} onClose={close} />}
    </>
  );
}

/** Issues a key. The result of the mutation is empty, so that no cache contains the key. */
function useIssueKey(place: KeyPlace, onIssued: (key: IssuedApiKey) => void) {
  const refresh = useRefreshKeys();
  const sendOnce = useSendOnce();
  const path = pathOf(place);
  return useMutation({
    mutationFn: async (body: IssueKey): Promise<void> =>
      onIssued(
        await sendOnce([path, body], (header) =>
          unwrap(place.api.POST(keysRoute, { params: { path, header }, body })),
        ),
      ),
    onSuccess: refresh,
  });
}

const kinds = [
  { value: "server", label: "Server key", note: "for people and pipelines; changes flags; secret" },
  {
    value: "reader",
    label: "Reader key",
    note: "for applications on servers; reads rules; secret",
  },
  { value: "client", label: "Client key", note: "for web and mobile apps; reads values" },
] as const;

const scopes = [
  { value: "read", label: "Read", note: "reads flags, states and history" },
  { value: "propose", label: "Propose", note: "reads, and opens change requests" },
  { value: "write", label: "Write", note: "may do what its user may" },
] as const;

/** Returns the user of a new key, if there is no choice or the caller is one of the users. */
const firstUserOf = ({ own, users }: KeyPlace): string =>
  own !== null || users.length === 1 ? (users[0]?.id ?? "") : "";

type DialogProps = {
  place: KeyPlace;
  firstKind: IssueKey["kind"];
  onIssued: (key: IssuedApiKey) => void;
  onClose: () => void;
};

function IssueKeyDialog({ place, firstKind, onIssued, onClose }: DialogProps) {
  const { environment, own } = place;
  const parentEnd = own?.expires_at ?? null;
  const isForced = own?.environment_only ?? false;
  const [now] = useState(() => Date.now());
  const [kind, setKind] = useState(firstKind);
  const [name, setName] = useState("");
  const [userId, setUserId] = useState(firstUserOf(place));
  const [scope, setScope] = useState<KeyScope>("write");
  const [expiry, setExpiry] = useState<Expiry>(expiriesWithin(parentEnd, now)[0] ?? "never");
  const [date, setDate] = useState("");
  const [isLimited, setLimited] = useState(isForced);
  const { mutate, isPending, error } = useIssueKey(place, onIssued);
  useUnsaved(isPending || isUnconfirmed(error), "secret");
  const askAndClose = useAskedClose(onClose);
  // Other keys change nothing, so the restriction says something only if it is inherited.
  const canBeLimited = kind === "server" || isForced;
  const expiresAt = expiryInstant(expiry, date, now);
  const messages = messagesOf(error);
  const isTooLong = outlives(expiresAt ?? null, parentEnd);
  const isComplete = name.trim() !== "" && userId !== "" && expiresAt !== undefined && !isTooLong;
  const submit = () =>
    mutate({
      kind,
      name: name.trim(),
      user_id: userId,
      environment_only: canBeLimited && isLimited,
      ...(kind === "server" && scope !== "write" && { scope }),
      ...(expiresAt != null && { expires_at: expiresAt }),
    });
  return (
    <FormDialog
      title={`Issue a key for ${environment.name}`}
      action="Issue key"
      onClose={askAndClose}
      onSubmit={submit}
      isPending={isPending}
      isComplete={isComplete}
      error={messages.has("name") || messages.has("expires_at") ? null : error}
    >
      <KindFields {...{ kind, setKind, scope, setScope }} />
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        description="Where the key is used, such as “Web app” or “Ada's laptop”."
        error={messages.get("name")}
        autoFocus
        isRequired
      />
      <UserField place={place} userId={userId} onChange={setUserId} />
      <ExpiryFields
        {...{ parentEnd, expiry, setExpiry, date, setDate, now }}
        error={isTooLong ? "Your key expires before this time." : messages.get("expires_at")}
      />
      {canBeLimited && (
        <EnvironmentOnly
          name={environment.name}
          isForced={isForced}
          isSelected={isLimited}
          onChange={setLimited}
        />
      )}
    </FormDialog>
  );
}

/** Returns the message of the API by the name of its field. */
function messagesOf(error: unknown): ReadonlyMap<string | undefined, string> {
  const rejected = fieldMessageOf(error);
  return new Map(rejected && [[rejected.path[0], `It ${rejected.text}.`]]);
}

type KindFieldsProps = {
  kind: IssueKey["kind"];
  setKind: (kind: IssueKey["kind"]) => void;
  scope: KeyScope;
  setScope: (scope: KeyScope) => void;
};

/** The kind of the new key and, for a server key, what it may do at most. */
const KindFields = ({ kind, setKind, scope, setScope }: KindFieldsProps) => (
  <>
    <Select label="Kind" value={kind} onChange={setKind} options={kinds} />
    {kind === "server" && (
      <Select
        label="Scope"
        value={scope}
        onChange={setScope}
        options={scopes}
        description="The roles of its user limit the key as well, at the time of use."
      />
    )}
  </>
);

type UserFieldProps = { place: KeyPlace; userId: string; onChange: (id: string) => void };

/** The user of the new key. The operator chooses any user, and an admin also a service user. */
function UserField({ place: { own, users }, userId, onChange }: UserFieldProps) {
  if (own !== null && users.length === 1)
    return (
      <p className={styles.note}>
        The key is yours: what it changes is recorded as changed by {users[0]?.email}. A signed-in
        admin also issues keys for service users, and the operator for everybody.
      </p>
    );
  if (users.length === 0)
    return <p>The organization has no users. Create a user first: every key belongs to one.</p>;
  return (
    <Select
      label="User"
      value={userId}
      onChange={onChange}
      options={users.map(({ id, email, name: note }) => ({
        value: id,
        label: email,
        ...(note !== null && { note }),
      }))}
      description="Changes with this key are recorded with this user."
    />
  );
}

type EnvironmentOnlyProps = {
  name: string;
  isForced: boolean;
  isSelected: boolean;
  onChange: (isSelected: boolean) => void;
};

/** The restriction of the new key. A key with the restriction cannot issue one without. */
function EnvironmentOnly({ name, isForced, ...props }: EnvironmentOnlyProps) {
  const help = useId();
  return (
    <div>
      <Checkbox {...props} isDisabled={isForced} aria-describedby={help}>
        Limit the key to {name}
      </Checkbox>
      <p id={help} className={styles.help}>
        {isForced
          ? "Your key is limited to this environment, so its keys are too."
          : "The key cannot change other environments, or what all environments share."}
      </p>
    </div>
  );
}

const expiryLabels: Record<Expiry, string> = {
  never: "Never",
  parent: "With your key",
  "30": "In 30 days",
  "90": "In 90 days",
  "365": "In a year",
  date: "At a time that you choose",
};

type ExpiryFieldsProps = {
  parentEnd: string | null;
  expiry: Expiry;
  setExpiry: (expiry: Expiry) => void;
  date: string;
  setDate: (date: string) => void;
  now: number;
  error: string | undefined;
};

function ExpiryFields(props: ExpiryFieldsProps) {
  const { parentEnd, expiry, setExpiry, date, setDate, now, error } = props;
  return (
    <>
      <Select
        label="Expires"
        value={expiry}
        onChange={setExpiry}
        options={expiriesWithin(parentEnd, now).map((value) => ({
          value,
          label: expiryLabels[value],
        }))}
        {...(parentEnd !== null && {
          description: `Your key expires on ${localTime(new Date(parentEnd))}. Its keys cannot live longer.`,
        })}
        error={expiry === "date" ? undefined : error}
      />
      {expiry === "date" && (
        <TextField
          label="Expires at (your local time)"
          type="datetime-local"
          value={date}
          onChange={setDate}
          error={error}
          isRequired
        />
      )}
    </>
  );
}
