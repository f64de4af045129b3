import { randomBytes, randomUUID } from "node:crypto";
import { makeApiKey } from "@halyard/api-keys";
import { completeKey, type EntryAddress, entryKey, type LiveEntry } from "@halyard/contracts";

/** What stands in a snapshot bucket: an organization for every ten environments, flags and a key. */
export type SnapshotContent = {
  records: readonly { key: string; value: string }[];
  /** A client key of the first environment. */
  clientKey: string;
};

const environmentsPerOrganization = 10;

export function snapshotContent(options: {
  environments: number;
  flagsPerEnvironment: number;
}): SnapshotContent {
  const records: { key: string; value: string }[] = [];
  const put = (address: EntryAddress, value: LiveEntry) =>
    records.push({ key: entryKey(address), value: JSON.stringify(value) });
  let clientKey: string | undefined;
  let tenant = newTenant();

  for (let count = 0; count < options.environments; count += 1) {
    if (count % environmentsPerOrganization === 0) {
      tenant = newTenant();
      put({ kind: "organization", organizationId: tenant.organization_id }, organization(tenant));
    }
    const place = { ...tenant, environment_id: randomUUID() };
    const key = makeApiKey("client", randomBytes);
    clientKey ??= key.key;
    const organizationId = tenant.organization_id;
    put({ kind: "key", organizationId, keyId: key.id }, keyEntry(place, key));
    for (let number = 0; number < options.flagsPerEnvironment; number += 1) {
      const flagId = randomUUID();
      const environmentId = place.environment_id;
      put({ kind: "flag", organizationId, environmentId, flagId }, flag(place, flagId, number));
    }
  }
  records.push({ key: completeKey, value: JSON.stringify({ epoch: randomUUID() }) });
  return { records, clientKey: clientKey ?? "" };
}

type Tenant = { organization_id: string; project_id: string };
type Place = Tenant & { environment_id: string };

const newTenant = (): Tenant => ({ organization_id: randomUUID(), project_id: randomUUID() });
const stamp = { version: 1, committed_at: new Date().toISOString() };

function organization({ organization_id }: Tenant): LiveEntry {
  const limits = { requests_per_month: null, sse_connections: null, projects: null };
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

function keyEntry(place: Place, key: { id: string; secretSha256: string }): LiveEntry {
  return {
    kind: "key",
    key_id: key.id,
    secret_sha256: key.secretSha256,
    key_kind: "client",
    ...place,
    user_id: randomUUID(),
    environment_only: false,
    expires_at: null,
    ...stamp,
  };
}

function flag(place: Place, flagId: string, number: number): LiveEntry {
  return {
    kind: "flag",
    ...place,
    flag_id: flagId,
    key: `checkout-flow-variant-${number}`,
    enabled: number % 2 === 0,
    rollout_percentage: 100,
    targeting_rules: [],
    ...stamp,
  };
}
