import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { checkKeyEnvironment, type DirectoryKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { operators, parseInstant } from "@halyard/evaluation";
import {
  answer,
  checkIfMatch,
  createProblem,
  cursorOf,
  etagOf,
  fixedAnswer,
  isProblem,
  namesTag,
  type Problem,
  readCursor,
} from "@halyard/http";
import { type Caller, includes as includesRole, missingRole } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { z } from "zod";
import { answerAll } from "../access/answer-all.ts";
import type { Costs } from "../access/costs.ts";
import { maxPageBytes } from "../access/page-bounds.ts";
import { readTagOf } from "../access/read-tag.ts";
import type { Routes } from "../access/routes.ts";
import { changedSettings } from "./decide-flag.ts";
import { findDependents } from "./dependents.ts";
import { explainFlag } from "./explain-flag.ts";
import {
  type Flag,
  flagResource,
  flagStateResource,
  type ListedFlag,
  listedFlagResource,
  pathOf,
  pathOfState,
  type StoredState,
} from "./flag.ts";
import { changeFlag, changeFlags, createFlag, noSuchFlag, removeFlag } from "./flag-changes.ts";
import {
  type FlagPage,
  type FlagSelection,
  findFlag,
  listFlags,
  type Position,
  parseOrder,
} from "./flag-store.ts";
import { checkRules } from "./targeting-rules.ts";
import { readVariations, type WithStoredVariations } from "./variations.ts";

/** Registers the routes of flags. All of them require a server key of the project. */
export function registerFlagRoutes(
  routes: Routes,
  { sql, now }: { sql: Sql; now: () => Date },
): void {
  registerFlagList(routes, { sql, now });
  routes.write(contract.createFlag, {
    check: ({ body }) => readRequest(body),
    run: async (change, _, request) => {
      const { key } = change.principal;
      return (request.enabled && checkMayChangeState(key)) || createFlag(change, key, request);
    },
    answer: ({ flag, state }) =>
      answer.created(pathOf(flag), flagResource({ flag, state, lastEvaluatedAt: null }), {
        etag: etagOf(flag),
      }),
  });

  routes.read(contract.getFlag, async ({ params, request }, { key }) => {
    const found = await findFlag(sql, { ...key, flagId: params.id });
    if (found === undefined) return noSuchFlag;
    const resource = flagResource(found);
    const etag = readTagOf(resource);
    const ifNoneMatch = request.headers["if-none-match"];
    if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) return answer.notModified(etag);
    return answer.ok(resource, { etag });
  });

  routes.write(contract.updateFlag, {
    check: ({ body }) => readRequest(body),
    run: (change, { params, request }, settings) => {
      const { key } = change.principal;
      const permit = ({ flag }: { flag: Flag }) =>
        checkMayChange(key, flag, settings) ?? checkIfMatch(request.ifMatch, flag, pathOf(flag));
      const scope = { ...key, flagId: params.id };
      return changeFlag(change, { scope, permit }, settings);
    },
    answer: (changed) => answer.ok(flagResource(changed), { etag: etagOf(changed.flag) }),
  });

  routes.write(contract.updateFlags, {
    run: (change, { body }) => {
      const { key } = change.principal;
      if (key.environmentOnly) return Promise.resolve(notForAllEnvironments);
      return changeFlags(change, key, body);
    },
    answer: ({ flags }) => answer.ok({ flags: flags.map((flag) => listedFlagResource(flag)) }),
  });

  routes.write(contract.deleteFlag, {
    run: (change, { params, request }) => {
      const { key } = change.principal;
      const permit = ({ flag }: { flag: Flag }) =>
        checkMayDelete(key) ?? checkIfMatch(request.ifMatch, flag, pathOf(flag));
      const scope = { ...key, flagId: params.id };
      return removeFlag(change, { scope, permit });
    },
    answer: answer.noContent,
  });
}

/** Registers the list of the flags that require a flag. */
export function registerDependents(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.getDependents, async ({ params }, { key }) => {
    const found = await findFlag(sql, { ...key, flagId: params.id });
    if (found === undefined) return noSuchFlag;
    const environmentId = key.environmentOnly ? key.environmentId : null;
    return answer.ok(await findDependents(sql, found.flag, environmentId));
  });
}

