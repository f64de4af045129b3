import { isDeepStrictEqual } from "node:util";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Sql, Transaction } from "@halyard/postgres";
import { findAudience, usesOf } from "../audiences/audience-store.ts";
import { checkMatch } from "../audiences/decide-audience.ts";
import { changedContent, type Flag, type FlagInEnvironment, patchOf } from "../flags/flag.ts";
import { findFlag } from "../flags/flag-store.ts";
import { findRequiringStates } from "../flags/reference-store.ts";
import { asRequestProblem, checkReferences } from "../flags/references.ts";
import { checkRules } from "../flags/targeting-rules.ts";
import { checkVariations } from "../flags/variations.ts";
import type { Proposal } from "../protection/proposal.ts";
import type { Place } from "./base.ts";
import type { DecidedChange } from "./change-request.ts";

/** Maximum size of the changes of a request with their values, as JSON. */
const maxBytes = 4 * 1024 * 1024;

type Deciding = Place & {
  sql: Sql | Transaction;
  newId: () => string;
  /** The flags with the variations of earlier changes of the request. */
  flags: Map<string, Flag>;
};

/**
 * Decides the values after the proposed changes, on the current values. The changes get the ids of new rules and the
 * ranges of splits now, so that an approval covers them. Changes without a difference are dropped.
 */
export async function decideChanges(
  sql: Sql | Transaction,
  place: Place & { newId: () => string },
  proposals: readonly Proposal[],
): Promise<DecidedChange[] | Problem> {
  const deciding: Deciding = { ...place, sql, flags: new Map() };
  const decided: DecidedChange[] = [];
  const subjects = new Set<string>();
  for (const [index, proposal] of proposals.entries()) {
    const parent = `/changes/${index}`;
    const subject = subjectOf(proposal);
    if (subjects.has(subject)) return conflict(`${parent} changes the same as an earlier change.`);
    subjects.add(subject);
    const change = await decide(deciding, proposal, parent);
    if (change !== "unchanged" && isProblem(change)) return change;
    if (change !== "unchanged") decided.push(change);
  }
  if (decided.length === 0)
    return createProblem("CONFLICT_001", "Everything has the requested values already.");
  if (Buffer.byteLength(JSON.stringify(decided)) > maxBytes)
    return invalid("/changes are larger than 4 MiB together with their values. Send fewer");
  return decided;
}

const conflict = (message: string): Problem => createProblem("CONFLICT_001", message);
const invalid = (message: string): Problem => createProblem("VALIDATION_001", message);

function subjectOf(proposal: Proposal): string {
  if ("audience" in proposal) return `${proposal.kind} ${proposal.audience}`;
  const { kind } = proposal;
  const flag = "flag_id" in proposal ? proposal.flag_id.toLowerCase() : "";
  return `${kind} ${flag} ${"environment_id" in proposal ? proposal.environment_id.toLowerCase() : ""}`;
}

type Outcome = Promise<DecidedChange | "unchanged" | Problem>;

function decide(deciding: Deciding, proposal: Proposal, parent: string): Outcome {
  switch (proposal.kind) {
    case "state":
      return decideState(deciding, proposal, parent);
    case "flag_variations":
      return decideVariations(deciding, proposal, parent);
    case "flag_deletion":
      return decideDeletion(deciding, proposal, parent);
    case "audience":
    case "audience_list":
      return decideAudience(deciding, proposal, parent);
    case "protection":
      return decideProtection(deciding, proposal, parent);
  }
}

type Of<Kind extends Proposal["kind"]> = Extract<Proposal, { kind: Kind }>;

async function decideState(
  { sql, projectId, environments, flags, newId }: Deciding,
  { flag_id: flagId, environment_id: environmentId, base_version, patch }: Of<"state">,
  parent: string,
): Outcome {
  const found = await findFlag(sql, { projectId, flagId, environmentId });
  if (found === undefined) return noSuchFlag(parent);
  const { state, environment } = found;
  const flag = flags.get(found.flag.id) ?? found.flag;
  const other = checkVersion(base_version, state.version, parent);
  if (other !== undefined) return other;
  const pointer = `${parent}/patch`;
  const checked = checkRules(patch, pointer);
  if (isProblem(checked)) return checked;
  const content = changedContent(flag, state.content, checked, { newId, parent: pointer });
  if (isProblem(content)) return content;
  if (isDeepStrictEqual(content, state.content)) return "unchanged";
  const wrong = await checkReferences(sql, { flag, environmentId: environment.id }, content);
  if (wrong !== undefined) return asRequestProblem(wrong, pointer);
  const requiring = await findRequiringStates(sql, flag);
  return {
    ...{ kind: "state", flag_id: flag.id, flag_key: flag.key },
    ...{ environment_id: environment.id, environment_name: nameIn(environments, environment.id) },
    ...{ base_version: state.version, patch: patchOf(state.content, content) },
    ...{ before: state.content, after: content },
    dependents: requiring.filter((each) => each.environmentId === environment.id).length,
  };
}

