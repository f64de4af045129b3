import type {
  CreateEnvironment,
  EntryOf,
  Environment as EnvironmentResource,
  Protection,
} from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";

/** An environment of a project. Each flag of the project has its own state in it. */
export type Environment = {
  id: string;
  projectId: string;
  name: string;
  /** The dashboard asks for confirmation before it saves a change in this environment. */
  caution: boolean;
  /** Changes of what the environment answers need an approved change request. */
  protection: Protection | null;
  /** When the protection began. */
  protectedAt: Date | null;
  /** Counter that every change increments. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** Returns the settings that requests can change. */
export const settingsOf = ({ name, caution, protection }: Environment) => ({
  ...{ name, caution },
  ...(protection !== null && { protected: protection }),
});

/** Returns an environment as the API represents it. */
export function environmentResource(environment: Environment): EnvironmentResource {
  return {
    id: environment.id,
    project_id: environment.projectId,
    name: environment.name,
    caution: environment.caution,
    protected: environment.protection,
    created_at: environment.createdAt.toISOString(),
  };
}

/** Returns the snapshot entry of an environment, which the other services read. */
export function environmentEntry(
  environment: Pick<
    Environment,
    "id" | "projectId" | "name" | "protection" | "version" | "updatedAt"
  > & {
    organizationId: string;
  },
): EntryOf<"environment"> {
  const { id, organizationId, protection } = environment;
  return {
    address: { kind: "environment", organizationId, environmentId: id },
    value: {
      kind: "environment",
      organization_id: organizationId,
      project_id: environment.projectId,
      environment_id: id,
      name: environment.name,
      ...(protection !== null && {
        protected: { without_approval: protection.without_approval },
      }),
      version: environment.version,
      committed_at: environment.updatedAt.toISOString(),
    },
  };
}

/** Returns the audit entry of a change to an environment. */
export function environmentAudit(
  action: `environment_${"created" | "renamed" | "changed" | "deleted"}`,
  { projectId, id: environmentId }: Pick<Environment, "id" | "projectId">,
  values: Pick<AuditEntry, "before" | "after">,
  context: ChangeContext,
): AuditEntry {
  return auditEntry(context, { projectId, environmentId, action, ...values });
}

/** Also the response to a caller that cannot access the project, so that it does not reveal the environment. */
export const noSuchEnvironment = createProblem(
  "NOT_FOUND_001",
  "There is no such environment in this project.",
);

/** The result of creating an environment, decided before anything is written. */
type EnvironmentDecision = {
  environment: Environment;
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/**
 * Maximum number of environments per project. A flag has a state in each of them, so this bounds the cost of a flag.
 */
const maxEnvironments = 50;

/** Decides the creation of an environment. No flag changes: flags keep their versions, and no event is published. */
export function decideCreateEnvironment(
  current: { project: { id: string; organizationId: string }; environmentCount: number },
  request: CreateEnvironment,
  context: ChangeContext,
): EnvironmentDecision | Problem {
  const { project, environmentCount } = current;
  if (environmentCount >= maxEnvironments)
    return createProblem(
      "CONFLICT_001",
      `The project has ${environmentCount} environments. The maximum is ${maxEnvironments}.`,
    );
  const environment = newEnvironment(project.id, request, context);
  return {
    environment,
    audit: [environmentCreated(environment, context)],
    messages: [
      entryToPublish(environmentEntry({ ...environment, organizationId: project.organizationId })),
    ],
  };
}

export function newEnvironment(
  projectId: string,
  { name, caution = false }: CreateEnvironment,
  { now, newId }: ChangeContext,
): Environment {
  return {
    ...{ id: newId(), projectId, name, caution, protection: null, protectedAt: null },
    ...{ version: 1, createdAt: now, updatedAt: now },
  };
}

export function environmentCreated(environment: Environment, context: ChangeContext): AuditEntry {
  const values = { before: null, after: settingsOf(environment) };
  return environmentAudit("environment_created", environment, values, context);
}
