import type { DirectoryKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import {
  answer,
  checkIfMatch,
  createProblem,
  etagOf,
  isProblem,
  namesTag,
  type Problem,
  type RequestFacts,
} from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { answerAll } from "../access/answer-all.ts";
import { maxPageBytes } from "../access/page-bounds.ts";
import { readTagOf } from "../access/read-tag.ts";
import type { Routes } from "../access/routes.ts";
import {
  type Audience,
  type AudienceUse,
  audienceResource,
  historyResource,
  pathOf,
  useResource,
} from "./audience.ts";
import {
  type ChangedAudience,
  changeAudience,
  changeEntries,
  checkEntryChange,
  checkListSize,
  createAudience,
  noSuchAudience,
  removeAudience,
  replaceList,
} from "./audience-changes.ts";
import { findAudience, listAudienceHistory, listAudiences, usesOf } from "./audience-store.ts";
import { checkMatch, checkRequest } from "./decide-audience.ts";
import { hasMember } from "./list-store.ts";
import { createUploads, membersOf } from "./list-upload.ts";

/** Registers the routes of audiences. All of them require a server key of the project. */
export function registerAudienceRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  registerAudienceReads(routes, { sql });
  routes.write(contract.createAudience, {
    check: ({ body }) => checkRequest(body),
    run: async (change, _, request) => {
      const { key } = change.principal;
      return checkMayChange(key) ?? createAudience(change, key, request);
    },
    answer: ({ audience, uses }) =>
      answer.created(pathOf(audience), audienceResource(audience, uses), {
        etag: etagOf(audience),
      }),
  });

  routes.write(contract.updateAudience, {
    check: ({ body }) => checkRequest(body),
    run: (change, input, request) =>
      changeAudience(change, changeRequestOf(change.principal.key, input), request),
    answer: answerChanged,
  });

  routes.write(contract.deleteAudience, {
    run: (change, input) => removeAudience(change, changeRequestOf(change.principal.key, input)),
    answer: answer.noContent,
  });

  routes.read(contract.previewAudience, async ({ params, body }, { key }) => {
    const checked = checkMatch(body.match);
    if (isProblem(checked)) return checked;
    const audience = await findAudience(sql, { ...key, key: params.key });
    if (audience === undefined) return noSuchAudience;
    const uses = await visibleUses(sql, key, audience);
    const flags = uses.map((use) => ({
      ...useResource(use),
      environment_name: use.environmentName,
      enabled: use.enabled,
    }));
    return answer.ok({ flags });
  });
}

/** Default number of entries of a page of the history. */
const defaultLimit = 20;

function registerAudienceReads(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.listAudiences, (_, { key }) =>
    answerAll(
      "audiences",
      async (last: ChangedAudience | undefined) => {
        const after = last?.audience.key ?? "";
        const page = await listAudiences(sql, key.projectId, { after, ...pageBounds });
        const keys = page.map((audience) => audience.key);
        const uses = await usesOf(sql, { ...usesScopeOf(key), keys });
        const items = page.map((audience) => ({ audience, uses: uses.get(audience.key) ?? [] }));
        return { items, more: items.length > 0 };
      },
      ({ audience, uses }) => audienceResource(audience, uses),
    ),
  );

  routes.read(contract.getAudience, async ({ params, request }, { key }) => {
    const audience = await findAudience(sql, { ...key, key: params.key });
    if (audience === undefined) return noSuchAudience;
    const resource = audienceResource(audience, await visibleUses(sql, key, audience));
    const etag = readTagOf(resource);
    const ifNoneMatch = request.headers["if-none-match"];
    if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) return answer.notModified(etag);
    return answer.ok(resource, { etag });
  });

  routes.read(contract.getAudienceHistory, async ({ params, query }, { key }) => {
    const audience = await findAudience(sql, { ...key, key: params.key });
    if (audience === undefined) return noSuchAudience;
    const { limit = defaultLimit, before = Number.MAX_SAFE_INTEGER } = query;
    const page = { before, limit, maxBytes: maxPageBytes };
    const { entries, more } = await listAudienceHistory(sql, audience, page);
    const last = entries.at(-1)?.version ?? null;
    return answer.ok({ history: entries.map(historyResource), next_before: more ? last : null });
  });
}

/** Registers the routes of the entries of lists. Responses never contain entries. */
export function registerListRoutes(
  routes: Routes,
  { sql, newId }: { sql: Sql; newId: () => string },
): void {
  const uploads = createUploads({ sql, newId });
  routes.receive(contract.replaceAudienceList, {
    begin: ({ key }) => uploads.begin(key.organizationId),
    receive: async (input, { key }, { runWrite, chargeEntries }) => {
      const request = changeRequestOf(key, input);
      const current = await findAudience(sql, request.scope);
      if (current === undefined) return noSuchAudience;
      // The same check as at the end, so that nothing is uploaded in vain.
      const problem = request.permit(current);
      if (problem !== undefined) return problem;
      const { attribute = "id" } = input.query;
      const bounds = {
        projectId: key.projectId,
        checkCount: (count: number) => checkListSize(sql, current, count),
        onBytes: chargeEntries,
      };
      const done = await uploads.receive(input, bounds, (uploaded) =>
        runWrite((change) => replaceList(change, request, { attribute, uploaded })),
      );
      return isProblem(done) ? done : answerChanged(done);
    },
  });

  routes.write(contract.changeAudienceList, {
    check: ({ body }) => checkEntryChange(body),
    run: (change, input) =>
      changeEntries(change, changeRequestOf(change.principal.key, input), input.body),
    answer: answerChanged,
  });

  routes.read(contract.lookUpAudienceMember, async ({ params, body }, { key }) => {
    const audience = await findAudience(sql, { ...key, key: params.key });
    if (audience === undefined) return noSuchAudience;
    const { list } = audience;
    if (list === null) return answer.ok({ member: false });
    const members = membersOf([body.member], Buffer.from(list.fingerprintKey, "hex"));
    return answer.ok({ member: await hasMember(sql, list.id, members) });
  });
}

const answerChanged = ({ audience, uses }: ChangedAudience) =>
  answer.ok(audienceResource(audience, uses), { etag: etagOf(audience) });

const pageBounds = { limit: 100, maxBytes: 1024 * 1024 };

/** An `environment_only` key sees only the uses in its environment. */
const usesScopeOf = ({ projectId, environmentId, environmentOnly }: DirectoryKey) => ({
  projectId,
  environmentId: environmentOnly ? environmentId : null,
});

async function visibleUses(
  sql: Sql,
  key: DirectoryKey,
  audience: Audience,
): Promise<AudienceUse[]> {
  const uses = await usesOf(sql, { ...usesScopeOf(key), keys: [audience.key] });
  return uses.get(audience.key) ?? [];
}

function changeRequestOf(
  key: DirectoryKey,
  { params, request }: { params: { key: string }; request: RequestFacts },
) {
  return {
    scope: { projectId: key.projectId, key: params.key },
    permit: (current: Audience) =>
      checkMayChange(key) ?? checkIfMatch(request.ifMatch, current, pathOf(current)),
  };
}

/** Rejects a change by an `environment_only` key, because every environment uses the audiences of a project. */
function checkMayChange(key: DirectoryKey): Problem | undefined {
  if (!key.environmentOnly) return undefined;
  return createProblem(
    "AUTH_002",
    "A key with environment_only may not change audiences, because they apply to every environment.",
  );
}
