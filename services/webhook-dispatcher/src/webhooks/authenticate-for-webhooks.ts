import { type AuthenticateServerKey, keyRefusals } from "@halyard/api-keys";
import { isRefusal } from "@halyard/service";

/**
 * Webhooks hear of every environment of their project. A key that may know of one alone has no business
 * with them.
 */
export function forWholeProjects(authenticate: AuthenticateServerKey): AuthenticateServerKey {
  return (request) => {
    const key = authenticate(request);
    if (isRefusal(key)) return key;
    return key.environmentOnly ? keyRefusals.otherEnvironment : key;
  };
}