/** Checks the rules and reads the variations of a body. */
function readRequest<Body extends contract.CreateFlag | contract.UpdateFlag>(body: Body) {
  const checked = checkRules(body);
  return isProblem(checked) ? checked : readVariations(checked, body);
}

function registerFlagList(routes: Routes, { sql, now }: { sql: Sql; now: () => Date }): void {
  routes.read(contract.listFlags, async ({ query }, { key }) => {
    const { cursor, limit, key: flagKey, owner } = query;
    const first = cursor === undefined ? undefined : readFlagCursor(cursor, query);
    if (cursor !== undefined && first === undefined) return cursorOfOtherQuery;
    const isPossible =
      (flagKey === undefined || isFlagKey(flagKey)) &&
      (owner === undefined || contract.FlagOwner.safeParse(owner).success);
    const selection = selectionOf(query, key, now());
    const withValues = includes(query, "values");
    const resourceOf = (flag: ListedFlag) => listedFlagResource(flag, withValues);
    const readPage = async (page: PageRequest): Promise<FlagPage> =>
      isPossible ? listFlags(sql, selection, page) : { flags: [], last: undefined };
    if (limit === undefined) {
      let after = first;
      return answerAll(
        "flags",
        async () => {
          const { flags, last } = await readPage({ after, ...pageBounds });
          after = last;
          return { items: flags, more: last !== undefined };
        },
        resourceOf,
      );
    }
    const { flags, last } = await readPage({ after: first, limit, maxBytes: maxPageBytes });
    return answer.ok({
      flags: flags.map(resourceOf),
      next_cursor: last === undefined ? null : flagCursorOf(last, query),
    });
  });
}

/** Registers the routes of a flag's state in any environment of the project. */
export function registerFlagStateRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.getFlagState, async ({ params }, { key }) => {
    const scope = { ...key, flagId: params.flagId, environmentId: params.envId };
    const found = await findFlag(sql, scope);
    if (found === undefined) return noSuchFlag;
    const problem = checkKeyEnvironment(key, found.environment.id);
    if (problem !== undefined) return problem;
    return answer.ok(flagStateResource(found.state), { etag: etagOf(found.state) });
  });

  routes.write(contract.updateFlagState, {
    check: ({ body }) => checkRules(body),
    run: (change, { params, request }, settings) => {
      const { key } = change.principal;
      const permit = ({ state }: { state: StoredState }) =>
        checkKeyEnvironment(key, state.environmentId) ??
        checkIfMatch(request.ifMatch, state, pathOfState(state));
      const scope = { ...key, flagId: params.flagId, environmentId: params.envId };
      return changeFlag(change, { scope, permit }, settings);
    },
    answer: ({ state }) => answer.ok(flagStateResource(state), { etag: etagOf(state) }),
  });
}

/** Registers the explanation of a flag. It writes nothing, and the user is in no log, metric or message. */
export function registerFlagExplanation(
  routes: Routes,
  { sql, costs, newId }: { sql: Sql; costs: Costs; newId: () => string },
): void {
  routes.read(
    contract.explainFlag,
    async ({ params, body }, principal) => {
      const { key } = principal;
      const changed = checkRules(body.state ?? {}, "/state");
      if (isProblem(changed)) return changed;
      const scope = { ...key, flagId: params.flagId, environmentId: params.envId };
      const found = await findFlag(sql, scope);
      if (found === undefined) return noSuchFlag;
      const problem = checkKeyEnvironment(key, found.environment.id);
      if (problem !== undefined) return problem;
      const onUsed = (ms: number) => costs.chargeTime(principal, ms);
      const explained = await explainFlag(sql, found, { user: body.user, changed, newId, onUsed });
      return isProblem(explained) ? explained : answer.ok(explained);
    },
    // Stored rules can be as costly as those in a body.
    { isCostly: true },
  );
}

/** Registers the catalogue of condition operators. Any key can read it, and it is the same for all callers. */
export function registerOperatorCatalogue(routes: Routes): void {
  const answerTo = fixedAnswer(
    { operators },
    { ...contract.cacheHeadersOf(contract.listOperators) },
  );
  routes.read(contract.listOperators, ({ request }) => answerTo(request.headers["if-none-match"]));
}

type ListQuery = z.infer<typeof contract.listFlags.query>;

const includes = ({ include }: ListQuery, part: "environments" | "values"): boolean =>
  include?.split(",").includes(part) === true;

