import type { Environment } from "../api/schema.d.ts";
import type { Me } from "./session.tsx";

/** The environment of the pages, with the name in the address at which it was found. Without a name, it is the key's. */
export type Chosen =
  | { kind: "found"; name: string | undefined; environment: Environment }
  /** It was deleted after it was found. `environment` is its last state. */
  | { kind: "deleted"; name: string | undefined; environment: Environment }
  | { kind: "unknown"; name: string | undefined };

/**
 * Returns the environment for the name in the address. While the name stays the same, so does the environment: after a
 * rename, another one can have this name. While there is unsaved content (`isHeld`), a deleted environment stays too.
 * Returns `before` itself if nothing changed.
 */
export function chooseEnvironment(
  before: Chosen | undefined,
  {
    name,
    me,
    isHeld,
  }: {
    name: string | undefined;
    me: Pick<Me, "environments" | "key">;
    isHeld: boolean;
  },
): Chosen {
  if (before === undefined || before.kind === "unknown" || before.name !== name)
    return unchanged(before, findByName(name, me));
  const { environment: known } = before;
  const environment = me.environments.find(({ id }) => id === known.id);
  if (environment !== undefined) return unchanged(before, { kind: "found", name, environment });
  if (isHeld) return unchanged(before, { kind: "deleted", name, environment: known });
  return findByName(name, me);
}

function findByName(
  name: string | undefined,
  { environments, key }: Pick<Me, "environments" | "key">,
): Chosen {
  const environment = environments.find((each) =>
    name === undefined ? each.id === key.environment_id : each.name === name,
  );
  return environment === undefined
    ? { kind: "unknown", name }
    : { kind: "found", name, environment };
}

function unchanged(before: Chosen | undefined, now: Chosen): Chosen {
  const environmentOf = (chosen: Chosen) =>
    chosen.kind === "unknown" ? undefined : chosen.environment;
  const isSame =
    before?.kind === now.kind &&
    before.name === now.name &&
    environmentOf(before) === environmentOf(now);
  return isSame ? before : now;
}
