import type { Flag, State, UpdateFlag } from "../api/schema.d.ts";

/** The settings of the form. All environments of a flag share them. Variations have another form. */
export type FlagSettings = Pick<
  Flag,
  Exclude<keyof UpdateFlag, keyof State | "archived" | "variations" | "value_type">
>;

/** Names of the settings of the form. A setting that the API adds does not compile until it is here. */
const formLabels: Readonly<Record<keyof FlagSettings, string>> = {
  name: "Name",
  description: "Description",
  type: "Type",
  tags: "Tags",
  owner: "Owner",
};
const settingNames = Object.keys(formLabels) as (keyof FlagSettings)[];

/** Names of all settings, as entries of the audit log contain them. */
export const settingLabels = { ...formLabels, archived: "Archived", variations: "Variations" };

export const settingsOfFlag = (flag: FlagSettings): FlagSettings =>
  Object.fromEntries(settingNames.map((name) => [name, flag[name]])) as FlagSettings;

/** Returns a draft as the API stores it. */
export const requestedSettings = (draft: FlagSettings): FlagSettings => ({
  ...draft,
  name: draft.name.trim(),
  owner: draft.owner?.trim() || null,
});

/** Edited settings, and the stored settings they were made from. */
export type SettingsDraft = { readonly draft: FlagSettings; readonly base: FlagSettings };

/** Returns the draft after `sent` was saved. Edits made during the request remain unsaved changes. */
export const settingsAfterSave = (
  before: SettingsDraft | undefined,
  sent: FlagSettings,
  saved: FlagSettings,
): SettingsDraft | undefined =>
  before === undefined || before.draft === sent ? undefined : { draft: before.draft, base: saved };

/** Returns whether two values of a setting are equal. Tags are lists in the order of the API. */
export const isSameSetting = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

export const hasSameSettings = (one: FlagSettings, other: FlagSettings): boolean =>
  settingNames.every((name) => isSameSetting(one[name], other[name]));

const maxTags = 20;
const tagPattern = /^[a-z0-9][a-z0-9._:-]{0,49}$/;

/** Returns typed tags in the spelling and the order of the API: "Team A" becomes "team-a". */
export const tagsFrom = (typed: readonly string[]): string[] =>
  [...new Set(typed.map((tag) => tag.toLowerCase().replaceAll(/\s+/g, "-")))].sort();

/** Returns why the API would reject these tags. */
export function tagsProblem(tags: readonly string[]): string | undefined {
  const invalid = tags.find((tag) => !tagPattern.test(tag));
  if (invalid !== undefined)
    return `“${invalid}” is not a tag: use up to 50 letters, digits, dots, underscores, colons and hyphens, a letter or digit first.`;
  return tags.length > maxTags ? `A flag has at most ${maxTags} tags.` : undefined;
}
