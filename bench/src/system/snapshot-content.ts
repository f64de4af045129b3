import { randomBytes, randomUUID } from "node:crypto";
import { type KeyKind, makeApiKey } from "@halyard/api-keys";
import {
  completeKey,
  type EntryAddress,
  entryKey,
  type LiveEntry,
  type PlanLimits,
} from "@halyard/contracts";

/** Content of a snapshot bucket: an organization for every ten environments, flags and API keys. */
export type SnapshotContent = {
  records: readonly { key: string; value: string }[];
  /** The API key of the first environment, and its organization. */
  key: string;
  organizationId: string;
  /** All environments. */
  scopes: readonly {
    organizationId: string;
    projectId: string;
    environmentId: string;
    keyId: string;
    flagIds: readonly string[];
  }[];
};

/** State of a flag in an environment. */
export type SnapshotFlag = Pick<
  Extract<LiveEntry, { kind: "flag" }>,
  "key" | "enabled" | "rollout_percentage" | "targeting_rules"
>;

const environmentsPerOrganization = 10;

export function snapshotContent(options: {
  environments: number;
  flagsPerEnvironment: number;
  /** State of each flag; alternately on and off by default. */
  flagState?: (number: number) => SnapshotFlag;
  /** Limits of the organizations' plan; unlimited by default. */
  limits?: PlanLimits;
  /** Kind of the API keys; `client` by default. */
  keyKind?: KeyKind;
}): SnapshotContent {
  const { flagState = onAndOff, limits = unlimited, keyKind = "client" } = options;
  const records: { key: string; value: string }[] = [];
  const put = (address: EntryAddress, value: LiveEntry) =>
    records.push({ key: entryKey(address), value: JSON.stringify(value) });
  const scopes: SnapshotContent["scopes"][number][] = [];
  let firstKey: string | undefined;
  let tenant = newTenant();

  for (let count = 0; count < options.environments; count += 1) {
    if (count % environmentsPerOrganization === 0) {
      tenant = newTenant();
      put(
        { kind: "organization", organizationId: tenant.organization_id },
        organization(tenant, limits),
      );
    }
    const scope = { ...tenant, environment_id: randomUUID() };
    const key = makeApiKey(keyKind, randomBytes);
    firstKey ??= key.key;
    const organizationId = tenant.organization_id;
    const flagIds = Array.from({ length: options.flagsPerEnvironment }, () => randomUUID());
    put({ kind: "key", organizationId, keyId: key.id }, keyEntry(scope, keyKind, key));
    for (const [number, flagId] of flagIds.entries()) {
      const environmentId = scope.environment_id;
      put(
        { kind: "flag", organizationId, environmentId, flagId },
        flag(scope, flagId, flagState(number)),
      );
    }
    scopes.push({
      organizationId,
      projectId: scope.project_id,
      environmentId: scope.environment_id,
      keyId: key.id,
      flagIds,
    });
  }
  records.push(complete());
  const organizationId = scopes[0]?.organizationId ?? "";
  return { records, key: firstKey ?? "", organizationId, scopes };
}

/** Joins two contents. The key is that of the first one. */
export function joined(one: SnapshotContent, other: SnapshotContent): SnapshotContent {
  const entries = [one, other].flatMap(({ records }) =>
    records.filter(({ key }) => key !== completeKey),
  );
  return {
    ...one,
    records: [...entries, complete()],
    scopes: [...one.scopes, ...other.scopes],
  };
}

const complete = () => ({
  key: completeKey,
  value: JSON.stringify({ epoch: randomUUID(), from: 1 }),
});

type Tenant = { organization_id: string; project_id: string };
type Scope = Tenant & { environment_id: string };

const newTenant = (): Tenant => ({ organization_id: randomUUID(), project_id: randomUUID() });
const stamp = { version: 1, committed_at: new Date().toISOString() };

const unlimited: PlanLimits = { requests_per_month: null, sse_connections: null, projects: null };

function organization({ organization_id }: Tenant, limits: PlanLimits): LiveEntry {
  return {
    kind: "organization",
    organization_id,
    name: "Bench",
    plan: "growth",
    limits,
    project_count: 1,
    ...stamp,
  };
}

function keyEntry(
  scope: Scope,
  keyKind: KeyKind,
  key: { id: string; secretSha256: string },
): LiveEntry {
  return {
    kind: "key",
    key_id: key.id,
    secret_sha256: key.secretSha256,
    key_kind: keyKind,
    ...scope,
    user_id: randomUUID(),
    environment_only: false,
    expires_at: null,
    ...stamp,
  };
}

function flag(scope: Scope, flagId: string, state: SnapshotFlag): LiveEntry {
  return { kind: "flag", ...scope, flag_id: flagId, ...state, ...stamp };
}

function onAndOff(number: number): SnapshotFlag {
  return {
    key: `checkout-flow-variant-${number}`,
    enabled: number % 2 === 0,
    rollout_percentage: 100,
    targeting_rules: [],
  };
}
