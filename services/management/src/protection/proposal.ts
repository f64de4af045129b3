import type { Match, Protection, StoredVariations, UpdateFlagState } from "@halyard/contracts";

/** A change of a change request, before its values are decided. Its members are those of the API. */
export type Proposal =
  | (OfFlag & { kind: "state"; environment_id: string; patch: UpdateFlagState })
  | (OfFlag & { kind: "flag_variations"; variations: StoredVariations })
  | (OfFlag & { kind: "flag_deletion" })
  | (Based & { kind: "audience"; audience: string; patch: AudiencePatch })
  | (Based & ListPatch & { kind: "audience_list"; audience: string })
  | (Based & { kind: "protection"; environment_id: string; protected: Protection | null });

/** The members of an audience that decide who is in it. */
export type AudiencePatch = { match?: Match | undefined; list?: null | undefined };

/** Entries of the list of an audience. */
type ListPatch = { add: readonly string[]; remove: readonly string[] };

/** Without a version, the change is based on the current value. */
type Based = { base_version?: number | undefined };
type OfFlag = Based & { flag_id: string };
