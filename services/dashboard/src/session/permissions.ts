import type { Environment } from "../api/schema.d.ts";
import { includes, type Role } from "./person.ts";
import type { KeySession } from "./session.tsx";

/** An action on the pages. The API enforces the same rules. */
export type Action =
  /** Changes flags' states and schedules in an environment, and rolls them back. */
  | "change_states"
  /** Creates flags, which are off everywhere. */
  | "create_flags"
  /** Changes what all environments share: settings, variations and audiences, and deletes flags. */
  | "change_project"
  | "read_webhooks"
  | "change_webhooks"
  | "change_environments"
  /** Protects an environment, and bypasses missing approvals. */
  | "protect"
  /** Approves and rejects change requests of an environment. */
  | "review"
  /** Opens, edits and rebases change requests. */
  | "propose"
  /** Issues, rotates and revokes keys in an environment. */
  | "issue_keys";

export type Where = Pick<Environment, "id" | "name"> & Partial<Pick<Environment, "protected">>;

/** The role that each action needs of a person, and where. */
const needs: Readonly<Record<Action, { role: Role; at: "environment" | "project" | "anywhere" }>> =
  {
    change_states: { role: "editor", at: "environment" },
    create_flags: { role: "editor", at: "anywhere" },
    change_project: { role: "editor", at: "project" },
    read_webhooks: { role: "viewer", at: "project" },
    change_webhooks: { role: "admin", at: "project" },
    change_environments: { role: "admin", at: "project" },
    protect: { role: "admin", at: "environment" },
    review: { role: "approver", at: "environment" },
    propose: { role: "editor", at: "anywhere" },
    issue_keys: { role: "viewer", at: "project" },
  };

/** Reasons why a key that is limited to its environment cannot do something. */
const limits: Readonly<Partial<Record<Action, string>>> = {
  change_project:
    "Your key changes only one environment, so it cannot change what all environments share.",
  read_webhooks: "Your key is limited to its environment, and webhooks belong to all of them.",
  change_webhooks: "Your key is limited to its environment, and webhooks belong to all of them.",
  change_environments: "Your key is limited to its environment.",
};

/** Why keys cannot act, because they are no people. */
const onlyPeople: Readonly<Partial<Record<Action, string>>> = {
  protect: "Needs a sign-in as an admin: an API key cannot do this.",
  review: "Needs a sign-in as an approver: an API key cannot review changes.",
};

/**
 * Returns why a session cannot do something, in a sentence for the person; undefined if it can. Actions in an environment
 * need `where`. A change that reaches a protected environment, `where`, is proposed. Every editor may do that.
 */
export function whyNot(
  { me }: Pick<KeySession, "me">,
  action: Action,
  where?: Where,
): string | undefined {
  return me.roles === undefined ? limitOf(me.key, action, where) : missingRole(me, action, where);
}

function limitOf(
  { environment_only: isLimited, environment_id: own }: KeySession["me"]["key"],
  action: Action,
  where: Where | undefined,
): string | undefined {
  if (onlyPeople[action] !== undefined || !isLimited) return onlyPeople[action];
  if (where === undefined || limits[action] !== undefined) return limits[action];
  return where.id === own ? undefined : "Your key can read this environment but not change it.";
}

function missingRole(
  { roles }: KeySession["me"],
  action: Action,
  where: Where | undefined,
): string | undefined {
  const { role, at } = needs[isProposed(action, where) ? "propose" : action];
  const inProject = roles?.project ?? null;
  const inEnvironments = [...(roles?.environments.values() ?? [])];
  switch (at) {
    case "environment": {
      const held = roles?.environments.get(where?.id ?? "");
      return includes(held, role) ? undefined : `Needs the role ${role} in ${where?.name}.`;
    }
    case "project":
      // A role in an environment includes viewer in the project.
      if (role === "viewer" || includes(inProject, role)) return undefined;
      return `Needs the role ${role} in the whole project.`;
    case "anywhere":
      return [inProject, ...inEnvironments].some((held) => includes(held, role))
        ? undefined
        : `Needs the role ${role} in the project or in one of its environments.`;
  }
}

const isProposed = (action: Action, where: Where | undefined): boolean =>
  (action === "change_states" || action === "change_project") &&
  where?.protected !== undefined &&
  where.protected !== null;

/** The answers of `whyNot` for pages that hide what the session cannot do. */
export function permissionsOf(session: Pick<KeySession, "me">) {
  return {
    mayUseWebhooks: whyNot(session, "read_webhooks") === undefined,
  };
}
