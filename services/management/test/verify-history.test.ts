import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { isProblem } from "@halyard/service";
import { createTestDatabase, type TestDatabase } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { readContext, type TimeAndIds } from "../src/access/change-context.ts";
import * as changes from "../src/flags/flag-changes.ts";
import { endHistory } from "../src/history/history-store.ts";
import { describeBreak } from "../src/history/verification/chain.ts";
import { readNames } from "../src/history/verification/chain-store.ts";
import { verifyChains } from "../src/history/verification/verify-chains.ts";

/**
 * Tests `npm run verify-history` as a separate process, on a history that the service has written and that a
 * user with all rights to the database may have tampered with.
 */
const program = fileURLToPath(new URL("../src/verify-history.ts", import.meta.url));

let database: TestDatabase;
let runtime: Sql;
let admin: postgres.Sql;
let ids: { organizationId: string; projectId: string; userId: string; environmentId: string };

beforeEach(async () => {
  database = await createTestDatabase();
  runtime = connectPostgres({
    url: database.runtimeUrls.management,
    name: "test",
    maxConnections: 4,
    logger: pino({ level: "silent" }),
  });
  admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "management" } });
  ids = {
    organizationId: uuidv7(),
    projectId: uuidv7(),
    userId: uuidv7(),
    environmentId: uuidv7(),
  };
  await runtime`insert into organizations values (${ids.organizationId}, 'Acme', 'pro', 1, now(), now())`;
  await runtime`insert into users values (${ids.userId}, ${ids.organizationId}, 'ada@example.com', 'Ada', now())`;
  await runtime`insert into projects values (${ids.projectId}, ${ids.organizationId}, 'Web', now())`;
  await runtime`insert into environments values
    (${ids.environmentId}, ${ids.projectId}, 'production', now()),
    (${uuidv7()}, ${ids.projectId}, 'staging', now())`;
});
afterEach(async () => {
  await Promise.all([runtime.end(), admin.end()]);
  await database.drop();
});

type Verification = { code: number | null; stdout: string; stderr: string };

function verify(
  environment: Record<string, string> = { POSTGRES_URL: database.runtimeUrls.management },
  ...given: string[]
): Promise<Verification> {
  const child = spawn(process.execPath, [program, ...given], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (data: Buffer) => {
    output.stdout += data.toString();
  });
  child.stderr.on("data", (data: Buffer) => {
    output.stderr += data.toString();
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...output }));
  });
}

/** Runs the verification in this process. Returns the breaks that the program would print. */
async function reportedBreaks(): Promise<string[]> {
  const reported: string[] = [];
  await verifyChains(runtime, {
    broken: async (found) => {
      reported.push(describeBreak(found, await readNames(runtime, found.scope)));
    },
    progress: () => undefined,
  });
  return reported;
}

const clock: TimeAndIds = { now: () => new Date(), newId: uuidv7 };

async function committed<T extends object>(
  work: (write: changes.FlagWrite) => Promise<T | object>,
): Promise<T> {
  const author = { userId: ids.userId, apiKeyId: null };
  const done = await runtime.begin(async (tx) =>
    work({
      ...{ tx, publish: () => undefined, doNotAwait: () => undefined, ...clock },
      context: () => readContext(tx, { author, cause: "manual" }, clock),
    }),
  );
  if (isProblem(done as object)) throw new Error(JSON.stringify(done));
  return done as T;
}

const createFlag = (key = "checkout") =>
  committed<changes.FlagAndState>((write) =>
    changes.createFlag(write, ids, { key, name: "A flag", enabled: true }),
  );

const requestFor = (flagId: string) => ({ scope: { ...ids, flagId } });

const setRollout = (flagId: string, percentage: number) =>
  committed((write) =>
    changes.changeFlag(write, requestFor(flagId), { rollout_percentage: percentage }),
  );

