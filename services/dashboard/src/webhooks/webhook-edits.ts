import type { UpdateWebhook, Webhook } from "../api/schema.d.ts";

const fields = ["name", "url", "events", "trace_context"] as const;
type Field = (typeof fields)[number];

const labels: Readonly<Record<Field, string>> = {
  name: "Name",
  url: "URL",
  events: "Events",
  trace_context: "Continues traces",
};

/** Returns a text for comparison and for people. The order of events has no meaning. */
function textOf(value: string | boolean | readonly string[] | undefined): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value === undefined || typeof value === "string"
    ? (value ?? "").trim()
    : value.toSorted().join(", ");
}

/** Returns the edited fields whose value differs from the current one. */
export function changedFields(draft: UpdateWebhook, current: Webhook): UpdateWebhook {
  const changed: UpdateWebhook = {};
  const { name, url, events, trace_context: traces } = draft;
  if (name !== undefined && textOf(name) !== current.name) changed.name = name.trim();
  if (url !== undefined && textOf(url) !== current.url) changed.url = url.trim();
  if (events !== undefined && textOf(events) !== textOf(current.events)) changed.events = events;
  if (traces !== undefined && traces !== current.trace_context) changed.trace_context = traces;
  return changed;
}

/** Describes the current values that differ from those that the person saw. */
export function differencesOf(seen: Webhook, current: Webhook): readonly string[] {
  const changed = fields
    .filter((field) => textOf(current[field]) !== textOf(seen[field]))
    .map((field) => describeField(field, current));
  if (current.enabled !== seen.enabled) changed.push(`Enabled: ${current.enabled ? "yes" : "no"}`);
  if (current.has_secret !== seen.has_secret)
    changed.push(`Secret: ${current.has_secret ? "set" : "none"}`);
  return changed;
}

const describeField = (field: Field, webhook: Webhook): string =>
  `${labels[field]}: ${textOf(webhook[field])}`;

type Edit = { seen: Webhook; draft: UpdateWebhook; current: Webhook };

/** Returns the edits without those of fields that another person has set to a different value since `seen`. */
export function withoutConflicts(edit: Edit): UpdateWebhook {
  const conflicts: readonly string[] = conflictsOf(edit);
  return Object.fromEntries(
    Object.entries(edit.draft).filter(([field]) => !conflicts.includes(field)),
  );
}

/** Returns the edited fields that another person has set to a different value since `seen`. */
export function conflictsOf(edit: Edit): readonly Field[] {
  const { seen, draft, current } = edit;
  return fields
    .filter((field) => field in changedFields(draft, current))
    .filter((field) => textOf(current[field]) !== textOf(seen[field]));
}
