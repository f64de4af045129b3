import type { Refusal } from "@halyard/service";

/**
 * A refusal by one limit that names further ones too, so that both fields are lists of all that limit the
 * caller, with the one that it is about first. `fields`: names and values in turn, or none.
 */
export function nameFurtherLimits(refusal: Refusal, fields: readonly string[]): Refusal {
  const [, policy, , limit] = fields;
  if (policy === undefined) return refusal;
  const { "ratelimit-policy": ownPolicy, ratelimit: ownLimit } = refusal.headers ?? {};
  const joint = {
    "ratelimit-policy": `${ownPolicy}, ${policy}`,
    ratelimit: `${ownLimit}, ${limit}`,
  };
  return { ...refusal, headers: { ...refusal.headers, ...joint } };
}
