import type { FlagType, TargetingRule } from "@halyard/contracts";

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
  targetingRules: readonly TargetingRule[];
  /** The flag's version as of this state's own last change. */
  version: number;
  updatedAt: Date;
};

export type FlagEnvironment = { id: string; name: string };

/** What a state is before anybody has set it. */
export const initialSettings = {
  enabled: false,
  rolloutPercentage: 100,
  targetingRules: [] as readonly TargetingRule[],
};
