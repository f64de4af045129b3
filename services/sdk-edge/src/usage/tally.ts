import type { UsageEndpoint } from "@halyard/contracts";

/** What was counted since what was sent before. It is added to, and then sent as a whole. */
export type Tally = {
  readonly environments: readonly EnvironmentHour[];
  /** When each key was last used, by its id. */
  readonly keys: ReadonlyMap<string, { readonly usedAtMs: number }>;
};

/** One environment within one hour. */
export type EnvironmentHour = {
  readonly hourBeganMs: number;
  readonly organizationId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly requests: Record<UsageEndpoint, number>;
  /** Answers about all flags. */
  bulkAnswers: number;
  bulkAnsweredAtMs: number;
  /** So many of them have been counted for the young flags too, one by one. */
  creditedAnswers: number;
  /** The young flags among those that the answers were about that are not credited yet. */
  young: readonly string[];
  /** By the flag's id; absent while no flag is counted by itself. */
  flags: Map<string, FlagCount> | undefined;
};

export type FlagCount = { evaluations: number; evaluatedAtMs: number };

export type EnvironmentIds = Pick<
  EnvironmentHour,
  "organizationId" | "projectId" | "environmentId"
>;

export function emptyEnvironmentHour(ids: EnvironmentIds, hourBeganMs: number): EnvironmentHour {
  return {
    hourBeganMs,
    organizationId: ids.organizationId,
    projectId: ids.projectId,
    environmentId: ids.environmentId,
    requests: { flags: 0, evaluate: 0, stream: 0, ofrep_flags: 0, ofrep_flag: 0, ofrep_stream: 0 },
    bulkAnswers: 0,
    bulkAnsweredAtMs: 0,
    creditedAnswers: 0,
    young: none,
    flags: undefined,
  };
}

export function requestsOf({ requests }: EnvironmentHour): number {
  let sum = 0;
  for (const count of Object.values(requests)) sum += count;
  return sum;
}

const none: readonly string[] = [];
