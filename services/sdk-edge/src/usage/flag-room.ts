import type { EnvironmentIds } from "./tally.ts";

/**
 * Room for flags that are counted by themselves. Each organization and each environment may take a part
 * of it, so that there is some for everybody, however many flags a tenant creates or asks for.
 */
export type FlagRoom = {
  /** Takes room for one flag, once for each hour; false: there is none. */
  take(ids: EnvironmentIds): boolean;
  /** What was counted has gone, and all room is free. */
  clear(): void;
};

/** How many flags, once for each environment and hour. */
export type FlagBounds = {
  all: number;
  ofOrganization: number;
  ofEnvironment: number;
};

export function createFlagRoom(bounds: FlagBounds): FlagRoom {
  const organizations = new Map<string, number>();
  const environments = new Map<string, number>();
  let all = 0;
  return {
    take({ organizationId, environmentId }) {
      const ofOrganization = organizations.get(organizationId) ?? 0;
      const ofEnvironment = environments.get(environmentId) ?? 0;
      if (
        all >= bounds.all ||
        ofOrganization >= bounds.ofOrganization ||
        ofEnvironment >= bounds.ofEnvironment
      )
        return false;
      all += 1;
      organizations.set(organizationId, ofOrganization + 1);
      environments.set(environmentId, ofEnvironment + 1);
      return true;
    },
    clear() {
      all = 0;
      organizations.clear();
      environments.clear();
    },
  };
}
