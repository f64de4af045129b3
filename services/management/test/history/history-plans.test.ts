import { randomUUID } from "node:crypto";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { connectAsSuperuser, createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { findAuditSequence, listChanges } from "../../src/audit/audit-store.ts";
import { findSequence, listHistory, readNewestEntries } from "../../src/history/history-store.ts";
import { readNewest, readPageAfter } from "../../src/publishing/feed-store.ts";
import { visitedRows } from "../visited-rows.ts";

/** Tests the plans of the statements over the history and the audit log when most rows do not match. */
const others = 20_000;
/** Enough rows for the planner's estimate, which treats the columns of a scope as independent. */
const entries = 1_000;
const limit = 10;

const ids = {
  flagId: randomUUID(),
  environmentId: randomUUID(),
  projectId: randomUUID(),
  organizationId: randomUUID(),
  entryId: randomUUID(),
  changeId: randomUUID(),
};
const { flagId, environmentId, projectId, organizationId } = ids;

const database = await createTestDatabase();
const url = database.runtimeUrls.management;
const sql = connectPostgres({
  url,
  name: "test",
  maxConnections: 1,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const admin = connectAsSuperuser(database.adminUrl, "management");
// First entries of other flags and environments of the project, then entries of the flag itself.
for (const [count, flag, environment] of [
  [others, null, null],
  [entries, flagId, environmentId],
] as const) {
  await admin`
    insert into history (id, flag_id, environment_id, content, change_type, changed_by,
      changed_at)
    select gen_random_uuid(), coalesce(${flag}::uuid, gen_random_uuid()),
      coalesce(${environment}::uuid, gen_random_uuid()),
      '{"enabled": true, "rollout_percentage": 0, "targeting_rules": []}', 'manual',
      gen_random_uuid(), now()
    from generate_series(1, ${count})`;
  await admin`
    insert into changes (id, project_id, environment_id, flag_id, flag_key, action, cause, actor_id,
      actor_email, changed_at)
    select gen_random_uuid(), ${projectId}, coalesce(${environment}::uuid, gen_random_uuid()),
      coalesce(${flag}::uuid, gen_random_uuid()), 'a-flag', 'state', 'manual',
      gen_random_uuid(), 'ada@example.com', now()
    from generate_series(1, ${count})`;
}
await admin`analyze history, changes`;
await admin.end();

type Work = (sql: Sql) => Promise<unknown>;

const scope = { flagId, environmentId };
const page = { beforeSequence: null, limit };
const feed = { projectId, organizationId, environmentId };

const ofHistory: [string, Work][] = [
  ["a page", (tx) => listHistory(tx, scope, page)],
  [
    "an older page",
    (tx) => listHistory(tx, scope, { beforeSequence: others + entries / 2, limit }),
  ],
  ["the newest entries", (tx) => readNewestEntries(tx as never, scope, limit)],
  ["the position of an entry", (tx) => findSequence(tx, scope, ids.entryId)],
];

const ofChanges: [string, Work][] = [
  ["a page", (tx) => listChanges(tx, { projectId, organizationId }, page)],
  ["a page of a flag", (tx) => listChanges(tx, { projectId, organizationId, flagId }, page)],
  [
    "a page of an environment",
    (tx) => listChanges(tx, { projectId, organizationId, environmentId }, page),
  ],
  ["the newest entry of an environment's stream", (tx) => readNewest(tx, [feed])],
  [
    "the next entries of an environment's stream",
    (tx) => readPageAfter(tx, feed, { after: 0, upTo: others + limit }),
  ],
  ["the position of an audit entry", (tx) => findAuditSequence(tx, ids, ids.changeId)],
];

describe.each([
  { table: "history", statements: ofHistory },
  { table: "changes", statements: ofChanges },
])("a read of $table", ({ table, statements }) => {
  it.each(statements)("visits few rows for %s", async (_what, work) => {
    const { visited } = await visitedRows(sql, table, async (tx) => work(tx as unknown as Sql));
    expect(visited).toBeLessThanOrEqual(limit + 1);
  });
});
