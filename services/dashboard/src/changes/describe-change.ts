import type { AuditedChange } from "../api/schema.d.ts";
import { isSameSetting, settingLabels } from "../flags/flag-settings.ts";
import type { Difference } from "../state/difference.ts";
import { serveText } from "../state/serve.ts";
import {
  differingMembers,
  type MemberName,
  memberNames,
  stateDifferences,
  stateFrom,
} from "../state/state.ts";
import { joined } from "../state/words.ts";
import { localTime } from "../ui/dates.ts";

/** A sentence about a change, without the person: "turned", "new-checkout", "on in production". */
export type Sentence = {
  readonly verb: string;
  /** The subject of the change. A page can link it. */
  readonly subject: string;
  readonly rest: string;
};

/** Writes a time for the reader. Entries contain times of schedules and of keys. */
export type FormatTime = (instant: Date) => string;

/**
 * Describes a change in a few words that follow the name of a person: "turned new-checkout on in production".
 * `environment` is the name of its environment, if the reader knows it.
 */
export function describeChange(change: AuditedChange, environment?: string): string {
  return sentenceText(sentenceOf(change, environment));
}

export const sentenceText = ({ verb, subject, rest }: Sentence): string =>
  [verb, subject, rest].filter(Boolean).join(" ");

export function sentenceOf(
  change: AuditedChange,
  environment?: string,
  formatTime: FormatTime = localTime,
): Sentence {
  const wordsOf = words[change.action] ?? unknownWords;
  const [verb, subject, rest] = wordsOf({
    change,
    formatTime,
    flag: change.flag_key ?? "a flag",
    name: nameIn(change.after ?? change.before),
    where: environment === undefined ? "" : ` in ${environment}`,
  });
  return { verb, subject, rest: rest.trim() };
}

type Words = readonly [verb: string, subject: string, rest: string];

type Context = {
  change: AuditedChange;
  formatTime: FormatTime;
  flag: string;
  /** The name or e-mail in the entry. */
  name: string;
  /** The environment, or nothing if its name is unknown. */
  where: string;
};

type WordsOf = (context: Context) => Words;

/** Words for an action that this table lacks. A page that stays open over an upgrade can receive one. */
const unknownWords: WordsOf = ({ change, name }) => ["changed", change.flag_key ?? name, ""];

const words: Readonly<Record<AuditedChange["action"], WordsOf>> = {
  state: ({ change, flag, where }) => stateWords(change, flag, where),
  // A flag exists in all environments, though the entries name that of the key.
  created: ({ flag }) => ["created", flag, ""],
  settings: ({ change, flag, where }) => settingsWords(change, flag, where),
  deleted: ({ flag }) => ["deleted", flag, ""],
  schedule_set: (context) => scheduleWords("scheduled", context),
  schedule_replaced: (context) => scheduleWords("rescheduled", context),
  schedule_cleared: ({ flag, where }) => ["cleared the schedule of", flag, where],
  webhook_created: ({ change, name }) => ["created the webhook", name, hostText(change.after)],
  webhook_changed: ({ change, name }) => webhookWords(change, name),
  webhook_deleted: ({ change, name }) => ["deleted the webhook", name, hostText(change.before)],
  key_issued: ({ name, where }) => ["issued the API key", name, where],
  key_rotated: ({ name, where }) => ["rotated the API key", name, where],
  key_revoked: ({ name, where }) => ["revoked the API key", name, where],
  environment_created: ({ name }) => ["created the environment", name, ""],
  environment_renamed: (context) => renameWords("environment", context),
  environment_changed: environmentWords,
  environment_deleted: ({ name }) => ["deleted the environment", name, ""],
  project_created: ({ name }) => ["created the project", name, ""],
  project_renamed: (context) => renameWords("project", context),
  project_deleted: ({ name }) => ["deleted the project", name, ""],
  user_created: ({ name }) => ["added the user", name, ""],
  user_changed: ({ name }) => ["changed the user", name, ""],
  user_deleted: ({ name }) => ["deleted the user", name, ""],
  audience_created: ({ change }) => ["created the audience", audienceIn(change), ""],
  audience_changed: ({ change }) => ["changed the audience", audienceIn(change), ""],
  audience_list_changed: ({ change }) => [
    "changed the list of the audience",
    audienceIn(change),
    "",
  ],
  audience_deleted: ({ change }) => ["deleted the audience", audienceIn(change), ""],
  change_request_opened: (context) => requestWords("opened", context),
  change_request_edited: (context) => requestWords("edited", context),
  change_request_approved: (context) => requestWords("approved", context),
  change_request_rejected: (context) => requestWords("rejected", context),
  change_request_withdrawn: (context) => requestWords("withdrew", context),
  change_request_rebased: (context) => requestWords("rebased", context),
  change_request_applied: (context) => requestWords("applied", context),
  change_request_bypassed: (context) => requestWords("bypassed the approval of", context),
  change_request_stale: (context) => requestWords("found stale", context),
  change_request_reopened: (context) => requestWords("opened again", context),
};

