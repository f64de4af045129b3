import type { DirectoryKey } from "@halyard/api-keys";
import { hourMs } from "@halyard/contracts";
import type { EnvironmentHours } from "./environment-hours.ts";
import { monthOf } from "./month.ts";
import type { OrganizationMonth, OrganizationMonths } from "./organization-months.ts";
import type { EnvironmentHour } from "./tally.ts";

/**
 * Where the requests of each key count, so that a request finds all that it has to raise by one look-up.
 * Each instant that comes with a request may begin another hour, and with it another month.
 */
export type KeyUse = {
  /** 0: nobody has asked with it since the last time; what asked before that is being answered. */
  usedAtMs: number;
  environment: EnvironmentHour;
  readonly organization: OrganizationMonth;
};

export type KeyUses = {
  of(key: DirectoryKey, nowMs: number): KeyUse;
  /** All keys since the last time. Those that are used from now on come with the next. */
  take(): ReadonlyMap<string, KeyUse>;
  /** How often a key was not remembered for want of room. */
  dropped(): number;
};

/**
 * A request that came before the full hour and is answered after it counts in the new hour; so does
 * what comes when the clock is set right by a little. Only a clock that is put back further than this
 * takes the hour back.
 */
const longestLatenessMs = 5 * 60 * 1_000;

export function createKeyUses(options: {
  hours: EnvironmentHours;
  months: OrganizationMonths;
  mostKeys: number;
}): KeyUses {
  const { hours, months, mostKeys } = options;
  let uses = new Map<string, KeyUse>();
  let dropped = 0;
  let hourBeganMs = 0;
  let hourEndsMs = Number.NEGATIVE_INFINITY;
  let monthName = "";
  // A request is looked at several times, each time with the same key.
  let lastKey: DirectoryKey | undefined;
  let lastUse: KeyUse | undefined;

  function enterHour(nowMs: number): void {
    hourBeganMs = Math.floor(nowMs / hourMs) * hourMs;
    hourEndsMs = hourBeganMs + hourMs;
    hours.enter(hourBeganMs);
    lastUse = undefined;
    const month = monthOf(nowMs);
    if (month.name === monthName) return;
    monthName = month.name;
    months.turnTo(month);
  }

  function find(key: DirectoryKey): KeyUse {
    const known = uses.get(key.id);
    if (known !== undefined) {
      if (known.environment.hourBeganMs !== hourBeganMs) known.environment = hours.of(key);
      return known;
    }
    const organization = months.of(key.organizationId);
    const use: KeyUse = { usedAtMs: 0, environment: hours.of(key), organization };
    if (uses.size < mostKeys) uses.set(key.id, use);
    else dropped += 1;
    return use;
  }

  return {
    of(key, nowMs) {
      if (nowMs >= hourEndsMs || nowMs < hourBeganMs - longestLatenessMs) enterHour(nowMs);
      if (key === lastKey && lastUse !== undefined) return lastUse;
      lastKey = key;
      lastUse = find(key);
      return lastUse;
    },
    take() {
      const taken = uses;
      uses = new Map();
      lastUse = undefined;
      return taken;
    },
    dropped: () => dropped,
  };
}
