import { checkKeyEnvironment } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";
import type { Principal } from "../access/principal.ts";

/**
 * Permissions of a server key on the keys of its project. The operator is not restricted. No key issues or changes
 * a key with more rights than its own:
 *
 * - It issues, rotates and revokes keys of its own user. Another user's key is 403, not 404, because
 *   the list of the project's keys shows it.
 * - One made with `environment_only` does so in its own environment, and with keys that are
 *   `environment_only` themselves. When it issues a key it has to say so: the field has one default,
 *   false, whoever asks.
 * - It issues and rotates only keys that expire no later than itself (`decide-key.ts`).
 * - It reads and lists the keys of every environment of the project, an `environment_only` one those of its own.
 *
 * Rules of a key's own project are not here: to a key of another one there is nothing to be found.
 */
export function checkMayRead(principal: Principal, environmentId: string): Refusal | undefined {
  if (principal.kind === "operator") return undefined;
  return checkKeyEnvironment(principal.key, environmentId);
}

/** Issuing, rotating and revoking; the subject is the key as it is, or as it is to become. */
export function checkMayHandle(
  principal: Principal,
  subject: { environmentId: string; userId: string; environmentOnly: boolean },
): Refusal | undefined {
  const refusal = checkMayRead(principal, subject.environmentId);
  if (refusal !== undefined || principal.kind === "operator") return refusal;
  if (principal.key.userId !== subject.userId.toLowerCase())
    return refuse("AUTH_002", "A server key may handle the keys of its own user only.");
  if (principal.key.environmentOnly && !subject.environmentOnly)
    return refuse(
      "AUTH_002",
      "A key with environment_only may handle only keys with environment_only: true.",
    );
  return undefined;
}
