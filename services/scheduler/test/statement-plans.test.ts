import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, scansOf } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import {
  claimDue,
  msUntilNextDue,
  overdueSeconds,
  settle,
} from "../src/dispatch/dispatch-store.ts";
import { endSchedules, findLatest, listSchedules } from "../src/schedules/schedule-store.ts";

/** The query plans with 50,000 pending schedules of 100 projects. With few rows, PostgreSQL rightly reads whole tables. */
const sent = { id: uuidv7(), scheduleId: uuidv7(), flagId: uuidv7(), environmentId: uuidv7() };
const projectId = uuidv7();
const nilId = "00000000-0000-0000-0000-000000000000";

const database = await createTestDatabase();
const logger = pino({ level: "silent" });
const url = database.runtimeUrls.scheduler;
const sql = connectPostgres({ url, name: "test", maxConnections: 1, logger });
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "scheduler" } });
await admin`
  insert into schedules (id, organization_id, project_id, environment_id, flag_id, enable_at, status,
    latest, created_at, created_by)
  select case number when 0 then ${sent.scheduleId} else uuidv7() end, ${projectId},
    case number % 100 when 0 then ${projectId} else md5('project ' || number % 100)::uuid end,
    case number when 0 then ${sent.environmentId} else md5('environment ' || number % 100)::uuid end,
    case number when 0 then ${sent.flagId} else uuidv7() end,
    now() + (number - 400) * interval '1 minute', 'pending', true, now(), ${projectId}
  from generate_series(0, 49999) as number`;
await admin`
  insert into scheduled_changes (id, schedule_id, flag_id, environment_id, action, due_at, state)
  select case id when ${sent.scheduleId} then ${sent.id} else uuidv7() end, id, flag_id,
    environment_id, 'enable', enable_at, case id when ${sent.scheduleId} then 'sent' else 'armed' end
  from schedules`;
await admin`vacuum analyze schedules, scheduled_changes`;
await admin.end();

const page = { status: undefined, flagId: undefined, environmentId: undefined };
const wholeList = { ...page, projectId, beforeId: undefined, limit: 101 };

type Case = { name: string; run: (sql: Sql) => Promise<unknown>; indexes: readonly string[] };
const cases: readonly Case[] = [
  {
    name: "claiming due changes",
    run: (on) => claimDue(on, 200),
    indexes: ["scheduled_changes_due"],
  },
  { name: "the next due time", run: msUntilNextDue, indexes: ["scheduled_changes_due"] },
  {
    name: "the longest overdue change",
    run: overdueSeconds,
    indexes: ["scheduled_changes_overdue"],
  },
  {
    name: "recording an outcome",
    run: (on) =>
      settle(on, [
        {
          ...{ id: sent.id, schedule_id: sent.scheduleId, outcome: "applied", reason: null },
          applied_at: new Date().toISOString(),
        },
      ]),
    indexes: ["scheduled_changes_of_schedule"],
  },
  {
    name: "ending a schedule",
    run: (on) => endSchedules(on, [sent.scheduleId]),
    indexes: ["schedules_pkey"],
  },
  {
    name: "the schedule of a flag",
    run: (on) => findLatest(on, sent),
    indexes: ["schedules_latest"],
  },
  {
    name: "a project's pending schedules",
    run: (on) => listSchedules(on, { ...wholeList, status: "pending" }),
    indexes: ["schedules_by_status", "schedules_newest_first"],
  },
  {
    name: "the schedules of an environment that has none",
    run: (on) => listSchedules(on, { ...wholeList, environmentId: nilId }),
    indexes: ["schedules_of_environment"],
  },
];

describe("while 50,000 schedules are pending", () => {
  it.each(cases)("$name reads parts of indexes only", async ({ run, indexes }) => {
    const scans = await scansOf(sql, run);
    expect(scans.filter((scan) => scan.startsWith("Seq Scan"))).toEqual([]);
    expect(scans.some((scan) => indexes.some((index) => scan.endsWith(`: ${index}`)))).toBe(true);
  });
});
