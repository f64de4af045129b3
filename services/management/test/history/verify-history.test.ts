import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isProblem } from "@halyard/http";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, type TestDatabase } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { readContext, type TimeAndIds } from "../../src/access/change-context.ts";
import * as changes from "../../src/flags/flag-changes.ts";
import { findBreaks } from "../../src/history/verification.ts";

/**
 * Tests `npm run verify-history` as a separate process, on a history that the service has written and that a
 * user with all rights to the database may have tampered with.
 */
const program = fileURLToPath(new URL("../../src/verify-history.ts", import.meta.url));

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

/** Runs the verification in this process. Returns the ids of the entries that break a chain, with the problems. */
async function foundBreaks(): Promise<[string, string][]> {
  const { breaks, first } = await findBreaks(runtime);
  expect(breaks).toBe(first.length);
  return first.map(({ entryId, problem }) => [entryId, problem]);
}

const clock: TimeAndIds = { now: () => new Date(), newId: uuidv7 };

async function committed<T extends object>(
  work: (write: changes.FlagWrite) => Promise<T | object>,
): Promise<T> {
  const author = { userId: ids.userId, apiKeyId: null, via: "schedule" as const };
  const done = await runtime.begin(async (tx) =>
    work({
      ...{
        tx,
        publish: () => undefined,
        countMessages: () => undefined,
        doNotAwait: () => undefined,
        ...clock,
      },
      beforeCommit: () => undefined,
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
      stdout: "The history is intact: 8 entries checked.\n",
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
      stdout: "The history is intact: 0 entries checked.\n",
    });
  });
});

/** A manipulation of five entries, and the entries that are reported, by their position. */
type Tampering = {
  what: string;
  act: (sql: postgres.TransactionSql, entries: readonly string[]) => Promise<unknown>;
  found: [at: number, problem: string][];
};

/** Recomputes the hash of an entry from its current content. */
const rehash = (sql: postgres.TransactionSql, entryId: string) => sql`
  update history set hash = hash_of_history_entry(history) where id = ${entryId}`;

/** Changes the settings of the third entry. */
const changeThird =
  (setting: string) => (sql: postgres.TransactionSql, entries: readonly string[]) =>
    sql.unsafe(`update history set ${setting} where id = '${entries[2]}'`);

const tamperings: Tampering[] = [
  ...[
    "content = content || '{\"enabled\": false}'",
    "content = content || '{\"rollout_percentage\": 50}'",
    "content = content || '{\"targeting_rules\": [{}]}'",
    "content = content || '{\"unknown\": true}'",
    "hash_version = 1",
    "changed_by = gen_random_uuid()",
    "changed_at = changed_at + interval '1 microsecond'",
    "change_type = 'scheduled'",
    "previous_hash = ''",
  ].map(
    (setting): Tampering => ({
      what: `a changed entry (${setting})`,
      act: changeThird(setting),
      found: [[2, "changed"]],
    }),
  ),
  {
    what: "a changed hash",
    act: changeThird("hash = sha256(hash)"),
    found: [
      [2, "changed"],
      [3, "unlinked"],
    ],
  },
  {
    what: "a changed entry with a matching hash",
    act: async (sql, entries) => {
      await changeThird("content = content || '{\"enabled\": false}'")(sql, entries);
      await rehash(sql, entries[2] ?? "");
    },
    found: [[3, "unlinked"]],
  },
  {
    what: "a removed entry",
    act: (sql, entries) => sql`delete from history where id = ${entries[2] ?? null}`,
    found: [[3, "unlinked"]],
  },
  {
    what: "removed oldest entries",
    act: (sql, entries) => sql`delete from history where id in ${sql(entries.slice(0, 2))}`,
    found: [[2, "unlinked"]],
  },
  {
    what: "removed oldest entries and a removed record of retention",
    act: async (sql, entries) => {
      await sql`delete from audit_retention`;
      await sql`delete from history where id in ${sql(entries.slice(0, 2))}`;
    },
    found: [[2, "unlinked"]],
  },
  {
    what: "removed recent entries and a forged record of retention",
    act: async (sql, entries) => {
      await sql`update audit_retention set removed_before = 'infinity'`;
      await sql`delete from history where id in ${sql(entries.slice(0, 2))}`;
    },
    found: [[2, "unlinked"]],
  },
  {
    what: "reordered entries",
    act: async (sql, entries) => {
      await sql`alter table history alter column sequence drop identity`;
      await sql`update history set sequence = -sequence where id in ${sql(entries.slice(1, 3))}`;
    },
    found: [
      [2, "changed"],
      [1, "changed"],
      [0, "unlinked"],
      [3, "unlinked"],
    ],
  },
];