/** Creates a flag with the rollout percentages 100, 1, 2, 3, 4 in production. Returns the ids of these entries. */
async function flagWithFiveEntries() {
  const { flag } = await createFlag();
  for (const percentage of [1, 2, 3, 4]) await setRollout(flag.id, percentage);
  const rows = await admin<{ id: string }[]>`
    select id from history
    where flag_id = ${flag.id} and environment_id = ${ids.environmentId} order by sequence`;
  return { flag, entries: rows.map((row) => row.id) };
}

/** Runs work with triggers disabled, which is necessary to write without extending the chain. */
async function tamper(work: (sql: postgres.TransactionSql) => Promise<unknown>): Promise<void> {
  await admin.begin(async (sql) => {
    await sql`set local session_replication_role = replica`;
    await work(sql);
  });
}

describe("given an intact history", () => {
  it("reports no break, even for deleted flags and in another time zone", async () => {
    await flagWithFiveEntries();
    const { flag } = await createFlag("deleted");
    await committed((write) => changes.removeFlag(write, requestFor(flag.id)));
    const name = new URL(database.adminUrl).pathname.slice(1);
    await admin`alter role management_service in database ${admin(name)} set timezone = 'Asia/Kolkata'`;
    expect(await verify()).toEqual({
      code: 0,
      stdout: "The history is intact: 8 entries, 2 states and 2 deletions checked.\n",
      stderr: "",
    });
  });

  it("reports no break during concurrent changes", async () => {
    const { flag } = await createFlag();
    const verification = verify();
    let ended = false;
    void verification.finally(() => {
      ended = true;
    });
    for (let change = 0; !ended; change += 1) await setRollout(flag.id, change % 100);
    expect(await verification).toMatchObject({ code: 0 });
  });

  it("reports no break in an empty history", async () => {
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: "The history is intact: 0 entries, 0 states and 0 deletions checked.\n",
    });
  });
});

/** A manipulation of five entries, and the expected report. */
type Tampering = {
  what: string;
  act: (sql: postgres.TransactionSql, entries: readonly string[]) => Promise<unknown>;
  found: (entries: readonly string[]) => RegExp;
};

/** Recomputes the hash of an entry from its current content. */
const rehash = (sql: postgres.TransactionSql, entryId: string) => sql`
  update history set hash = hash_of_history_entry(history) where id = ${entryId}`;

const tamperings: Tampering[] = [
  ...[
    "enabled = not enabled",
    "rollout_percentage = 50",
    "targeting_rules = '[{}]'",
    "changed_by = gen_random_uuid()",
    "changed_at = changed_at + interval '1 microsecond'",
    "change_type = 'scheduled'",
    "hash = sha256(hash)",
    "previous_hash = ''",
  ].map((setting) => ({
    what: `a changed entry (${setting})`,
    act: (sql: postgres.TransactionSql, entries: readonly string[]) =>
      sql.unsafe(`update history set ${setting} where id = '${entries[2]}'`),
    found: (entries: readonly string[]) => new RegExp(`Entry ${entries[2]} of .* was changed`),
  })),
  {
    what: "a changed entry with a matching hash",
    act: async (sql, [, , third = ""]) => {
      await sql`update history set enabled = false where id = ${third}`;
      await rehash(sql, third);
    },
    found: (entries) => new RegExp(`missing, or .* between ${entries[2]} .* and ${entries[3]} `),
  },
  {
    what: "a removed entry",
    act: (sql, entries) => sql`delete from history where id = ${entries[2] ?? null}`,
    found: (entries) => new RegExp(`missing, or .* between ${entries[1]} .* and ${entries[3]} `),
  },
  {
    what: "removed oldest entries",
    act: (sql, entries) => sql`delete from history where id in ${sql(entries.slice(0, 2))}`,
    found: (entries) => new RegExp(`The beginning is missing: .* ${entries[2]} of`),
  },
  {
    what: "removed newest entries",
    act: (sql, entries) => sql`delete from history where id in ${sql(entries.slice(3))}`,
    found: (entries) => new RegExp(`The newest entry, ${entries[2]} .* newer entries are missing`),
  },
  {
    what: "a state without any history",
    act: (sql, entries) => sql`delete from history where id in ${sql([...entries])}`,
    found: () => /The state has no history/,
  },
  {
    what: "a state that was changed without a history entry",
    act: (sql) => sql`update flag_states set enabled = not enabled where rollout_percentage = 4`,
    found: (entries) => new RegExp(`The newest entry, ${entries[4]} .* does not match the current`),
  },
  {
    what: "reordered entries",
    act: async (sql, entries) => {
      await sql`alter table history alter column sequence drop identity`;
      await sql`update history set sequence = -sequence where id in ${sql(entries.slice(1, 3))}`;
    },
    found: (entries) => new RegExp(`Entry ${entries[2]} of .* was changed`),
  },
];

