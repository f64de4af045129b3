import type { AddressedEntry } from "../outbox/addressed-entry.ts";

/** An environment as the other services know it. It never changes, so it has one version. */
export function environmentEntry(environment: {
  id: string;
  projectId: string;
  organizationId: string;
  name: string;
  createdAt: Date;
}): AddressedEntry {
  const { id, organizationId } = environment;
  return {
    address: { kind: "environment", organizationId, environmentId: id },
    value: {
      kind: "environment",
      organization_id: organizationId,
      project_id: environment.projectId,
      environment_id: id,
      name: environment.name,
      version: 1,
      committed_at: environment.createdAt.toISOString(),
    },
  };
}
