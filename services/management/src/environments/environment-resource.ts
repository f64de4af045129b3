import type { Environment as EnvironmentResource } from "@halyard/contracts";
import type { Environment } from "./environment.ts";

/** An environment as the API shows it. */
export function environmentResource(environment: Environment): EnvironmentResource {
  return {
    id: environment.id,
    project_id: environment.projectId,
    name: environment.name,
    created_at: environment.createdAt.toISOString(),
  };
}
