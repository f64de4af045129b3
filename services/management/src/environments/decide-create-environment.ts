import type { AuditEntry } from "../audit/audit-entry.ts";
import { initialState } from "../flags/decide-create.ts";
import type { HistoryEntry } from "../flags/decision.ts";
import type { FlagState } from "../flags/flag.ts";
import { flagEntry } from "../flags/flag-entry.ts";
import type { Occasion } from "../flags/occasion.ts";
import { historyEntry } from "../flags/records.ts";
import { entryOf, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { Environment } from "./environment.ts";
import { environmentEntry } from "./environment-entry.ts";
import type { ProjectFlag } from "./project-flags.ts";

/** What follows from a new environment, decided before anything is written. */
export type EnvironmentDecision = {
  environment: Environment;
  states: readonly FlagState[];
  history: readonly HistoryEntry[];
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/**
 * A new environment, in which every flag of the project has a state from this moment on. Nothing has
 * happened to the flags by that: they keep their versions, and there is no event.
 */
export function decideCreateEnvironment(
  place: { project: { id: string; organizationId: string }; flags: readonly ProjectFlag[] },
  request: { name: string },
  occasion: Occasion,
): EnvironmentDecision {
  const { project, flags } = place;
  const environment = newEnvironment(project.id, request.name, occasion);
  const added = flags.map((flag) => ({
    flag,
    state: initialState(flag, environment.id, occasion.now),
  }));
  return {
    environment,
    states: added.map(({ state }) => state),
    history: added.map(({ state }) => historyEntry(state, occasion)),
    audit: [environmentCreated(environment, occasion)],
    messages: [
      entryOf(environmentEntry({ ...environment, organizationId: project.organizationId })),
      ...added.map(({ flag, state }) => entryOf(flagEntry(flag, state))),
    ],
  };
}

export function newEnvironment(projectId: string, name: string, occasion: Occasion): Environment {
  return { id: occasion.newId(), projectId, name, createdAt: occasion.now };
}

/** The line of the audit log about a new environment. */
export function environmentCreated(environment: Environment, occasion: Occasion): AuditEntry {
  return {
    id: occasion.newId(),
    projectId: environment.projectId,
    environmentId: environment.id,
    keyId: null,
    action: "environment_created",
    actor: occasion.actor,
    before: null,
    after: { name: environment.name },
    changedAt: environment.createdAt,
  };
}
