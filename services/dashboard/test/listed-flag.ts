import type { ListedFlag } from "../src/flags/flag-search.ts";

/** Builds a flag that is off in its only environment, `e1`. */
export const flag = (key: string, members: Partial<ListedFlag> = {}): ListedFlag => ({
  id: `id-${key}`,
  key,
  name: key.toUpperCase(),
  description: "",
  type: "release",
  value_type: "boolean",
  tags: [],
  owner: null,
  archived_at: null,
  enabled: false,
  rollout_percentage: 100,
  targeting_rules: [],
  environment_id: "e1",
  version: 1,
  created_at: "2027-01-01T00:00:00.000Z",
  updated_at: "2027-01-01T00:00:00.000Z",
  last_evaluated_at: null,
  environments: [
    { environment_id: "e1", enabled: false, rollout_percentage: 100, rule_count: 0, version: 1 },
  ],
  ...members,
});
