import type { AddressedEntry } from "../outbox/addressed-entry.ts";

/** A project as the other services know it. It never changes, so it has one version. */
export function projectEntry(project: {
  id: string;
  organizationId: string;
  name: string;
  createdAt: Date;
}): AddressedEntry {
  return {
    address: { kind: "project", organizationId: project.organizationId, projectId: project.id },
    value: {
      kind: "project",
      organization_id: project.organizationId,
      project_id: project.id,
      name: project.name,
      version: 1,
      committed_at: project.createdAt.toISOString(),
    },
  };
}
