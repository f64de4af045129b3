import type { SnapshotChange } from "../snapshot/snapshot-holder.ts";
import { createFlagRoom, type FlagBounds } from "./flag-room.ts";
import {
  type EnvironmentHour,
  type EnvironmentIds,
  emptyEnvironmentHour,
  requestsOf,
} from "./tally.ts";
import type { YoungFlags } from "./young-flags.ts";

/**
 * The numbers of each environment, hour by hour, since they were last taken.
 *
 * An answer about all flags is one number of its environment, and counts for every flag that is older
 * than the hour. To younger ones that number is credited flag by flag: when it is taken, when the hour
 * is over, and when the environment's flags change, each time to the flags that there were until then.
 *
 * What has no room is counted in one environment that stands for all of them and is never sent.
 */
export type EnvironmentHours = {
  /** From now on everything counts in this hour. */
  enter(hourBeganMs: number): void;
  /** Where to count for an environment in the present hour. */
  of(ids: EnvironmentIds): EnvironmentHour;
  countFlag(environment: EnvironmentHour, flagId: string, evaluations: number, atMs: number): void;
  /** Environments have other flags now. */
  flagsChanged(change: SnapshotChange): void;
  /** All that was counted. What is counted from now on comes with the next. */
  take(): EnvironmentHour[];
  /** What had no room, as far as it has been taken. */
  readonly dropped: { requests: number; evaluations: number };
};

export type EnvironmentBounds = {
  /** Environments, once for each hour. */
  environments: number;
  /** Flags that are counted by themselves. */
  flags: FlagBounds;
};

/** By the beginning of the hour, and then by the environment's id. */
type Hours = Map<number, Map<string, EnvironmentHour>>;

export function createEnvironmentHours(options: {
  young: YoungFlags;
  bounds: EnvironmentBounds;
}): EnvironmentHours {
  const { young, bounds } = options;
  const room = createFlagRoom(bounds.flags);
  const dropped = { requests: 0, evaluations: 0 };
  let hourBeganMs = 0;
  let hours: Hours = new Map();
  let present = hourOf(hours, hourBeganMs);
  let withoutRoom = emptyEnvironmentHour(nobody, hourBeganMs);
  let environments = 0;

  function countFlag(
    environment: EnvironmentHour,
    flagId: string,
    evaluations: number,
    atMs: number,
  ): void {
    const known = environment.flags?.get(flagId);
    if (known !== undefined) {
      known.evaluations += evaluations;
      known.evaluatedAtMs = atMs;
    } else if (environment !== withoutRoom && room.take(environment)) {
      environment.flags ??= new Map();
      environment.flags.set(flagId, { evaluations, evaluatedAtMs: atMs });
    } else dropped.evaluations += evaluations;
  }

  function credit(environment: EnvironmentHour): void {
    const { bulkAnswers, bulkAnsweredAtMs } = environment;
    const answers = bulkAnswers - environment.creditedAnswers;
    environment.creditedAnswers = bulkAnswers;
    if (answers === 0) return;
    for (const flagId of environment.young)
      countFlag(environment, flagId, answers, bulkAnsweredAtMs);
  }

  /** Credits what is open, of the present hour alone: those before were credited when they were over. */
  function settle(): void {
    for (const environment of present.values()) credit(environment);
    dropped.requests += requestsOf(withoutRoom);
    withoutRoom = emptyEnvironmentHour(nobody, hourBeganMs);
  }

  return {
    dropped,
    countFlag,
    enter(beganMs) {
      settle();
      hourBeganMs = beganMs;
      withoutRoom = emptyEnvironmentHour(nobody, hourBeganMs);
      present = hourOf(hours, hourBeganMs);
      young.enter(hourBeganMs);
      for (const environment of present.values())
        environment.young = young.of(environment.environmentId);
    },
    of(ids) {
      const known = present.get(ids.environmentId);
      if (known !== undefined) return known;
      if (environments >= bounds.environments) return withoutRoom;
      const environment = emptyEnvironmentHour(ids, hourBeganMs);
      environment.young = young.of(ids.environmentId);
      environments += 1;
      present.set(ids.environmentId, environment);
      return environment;
    },
    flagsChanged(change) {
      young.follow(change);
      for (const environmentId of change.changed.environments) {
        const environment = present.get(environmentId);
        if (environment === undefined) continue;
        credit(environment);
        environment.young = young.of(environmentId);
      }
    },
    take() {
      settle();
      const taken = [...hours.values()].flatMap((hour) => [...hour.values()].filter(isUsed));
      hours = new Map();
      present = hourOf(hours, hourBeganMs);
      environments = 0;
      room.clear();
      return taken;
    },
  };
}

function hourOf(hours: Hours, beganMs: number): Map<string, EnvironmentHour> {
  let hour = hours.get(beganMs);
  if (hour === undefined) {
    hour = new Map();
    hours.set(beganMs, hour);
  }
  return hour;
}

/** Not so when all that it was asked for was refused. */
function isUsed(environment: EnvironmentHour): boolean {
  const { bulkAnswers, flags } = environment;
  return bulkAnswers > 0 || flags !== undefined || requestsOf(environment) > 0;
}

const nobody: EnvironmentIds = { organizationId: "", projectId: "", environmentId: "" };
