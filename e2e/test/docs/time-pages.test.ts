import { readFileSync } from "node:fs";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { followPage } from "../../src/follow-page.ts";
import { blocksOf, sectionOf } from "../../src/page-blocks.ts";
import { demoOf, openPageShell, type PageShell } from "../../src/page-shell.ts";
import { type System, startSystem } from "../../src/system.ts";
import { createTenant } from "../../src/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const idOf = (number: number) => `00000000-0000-7000-8000-00000000000${number}`;
const [flag, environment, window, somebody] = [idOf(1), idOf(2), idOf(3), idOf(4)];

const inReadme = sectionOf(pageOf("README.md"), "Schedule it, and take it back");
const scheduling = pageOf("docs/scheduling.md");

/** What is followed, by what is said of it, and how many blocks of commands that are at least. */
const followings = [
  { says: "docs/scheduling.md works when it is followed", text: scheduling, blocks: 6 },
  { says: "docs/history.md works when it is followed", text: pageOf("docs/history.md"), blocks: 6 },
  { says: "so does their summary in the README", text: inReadme, blocks: 2 },
  { says: "the README's commands can be pasted twice", text: inReadme + inReadme, blocks: 4 },
  {
    says: "those of docs/scheduling.md can, too",
    text: sectionOf(scheduling, "Set a schedule") + scheduling,
    blocks: 9,
  },
];

/** What the pages about schedules and the history say is what happens. */
describe("given a running system with a scheduler", () => {
  let system: System;
  let gatewayUrl: string;
  let outcomes: ReadonlyMap<string, PromiseSettledResult<number>>;
  const shells: PageShell[] = [];

  /** All are followed side by side: most of it is waiting, as pages say, for what comes due. */
  beforeAll(async () => {
    system = await startSystem({ managements: 1, schedulers: 1, edges: 1 });
    gatewayUrl = (await system.startGateway()).url;
    const settled = await Promise.allSettled(followings.map(follow));
    outcomes = new Map(settled.map((outcome, index) => [followings[index]?.says ?? "", outcome]));
  });
  afterAll(async () => {
    for (const shell of shells) shell.close();
    await system?.close();
  });

  /** In a tenant of its own. */
  async function follow({ says, text }: (typeof followings)[number]): Promise<number> {
    const tenant = await createTenant(gatewayUrl, { name: says });
    const shell = openPageShell(demoOf(tenant, gatewayUrl));
    shells.push(shell);
    await shell.run(`SERVER_KEY=${tenant.serverKey}`);
    return followPage(shell, text);
  }

  it.each(followings)("$says", ({ says, blocks }) => {
    const outcome = outcomes.get(says);
    if (outcome?.status === "rejected") throw outcome.reason;
    expect(outcome?.value).toBeGreaterThanOrEqual(blocks);
  });
});

describe("given a restored database in which a window has come due", () => {
  const statementsOf = (section: string) =>
    blocksOf(sectionOf(pageOf("docs/operations.md"), section)).flatMap(({ kind, text }) =>
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
      values (${window}, ${somebody}, ${somebody}, ${environment},
        ${flag}, 'pending', true, now(), ${somebody})`;
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

  it("docs/operations.md has statements that find it", async () => {
    const [overdue = ""] = statementsOf("What to watch");
    expect(await sql.unsafe(overdue)).toMatchObject([{ overdue: "1" }]);
    const [failed = ""] = statementsOf("Schedulers");
    expect(await sql.unsafe(failed)).toHaveLength(0);
  });

  it("and statements that show and cancel it", async () => {
    const [show = "", cancel = ""] = statementsOf("When PostgreSQL was restored from a backup");
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