/** Returns a hash of everything in a query that decides which flags a list contains, and in which order. */
function listOf({ limit: _, cursor: __, ...rest }: ListQuery): string {
  const given = Object.entries(rest).sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(given)).digest("base64url").slice(0, 16);
}

function flagCursorOf({ value, key }: Position, query: ListQuery): string {
  return cursorOf(`${listOf(query)} ${key} ${value}`);
}

/** Returns the position in a cursor; undefined if it is not from a list of the same query. */
function readFlagCursor(cursor: string, query: ListQuery): Position | undefined {
  const [list, key = "", ...rest] = readCursor(cursor, () => true)?.split(" ") ?? [];
  if (list !== listOf(query) || !isFlagKey(key)) return undefined;
  const value = rest.join(" ");
  const { name } = parseOrder(query.sort ?? "key");
  const isText = (name === "key" || name === "name") && !value.includes("\0");
  return isText || parseInstant(value) !== undefined ? { value, key } : undefined;
}

const cursorOfOtherQuery = createProblem(
  "VALIDATION_001",
  "/cursor must be the `next_cursor` of an earlier answer to the same query.",
);

const dayMs = 24 * 60 * 60 * 1_000;

/** Returns the flags that a request lists, as its key may see them. */
function selectionOf(
  query: ListQuery,
  { projectId, environmentId, environmentOnly }: DirectoryKey,
  now: Date,
): FlagSelection {
  const { key: flagKey, stale_days: staleDays, tag: tags, owner, type, archived } = query;
  return {
    projectId,
    environmentId,
    order: query.sort ?? "key",
    flagKey,
    tags,
    owner,
    type,
    archived,
    unusedSince: staleDays === undefined ? undefined : new Date(now.getTime() - staleDays * dayMs),
    summarized: includes(query, "environments") ? (environmentOnly ? "own" : "all") : undefined,
  };
}

function isFlagKey(text: string): boolean {
  return contract.FlagKey.safeParse(text).success;
}

/**
 * Rejects the deletion of a flag by an `environment_only` key. Such a key can create flags, because a new flag is off
 * in every other environment. It can change states in its own environment, and nothing that other environments share.
 */
function checkMayDelete(key: DirectoryKey): Problem | undefined {
  if (!key.environmentOnly) return undefined;
  return createProblem(
    "AUTH_002",
    "A key with environment_only may not delete a flag, because the flag exists in every environment.",
  );
}

const notForAllEnvironments = createProblem(
  "AUTH_002",
  "A key with environment_only may not change settings of flags, because they apply to every environment.",
);

/**
 * Rejects a change to settings by an `environment_only` key, and without a role in the whole project. A request that
 * repeats the current settings is allowed. A change to the state needs a role in the environment of the request.
 */
function checkMayChange(
  key: Caller,
  flag: Flag,
  request: WithStoredVariations<contract.UpdateFlag>,
): Problem | undefined {
  const { variations = flag.variations } = request;
  const [name = isDeepStrictEqual(variations, flag.variations) ? undefined : "variations"] =
    Object.keys(changedSettings(flag, request));
  if (name !== undefined && key.environmentOnly)
    return createProblem(
      "AUTH_002",
      `A key with environment_only may not change /${name}, because it applies to every environment.`,
    );
  const { projectId } = key;
  const held = key.rights.at({ projectId });
  if (name !== undefined && !mayEdit(held))
    return missingRole({ role: "editor", at: "project" }, held);
  const namesState = stateNames.some((member) => request[member] !== undefined);
  return namesState ? checkMayChangeState(key) : undefined;
}

const stateNames = Object.keys(
  contract.UpdateFlagState.shape,
) as (keyof contract.UpdateFlagState)[];

/** Rejects a change to a state without a role in the environment of the request. */
function checkMayChangeState({ rights, projectId, environmentId }: Caller): Problem | undefined {
  const held = rights.at({ projectId, environmentId });
  return mayEdit(held) ? undefined : missingRole({ role: "editor", at: "environment" }, held);
}

const mayEdit = (held: contract.Role | undefined) => includesRole(held, "editor");

type PageRequest = Parameters<typeof listFlags>[2];

const pageBounds = {
  /** Maximum number of flags per page, which take a few milliseconds of the event loop. */
  limit: 500,
  /** Maximum size of the rules of a page. Three flags with rules of the maximum size fill it. */
  maxBytes: 1024 * 1024,
};
