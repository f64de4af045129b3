import type { FlagType } from "@halyard/contracts";
import type { Cause } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";
import { type CheckedRules, noRules } from "./targeting-rules.ts";

/** A flag of a project: what is the same in every environment. */
export type Flag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  name: string;
  description: string;
  type: FlagType;
  /** Raised by every change to the flag or to one of its states. */
  version: number;
  /** The timestamp of its newest event. */
  lastEventAt: Date;
  createdAt: Date;
  updatedAt: Date;
};

/** What a flag is in one environment. */
export type FlagState = {
  flagId: string;
  environmentId: string;
  enabled: boolean;
  rolloutPercentage: number;
  targetingRules: CheckedRules;
  /** The flag's version as of this state's own last change. */
  version: number;
  updatedAt: Date;
};

export type FlagEnvironment = { id: string; name: string };

export type FlagInEnvironment = {
  flag: Flag;
  state: FlagState;
  environment: FlagEnvironment;
  /** When its value was last asked for in this environment. It is no part of the flag. */
  lastEvaluatedAt: Date | null;
};

/** Where to look: a flag of a project, in one of its environments. */
export type FlagScope = { projectId: string; flagId: string; environmentId: string };

/** What a state is before anybody has set it. */
export const initialSettings = {
  enabled: false,
  rolloutPercentage: 100,
  targetingRules: noRules,
};

/** The state that a flag has in an environment before anybody has set it there. */
export function initialState(
  flag: Pick<Flag, "id" | "version" | "createdAt">,
  environmentId: string,
  at = flag.createdAt,
): FlagState {
  return {
    flagId: flag.id,
    environmentId,
    ...initialSettings,
    version: flag.version,
    updatedAt: at,
  };
}

/** Everything that follows from a change, decided before anything is written. */
export type Decision = {
  /** The flag as it is afterwards. */
  flag: Flag;
  /** The states that are new or changed. */
  states: readonly FlagState[];
  history: readonly HistoryEntry[];
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/** What a state was from a change on. */
export type HistoryEntry = {
  id: string;
  flagId: string;
  environmentId: string;
  enabled: boolean;
  rolloutPercentage: number;
  targetingRules: FlagState["targetingRules"];
  changeType: Cause;
  changedBy: string;
  changedAt: Date;
};
