import { includes } from "./person.ts";
import type { KeySession } from "./session.tsx";

/** The permissions of a session. Pages offer only permitted actions, and the API enforces the same rules. */
type Permissions = {
  /** Changes flags' states in this environment, and rolls them back. */
  mayChange(environmentId: string): boolean;
  /** Deletes flags and changes their settings, which all environments share. */
  mayChangeEverywhere: boolean;
  /** Reads and changes webhooks. */
  mayUseWebhooks: boolean;
  /** Issues, rotates and revokes keys in this environment. */
  mayIssueKeys(environmentId: string): boolean;
};

export function permissionsOf({ me }: Pick<KeySession, "me">): Permissions {
  const { roles } = me;
  if (roles !== undefined)
    return {
      mayChange: (environmentId) => includes(roles.environments.get(environmentId), "editor"),
      mayChangeEverywhere: includes(roles.project, "editor"),
      mayUseWebhooks: includes(roles.project, "admin"),
      mayIssueKeys: () => true,
    };
  const { environment_only: isLimited, environment_id: own } = me.key;
  const reaches = (environmentId: string) => !isLimited || environmentId === own;
  return {
    mayChange: reaches,
    mayChangeEverywhere: !isLimited,
    mayUseWebhooks: !isLimited,
    mayIssueKeys: reaches,
  };
}
