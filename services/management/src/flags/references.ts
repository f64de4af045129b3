import type { StoredVariations, UpdateFlagState } from "@halyard/contracts";
import {
  type AudienceCondition,
  isAudienceCondition,
  isRequirement,
  type Requirement,
  referredKeys,
} from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/http";
import type { Sql, Transaction } from "@halyard/postgres";
import type { Content, Flag } from "./flag.ts";
import {
  findReferred,
  findReferringStates,
  findRequiringStates,
  type Referred,
  type ReferringState,
  readRequirementGraphs,
} from "./reference-store.ts";
import {
  findCircle,
  longestChain,
  maxChainLength,
  type RequirementGraph,
} from "./requirement-graph.ts";

/**
 * References of states to audiences and to other flags. No transaction leaves a reference to something that does not
 * exist, a circle of requirements, or a chain that is too long.
 */

/**
 * Locks the references of a project until the transaction ends. A transaction takes the lock before it adds a reference
 * to an audience or a flag, and before it removes an audience, a flag or a variation. Otherwise two of them could leave a
 * reference to nothing, or a circle. The lock is taken after those of environments and before those of flags. It is the
 * row of the project, with a lock that conflicts with itself and with new and deleted environments.
 */
export async function lockReferences(tx: Transaction, projectId: string): Promise<void> {
  await tx`select from projects where id = ${projectId} for no key update`;
}

/**
 * Locks the audiences that a state begins to use until the transaction ends, after the lock of the flag. Otherwise a
 * concurrent change of such an audience would not see the use, and could commit without an approval after the environment
 * is protected.
 */
export async function holdNewAudiences(
  tx: Transaction,
  projectId: string,
  { before, after }: { before?: Content; after: Content },
): Promise<void> {
  const used = before === undefined ? [] : referredKeys(before).audiences;
  const added = referredKeys(after).audiences.filter((key) => !used.includes(key));
  if (added.length === 0) return;
  await tx`
    select from audiences where project_id = ${projectId} and key = any(${added})
    order by key for share`;
}

/** A reference of a state, and the JSON pointer to it. */
type Reference = { to: AudienceCondition | Requirement; pointer: string };

/** The members of a state or of a request that can contain references. */
type WithReferences = Partial<Pick<UpdateFlagState, "requires" | "targeting_rules">>;

function referencesOf({ requires = [], targeting_rules = [] }: WithReferences): Reference[] {
  const inRules = targeting_rules.flatMap(({ conditions }, rule) =>
    conditions.flatMap((to, index) =>
      isAudienceCondition(to) || isRequirement(to)
        ? [{ to, pointer: `/targeting_rules/${rule}/conditions/${index}` }]
        : [],
    ),
  );
  return [...requires.map((to, index) => ({ to, pointer: `/requires/${index}` })), ...inRules];
}

/** Returns whether a request can add references, so that its transaction must take the lock. */
export const hasReferences = (request: WithReferences): boolean => referencesOf(request).length > 0;

/**
 * Maximum number of audiences, and of flags, that the conditions of a state name. A change of one of them compiles every
 * state again that names it.
 */
const maxNamedInConditions = 50;

function findTooMany({ targeting_rules }: Content): ReferenceProblem | undefined {
  const { audiences, flags } = referredKeys({ targeting_rules });
  if (Math.max(audiences.length, flags.length) <= maxNamedInConditions) return undefined;
  return {
    pointer: "/targeting_rules",
    problem: `the conditions of a flag name at most ${maxNamedInConditions} audiences and ${maxNamedInConditions} other flags in an environment`,
  };
}

/** A reference that a state must not have: the JSON pointer to it, and a sentence. */
type ReferenceProblem = { pointer: string; problem: string };

/** Checks the references of a flag's state in an environment. The caller that stores the state has taken the lock. */
export async function checkReferences(
  sql: Sql | Transaction,
  { flag, environmentId }: { flag: Pick<Flag, "projectId" | "key">; environmentId: string },
  content: Content,
): Promise<ReferenceProblem | undefined> {
  const references = referencesOf(content);
  if (references.length === 0) return undefined;
  const tooMany = findTooMany(content);
  if (tooMany !== undefined) return tooMany;
  const keys = referredKeys(content);
  const scope = { projectId: flag.projectId, environmentId };
  const [referred, graphs] = await Promise.all([
    findReferred(sql, flag.projectId, keys),
    keys.flags.length === 0
      ? undefined
      : readRequirementGraphs(sql, scope, { key: flag.key, required: keys.flags }),
  ]);
  const graph = new Map(graphs?.get(environmentId)).set(flag.key, [...keys.flags]);
  return findReferenceProblem(references, { key: flag.key, referred, graph });
}

