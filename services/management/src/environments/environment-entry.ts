import type { EntryOf } from "@halyard/contracts";
import type { Environment } from "./environment.ts";

/** An environment as the other services know it. */
export function environmentEntry(
  environment: Omit<Environment, "createdAt"> & { organizationId: string },
): EntryOf<"environment"> {
  const { id, organizationId } = environment;
  return {
    address: { kind: "environment", organizationId, environmentId: id },
    value: {
      kind: "environment",
      organization_id: organizationId,
      project_id: environment.projectId,
      environment_id: id,
      name: environment.name,
      version: environment.version,
      committed_at: environment.updatedAt.toISOString(),
    },
  };
}
