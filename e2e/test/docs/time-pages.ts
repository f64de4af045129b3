import { readFileSync } from "node:fs";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, sectionOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import { must, type Tenant } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const idOf = (number: number) => `00000000-0000-7000-8000-00000000000${number}`;
const [flag, environment, window, other] = [idOf(1), idOf(2), idOf(3), idOf(4)];

/** The pages, with the minimum number of their command blocks. */
const pages = [
  { name: "docs/scheduling.md", blocks: 6 },
  { name: "docs/history.md", blocks: 6 },
];

/** Tests that schedules and the history work as their pages describe. */
export function describeTime(given: () => PageSystem): void {
  let outcomes: ReadonlyMap<string, PromiseSettledResult<number>>;
  const tenants = new Map<string, Tenant>();

  /** Follows all pages concurrently, because most of the time they wait for scheduled changes. */
  beforeAll(async () => {
    const settled = await Promise.allSettled(pages.map(follow));
    outcomes = new Map(settled.map((outcome, index) => [pages[index]?.name ?? "", outcome]));
  });

  async function follow({ name }: (typeof pages)[number]): Promise<number> {
    const tenant = await given().createTenant(name);
    tenants.set(name, tenant);
    return followPage(given().openShell(tenant), pageOf(name));
  }

  it.each(pages)("$name works when followed twice", ({ name, blocks }) => {
    const outcome = outcomes.get(name);
    if (outcome?.status === "rejected") throw outcome.reason;
    expect(outcome?.value).toBeGreaterThanOrEqual(blocks);
  });

  it("docs/scheduling.md leaves no pending schedule in the reader's project", async () => {
    const key = tenants.get("docs/scheduling.md")?.serverKey ?? "";
    const pending = `${given().gatewayUrl}/api/v1/schedules?status=pending`;
    expect(await must(pending, { key })).toMatchObject({ schedules: [] });
  });

  describe("given a restored database with an overdue window", () => {
    const statementsOf = (section: string) =>
      blocksOf(sectionOf(pageOf("docs/runbooks.md"), section)).flatMap(({ kind, text }) =>
        kind === "sql" ? [text] : [],
      );
    let database: Awaited<ReturnType<typeof createTestDatabase>>;
    let sql: postgres.Sql;

    beforeAll(async () => {
      database = await createTestDatabase();
      sql = postgres(database.adminUrl, { max: 1 });
      await sql`
      insert into scheduler.schedules (id, organization_id, project_id, environment_id, flag_id,
        status, latest, created_at, created_by)
      values (${window}, ${other}, ${other}, ${environment},
        ${flag}, 'pending', true, now(), ${other})`;
      await sql`
      insert into scheduler.scheduled_changes (id, schedule_id, flag_id, environment_id, action,
        due_at, state)
      values
        (${idOf(5)}, ${window}, ${flag}, ${environment}, 'enable',
          now() - interval '1 hour', 'armed'),
        (${idOf(6)}, ${window}, ${flag}, ${environment}, 'disable',
          now() + interval '1 hour', 'waiting')`;
    });
    afterAll(async () => {
      await sql?.end();
      await database?.drop();
    });

    it("docs/runbooks.md has queries for overdue and failed changes", async () => {
      const [overdue = "", failed = ""] = statementsOf("Schedules are late or fail");
      expect(await sql.unsafe(overdue)).toMatchObject([{ overdue: "1" }]);
      expect(await sql.unsafe(failed)).toHaveLength(0);
    });

    it("docs/runbooks.md has statements that list and cancel due changes", async () => {
      const [show = "", cancel = ""] = statementsOf("Database restored from a backup");
      expect(await sql.unsafe(show)).toMatchObject([{ action: "enable" }]);
      await sql.unsafe(cancel);
      expect(await sql.unsafe(show)).toHaveLength(0);
      expect(await sql`select status from scheduler.schedules`).toMatchObject([
        { status: "cancelled" },
      ]);
      expect(await sql`select distinct state from scheduler.scheduled_changes`).toMatchObject([
        { state: "cancelled" },
      ]);
    });
  });
}
