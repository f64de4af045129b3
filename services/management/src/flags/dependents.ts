import type { Dependent } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { findRequiringStates, findStates, readRequirementGraphs } from "./reference-store.ts";
import { pathsOfDependents } from "./requirement-graph.ts";

/** Maximum number of dependents in a response. Each environment can have thousands. */
const maxListed = 1_000;

/**
 * Returns the flags that require a flag, directly or through others, in one environment or in each one, and their number.
 * Those with the shortest paths are first.
 */
export async function findDependents(
  sql: Sql,
  flag: { projectId: string; key: string },
  environmentId: string | null,
): Promise<{ dependents: Dependent[]; total: number }> {
  const scope = { projectId: flag.projectId, environmentId };
  const graphs = await readRequirementGraphs(sql, scope, { key: flag.key, required: [] });
  const all = [...graphs].flatMap(([id, graph]) =>
    pathsOfDependents(graph, flag.key).map((path) => ({ environmentId: id, path })),
  );
  const total = all.length;
  if (total === 0) return { dependents: [], total };
  const found = all.sort((one, other) => one.path.length - other.path.length).slice(0, maxListed);
  const [requiring, states] = await Promise.all([
    findRequiringStates(sql, flag),
    findStates(sql, { ...scope, keys: [...new Set(found.map(({ path }) => path[0] ?? ""))] }),
  ]);
  const addressOf = (id: string, key: string | undefined) => `${id} ${key}`;
  const required = new Map(
    requiring.map((each) => [addressOf(each.environmentId, each.flagKey), each.requirements[0]]),
  );
  const stateAt = new Map(
    states.map((state) => [addressOf(state.environmentId, state.flagKey), state]),
  );
  const dependents = found.flatMap(({ environmentId: id, path }) => {
    const state = stateAt.get(addressOf(id, path[0]));
    const requirement = required.get(addressOf(id, path.at(-2)));
    // Another transaction can remove a requirement between the statements.
    if (state === undefined || requirement === undefined) return [];
    return {
      flag_id: state.flagId,
      flag_key: state.flagKey,
      environment_id: id,
      environment_name: state.environmentName,
      enabled: state.enabled,
      requires: path,
      is: requirement.is as Dependent["is"],
    };
  });
  return { dependents, total };
}