describe("given a history that was tampered with", () => {
  it.each(tamperings)("finds $what", async ({ act, found }) => {
    const { flag, entries } = await flagWithFiveEntries();
    await createFlag("untouched");
    await tamper((sql) => act(sql, entries));
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(found(entries));
    expect(reported[0]).toContain(
      `Flag checkout (${flag.id}), environment production (${ids.environmentId}) of the project Web:`,
    );
  });

  it("prints the break and exits with status 1", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await tamper((sql) => sql`delete from history where id = ${entries[2] ?? null}`);
    const { code, stdout, stderr } = await verify();
    expect(stdout).toContain(`Flag checkout (${flag.id}), environment production`);
    expect(stdout).toMatch(
      /\nThe history is broken \(1\): 5 entries, 2 states and 0 deletions checked\.\n$/,
    );
    expect(stderr).toBe("");
    expect(code).toBe(1);
  });

  it("finds an inserted entry with matching hashes", async () => {
    const { flag } = await createFlag();
    await setRollout(flag.id, 1);
    // The entries of this flag leave a gap in the other flag's sequence numbers.
    await createFlag("between");
    await setRollout(flag.id, 2);
    await setRollout(flag.id, 3);
    const forged = uuidv7();
    await tamper(async (sql) => {
      await sql`
        insert into history (id, flag_id, environment_id, sequence, enabled, rollout_percentage,
          targeting_rules, change_type, changed_by, changed_at, previous_hash, hash)
        overriding system value
        select ${forged}, flag_id, environment_id, sequence + 1, enabled, 50, targeting_rules,
          change_type, changed_by, changed_at, hash, ''
        from history where flag_id = ${flag.id} and rollout_percentage = 1`;
      await rehash(sql, forged);
    });
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(new RegExp(`Entry ${forged} of .* was inserted afterwards`));
  });

  it("finds an entry that was appended with the service's role", async () => {
    const { flag } = await flagWithFiveEntries();
    await runtime`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      values (${uuidv7()}, ${flag.id}, ${ids.environmentId}, false, 4, '[]', 'manual', ${ids.userId},
        now())`;
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain("the entry was added or the state changed by hand");
  });

  it("reports one break per chain for a forged entry at the end", async () => {
    const { flag } = await flagWithFiveEntries();
    await tamper(
      (sql) => sql`
        insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
          targeting_rules, change_type, changed_by, changed_at, previous_hash, hash)
        values (${uuidv7()}, ${flag.id}, ${ids.environmentId}, false, 4, '[]', 'manual', ${ids.userId},
          now(), '', sha256('forged'))`,
    );
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain("was changed: its content does not match its hash");
  });

  it("finds an existing flag without a state in an environment, with or without a history", async () => {
    const { flag } = await flagWithFiveEntries();
    const other = await createFlag("other");
    await admin`delete from flag_states where flag_id = ${flag.id} and rollout_percentage = 4`;
    await admin`delete from flag_states where flag_id = ${other.flag.id}`;
    await admin`delete from history where flag_id = ${other.flag.id}`;
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(3);
    expect(reported.filter((each) => each.includes("The flag has no state here"))).toHaveLength(3);
    expect(reported.filter((each) => each.includes(`Flag checkout (${flag.id})`))).toHaveLength(1);
    expect(reported.filter((each) => each.includes(`Flag other (${other.flag.id})`))).toHaveLength(
      2,
    );
  });

  it("prints the first fifty breaks and the number of the others", async () => {
    const flags = await Promise.all(
      Array.from({ length: 30 }, (_, index) => createFlag(`flag-${index}`)),
    );
    expect(flags).toHaveLength(30);
    await admin`update flag_states set enabled = not enabled`;
    const { code, stdout } = await verify();
    expect(stdout.match(/^Flag /gm)).toHaveLength(50);
    expect(stdout).toMatch(
      /\nand 10 more\nThe history is broken \(60\): 60 entries, 60 states and 0 deletions checked\.\n$/,
    );
    expect(code).toBe(1);
  });

  it("finds the first break of each chain in a history of several pages", async () => {
    const { flag } = await createFlag();
    const other = await createFlag("other");
    await admin`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      select gen_random_uuid(), flag.id, ${ids.environmentId}, true, number % 100, '[]', 'manual',
        ${ids.userId}, now()
      from generate_series(1, 1300) as number, flags as flag`;
    await admin`
      update flag_states as state
      set rollout_percentage = entry.rollout_percentage, updated_at = entry.changed_at
      from history as entry
      where entry.sequence = (
          select max(sequence) from history as last
          where last.flag_id = state.flag_id and last.environment_id = state.environment_id
        )
        and entry.flag_id = state.flag_id and entry.environment_id = state.environment_id`;
    await admin`
      insert into changes (id, project_id, environment_id, flag_id, flag_key, action, cause,
        actor_id, actor_email, state_after, changed_at)
      select gen_random_uuid(), flag.project_id, state.environment_id, flag.id, flag.key, 'state',
        'manual', ${ids.userId}, 'ada@example.com', jsonb_build_object('enabled', state.enabled,
          'rollout_percentage', state.rollout_percentage, 'targeting_rules', state.targeting_rules),
        state.updated_at
      from flag_states as state join flags as flag on flag.id = state.flag_id
      where state.environment_id = ${ids.environmentId}`;
    expect(await reportedBreaks()).toEqual([]);

    const removed = await admin<{ flag_id: string }[]>`
      delete from history where (flag_id, sequence) in (
        select flag_id, sequence from (
          select flag_id, sequence,
            row_number() over (partition by flag_id, environment_id order by sequence) as position
          from history
        ) as numbered where position in (499, 500, 501, 998, 1200)
      ) returning flag_id`;
    expect(new Set(removed.map((row) => row.flag_id))).toEqual(new Set([flag.id, other.flag.id]));
    expect(await reportedBreaks()).toHaveLength(2);
  });
});

