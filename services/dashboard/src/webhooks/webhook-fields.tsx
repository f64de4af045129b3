import { CheckboxGroup, FieldError, Label } from "react-aria-components";
import type { EventName } from "../api/schema.d.ts";
import { Checkbox, TextField } from "../ui/fields.tsx";
import { eventNames, eventTexts, type WebhookField } from "./webhook-texts.ts";
import styles from "./webhooks.module.css";

export type WebhookDraft = {
  name: string;
  url: string;
  events: readonly EventName[];
  trace_context: boolean;
};

export const isComplete = ({ name, url, events }: WebhookDraft): boolean =>
  name.trim() !== "" && url.trim() !== "" && events.length > 0;

type WebhookFieldsProps = {
  draft: WebhookDraft;
  onChange: (changed: Partial<WebhookDraft>) => void;
  problem: { field: WebhookField; text: string } | undefined;
};

/** The fields that creating and editing have in common. */
export function WebhookFields({ draft, onChange, problem }: WebhookFieldsProps) {
  const errorOf = (field: WebhookField) => (problem?.field === field ? problem.text : undefined);
  return (
    <>
      <TextField
        label="Name"
        value={draft.name}
        onChange={(name) => onChange({ name })}
        error={errorOf("name")}
        placeholder="Release notes"
        autoFocus
        isRequired
      />
      <TextField
        label="URL"
        value={draft.url}
        onChange={(url) => onChange({ url })}
        error={errorOf("url")}
        description="Halyard sends a POST request to it. It begins with https:// and has a public host, unless the operator allows others."
        placeholder="https://example.com/hooks/halyard"
        type="url"
        isCode
        isRequired
      />
      <EventsField
        events={draft.events}
        onChange={(events) => onChange({ events })}
        error={errorOf("events")}
      />
      <Checkbox
        isSelected={draft.trace_context}
        onChange={(isSelected) => onChange({ trace_context: isSelected })}
      >
        Continue traces: deliveries carry <code>traceparent</code>
      </Checkbox>
    </>
  );
}

type EventsFieldProps = {
  events: readonly EventName[];
  onChange: (events: readonly EventName[]) => void;
  error: string | undefined;
};

function EventsField({ events, onChange, error }: EventsFieldProps) {
  return (
    <CheckboxGroup
      className={styles.events ?? ""}
      value={[...events]}
      onChange={(chosen) => onChange(chosen as EventName[])}
      isInvalid={error !== undefined}
    >
      <Label className={styles.label ?? ""}>Events</Label>
      {eventNames.map((name) => (
        <Checkbox key={name} value={name}>
          <span className={styles.event}>
            <code>{name}</code>
            <span className={styles.muted}>{eventTexts[name]}</span>
          </span>
        </Checkbox>
      ))}
      <FieldError className={styles.error ?? ""}>{error}</FieldError>
    </CheckboxGroup>
  );
}