const requestWords = (verb: string, { change }: Context): Words => [
  `${verb} the change request`,
  String(change.after?.title ?? ""),
  "",
];

function environmentWords({ change: { before, after }, name }: Context): Words {
  if (JSON.stringify(before?.protected) !== JSON.stringify(after?.protected)) {
    if (after?.protected === undefined) return ["ended the protection of", name, ""];
    return [before?.protected === undefined ? "protected" : "changed the protection of", name, ""];
  }
  return after?.caution === true
    ? ["marked the environment", name, "with caution"]
    : ["removed the caution mark of the environment", name, ""];
}

const audienceIn = (change: AuditedChange): string => change.audience_key ?? "";

const scheduleWords = (verb: string, { change, flag, where, formatTime }: Context): Words => [
  verb,
  flag,
  `to turn ${timesText(change, formatTime)}${where}`,
];

function renameWords(kind: string, { change, name }: Context): Words {
  return [`renamed the ${kind} ${nameIn(change.before)} to`, name, ""];
}

type Values = AuditedChange["after"];

/** Returns the name or e-mail in an entry, or nothing. */
function nameIn(values: Values): string {
  const { name, email } = (values ?? {}) as { name?: unknown; email?: unknown };
  const found = typeof name === "string" && name !== "" ? name : email;
  return typeof found === "string" ? found : "";
}

function stateWords(change: AuditedChange, flag: string, where: string): Words {
  const before = stateFrom(change.before);
  const after = stateFrom(change.after);
  const how = change.change_type === "scheduled" ? " by schedule" : "";
  if (before === undefined || after === undefined) return ["changed", flag, where + how];
  if (change.change_type === "rollback") return ["rolled", flag, `back${where}`];
  const rollout = `${after.rollout_percentage} %`;
  if (before.enabled !== after.enabled) {
    const isRollout = after.enabled && before.rollout_percentage !== after.rollout_percentage;
    return [
      "turned",
      flag,
      `${after.enabled ? "on" : "off"}${isRollout ? ` at ${rollout}` : ""}${where}${how}`,
    ];
  }
  if (before.rollout_percentage !== after.rollout_percentage)
    return ["set the percentage of", flag, `to ${rollout}${where}`];
  const changed = differingMembers(before, after, memberNames);
  if (after.serve !== undefined && changed.length === 1 && changed[0] === "serve")
    return ["set the values of", flag, `to ${serveText(after.serve)}${where}`];
  const named = Object.entries(nouns).find(([name]) => changed.includes(name as MemberName));
  const noun = named?.[1] ?? "rules";
  return noun === "rules"
    ? rulesWords(stateDifferences(before, after), flag, where)
    : [`changed the ${noun} of`, flag, where];
}

