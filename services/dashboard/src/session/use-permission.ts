import { type Action, type Where, whyNot } from "./permissions.ts";
import { useKeySession } from "./session.tsx";

/**
 * Returns why the session cannot do something, for its disabled control. Pages have no control for what a limited key
 * never does (`isOffered`). A person can get another role, so that their controls are disabled, and say which.
 */
export function usePermission(
  action: Action,
  where?: Where,
): { reason: string | undefined; isOffered: boolean } {
  const session = useKeySession();
  const reason = whyNot(session, action, where);
  return { reason, isOffered: reason === undefined || session.me.roles !== undefined };
}
