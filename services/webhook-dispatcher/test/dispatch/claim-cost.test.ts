import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, recordedStatements } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { claimStatement, findLanes, settleStatement } from "../../src/dispatch/claim-store.ts";

/** The cost of searching and claiming with 100,000 open deliveries. It must not depend on the backlog. */
const webhookIds = Array.from({ length: 2_000 }, () => uuidv7());
const [backlogged = "", ...others] = webhookIds;
const organizationId = uuidv7();

const database = await createTestDatabase();
const logger = pino({ level: "silent" });
const url = database.runtimeUrls.webhooks;
const sql = connectPostgres({ url, name: "test", maxConnections: 2, logger });
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "webhooks" } });
await admin`
  insert into webhooks (id, organization_id, project_id, name, url, events, enabled, created_at,
    updated_at)
  select id, ${organizationId}, gen_random_uuid(), 'Webhook', 'http://localhost/', '{}', true,
    now(), now()
  from unnest(${webhookIds}::uuid[]) as made (id)`;
await admin`
  insert into lanes (webhook_id, organization_id, slow, due_at)
  select id, ${organizationId}, random() < 0.1, now() from webhooks`;
// Half of the deliveries are for one webhook, the others for all other webhooks.
await admin`
  insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
    status, created_at, next_attempt_at)
  select gen_random_uuid(),
    case when number % 2 = 0 then ${backlogged}::uuid
      else (${others}::uuid[])[1 + number % ${others.length}] end,
    ${organizationId}, ${organizationId}, gen_random_uuid(), 'flag.toggled', '{}', 'pending', now(),
    now() - number * interval '1 ms'
  from generate_series(1, 100000) as number`;
await admin`analyze webhooks, lanes, deliveries`;
await admin.end();

type Node = {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  /** With `analyze` only: rows of each of the loops. */
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Rows Removed by Filter"?: number;
  Plans?: Node[];
};
type Statement = (sql: Sql) => unknown;

/** Returns the nodes in the plan of a statement, which `analyze` also runs. */
async function planOf(statement: Statement, option = ""): Promise<Node[]> {
  const [recorded] = await recordedStatements(statement);
  const [row] = await sql.unprepared<[{ "QUERY PLAN": [{ Plan: Node }] }]>(
    `explain (format json ${option && `, ${option}`}) ${recorded?.text}`,
    recorded?.values,
  );
  const all = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(all)];
  return all(row["QUERY PLAN"][0].Plan);
}

const isScan = (node: Node) => node["Index Name"] !== undefined || node["Node Type"] === "Seq Scan";

const rowsOf = (node: Node) =>
  ((node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) *
  (node["Actual Loops"] ?? 0);

/** Returns the scans of tables and indexes in the plan of a statement. */
async function readsOf(statement: Statement): Promise<string[]> {
  return (await planOf(statement))
    .filter(isScan)
    .map((node) => `${node["Node Type"]}: ${node["Index Name"] ?? node["Relation Name"]}`);
}

/**
 * Returns whether a scan is allowed. An index scan reads only as many rows as the limit says. A bitmap scan reads all
 * due rows: this is acceptable for lanes, but for deliveries it is the whole backlog.
 */
const mayRead = (read: string) =>
  !read.startsWith("Seq Scan") && read !== "Bitmap Index Scan: deliveries_due";

const search = { slow: false, limit: 512, exceptWebhooks: [], exceptOrganizations: [] };
const statements: Record<string, Statement> = {
  "finding lanes": (on) => findLanes(on, search, 1_000),
  "finding lanes with many exclusions": (on) =>
    findLanes(on, { ...search, slow: true, exceptWebhooks: webhookIds.slice(0, 200) }, 1_000),
  "claiming for the webhook with the backlog": (on) =>
    claimStatement(on, { webhookIds: [backlogged], atMost: 16, claim: uuidv7() }),
  "claiming for many": (on) =>
    claimStatement(on, { webhookIds: webhookIds.slice(0, 192), atMost: 1, claim: uuidv7() }),
  "settling lanes": (on) => settleStatement(on, webhookIds.slice(0, 192)),
};

describe("while 100,000 deliveries wait", () => {
  it.each(Object.keys(statements))("%s reads parts of indexes only", async (name) => {
    const statement = statements[name];
    if (statement === undefined) throw new Error(`Unknown statement: ${name}`);
    const reads = await readsOf(statement);
    expect(reads.length).toBeGreaterThan(0);
    expect(reads.filter((read) => !mayRead(read))).toEqual([]);
  });

  it("no scan of a claim visits more rows than it claims, also after earlier claims", async () => {
    for (let count = 0; count < 20; count += 1) {
      const claim = { webhookIds: [backlogged], atMost: 16, claim: uuidv7() };
      const plan = await planOf((on) => claimStatement(on, claim), "analyze");
      expect(Math.max(...plan.filter(isScan).map(rowsOf))).toBe(16);
    }
  });
});