describe("given a history that was tampered with", () => {
  it.each(tamperings)("finds $what", async ({ act, found }) => {
    const { entries } = await flagWithFiveEntries();
    await createFlag("untouched");
    await tamper((sql) => act(sql, entries));
    expect(await foundBreaks()).toEqual(found.map(([at, problem]) => [entries[at], problem]));
  });

  it("finds a changed entry of a deleted flag", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await committed((write) => changes.removeFlag(write, requestFor(flag.id)));
    await tamper((sql) => changeThird("content = content || '{\"enabled\": false}'")(sql, entries));
    expect(await foundBreaks()).toEqual([[entries[2], "changed"]]);
  });

  it("prints the break and exits with status 1", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await tamper((sql) => sql`delete from history where id = ${entries[2] ?? null}`);
    const { code, stdout, stderr } = await verify();
    expect(stdout).toMatch(
      new RegExp(
        `^Flag checkout \\(${flag.id}\\), environment production \\(${ids.environmentId}\\), ` +
          `entry ${entries[3]} of \\S+: it does not follow the entry before it: .*\\.\n` +
          `The history is broken \\(1\\): 5 entries checked\\.\n$`,
      ),
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
        insert into history (id, flag_id, environment_id, sequence, content, change_type, changed_by,
          changed_at, hash_version, previous_hash, hash)
        overriding system value
        select ${forged}, flag_id, environment_id, sequence + 1, content, change_type, changed_by,
          changed_at, hash_version, hash, ''
        from history where flag_id = ${flag.id} and content -> 'rollout_percentage' = '1'`;
      await rehash(sql, forged);
    });
    const [next] = await admin`select id from history where content -> 'rollout_percentage' = '2'`;
    expect(await foundBreaks()).toEqual([[next?.id, "unlinked"]]);
  });

  it("finds entries that a replaced function hashed", async () => {
    const { flag } = await flagWithFiveEntries();
    await admin`
      create or replace function hash_of_history_entry(entry history) returns bytea
      language sql as 'select sha256(''forged'')'`;
    await setRollout(flag.id, 5);
    expect(await foundBreaks()).toEqual([[expect.any(String), "changed"]]);
  });

  it("prints the first fifty breaks and the number of the others", async () => {
    const flags = await Promise.all(
      Array.from({ length: 30 }, (_, index) => createFlag(`flag-${index}`)),
    );
    expect(flags).toHaveLength(30);
    await admin`
      update history
      set content = content || jsonb_build_object('enabled', content -> 'enabled' = 'false')`;
    const { code, stdout } = await verify();
    expect(stdout.match(/^Flag /gm)).toHaveLength(50);
    expect(stdout).toMatch(/\nand 10 more\nThe history is broken \(60\): 60 entries checked\.\n$/);
    expect(code).toBe(1);
  });
});

describe("given a file of heads", () => {
  const folder = mkdtempSync(join(tmpdir(), "halyard-heads-"));
  const file = join(folder, "heads.json");
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
    expect(readdirSync(folder)).toEqual(["heads.json"]);
    const { heads } = JSON.parse(readFileSync(file, "utf8"));
    const [{ hash }] = await admin<[{ hash: string }]>`
      select encode(hash, 'hex') as hash from history where id = ${entries[4] ?? null}`;
    expect(heads).toHaveLength(2);
    expect(heads).toContainEqual({
      flag_id: flag.id,
      environment_id: ids.environmentId,
      entry_id: entries[4],
      changed_at: expect.stringMatching(/\+00:00$/),
      hash,
    });
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

  it("finds a chain whose newest entries were rewritten", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await takeHeads();
    await tamper((sql) => sql`delete from history where id in ${sql(entries.slice(3))}`);
    for (const percentage of [5, 6, 7]) await setRollout(flag.id, percentage);
    expect(await foundBreaks()).toEqual([]);
    const { code, stdout } = await run("--against", file);
    expect(stdout).toMatch(
      new RegExp(`^Flag checkout .* entry ${entries[4]} of .* newest one in the file of heads`),
    );
    expect(stdout).toContain("The history is broken (1)");
    expect(code).toBe(1);
  });

  it("finds a recomputed entry, a shortened chain and a removed chain", async () => {
    const { entries } = await flagWithFiveEntries();
    const { flag: shortened } = await createFlag("shortened");
    await setRollout(shortened.id, 1);
    const { flag: gone } = await createFlag("gone");
    await takeHeads();
    await tamper(async (sql) => {
      await sql`
        update history set content = content || '{"rollout_percentage": 90}' where id = ${entries[4] ?? null}`;
      await rehash(sql, entries[4] ?? "");
      await sql`delete from history where flag_id = ${shortened.id} and content -> 'rollout_percentage' = '1'`;
      await sql`delete from history where flag_id = ${gone.id}`;
    });
    expect(await foundBreaks()).toEqual([]);
    const { code, stdout } = await run("--against", file);
    expect(stdout.match(/newest one in the file of heads/g)).toHaveLength(4);
    expect(stdout).toContain("The history is broken (4)");
    expect(code).toBe(1);
  });

  it("accepts the deletion of a flag with its history", async () => {
    const { flag } = await flagWithFiveEntries();
    await takeHeads();
    await committed((write) => changes.removeFlag(write, requestFor(flag.id)));
    expect(await run("--against", file)).toMatchObject({ code: 0 });
    await admin`delete from history where flag_id = ${flag.id}`;
    expect(await run("--against", file)).toMatchObject({ code: 0 });
  });

  it("rejects a forged record of retention for recent entries", async () => {
    const { flag, entries } = await flagWithFiveEntries();
    await takeHeads();
    await setRollout(flag.id, 60);
    const [newest] = await admin<{ id: string }[]>`
      select id from history where content -> 'rollout_percentage' = '60'`;
    await tamper(async (sql) => {
      await sql`update audit_retention set removed_before = 'infinity'`;
      await sql`delete from history where id in ${sql([...entries])}`;
      await sql`update history set previous_hash = '' where id = ${newest?.id ?? null}`;
      await rehash(sql, newest?.id ?? "");
    });
    expect(await foundBreaks()).toEqual([]);
    expect(await run("--against", file)).toMatchObject({ code: 1 });
  });

  it("writes no file for a broken history", async () => {
    const { entries } = await flagWithFiveEntries();
    await tamper((sql) => sql`delete from history where id = ${entries[2] ?? null}`);
    expect(await run("--anchor", file)).toMatchObject({ code: 1 });
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    ["is truncated", (text: string) => text.slice(0, -5)],
    ["is empty", () => ""],
    ["has another format", () => '{"heads":[{"hash":"x"}]}'],
  ])("exits with status 2 if the file %s", async (_what, change) => {
    await flagWithFiveEntries();
    await takeHeads();
    writeFileSync(file, change(readFileSync(file, "utf8")));
    const { code, stderr } = await run("--against", file);
    expect(stderr).toContain(`${file} is not a complete file of heads`);
    expect(code).toBe(2);
  });

  it("exits with status 2 if the file does not exist", async () => {
    expect(await run("--against", file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("The history could not be checked: ENOENT"),
    });
  });
});

describe("given a role whose search path lacks the schema", () => {
  it("reads the history nevertheless", async () => {
    await flagWithFiveEntries();
    expect(await verify({ POSTGRES_URL: database.adminUrl })).toEqual({
      code: 0,
      stdout: "The history is intact: 6 entries checked.\n",
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