/** Removes the newest entries and sets the flag's state to the newest remaining entry. */
async function truncate(flagId: string, removed: readonly string[]): Promise<void> {
  await tamper(async (sql) => {
    await sql`delete from history where id in ${sql([...removed])}`;
    await putStateBack(sql, flagId);
  });
}

const putStateBack = (sql: postgres.TransactionSql, flagId: string) => sql`
  update flag_states as state
  set enabled = newest.enabled, rollout_percentage = newest.rollout_percentage,
    targeting_rules = newest.targeting_rules, updated_at = newest.changed_at
  from (
    select * from history where flag_id = ${flagId} and environment_id = ${ids.environmentId}
    order by sequence desc limit 1
  ) as newest
  where state.flag_id = newest.flag_id and state.environment_id = newest.environment_id`;

describe("given a state that was tampered with together with the history", () => {
  it.each([
    ["entries", 3],
    ["all entries but the first", 1],
  ])("finds the removal of the newest %s", async (_what, kept) => {
    const { flag, entries } = await flagWithFiveEntries();
    await truncate(flag.id, entries.slice(kept));
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(
      new RegExp(`The newest entry, ${entries[kept - 1]} .* is not the last change in the audit`),
    );
  });

  it("finds an added entry", async () => {
    const { flag } = await flagWithFiveEntries();
    const forged = uuidv7();
    await runtime`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      values (${forged}, ${flag.id}, ${ids.environmentId}, false, 4, '[]', 'manual', ${ids.userId},
        now())`;
    await tamper((sql) => putStateBack(sql, flag.id));
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(new RegExp(`${forged} .* is not the last change in the audit log`));
  });

  it("finds a changed entry with a matching hash", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await tamper(async (sql) => {
      await sql`update history set rollout_percentage = 90 where id = ${entries[4] ?? null}`;
      await rehash(sql, entries[4] ?? "");
      await putStateBack(sql, flag.id);
    });
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain("is not the last change in the audit log");
  });
});