/** Nouns for changes of members. The first member that differs supplies the noun. */
const nouns: Readonly<Record<Exclude<MemberName, "enabled" | "rollout_percentage">, string>> = {
  serve: "values",
  off_variation: "values",
  bucket_by: "buckets",
  bucket_seed: "buckets",
  targeting_rules: "rules",
  requires: "required flags",
};

function rulesWords(differences: readonly Difference[], flag: string, where: string): Words {
  const [first] = differences;
  if (first === undefined || differences.length > 1) return ["changed the rules of", flag, where];
  const rule = first.label.charAt(0).toLowerCase() + first.label.slice(1);
  if (first.parts !== undefined) return [`changed ${rule} of`, flag, where];
  if (first.before === undefined) return [`added ${rule} to`, flag, where];
  if (first.after === undefined) return [`removed ${rule} from`, flag, where];
  return ["changed the order of the rules of", flag, where];
}

function settingsWords({ before, after }: AuditedChange, flag: string, where: string): Words {
  const fields = Object.keys(settingLabels).filter(
    (field) => !isSameSetting(before?.[field], after?.[field]),
  );
  const alsoState = stateFrom(after) === undefined ? "" : `and its state${where}`;
  const only = fields.length === 1 && alsoState === "" ? settingWords[fields[0] ?? ""] : undefined;
  const said = only?.(before ?? {}, after ?? {}, flag);
  if (said !== undefined) return said;
  const nouns = fields.map((field) => (field === "archived" ? "archive" : field));
  const what = fields.length === 0 ? "settings" : joined(nouns, "and");
  return [`changed the ${what} of`, flag, alsoState];
}

/** Words for a change of only this setting. Without them, the sentence names the setting. */
const settingWords: Readonly<
  Record<
    string,
    (before: NonNullable<Values>, after: NonNullable<Values>, flag: string) => Words | undefined
  >
> = {
  archived: (_before, after, flag) => [after.archived === true ? "archived" : "restored", flag, ""],
  owner: (_before, after, flag) =>
    typeof after.owner === "string"
      ? ["set the owner of", flag, `to ${after.owner}`]
      : ["removed the owner of", flag, ""],
  tags: (before, after, flag) => {
    const [old, now] = [listIn(before.tags), listIn(after.tags)];
    const added = now.filter((tag) => !old.includes(tag));
    const removed = old.filter((tag) => !now.includes(tag));
    if (removed.length === 0) return [`added ${tagsText(added)} to`, flag, ""];
    if (added.length === 0) return [`removed ${tagsText(removed)} from`, flag, ""];
    return undefined;
  },
};

const listIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

const tagsText = (tags: readonly string[]): string =>
  `the ${tags.length === 1 ? "tag" : "tags"} ${joined(tags, "and")}`;

function webhookWords({ after }: AuditedChange, name: string): Words {
  const fields = Array.isArray(after?.changed_fields) ? after.changed_fields.map(String) : [];
  if (fields.join() === "enabled")
    return ["turned the webhook", name, after?.enabled === true ? "on" : "off"];
  if (fields.length === 0) return ["changed the webhook", name, ""];
  const labels: Readonly<Record<string, string>> = { url: "URL", enabled: "state" };
  const changed = joined(
    fields.map((field) => labels[field] ?? field),
    "and",
  );
  return [`changed the ${changed} of the webhook`, name, ""];
}

/** The log masks the path of a URL, so the host says enough. */
function hostText(values: Values): string {
  const url = values?.url;
  return typeof url === "string" && URL.canParse(url) ? `(${new URL(url).host})` : "";
}

function timesText({ after }: AuditedChange, formatTime: FormatTime): string {
  const at = (word: string, instant: unknown) =>
    typeof instant === "string"
      ? [{ instant, text: `${word} at ${formatTime(new Date(instant))}` }]
      : [];
  const times = [...at("on", after?.enable_at), ...at("off", after?.disable_at)];
  return times
    .toSorted((a, b) => Date.parse(a.instant) - Date.parse(b.instant))
    .map(({ text }) => text)
    .join(" and ");
}
