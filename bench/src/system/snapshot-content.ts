import { randomBytes, randomUUID } from "node:crypto";
import { makeApiKey } from "@halyard/api-keys";
import {
  type ConfiguredLimits,
  completeKey,
  type EntryAddress,
  entryKey,
  type FlagEntry,
  type KeyKind,
  type LiveEntry,
  type State,
} from "@halyard/contracts";

/** The `scopes` are the environments, in the order of the options, with their API keys. */
export type SnapshotContent = ReturnType<typeof snapshotContent>;
export type SnapshotScope = SnapshotContent["scopes"][number];

export type SnapshotFlag = { key: string } & State & Pick<FlagEntry, "value_type" | "variations">;

export type ContentOptions = {
  /** 1 by default. */
  environments?: number;
  flagsPerEnvironment: number;
  /** State of each flag; alternately on and off by default. */
  flagState?: (number: number) => SnapshotFlag;
  /** Limits of the organizations' plan; unlimited by default. */
  limits?: ConfiguredLimits;
  /** Kind of the API keys; `client` by default. */
  keyKind?: KeyKind;
};

const environmentsPerOrganization = 10;
const unlimited: ConfiguredLimits = {
  requests_per_month: null,
  sse_connections: null,
  projects: null,
};
const stamp = { version: 1, committed_at: new Date().toISOString() };

/** Returns an organization for every ten environments, flags and API keys. */
export function snapshotContent(...options: readonly ContentOptions[]) {
  const records: { key: string; value: string }[] = [];
  const put = (address: EntryAddress, value: LiveEntry) =>
    records.push({ key: entryKey(address), value: JSON.stringify(value) });
  const planned = options.map(({ limits = unlimited }, index) => [`plan-${index}`, limits]);
  const limits = Object.fromEntries(planned) as Record<string, ConfiguredLimits>;
  put({ kind: "plans" }, { kind: "plans", limits, ...stamp });
  const scopes = options.flatMap((each, index) => putEnvironments(put, each, `plan-${index}`));
  records.push({ key: completeKey, value: JSON.stringify({ epoch: randomUUID(), from: 1 }) });
  return { records, scopes };
}

function putEnvironments(
  put: (address: EntryAddress, value: LiveEntry) => void,
  options: ContentOptions,
  plan: string,
) {
  const { environments = 1, flagsPerEnvironment, flagState = onAndOff } = options;
  const { keyKind = "client" } = options;
  let [organizationId, projectId] = ["", ""];
  return Array.from({ length: environments }, (_, count) => {
    if (count % environmentsPerOrganization === 0) {
      [organizationId, projectId] = [randomUUID(), randomUUID()];
      const organization = { organization_id: organizationId, name: "Bench", plan };
      put(
        { kind: "organization", organizationId },
        { kind: "organization", ...organization, project_count: 1, ...stamp },
      );
    }
    const environmentId = randomUUID();
    const ids = { organization_id: organizationId, project_id: projectId };
    const scope = { ...ids, environment_id: environmentId, ...stamp };
    const { id: keyId, key, secretSha256 } = makeApiKey(keyKind, randomBytes);
    const secret = { key_id: keyId, secret_sha256: secretSha256, key_kind: keyKind };
    const owner = { user_id: randomUUID(), environment_only: false, expires_at: null };
    put({ kind: "key", organizationId, keyId }, { kind: "key", ...secret, ...owner, ...scope });
    const flagIds = Array.from({ length: flagsPerEnvironment }, (_, number) => {
      const flagId = randomUUID();
      const state = { flag_id: flagId, ...flagState(number) };
      put(
        { kind: "flag", organizationId, environmentId, flagId },
        { kind: "flag", ...state, ...scope },
      );
      return flagId;
    });
    return { organizationId, projectId, environmentId, keyId, key, flagIds };
  });
}

const onAndOff = (number: number): SnapshotFlag => ({
  ...{ key: `checkout-flow-variant-${number}`, enabled: number % 2 === 0, rollout_percentage: 100 },
  targeting_rules: [],
});
