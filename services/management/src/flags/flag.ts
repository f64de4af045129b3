import type { FlagType } from "@halyard/contracts";
import type { Cause } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";
import { type CheckedRules, noRules } from "./targeting-rules.ts";

/** A flag of a project, with the settings that are the same in every environment. */
export type Flag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  name: string;
  description: string;
  type: FlagType;
  /** Counter that every change to the flag or to one of its states increments. */
  version: number;
  /** Timestamp of the newest event of the flag. */
  lastEventAt: Date;
  createdAt: Date;
  updatedAt: Date;
};

/** The state of a flag in one environment. */
export type FlagState = {
  flagId: string;
  environmentId: string;
  enabled: boolean;
  rolloutPercentage: number;
  targetingRules: CheckedRules;
  /** Version of the flag at the last change to this state. */
  version: number;
  updatedAt: Date;
};

export type FlagEnvironment = { id: string; name: string };

export type FlagInEnvironment = {
  flag: Flag;
  state: FlagState;
  environment: FlagEnvironment;
  /** Time of the last evaluation in this environment. It is not part of the flag. */
  lastEvaluatedAt: Date | null;
};

/** The state of a flag in one environment without its rules, for lists. */
export type FlagStateSummary = Pick<
  FlagState,
  "environmentId" | "enabled" | "rolloutPercentage" | "version" | "updatedAt"
> & { ruleCount: number };

/** A flag of a list, with the states in the environments that were requested. */
export type ListedFlag = FlagInEnvironment & { summaries?: readonly FlagStateSummary[] };

/** Address of a flag in one environment of a project. */
export type FlagScope = { projectId: string; flagId: string; environmentId: string };

/** The settings of a state that was never changed. */
export const initialSettings = {
  enabled: false,
  rolloutPercentage: 100,
  targetingRules: noRules,
};

/** Returns the state of a flag in an environment before its first change there. */
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

/** The result of a change, decided before anything is written. */
export type Decision = {
  /** The flag after the change. */
  flag: Flag;
  /** The new and changed states. */
  states: readonly FlagState[];
  history: readonly HistoryEntry[];
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/** The state of a flag in one environment after a change. */
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