describe("given a file of heads", () => {
  const folder = mkdtempSync(join(tmpdir(), "halyard-heads-"));
  const file = join(folder, "heads.jsonl");
  const run = (...given: string[]) =>
    verify({ POSTGRES_URL: database.runtimeUrls.management }, ...given);

  afterEach(() => rmSync(file, { force: true }));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function takeHeads(): Promise<void> {
    expect(await run("--anchor", file)).toMatchObject({ code: 0, stderr: "" });
  }

  it("writes the complete file, readable by its owner only, and no other file", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    const { code, stdout } = await run("--anchor", file);
    expect(code).toBe(0);
    expect(stdout).toContain(`Wrote 2 heads to ${file}.\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["heads.jsonl"]);
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const heads = lines.map((line) => JSON.parse(line));
    const [{ hash }] = await admin<[{ hash: string }]>`
      select encode(hash, 'hex') as hash from history where id = ${entries[4] ?? null}`;
    expect(heads).toHaveLength(3);
    expect(heads).toContainEqual({
      flag_id: flag.id,
      environment_id: ids.environmentId,
      entry_id: entries[4],
      changed_at: expect.stringMatching(/Z$/),
      position: 5,
      hash,
    });
    expect(heads.at(-1)).toEqual({ heads: 2 });
  });

  it("finds each head in the chain after more changes, and overwrites the file", async () => {
    const { flag } = await flagWithFiveEntries();
    await takeHeads();
    await setRollout(flag.id, 50);
    await createFlag("new");
    const { code, stdout } = await run("--against", file, "--anchor", file);
    expect(code).toBe(0);
    expect(stdout).toContain(`Compared with 2 heads of ${file}.\nWrote 4 heads to ${file}.\n`);
    expect(await run("--against", file)).toMatchObject({ code: 0 });
  });

  it("finds a chain that was rewritten together with the state and the audit log", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await takeHeads();
    await truncate(flag.id, entries.slice(3));
    await admin`
      delete from changes where flag_id = ${flag.id} and action = 'state'
        and (state_after ->> 'rollout_percentage')::integer > 2`;
    expect(await reportedBreaks()).toEqual([]);
    await setRollout(flag.id, 3);
    await setRollout(flag.id, 4);
    await setRollout(flag.id, 5);
    expect(await reportedBreaks()).toEqual([]);
    const { code, stdout } = await run("--against", file);
    expect(stdout).toMatch(new RegExp(`Entry ${entries[4]} of .* the file of heads, is missing`));
    expect(code).toBe(1);
  });

  it("finds a truncated chain, and a flag that was removed with all its records", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    const { flag: gone } = await createFlag("gone");
    await takeHeads();
    await truncate(flag.id, entries.slice(3));
    await admin`
      delete from changes where flag_id = ${flag.id} and action = 'state'
        and (state_after ->> 'rollout_percentage')::integer > 2`;
    await admin`delete from flags where id = ${gone.id}`;
    await admin`delete from history where flag_id = ${gone.id}`;
    await admin`delete from changes where flag_id = ${gone.id}`;
    const { code, stdout } = await run("--against", file);
    expect(stdout.match(/the file of heads, is missing/g)).toHaveLength(3);
    expect(stdout).toContain("The history is broken (3)");
    expect(code).toBe(1);
  });

  it("accepts the deletion of a flag", async () => {
    const { flag } = await flagWithFiveEntries();
    await takeHeads();
    await committed((write) => changes.removeFlag(write, requestFor(flag.id)));
    expect(await run("--against", file)).toMatchObject({ code: 0 });
  });

  it("rejects a forged record of removals for recent entries", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await truncate(flag.id, []);
    await takeHeads();
    await setRollout(flag.id, 60);
    await tamper(async (sql) => {
      await sql`
        insert into removed_history (flag_id, environment_id, hash, entries)
        select flag_id, environment_id, sha256('forged'), 7 from history where id = ${entries[0] ?? null}`;
      await sql`delete from history where id in ${sql([...entries])}`;
      await sql`
        update history set previous_hash = sha256('forged')
        where flag_id = ${flag.id} and rollout_percentage = 60`;
      await sql`
        update history set hash = hash_of_history_entry(history)
        where flag_id = ${flag.id} and rollout_percentage = 60`;
    });
    expect(await reportedBreaks()).toEqual([]);
    expect(await run("--against", file)).toMatchObject({ code: 1 });
  });

  it("writes no file for a broken history", async () => {
    const { entries } = await flagWithFiveEntries();
    await tamper((sql) => sql`delete from history where id = ${entries[2] ?? null}`);
    expect(await run("--anchor", file)).toMatchObject({ code: 1 });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("exits with status 2 if the file is truncated", async () => {
    await flagWithFiveEntries();
    await takeHeads();
    const [first] = readFileSync(file, "utf8").split("\n");
    writeFileSync(file, `${first}\n`);
    const { code, stderr } = await run("--against", file);
    expect(stderr).toContain(`The history could not be checked: ${file} is cut off after line 1.`);
    expect(code).toBe(2);
  });
});

describe("given flags that were deleted with their project", () => {
  /** Ends the chains of a flag as the deletion of a project does. */
  async function endChainsOf(flagId: string): Promise<void> {
    await runtime.begin(async (tx) => {
      const scopes = await tx<{ flagId: string; environmentId: string }[]>`
        select flag_id as "flagId", environment_id as "environmentId"
        from flag_states where flag_id = ${flagId}`;
      await endHistory(tx, scopes);
      await tx`delete from flags where id = ${flagId}`;
    });
  }

  it("reports no break up to the recorded ends", async () => {
    const { flag } = await flagWithFiveEntries();
    await endChainsOf(flag.id);
    expect(await verify()).toEqual({
      code: 0,
      stdout: "The history is intact: 6 entries, 0 states and 2 deletions checked.\n",
      stderr: "",
    });
  });

  it("finds removed and added entries", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    const { flag: other } = await createFlag("other");
    await endChainsOf(flag.id);
    await endChainsOf(other.id);
    await tamper(async (sql) => {
      await sql`delete from history where id = ${entries[4] ?? null}`;
      await sql`
        delete from history
        where flag_id = ${other.id} and environment_id = ${ids.environmentId}`;
    });
    await runtime`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      select ${uuidv7()}, flag_id, environment_id, true, 4, '[]', 'manual', changed_by, now()
      from history where flag_id = ${other.id}`;
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(3);
    expect(reported.join()).toContain("is not the one that was recorded when the project");
    expect(reported.join()).toContain("all its entries are missing");
  });

  it("finds a recorded end for an existing flag", async () => {
    const { flag } = await flagWithFiveEntries();
    const environmentId = ids.environmentId;
    await runtime.begin((tx) => endHistory(tx, [{ flagId: flag.id, environmentId }]));
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain("but the flag has a state here");
  });
});

describe("given a flag that was deleted", () => {
  /** Deletes a flag with the rollout percentages 100, 1, 2, 3, 2, 3 in production. The last two repeat earlier ones. */
  async function deletedFlag() {
    const { flag } = await createFlag("bygone");
    for (const percentage of [1, 2, 3, 2, 3]) await setRollout(flag.id, percentage);
    await committed((write) => changes.removeFlag(write, requestFor(flag.id)));
    const rows = await admin<{ id: string }[]>`
      select id from history
      where flag_id = ${flag.id} and environment_id = ${ids.environmentId} order by sequence`;
    return { flag, entries: rows.map((row) => row.id) };
  }

  it.each([
    ["its last entry", 5],
    ["the last entries, so that the newest remaining one has the same content", 4],
    ["all entries but the first", 1],
  ])("finds the removal of %s", async (_what, kept) => {
    const { flag, entries } = await deletedFlag();
    await tamper((sql) => sql`delete from history where id in ${sql(entries.slice(kept))}`);
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain(`Flag bygone (${flag.id}), environment production`);
    expect(reported[0]).toMatch(
      new RegExp(`The newest entry, ${entries[kept - 1]} .* does not match the state that the`),
    );
  });

  it("finds the removal of its history", async () => {
    const { flag } = await deletedFlag();
    await tamper((sql) => sql`delete from history where flag_id = ${flag.id}`);
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(2);
    for (const each of reported) expect(each).toContain("all its entries are missing");
  });

  it("finds an added entry in an environment where the state never changed", async () => {
    const { flag } = await deletedFlag();
    await admin`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      select gen_random_uuid(), flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at
      from history where flag_id = ${flag.id} and environment_id <> ${ids.environmentId}`;
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(1);
    expect(reported[0]).toContain("environment staging");
    expect(reported[0]).toContain("or the entry was added by hand");
  });

  it("finds that the service did not delete it", async () => {
    const { flag } = await flagWithFiveEntries();
    await admin`delete from flags where id = ${flag.id}`;
    const reported = await reportedBreaks();
    expect(reported).toHaveLength(2);
    for (const each of reported)
      expect(each).toContain("the audit log does not record its deletion");
  });
});

describe("given a role whose search path lacks the schema", () => {
  it("reads the history nevertheless", async () => {
    await flagWithFiveEntries();
    expect(await verify({ POSTGRES_URL: database.adminUrl })).toEqual({
      code: 0,
      stdout: "The history is intact: 6 entries, 2 states and 0 deletions checked.\n",
      stderr: "",
    });
  });
});

describe("given invalid settings", () => {
  it("prints what to set", async () => {
    const { code, stderr } = await verify({});
    expect(stderr).toContain("POSTGRES_URL is not set: it must be an address");
    expect(code).toBe(2);
  });

  it("does not report an unavailable database as a broken history, and prints no password", async () => {
    const { code, stdout, stderr } = await verify({
      POSTGRES_URL: "postgres://someone:a-password@127.0.0.1:1/halyard",
    });
    expect(stderr).toContain("The history could not be checked");
    expect(stdout + stderr).not.toContain("a-password");
    expect(code).toBe(2);
  });

  it("rejects an unknown option", async () => {
    const { code, stderr } = await verify({}, "--fast");
    expect(stderr).toContain("--fast is not known; see --help");
    expect(code).toBe(2);
  });

  it("prints its usage", async () => {
    const { code, stdout } = await verify({}, "--help");
    expect(stdout).toContain("npm run verify-history");
    expect(stdout).toContain("POSTGRES_URL");
    expect(code).toBe(0);
  });
});
