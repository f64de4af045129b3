import { type Refusal, refuse } from "@halyard/service";
import type { AuditEntry } from "../audit/audit-entry.ts";
import type { Occasion } from "../flags/occasion.ts";
import { entryOf, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { Environment } from "./environment.ts";
import { environmentAudit } from "./environment-audit.ts";
import { environmentEntry } from "./environment-entry.ts";

/** What follows from a new environment, decided before anything is written. */
export type EnvironmentDecision = {
  environment: Environment;
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/** Each flag of the project has a state in each of them, so their number bounds the cost of a flag. */
export const mostEnvironments = 50;

/** A new environment. No flag changes: flags keep their versions, and there is no event. */
export function decideCreateEnvironment(
  current: { project: { id: string; organizationId: string }; environmentCount: number },
  request: { name: string },
  occasion: Occasion,
): EnvironmentDecision | Refusal {
  const { project, environmentCount } = current;
  if (environmentCount >= mostEnvironments)
    return refuse(
      "CONFLICT_001",
      `The project has ${environmentCount} environments. The maximum is ${mostEnvironments}.`,
    );
  const environment = newEnvironment(project.id, request.name, occasion);
  return {
    environment,
    audit: [environmentCreated(environment, occasion)],
    messages: [
      entryOf(environmentEntry({ ...environment, organizationId: project.organizationId })),
    ],
  };
}

export function newEnvironment(projectId: string, name: string, occasion: Occasion): Environment {
  const { now } = occasion;
  return { id: occasion.newId(), projectId, name, version: 1, createdAt: now, updatedAt: now };
}

export function environmentCreated(environment: Environment, occasion: Occasion): AuditEntry {
  const names = { before: null, after: { name: environment.name } };
  return environmentAudit("environment_created", environment, names, occasion);
}