/** `graph` contains the references. Nothing can require a flag itself, so that it needs not be in `referred`. */
function findReferenceProblem(
  references: readonly Reference[],
  { key, referred, graph }: { key: string; referred: Referred; graph: RequirementGraph },
): ReferenceProblem | undefined {
  for (const { to, pointer } of references) {
    const problem = findUnknown(to, key, referred);
    if (problem !== undefined) return { ...problem, pointer: pointer + problem.pointer };
  }
  const pointerTo = (required: string | undefined) =>
    `${references.find(({ to }) => "flag" in to && to.flag === required)?.pointer}/flag`;
  const circle = findCircle(graph, key);
  if (circle !== undefined)
    return {
      pointer: pointerTo(circle[1]),
      problem: `${arrows(circle)} is a circle of requirements`,
    };
  const chain = longestChain(graph, key);
  const length = chain.length - 1;
  if (length <= maxChainLength) return undefined;
  return {
    pointer: pointerTo(chain[chain.indexOf(key) + 1]),
    problem: `${arrows(chain)} is a chain of ${length} requirements, more than ${maxChainLength}`,
  };
}

const arrows = (path: readonly string[]): string => path.join(" → ");

function findUnknown(
  to: Reference["to"],
  key: string,
  { audiences, flags }: Referred,
): ReferenceProblem | undefined {
  if (isAudienceCondition(to)) {
    if (audiences.has(to.audience)) return undefined;
    return { pointer: "/audience", problem: `the project has no audience ${to.audience}` };
  }
  if (to.flag === key) return undefined;
  const variations = flags.get(to.flag);
  if (variations === undefined)
    return { pointer: "/flag", problem: `the project has no flag ${to.flag}` };
  if (typeof to.is === "string") return undefined;
  const index = to.is.findIndex((variation) => !variations.includes(variation));
  if (index === -1) return undefined;
  const problem = `the flag ${to.flag} has no variation ${to.is[index]}`;
  return { pointer: `/is/${index}`, problem };
}

/** Returns the problem of a request. `parent` is the JSON pointer to the state in it. */
export const asRequestProblem = ({ pointer, problem }: ReferenceProblem, parent = ""): Problem =>
  createProblem("VALIDATION_001", `${parent}${pointer}: ${problem}`);

/** Returns the problem of a rollback. */
export const asRollbackProblem = ({ problem }: ReferenceProblem): Problem =>
  createProblem("CONFLICT_001", `The earlier state cannot be restored: ${problem}.`);

/** Maximum number of states that a message names. */
const maxNamed = 20;

/** Rejects the deletion of a flag that other flags require. The caller has taken the lock. */
export async function checkNotRequired(
  tx: Transaction,
  { projectId, key }: Pick<Flag, "projectId" | "key">,
): Promise<Problem | undefined> {
  const found = await findReferringStates(tx, { projectId, kind: "flag", key }, maxNamed);
  if (found.total === 0) return undefined;
  return createProblem(
    "CONFLICT_001",
    `The flag is required by ${describeStates(found)}. Remove these requirements first.`,
  );
}

/** Returns the names of states for a message, such as "checkout in production, and 2 other states". */
export function describeStates({
  states,
  total,
}: {
  states: readonly Pick<ReferringState, "flagKey" | "environmentName">[];
  total: number;
}): string {
  const names = states
    .slice(0, maxNamed)
    .map(({ flagKey, environmentName }) => `${flagKey} in ${environmentName}`);
  const others = total - names.length;
  return others === 0 ? names.join(", ") : `${names.join(", ")}, and ${others} other states`;
}

/**
 * Rejects variations without one that a requirement of another flag names. The caller has taken the lock. `flag` is the
 * flag before the change.
 */
export async function checkRequiredVariations(
  tx: Transaction,
  flag: Pick<Flag, "projectId" | "key" | "variations">,
  variations: StoredVariations,
): Promise<Problem | undefined> {
  const kept = new Set(variations.map(({ key }) => key));
  const removed = new Set(flag.variations?.map(({ key }) => key).filter((key) => !kept.has(key)));
  if (removed.size === 0) return undefined;
  const states = await findRequiringStates(tx, flag);
  for (const variation of removed) {
    const requiring = states.filter(({ requirements }) =>
      requirements.some(({ is }) => typeof is !== "string" && is.includes(variation)),
    );
    if (requiring.length === 0) continue;
    const described = describeStates({ states: requiring, total: requiring.length });
    return createProblem(
      "CONFLICT_001",
      `/variations must keep ${variation}, which is required by ${described}. Change these requirements first.`,
    );
  }
  return undefined;
}
