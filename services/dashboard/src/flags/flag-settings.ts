import type { Flag, State, UpdateFlag } from "../api/schema.d.ts";

/** The settings that all environments of a flag share. */
export type FlagSettings = Pick<
  Flag,
  Exclude<keyof UpdateFlag, keyof State | "tags" | "owner" | "archived">
>;

/** Names of the settings. A setting that the API adds does not compile until it is here. */
export const settingLabels: Readonly<Record<keyof FlagSettings, string>> = {
  name: "Name",
  description: "Description",
  type: "Type",
};
const settingNames = Object.keys(settingLabels) as (keyof FlagSettings)[];

export const settingsOfFlag = (flag: FlagSettings): FlagSettings =>
  Object.fromEntries(settingNames.map((name) => [name, flag[name]])) as FlagSettings;

/** Edited settings, and the stored settings they were made from. */
export type SettingsDraft = { readonly draft: FlagSettings; readonly base: FlagSettings };

/** Returns the draft after `sent` was saved. Edits made during the request remain unsaved changes. */
export const settingsAfterSave = (
  before: SettingsDraft | undefined,
  sent: FlagSettings,
  saved: FlagSettings,
): SettingsDraft | undefined =>
  before === undefined || before.draft === sent ? undefined : { draft: before.draft, base: saved };

export const hasSameSettings = (one: FlagSettings, other: FlagSettings): boolean =>
  settingNames.every((name) => one[name] === other[name]);
