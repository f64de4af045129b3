import type { Audience, AuditedChange, Match, Protection, ValueType } from "../api/schema.d.ts";
import { valueTypeLabel } from "../flags/flag-search.ts";
import { settingLabels } from "../flags/flag-settings.ts";
import { changed, type Difference } from "../state/difference.ts";
import { protectionText } from "../state/protection.ts";
import { memberNames, stateDifferences, stateFrom, stateTexts } from "../state/state.ts";
import { capitalized, listText, matchTexts } from "../state/words.ts";
import type { FormatTime } from "./describe-change.ts";

type Values = Record<string, unknown>;

/** Names of the fields of entries. An entry of a newer release can have others. */
const labels: Readonly<Record<string, string>> = {
  ...settingLabels,
  value_type: "Value",
  match: "Alternatives",
  list: "List",
  added: "Added entries",
  removed: "Removed entries",
  email: "E-mail",
  kind: "Kind",
  url: "URL",
  events: "Events",
  enabled: "State",
  has_secret: "Secret",
  trace_context: "Continues traces",
  user_id: "Owner",
  environment_only: "Only this environment",
  expires_at: "Expires",
  revoked_at: "Revoked",
  replaced_by: "Replaced by",
  enable_at: "Turns on",
  disable_at: "Turns off",
  caution: "Caution",
  protected: "Protection",
  summary: "Changes",
  comment: "Comment",
  bypass_reason: "Reason of the bypass",
};

/** Fields that are not shown. */
const silentFields: readonly string[] = ["schedule_id", "changed_fields", "change_request"];

/** Returns the differences that a change made, in words. For a created or deleted resource, these are all its values. */
export function changeDifferences(change: AuditedChange, formatTime: FormatTime): Difference[] {
  const before = stateFrom(change.before);
  const after = stateFrom(change.after);
  const hasState = before !== undefined || after !== undefined;
  const fields = fieldDifferences(change, { formatTime, omitted: hasState ? memberNames : [] });
  if (before !== undefined && after !== undefined)
    return [...fields, ...stateDifferences(before, after)];
  const added =
    after === undefined ? [] : [{ label: "State", after: stateTexts(after).join(". ") }];
  const removed =
    before === undefined ? [] : [{ label: "State", before: stateTexts(before).join(". ") }];
  return [...fields, ...added, ...removed];
}

function fieldDifferences(
  { before, after }: AuditedChange,
  { formatTime, omitted }: { formatTime: FormatTime; omitted: readonly string[] },
): Difference[] {
  const names = [...new Set([...Object.keys(labels), ...keysOf(after), ...keysOf(before)])].filter(
    (field) => !omitted.includes(field) && !silentFields.includes(field),
  );
  const textOf = (values: Values, field: string) => fieldText(field, values[field], formatTime);
  return names.flatMap((field): Difference[] => {
    const label = labels[field] ?? field.replaceAll("_", " ");
    if (before !== null && after !== null) {
      if (!(field in before) && !(field in after)) return [];
      const isHidden =
        isHiddenChange(after, field) && textOf(before, field) === textOf(after, field);
      if (isHidden) return [{ label, before: textOf(before, field), after: "another one" }];
      return changed(label, textOf(before, field), textOf(after, field));
    }
    const only = after ?? before ?? {};
    if (!isWorthSaying(field, only[field])) return [];
    const text = textOf(only, field);
    return [after === null ? { label, before: text } : { label, after: text }];
  });
}

const keysOf = (values: Values | null): string[] => Object.keys(values ?? {});

/** The log masks the URLs and omits the secrets of webhooks, so both texts can be the same. */
function isHiddenChange({ changed_fields: fields }: Values, field: string): boolean {
  const name = field === "has_secret" ? "secret" : field;
  return Array.isArray(fields) && fields.includes(name);
}

/** Returns whether something new or deleted has this value worth a line. Most flags have no tags and no archive. */
const isWorthSaying = (field: string, value: unknown): boolean =>
  fieldHasValue(value) && !(field === "archived" && value === false);

const fieldHasValue = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== "" &&
  !(Array.isArray(value) && value.length === 0);

/** Characters of a value in a text. Values can have 64 KiB. */
const maxValueText = 200;

/** Lists variations with their values: `blue = "#00f", red = "#f00"`. */
function variationsText(variations: unknown): string {
  if (!Array.isArray(variations)) return JSON.stringify(variations);
  return variations
    .map(({ key, value, name }: Values) => {
      const text = JSON.stringify(value) ?? "";
      const shown = text.length > maxValueText ? `${text.slice(0, maxValueText)}…` : text;
      return `${key}${typeof name === "string" ? ` (${name})` : ""} = ${shown}`;
    })
    .join(", ");
}

function fieldText(field: string, value: unknown, formatTime: FormatTime): string {
  if (!fieldHasValue(value)) return "none";
  if (field === "enabled") return value === true ? "on" : "off";
  if (field === "has_secret") return value === true ? "set" : "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (field.endsWith("_at") && typeof value === "string") return formatTime(new Date(value));
  if (field === "value_type") return valueTypeLabel(value as ValueType);
  if (field === "variations") return variationsText(value);
  if (field === "protected") return capitalized(protectionText(value as Protection));
  if (field === "match") return matchTexts(value as Match).join(". ");
  if (field === "list") return listText(value as Audience["list"]);
  if (Array.isArray(value)) return value.map(String).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
