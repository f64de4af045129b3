import type { EntryOf } from "@halyard/contracts";
import type { Project } from "./project.ts";

/** A project as the other services know it. */
export function projectEntry(project: Omit<Project, "createdAt">): EntryOf<"project"> {
  return {
    address: { kind: "project", organizationId: project.organizationId, projectId: project.id },
    value: {
      kind: "project",
      organization_id: project.organizationId,
      project_id: project.id,
      name: project.name,
      version: project.version,
      committed_at: project.updatedAt.toISOString(),
    },
  };
}
