import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { type LocalPostgres, startLocalPostgres } from "@halyard/local-backends";
import { urlFor } from "@halyard/postgres";
import postgres from "postgres";

/**
 * The data of a released version, as files in one folder: the content of the home of its `npm start`, and its responses
 * on these data. That of 0.1 has neither streams nor a cache, because later releases read only its database.
 */
export type ReleaseFixture = {
  /** API keys by name, and the operator's token as `operator`. */
  keys: Record<string, string>;
  /** Requests counted for the organization. `GET /api/v1/usage` shows only the current month. */
  usage: { organization_id: string; requests: number };
  /** Requests with their responses, in order. */
  exchanges: Exchange[];
  webhooks: {
    /** Its receiver responded with 200. */
    deployments: FixtureWebhook;
    /** Its receiver responded with 500. */
    chat: FixtureWebhook & { retryingDelivery?: string };
  };
};

type FixtureWebhook = { path: string; secret: string };

export type Exchange = {
  /** The name of the key. */
  as: string;
  path: string;
  /** Body of a `POST`. A request without it is a `GET`. */
  body?: unknown;
  answer: unknown;
};

export const databaseName = "halyard";
export const fixtureFiles = {
  database: "database.sql.gz",
  nats: "nats.tar.gz",
  cache: "snapshot-cache",
  credentials: "credentials.json",
  demo: "demo.json",
  expected: "expected.json",
  messages: "messages.json",
} as const;

/** Paths of these files in a home. */
export const homeFiles = {
  postgres: "postgres",
  superuserPassword: "postgres/superuser-password",
  nats: "nats",
  cache: "sdk-edge/snapshot-cache",
  credentials: "credentials.json",
} as const;

const fixtures = fileURLToPath(new URL("../../../fixtures", import.meta.url));
const prefix = "release-";

export function fixtureFolder(version: string): string {
  return join(fixtures, `${prefix}${version}`);
}

/** Returns the versions that have a fixture. */
export function releasesWithFixture(): string[] {
  const folders = readdirSync(fixtures).filter((name) => name.startsWith(prefix));
  return folders.map((folder) => folder.slice(prefix.length));
}

export async function readFixtureJson<T>(
  folder: string,
  name: keyof typeof fixtureFiles,
): Promise<T> {
  return JSON.parse(await readFile(join(folder, fixtureFiles[name]), "utf8")) as T;
}

/** Creates a home from the fixture. `look` runs on the restored database before the server stops. */
export async function restoreHome(
  folder: string,
  home: string,
  look: (sql: postgres.Sql) => Promise<void> = async () => undefined,
): Promise<void> {
  await mkdir(home, { recursive: true });
  if (isOfRollingRelease(folder)) await restoreStreamsAndCache(folder, home);
  const credentials = await readFile(join(folder, fixtureFiles.credentials));
  await writeFile(join(home, homeFiles.credentials), credentials, { mode: 0o600 });
  const dump = gunzipSync(await readFile(join(folder, fixtureFiles.database))).toString();
  await withDatabaseOf(home, async ({ adminUrl, superuser, password }) => {
    await withSql(adminUrl, (sql) => sql`create database ${sql(databaseName)}`);
    const url = urlFor(adminUrl, databaseName, superuser, password);
    await withSql(url, (sql) => sql.unsafe(dump).simple());
    await withSql(url, look);
  });
}

/** Returns whether processes of the release can run beside those of later ones. */
export function isOfRollingRelease(folder: string): boolean {
  return folder !== fixtureFolder("0.1.0");
}

async function restoreStreamsAndCache(folder: string, home: string): Promise<void> {
  await mkdir(join(home, "sdk-edge"), { recursive: true });
  await mkdir(join(home, homeFiles.nats));
  const archive = join(folder, fixtureFiles.nats);
  await promisify(execFile)("tar", ["-xzf", archive, "-C", join(home, homeFiles.nats)]);
  await copyFile(join(folder, fixtureFiles.cache), join(home, homeFiles.cache));
}

/** Runs PostgreSQL on the data of a home that is not in use. */
export async function withDatabaseOf(
  home: string,
  work: (server: LocalPostgres) => Promise<void>,
): Promise<void> {
  const server = await startLocalPostgres({
    dataDir: join(home, homeFiles.postgres),
    durable: false,
  });
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

async function withSql<T>(url: string, work: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}
