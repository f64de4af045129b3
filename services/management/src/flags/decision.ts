import type { AuditEntry } from "../audit/audit-entry.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";
import type { Flag, FlagState } from "./flag.ts";
import type { Cause } from "./occasion.ts";

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
