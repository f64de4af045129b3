import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, recordedStatements } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { countMessages, markCounted } from "../src/counting/count-messages.ts";
import { sumUp } from "../src/counting/decide-sums.ts";
import { upsertRows } from "../src/counting/sum-tables.ts";
import { makeEdge, makeTenant } from "./usage-fixture.ts";

/**
 * The cost of counting a message after years of use is the same as on the first day. The test counts the blocks that a
 * statement touches, because they do not depend on the load of the machine.
 */

const tenant = makeTenant();
const edge = makeEdge();
const at = new Date().toISOString();
const flags = Array.from({ length: 5 }, () => ({
  flag_id: uuidv7(),
  evaluations: 1,
  evaluated_at: at,
}));
const message = () =>
  edge.message(
    [
      tenant.used({
        requests: { flags: 1, evaluate: 1, stream: 1 },
        bulk_answers: 1,
        bulk_answered_at: at,
        flags,
      }),
    ],
    [{ key_id: tenant.clientKeyId, used_at: at }],
  );

const database = await createTestDatabase();
const logger = pino({ level: "silent" });
const sql = connectPostgres({
  url: database.runtimeUrls.usage,
  name: "test",
  maxConnections: 2,
  logger,
});
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "usage" } });
afterAll(async () => {
  await Promise.all([sql.end(), admin.end()]);
  await database.drop();
});

type Plan = {
  "Node Type": string;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: Plan[];
};

function statementsOf(): Record<string, (sql: Sql) => unknown> {
  const sent = message();
  const { rows } = sumUp([sent], Date.now());
  return {
    "marking it as counted": (on) => markCounted(on, [sent]),
    ...Object.fromEntries(
      [...rows].map(([table, some]) => [table.name, (on: Sql) => upsertRows(on, table, some)]),
    ),
  };
}

/** Returns the number of blocks that each statement touches, and its sequential scans. */
async function costs(): Promise<Record<string, { blocks: number; scans: string[] }>> {
  const found: Record<string, { blocks: number; scans: string[] }> = {};
  for (const [name, work] of Object.entries(statementsOf())) {
    const [statement] = await recordedStatements(work);
    const [row] = await sql.unprepared<[{ "QUERY PLAN": [{ Plan: Plan }] }]>(
      `explain (analyze, buffers, timing off, format json) ${statement?.text}`,
      statement?.values,
    );
    const { Plan: plan } = row["QUERY PLAN"][0];
    const nodes = (node: Plan): Plan[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
    found[name] = {
      blocks: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
      scans: nodes(plan)
        .map((node) => node["Node Type"])
        .filter((type) => type === "Seq Scan"),
    };
  }
  return found;
}

/** Inserts two years of a large organization and of many others, with 100,000 flags. */
async function fill(): Promise<void> {
  const { organizationId, projectId, environmentId } = tenant;
  await admin`
    insert into request_hours
    select ${organizationId}, ${projectId}, ${environmentId}, endpoint,
      date_trunc('hour', now(), 'UTC') - number * interval '1 hour', 1
    from generate_series(1, 20000) as number,
      unnest(array['flags', 'evaluate', 'stream']) as endpoint`;
  await admin`
    insert into organization_months
    select date_trunc('month', now())::date - (number || ' months')::interval, organization, 1
    from generate_series(1, 24) as number,
      (select gen_random_uuid() as organization from generate_series(1, 2000)
        union all select ${organizationId}) as organizations`;
  await admin`
    insert into bulk_answer_hours
    select ${environmentId}, date_trunc('hour', now(), 'UTC') - number * interval '1 hour', 1
    from generate_series(1, 20000) as number`;
  await admin`
    insert into flag_hours
    select gen_random_uuid(), ${environmentId}, date_trunc('hour', now(), 'UTC'), 1
    from generate_series(1, 100000)`;
  await admin`
    insert into flags_last_seen
    select flag_id, environment_id, now(), 'none' from flag_hours
    on conflict do nothing`;
  await admin`
    insert into environments_last_seen
    select gen_random_uuid(), now(), 'none' from generate_series(1, 5000)`;
  await admin`
    insert into keys_last_seen
    select 'key-' || number, now(), 'none' from generate_series(1, 20000) as number`;
  await admin`
    insert into edges
    select gen_random_uuid(), '{[1,1000000)}', now() from generate_series(1, 20000)`;
  await admin`
    analyze request_hours, organization_months, bulk_answer_hours, flag_hours, flags_last_seen,
      environments_last_seen, keys_last_seen, edges`;
}

describe("counting a message", () => {
  it("costs as much with 100,000 flags, two years and 20,000 edges as with empty tables", async () => {
    await countMessages(sql, [message()]);
    const before = await costs();
    await fill();
    // The first access after the insertion writes to the inserted rows, so it is not measured.
    await costs();
    const after = await costs();
    for (const [name, { blocks, scans }] of Object.entries(after)) {
      expect({ name, scans }).toEqual({ name, scans: [] });
      // A larger index has one or two more levels for each row.
      expect({ name, few: blocks <= 2 * (before[name]?.blocks ?? 0) + 10 }).toEqual({
        name,
        few: true,
      });
      expect(blocks).toBeLessThan(100);
    }
  });
});
