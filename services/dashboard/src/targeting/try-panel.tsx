import { useMutation } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { type FormEvent, memo, useState } from "react";
import { unwrap } from "../api/client.ts";
import type { ContextUser, FlagExplanation } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { statePathOf, stateRoute } from "../flags/state-route.ts";
import { useKeySession } from "../session/session.tsx";
import { requestFor } from "../state/state.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Select, TextField } from "../ui/fields.tsx";
import { Card } from "../ui/panels.tsx";
import { membersOf } from "../variations/json-text.ts";
import { AttributeField } from "./attribute-field.tsx";
import { type Draft, isSameDraft, stateOf } from "./draft.ts";
import { ruleProblemOf } from "./problems.ts";
import styles from "./targeting.module.css";
import { TraceView } from "./trace-view.tsx";
import { jsonOf, type UserFields, userFromJson, userOf } from "./try-user.ts";

type TryPanelProps = { draft: Draft; isDraft: boolean };

/** Reads the value of the flag for a user, also with the unsaved draft. Returns the draft that was tried, too. */
function useTry({ draft, isDraft }: TryPanelProps) {
  const { api } = useKeySession();
  const params = { path: statePathOf(useFlagInPage()) };
  return useMutation({
    mutationFn: async (user: ContextUser) => {
      const state = stateOf(draft);
      const body = { user, ...(isDraft && { state: requestFor(state) }) };
      const rules = state.targeting_rules;
      const request = { params, body, parseAs: "text" as const };
      const text = await unwrap(api.POST(`${stateRoute}/explain`, request));
      const result = JSON.parse(text) as FlagExplanation;
      const value = membersOf(text).get("value") ?? "null";
      return { draft, trace: { result, value, rules, unit: state.bucket_by ?? "id" } };
    },
  });
}

/**
 * Shows which value a user gets and why. The user exists only in this component, because contexts of users are personal
 * data: neither the address nor a storage of the browser contains them.
 */
export function TryPanel({ draft, isDraft }: TryPanelProps) {
  const { data: tried, error, isPending, mutate } = useTry({ draft, isDraft });
  const isOutdated = tried !== undefined && !isSameDraft(tried.draft, draft);
  return (
    <aside className={styles.try} aria-label="Try it">
      <Card title="Try it">
        <div className={styles.stack}>
          <p className={styles.note}>
            Enter a user to see what they get{isDraft ? " with your unsaved changes" : ""}, and why.
            This does not count as a request of the month, and the user is not stored.
          </p>
          <UserForm isPending={isPending} onTry={mutate} />
          {error !== null && <TryError error={error} />}
          {tried !== undefined && (
            <section aria-live="polite" aria-label="Result" className={styles.stack}>
              {isOutdated && (
                <p className={styles.hint}>The settings have changed since. Try again.</p>
              )}
              <TraceView {...tried.trace} />
            </section>
          )}
        </div>
      </Card>
    </aside>
  );
}

/** The draft can have an error that is not yet corrected. */
function TryError({ error }: { error: unknown }) {
  const text = ruleProblemOf(error);
  if (text === undefined) return <ErrorPanel error={error} />;
  return (
    <p role="alert" className={styles.problem}>
      {text}
    </p>
  );
}

type UserFormProps = { isPending: boolean; onTry: (user: ContextUser) => void };

/** It is rendered for its own edits only, not for those of the rules beside it. */
const UserForm = memo(function UserForm({ isPending, onTry }: UserFormProps) {
  const [fields, setFields] = useState<UserFields>({
    id: "",
    attributes: [{ name: "", value: "" }],
  });
  const [json, setJson] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const read =
      json === undefined ? { ok: true as const, user: userOf(fields) } : userFromJson(json);
    setProblem(read.ok ? undefined : read.problem);
    if (read.ok) onTry(read.user);
  };
  return (
    <form onSubmit={submit} className={styles.stack} autoComplete="off">
      <Select
        label="Enter the user as"
        value={json === undefined ? "fields" : "json"}
        onChange={(mode) => setJson(mode === "json" ? jsonOf(fields) : undefined)}
        options={[
          { value: "fields", label: "Fields" },
          { value: "json", label: "JSON", note: "also lists and numbers" },
        ]}
      />
      {json === undefined ? (
        <Fields fields={fields} onChange={setFields} />
      ) : (
        <TextField label="User" value={json} onChange={setJson} rows={8} isCode error={problem} />
      )}
      <Button type="submit" isPending={isPending}>
        Try this user
      </Button>
    </form>
  );
});

type FieldsProps = { fields: UserFields; onChange: (fields: UserFields) => void };

function Fields({ fields: { id, attributes }, onChange }: FieldsProps) {
  const set = (index: number, changed: Partial<UserFields["attributes"][number]>) =>
    onChange({
      id,
      attributes: attributes.map((other, at) => (at === index ? { ...other, ...changed } : other)),
    });
  return (
    <>
      <TextField
        label="User id"
        value={id}
        onChange={(next) => onChange({ id: next, attributes })}
        placeholder="user-42"
        isCode
      />
      {attributes.map(({ name, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are edited in place and have no other identity.
        <div key={index} className={styles.attribute}>
          <AttributeField
            label={`Attribute ${index + 1}`}
            value={name}
            onChange={(next) => set(index, { name: next })}
            except="id"
          />
          <TextField
            label={`Value of attribute ${index + 1}`}
            isLabelHidden
            placeholder="value"
            value={value}
            onChange={(next) => set(index, { value: next })}
            isCode
          />
          <IconButton
            icon={X}
            label={`Remove attribute ${index + 1}`}
            size="small"
            onPress={() => onChange({ id, attributes: attributes.toSpliced(index, 1) })}
          />
        </div>
      ))}
      <div>
        <Button
          size="small"
          onPress={() => onChange({ id, attributes: [...attributes, { name: "", value: "" }] })}
        >
          <Plus size={14} aria-hidden /> Add attribute
        </Button>
      </div>
    </>
  );
}