const nameIn = (environments: Place["environments"], id: string): string =>
  environments.find((each) => each.id === id)?.name ?? id;

async function decideVariations(
  deciding: Deciding,
  { flag_id, base_version, variations }: Of<"flag_variations">,
  parent: string,
): Outcome {
  const flag = await findFlagAnywhere(deciding, flag_id);
  if (flag === undefined) return noSuchFlag(parent);
  const version = flag.variationsVersion ?? 1;
  const problem =
    checkVersion(base_version, version, parent) ?? checkVariations(flag.valueType, variations);
  if (problem !== undefined) return problem;
  if (isDeepStrictEqual(variations, flag.variations)) return "unchanged";
  deciding.flags.set(flag.id, { ...flag, variations });
  const named = { flag_id: flag.id, flag_key: flag.key, base_version: version };
  return { kind: "flag_variations", ...named, variations, before: flag.variations ?? [] };
}

async function decideDeletion(
  deciding: Deciding,
  { flag_id, base_version }: Of<"flag_deletion">,
  parent: string,
): Outcome {
  const flag = await findFlagAnywhere(deciding, flag_id);
  if (flag === undefined) return noSuchFlag(parent);
  const { id, key, version } = flag;
  const other = checkVersion(base_version, version, parent);
  return other ?? { kind: "flag_deletion", flag_id: id, flag_key: key, base_version: version };
}

/** Every environment has a state of the flag. */
export async function findFlagAnywhere(
  { sql, projectId, environments }: Pick<Deciding, "sql" | "projectId" | "environments">,
  flagId: string,
): Promise<FlagInEnvironment["flag"] | undefined> {
  const [first] = environments;
  if (first === undefined) return undefined;
  return (await findFlag(sql, { projectId, flagId, environmentId: first.id }))?.flag;
}

async function decideAudience(
  { sql, projectId }: Deciding,
  proposal: Of<"audience"> | Of<"audience_list">,
  parent: string,
): Outcome {
  const audience = await findAudience(sql, { projectId, key: proposal.audience });
  if (audience === undefined)
    return createProblem("NOT_FOUND_001", `${parent}: there is no such audience in this project.`);
  const { key, version: base_version, match, list } = audience;
  const other = checkVersion(proposal.base_version, base_version, parent);
  if (other !== undefined) return other;
  const named = { audience: key, base_version };
  if (proposal.kind === "audience_list") {
    const { add, remove } = proposal;
    return { kind: "audience_list", ...named, add, remove };
  }
  const requested = proposal.patch.match === undefined ? match : checkMatch(proposal.patch.match);
  if (isProblem(requested)) return requested;
  const patch = {
    ...(isDeepStrictEqual(requested, match) ? {} : { match: requested }),
    ...(proposal.patch.list === null && list !== null ? { list: null } : {}),
  };
  if (Object.keys(patch).length === 0) return "unchanged";
  const before = {
    match,
    list: list === null ? null : { attribute: list.attribute, count: list.count },
  };
  return { kind: "audience", ...named, patch, before };
}

async function decideProtection(
  { environments }: Deciding,
  { environment_id, protected: protection, base_version }: Of<"protection">,
  parent: string,
): Outcome {
  const environment = environments.find(({ id }) => id === environment_id.toLowerCase());
  if (environment === undefined)
    return createProblem("NOT_FOUND_001", `${parent}: there is no such environment.`);
  const { id, name, version, protection: before } = environment;
  if (before === null)
    return conflict(
      `${parent}: ${name} is not protected. An admin can protect it without a request.`,
    );
  const other = checkVersion(base_version, version, parent);
  if (other !== undefined) return other;
  if (isDeepStrictEqual(before, protection)) return "unchanged";
  const named = { environment_id: id, environment_name: name, base_version: version };
  return { kind: "protection", ...named, protected: protection, before };
}

function checkVersion(
  given: number | undefined,
  current: number,
  parent: string,
): Problem | undefined {
  if (given === undefined || given === current) return undefined;
  return createProblem(
    "CONFLICT_001",
    `${parent}/base_version is ${given}, and the current version is ${current}. Read it again.`,
  );
}

const noSuchFlag = (parent: string): Problem =>
  createProblem(
    "NOT_FOUND_001",
    `${parent}: there is no such flag or environment in this project.`,
  );

/** Returns the environments whose answers changes affect: those that they name, those that use an audience, or all. */
export async function affectedEnvironments(
  sql: Sql | Transaction,
  { projectId, environments }: Place,
  changes: readonly DecidedChange[],
): Promise<string[]> {
  const keys = changes.flatMap((change) => ("audience" in change ? [change.audience] : []));
  const uses = await usesOf(sql, { projectId, keys, environmentId: null });
  const ids = changes.flatMap((change) => {
    if ("environment_id" in change) return [change.environment_id];
    if (!("audience" in change)) return environments.map(({ id }) => id);
    return (uses.get(change.audience) ?? []).map(({ environmentId }) => environmentId);
  });
  return [...new Set(ids)].sort();
}
