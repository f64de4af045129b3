import type { Flag } from "../api/schema.d.ts";

/** The settings that all environments of a flag share. */
export type FlagSettings = Pick<Flag, "name" | "description" | "type">;

export const settingsOfFlag = ({ name, description, type }: FlagSettings): FlagSettings => ({
  name,
  description,
  type,
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

export const hasSameSettings = (one: FlagSettings, other: FlagSettings): boolean =>
  one.name === other.name && one.description === other.description && one.type === other.type;
