import type { AuditedChange } from "../api/schema.d.ts";

type Attributed = Pick<AuditedChange, "actor" | "api_key_id"> &
  Partial<Pick<AuditedChange, "change_type">>;

/** The actor of changes of the operator and of services. */
export const nilId = "00000000-0000-0000-0000-000000000000";

/**
 * Says how the actor of a change was signed in: "with a passkey", or "by the key CI". Empty if the entry does not say,
 * or if its sentence says it already. `keyNames` has the names of keys by their ids.
 */
export function signedInBy(
  { actor, api_key_id: keyId, change_type: type }: Attributed,
  keyNames: ReadonlyMap<string, string> = new Map(),
): string {
  const { via } = actor;
  if (via === undefined) return "";
  switch (via) {
    case "oidc":
      return "with the identity provider";
    case "passkey":
      return "with a passkey";
    case "operator":
      return actor.id === nilId ? "" : "with the operator's link";
    case "key":
      return keyId === null ? "by an API key" : `by the key ${keyNames.get(keyId) ?? keyId}`;
    case "schedule":
      return type === "scheduled" ? "" : "by a schedule";
    case "change_request":
      return "by a change request";
  }
}
